//! A topology and a plan as one JSON object. What is not known is null.

use cpu_topology::{CpuGroup, CpuPoolPlan, CpuSet, CpuTopology};
use serde_json::{Value, json};

/// One line of JSON with a newline.
pub(crate) fn text(topology: &CpuTopology, plan: &CpuPoolPlan) -> Result<String, String> {
    let object = object(topology, plan);
    serde_json::to_string(&object).map(|text| text + "\n").map_err(|error| error.to_string())
}

/// Sets of CPUs are lists as the kernel prints them. All but `online` speak of allowed CPUs.
pub(crate) fn object(topology: &CpuTopology, plan: &CpuPoolPlan) -> Value {
    let perf_cpus = topology.perf_cores().flat_map(|core| core.cpus().iter());
    let classes = topology.classes().iter().map(|class| {
        json!({
            "cpus": class.cpus().to_string(),
            "cores": class.n_cores(),
            "efficiency": class.is_efficiency(),
            "label": class.label(),
        })
    });
    let caches = topology.last_level_caches().iter().map(|cache| {
        json!({ "level": cache.level(), "cpus": cache.cpus().to_string(), "size": cache.size() })
    });
    json!({
        "allowed": Some(topology.allowed_set().to_string()).filter(|_| !topology.is_empty()),
        "online": topology.online().map(ToString::to_string),
        "cores": lists(topology.cores().iter().map(|core| core.cpus())),
        "smt": topology.cores().iter().map(|core| core.cpus().len()).max(),
        "packages": known(lists(topology.packages().iter().map(CpuGroup::cpus))),
        "dies": known(lists(topology.dies().iter().map(CpuGroup::cpus))),
        "clusters": known(lists(topology.clusters().iter().map(CpuGroup::cpus))),
        "numa_nodes": known(topology.numa_nodes().iter().map(node).collect()),
        "memory_nodes": topology.other_numa_nodes(),
        "llcs": known(caches.collect()),
        "classes": classes.collect::<Vec<_>>(),
        "class_signal": topology.class_signal().map(|signal| signal.to_string()),
        "perf_cpus": Some(perf_cpus.collect::<CpuSet>().to_string()).filter(|_| !topology.is_empty()),
        "perf_cores": topology.perf_cores().count(),
        "isolated": topology.isolated().to_string(),
        "virtualized": topology.is_virtualized(),
        "quota": topology.quota().map(|quota| quota.ratio()),
        "plan": {
            "num_threads": plan.num_threads,
            "core_ids": plan.core_ids,
            "coordinator_cpu": plan.coordinator_cpu,
        },
        "notes": topology.notes().iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

fn node(node: &CpuGroup) -> Value {
    json!({ "id": node.id(), "cpus": node.cpus().to_string() })
}

fn lists<'a>(sets: impl Iterator<Item = &'a CpuSet>) -> Vec<Value> {
    sets.map(|set| set.to_string().into()).collect()
}

/// An empty list is something that is not known.
fn known(values: Vec<Value>) -> Option<Vec<Value>> {
    Some(values).filter(|values| !values.is_empty())
}
