//! What to do about what holds packets longest, in a few words: the first thing to try or to look at.

use super::stage::{Stage, StageKey};
use super::{LatencyGround, TestLatency};
use vnettop_sample::{Carrier, CarrierKind, LinkKey, ThreadId, WaitedFor, shell_word};

/// Why a thread waits for a core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitsFor {
    /// Others run there.
    Others,
    /// Its control group may use no more.
    Quota,
    /// It is real-time, and its group may run no longer.
    RealTime,
    /// The hypervisor has it.
    Host,
    /// The core is idle.
    Nobody,
}

/// For a thread that waits for a core, and for whom.
pub(super) fn for_thread(why: WaitsFor, by: Option<&WaitedFor>) -> Option<String> {
    match why {
        WaitsFor::Others => {
            let WaitedFor { name, pid, .. } = by?;
            Some(format!("press p to pin the test, or give {name} another core: taskset -apc CORES {pid}"))
        }
        WaitsFor::Quota => Some("raise that quota: cpu.max (cgroup v1: cpu.cfs_quota_us)".to_owned()),
        WaitsFor::RealTime => Some("raise rt_runtime_us of its group, or give up its priority".to_owned()),
        WaitsFor::Host => Some("only the host can give this machine more of that core".to_owned()),
        WaitsFor::Nobody => None,
    }
}

/// Where it is no thread that waits for a core.
pub(super) fn for_stage(
    (ground, latency): (LatencyGround<'_>, &TestLatency),
    key: StageKey,
    reader: Option<ThreadId>,
) -> Option<String> {
    match key.stage {
        Stage::Qdisc(link) => Some(of_qdisc(ground, latency, link)),
        Stage::Socket => reader.map(|id| format!("see what it does instead: strace -rfp {}", id.tid)),
        _ => None,
    }
}

/// Where a program between two links holds packets, and not for want of a core.
pub(super) fn for_carrier(carrier: &Carrier) -> String {
    match carrier.kind {
        // A virtual machine, and no program that holds a tap.
        CarrierKind::Guest if carrier.name.starts_with("the guest ") => {
            format!("look inside {}: run vnettop there", carrier.name)
        }
        _ => format!("see what it does meanwhile: strace -rfp {}", carrier.pid),
    }
}

fn of_qdisc(ground: LatencyGround<'_>, latency: &TestLatency, link: LinkKey) -> String {
    let name = ground.machine.link(link).map_or("LINK", |link| link.facts.name.as_str());
    let look = ground.machine.space_entry(link.netns).command(&format!("tc -s qdisc show dev {}", shell_word(name)));
    format!("raise the rate of {} or send less ({look}): a longer queue only adds delay", latency.qdisc(link))
}
