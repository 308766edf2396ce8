//! A class for a while.
#![forbid(unsafe_code)]

use std::marker::PhantomData;

use crate::class::{Current, QosClass};
use crate::error::Error;
use crate::sys;
use crate::thread::{current, is_below, set_current};

/// Keeps the thread that it was made on in a class, and puts it back where it was when it is dropped.
///
/// It is neither `Send` nor `Sync`, as a thread can change only itself. Guards on one thread are dropped in the reverse order
/// of their making, as scopes do. A worker that is lent by others, such as one of `dispatch`, must be given back in the class in
/// which it came, which is what this is for.
///
/// ```
/// use cpu_qos::{Error, QosClass, QosGuard};
///
/// match QosGuard::at_least(QosClass::UserInitiated) {
///     Ok(guard) => {
///         if !guard.can_restore() {
///             eprintln!("was {:?}, which nobody can ask for: the thread stays raised", guard.former());
///         }
///         // … what somebody waits for …
///     } // back in the former class
///     Err(Error::Unsupported) => {}
///     Err(error) => eprintln!("{error}"),
/// }
/// ```
#[derive(Debug)]
#[must_use = "dropping the guard at once restores the former class"]
pub struct QosGuard {
    former: Current,
    has_changed: bool,
    is_kept: bool,
    not_send: PhantomData<*const ()>,
}

impl QosGuard {
    /// Puts the calling thread into `class`, as [`set_current`] does, until the guard is dropped.
    ///
    /// # Errors
    ///
    /// Those of [`set_current`].
    pub fn set(class: QosClass) -> Result<Self, Error> {
        let former = current();
        set_current(class)?;
        Ok(Self { former, has_changed: true, is_kept: false, not_send: PhantomData })
    }

    /// As [`at_least`](crate::at_least), until the guard is dropped. A thread that is not below `class` stays as it is, then and
    /// later.
    ///
    /// # Errors
    ///
    /// Those of [`set_current`].
    pub fn at_least(class: QosClass) -> Result<Self, Error> {
        let former = current();
        if is_below(former, class) {
            return Self::set(class);
        }
        Ok(Self { former, has_changed: false, is_kept: false, not_send: PhantomData })
    }

    /// What the thread was in.
    pub const fn former(&self) -> Current {
        self.former
    }

    /// Whether there is a way back. There is none to "unspecified" on Apple platforms, nor to a class without a public name, nor
    /// where the former one could not be read: the thread then stays in the new class.
    pub const fn can_restore(&self) -> bool {
        !self.has_changed || sys::is_restorable(self.former)
    }

    /// Leaves the thread in the new class.
    pub fn keep(mut self) {
        self.is_kept = true;
    }

    /// Puts the thread back into the former class, and tells if that fails, where dropping the guard would not.
    ///
    /// # Errors
    ///
    /// [`Error::NotRestorable`] where [`can_restore`](Self::can_restore) is false; those of [`set_current`].
    pub fn restore(self) -> Result<(), Error> {
        let result = self.put_back();
        self.keep();
        result
    }

    fn put_back(&self) -> Result<(), Error> {
        if self.has_changed { sys::restore(self.former) } else { Ok(()) }
    }
}

impl Drop for QosGuard {
    fn drop(&mut self) {
        if !self.is_kept {
            // Nothing can be done about an error here; `restore` reports it.
            _ = self.put_back();
        }
    }
}

/// ```compile_fail
/// fn is_send<T: Send>() {}
/// is_send::<cpu_qos::QosGuard>();
/// ```
///
/// ```compile_fail
/// fn is_sync<T: Sync>() {}
/// is_sync::<cpu_qos::QosGuard>();
/// ```
#[cfg(doctest)]
struct StaysOnItsThread;
