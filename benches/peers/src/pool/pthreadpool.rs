//! The C library pthreadpool: ranges of tiles, and stealing from those who have not finished theirs.

use std::ffi::c_void;
use std::ptr::NonNull;

use benches::PoolError;

use super::Share;
use crate::calls::Calls;
use crate::gate::Gate;

unsafe extern "C" {
    safe fn peer_pthreadpool_new(n_threads: usize) -> *mut c_void;
    fn peer_pthreadpool_free(pool: *mut c_void);
    fn peer_pthreadpool_threads(pool: *mut c_void) -> usize;
    fn peer_pthreadpool_for(
        pool: *mut c_void,
        n_units: usize,
        tile: usize,
        call: extern "C" fn(*const c_void, usize, usize),
        context: *const c_void,
    );
}

pub(super) struct Pthreadpool {
    pool: NonNull<c_void>,
    /// The library waits if two threads dispatch, and for ever if a job does.
    gate: Gate,
}

// SAFETY: the library lets any thread use a pool, and one at a time is what it asks for at the most; the gate sees to that.
unsafe impl Sync for Pthreadpool {}

impl Pthreadpool {
    pub(super) fn new(n_threads: usize) -> Result<Self, PoolError> {
        let pool = NonNull::new(peer_pthreadpool_new(n_threads));
        let pool = pool.ok_or("pthreadpool cannot be created")?;
        Ok(Self { pool, gate: Gate::default() })
    }
}

impl Drop for Pthreadpool {
    fn drop(&mut self) {
        // SAFETY: the pool is this value's own, and nobody can use it any more.
        unsafe { peer_pthreadpool_free(self.pool.as_ptr()) }
    }
}

// SAFETY: S1, S2: the library calls back once for each tile, and returns when all calls have. Calls do not unwind.
unsafe impl Share for Pthreadpool {
    fn participants(&self) -> usize {
        // SAFETY: the pool lives as long as this value.
        unsafe { peer_pthreadpool_threads(self.pool.as_ptr()) }
    }

    fn share(&self, calls: &Calls<'_>) {
        let Some(_pass) = self.gate.enter() else {
            return calls.run(0..calls.n_units());
        };
        let tile = calls.tile(self.participants());
        let context = std::ptr::from_ref(calls).cast();
        // SAFETY: the pool lives as long as this value; `call` gets `context` back, which is the `Calls` that it expects and
        // which outlives the call.
        unsafe {
            peer_pthreadpool_for(self.pool.as_ptr(), calls.n_units(), tile, call, context);
        }
    }
}

extern "C" fn call(context: *const c_void, start: usize, end: usize) {
    // SAFETY: valid, because `share` made `context` of a reference that lives until all calls have returned; aliasing, because
    // all threads share it and `Calls` is `Sync`.
    let calls = unsafe { &*context.cast::<Calls<'_>>() };
    calls.run(start..end);
}
