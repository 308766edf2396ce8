//! Everything that is left to chance, and how often it is chosen. What is drawn follows from the seed alone.
#![forbid(unsafe_code)]

use epoch_pool::Pool;
use fastrand::Rng;

/// Rows of a dispatch at most.
pub(crate) const MAX_ROWS: usize = 1 << 14;

/// Row spaces of one dispatch at most.
pub(crate) const MAX_PARTS: usize = 4;

/// One job.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Plan {
    /// `run`: once on each participant.
    Visit { effort: u32 },
    /// `run_rows`, or `run_rows_by` with a grain that is not 1.
    Rows { rows: usize, grain: usize, effort: u32 },
    /// `run_many`, or `run_many_by`.
    Many { parts: [usize; MAX_PARTS], grain: usize },
    /// `run`, in which participants panic.
    PanicVisit { culprits: Culprits, is_bomb: bool },
    /// Rows of which one panics, or each call.
    PanicRows { rows: usize, culprit: Option<usize>, is_bomb: bool },
}

/// Participants that panic.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Culprits {
    One(usize),
    All,
    /// All; this one when the first payload is the pool's for certain. Of three or more, that is.
    AllThisLast(usize),
}

/// What one caller does next.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    /// A job, by the `try_run…` methods or by the others.
    Job { plan: Plan, is_try: bool },
    /// Jobs in a hot phase.
    Hot { rows: usize, dispatches: usize, forget: bool },
    /// Rows whose calls dispatch in turn, on the same pool or on the other one.
    Nested { rows: usize, inner: usize, same_pool: bool, is_try: bool },
    /// A nested dispatch panics inside `run`.
    PanicNested { inner: usize },
    /// A pool of one's own, built, used and dropped while others dispatch.
    OwnPool { blueprint: Blueprint, seed: u64 },
    /// A child that dispatches on the inherited pool.
    Fork,
    /// Nothing, long enough for workers to park.
    Rest { micros: u64 },
}

/// Kinds of jobs, with their weights, for a pool of so many participants.
type PlanChoice = (u32, fn(&mut Rng, usize) -> Plan);

const PLANS: &[PlanChoice] = &[
    (60_000, |rng, _| Plan::Rows { rows: rows(rng), grain: grain(rng), effort: effort(rng) }),
    (20_000, |rng, _| Plan::Many { parts: [(); MAX_PARTS].map(|()| part(rng)), grain: grain(rng) }),
    (15_000, |rng, _| Plan::Visit { effort: effort(rng) }),
    (150, |rng, participants| Plan::PanicVisit {
        culprits: culprits(rng, participants),
        is_bomb: rng.bool(),
    }),
    (150, |rng, _| {
        let rows = rows(rng);
        let culprit = (rng.u32(0..4) > 0).then(|| rng.usize(0..rows.max(1)));
        Plan::PanicRows { rows, culprit, is_bomb: rng.bool() }
    }),
];

/// Kinds of other actions, with their weights, which bound what the slow ones cost together.
type ActionChoice = (u32, fn(&mut Rng, &Limits) -> Action);

const ACTIONS: &[ActionChoice] = &[
    (95_000, |rng, limits| Action::Job {
        plan: weighted(rng, PLANS)(rng, limits.participants),
        is_try: rng.u8(0..5) == 0,
    }),
    (500, |rng, _| Action::Nested {
        rows: rng.usize(0..20),
        inner: rng.usize(0..40),
        same_pool: rng.bool(),
        is_try: rng.bool(),
    }),
    (200, |rng, _| Action::Hot {
        rows: rows(rng),
        dispatches: rng.usize(0..8),
        forget: rng.u32(0..200) == 0,
    }),
    (50, |rng, _| Action::PanicNested { inner: rng.usize(1..40) }),
    (20, |rng, _| Action::Rest { micros: rng.u64(0..400) }),
    (4, |rng, limits| Action::OwnPool { blueprint: blueprint(rng, limits), seed: rng.u64(..) }),
    (1, |_, _| Action::Fork),
];

/// What bounds the choices on this machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) n_cpus: usize,
    /// Of a pool, at most.
    pub(crate) participants: usize,
}

/// A pool to be built.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blueprint {
    pub(crate) workers: usize,
    /// In turns.
    pub(crate) spin: u32,
    /// Asked for by the number of participants, and the spin budget in time.
    pub(crate) in_other_words: bool,
    /// With hooks at the start and at the stop of its workers.
    pub(crate) has_hooks: bool,
    pub(crate) is_timed: bool,
    /// Jobs run in whatever floating-point environment there is.
    pub(crate) as_found: bool,
}

/// Pools, and the threads that use them for a while.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scene {
    pub(crate) pools: [Blueprint; 2],
    pub(crate) n_callers: usize,
    /// Of each caller.
    pub(crate) n_actions: usize,
}

/// The most callers of a scene.
pub(crate) const MAX_CALLERS: usize = 4;

pub(crate) fn action(rng: &mut Rng, limits: &Limits) -> Action {
    weighted(rng, ACTIONS)(rng, limits)
}

/// A job for a pool of so many participants, each kind as often as the others.
pub(crate) fn any_plan(rng: &mut Rng, participants: usize) -> Plan {
    PLANS[rng.usize(0..PLANS.len())].1(rng, participants)
}

fn weighted<T: Copy>(rng: &mut Rng, choices: &[(u32, T)]) -> T {
    let all = choices.iter().map(|(weight, _)| weight).sum();
    let mut at = rng.u32(0..all);
    for &(weight, choice) in choices {
        if at < weight {
            return choice;
        }
        at -= weight;
    }
    unreachable!("the weights add up")
}

/// Pools that spin, on few CPUs, get most of the actions: the others take tens of microseconds for one.
pub(crate) fn scene(rng: &mut Rng, limits: &Limits) -> Scene {
    let pools = [blueprint(rng, limits), blueprint(rng, limits)];
    let n_callers = [1, 1, 1, 2, 2, 3, MAX_CALLERS][rng.usize(0..7)];
    let quick =
        pools[0].spin == Pool::DEFAULT_SPIN && pools[0].workers + n_callers <= limits.n_cpus;
    let n_actions = if quick { 200_000 } else { 10_000 };
    Scene { pools, n_callers, n_actions }
}

fn blueprint(rng: &mut Rng, limits: &Limits) -> Blueprint {
    let most = limits.participants - 1;
    let workers = match rng.u32(0..100) {
        0..60 => 1,
        60..95 => rng.usize(0..=most),
        _ => 0,
    };
    let spin = match rng.u32(0..100) {
        0..70 => Pool::DEFAULT_SPIN,
        70..85 => rng.u32(1..200),
        _ => 0,
    };
    Blueprint {
        workers: workers.min(most),
        spin,
        in_other_words: rng.bool(),
        has_hooks: rng.bool(),
        is_timed: rng.u8(0..4) == 0,
        as_found: rng.u8(0..4) == 0,
    }
}

/// Mostly a few: that is where a dispatch is all protocol.
fn rows(rng: &mut Rng) -> usize {
    match rng.u32(0..1000) {
        0..700 => rng.usize(0..5),
        700..930 => rng.usize(5..64),
        930..995 => rng.usize(64..1000),
        _ => rng.usize(1000..=MAX_ROWS),
    }
}

fn part(rng: &mut Rng) -> usize {
    rows(rng) / MAX_PARTS
}

fn grain(rng: &mut Rng) -> usize {
    match rng.u32(0..100) {
        0..80 => 1,
        80..98 => rng.usize(0..40),
        98 => rng.usize(0..=MAX_ROWS),
        _ => usize::MAX,
    }
}

/// Spin hints in each call of a job.
fn effort(rng: &mut Rng) -> u32 {
    match rng.u32(0..100) {
        0..97 => 0,
        97..99 => rng.u32(0..50),
        _ => rng.u32(0..500),
    }
}

fn culprits(rng: &mut Rng, participants: usize) -> Culprits {
    match rng.u32(0..4) {
        0 => Culprits::All,
        1 => Culprits::AllThisLast(rng.usize(0..participants)),
        _ => Culprits::One(rng.usize(0..participants)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { n_cpus: 2, participants: 8 };

    #[test]
    fn the_seed_decides() {
        let draw = |seed| {
            let mut rng = Rng::with_seed(seed);
            let scene = scene(&mut rng, &LIMITS);
            let actions: Vec<Action> = (0..1000).map(|_| action(&mut rng, &LIMITS)).collect();
            format!("{scene:?} {actions:?}")
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn choices_stay_within_the_limits_of_the_smallest_machine() {
        let limits = Limits { n_cpus: 1, participants: 1 };
        let mut rng = Rng::with_seed(1);
        for _ in 0..10_000 {
            assert!(scene(&mut rng, &limits).pools.iter().all(|pool| pool.workers == 0));
            let Action::Job { plan, .. } = action(&mut rng, &limits) else { continue };
            match plan {
                Plan::Rows { rows, .. } | Plan::PanicRows { rows, .. } => {
                    assert!(rows <= MAX_ROWS)
                }
                Plan::Many { parts, .. } => assert!(parts.iter().sum::<usize>() <= MAX_ROWS),
                _ => {}
            }
        }
    }
}
