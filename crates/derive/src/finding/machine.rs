//! What the machine does behind a benchmark's back: clocks held down, pages and interrupts moved, affinity masks changed by
//! something else than vnettop (told, not fought), full backlogs and stolen time of single cores, vnettop's own ticks that came
//! late.

use super::threads::busy;
use super::{Diagnostic, LintInput};
use crate::TestMetrics;
use crate::cores::CoreLoad;
use crate::figure::{count, percent, rate};
use vnettop_sample::{CoreId, OwnCost, Policy, RealtimeRefusal, Side};

/// A cap closer to the top than this share is none.
const CAPPED: f64 = 0.98;

fn policy<'a>(input: &LintInput<'a>) -> Option<&'a Policy> {
    busy(input.metrics).next().map(|_| &input.metrics.machine.facts.host.policy)
}

/// The clock may not go as high as it could.
pub(super) fn capped(input: &LintInput<'_>) -> Option<Diagnostic> {
    let policy = policy(input)?;
    let (limit, most) = (policy.limit_khz? as f64, policy.most_khz? as f64);
    (limit < CAPPED * most).then(|| {
        let (at, of) = (limit / 1e6, most / 1e6);
        let text = format!("core 0 is capped at {at:.1} of its {of:.1} GHz (cpufreq/scaling_max_freq)");
        Diagnostic::new(text, [("limit_khz", limit), ("most_khz", most)])
    })
}

/// A governor that saves power at the cost of speed.
pub(super) fn powersave(input: &LintInput<'_>) -> Option<Diagnostic> {
    let text = "core 0's governor powersave may cap the clock: set scaling_governor to performance";
    (policy(input)?.governor.as_deref()? == "powersave").then(|| Diagnostic::new(text, []))
}

/// The kernel moves pages and threads between nodes.
pub(super) fn balancing(input: &LintInput<'_>) -> Option<Diagnostic> {
    let nodes = input.metrics.machine.facts.topology.nodes;
    let text = "NUMA balancing migrates threads and pages (off: sysctl kernel.numa_balancing=0)";
    (policy(input)?.numa_balancing? && nodes > 1).then(|| Diagnostic::new(text, [("nodes", f64::from(nodes))]))
}

/// Interrupts may follow the pins.
pub(super) fn irqbalance(input: &LintInput<'_>) -> Option<Diagnostic> {
    let beside = policy(input)?.irqbalance? && input.metrics.threads.iter().any(|thread| thread.pinned);
    let text = "irqbalance may put interrupts on pinned cores (systemctl stop irqbalance)";
    beside.then(|| Diagnostic::new(text, []))
}

/// How long one late tick is worth a sentence, s; the count itself stays in the header.
const RECENT_S: u64 = 30;

/// Ticks that began late or not at all, the last of them not long ago.
pub(super) fn late(input: &LintInput<'_>) -> Option<Diagnostic> {
    let (metrics, history) = (input.metrics, input.history);
    let ticks = metrics.machine.own.late_ticks;
    let what = if ticks == 1 { "1 sample was late".to_owned() } else { format!("{ticks} samples were late") };
    let remedy = remedy(&metrics.machine.own);
    history.was_late(metrics.machine.at_ns, RECENT_S).then(|| {
        let text = format!("{what} since the start; within such a gap only the mean rate is known{remedy}");
        Diagnostic::new(text, [("late_ticks", ticks as f64)])
    })
}

/// What would let the sampler go before the benchmark.
fn remedy(own: &OwnCost) -> &'static str {
    match own.ordinary {
        _ if own.realtime => "",
        // Recordings of older versions do not tell.
        None | Some(RealtimeRefusal::NoRight) => {
            "; as root or with CAP_SYS_NICE vnettop can sample at real-time priority"
        }
        Some(RealtimeRefusal::NotAsked) => "; without --no-realtime vnettop samples at real-time priority",
        Some(RealtimeRefusal::Refused) => {
            "; no real-time priority for vnettop: a cgroup (cpu.rt_runtime_us) or seccomp may forbid it"
        }
        Some(RealtimeRefusal::GivenBack) => {
            "; sampling took too much of a core for real-time priority: use a longer interval (-d)"
        }
    }
}

/// The newest change, an undone pin before any other.
pub(super) fn changed_masks(input: &LintInput<'_>) -> Option<Diagnostic> {
    let changes = &input.diagnosis.masks.changes;
    let change = changes.iter().max_by_key(|change| (change.was_pin, change.at_ns))?;
    let what = if change.was_pin { "undid the pin of" } else { "changed the affinity of" };
    let others = match changes.len() - 1 {
        0 => String::new(),
        1 => "; 1 more mask changed".to_owned(),
        more => format!("; {more} more masks changed"),
    };
    // Seen with every version: a server resets its mask after a test whose client asked for `-A n,m`.
    let who = if change.name == "iperf3" && change.side == Some(Side::Server) {
        " (an iperf3 server does it after a client's -A n,m)"
    } else {
        ""
    };
    let text = format!(
        "another process {what} thread {}: cores {} → {}{who}{others}",
        change.thread.tid, change.from, change.to,
    );
    let pins = changes.iter().filter(|change| change.was_pin).count();
    Some(Diagnostic::new(text, [("masks", count(changes.len())), ("pins_undone", count(pins))]))
}

/// Packets dropped by a full backlog (`softnet_stat`, second column).
pub(super) fn dropped(input: &LintInput<'_>) -> Option<Diagnostic> {
    let trouble = CoreFault::of(input.metrics, |load| load.softnet_dropped_per_s)?;
    let text = format!(
        "core {} drops {} packets/s: its backlog is full{} (net.core.netdev_max_backlog)",
        trouble.core,
        rate(trouble.worst),
        trouble.beside("packets/s")
    );
    Some(Diagnostic::new(text, trouble.numbers("dropped_per_s")))
}

/// Softirq rounds that ran out of budget or time (`softnet_stat`, third column).
pub(super) fn squeezed(input: &LintInput<'_>) -> Option<Diagnostic> {
    let trouble = CoreFault::of(input.metrics, |load| load.softnet_squeezed_per_s)?;
    let text = format!(
        "core {} exhausts its softirq budget {} times/s{} (net.core.netdev_budget)",
        trouble.core,
        rate(trouble.worst),
        trouble.beside("times/s")
    );
    Some(Diagnostic::new(text, trouble.numbers("squeezed_per_s")))
}

/// The core that has it worst, and the sum over all that have it.
struct CoreFault {
    core: CoreId,
    worst: f64,
    sum: f64,
    cores: usize,
}

impl CoreFault {
    fn of(metrics: &TestMetrics, of: impl Fn(&CoreLoad) -> Option<f64>) -> Option<Self> {
        let mut trouble = Self { core: 0, worst: 0.0, sum: 0.0, cores: 0 };
        for core in &metrics.machine.cores {
            let Some(per_s) = core.load.as_ref().and_then(&of).filter(|&per_s| per_s > 0.0) else { continue };
            (trouble.sum, trouble.cores) = (trouble.sum + per_s, trouble.cores + 1);
            if per_s > trouble.worst {
                (trouble.worst, trouble.core) = (per_s, core.place.core);
            }
        }
        (trouble.cores > 0).then_some(trouble)
    }

    /// What all cores have together, where it is more than one.
    fn beside(&self, unit: &str) -> String {
        let Self { sum, cores, .. } = *self;
        if cores == 1 { String::new() } else { format!("; {} {unit} on {cores} cores together", rate(sum)) }
    }

    fn numbers(&self, name: &'static str) -> [(&'static str, f64); 3] {
        [("core", f64::from(self.core)), (name, self.worst), ("cores", count(self.cores))]
    }
}

/// From this share on, time taken by the hypervisor is worth a sentence.
const STOLEN: f64 = 0.05;

/// Time that the hypervisor gave to others (`steal` of `/proc/stat`).
pub(super) fn stolen(input: &LintInput<'_>) -> Option<Diagnostic> {
    let steal = input.diagnosis.other_causes.recent_steal().filter(|&steal| steal >= STOLEN)?;
    let text = format!("{} % steal on your threads' cores: other guests of the hypervisor take it", percent(steal));
    Some(Diagnostic { text, parts: None, cost: Some(steal), numbers: vec![("steal", steal)] })
}
