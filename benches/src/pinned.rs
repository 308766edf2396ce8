//! `epoch_pool` with one pin per core: participant `i` on the `i`-th CPU of the plan for this process.

#![forbid(unsafe_code)]

#[cfg(target_os = "linux")]
mod imp {
    use std::io;
    use std::sync::{Arc, Mutex, PoisonError};

    use epoch_pool::Pool;
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    use crate::PoolError;

    pub(crate) const REFUSAL: Option<&str> = None;

    /// A pool whose workers are pinned, and the CPU for its caller.
    pub(crate) fn pool(participants: usize) -> Result<(Pool, usize), PoolError> {
        let (_, cpus) = cpu_topology::resolve_threads_and_affinity(participants);
        let caller_cpu = cpus[0];
        let failure = Arc::new(Mutex::new(None));
        let seen = failure.clone();
        let pin = move |worker: usize| {
            if let Err(error) = pin_to(cpus[worker]) {
                *seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            }
        };
        let pool = Pool::builder().workers(participants - 1).on_worker_start(pin).build()?;
        match failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(error) => Err(error.into()),
            None => Ok((pool, caller_cpu)),
        }
    }

    /// Keeps the calling thread on one CPU until it is dropped.
    #[derive(Debug)]
    pub(crate) struct Pin {
        before: CpuSet,
    }

    impl Pin {
        pub(crate) fn to(cpu: usize) -> io::Result<Self> {
            let before = sched_getaffinity(None)?;
            pin_to(cpu)?;
            Ok(Self { before })
        }
    }

    impl Drop for Pin {
        fn drop(&mut self) {
            // The set was the thread's own; if it is gone (CPUs taken offline), the pin is the best that is left.
            _ = sched_setaffinity(None, &self.before);
        }
    }

    fn pin_to(cpu: usize) -> io::Result<()> {
        if cpu >= CpuSet::MAX_CPU {
            return Err(io::Error::other(format!(
                "CPU {cpu} is beyond the {} that can be pinned to",
                CpuSet::MAX_CPU
            )));
        }
        let mut cpus = CpuSet::new();
        cpus.set(cpu);
        sched_setaffinity(None, &cpus)
            .map_err(|error| io::Error::other(format!("pinning to CPU {cpu}: {error}")))
    }

    #[cfg(test)]
    mod tests {
        use std::collections::BTreeSet;

        use super::*;

        /// The CPUs of the calling thread.
        fn cpus() -> Vec<usize> {
            let set = sched_getaffinity(None).unwrap();
            (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect()
        }

        #[test]
        fn each_participant_has_its_cpu_and_the_caller_gets_its_own_back() {
            let before = cpus();
            let (pool, caller_cpu) = pool(3).unwrap();
            let pin = Pin::to(caller_cpu).unwrap();
            let found = Mutex::new(vec![Vec::new(); 3]);
            pool.run(|participant, _| found.lock().unwrap()[participant] = cpus());
            let found = found.into_inner().unwrap();
            assert!(found.iter().all(|cpus| cpus.len() == 1), "{found:?}");
            let distinct: BTreeSet<usize> = found.into_iter().flatten().collect();
            assert_eq!(distinct.len(), before.len().min(3), "{distinct:?} of {before:?}");
            assert!(distinct.iter().all(|cpu| before.contains(cpu)), "{distinct:?} of {before:?}");
            drop(pin);
            assert_eq!(cpus(), before);
        }

        #[test]
        fn a_cpu_that_cannot_be_is_an_error() {
            assert!(Pin::to(CpuSet::MAX_CPU).is_err());
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod imp {
    use std::io;

    use epoch_pool::Pool;

    use crate::PoolError;

    const WHY: &str = "epoch-pinned needs Linux: threads are pinned by `sched_setaffinity`";
    pub(crate) const REFUSAL: Option<&str> = Some(WHY);

    pub(crate) fn pool(_participants: usize) -> Result<(Pool, usize), PoolError> {
        Err(WHY.into())
    }

    /// No thread is pinned here.
    #[derive(Debug)]
    pub(crate) struct Pin;

    impl Pin {
        pub(crate) fn to(_cpu: usize) -> io::Result<Self> {
            Err(io::Error::new(io::ErrorKind::Unsupported, WHY))
        }
    }
}

pub(crate) use self::imp::{Pin, REFUSAL, pool};
