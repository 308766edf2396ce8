//! The protocol with workers that are not there, or come late: what no timing of real threads shows for certain.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::dispatch::{CALLER, Dispatcher, Options, Shared};
use crate::places::Places;
use crate::presence::ALONE_NS;
use crate::split::Split;
use crate::sync::now_ns;
use crate::wait::Spin;

const PARTICIPANTS: usize = 4;

fn dispatcher() -> Dispatcher {
    dispatcher_that_wakes_for(50_000)
}

fn dispatcher_that_wakes_for(worth_a_wake_up_ns: u64) -> Dispatcher {
    let options = Options {
        spin: Spin::new(0, PARTICIPANTS, Box::new(|| 1)),
        places: Arc::new(Places::new(PARTICIPANTS)),
        with_times: false,
        default_floats: true,
        keep_apart: false,
        worth_a_wake_up_ns,
    };
    Dispatcher::new(PARTICIPANTS, options)
}

/// A job that records who has run which chunks.
#[derive(Default)]
struct Record(Mutex<Vec<(usize, Range<u32>)>>);

impl Record {
    fn job(&self) -> impl Fn(usize, Range<u32>) + Sync + '_ {
        |participant, chunks| self.0.lock().unwrap().push((participant, chunks))
    }

    fn participants_by_chunk(&self) -> Vec<usize> {
        let record = self.0.lock().unwrap();
        let mut chunks: Vec<(u32, usize)> = record
            .iter()
            .flat_map(|(who, chunks)| chunks.clone().map(|chunk| (chunk, *who)))
            .collect();
        chunks.sort_unstable();
        let ids: Vec<u32> = chunks.iter().map(|&(chunk, _)| chunk).collect();
        assert_eq!(ids, (0..ids.len() as u32).collect::<Vec<_>>(), "each chunk once");
        chunks.into_iter().map(|(_, who)| who).collect()
    }
}

#[test]
fn the_caller_finishes_alone_if_no_worker_ever_starts() {
    let pool = dispatcher();
    for _ in 0..3 {
        let record = Record::default();
        let split = Split::shared(64, PARTICIPANTS).unwrap();
        pool.try_caller().unwrap().dispatch(&[], split, &record.job()).unwrap();
        assert_eq!(record.participants_by_chunk(), [CALLER; 64]);
    }
}

/// How often a job has run undivided, of three on a pool whose workers are awake and do not come, but for what `between` does.
fn undivided(split: Split, between: impl Fn(&Dispatcher)) -> u64 {
    let pool = dispatcher();
    let threads: Vec<_> = (1..PARTICIPANTS).map(|_| thread::spawn(|| ())).collect();
    (0..8).for_each(|_| pool.shared().presence.finish(1)); // jobs are short
    pool.shared().presence.nobody_came(now_ns());
    for _ in 0..3 {
        between(&pool);
        let record = Record::default();
        let all = 0..split.chunks();
        let job = record.job();
        pool.try_caller().unwrap().run(&threads, split, &job, || job(CALLER, all)).unwrap();
        assert_eq!(record.participants_by_chunk(), [CALLER; 64]);
    }
    let Shared { counters, spin, .. } = &**pool.shared();
    let statistics = counters.statistics(spin);
    assert_eq!((statistics.dispatches, statistics.inline.total()), (3, 0));
    assert_eq!(statistics.invited, (3 - statistics.deserted) * (PARTICIPANTS as u64 - 1));
    statistics.deserted
}

#[test]
fn jobs_are_kept_from_workers_that_do_not_come() {
    let split = Split::shared(64, PARTICIPANTS).unwrap();
    let fresh = |pool: &Dispatcher| pool.shared().presence.nobody_came(now_ns().saturating_mul(2));
    assert_eq!(undivided(split, fresh), 3);
    assert_eq!(undivided(split, |pool| pool.shared().presence.show()), 0, "one waits");
    let before = |pool: &Dispatcher| pool.shared().presence.nobody_came(0);
    assert!(undivided(split, before) <= 3);
}

/// However old a hint is, workers that have parked since are woken for jobs that are worth it.
#[test]
fn jobs_are_not_kept_from_workers_that_sleep() {
    let pool = dispatcher_that_wakes_for(0);
    let (threads, is_over) = sleepers(&pool);
    pool.shared().presence.nobody_came(0);
    (0..8).for_each(|_| pool.shared().presence.finish(1));
    while now_ns() < 2 * ALONE_NS {
        thread::yield_now();
    }
    let split = Split::shared(64, PARTICIPANTS).unwrap();
    let job = |_: usize, _: Range<u32>| {};
    pool.try_caller().unwrap().run(&threads, split, &job, || unreachable!("published")).unwrap();
    let Shared { counters, spin, .. } = &**pool.shared();
    assert_eq!(counters.statistics(spin).unparks, PARTICIPANTS as u64 - 1);
    is_over.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.thread().unpark();
        thread.join().unwrap();
    }
}

#[test]
fn a_job_that_is_kept_back_may_panic() {
    let pool = dispatcher();
    let threads: Vec<_> = (1..PARTICIPANTS).map(|_| thread::spawn(|| ())).collect();
    (0..8).for_each(|_| pool.shared().presence.finish(1));
    pool.shared().presence.nobody_came(u64::MAX / 2);
    let split = Split::shared(64, PARTICIPANTS).unwrap();
    let job = |_: usize, _: Range<u32>| unreachable!("published");
    let caller = pool.try_caller().unwrap();
    let outcome = caller.run(&threads, split, &job, || resume_unwind(Box::new(7)));
    assert_eq!(outcome.unwrap_err().downcast_ref(), Some(&7));
    drop(caller);
    assert!(pool.try_caller().is_some(), "the pool is free again");
    let Shared { counters, spin, .. } = &**pool.shared();
    let statistics = counters.statistics(spin);
    assert_eq!((statistics.dispatches, statistics.deserted, statistics.panics), (1, 1, 1));
}

/// A panic counts what it discards as done, which says nothing of the workers.
#[test]
fn after_a_panic_nobody_is_missed() {
    let pool = dispatcher();
    let threads: Vec<_> = (1..PARTICIPANTS).map(|_| thread::spawn(|| ())).collect();
    let split = Split::shared(64, PARTICIPANTS).unwrap();
    let job = |_: usize, _: Range<u32>| resume_unwind(Box::new(()));
    assert!(pool.try_caller().unwrap().dispatch(&threads, split, &job).is_err());
    assert_eq!(pool.shared().presence.begin(now_ns), None);
    pool.try_caller().unwrap().dispatch(&threads, split, &|_, _| {}).unwrap();
    assert!(pool.shared().presence.begin(now_ns).is_some(), "here the caller did all");
}

#[test]
fn a_late_worker_finds_nothing() {
    let pool = dispatcher();
    let record = Record::default();
    let split = Split::shared(64, PARTICIPANTS).unwrap();
    pool.try_caller().unwrap().dispatch(&[], split, &record.job()).unwrap();
    let calls = record.0.lock().unwrap().len();
    for worker in 1..PARTICIPANTS {
        pool.shared().participate(worker);
    }
    assert_eq!(record.0.lock().unwrap().len(), calls);
}

/// A worker that takes part while the caller is in its first chunk gets its home and what the others have not taken.
#[test]
fn a_worker_runs_its_home_then_the_others() {
    let pool = dispatcher();
    let record = Record::default();
    let job = |participant: usize, chunks: Range<u32>| {
        let first = participant == CALLER && chunks.start == 0;
        record.job()(participant, chunks);
        if first {
            pool.shared().participate(2);
        }
    };
    let split = Split::shared(64, PARTICIPANTS).unwrap();
    pool.try_caller().unwrap().dispatch(&[], split, &job).unwrap();
    let by_chunk = record.participants_by_chunk();
    assert_eq!(by_chunk[..4], [CALLER; 4], "the caller's first bite");
    assert_eq!(by_chunk[4..], [2; 60]);
    let order: Vec<u32> = record.0.lock().unwrap().iter().map(|(_, chunks)| chunks.start).collect();
    assert_eq!(order[..2], [0, 32], "home before the others'");
}

/// Two participants are invited, and the one that is not comes by: it is as welcome as any.
#[test]
fn a_worker_without_an_invitation_may_steal() {
    let pool = dispatcher();
    let record = Record::default();
    let job = |participant: usize, chunks: Range<u32>| {
        let first = participant == CALLER && chunks.start == 0;
        record.job()(participant, chunks);
        if first {
            pool.shared().participate(3);
        }
    };
    let split = Split::shared(2, 2).unwrap();
    pool.try_caller().unwrap().dispatch(&[], split, &job).unwrap();
    assert_eq!(record.participants_by_chunk(), [CALLER, 3]);
}

#[test]
fn pinned_chunks_are_not_stolen() {
    let pool = dispatcher();
    let record = Record::default();
    let job = |participant: usize, chunks: Range<u32>| {
        record.job()(participant, chunks);
        if participant == CALLER {
            (1..PARTICIPANTS).for_each(|worker| pool.shared().participate(worker));
        }
    };
    pool.try_caller().unwrap().dispatch(&[], Split::one_each(PARTICIPANTS), &job).unwrap();
    assert_eq!(record.participants_by_chunk(), [0, 1, 2, 3]);
}

#[test]
fn the_right_to_dispatch_is_exclusive_and_comes_back() {
    let pool = dispatcher();
    let caller = pool.try_caller().unwrap();
    assert!(pool.try_caller().is_none());
    drop(caller);
    assert!(pool.try_caller().is_some());
}

#[test]
fn a_panic_discards_what_nobody_has_claimed() {
    let pool = dispatcher();
    let record = Record::default();
    let job = |participant: usize, chunks: Range<u32>| {
        record.job()(participant, chunks);
        std::panic::resume_unwind(Box::new("job"));
    };
    let split = Split::shared(64, PARTICIPANTS).unwrap();
    let outcome =
        catch_unwind(AssertUnwindSafe(|| pool.try_caller().unwrap().dispatch(&[], split, &job)));
    let payload = outcome.expect("the panic is returned, not raised").unwrap_err();
    assert_eq!(payload.downcast_ref(), Some(&"job"));
    assert_eq!(record.0.lock().unwrap().as_slice(), [(CALLER, 0..4)]);
}

#[test]
fn an_exclusive_borrow_needs_no_other_right() {
    let mut pool = dispatcher();
    for _ in 0..2 {
        let record = Record::default();
        let split = Split::shared(64, PARTICIPANTS).unwrap();
        pool.caller().dispatch(&[], split, &record.job()).unwrap();
        assert_eq!(record.participants_by_chunk(), [CALLER; 64]);
        assert!(pool.try_caller().is_some(), "and leaves it alone");
    }
}

#[test]
fn late_workers_and_steals_are_counted() {
    let pool = dispatcher();
    // Worker 1 is done with its home and takes what the caller has left; workers 2 and 3 are late.
    let job = |participant: usize, chunks: Range<u32>| {
        if participant == CALLER && chunks.start == 0 {
            (1..PARTICIPANTS).for_each(|worker| pool.shared().participate(worker));
        }
    };
    let split = Split::shared(64, PARTICIPANTS).unwrap();
    pool.try_caller().unwrap().dispatch(&[], split, &job).unwrap();
    let statistics = pool.shared().counters.statistics(&pool.shared().spin);
    assert_eq!((statistics.dispatches, statistics.invited, statistics.late), (1, 3, 2));
    assert!(statistics.steals >= 3, "from the caller, and from 2 and 3: {statistics:?}");
    assert_eq!((statistics.panics, statistics.unparks, statistics.parks), (0, 0, 0));
}

/// Threads that park until the test ends, in the place of workers.
fn sleepers(pool: &Dispatcher) -> (Vec<JoinHandle<()>>, Arc<AtomicBool>) {
    let is_over = Arc::new(AtomicBool::new(false));
    let sleep = |worker| {
        pool.shared().home(worker).set_asleep(true);
        let is_over = is_over.clone();
        std::thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                std::thread::park();
            }
        })
    };
    ((1..PARTICIPANTS).map(sleep).collect(), is_over)
}

/// The work that is worth a wake-up in this pool; what the last job is said to have taken; whether the next one wakes anybody.
const JOBS: &[(u64, u64, bool)] = &[
    (0, 0, true),
    (1, 0, true),                 // found out after a chunk of sixty-four
    (1_000_000, 2_000_000, true), // as the last one was
    (u64::MAX, u64::MAX, true),   // nothing is known yet
    (u64::MAX, 2_000_000, false),
    (u64::MAX, 0, false),
];

#[test]
fn parked_workers_are_woken_for_what_is_worth_it() {
    for &(worth_a_wake_up_ns, last_job_ns, wakes) in JOBS {
        let pool = dispatcher_that_wakes_for(worth_a_wake_up_ns);
        let (threads, is_over) = sleepers(&pool);
        let statistics = || pool.shared().counters.statistics(&pool.shared().spin);
        let run = |split| {
            let before = statistics();
            let job = |_participant: usize, _chunks: Range<u32>| {
                let start = Instant::now();
                while start.elapsed() < Duration::from_micros(1) {} // more than the clock's step
            };
            pool.try_caller().unwrap().dispatch(&threads, split, &job).unwrap();
            (statistics().unparks - before.unparks, statistics().alone - before.alone)
        };
        let split = || Split::shared(64, PARTICIPANTS).unwrap();
        pool.shared().thrift.finish(last_job_ns);
        let expected = if wakes { (3, 0) } else { (0, 1) };
        assert_eq!(run(split()), expected, "{worth_a_wake_up_ns} {last_job_ns}");
        // In a hot phase, and where not all are asleep, whatever the size.
        pool.shared().thrift.finish(0);
        pool.shared().heat.begin();
        assert_eq!(run(split()), (3, 0));
        pool.shared().heat.end();
        pool.shared().home(2).set_asleep(false);
        assert_eq!(run(split()), (2, 0));
        is_over.store(true, Ordering::Relaxed);
        for thread in threads {
            thread.thread().unpark();
            thread.join().unwrap();
        }
    }
}
