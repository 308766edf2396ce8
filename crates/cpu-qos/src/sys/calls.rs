//! Apple's two calls as a trait, and what their answers mean: tested on every platform with played answers.
#![forbid(unsafe_code)]

use crate::class::{Current, QosClass};
use crate::error::Error;

/// The two calls, for the calling thread.
pub(super) trait QosCalls {
    /// `pthread_set_qos_class_self_np(class, relative_priority)`: the error number it returns, 0 for success.
    fn set(&self, class: QosClass, relative_priority: i32) -> i32;

    /// `pthread_get_qos_class_np(pthread_self(), ..)`: class number and relative priority, or the error number.
    fn get(&self) -> Result<(u32, i32), i32>;
}

pub(super) fn set(calls: &impl QosCalls, class: QosClass) -> Result<(), Error> {
    Error::from_return_value(calls.set(class, 0))
}

pub(super) fn get(calls: &impl QosCalls) -> Current {
    match calls.get() {
        Ok((0, _)) => Current::Unspecified,
        Ok((raw, relative_priority)) => match QosClass::from_raw(raw) {
            Some(class) => Current::Class { class, relative_priority },
            None => Current::Other(raw),
        },
        Err(_) => Current::Unsupported,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// A thread as Apple's library keeps it: a class, and the answer of the next `set`.
    struct Played {
        state: Cell<Result<(u32, i32), i32>>,
        answer: i32,
    }

    impl Played {
        fn new(state: Result<(u32, i32), i32>, answer: i32) -> Self {
            Self { state: Cell::new(state), answer }
        }
    }

    impl QosCalls for Played {
        fn set(&self, class: QosClass, relative_priority: i32) -> i32 {
            if self.answer == 0 {
                self.state.set(Ok((class.raw(), relative_priority)));
            }
            self.answer
        }

        fn get(&self) -> Result<(u32, i32), i32> {
            self.state.get()
        }
    }

    #[test]
    fn a_class_that_was_set_is_read_back() {
        let thread = Played::new(Ok((0, 0)), 0);
        assert_eq!(get(&thread), Current::Unspecified);
        for class in QosClass::ALL {
            assert_eq!(set(&thread, class), Ok(()));
            assert_eq!(get(&thread), Current::Class { class, relative_priority: 0 });
        }
    }

    #[test]
    fn a_refused_call_reports_its_return_value_and_changes_nothing() {
        for (answer, error) in [(1, Error::OptedOut), (22, Error::Os(22))] {
            let thread = Played::new(Ok((0x15, 0)), answer);
            assert_eq!(set(&thread, QosClass::UserInteractive), Err(error));
            assert_eq!(
                get(&thread),
                Current::Class { class: QosClass::Default, relative_priority: 0 }
            );
        }
    }

    #[test]
    fn whatever_is_read_has_a_place() {
        /// What the call gives, and what it means.
        type Case = (Result<(u32, i32), i32>, Current);
        const CASES: &[Case] = &[
            (Ok((0, 0)), Current::Unspecified),
            (Ok((0x05, 0)), Current::Other(0x05)),
            (Ok((0x11, -7)), Current::Class { class: QosClass::Utility, relative_priority: -7 }),
            (Ok((u32::MAX, 0)), Current::Other(u32::MAX)),
            (Err(3), Current::Unsupported),
        ];
        for (state, expected) in CASES {
            assert_eq!(get(&Played::new(*state, 0)), *expected, "state {state:?}");
        }
    }
}
