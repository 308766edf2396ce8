//! Loom's, for the models.

pub(crate) use loom::cell::UnsafeCell; // reports two threads in one cell at once
pub(crate) use loom::hint::spin_loop;
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
pub(crate) use loom::sync::{Arc, Mutex};

pub(crate) use self::thread::{JoinHandle, Thread};

/// Threads whose parking is built from a lock and a condition variable. Loom's own `unpark` orders what the woken thread does
/// after it even if that thread never parked, which would hide the orderings that this case needs.
pub(crate) mod thread {
    use std::cell::RefCell;
    use std::io;

    use loom::sync::{Arc, Condvar, Mutex};
    pub(crate) use loom::thread::yield_now;

    loom::thread_local! {
        static CURRENT: RefCell<Option<Thread>> = RefCell::new(None);
    }

    /// A thread's token, and what to wait on for it.
    #[derive(Clone, Debug)]
    pub(crate) struct Thread(Arc<(Mutex<bool>, Condvar)>);

    impl Thread {
        fn new() -> Self {
            Self(Arc::new((Mutex::new(false), Condvar::new())))
        }

        pub(crate) fn unpark(&self) {
            *self.0.0.lock().unwrap() = true;
            self.0.1.notify_one();
        }
    }

    pub(crate) fn current() -> Thread {
        CURRENT.with(|current| current.borrow_mut().get_or_insert_with(Thread::new).clone())
    }

    pub(crate) fn park() {
        let Thread(parker) = current();
        let mut token = parker.0.lock().unwrap();
        while !*token {
            token = parker.1.wait(token).unwrap();
        }
        *token = false;
    }

    #[derive(Debug)]
    pub(crate) struct JoinHandle<T>(loom::thread::JoinHandle<T>, Thread);

    impl<T> JoinHandle<T> {
        pub(crate) fn thread(&self) -> &Thread {
            &self.1
        }

        pub(crate) fn join(self) -> std::thread::Result<T> {
            self.0.join()
        }
    }

    pub(crate) struct Builder(loom::thread::Builder);

    impl Builder {
        pub(crate) fn new() -> Self {
            Self(loom::thread::Builder::new())
        }

        pub(crate) fn name(self, name: String) -> Self {
            Self(self.0.name(name))
        }

        pub(crate) fn stack_size(self, _bytes: usize) -> Self {
            self
        }

        pub(crate) fn spawn(
            self,
            body: impl FnOnce() + Send + 'static,
        ) -> io::Result<JoinHandle<()>> {
            let thread = Thread::new();
            let own = thread.clone();
            let handle = self.0.spawn(move || {
                CURRENT.with(|current| *current.borrow_mut() = Some(own));
                body();
            })?;
            Ok(JoinHandle(handle, thread))
        }
    }
}
