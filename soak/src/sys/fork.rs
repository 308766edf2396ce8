//! A function in a child of this process.

use std::io::{Error, ErrorKind};

/// Runs `child` in a fork, which is told to end after 20 seconds, and waits for it. `child` returns an exit code, 0 if all is
/// well, must not panic, and may use what needs no lock that another thread of this process could hold.
pub(crate) fn forked(child: impl FnOnce() -> i32) -> Option<Result<(), String>> {
    // SAFETY: the child runs `child`, which keeps to what is said above, and leaves by `_exit`.
    let id = unsafe { libc::fork() };
    if id < 0 {
        return Some(Err(format!("cannot fork: {}", Error::last_os_error())));
    }
    if id == 0 {
        // SAFETY: always sound; ends a child that hangs.
        unsafe { libc::alarm(20) };
        let code = child();
        // SAFETY: always sound; runs no destructor of the parent's.
        unsafe { libc::_exit(code) };
    }
    Some(match wait(id) {
        Ok(status) if libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0 => Ok(()),
        Ok(status) if libc::WIFEXITED(status) => {
            Err(format!("the child found mistake {}", libc::WEXITSTATUS(status)))
        }
        Ok(status) if libc::WTERMSIG(status) == libc::SIGALRM => Err("the child hangs".into()),
        Ok(status) => Err(format!("the child was killed, status {status}")),
        Err(error) => Err(format!("cannot wait for the child: {error}")),
    })
}

fn wait(id: libc::pid_t) -> Result<i32, Error> {
    loop {
        let mut status = 0;
        // SAFETY: `id` is a child that has not been waited for; `status` is writable.
        if unsafe { libc::waitpid(id, &mut status, 0) } == id {
            return Ok(status);
        }
        let error = Error::last_os_error();
        if error.kind() != ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_tells() {
        assert_eq!(forked(|| 0), Some(Ok(())));
        assert!(forked(|| 3).unwrap().is_err());
    }
}
