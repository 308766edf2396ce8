//! What it takes to find out about this host, and how many cores each library finds: everything is read anew each time.
//!
//! ```text
//! cargo bench --manifest-path benches/peers/Cargo.toml --bench topology --features topology --ignore-rust-version
//! ```
//!
//! A peer that is not built in is named, with what it takes to have it. The libraries differ in what they read: num_cpus counts
//! cores, gdt-cpus and hwloc find classes and caches as well, and cpu-topology also the quota.

#![expect(missing_docs, reason = "criterion's macros make public items")]
#![forbid(unsafe_code)]

use std::time::Duration;

use cpu_topology::CpuTopology;
use criterion::{Criterion, criterion_group, criterion_main};

/// A library, and how it counts this host's cores; or what is missing.
type Peer = (&'static str, Result<fn() -> usize, &'static str>);

fn peers() -> [Peer; 4] {
    [("cpu-topology", Ok(ours)), num_cpus(), gdt_cpus(), hwlocality()]
}

fn ours() -> usize {
    CpuTopology::detect().cores().len()
}

#[cfg(feature = "num_cpus")]
fn num_cpus() -> Peer {
    ("num_cpus", Ok(num_cpus::get_physical))
}

#[cfg(not(feature = "num_cpus"))]
fn num_cpus() -> Peer {
    ("num_cpus", Err("--features num_cpus"))
}

#[cfg(feature = "gdt-cpus")]
fn gdt_cpus() -> Peer {
    let count =
        || gdt_cpus::CpuInfo::detect().expect("a host that gdt-cpus knows").num_physical_cores();
    ("gdt-cpus", Ok(count))
}

#[cfg(not(feature = "gdt-cpus"))]
fn gdt_cpus() -> Peer {
    ("gdt-cpus", Err("--features gdt-cpus --ignore-rust-version"))
}

#[cfg(feature = "hwlocality")]
fn hwlocality() -> Peer {
    use hwlocality::Topology;
    use hwlocality::object::types::ObjectType;
    let count = || {
        let topology = Topology::new().expect("a host that hwloc knows");
        topology.objects_with_type(ObjectType::Core).count()
    };
    ("hwlocality", Ok(count))
}

#[cfg(not(feature = "hwlocality"))]
fn hwlocality() -> Peer {
    (
        "hwlocality",
        Err("apt-get install libhwloc-dev libudev-dev pkg-config, and --features hwlocality"),
    )
}

fn detect(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("detect");
    for (name, peer) in peers() {
        match peer {
            Ok(count) => {
                eprintln!("{name}: {} cores", count());
                group.bench_function(name, |bencher| bencher.iter(count));
            }
            Err(missing) => eprintln!("{name}: not built in (try: {missing})"),
        }
    }
    group.finish();
}

criterion_group! {
    name = all;
    config = Criterion::default().warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(3));
    targets = detect
}
criterion_main!(all);
