//! A handler that runs in the child of each fork.

use std::sync::Once;

use crate::sync::count_fork;

/// From now on a fork counts in the child, as far as the C library makes it (`fork`, not a bare system call).
pub(super) fn watch() {
    static WATCHING: Once = Once::new();
    WATCHING.call_once(|| {
        // SAFETY: `in_child` lives as long as the program, and does in a child of several threads what is allowed there: it
        // takes no lock and allocates nothing. Refused for want of memory, it never runs, which is sound as well.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

extern "C" fn in_child() {
    count_fork();
}
