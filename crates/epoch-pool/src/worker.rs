//! The life of a worker: wait for a home range, work, until it is told to stop.
#![forbid(unsafe_code)]

use crate::dispatch::Shared;
use crate::home::{Found, Home};
use crate::sync::{Ordering, fence, thread};
use crate::wait::SpinPolicy;

/// Runs worker `me` until [`Home::stop`].
pub(crate) fn work(shared: &Shared, me: usize) {
    while wait_for_chunks(shared.home(me), shared.spin) {
        shared.participate(me);
    }
}

/// W1 to W3 of `dispatch.rs`. `false`: the worker is to end.
fn wait_for_chunks(home: &Home, spin: SpinPolicy) -> bool {
    let mut found = Found::Nothing;
    let mut look = || {
        found = home.look();
        found != Found::Nothing
    };
    while !spin.until(&mut look) {
        // After a wake-up we spin again: its chunks may be gone by now, but the pool is in use.
        home.set_asleep(true);
        fence(Ordering::SeqCst);
        if !look() {
            thread::park();
        }
        home.set_asleep(false);
    }
    found == Found::Chunks
}
