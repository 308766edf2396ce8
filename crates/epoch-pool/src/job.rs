//! A borrowed job whose type and lifetime are erased, so that one slot can hold any of them.

use std::{ops::Range, ptr::NonNull};

/// What participants call with the chunks they have claimed.
pub(crate) trait Job: Sync {
    fn call(&self, participant: usize, chunks: Range<u32>);
}

impl<F: Fn(usize, Range<u32>) + Sync> Job for F {
    fn call(&self, participant: usize, chunks: Range<u32>) {
        self(participant, chunks);
    }
}

/// An erased `&J`. Copying one is harmless; calling one is not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawJob {
    data: NonNull<()>,
    call: unsafe fn(NonNull<()>, usize, Range<u32>),
}

// SAFETY: `erase` accepts only a `J: Sync`, and `call` makes nothing but a `&J` of it, which may be used on any thread.
unsafe impl Send for RawJob {}

impl RawJob {
    /// The job of a pool that has never had one. Safe to call for ever.
    pub(crate) fn nothing() -> Self {
        fn nothing(_participant: usize, _chunks: Range<u32>) {}
        Self::erase(&nothing)
    }

    pub(crate) fn erase<J: Job>(job: &J) -> Self {
        /// # Safety
        ///
        /// `data` is the `&J` that `erase` was given, and that borrow is still alive.
        unsafe fn call<J: Job>(data: NonNull<()>, participant: usize, chunks: Range<u32>) {
            // SAFETY: valid, as our caller keeps the borrow behind `data` alive; aliasing, as every participant makes a
            // shared reference and none a mutable one.
            let job = unsafe { data.cast::<J>().as_ref() };
            job.call(participant, chunks);
        }
        Self { data: NonNull::from(job).cast(), call: call::<J> }
    }

    /// Where the job lies: for the cache to fetch, never to be read through.
    pub(crate) fn address(self) -> *mut () {
        self.data.as_ptr()
    }

    /// # Safety
    ///
    /// The `&J` given to [`RawJob::erase`] must outlive this call.
    pub(crate) unsafe fn call(self, participant: usize, chunks: Range<u32>) {
        // SAFETY: the same contract, passed on; `erase` paired `call` with the type behind `data`.
        unsafe { (self.call)(self.data, participant, chunks) }
    }
}
