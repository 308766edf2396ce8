//! Speeds of cores in, classes out.

use super::*;

/// Cores of so many CPUs each; the class is the index until they are classified.
fn cores(threads: &[usize]) -> Vec<PhysicalCore> {
    let mut next = 0;
    threads
        .iter()
        .enumerate()
        .map(|(index, n)| {
            let cpus = (next..next + n).collect();
            next += n;
            PhysicalCore { cpus, siblings_total: *n, class: index }
        })
        .collect()
}

/// Lists of CPUs by kind, and numbers by signal in the order of the cores, which `cores` makes ascend.
fn speeds(pmu: Vec<(&'static str, CpuSet)>, numbers: &[(Signal, &[u64])]) -> Speeds<'static> {
    let numbers =
        numbers.iter().map(|(signal, values)| (*signal, values.to_vec())).collect::<Vec<_>>();
    let number = move |signal: Signal, core: &PhysicalCore| {
        let values = &numbers.iter().find(|(of, _)| *of == signal)?.1;
        values.get(core.class).copied()
    };
    Speeds { pmu, number: Box::new(number), ..Speeds::unknown() }
}

/// CPUs of each class, `!` before those of efficiency cores.
fn show(classes: &[CoreClass]) -> Vec<String> {
    classes
        .iter()
        .map(|class| format!("{}{}", if class.efficiency { "!" } else { "" }, class.cpus))
        .collect()
}

#[test]
fn a_gap_of_a_quarter_makes_a_class() {
    /// Values, and the rank of each.
    const CASES: &[(&[u64], &[usize])] = &[
        (&[1024], &[0]),
        (&[1024, 1024], &[0, 0]),
        (&[848, 1024], &[0, 0]),
        (&[280, 855, 1024], &[1, 0, 0]),
        (&[718, 731, 997, 1017, 1024], &[1, 1, 0, 0, 0]),
        (&[1024, 279, 905, 866, 984], &[0, 1, 0, 0, 0]),
        (&[4_200_000, 5_376_760, 5_400_000], &[1, 0, 0]),
        (&[5_100_000, 3_300_000], &[0, 1]),
        (&[100, 125], &[1, 0]),
        (&[100, 124], &[0, 0]),
        (&[1, 10, 100], &[2, 1, 0]),
        (&[u64::MAX, 1], &[0, 1]),
    ];
    for (values, expected) in CASES {
        assert_eq!(ranks(values), *expected, "values {values:?}");
    }
}

#[test]
fn without_any_signal_there_is_one_class_of_performance_cores() {
    let mut machine = cores(&[2, 2, 1]);
    let (classes, signal, incomplete) = classify(&mut machine, &Speeds::unknown());
    assert_eq!(show(&classes), ["0-4"]);
    assert_eq!((signal, incomplete.len()), (None, 0));
}

#[test]
fn no_cores_make_no_class() {
    assert!(classify(&mut [], &Speeds::unknown()).0.is_empty());
}

#[test]
fn the_first_signal_that_tells_cores_apart_decides() {
    let mut machine = cores(&[1, 1, 1, 1]);
    let speeds = speeds(
        Vec::new(),
        &[
            (Signal::CpuCapacity, &[1024, 1024, 1024, 1024]),
            (Signal::BaseFrequency, &[2, 2, 1, 1]),
            (Signal::MaxFreq, &[1, 2, 1, 2]),
        ],
    );
    let (classes, signal, _) = classify(&mut machine, &speeds);
    assert_eq!(show(&classes), ["0-1", "!2-3"]);
    assert_eq!(signal, Some(Signal::BaseFrequency));
    assert_eq!(machine.iter().map(|core| core.class).collect::<Vec<_>>(), [0, 0, 1, 1]);
}

#[test]
fn a_signal_that_misses_cores_is_reported_and_not_used() {
    let mut machine = cores(&[1, 1, 1]);
    let speeds = speeds(Vec::new(), &[(Signal::CpuCapacity, &[1024, 0])]);
    let (classes, signal, incomplete) = classify(&mut machine, &speeds);
    assert_eq!(show(&classes), ["0-2"]);
    assert_eq!((signal, incomplete), (None, vec![(Signal::CpuCapacity, 1)]));
}

#[test]
fn of_three_classes_the_slowest_is_the_efficiency_one() {
    let mut machine = cores(&[1, 1, 1]);
    let speeds = speeds(Vec::new(), &[(Signal::CpuCapacity, &[300, 1024, 700])]);
    let (classes, _, _) = classify(&mut machine, &speeds);
    assert_eq!(show(&classes), ["1", "2", "!0"]);
}

#[test]
fn lists_of_counters_beat_numbers() {
    let mut machine = cores(&[2, 2, 1, 1, 1]);
    let pmu = vec![
        ("core", (0..4).collect()),
        ("atom", (4..7).collect()),
        ("lowpower", (6..7).collect()),
    ];
    let speeds = speeds(pmu, &[(Signal::MaxFreq, &[2_600, 2_600, 3_600, 3_600, 3_600])]);
    let (classes, signal, _) = classify(&mut machine, &speeds);
    assert_eq!(show(&classes), ["0-3", "!4-5", "!6"]);
    assert_eq!(signal, Some(Signal::PmuLists));
    assert_eq!(classes[2].label(), Some("lowpower"));
}

#[test]
fn low_power_cores_on_the_list_of_efficiency_cores_are_a_class_by_their_frequency() {
    let mut machine = cores(&[2, 1, 1]);
    let pmu = vec![("core", (0..2).collect()), ("atom", (2..4).collect())];
    let speeds = speeds(pmu, &[(Signal::MaxFreq, &[4_800, 3_800, 2_500])]);
    assert_eq!(show(&classify(&mut machine, &speeds).0), ["0-1", "!2", "!3"]);
}

#[test]
fn lists_that_miss_a_core_are_not_used() {
    let mut machine = cores(&[1, 1, 1]);
    let pmu = vec![("core", (0..1).collect()), ("atom", (1..2).collect())];
    let speeds = speeds(pmu, &[(Signal::CpuCapacity, &[1024, 1024, 400])]);
    let (classes, signal, _) = classify(&mut machine, &speeds);
    assert_eq!(show(&classes), ["0-1", "!2"]);
    assert_eq!(signal, Some(Signal::CpuCapacity));
}

#[test]
fn efficiency_cores_alone_are_performance_cores() {
    let mut machine = cores(&[1, 1]);
    let pmu = vec![("core", CpuSet::new()), ("atom", (0..2).collect())];
    assert_eq!(show(&classify(&mut machine, &speeds(pmu, &[])).0), ["0-1"]);
    let mut machine = cores(&[1, 1]);
    let pmu = vec![("atom", (0..2).collect()), ("lowpower", (1..2).collect())];
    assert_eq!(show(&classify(&mut machine, &speeds(pmu, &[])).0), ["0", "!1"]);
}

#[test]
fn siblings_and_frequency_together_tell_a_hybrid() {
    /// Logical CPUs and frequency of each core, and the classes.
    type Case = (&'static [usize], &'static [u64], &'static [&'static str]);
    const CASES: &[Case] = &[
        (&[2, 2, 1, 1, 1], &[3_200, 3_200, 3_100, 3_100, 1_600], &["0-3", "!4-5", "!6"]),
        // A sibling offline is no efficiency core.
        (&[2, 2, 1], &[4_000, 4_000, 4_000], &["0-4"]),
        // Nor is a favoured core one of another kind.
        (&[2, 2, 1], &[5_400, 5_376, 5_376], &["0-4"]),
        (&[1, 1], &[4_000, 2_000], &["0", "!1"]),
    ];
    for (threads, freq, expected) in CASES {
        let mut machine = cores(threads);
        let speeds = speeds(Vec::new(), &[(Signal::MaxFreq, freq)]);
        assert_eq!(show(&classify(&mut machine, &speeds).0), *expected, "frequencies {freq:?}");
    }
}

#[test]
fn the_rest_of_the_machine_may_bridge_a_gap() {
    /// Numbers of the two cores, those of the CPUs that are not ours, and the classes.
    type Case = (&'static [u64], &'static [u64], &'static [&'static str]);
    const CASES: &[Case] = &[
        (&[236, 166], &[], &["0", "!1"]),
        // Favoured cores of one kind: the steps between them are small.
        (&[236, 166], &[176, 191, 211, 231], &["0-1"]),
        // The efficiency cores are not ours; those in the middle are none.
        (&[1024, 700], &[300], &["0", "1"]),
        (&[1024, 1000], &[300], &["0-1"]),
        (&[300, 300], &[1024], &["0-1"]),
    ];
    for (values, others, expected) in CASES {
        let mut machine = cores(&[1, 1]);
        let mut speeds = speeds(Vec::new(), &[(Signal::HighestPerf, values)]);
        speeds.others = Box::new(|_| others.to_vec());
        assert_eq!(show(&classify(&mut machine, &speeds).0), *expected, "{values:?}, {others:?}");
    }
}

#[test]
fn designs_of_low_power_tell_where_capacity_does_not() {
    /// Capacity, maximum frequency and whether the design is for low power, of each core; and the classes.
    type Case =
        (&'static [u64], &'static [u64], &'static [bool], &'static [&'static str], Option<Signal>);
    const CASES: &[Case] = &[
        (&[], &[1_800, 1_900], &[true, false], &["1", "!0"], Some(Signal::Design)),
        (&[1024, 1024], &[1_800, 1_900], &[true, false], &["1", "!0"], Some(Signal::Design)),
        // Two clusters of low power at different rates, next to fast cores.
        (&[], &[900, 1_500, 2_000], &[true, true, false], &["2", "!1", "!0"], Some(Signal::Design)),
        // Unequal capacities are a judgement.
        (&[850, 1024], &[1_800, 1_900], &[true, false], &["0-1"], None),
        // Low power everywhere: the clock rate may tell, and slow twins are no efficiency cores.
        (&[], &[1_000, 1_500], &[true, true], &["1", "0"], Some(Signal::MaxFreq)),
    ];
    for (capacity, freq, low_power, expected, signal) in CASES {
        let mut machine = cores(&vec![1; low_power.len()]);
        let numbers = [(Signal::CpuCapacity, *capacity), (Signal::MaxFreq, *freq)];
        let mut speeds = speeds(Vec::new(), &numbers);
        speeds.design = Box::new(|core| {
            let low_power = low_power[core.first_cpu()];
            Some(CoreDesign { key: u64::from(low_power), low_power })
        });
        let (classes, found, _) = classify(&mut machine, &speeds);
        assert_eq!(
            (show(&classes), found),
            (expected.iter().map(|c| (*c).to_owned()).collect(), *signal)
        );
    }
}
