//! A core that is full with a test's packets beside what else runs there, while another one idles. Whether the packets are
//! better off there no rule knows: the same setting has raised the rate by 62 % and lowered it by half.

use super::TestMetrics;
use super::cores::Shares;
use super::first_backlog::{self, FirstBacklog};
use super::machine::MachineMetrics;
use super::moves::MoveClass;
use super::paths::{self, softirq};
use vnettop_sample::{CoreId, CoreSet, Duty, HopWay};

/// From this busy share on a core is full; so much of it is the kernel's work, and so much of that softirqs.
const FULL: f64 = 0.9;
const KERNEL: f64 = 0.8;
const SOFTIRQ: f64 = 0.15;
/// From this share of softirq on a core does little else, full or not.
pub(crate) const FORWARDS: f64 = 0.7;
/// From this idle share on a core is idle.
const IDLE: f64 = 0.8;
/// From this idle share on a core has time for what is only tried there.
const CALM: f64 = 0.5;

/// A full core, an idle one, and the place whose packets could go from one to the other.
#[derive(Debug, Clone)]
pub(crate) struct SpareCore<'a> {
    /// Where packets could be put onto another core.
    pub backlog: FirstBacklog<'a>,
    /// The core that handles them.
    pub core: CoreId,
    /// What fills it.
    pub shares: Shares,
    /// The core that has time for them.
    pub idle: CoreId,
}

impl SpareCore<'_> {
    /// The core has no time left, most of it in the kernel.
    pub fn is_full(&self) -> bool {
        is_full(&self.shares)
    }
}

fn is_full(shares: &Shares) -> bool {
    let kernel = shares.system + shares.irq + shares.softirq;
    shares.busy() >= FULL && kernel >= KERNEL && shares.softirq >= SOFTIRQ
}

/// Cores that do nothing and may be given packets: `rps_cpus` refuses isolated ones.
pub(crate) fn idle(metrics: &TestMetrics) -> CoreSet {
    let cores = metrics.machine.cores.iter().filter(|core| core.shares().is_some_and(|shares| shares.idle >= IDLE));
    let isolated = &metrics.machine.facts.topology.isolated;
    cores.map(|core| core.place.core).filter(|&core| !isolated.contains(core)).collect()
}

/// The core that is idle the most, though not as much as the word asks, and at least half of its time; no end's, and not isolated.
pub(crate) fn calmest_beside(machine: &MachineMetrics, ends: [&CoreSet; 2]) -> Option<CoreId> {
    let isolated = &machine.facts.topology.isolated;
    let cores = machine.cores.iter().filter_map(|core| Some((core.place.core, core.shares()?.idle)));
    let free = cores.filter(|(core, _)| !isolated.contains(*core) && !ends.iter().any(|end| end.contains(*core)));
    free.filter(|(_, idle)| *idle >= CALM).max_by(|one, other| one.1.total_cmp(&other.1)).map(|(core, _)| core)
}

/// The idle core that is nearest to the first of these ends and that none of them is on.
pub(crate) fn idle_beside(metrics: &TestMetrics, ends: [&CoreSet; 2]) -> Option<CoreId> {
    let topology = &metrics.machine.facts.topology;
    let from = ends.iter().find_map(|end| end.first());
    let nearness = |core: CoreId| match from.and_then(|from| MoveClass::of(topology, from, core)) {
        Some(MoveClass::Cluster) => 0,
        Some(MoveClass::Llc) => 1,
        None | Some(MoveClass::Node) => 2,
        // It takes its time from the end beside it.
        Some(MoveClass::Smt) => 3,
        Some(MoveClass::Socket) => 4,
    };
    let idle = idle(metrics);
    let free = idle.iter().filter(|&core| !ends.iter().any(|end| end.contains(core)));
    free.min_by_key(|&core| (nearness(core), core))
}

/// The first place whose packets are handled on a core that has no time for them, where nothing puts them onto a core and TCP
/// does not see them out of order; none where no core idles.
pub(crate) fn find(metrics: &TestMetrics) -> Option<SpareCore<'_>> {
    let taken = |shares: &Shares| is_full(shares) || shares.softirq >= FORWARDS;
    let cores = metrics.machine.cores.iter().filter_map(|core| Some((core.place.core, core.shares()?)));
    let taken: Vec<(CoreId, Shares)> = cores.filter(|(_, shares)| taken(shares)).collect();
    // It is asked on every tick.
    if taken.is_empty() || idle(metrics).is_empty() {
        return None;
    }
    let open = first_backlog::all(metrics).into_iter().filter(|one| !one.is_steered() && !one.is_disordered(metrics));
    open.into_iter().find_map(|backlog| {
        let handled = handled(metrics, &backlog);
        let here = taken.iter().filter(|(core, _)| handled.contains(*core));
        let rank = |shares: &Shares| (is_full(shares), shares.softirq);
        let &(core, shares) = here.max_by(|(_, one), (_, other)| {
            let (one, other) = (rank(one), rank(other));
            one.0.cmp(&other.0).then(one.1.total_cmp(&other.1))
        })?;
        let [senders, receivers] = backlog.ends(metrics);
        let taken: CoreSet =
            receivers.iter().chain(idle(metrics).iter().filter(|&core| is_on(metrics, &backlog, core))).collect();
        let idle = idle_beside(metrics, [&senders, &taken])?;
        Some(SpareCore { backlog, core, shares, idle })
    })
}

/// The cores that handle the packets there: as counted, else as the settings tell.
fn handled(metrics: &TestMetrics, backlog: &FirstBacklog<'_>) -> CoreSet {
    if let Some(counted) = &backlog.cores {
        return counted.clone();
    }
    let key = backlog.link.facts.key();
    let cores = backlog.connections.iter().filter_map(|connection| {
        let path = paths::found(&metrics.paths, connection)?;
        let at = path.hops.iter().position(|hop| hop.link == key && hop.way == HopWay::Received)?;
        softirq::by_settings(metrics, connection, path).swap_remove(at).ok()
    });
    cores.flat_map(|one| one.cores.iter().collect::<Vec<_>>()).collect()
}

/// A thread of an end was there last, however little it does; one that only controls a test does not count.
fn is_on(metrics: &TestMetrics, backlog: &FirstBacklog<'_>, core: CoreId) -> bool {
    let ends: Vec<u32> = backlog.connections.iter().flat_map(|one| [one.from.pid, one.to.pid]).flatten().collect();
    let mut there = metrics.machine.threads.iter().filter(|thread| thread.sample.core == core);
    there.any(|thread| {
        let works = thread.sample.duty != Duty::Control && thread.cpu.is_some_and(|cpu| cpu > 0.0);
        works && ends.contains(&thread.sample.id.pid)
    })
}

#[cfg(test)]
mod tests {
    use super::idle_beside;
    use crate::placement::tests::machine::Machine;
    use vnettop_sample::CoreSet;

    #[test]
    fn the_nearest_idle_core_that_no_end_is_on_is_taken() {
        let end = |cores: &str| -> CoreSet { cores.parse().expect("cores") };
        let near = |machine: Machine, ends: [&str; 2]| {
            let [sender, receiver] = ends.map(end);
            idle_beside(&machine.metrics(), [&sender, &receiver])
        };
        let kunpeng = |busy| Machine::kunpeng().busy(busy, 0.9, 0.0);
        assert_eq!(near(kunpeng("5"), ["5", "6"]), Some(4), "of its cluster");
        assert_eq!(near(kunpeng("4-7"), ["5", "91"]), Some(0), "of its cache");
        assert_eq!(near(kunpeng("0-31"), ["5", "91"]), Some(32), "of its socket");
        assert_eq!(near(kunpeng("0-127"), ["5", "91"]), None, "no core idles");
        assert_eq!(
            near(Machine::xeon().busy("0-19,41-59", 0.9, 0.0), ["0", "1"]),
            Some(40),
            "its sibling before another node"
        );
        assert_eq!(near(Machine::xeon().busy("0", 0.9, 0.0), ["0", "0"]), Some(1), "and after a core beside it");
        assert_eq!(near(Machine::small(4).isolated("0,2"), ["1", "1"]), Some(3), "isolated ones take no packets");
    }
}
