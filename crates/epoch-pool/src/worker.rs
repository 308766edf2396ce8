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
    if !spin.until(|| home.look() != Found::Nothing) {
        home.set_asleep(true);
        fence(Ordering::SeqCst);
        if home.look() == Found::Nothing {
            // Once. Whoever is woken is needed: if others have taken its chunks by now, it may take some of theirs.
            thread::park();
        }
        home.set_asleep(false);
    }
    home.look() != Found::Stop
}
