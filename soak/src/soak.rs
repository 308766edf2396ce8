//! A soak: scene after scene, until enough jobs have been published.
#![forbid(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, available_parallelism};
use std::time::Duration;

use fastrand::Rng;

use crate::account::Account;
use crate::choices::{self, Action, Limits, Scene};
use crate::counts::Counts;
use crate::disturbances::{load_cpus, move_threads};
use crate::options::Options;
use crate::own::Built;
use crate::perform::Hands;
use crate::planned;
use crate::watchdog::{Step, Watch};

/// Actions of a caller between two looks at whether the soak is over.
const ACTIONS_PER_LOOK: usize = 64;

/// Runs a soak; ends the process where it fails.
pub fn run(options: &Options) {
    let n_cpus = available_parallelism().map_or(1, usize::from);
    let participants = options.threads.map_or(4 * n_cpus, |threads| threads as usize);
    let seed = options.seed.unwrap_or_else(|| fastrand::u64(..));
    eprintln!("seed {seed}: {} dispatches, up to {participants} participants", options.dispatches);

    let watch = Watch::new(seed, options.dispatches);
    let end = options.minutes.map(|minutes| Duration::from_secs(60 * u64::from(minutes)));
    let is_enough = || {
        watch.dispatched() >= options.dispatches || end.is_some_and(|end| watch.elapsed() >= end)
    };
    let soak =
        Soak { watch: &watch, limits: Limits { n_cpus, participants }, is_enough: &is_enough };

    let mut rng = Rng::with_seed(seed);
    let (moves, load) = (rng.fork(), rng.fork());
    let over = AtomicBool::new(false);
    let mut counts = Counts::default();
    thread::scope(|scope| {
        let watchdog = scope.spawn(|| watch.keep(|| over.load(Ordering::Relaxed)));
        let disturbances = [
            scope.spawn(|| move_threads(moves, &over)),
            scope.spawn(|| load_cpus(load, &over, n_cpus)),
        ];
        let end = End(&over);
        for number in 0.. {
            if is_enough() {
                break;
            }
            counts += soak.play(number, &mut rng);
        }
        drop(end);
        watchdog.thread().unpark();
        for disturbance in disturbances {
            disturbance.thread().unpark();
            counts += disturbance.join().expect("a disturbance does not panic");
        }
    });
    let (dispatched, seconds) = (watch.dispatched(), watch.elapsed().as_secs_f64());
    let rate = dispatched as f64 / seconds;
    println!(
        "{dispatched} dispatches in {seconds:.0} s, {rate:.0} a second, seed {seed}: {counts}"
    );
}

/// Ends the threads beside the scenes, also where a panic ends the soak.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What every scene needs.
struct Soak<'a> {
    watch: &'a Watch,
    limits: Limits,
    is_enough: &'a (dyn Fn() -> bool + Sync),
}

impl Soak<'_> {
    /// Builds pools, lets callers use them, looks whether their statistics are as they should be, and drops them.
    fn play(&self, number: u64, rng: &mut Rng) -> Counts {
        let mut rng = rng.fork();
        let scene = choices::scene(&mut rng, &self.limits);
        self.watch.enter_scene(number, scene);
        let before = self.watch.dispatched();
        let pools = scene.pools.map(|blueprint| {
            self.watch.enter(0, Step::Builds(blueprint));
            Built::new(blueprint).unwrap_or_else(|what| self.watch.fail(0, &what))
        });
        let (mut counts, accounts) = self.use_pools(&scene, &pools, &mut rng);
        counts.pools += pools.len() as u64;
        for (built, account) in pools.into_iter().zip(&accounts) {
            self.watch.enter(0, Step::Drops);
            let published = built.check(account);
            counts.published += published.unwrap_or_else(|what| self.watch.fail(0, &what));
            let ended = built.end(|pool| {
                drop(pool);
                Ok(())
            });
            ended.unwrap_or_else(|what| self.watch.fail(0, &what));
        }
        self.watch.enter(0, Step::Nothing);

        let counted = self.watch.dispatched() - before;
        if counted != counts.published {
            let published = counts.published;
            let what =
                format!("{counted} dispatches counted, {published} by the statistics of all pools");
            self.watch.fail(0, &what);
        }
        counts
    }

    /// The callers of a scene; returns what was done with each pool as well.
    fn use_pools(
        &self,
        scene: &Scene,
        pools: &[Built; 2],
        rng: &mut Rng,
    ) -> (Counts, [Account; 2]) {
        let (mut counts, mut accounts) = (Counts::default(), [Account::default(); 2]);
        // Each caller prefers a pool, and knows the other; the first two share one.
        let preferred = |caller| usize::from(caller == 2);
        thread::scope(|scope| {
            let spawned = (0..scene.n_callers).map(|caller| {
                let pool = |index: usize| &pools[index].pool;
                let own = preferred(caller);
                let hands = Hands::new(pool(own), pool(1 - own), scene.n_callers == 1);
                let rng = rng.fork();
                scope.spawn(move || self.act(caller, scene, hands, rng))
            });
            let spawned: Vec<_> = spawned.collect();
            for (caller, thread) in spawned.into_iter().enumerate() {
                let hands = thread.join().expect("a caller catches the panics of its actions");
                counts += hands.checks.counts;
                accounts[preferred(caller)] += hands.checks.account;
                accounts[1 - preferred(caller)] += hands.others_account;
            }
        });
        (counts, accounts)
    }

    /// The actions of one caller.
    fn act<'a>(
        &self,
        caller: usize,
        scene: &Scene,
        mut hands: Hands<'a>,
        mut rng: Rng,
    ) -> Hands<'a> {
        for n in 0..scene.n_actions {
            if n % ACTIONS_PER_LOOK == 0 && (self.is_enough)() {
                break;
            }
            let action = choices::action(&mut rng, &self.limits);
            self.watch.enter(caller, Step::Acts(action));
            if let Err(what) = caught(&mut hands, action) {
                self.watch.fail(caller, &what);
            }
        }
        self.watch.enter(caller, Step::Nothing);
        hands
    }
}

/// Performs an action; a panic that was not planned is a failure like any other.
fn caught(hands: &mut Hands<'_>, action: Action) -> Result<(), String> {
    match catch_unwind(AssertUnwindSafe(|| hands.perform(action))) {
        Ok(outcome) => outcome,
        Err(payload) => Err(planned::unplanned(payload)),
    }
}
