//! Pools: how they are built, used by one caller alone, and ended.
#![forbid(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use epoch_pool::{FloatEnvironment, Pool};
use fastrand::Rng;

use crate::account::Account;
use crate::checks::{Checked, Checks};
use crate::choices::{self, Blueprint};
use crate::counts::Counts;
use crate::doors::Trying;
use crate::perform::{fork, in_child};

/// Nanoseconds in a turn of the spin budget.
const TURN_NS: u64 = 40;

/// A pool as it was asked for.
#[derive(Debug)]
pub(crate) struct Built {
    pub(crate) pool: Pool,
    blueprint: Blueprint,
    stopped: Arc<AtomicUsize>,
}

impl Built {
    /// Builds a pool; its start hook, if it has one, has run once on each worker by then.
    pub(crate) fn new(blueprint: Blueprint) -> Result<Self, String> {
        let Blueprint { workers, spin, in_other_words, has_hooks, is_timed, as_found } = blueprint;
        let (started, stopped) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let mut builder = Pool::builder().timing(is_timed);
        builder = match in_other_words {
            false => builder.workers(workers).spin_budget(spin),
            true => builder
                .participants(workers + 1)
                .spin_time(Duration::from_nanos(TURN_NS * u64::from(spin))),
        };
        if as_found {
            builder = builder.float_environment(FloatEnvironment::AsFound);
        }
        if has_hooks {
            builder =
                builder.on_worker_start(count_in(&started)).on_worker_stop(count_in(&stopped));
        }
        let pool = builder.build().map_err(|error| error.to_string())?;
        let (n_workers, expected) = (pool.n_workers(), if has_hooks { workers } else { 0 });
        let counted = (started.load(Ordering::Relaxed), stopped.load(Ordering::Relaxed));
        if n_workers != workers || counted != (expected, 0) {
            let (started, stopped) = counted;
            return Err(format!(
                "{n_workers} of {workers} workers, {started} started, {stopped} stopped"
            ));
        }
        Ok(Self { pool, blueprint, stopped })
    }

    /// Looks at the statistics of a pool that nobody uses, and returns the number of jobs published.
    pub(crate) fn check(&self, account: &Account) -> Result<u64, String> {
        let Blueprint { workers, is_timed, .. } = self.blueprint;
        let statistics = self.pool.statistics();
        account.check(&statistics, workers, is_timed)?;
        Ok(statistics.dispatches)
    }

    /// Ends the pool by what `ends` does; its stop hook, if it has one, has run once on each worker by then.
    pub(crate) fn end(self, ends: impl FnOnce(Pool) -> Checked) -> Checked {
        let Self { pool, blueprint: Blueprint { workers, has_hooks, .. }, stopped } = self;
        ends(pool)?;
        let stopped = stopped.load(Ordering::Relaxed);
        match stopped == if has_hooks { workers } else { 0 } {
            true => Ok(()),
            false => Err(format!("{stopped} of {workers} workers were told that they stop")),
        }
    }
}

fn count_in(counter: &Arc<AtomicUsize>) -> impl Fn(usize) + Send + Sync + 'static {
    let counter = counter.clone();
    move |_| _ = counter.fetch_add(1, Ordering::Relaxed)
}

/// A pool that one caller builds, uses by each door, and drops.
pub(crate) fn own(counts: &mut Counts, blueprint: Blueprint, seed: u64) -> Checked {
    let mut rng = Rng::with_seed(seed);
    let mut built = Built::new(blueprint)?;
    let mut checks = Checks::new(true);
    for _ in 0..rng.usize(0..4) {
        let plan = choices::any_plan(&mut rng, blueprint.workers + 1);
        checks.perform(&mut &built.pool, plan)?;
    }
    hold_session(&mut rng, &mut built, &mut checks)?;
    let plan = choices::any_plan(&mut rng, blueprint.workers + 1);
    checks.perform(&mut Trying(&built.pool), plan)?;

    checks.counts.pools += 1;
    checks.counts.published += built.check(&checks.account)?;
    *counts += checks.counts;
    if rng.u32(0..4) > 0 {
        return built.end(|pool| {
            drop(pool);
            Ok(())
        });
    }
    // In the parent the pool is dropped with the closure.
    built.end(|pool| {
        fork(counts, move || {
            let code = in_child(&pool);
            drop(pool);
            code
        })
    })
}

/// Some jobs in a session, hot or not, which may be forgotten.
fn hold_session(rng: &mut Rng, built: &mut Built, checks: &mut Checks) -> Checked {
    let participants = built.pool.participants();
    let is_hot = rng.bool();
    let session = built.pool.session();
    let mut session = if is_hot { session.hot() } else { session };
    checks.account.phases += u64::from(is_hot);
    checks.counts.sessions += 1;
    for _ in 0..rng.usize(0..8) {
        checks.perform(&mut session, choices::any_plan(rng, participants))?;
    }
    if rng.u32(0..16) == 0 {
        std::mem::forget(session);
    }
    Ok(())
}
