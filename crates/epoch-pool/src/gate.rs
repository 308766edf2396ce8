//! Where a caller blocks. How a worker blocks is its own protocol, in `worker.rs`.
#![forbid(unsafe_code)]

use std::sync::PoisonError;

use crate::sync::{Condvar, Mutex};

/// Where a caller blocks whose workers still run. Not its thread's park token: that may be in use by whoever called us.
#[derive(Debug)]
pub(crate) struct Gate {
    lock: Mutex<()>,
    opened: Condvar,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Self { lock: Mutex::new(()), opened: Condvar::new() }
    }

    /// Blocks until `ready`. It must have come true before [`Gate::open`] is called for it.
    pub(crate) fn wait_until(&self, ready: impl Fn() -> bool) {
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        while !ready() {
            guard = self.opened.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Lets the waiter look again. Passing through the lock, we know that it is not between its look and its wait.
    pub(crate) fn open(&self) {
        drop(self.lock.lock());
        self.opened.notify_one();
    }
}
