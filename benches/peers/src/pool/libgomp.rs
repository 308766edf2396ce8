//! OpenMP as GCC has it: a team of threads that belongs to the calling thread.

use std::ffi::{c_int, c_void};

use benches::PoolError;

use super::Share;
use crate::calls::Calls;

unsafe extern "C" {
    fn peer_libgomp_for(
        n_units: usize,
        tile: usize,
        n_threads: c_int,
        call: extern "C" fn(*const c_void, usize, usize),
        context: *const c_void,
    );
    safe fn peer_libgomp_team(n_threads: c_int) -> c_int;
}

pub(super) struct Libgomp {
    n_threads: c_int,
}

impl Libgomp {
    /// Has the team made. Variables such as `OMP_THREAD_LIMIT` can make it smaller, which is an error.
    pub(super) fn new(n_threads: usize) -> Result<Self, PoolError> {
        let n_threads = c_int::try_from(n_threads)?;
        match peer_libgomp_team(n_threads) {
            found if found == n_threads => Ok(Self { n_threads }),
            found => Err(format!("OpenMP gives {found} threads, not {n_threads}").into()),
        }
    }
}

// SAFETY: S1, S2: the loop calls back once for each range, and the ranges partition the units; a parallel region ends with a
// barrier of its team. Calls do not unwind.
unsafe impl Share for Libgomp {
    fn participants(&self) -> usize {
        self.n_threads as usize
    }

    fn share(&self, calls: &Calls<'_>) {
        let threads = self.n_threads;
        let tile = calls.tile(threads as usize);
        let context = std::ptr::from_ref(calls).cast();
        // SAFETY: `call` gets `context` back, which is the `Calls` that it expects and which outlives the region.
        unsafe { peer_libgomp_for(calls.n_units(), tile, threads, call, context) }
    }
}

extern "C" fn call(context: *const c_void, start: usize, end: usize) {
    // SAFETY: valid, because `share` made `context` of a reference that lives until the region has ended; aliasing, because all
    // threads share it and `Calls` is `Sync`.
    let calls = unsafe { &*context.cast::<Calls<'_>>() };
    calls.run(start..end);
}
