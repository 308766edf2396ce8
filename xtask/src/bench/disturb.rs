//! Busy threads beside what is measured: a neighbour to order.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// Threads that do nothing but take CPU time, until this is dropped.
#[derive(Debug)]
pub(crate) struct Disturbance {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Disturbance {
    /// Starts `n_threads` of them.
    pub(crate) fn start(n_threads: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let busy = |_| {
            let stop = stop.clone();
            thread::spawn(move || while !stop.load(Ordering::Relaxed) {})
        };
        let threads = (0..n_threads).map(busy).collect();
        Self { stop, threads }
    }
}

impl Drop for Disturbance {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // It cannot panic.
            _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threads_end_with_it() {
        let disturbance = Disturbance::start(2);
        let stop = Arc::downgrade(&disturbance.stop);
        assert_eq!(disturbance.threads.len(), 2);
        drop(disturbance);
        assert!(stop.upgrade().is_none(), "each thread held it");
    }
}
