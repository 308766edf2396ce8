//! Windows' power throttling of threads, as classes. The calls are behind a trait, so that every system's tests can play them.
//!
//! Windows has fewer levels than there are classes: HighQoS for what a user waits for, EcoQoS for the background, and in between
//! the system decides, as it does for a thread that nobody has touched. So the class asked for is remembered, and believed as
//! long as the level that it stands for is still the one found.
#![forbid(unsafe_code)]
#![cfg_attr(not(windows), allow(dead_code, reason = "elsewhere only tests use it"))]

use std::cell::Cell;

use crate::class::{Current, QosClass};
use crate::error::Error;

/// `THREAD_POWER_THROTTLING_EXECUTION_SPEED` of `<processthreadsapi.h>`, the only bit of both masks.
const EXECUTION_SPEED: u32 = 1;

/// Error codes by which Windows versions say that they do not know a call or an information class: not implemented there
/// (`ERROR_CALL_NOT_IMPLEMENTED`, `ERROR_NOT_SUPPORTED`), or a class beyond those they know (`ERROR_INVALID_PARAMETER`; our
/// parameters are right otherwise).
const UNKNOWN_TO_SYSTEM: [u32; 3] = [120, 50, 87];

/// What a thread is told about its speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    /// HighQoS: never slowed down to save power.
    High,
    /// The system decides.
    Managed,
    /// EcoQoS: slowed down, and kept to efficient cores.
    Eco,
}

impl Level {
    const fn of(class: QosClass) -> Self {
        match class {
            QosClass::UserInteractive | QosClass::UserInitiated => Self::High,
            QosClass::Default | QosClass::Utility => Self::Managed,
            QosClass::Background => Self::Eco,
        }
    }

    /// Which bits are under the thread's own control, and their state.
    const fn masks(self) -> Masks {
        match self {
            Self::High => Masks { control: EXECUTION_SPEED, state: 0 },
            Self::Managed => Masks { control: 0, state: 0 },
            Self::Eco => Masks { control: EXECUTION_SPEED, state: EXECUTION_SPEED },
        }
    }

    const fn from_masks(masks: Masks) -> Self {
        match (masks.control & EXECUTION_SPEED, masks.state & EXECUTION_SPEED) {
            (0, _) => Self::Managed,
            (_, 0) => Self::High,
            _ => Self::Eco,
        }
    }
}

/// `THREAD_POWER_THROTTLING_STATE` without its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Masks {
    pub(crate) control: u32,
    pub(crate) state: u32,
}

/// The calls, for the calling thread; errors are those of `GetLastError`.
pub(crate) trait ThrottlingCalls {
    /// `SetThreadInformation(.., ThreadPowerThrottling, ..)`.
    fn set(&self, masks: Masks) -> Result<(), u32>;

    /// `GetThreadInformation(.., ThreadPowerThrottling, ..)`.
    fn get(&self) -> Result<Masks, u32>;
}

/// The class that this thread last asked for.
pub(crate) type Asked = Cell<Option<QosClass>>;

pub(crate) fn set(
    calls: &impl ThrottlingCalls,
    asked: &Asked,
    class: QosClass,
) -> Result<(), Error> {
    set_level(calls, Level::of(class))?;
    asked.set(Some(class));
    Ok(())
}

fn set_level(calls: &impl ThrottlingCalls, level: Level) -> Result<(), Error> {
    calls.set(level.masks()).map_err(|code| {
        if UNKNOWN_TO_SYSTEM.contains(&code) {
            return Error::Unsupported;
        }
        Error::Os(code.cast_signed())
    })
}

pub(crate) fn get(calls: &impl ThrottlingCalls, asked: &Asked) -> Current {
    let class = match (calls.get(), asked.get()) {
        // Versions that set and cannot read: what was asked for is all that is known.
        (Err(_), None) => return Current::Unsupported,
        (Err(_), Some(class)) => class,
        (Ok(masks), asked) => match (Level::from_masks(masks), asked) {
            (level, Some(class)) if Level::of(class) == level => class,
            (Level::High, _) => QosClass::UserInitiated,
            (Level::Managed, _) => return Current::Unspecified,
            (Level::Eco, _) => QosClass::Background,
        },
    };
    Current::Class { class, relative_priority: 0 }
}

/// Whether [`restore`] has a call for it. "Unspecified" is a level here: the system decides.
pub(crate) const fn is_restorable(former: Current) -> bool {
    matches!(former, Current::Class { .. } | Current::Unspecified)
}

pub(crate) fn restore(
    calls: &impl ThrottlingCalls,
    asked: &Asked,
    former: Current,
) -> Result<(), Error> {
    match former {
        Current::Class { class, .. } => set(calls, asked, class),
        Current::Unspecified => {
            set_level(calls, Level::Managed)?;
            asked.set(None);
            Ok(())
        }
        _ => Err(Error::NotRestorable(former)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread as Windows keeps it, and the answers of its calls.
    struct Played {
        masks: Cell<Masks>,
        set: Result<(), u32>,
        get: Result<(), u32>,
    }

    impl Played {
        fn new(control: u32, state: u32) -> Self {
            Self { masks: Cell::new(Masks { control, state }), set: Ok(()), get: Ok(()) }
        }
    }

    impl ThrottlingCalls for Played {
        fn set(&self, masks: Masks) -> Result<(), u32> {
            self.set.map(|()| self.masks.set(masks))
        }

        fn get(&self) -> Result<Masks, u32> {
            self.get.map(|()| self.masks.get())
        }
    }

    const fn class(class: QosClass) -> Current {
        Current::Class { class, relative_priority: 0 }
    }

    #[test]
    fn each_class_sets_the_masks_of_its_level_and_is_read_back() {
        const CASES: [(QosClass, u32, u32); 5] = [
            (QosClass::UserInteractive, 1, 0),
            (QosClass::UserInitiated, 1, 0),
            (QosClass::Default, 0, 0),
            (QosClass::Utility, 0, 0),
            (QosClass::Background, 1, 1),
        ];
        let (thread, asked) = (Played::new(0, 0), Cell::new(None));
        for (asked_for, control, state) in CASES {
            assert_eq!(set(&thread, &asked, asked_for), Ok(()));
            assert_eq!(thread.masks.get(), Masks { control, state }, "{asked_for}");
            assert_eq!(get(&thread, &asked), class(asked_for));
        }
    }

    #[test]
    fn a_level_that_others_set_is_read_as_what_it_is() {
        /// Both masks, the class asked for before, and what is found.
        type Case = (u32, u32, Option<QosClass>, Current);
        const CASES: &[Case] = &[
            (0, 0, None, Current::Unspecified),
            (0, 1, None, Current::Unspecified),
            (2, 2, None, Current::Unspecified),
            (1, 0, None, class(QosClass::UserInitiated)),
            (3, 2, None, class(QosClass::UserInitiated)),
            (1, 1, None, class(QosClass::Background)),
            (0, 0, Some(QosClass::UserInteractive), Current::Unspecified),
            (1, 1, Some(QosClass::UserInteractive), class(QosClass::Background)),
            (1, 0, Some(QosClass::Utility), class(QosClass::UserInitiated)),
            (0, 0, Some(QosClass::Utility), class(QosClass::Utility)),
        ];
        for (control, state, asked, expected) in CASES {
            let found = get(&Played::new(*control, *state), &Cell::new(*asked));
            assert_eq!(found, *expected, "masks {control} {state}, asked for {asked:?}");
        }
    }

    #[test]
    fn a_system_that_cannot_read_is_believed_what_it_was_told() {
        let thread = Played { get: Err(87), ..Played::new(0, 0) };
        let asked = Cell::new(None);
        assert_eq!(get(&thread, &asked), Current::Unsupported);
        assert_eq!(set(&thread, &asked, QosClass::UserInteractive), Ok(()));
        assert_eq!(get(&thread, &asked), class(QosClass::UserInteractive));
    }

    #[test]
    fn a_refused_call_says_why_and_changes_nothing() {
        const CASES: &[(u32, Error)] = &[
            (120, Error::Unsupported),
            (50, Error::Unsupported),
            (87, Error::Unsupported),
            (5, Error::Os(5)),
            (u32::MAX, Error::Os(-1)),
        ];
        for (code, error) in CASES {
            let thread = Played { set: Err(*code), ..Played::new(1, 1) };
            let asked = Cell::new(None);
            assert_eq!(set(&thread, &asked, QosClass::UserInitiated), Err(*error), "code {code}");
            assert_eq!(restore(&thread, &asked, Current::Unspecified), Err(*error));
            assert_eq!(get(&thread, &asked), class(QosClass::Background));
        }
    }

    #[test]
    fn classes_and_the_systems_own_choice_can_be_restored() {
        let (thread, asked) = (Played::new(1, 0), Cell::new(Some(QosClass::UserInitiated)));
        assert!(is_restorable(Current::Unspecified));
        assert_eq!(restore(&thread, &asked, Current::Unspecified), Ok(()));
        assert_eq!(get(&thread, &asked), Current::Unspecified);
        for former in QosClass::ALL.map(class) {
            assert!(is_restorable(former));
            assert_eq!(restore(&thread, &asked, former), Ok(()));
            assert_eq!(get(&thread, &asked), former);
        }
        for lost in [Current::Other(5), Current::Unsupported] {
            assert!(!is_restorable(lost));
            assert_eq!(restore(&thread, &asked, lost), Err(Error::NotRestorable(lost)));
        }
    }
}
