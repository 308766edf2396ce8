//! A soak: scene after scene, until enough jobs have been published.
#![forbid(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, available_parallelism};
use std::time::Duration;

use fastrand::Rng;

use crate::choices::{self, Action, Limits, Scene};
use crate::counts::Counts;
use crate::disturbances::{load_cpus, move_threads};
use crate::options::Options;
use crate::perform::{Hands, build};
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
    /// Builds pools, lets callers use them, drops them, and looks whether the count of dispatches is as it should be.
    fn play(&self, number: u64, rng: &mut Rng) -> Counts {
        let mut rng = rng.fork();
        let scene = choices::scene(&mut rng, &self.limits);
        self.watch.enter_scene(number, scene);
        let before = self.watch.dispatched();
        let pools = scene.pools.map(|blueprint| {
            self.watch.enter(0, Step::Builds(blueprint));
            build(blueprint).unwrap_or_else(|what| self.watch.fail(0, &what))
        });
        let mut counts = Counts { pools: pools.len() as u64, ..Counts::default() };
        let callers = (0..scene.n_callers).map(|caller| {
            // Each caller prefers a pool, and knows the other; the first two share one.
            let (pool, other) =
                if caller == 2 { (&pools[1], &pools[0]) } else { (&pools[0], &pools[1]) };
            (caller, Hands::new(pool, other, scene.n_callers == 1), rng.fork())
        });
        let callers: Vec<_> = callers.collect();
        thread::scope(|scope| {
            let spawned = callers.into_iter().map(|(caller, hands, rng)| {
                scope.spawn(move || self.act(caller, &scene, hands, rng))
            });
            let spawned: Vec<_> = spawned.collect();
            for caller in spawned {
                counts += caller.join().expect("a caller catches the panics of its actions");
            }
        });
        self.watch.enter(0, Step::Drops);
        drop(pools);
        self.watch.enter(0, Step::Nothing);

        let (published, certain, possible) =
            (self.watch.dispatched() - before, counts.certain, counts.possible);
        if !(certain..=possible).contains(&published) {
            let what = format!("{published} dispatches counted, {certain} to {possible} expected");
            self.watch.fail(0, &what);
        }
        counts
    }

    /// The actions of one caller.
    fn act(&self, caller: usize, scene: &Scene, mut hands: Hands<'_>, mut rng: Rng) -> Counts {
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
        hands.counts
    }
}

/// Performs an action; a panic that was not planned is a failure like any other.
fn caught(hands: &mut Hands<'_>, action: Action) -> Result<(), String> {
    match catch_unwind(AssertUnwindSafe(|| hands.perform(action))) {
        Ok(outcome) => outcome,
        Err(payload) => Err(planned::unplanned(payload)),
    }
}
