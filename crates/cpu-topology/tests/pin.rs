//! Pinning the calling thread of this process, on whatever machine that is.

use std::thread;

use cpu_topology::{
    CpuSet, CpuTopology, PinError, current_thread_affinity, pin_current_thread,
    process_affinity_cpus,
};

/// The CPUs of this thread, or `None` where the system has no such thing or a sandbox forbids asking.
fn cpus() -> Option<CpuSet> {
    match current_thread_affinity() {
        Ok(cpus) => Some(cpus),
        Err(error) => {
            assert!(
                !cfg!(any(target_os = "linux", windows)) || matches!(error, PinError::Refused(_))
            );
            println!("skipped: {error}");
            None
        }
    }
}

fn one(cpu: usize) -> CpuSet {
    [cpu].into_iter().collect()
}

/// Runs on a thread of its own, so that no test sees the pins of another.
fn on_a_thread(test: impl FnOnce() + Send) {
    thread::scope(|scope| scope.spawn(test).join().expect("the test"));
}

#[test]
fn a_thread_is_pinned_to_each_of_its_cpus_in_turn_and_let_go() {
    on_a_thread(|| {
        let Some(before) = cpus() else { return };
        for cpu in before.iter() {
            let guard = match pin_current_thread(&one(cpu)) {
                Ok(guard) => guard,
                Err(PinError::Refused(error)) => {
                    println!("skipped: CPU {cpu}: {error}");
                    continue;
                }
                Err(error) => panic!("CPU {cpu}: {error}"),
            };
            assert_eq!((guard.cpus(), guard.former()), (&one(cpu), &before));
            assert_eq!(cpus(), Some(one(cpu)));
            if !cfg!(windows) {
                // A thread started meanwhile inherits it.
                assert_eq!(thread::spawn(cpus).join().expect("a thread"), Some(one(cpu)));
            }
            drop(guard);
            assert_eq!(cpus(), Some(before.clone()));
        }
    });
}

#[test]
fn guards_nest_and_may_be_kept() {
    on_a_thread(|| {
        let Some(before) = cpus() else { return };
        let Ok(outer) = pin_current_thread(&before) else { return };
        let last = before.last().expect("a CPU");
        let Ok(inner) = pin_current_thread(&one(last)) else { return };
        inner.restore().expect("to be restored");
        assert_eq!(cpus(), Some(before.clone()));
        pin_current_thread(&one(last)).expect("to be pinned again").keep();
        assert_eq!(cpus(), Some(one(last)));
        drop(outer);
        assert_eq!(cpus(), Some(before));
    });
}

#[test]
fn a_pinned_thread_does_not_change_the_process() {
    on_a_thread(|| {
        let Some(before) = cpus() else { return };
        let (process, cores) = (process_affinity_cpus(), CpuTopology::detect().cores().len());
        let Ok(_guard) = pin_current_thread(&one(before.first().expect("a CPU"))) else { return };
        assert_eq!(process_affinity_cpus(), process);
        assert_eq!(CpuTopology::detect().cores().len(), cores);
    });
}

#[test]
fn cpus_that_are_not_there_are_left_out_or_refused() {
    on_a_thread(|| {
        assert!(matches!(pin_current_thread(&CpuSet::new()), Err(PinError::NoCpu)));
        let Some(before) = cpus() else { return };
        for absent in [1_000_000, usize::MAX] {
            let error = pin_current_thread(&one(absent)).expect_err("no such CPU");
            assert!(matches!(error, PinError::Refused(_)), "{error}");
            assert_eq!(cpus(), Some(before.clone()));
        }
        if cfg!(any(target_os = "linux", target_os = "android")) {
            let some = before.iter().chain([1_000_000]).collect::<CpuSet>();
            if let Ok(guard) = pin_current_thread(&some) {
                assert_eq!(guard.cpus(), &before);
            }
        }
    });
}
