//! Lists and masks of CPUs, and the sets made of them, against readings that know nothing of ranges.

#![no_main]

use std::collections::BTreeSet;

use cpu_topology::{
    CpuSet, MAX_CPU_ID, parse_cpu_list, parse_cpu_mask, parse_thread_siblings_list,
};
use libfuzzer_sys::arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;

/// Sets with more CPUs are not compared one by one.
const MANY: usize = 4096;

fuzz_target!(|data: &[u8]| {
    let Ok(texts) = Unstructured::new(data).arbitrary::<(&str, &str)>() else { return };
    let sets = [texts.0, texts.1].map(|text| {
        mask(text);
        list(text)
    });
    algebra(&sets[0], &sets[1]);
});

/// Reads a list; the empty set if it is none.
fn list(text: &str) -> CpuSet {
    let read = parse_cpu_list(text);
    let tolerant = parse_thread_siblings_list(text);
    assert!(tolerant.len() <= MAX_CPU_ID + 1 && tolerant.iter().all(|cpu| *cpu <= MAX_CPU_ID));
    match (&read, by_hand(text)) {
        (_, Naive::Large) => {}
        (Ok(set), Naive::Cpus(cpus)) => {
            assert!(set.iter().eq(cpus.iter().copied()), "{text:?}");
            assert_eq!(tolerant.into_iter().collect::<BTreeSet<_>>(), cpus, "{text:?}");
        }
        (read, naive) => assert_eq!(read.is_err(), naive == Naive::Wrong, "{text:?}: {read:?}"),
    }
    read.unwrap_or_default()
}

#[derive(PartialEq)]
enum Naive {
    Cpus(BTreeSet<usize>),
    Large,
    Wrong,
}

/// The grammar of lists, piece by piece and CPU by CPU.
fn by_hand(text: &str) -> Naive {
    let blank = |character: char| character.is_ascii_whitespace() || character == '\0';
    let mut cpus = BTreeSet::new();
    let mut large = false;
    for piece in text.split(',').map(|piece| piece.trim_matches(blank)).filter(|p| !p.is_empty()) {
        let number = |text: &str| {
            let text = text.trim_matches(blank);
            let digits = !text.is_empty() && text.chars().all(|digit| digit.is_ascii_digit());
            digits.then(|| text.parse::<u128>().unwrap_or(u128::MAX))
        };
        let (range, group) = piece.split_once(':').map_or((piece, None), |(a, b)| (a, Some(b)));
        let (used, size) = match group.map(|group| group.split_once('/')) {
            None => (1, 1),
            Some(None) => match number(group.unwrap_or("")) {
                Some(old) if old <= u128::from(u64::MAX) => (1, 1),
                _ => return Naive::Wrong,
            },
            Some(Some((used, size))) => match (number(used), number(size)) {
                (Some(used), Some(size)) => (used, size),
                _ => return Naive::Wrong,
            },
        };
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (Some(first), Some(last)) = (number(first), number(last)) else { return Naive::Wrong };
        if first > last
            || last > MAX_CPU_ID as u128
            || used == 0
            || used > size
            || size > u128::from(u64::MAX)
        {
            return Naive::Wrong;
        }
        if last - first >= MANY as u128 {
            large = true;
            continue;
        }
        let kept = (first..=last).filter(|cpu| (cpu - first) % size < used);
        cpus.extend(kept.map(|cpu| cpu as usize));
    }
    if large { Naive::Large } else { Naive::Cpus(cpus) }
}

/// A mask has the bits of its digits, the last digit the lowest four.
fn mask(text: &str) {
    let Ok(set) = parse_cpu_mask(text) else { return };
    let blank = |character: char| character.is_ascii_whitespace() || character == '\0';
    let mut cpus = BTreeSet::new();
    for (word, digits) in text.trim_matches(blank).rsplit(',').enumerate() {
        for (place, digit) in digits.trim_matches(blank).chars().rev().enumerate() {
            let bits = digit.to_digit(16).expect("a digit");
            let first = word * 32 + place * 4;
            cpus.extend((0..4).filter(|bit| bits >> bit & 1 == 1).map(|bit| first + bit));
        }
    }
    assert!(set.iter().eq(cpus.iter().copied()), "{text:?}");
}

/// Unions and the like, asked at the ends of all ranges and beside them.
fn algebra(left: &CpuSet, right: &CpuSet) {
    let (union, both, rest) = (left.union(right), left.intersection(right), left.difference(right));
    if left.len() + right.len() <= MANY {
        let near = left.iter().chain(right.iter());
        for cpu in near.flat_map(|cpu| [cpu.saturating_sub(1), cpu, cpu + 1]) {
            let (l, r) = (left.contains(cpu), right.contains(cpu));
            let found = [union.contains(cpu), both.contains(cpu), rest.contains(cpu)];
            assert_eq!(found, [l || r, l && r, l && !r], "CPU {cpu} of {left} and {right}");
        }
    }
    assert_eq!(union.len() + both.len(), left.len() + right.len());
    assert_eq!(rest.len() + both.len(), left.len());
    assert_eq!(left.is_subset(right), rest.is_empty());
    for set in [union, both, rest] {
        assert_eq!(parse_cpu_list(&set.to_string()).as_ref(), Ok(&set));
        assert_eq!((set.first(), set.last()), (set.iter().next(), set.iter().last()));
    }
}
