//! The floating-point environment of a thread: rounding mode, flush-to-zero, exception masks.

use std::marker::PhantomData;

/// While it lives, the calling thread has the environment that Rust code assumes: to nearest even, subnormals kept, exceptions
/// masked. Dropping it gives back what the thread had, sticky flags included.
///
/// Costs a read of a control register where nothing has to change. Targets whose register is not known here keep what they have.
#[derive(Debug)]
pub(crate) struct DefaultFloats {
    /// What to go back to, if that was something else.
    found: Option<imp::Control>,
    /// The register is this thread's.
    not_send: PhantomData<*const ()>,
}

impl DefaultFloats {
    #[inline]
    pub(crate) fn enter() -> Self {
        let control = imp::read();
        let found = imp::differs(control).then_some(control);
        if found.is_some() {
            imp::write(imp::DEFAULT);
        }
        Self { found, not_send: PhantomData }
    }
}

impl Drop for DefaultFloats {
    #[inline]
    fn drop(&mut self) {
        if let Some(control) = self.found {
            imp::write(control);
        }
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod imp {
    use std::arch::asm;

    pub(super) type Control = u32;

    /// MXCSR after reset (Intel SDM volume 1, 10.2.3).
    pub(super) const DEFAULT: Control = 0x1f80;

    /// The sticky exception flags: they say what has happened, and change nothing.
    const FLAGS: Control = 0x3f;

    pub(super) fn differs(control: Control) -> bool {
        control & !FLAGS != DEFAULT
    }

    pub(super) fn read() -> Control {
        let mut control = 0;
        // SAFETY: stores four bytes, to `control`. SSE is part of x86-64.
        unsafe {
            asm!("stmxcsr [{}]", in(reg) &raw mut control, options(nostack, preserves_flags))
        };
        control
    }

    pub(super) fn write(control: Control) {
        // SAFETY: loads four bytes, from `control`, which is `DEFAULT` or was read from the register, so no reserved bit is
        // set. Not `nomem`: nothing that loads or stores moves across.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const control, options(nostack)) };
    }
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
mod imp {
    use std::arch::asm;

    pub(super) type Control = u64;

    /// FPCR with nothing asked for: to nearest even, subnormals kept, no traps (Arm ARM, FPCR). The flags are in FPSR.
    pub(super) const DEFAULT: Control = 0;

    pub(super) fn differs(control: Control) -> bool {
        control != DEFAULT
    }

    pub(super) fn read() -> Control {
        let control: Control;
        // SAFETY: reads a register that user code may read.
        unsafe { asm!("mrs {}, fpcr", out(reg) control, options(nomem, nostack, preserves_flags)) };
        control
    }

    pub(super) fn write(control: Control) {
        // SAFETY: writes a register that user code may write, with `DEFAULT` or with what was read from it. Not `nomem`:
        // nothing that loads or stores moves across.
        unsafe { asm!("msr fpcr, {}", in(reg) control, options(nostack, preserves_flags)) };
    }
}

#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod imp {
    /// There is nothing to know.
    #[derive(Clone, Copy, Debug)]
    pub(super) struct Control;

    pub(super) const DEFAULT: Control = Control;

    pub(super) fn differs(_: Control) -> bool {
        false
    }

    pub(super) fn read() -> Control {
        Control
    }

    pub(super) fn write(_: Control) {}
}
