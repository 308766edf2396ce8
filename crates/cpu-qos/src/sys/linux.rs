//! Linux and Android: `sched_getattr` and `sched_setattr`, which the C libraries do not wrap.

use crate::error::Error;
use crate::linux::{self, Attributes};

/// The calling thread.
const THIS_THREAD: libc::pid_t = 0;

pub(crate) fn get_attributes() -> Result<Attributes, Error> {
    let mut attributes = Attributes::default();
    // SAFETY: the pointer comes from a live exclusive borrow of a `repr(C)` structure of integers, whose size is given; the
    // kernel writes no more than that, and whatever it writes is valid.
    let result = unsafe {
        libc::syscall(
            libc::SYS_sched_getattr,
            THIS_THREAD,
            &raw mut attributes,
            Attributes::SIZE,
            0 as libc::c_uint,
        )
    };
    if result == 0 { Ok(attributes) } else { Err(linux::error(errno())) }
}

pub(crate) fn set_attributes(attributes: &Attributes) -> Result<(), Error> {
    // SAFETY: the pointer is that of a live structure which begins with its own size, and the kernel reads no more than that.
    let result = unsafe {
        libc::syscall(
            libc::SYS_sched_setattr,
            THIS_THREAD,
            std::ptr::from_ref(attributes),
            0 as libc::c_uint,
        )
    };
    if result == 0 { Ok(()) } else { Err(linux::error(errno())) }
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}
