//! Panics on purpose: payloads that know their dispatch, and count how often they are raised and dropped.
#![forbid(unsafe_code)]

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::yield_now;

/// How often the payloads of one dispatch were raised and dropped.
#[derive(Debug, Default)]
pub(crate) struct Panics {
    raised: AtomicU32,
    dropped: AtomicU32,
}

#[derive(Debug)]
struct Payload {
    serial: u64,
    panics: Arc<Panics>,
    /// Raises another payload when it is dropped.
    is_bomb: bool,
    /// It was raised when the pool had kept another one.
    is_last: bool,
}

impl Drop for Payload {
    fn drop(&mut self) {
        self.panics.dropped.fetch_add(1, Ordering::Relaxed);
        if self.is_bomb {
            let panics = self.panics.clone();
            let (serial, is_last) = (self.serial, self.is_last);
            resume_unwind(Box::new(Self { serial, panics, is_bomb: false, is_last }));
        }
    }
}

/// Unwinds with a payload, past the panic hook.
pub(crate) fn raise(serial: u64, panics: &Arc<Panics>, is_bomb: bool) -> ! {
    unwind(Payload { serial, panics: panics.clone(), is_bomb, is_last: false })
}

/// As [`raise`], when a payload of this dispatch has been dropped. Another one was kept for the caller by then, so this one must
/// not reach it.
pub(crate) fn raise_last(serial: u64, panics: &Arc<Panics>, is_bomb: bool) -> ! {
    while panics.dropped.load(Ordering::Relaxed) == 0 {
        yield_now();
    }
    unwind(Payload { serial, panics: panics.clone(), is_bomb, is_last: true })
}

fn unwind(payload: Payload) -> ! {
    payload.panics.raised.fetch_add(1, Ordering::Relaxed);
    resume_unwind(Box::new(payload))
}

/// Runs `dispatch`; what it raised must be one of the payloads of dispatch `serial`, and the others dropped. Returns how many
/// were raised.
pub(crate) fn expect(
    serial: u64,
    panics: &Arc<Panics>,
    dispatch: impl FnOnce(),
) -> Result<u32, String> {
    let outcome = catch_unwind(AssertUnwindSafe(dispatch));
    let raised = panics.raised.load(Ordering::Relaxed);
    let dropped = panics.dropped.load(Ordering::Relaxed);
    let received = match outcome {
        Ok(()) => 0,
        Err(payload) => check(serial, payload)?,
    };
    if received != raised.min(1) || dropped != raised - received {
        return Err(format!(
            "{raised} payloads were raised, {received} reached the caller, {dropped} were dropped"
        ));
    }
    Ok(raised)
}

/// Drops the payload, if it is one of `serial`.
fn check(serial: u64, payload: Box<dyn Any + Send>) -> Result<u32, String> {
    let payload = match payload.downcast::<Payload>() {
        Ok(payload) => payload,
        Err(other) => return Err(unplanned(other)),
    };
    if payload.serial != serial {
        return Err(unplanned(payload));
    }
    let is_last = payload.is_last;
    _ = catch_unwind(AssertUnwindSafe(|| drop(payload)));
    match is_last {
        true => Err("a later payload reached the caller instead of the first".into()),
        false => Ok(1),
    }
}

/// What to say of a panic that nobody planned here. Its payload is leaked, as it may be one that panics when it is dropped.
pub(crate) fn unplanned(payload: Box<dyn Any + Send>) -> String {
    let payload: &(dyn Any + Send) = Box::leak(payload);
    let message = match payload.downcast_ref::<Payload>() {
        Some(payload) => return format!("a payload of dispatch {} in another one", payload.serial),
        None => payload.downcast_ref::<String>().map(String::as_str),
    };
    let message = message.or(payload.downcast_ref::<&str>().copied());
    format!("a panic that was not planned: {}", message.unwrap_or("without a message"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_must_be_of_the_dispatch_and_raised_once() {
        for is_bomb in [false, true] {
            let panics = Arc::new(Panics::default());
            assert_eq!(expect(7, &panics, || {}), Ok(0));
            let panics = Arc::new(Panics::default());
            assert_eq!(expect(7, &panics, || raise(7, &panics, is_bomb)), Ok(1));
            let panics = Arc::new(Panics::default());
            assert!(expect(8, &panics, || raise(7, &panics, false)).is_err());
            let panics = Arc::new(Panics::default());
            let swallow = || _ = catch_unwind(AssertUnwindSafe(|| raise(7, &panics, false)));
            assert!(expect(7, &panics, swallow).is_err(), "a payload was lost");
        }
        let panics = Arc::new(Panics::default());
        assert!(expect(7, &panics, || resume_unwind(Box::new("other"))).is_err());

        let panics = Arc::new(Panics::default());
        let raise_two = || {
            _ = catch_unwind(AssertUnwindSafe(|| raise(7, &panics, false)));
            raise_last(7, &panics, false)
        };
        assert!(expect(7, &panics, raise_two).is_err(), "the second of two");
    }
}
