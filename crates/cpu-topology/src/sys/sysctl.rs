//! `sysctlbyname`, for the systems that have it.

use std::ffi::{CStr, CString};
use std::ptr;

use crate::apple::SysctlSource;

/// No value that is read here is longer.
const MAX_LEN: usize = 1 << 20;

/// The values of the running system.
pub(super) struct System;

impl SysctlSource for System {
    fn read(&self, name: &str) -> Option<Vec<u8>> {
        let name = CString::new(name).ok()?;
        let mut len = 0;
        // A value may grow between the question for its length and that for itself.
        for _ in 0..4 {
            ask(&name, None, &mut len)?;
            if len > MAX_LEN {
                return None;
            }
            let mut bytes = vec![0_u8; len];
            if ask(&name, Some(&mut bytes), &mut len).is_some() {
                bytes.truncate(len);
                return Some(bytes);
            }
        }
        None
    }
}

/// Writes a value, at most as many bytes as there is room for, and its length; without room the length alone.
fn ask(name: &CStr, room: Option<&mut [u8]>, len: &mut usize) -> Option<()> {
    let place = match room {
        Some(bytes) => {
            *len = bytes.len();
            bytes.as_mut_ptr().cast()
        }
        None => ptr::null_mut(),
    };
    // SAFETY: `name` ends with a NUL and lives past the call. `place` is null, which asks for the length alone, or a live
    // exclusive borrow of `len` bytes, so the callee writes inside of it. The new value is absent, as a null pointer with a
    // length of 0 says.
    let result = unsafe { libc::sysctlbyname(name.as_ptr(), place, len, ptr::null_mut(), 0) };
    (result == 0).then_some(())
}
