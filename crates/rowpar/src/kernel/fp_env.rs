//! One floating-point environment for every range of rows.
//!
//! Rounding mode and flush-to-zero belong to a thread, are inherited when it is spawned, and are changed by
//! hosts and libraries that like speed better than bits. Two threads of one pool may then differ, and so
//! would the rows they compute. While a [`DefaultFpEnv`] lives, the thread rounds to nearest even, keeps
//! subnormals and masks exceptions; when it is dropped the thread has back what it had.
//!
//! To Rust, a thread with another environment than the default one is already outside of what the language promises of floats. This
//! cannot mend what the host has left; it makes sure that nothing of ours is computed there: the work is in functions that are not
//! inlined, behind the call that sets the register. Closures of others go through [`with_default_floats`].
//!
//! Costs one read of a control register where nothing has to change. Targets without such a register, or
//! where this crate does not know it, have the environment they have.

use std::{hint::black_box, marker::PhantomData};

/// Calls `f` under the default floating-point environment, whatever the calling thread has set.
///
/// That is: results are rounded to nearest even, subnormals are kept, exceptions are masked. What the thread had is put back when
/// `f` returns or unwinds. If it had the default already, nothing is written, and changes that `f` makes stay.
///
/// [`matvec`](crate::matvec) and the loops of this crate do this by themselves; this is for the arithmetic between them, of
/// an engine that has to give the same bits on a thread of a host that flushes subnormals. Only what `f` computes on the calling
/// thread is covered: what it hands to a pool runs in the environment of the pool's threads.
///
/// It costs one read of a control register where nothing has to change. On targets other than x86-64 and aarch64 `f` runs in the
/// environment that the thread has.
///
/// # Examples
///
/// ```
/// let x = [1.0_f32, 3.0];
/// // Rounded up, even on a thread that rounds towards zero.
/// let third = rowpar::with_default_floats(|| x[0] / x[1]);
/// assert_eq!(third.to_bits(), 0x3eaa_aaab);
/// ```
pub fn with_default_floats<R>(f: impl FnOnce() -> R) -> R {
    let env = DefaultFpEnv::enter();
    // To the compiler, arithmetic has nothing to do with a control register. What `f` works on and what it returns are therefore
    // hidden from it between the two writes, so that neither is computed on another side of them.
    let result = black_box(call(black_box(f)));
    drop(env);
    result
}

#[inline(never)]
fn call<R>(f: impl FnOnce() -> R) -> R {
    f()
}

/// Keeps the calling thread in the default environment while it lives.
#[derive(Debug)]
pub(crate) struct DefaultFpEnv {
    /// What to go back to; `None` if the thread was in the default environment.
    found: Option<imp::Control>,
    /// The register is this thread's.
    not_send: PhantomData<*const ()>,
}

impl DefaultFpEnv {
    pub(crate) fn enter() -> Self {
        let control = imp::read();
        let found = imp::differs(control).then(|| {
            imp::write(imp::DEFAULT);
            control
        });
        Self { found, not_send: PhantomData }
    }
}

impl Drop for DefaultFpEnv {
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

    /// MXCSR after reset: exceptions masked, to nearest even, subnormals kept, no flags.
    pub(super) const DEFAULT: Control = 0x1f80;
    /// Sticky flags: they say what happened, and change nothing.
    const FLAGS: Control = 0x3f;

    pub(super) fn differs(control: Control) -> bool {
        control & !FLAGS != DEFAULT
    }

    pub(super) fn read() -> Control {
        let mut control = 0;
        // SAFETY: stores four bytes, to `control`. The instruction is part of SSE, which x86-64 has.
        unsafe {
            asm!("stmxcsr [{}]", in(reg) &raw mut control, options(nostack, preserves_flags));
        }
        control
    }

    pub(super) fn write(control: Control) {
        // SAFETY: loads four bytes, from `control`. The value is `DEFAULT` or was read from the register,
        // so it has no reserved bits. Not `nomem`: nothing that loads or stores is moved across.
        unsafe {
            asm!("ldmxcsr [{}]", in(reg) &raw const control, options(nostack));
        }
    }
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
mod imp {
    use std::arch::asm;

    pub(super) type Control = u64;

    /// FPCR after reset: no traps, to nearest even, subnormals kept. Sticky flags are in FPSR.
    pub(super) const DEFAULT: Control = 0;

    pub(super) fn differs(control: Control) -> bool {
        control != DEFAULT
    }

    pub(super) fn read() -> Control {
        let control: Control;
        // SAFETY: reads a register that user code may read.
        unsafe {
            asm!("mrs {}, fpcr", out(reg) control, options(nomem, nostack, preserves_flags));
        }
        control
    }

    pub(super) fn write(control: Control) {
        // SAFETY: writes a register that user code may write, with `DEFAULT` or what was read from it.
        // Not `nomem`: nothing that loads or stores is moved across.
        unsafe {
            asm!("msr fpcr, {}", in(reg) control, options(nostack, preserves_flags));
        }
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

#[cfg(all(test, target_arch = "x86_64", not(miri)))] // the values are those of MXCSR
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_put_back() {
        const CASES: &[(&str, imp::Control)] = &[
            ("default", imp::DEFAULT),
            ("default, with flags", imp::DEFAULT | 0x21),
            ("flush to zero", imp::DEFAULT | 1 << 15),
            ("subnormals are zero", imp::DEFAULT | 1 << 6),
            ("towards zero", imp::DEFAULT | 3 << 13),
            ("all of them, with flags", imp::DEFAULT | 1 << 15 | 1 << 6 | 1 << 13 | 0x3f),
        ];
        for &(name, control) in CASES {
            let (inside, after) = std::thread::spawn(move || {
                imp::write(control);
                let env = DefaultFpEnv::enter();
                let inside = imp::read();
                drop(env);
                let after = imp::read();
                imp::write(imp::DEFAULT);
                (inside, after)
            })
            .join()
            .unwrap();
            assert!(!imp::differs(inside), "{name}: {inside:#x}");
            assert_eq!(after, control, "{name}");
        }
    }
}
