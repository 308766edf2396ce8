//! A fork takes the pool along, but not its workers.
#![cfg(unix)]

use std::sync::atomic::{AtomicUsize, Ordering};

use epoch_pool::Pool;

/// What the child does; its exit code says where it went wrong.
fn use_and_drop(pool: Pool) -> i32 {
    for _ in 0..3 {
        let sum = AtomicUsize::new(0);
        pool.run_rows(1000, |rows| _ = sum.fetch_add(rows.sum(), Ordering::Relaxed));
        if sum.into_inner() != 499_500 {
            return 1;
        }
        let calls = AtomicUsize::new(0);
        pool.run(|participant, participants| {
            calls.fetch_add(
                if (participant, participants) == (0, 1) { 1 } else { 100 },
                Ordering::Relaxed,
            );
        });
        if calls.into_inner() != 1 {
            return 2;
        }
    }
    if pool.statistics().inline.forked != 6 {
        return 3;
    }
    drop(pool.hot());
    drop(pool);
    0
}

#[test]
fn the_pool_of_a_forked_child_works_without_workers() {
    for spin in [0, Pool::DEFAULT_SPIN] {
        let pool = Pool::with_spin(3, spin).unwrap();
        pool.run(|_, _| {});
        // SAFETY: the child touches its own memory and nothing that another thread could have held locked, and leaves by `_exit`.
        let child = unsafe { libc::fork() };
        assert!(child >= 0, "{}", std::io::Error::last_os_error());
        if child == 0 {
            // SAFETY: always sound; ends a child that hangs.
            unsafe { libc::alarm(60) };
            let code = use_and_drop(pool);
            // SAFETY: always sound; runs no destructor of the parent's.
            unsafe { libc::_exit(code) };
        }
        let mut status = 0;
        // SAFETY: `child` is ours and not waited for yet; `status` is writable.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert!(libc::WIFEXITED(status), "the child was killed: {status}");
        assert_eq!(libc::WEXITSTATUS(status), 0);
        let calls = AtomicUsize::new(0);
        pool.run(|_, _| _ = calls.fetch_add(1, Ordering::Relaxed));
        assert_eq!(calls.into_inner(), 4, "the parent's pool is as before");
    }
}
