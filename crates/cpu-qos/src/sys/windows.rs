//! Windows: `SetThreadInformation` and `GetThreadInformation` with `ThreadPowerThrottling`, for the calling thread.

use std::cell::Cell;

use windows_sys::Win32::Foundation::GetLastError;
use windows_sys::Win32::System::Threading::{
    GetCurrentThread, GetThreadInformation, SetThreadInformation,
    THREAD_POWER_THROTTLING_CURRENT_VERSION, THREAD_POWER_THROTTLING_EXECUTION_SPEED,
    THREAD_POWER_THROTTLING_STATE, ThreadPowerThrottling,
};

use crate::class::{Current, QosClass};
use crate::error::Error;
use crate::windows::{self, Asked, Masks, ThrottlingCalls};

pub(crate) use crate::windows::is_restorable;

thread_local! {
    static ASKED: Asked = const { Cell::new(None) };
}

const STATE_SIZE: u32 = size_of::<THREAD_POWER_THROTTLING_STATE>() as u32;

struct Kernel;

impl ThrottlingCalls for Kernel {
    fn set(&self, masks: Masks) -> Result<(), u32> {
        let state = THREAD_POWER_THROTTLING_STATE {
            Version: THREAD_POWER_THROTTLING_CURRENT_VERSION,
            ControlMask: masks.control,
            StateMask: masks.state,
        };
        // SAFETY: the function has no precondition.
        let thread = unsafe { GetCurrentThread() };
        // SAFETY: the pointer and the size are those of a live structure of the type that this information class takes, and
        // the callee only reads it.
        let ok = unsafe {
            SetThreadInformation(
                thread,
                ThreadPowerThrottling,
                (&raw const state).cast(),
                STATE_SIZE,
            )
        };
        if ok == 0 { Err(last_error()) } else { Ok(()) }
    }

    fn get(&self) -> Result<Masks, u32> {
        // The call wants to be told the version, and which bits are asked about.
        let mut state = THREAD_POWER_THROTTLING_STATE {
            Version: THREAD_POWER_THROTTLING_CURRENT_VERSION,
            ControlMask: THREAD_POWER_THROTTLING_EXECUTION_SPEED,
            StateMask: 0,
        };
        // SAFETY: the function has no precondition.
        let thread = unsafe { GetCurrentThread() };
        // SAFETY: the pointer comes from a live exclusive borrow of the structure of this information class, whose size goes
        // with it; it consists of integers, so whatever the callee writes is valid.
        let ok = unsafe {
            GetThreadInformation(thread, ThreadPowerThrottling, (&raw mut state).cast(), STATE_SIZE)
        };
        if ok == 0 {
            return Err(last_error());
        }
        Ok(Masks { control: state.ControlMask, state: state.StateMask })
    }
}

fn last_error() -> u32 {
    // SAFETY: the function has no precondition.
    unsafe { GetLastError() }
}

pub(crate) fn set_current(class: QosClass) -> Result<(), Error> {
    ASKED.with(|asked| windows::set(&Kernel, asked, class))
}

pub(crate) fn current() -> Current {
    ASKED.with(|asked| windows::get(&Kernel, asked))
}

/// A thread can be asked only about itself.
pub(crate) fn main_class() -> Current {
    Current::Unsupported
}

pub(crate) fn restore(former: Current) -> Result<(), Error> {
    ASKED.with(|asked| windows::restore(&Kernel, asked, former))
}
