//! The classes, the numbers Apple's headers give them, and what a thread can be found in.
#![forbid(unsafe_code)]

use std::fmt;

/// A quality-of-service class that a thread can be put into, from the most to the least urgent.
///
/// On Apple silicon the class decides which cores the scheduler prefers for the thread. The numbers are those of
/// `<sys/qos.h>`; "where it may run" is what Apple's *Energy Efficiency Guide* and the scheduler's published source
/// say, not a promise of this crate.
///
/// ```
/// use cpu_qos::QosClass;
///
/// assert!(QosClass::UserInteractive > QosClass::Utility);
/// assert_eq!(QosClass::from_raw(0x19), Some(QosClass::UserInitiated));
/// assert_eq!(QosClass::Background.to_string(), "background");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QosClass {
    /// Maintenance nobody waits for: efficiency cores only, and throttled in I/O and timers.
    Background,
    /// Long work with progress the user may watch: leans to the efficiency cores.
    Utility,
    /// What a thread gets if nobody chose. Not meant as a classification of work.
    Default,
    /// The user waits for the result: the performance cores, and the efficiency cores when those are taken.
    UserInitiated,
    /// The user interacts with the result: as above, before all other classes.
    UserInteractive,
}

impl QosClass {
    /// All classes, the least urgent first.
    pub const ALL: [Self; 5] = [
        Self::Background,
        Self::Utility,
        Self::Default,
        Self::UserInitiated,
        Self::UserInteractive,
    ];

    /// The number of the class in `<sys/qos.h>`.
    pub const fn raw(self) -> u32 {
        match self {
            Self::Background => 0x09,
            Self::Utility => 0x11,
            Self::Default => 0x15,
            Self::UserInitiated => 0x19,
            Self::UserInteractive => 0x21,
        }
    }

    /// The class with this number, or `None`: 0 is "unspecified", and Apple keeps other numbers to itself.
    pub const fn from_raw(raw: u32) -> Option<Self> {
        match raw {
            0x09 => Some(Self::Background),
            0x11 => Some(Self::Utility),
            0x15 => Some(Self::Default),
            0x19 => Some(Self::UserInitiated),
            0x21 => Some(Self::UserInteractive),
            _ => None,
        }
    }

    /// The class in words: `user-interactive`, `user-initiated`, `default`, `utility` or `background`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Background => "background",
            Self::Utility => "utility",
            Self::Default => "default",
            Self::UserInitiated => "user-initiated",
            Self::UserInteractive => "user-interactive",
        }
    }
}

impl fmt::Display for QosClass {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// What a thread is found in.
///
/// It is the class that was *asked for*: App Nap, `taskpolicy`, low-power mode and the role of the process change
/// what the thread really gets, and cannot be seen from inside it.
///
/// ```
/// use cpu_qos::{Current, QosClass};
///
/// let found = Current::Class { class: QosClass::Utility, relative_priority: -2 };
/// assert_eq!(found.name(), Some("utility"));
/// assert_eq!(found.class(), Some(QosClass::Utility));
/// assert_eq!(Current::Unsupported.name(), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Current {
    /// One of the five classes.
    Class {
        /// The class.
        class: QosClass,
        /// Offset inside the class, from -15 to 0.
        relative_priority: i32,
    },
    /// The thread has no class: nobody gave it one, or it was set up through `pthread_setschedparam` and has left
    /// the classes for good. It can only be read, never asked for.
    Unspecified,
    /// A number that the public headers do not name.
    Other(u32),
    /// This platform has no such classes, or did not tell.
    Unsupported,
}

impl Current {
    /// The class, if the thread is in one.
    pub const fn class(self) -> Option<QosClass> {
        match self {
            Self::Class { class, .. } => Some(class),
            _ => None,
        }
    }

    /// In words: the name of the class, `unspecified`, `other`, or `None` where there are no classes.
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::Class { class, .. } => Some(class.name()),
            Self::Unspecified => Some("unspecified"),
            Self::Other(_) => Some("other"),
            Self::Unsupported => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Class, number and name, as the headers and the contract of `current_qos_name` have them.
    const TABLE: &[(QosClass, u32, &str)] = &[
        (QosClass::UserInteractive, 0x21, "user-interactive"),
        (QosClass::UserInitiated, 0x19, "user-initiated"),
        (QosClass::Default, 0x15, "default"),
        (QosClass::Utility, 0x11, "utility"),
        (QosClass::Background, 0x09, "background"),
    ];

    #[test]
    fn numbers_and_names_are_those_of_the_headers() {
        for (class, raw, name) in TABLE {
            assert_eq!(class.raw(), *raw);
            assert_eq!(class.name(), *name);
            assert_eq!(class.to_string(), *name);
        }
        assert_eq!(TABLE.len(), QosClass::ALL.len());
    }

    #[test]
    fn every_number_maps_to_one_class_or_none() {
        let named = (0..=0xFF).filter_map(QosClass::from_raw).collect::<Vec<_>>();
        assert_eq!(named, QosClass::ALL);
        for class in QosClass::ALL {
            assert_eq!(QosClass::from_raw(class.raw()), Some(class));
        }
        for raw in [0, 0x05, 0x22, u32::MAX] {
            assert_eq!(QosClass::from_raw(raw), None);
        }
    }

    #[test]
    fn order_is_order_of_urgency() {
        assert!(
            QosClass::ALL.windows(2).all(|pair| pair[0] < pair[1] && pair[0].raw() < pair[1].raw())
        );
    }

    #[test]
    fn what_is_found_has_a_name_where_there_are_classes() {
        assert_eq!(Current::Unspecified.name(), Some("unspecified"));
        assert_eq!(Current::Other(5).name(), Some("other"));
        assert_eq!(Current::Unspecified.class(), None);
        assert_eq!(Current::Unsupported.class(), None);
    }
}
