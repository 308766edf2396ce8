//! `for_each_row` and `for_each_chunk_init`: which elements are visited, how often, in which order.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use rowpar::{for_each_chunk_init, for_each_row};

/// Work of a row that is worth a dispatch from two rows on.
const MUCH: usize = 128_000;

#[test]
fn rows_are_visited_once_and_the_rest_is_not_touched() {
    // Rows asked for, and elements of the output.
    const CASES: &[(usize, usize)] = &[
        (0, 0),
        (0, 5),
        (5, 0),
        (1, 1),
        (3, 5),
        (5, 3),
        (64, 64),
        (100, 97),
        (97, 100),
        (usize::MAX, 33),
    ];
    for n_cols in [0, 1, MUCH, usize::MAX] {
        for &(n_rows, len) in CASES {
            let mut out = vec![-1.0; len];
            let visits: Vec<_> = (0..len).map(|_| AtomicUsize::new(0)).collect();
            for_each_row(&mut out, n_rows, n_cols, |row, value| {
                visits[row].fetch_add(1, Ordering::Relaxed);
                *value -= row as f32;
            });
            for (row, (value, visits)) in out.iter().zip(visits).enumerate() {
                let visited = row < n_rows;
                assert_eq!(
                    visits.into_inner(),
                    usize::from(visited),
                    "{n_rows} of {len}, row {row}"
                );
                assert_eq!(*value, if visited { -1.0 - row as f32 } else { -1.0 });
            }
        }
    }
}

#[test]
fn small_rows_run_here_in_ascending_order() {
    let rows = Mutex::new(Vec::new());
    for_each_row(&mut [0.0; 100], 90, 1, |row, _| {
        rows.lock().unwrap().push((row, thread::current().id()));
    });
    let here = thread::current().id();
    assert!(rows.into_inner().unwrap().into_iter().eq((0..90).map(|row| (row, here))));
}

/// A state that knows how often it was used, and that no two threads may hold.
struct State {
    id: usize,
    thread: thread::ThreadId,
    last: Option<usize>,
}

/// Visits chunks and checks that each state stays with one thread and goes upwards.
fn visit(len: usize, chunk_len: usize, work: usize) -> (Vec<f32>, Vec<(usize, usize)>, usize) {
    let mut out = vec![-1.0; len];
    let (made, seen) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let init = || State {
        id: made.fetch_add(1, Ordering::Relaxed),
        thread: thread::current().id(),
        last: None,
    };
    for_each_chunk_init(&mut out, chunk_len, work, init, |state, chunk, values| {
        assert_eq!(state.thread, thread::current().id());
        assert!(state.last.is_none_or(|last| last < chunk));
        state.last = Some(chunk);
        assert_eq!(values.len(), chunk_len);
        values.fill(chunk as f32);
        seen.lock().unwrap().push((chunk, state.id));
    });
    (out, seen.into_inner().unwrap(), made.into_inner())
}

#[test]
fn whole_chunks_are_visited_once_and_a_partial_one_is_not() {
    for work in [0, 1, MUCH, usize::MAX] {
        for len in [0, 1, 6, 7, 8, 13, 14, 15, 100, 700, 1001] {
            for chunk_len in [1, 7, 14, 1000, usize::MAX] {
                let context = format!("{len} values in chunks of {chunk_len}, work {work}");
                let (out, mut seen, made) = visit(len, chunk_len, work);
                let n_chunks = len / chunk_len;
                for (i, value) in out.iter().enumerate() {
                    let chunk = i / chunk_len;
                    let expected = if chunk < n_chunks { chunk as f32 } else { -1.0 };
                    assert_eq!(*value, expected, "{context}, value {i}");
                }
                seen.sort_unstable();
                assert!(seen.iter().map(|(chunk, _)| *chunk).eq(0..n_chunks), "{context}");
                assert!(made <= n_chunks, "{context}: a state that nobody needed");
            }
        }
    }
}

#[test]
fn small_chunks_share_one_state_in_ascending_order() {
    let (_, seen, made) = visit(100, 7, 1);
    assert_eq!(made, 1);
    assert!(seen.into_iter().eq((0..14).map(|chunk| (chunk, 0))));
}

#[test]
fn a_chunk_length_of_zero_does_nothing() {
    let init = || panic!("no state is needed");
    for work in [0, usize::MAX] {
        for_each_chunk_init(&mut [1.0; 8], 0, work, init, |(), _, _| panic!("no chunk is visited"));
        for_each_chunk_init(&mut [1.0; 8], 9, work, init, |(), _, _| panic!("no chunk is whole"));
    }
}

#[cfg(feature = "rayon")]
#[test]
fn large_work_goes_to_rayon() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let mut on_worker = [0.0; 64];
    pool.install(|| {
        for_each_row(&mut on_worker, 64, MUCH, |_, value| {
            *value = f32::from(u8::from(rayon::current_thread_index().is_some()));
        });
    });
    assert_eq!(on_worker, [1.0; 64]);
    let here = thread::current().id();
    for_each_chunk_init(
        &mut on_worker,
        2,
        MUCH,
        || (),
        |(), _, values| {
            let elsewhere = thread::current().id() != here || rayon::current_num_threads() == 1;
            values.fill(if elsewhere { 2.0 } else { 3.0 });
        },
    );
    assert_eq!(on_worker, [2.0; 64]);
}
