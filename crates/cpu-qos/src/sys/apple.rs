//! Apple platforms: `<pthread/qos.h>` and `<sys/qos.h>`.

use crate::apple::{self, QosCalls};
use crate::class::{Current, QosClass};
use crate::error::Error;

pub(crate) use crate::apple::is_restorable;

unsafe extern "C" {
    /// `qos_class_main` of `<sys/qos.h>`, which libc lacks. A plain number, as the class may be one without a name.
    safe fn qos_class_main() -> u32;
}

struct Pthread;

impl QosCalls for Pthread {
    fn set(&self, class: QosClass, relative_priority: i32) -> i32 {
        let class = match class {
            QosClass::Background => libc::qos_class_t::QOS_CLASS_BACKGROUND,
            QosClass::Utility => libc::qos_class_t::QOS_CLASS_UTILITY,
            QosClass::Default => libc::qos_class_t::QOS_CLASS_DEFAULT,
            QosClass::UserInitiated => libc::qos_class_t::QOS_CLASS_USER_INITIATED,
            QosClass::UserInteractive => libc::qos_class_t::QOS_CLASS_USER_INTERACTIVE,
        };
        // SAFETY: the function takes two numbers, acts on the calling thread, and has no precondition.
        unsafe { libc::pthread_set_qos_class_self_np(class, relative_priority) }
    }

    fn get(&self) -> Result<(u32, i32), i32> {
        // A plain number, as the class may be one that `qos_class_t` has no variant for.
        let mut class = 0_u32;
        let mut relative_priority = 0_i32;
        // SAFETY: the function has no precondition, and the thread it names lives while it runs this code.
        let thread = unsafe { libc::pthread_self() };
        // SAFETY: the thread is the calling one, so it is alive. Both pointers come from live exclusive borrows of
        // 4-byte integers; the callee writes a class number, of the size of `qos_class_t` (`unsigned int` in
        // <sys/qos.h>), which is valid as a `u32` whatever it is, and an `int`.
        let code = unsafe {
            libc::pthread_get_qos_class_np(
                thread,
                (&raw mut class).cast(),
                &raw mut relative_priority,
            )
        };
        if code == 0 { Ok((class, relative_priority)) } else { Err(code) }
    }

    fn main(&self) -> u32 {
        qos_class_main()
    }
}

pub(crate) fn set_current(class: QosClass) -> Result<(), Error> {
    apple::set(&Pthread, class, 0)
}

pub(crate) fn current() -> Current {
    apple::get(&Pthread)
}

pub(crate) fn main_class() -> Current {
    apple::main(&Pthread)
}

pub(crate) fn restore(former: Current) -> Result<(), Error> {
    apple::restore(&Pthread, former)
}
