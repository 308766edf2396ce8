//! A borrowed closure whose type and lifetime are erased, so that one slot can hold any job.

use std::{ops::Range, ptr::NonNull};

/// A job: called with the participant that runs it and the chunks that it claimed. Copying one is harmless; calling one is
/// not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawJob {
    data: NonNull<()>,
    call: unsafe fn(NonNull<()>, usize, Range<u32>),
}

// SAFETY: `erase` accepts only `F: Sync`, and `call` makes nothing but a `&F` of it, which may be used on any thread.
unsafe impl Send for RawJob {}

impl RawJob {
    /// The job of a pool that has never had one. Safe to call for ever.
    pub(crate) fn nothing() -> Self {
        fn nothing(_participant: usize, _chunks: Range<u32>) {}
        Self::erase(&nothing)
    }

    pub(crate) fn erase<F: Fn(usize, Range<u32>) + Sync>(job: &F) -> Self {
        /// # Safety
        ///
        /// `data` is the `&F` that `erase` was given, and that borrow is still alive.
        unsafe fn call<F: Fn(usize, Range<u32>)>(
            data: NonNull<()>,
            participant: usize,
            chunks: Range<u32>,
        ) {
            // SAFETY: valid, as our caller keeps the borrow behind `data` alive; aliasing, as every participant makes a
            // shared reference and none a mutable one.
            let job = unsafe { data.cast::<F>().as_ref() };
            job(participant, chunks);
        }
        Self { data: NonNull::from(job).cast(), call: call::<F> }
    }

    /// # Safety
    ///
    /// The `&F` given to [`RawJob::erase`] must outlive this call.
    pub(crate) unsafe fn call(self, participant: usize, chunks: Range<u32>) {
        // SAFETY: the same contract, passed on; `erase` paired `call` with the type behind `data`.
        unsafe { (self.call)(self.data, participant, chunks) }
    }
}
