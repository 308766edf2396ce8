//! What Apple's calls mean. They are behind a trait, so that every system's tests can play their answers.
#![forbid(unsafe_code)]
#![cfg_attr(not(target_vendor = "apple"), allow(dead_code, reason = "elsewhere only tests use it"))]

use crate::class::{Current, QosClass};
use crate::error::Error;

/// `EPERM` of Apple's `<sys/errno.h>`, spelled out so that the mapping is the same wherever it is tested.
const EPERM: i32 = 1;

/// The calls, for the calling thread.
pub(crate) trait QosCalls {
    /// `pthread_set_qos_class_self_np(class, relative_priority)`: the error number it returns, 0 for success. It leaves
    /// `errno` alone.
    fn set(&self, class: QosClass, relative_priority: i32) -> i32;

    /// `pthread_get_qos_class_np(pthread_self(), ..)`: class number and relative priority, or the error number.
    fn get(&self) -> Result<(u32, i32), i32>;

    /// `qos_class_main()`: the class number of the main thread.
    fn main(&self) -> u32;
}

pub(crate) fn set(
    calls: &impl QosCalls,
    class: QosClass,
    relative_priority: i32,
) -> Result<(), Error> {
    match calls.set(class, relative_priority) {
        0 => Ok(()),
        EPERM => Err(Error::OptedOut),
        code => Err(Error::Os(code)),
    }
}

pub(crate) fn get(calls: &impl QosCalls) -> Current {
    match calls.get() {
        Ok((raw, relative_priority)) => meaning(raw, relative_priority),
        Err(_) => Current::Unsupported,
    }
}

pub(crate) fn main(calls: &impl QosCalls) -> Current {
    meaning(calls.main(), 0)
}

/// Whether [`restore`] has a call for it: "no class" can only be read, and other numbers are private.
pub(crate) const fn is_restorable(former: Current) -> bool {
    matches!(former, Current::Class { .. })
}

pub(crate) fn restore(calls: &impl QosCalls, former: Current) -> Result<(), Error> {
    match former {
        Current::Class { class, relative_priority } => set(calls, class, relative_priority),
        _ => Err(Error::NotRestorable(former)),
    }
}

fn meaning(raw: u32, relative_priority: i32) -> Current {
    match (raw, QosClass::from_raw(raw)) {
        (_, Some(class)) => Current::Class { class, relative_priority },
        (0, None) => Current::Unspecified,
        (raw, None) => Current::Other(raw),
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
        main: u32,
    }

    impl Played {
        fn new(state: Result<(u32, i32), i32>, answer: i32) -> Self {
            Self { state: Cell::new(state), answer, main: 0 }
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

        fn main(&self) -> u32 {
            self.main
        }
    }

    #[test]
    fn a_class_that_was_set_is_read_back() {
        let thread = Played::new(Ok((0, 0)), 0);
        assert_eq!(get(&thread), Current::Unspecified);
        for class in QosClass::ALL {
            assert_eq!(set(&thread, class, -3), Ok(()));
            assert_eq!(get(&thread), Current::Class { class, relative_priority: -3 });
        }
    }

    #[test]
    fn a_refused_call_reports_its_return_value_and_changes_nothing() {
        const ANSWERS: &[(i32, Error)] = &[
            (1, Error::OptedOut),
            (22, Error::Os(22)),
            (-1, Error::Os(-1)),
            (i32::MAX, Error::Os(i32::MAX)),
        ];
        let former = Current::Class { class: QosClass::Default, relative_priority: 0 };
        for (answer, error) in ANSWERS {
            let thread = Played::new(Ok((0x15, 0)), *answer);
            assert_eq!(set(&thread, QosClass::UserInteractive, 0), Err(*error));
            assert_eq!(get(&thread), former);
            assert_eq!(restore(&thread, former), Err(*error), "answer {answer}");
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
            let mut thread = Played::new(*state, 0);
            assert_eq!(get(&thread), *expected, "state {state:?}");
            if let Ok((raw, 0)) = *state {
                thread.main = raw;
                assert_eq!(main(&thread), *expected, "main thread in {raw}");
            }
        }
    }

    #[test]
    fn a_class_comes_back_with_its_priority_and_no_class_does_not() {
        let thread = Played::new(Ok((0x21, 0)), 0);
        let former = Current::Class { class: QosClass::Utility, relative_priority: -7 };
        assert!(is_restorable(former));
        assert_eq!(restore(&thread, former), Ok(()));
        assert_eq!(get(&thread), former);
        for lost in [Current::Unspecified, Current::Other(5), Current::Unsupported] {
            assert!(!is_restorable(lost));
            assert_eq!(restore(&thread, lost), Err(Error::NotRestorable(lost)));
            assert_eq!(get(&thread), former);
        }
    }
}
