//! What the integration tests share.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Runs `test` on a thread of its own and aborts the process if it hangs: a hung pool cannot be torn down. The bound is far
/// beyond what a loaded machine with one CPU needs.
pub(crate) fn watched(test: impl FnOnce() + Send + 'static) {
    let (done, ended) = mpsc::channel();
    let body = thread::spawn(move || {
        test();
        done.send(()).ok();
    });
    match ended.recv_timeout(Duration::from_secs(300)) {
        Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => {
            if let Err(payload) = body.join() {
                std::panic::resume_unwind(payload);
            }
        }
        Err(mpsc::RecvTimeoutError::Timeout) => {
            eprintln!("the pool hangs: {:?}", thread::current().name());
            std::process::abort();
        }
    }
}
