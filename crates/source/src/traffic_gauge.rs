//! Whether packets pass a machine on which nothing is watched, and whether one of its cores is full: what drops them, and who uses
//! the cores, is read only then.

use vnettop_sample::{CoreCounters, CoreId, LinkCounters, LinkKey, row_of};

/// Time between two looks, ns.
const LOOK_NS: u64 = 900_000_000;
/// Packets a second, in and out of one link, that somebody comes to look at.
const PASSES: f64 = 1e3;
/// Share of its time that a full core may be idle.
const IDLE: f64 = 0.08;

/// The counters of the last look, and what it found.
#[derive(Debug, Clone, Default)]
pub(crate) struct TrafficGauge {
    looked_at_ns: u64,
    /// Packets in and out of each link, sorted.
    packets: Vec<(LinkKey, u64)>,
    /// Time that each core was idle, and all of its time, clock ticks, sorted.
    ticks: Vec<(CoreId, [u64; 2])>,
    /// Packets pass.
    passes: bool,
    /// A core is full as well.
    pub fills_a_core: bool,
}

impl TrafficGauge {
    /// Takes the counters of a tick; packets pass, or somebody is watched, so that a flow may begin.
    pub fn passes_or_watches(
        &mut self,
        (counters, cores): (&[LinkCounters], &[CoreCounters]),
        is_watching: bool,
        now_ns: u64,
    ) -> bool {
        self.observe(counters, cores, is_watching, now_ns);
        is_watching || self.passes
    }

    /// Takes the counters of a tick; on a machine that watches somebody nothing is found.
    fn observe(&mut self, counters: &[LinkCounters], cores: &[CoreCounters], is_watching: bool, now_ns: u64) {
        if is_watching {
            *self = Self::default();
            return;
        }
        let elapsed_ns = now_ns.saturating_sub(self.looked_at_ns);
        if elapsed_ns < LOOK_NS {
            return;
        }
        let packets: Vec<_> = counters.iter().map(|row| (row.key(), row.rx_packets + row.tx_packets)).collect();
        let ticks: Vec<_> = cores.iter().map(|core| (core.core, [core.idle, all_ticks(core)])).collect();
        let most =
            packets.iter().filter_map(|(link, now)| now.checked_sub(row_of(&self.packets, link, |row| row.0)?.1));
        let least = PASSES * elapsed_ns as f64 / 1e9;
        self.passes = most.max().is_some_and(|most| most as f64 >= least);
        let is_full = |(core, [idle, all]): &(CoreId, [u64; 2])| {
            let before = row_of(&self.ticks, core, |row| row.0);
            let rise =
                before.and_then(|(_, before)| Some((idle.saturating_sub(before[0]), all.checked_sub(before[1])?)));
            rise.is_some_and(|(idle, all)| all > 0 && idle as f64 <= IDLE * all as f64)
        };
        self.fills_a_core = self.passes && ticks.iter().any(is_full);
        (self.packets, self.ticks, self.looked_at_ns) = (packets, ticks, now_ns);
    }
}

fn all_ticks(core: &CoreCounters) -> u64 {
    core.user + core.system + core.irq + core.softirq + core.steal + core.idle
}

#[cfg(test)]
mod tests {
    use super::*;
    use vnettop_sample::Ifindex;

    fn link(packets: u64) -> LinkCounters {
        LinkCounters { netns: 1, ifindex: Ifindex(2), rx_packets: packets, ..LinkCounters::default() }
    }

    fn core(busy: u64, idle: u64) -> CoreCounters {
        CoreCounters { core: 3, softirq: busy, idle, ..CoreCounters::default() }
    }

    #[test]
    fn what_passes_is_looked_at_second_by_second_while_nobody_is_watched() {
        let mut gauge = TrafficGauge::default();
        let mut found = |second: u64, packets, (busy, idle), is_watching| {
            gauge.observe(&[link(packets)], &[core(busy, idle)], is_watching, second * 1_000_000_000);
            (gauge.passes, gauge.fills_a_core)
        };
        assert_eq!(found(10, 5_000_000, (100, 900), false), (false, false), "one look tells nothing");
        assert_eq!(found(11, 5_000_999, (200, 900), false), (false, false), "a full core with hardly any packet");
        assert_eq!(found(12, 5_002_999, (250, 950), false), (true, false));
        assert_eq!(found(13, 5_004_999, (345, 955), false), (true, true));
        assert_eq!(found(14, 12, (445, 955), false), (false, false), "another link under the same number");
        assert_eq!(found(15, 9_000, (545, 955), true), (false, false), "somebody is watched");
        assert_eq!(found(16, 99_000, (645, 955), false), (false, false), "then it is looked at anew");
    }
}
