//! Panics of jobs: keep the first payload for the caller, get rid of the others without letting them do harm.
#![forbid(unsafe_code)]

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::sync::{AtomicBool, Mutex, Ordering};

pub(crate) type Payload = Box<dyn Any + Send>;

/// The payload of the first panic of a job.
#[derive(Debug)]
pub(crate) struct FirstPanic {
    payload: Mutex<Option<Payload>>,
    /// There is a payload: spares the jobs that did not panic the lock.
    is_kept: AtomicBool,
}

impl FirstPanic {
    pub(crate) fn new() -> Self {
        Self { payload: Mutex::new(None), is_kept: AtomicBool::new(false) }
    }

    /// Keeps `payload` if it is the first of this job.
    pub(crate) fn keep(&self, payload: Payload) {
        let mut first = lock(&self.payload);
        if first.is_none() {
            *first = Some(payload);
            self.is_kept.store(true, Ordering::Relaxed);
        } else {
            drop(first); // a payload's own `Drop` never runs under the lock
            discard(payload);
        }
    }

    /// The payload to raise on the caller, if a participant panicked. Every [`FirstPanic::keep`] must have happened before.
    pub(crate) fn take(&self) -> Option<Payload> {
        if !self.is_kept.load(Ordering::Relaxed) {
            return None;
        }
        self.is_kept.store(false, Ordering::Relaxed);
        lock(&self.payload).take()
    }
}

/// Nothing runs under the lock that could panic, so a poisoned one holds sound data.
fn lock<T>(mutex: &Mutex<T>) -> impl std::ops::DerefMut<Target = T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Drops a payload that nobody will see. Its `Drop` may panic in turn, even with a payload that does the same: that one is
/// leaked, as there is no end to it.
pub(crate) fn discard(payload: Payload) {
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(again);
    }
}

/// Ends the process if it is dropped: where going on would let a job outlive what it borrows.
pub(crate) struct AbortOnUnwind;

impl Drop for AbortOnUnwind {
    fn drop(&mut self) {
        std::process::abort();
    }
}
