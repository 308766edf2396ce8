//! What happens to a process from outside: its threads are moved, and others want its CPUs.
#![forbid(unsafe_code)]

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, park_timeout};
use std::time::Duration;

use fastrand::Rng;

use crate::counts::Counts;
use crate::sys::Affinity;

/// Puts every thread on some of the CPUs, and after a while on all again. To be unparked in the end.
pub(crate) fn move_threads(mut rng: Rng, over: &AtomicBool) -> Counts {
    let mut counts = Counts::default();
    let Some(affinity) = Affinity::of_this_process() else { return counts };
    while !over.load(Ordering::Relaxed) {
        let often = rng.u8(0..4);
        counts.affinities += affinity.shuffle(|| rng.u8(0..4) <= often);
        wait(&mut rng, 50);
        counts.affinities += affinity.shuffle(|| true);
        wait(&mut rng, 500);
    }
    counts
}

/// Keeps a few CPUs busy for a while, every now and then. To be unparked in the end.
pub(crate) fn load_cpus(mut rng: Rng, over: &AtomicBool, n_cpus: usize) -> Counts {
    let mut counts = Counts::default();
    while !over.load(Ordering::Relaxed) {
        let n_threads = rng.usize(1..=n_cpus + 1);
        counts.loads += n_threads as u64;
        let enough = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..n_threads {
                scope.spawn(|| {
                    while !enough.load(Ordering::Relaxed) {
                        spin_loop();
                    }
                });
            }
            wait(&mut rng, 50);
            enough.store(true, Ordering::Relaxed);
        });
        wait(&mut rng, 500);
    }
    counts
}

fn wait(rng: &mut Rng, max_millis: u64) {
    park_timeout(Duration::from_millis(rng.u64(1..=max_millis)));
}
