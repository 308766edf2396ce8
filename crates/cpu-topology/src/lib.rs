#![doc = include_str!("../README.md")]

mod apple;
mod class;
mod cores;
mod cpu_list;
mod cpu_set;
mod env;
mod error;
mod explain;
mod freebsd;
mod linux;
mod note;
mod pin;
mod places;
mod plan;
mod quota;
mod region;
mod request;
mod snapshot;
mod source;
mod sys;
mod this_process;
mod topology;
mod windows;

pub use crate::apple::SysctlSource;
pub use crate::class::{CoreClass, Signal};
pub use crate::cores::PhysicalCore;
pub use crate::cpu_list::{MAX_CPU_ID, parse_cpu_list, parse_cpu_mask, parse_thread_siblings_list};
pub use crate::cpu_set::CpuSet;
pub use crate::env::{THREAD_VARIABLES, ThreadCount, ThreadSource, resolve_cpu_threads_with};
pub use crate::error::ParseError;
pub use crate::explain::{PlanReport, Reason, explain_cpu_pool, explain_cpu_pool_in};
pub use crate::note::Note;
pub use crate::pin::{PinError, PinGuard, current_thread_affinity, pin_current_thread};
pub use crate::places::{CacheDomain, CpuGroup};
pub use crate::plan::{
    CpuPoolPlan, clamp_intra_op_threads, perf_core_count_in, physical_core_count_in,
    physical_core_cpus_in, plan_cpu_pool_in, resolve_threads_and_affinity_in,
};
pub use crate::quota::Quota;
pub use crate::region::{Part, Region, draw_tree};
pub use crate::request::PlanRequest;
pub use crate::snapshot::Snapshot;
pub use crate::source::{AllowedFrom, AllowedSource};
pub use crate::this_process::{
    perf_core_count, physical_core_count, physical_core_cpus, plan_cpu_pool, process_affinity_cpus,
    resolve_cpu_threads, resolve_threads_and_affinity,
};
pub use crate::topology::{CpuTopology, SYSFS_CPU_ROOT};
pub use crate::windows::{GroupMask, WindowsFacts};
