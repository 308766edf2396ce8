//! The global pool can be built once in a process, so this test is alone in its file.

#![cfg(feature = "rayon")]

use std::sync::Barrier;

use rowpar::init_cpu_pool;

#[test]
fn one_call_builds_the_pool_and_the_others_find_it() {
    let start = Barrier::new(4);
    let results = std::thread::scope(|scope| {
        let call = || {
            start.wait();
            init_cpu_pool().expect("workers can be spawned")
        };
        let threads = [0; 4].map(|_| scope.spawn(call));
        threads.map(|thread| thread.join().expect("no panic"))
    });
    let built: Vec<usize> = results.into_iter().flatten().collect();
    assert_eq!(built.len(), 1, "{results:?}");
    assert_eq!(built[0], rayon::current_num_threads());
    assert_eq!(built[0], cpu_topology::resolve_cpu_threads());

    assert_eq!(init_cpu_pool().expect("workers were spawned"), None);
    assert_eq!(rayon::current_num_threads(), built[0]);
}
