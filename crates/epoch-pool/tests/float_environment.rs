//! Jobs run in one floating-point environment, whatever their threads have, and leave it as it was.
#![cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]

mod common;

use std::sync::Mutex;

use common::watched;
use epoch_pool::{FloatEnvironment, Pool};

#[cfg(target_arch = "x86_64")]
mod control {
    pub(crate) const DEFAULT: u32 = 0x1f80;
    /// Flush to zero, subnormals are zero, towards zero.
    pub(crate) const OTHER: u32 = DEFAULT | 1 << 15 | 1 << 6 | 3 << 13;

    pub(crate) fn read() -> u32 {
        let mut control = 0_u32;
        // SAFETY: stores four bytes, to `control`.
        unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut control, options(nostack)) };
        control & !0x3f // the sticky flags aside
    }

    pub(crate) fn write(control: u32) {
        // SAFETY: loads four bytes, from `control`; no reserved bit is set. The test does no arithmetic in it.
        unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const control, options(nostack)) };
    }
}

#[cfg(target_arch = "aarch64")]
mod control {
    pub(crate) const DEFAULT: u64 = 0;
    /// Flush to zero, towards zero.
    pub(crate) const OTHER: u64 = 1 << 24 | 3 << 22;

    pub(crate) fn read() -> u64 {
        let control: u64;
        // SAFETY: reads a register that user code may read.
        unsafe { std::arch::asm!("mrs {}, fpcr", out(reg) control, options(nomem, nostack)) };
        control
    }

    pub(crate) fn write(control: u64) {
        // SAFETY: writes a register that user code may write. The test does no arithmetic in it.
        unsafe { std::arch::asm!("msr fpcr, {}", in(reg) control, options(nostack)) };
    }
}

/// The environments that the participants of a pool are in, inside a job, where each thread was in another one before.
fn inside(environment: FloatEnvironment) -> Vec<(usize, bool)> {
    let pool = Pool::builder()
        .participants(3)
        .float_environment(environment)
        .on_worker_start(|_| control::write(control::OTHER))
        .build()
        .unwrap();
    let seen = Mutex::new(Vec::new());
    control::write(control::OTHER);
    for _ in 0..2 {
        // The second time shows what the first has left behind.
        pool.run(|participant, _| {
            let is_default = control::read() == control::DEFAULT;
            control::write(control::DEFAULT);
            seen.lock().unwrap().push((participant, is_default));
            control::write(if is_default { control::DEFAULT } else { control::OTHER });
        });
        let after = control::read();
        assert_eq!(after, control::OTHER, "the caller has its own back");
    }
    control::write(control::DEFAULT);
    let mut seen = seen.into_inner().unwrap();
    seen.sort_unstable();
    seen
}

#[test]
fn jobs_run_in_the_default_environment() {
    watched(|| {
        let expected: Vec<_> = (0..3).flat_map(|participant| [(participant, true); 2]).collect();
        assert_eq!(inside(FloatEnvironment::Default), expected);
        assert_eq!(FloatEnvironment::default(), FloatEnvironment::Default);
    });
}

/// What runs inline does so by chance, of which nothing must depend.
#[test]
fn so_do_jobs_that_run_inline() {
    watched(|| {
        let seen = |environment| {
            let pool = Pool::builder().float_environment(environment).build().unwrap();
            control::write(control::OTHER);
            let is_default = std::sync::atomic::AtomicBool::new(false);
            pool.run_rows(5, |_| {
                let default = control::read() == control::DEFAULT;
                is_default.store(default, std::sync::atomic::Ordering::Relaxed);
            });
            let after = control::read();
            control::write(control::DEFAULT);
            assert_eq!(after, control::OTHER);
            is_default.into_inner()
        };
        assert!(seen(FloatEnvironment::Default));
        assert!(!seen(FloatEnvironment::AsFound));
    });
}

#[test]
fn or_in_what_they_find() {
    watched(|| {
        let expected: Vec<_> = (0..3).flat_map(|participant| [(participant, false); 2]).collect();
        assert_eq!(inside(FloatEnvironment::AsFound), expected);
    });
}
