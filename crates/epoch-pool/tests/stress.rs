//! Four times more participants than CPUs, and many short jobs: a worker may lose its CPU at any point of the protocol.

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use common::watched;
use epoch_pool::Pool;

#[test]
fn twenty_thousand_dispatches_with_four_times_more_participants_than_cpus() {
    watched(|| {
        let n_cpus = thread::available_parallelism().map_or(1, usize::from);
        let pool = Pool::new(4 * n_cpus - 1).unwrap();
        assert_eq!(pool.participants(), 4 * n_cpus);
        let (mut expected, sum) = (0, AtomicUsize::new(0));
        let mut random = 0x9E37_79B9_7F4A_7C15_u64;
        for dispatch in 0..20_000 {
            // xorshift64: sizes from two rows to more than every participant has chunks
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let rows = 2 + (random % 300) as usize;
            if dispatch % 100 == 99 {
                expected += pool.participants();
                pool.run(|_, _| _ = sum.fetch_add(1, Ordering::Relaxed));
            } else {
                expected += rows;
                pool.run_rows(rows, |range| _ = sum.fetch_add(range.len(), Ordering::Relaxed));
            }
            assert_eq!(sum.load(Ordering::Relaxed), expected, "dispatch {dispatch}");
        }
    });
}
