//! Who does what, and since when: a caller that does the same for most of a minute hangs.
#![forbid(unsafe_code)]

use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::park_timeout;
use std::time::{Duration, Instant};

use epoch_pool::dispatch_count;

use crate::choices::{Action, Blueprint, MAX_CALLERS, Scene};

/// Looks of the watchdog, one a second, after which an action hangs: none takes so long, whatever else the machine does. Looks, as
/// a process that does not run at all makes no progress either; and more than a child is given.
const HANGS_AFTER: u32 = 45;

const LOOK_EVERY: Duration = Duration::from_secs(1);

const PROGRESS_EVERY: Duration = Duration::from_secs(10);

/// What a thread is at.
#[derive(Clone, Copy, Debug)]
#[expect(dead_code, reason = "read by `Debug`, in the report of a failure")]
pub(crate) enum Step {
    Nothing,
    Builds(Blueprint),
    Acts(Action),
    Drops,
}

/// What a thread is at, and how many steps it has made.
#[derive(Clone, Copy, Debug)]
struct Place {
    number: u64,
    step: Step,
}

/// The threads that use pools, as others see them.
#[derive(Debug)]
pub(crate) struct Watch {
    seed: u64,
    target: u64,
    began: Instant,
    dispatched_before: u64,
    scene: Mutex<(u64, Option<Scene>)>,
    places: [Mutex<Place>; MAX_CALLERS],
}

impl Watch {
    pub(crate) fn new(seed: u64, target: u64) -> Self {
        let place = || Mutex::new(Place { number: 0, step: Step::Nothing });
        Self {
            seed,
            target,
            began: Instant::now(),
            dispatched_before: dispatch_count(),
            scene: Mutex::new((0, None)),
            places: std::array::from_fn(|_| place()),
        }
    }

    /// Jobs published since the soak began.
    pub(crate) fn dispatched(&self) -> u64 {
        dispatch_count() - self.dispatched_before
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    pub(crate) fn enter_scene(&self, number: u64, scene: Scene) {
        *lock(&self.scene) = (number, Some(scene));
    }

    pub(crate) fn enter(&self, caller: usize, step: Step) {
        let mut place = lock(&self.places[caller]);
        *place = Place { number: place.number + 1, step };
    }

    /// Says what is wrong and where, and ends the process.
    pub(crate) fn fail(&self, caller: usize, what: &str) -> ! {
        let mut text = format!("the soak failed: caller {caller}: {what}\n");
        text += &self.report();
        _ = std::io::stderr().write_all(text.as_bytes());
        std::process::exit(1)
    }

    /// Until `is_over`: tells how far the soak is, and aborts the process if a caller hangs. To be unparked in the end.
    pub(crate) fn keep(&self, is_over: impl Fn() -> bool) {
        // Steps, and the looks that each has lasted.
        let mut seen = self.places.each_ref().map(|_| (0, 0));
        let mut progress = (Instant::now(), 0);
        while !is_over() {
            park_timeout(LOOK_EVERY);
            for (place, seen) in self.places.iter().zip(&mut seen) {
                let Place { number, step } = *lock(place);
                if number != seen.0 || matches!(step, Step::Nothing) {
                    *seen = (number, 0);
                    continue;
                }
                seen.1 += 1;
                if seen.1 > HANGS_AFTER {
                    let report = self.report();
                    _ = write!(std::io::stderr(), "the soak failed: a caller hangs\n{report}");
                    std::process::abort();
                }
            }
            if progress.0.elapsed() >= PROGRESS_EVERY && !is_over() {
                let (dispatched, took) = (self.dispatched(), progress.0.elapsed());
                self.tell_progress(
                    dispatched,
                    (dispatched - progress.1) as f64 / took.as_secs_f64(),
                );
                progress = (Instant::now(), dispatched);
            }
        }
    }

    fn tell_progress(&self, dispatched: u64, rate: f64) {
        let (seconds, scene) = (self.elapsed().as_secs(), lock(&self.scene).0);
        let percent = dispatched as f64 * 100.0 / self.target as f64;
        // Where nobody listens there is nothing to tell.
        _ = writeln!(
            std::io::stderr(),
            "{seconds:5} s: scene {scene}, {dispatched} dispatches ({percent:.1} %), {rate:.0} a second"
        );
    }

    fn report(&self) -> String {
        let (number, scene) = *lock(&self.scene);
        let mut text = format!(
            "seed {}, dispatch {}, scene {number}: {scene:?}\n",
            self.seed,
            self.dispatched()
        );
        for (caller, place) in self.places.iter().enumerate() {
            let Place { number, step } = *lock(place);
            text += &format!("caller {caller}: step {number}: {step:?}\n");
        }
        text
    }
}

/// The data is a plain copy: a poisoned lock holds a sound one.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
