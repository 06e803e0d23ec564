//! How much each link matters on the first screen: whether it is on the path of a benchmark, moves something worth looking at,
//! moved anything lately, or stands still. Words like "busy" last for some seconds, so that rows keep their places while
//! traffic stops and goes.

use crate::derive::{LinkMetrics, Metrics};
use crate::sample::LinkState;

/// A link that moved next to nothing for this long is idle.
const IDLE_NS: u64 = 5_000_000_000;
/// Packets within `IDLE_NS` that make a link no longer idle: neighbour discovery and its like, some bit/s, are fewer. So many
/// bits count as one more packet: one packet may stand for a whole window of TCP.
const LEAST_PACKETS: f64 = 5.0;
const BITS_A_PACKET: f64 = 12_000.0;
/// How long a link keeps its place among the busy ones.
const HELD_NS: u64 = 10_000_000_000;
/// What a link carries at least when somebody uses it: what neighbours say to everybody (ARP, IPv6 discovery, mDNS) is
/// less, even where hundreds share a bridge.
const BUSY_BITS_PER_S: f64 = 1e6;
const BUSY_PACKETS_PER_S: f64 = 1e3;

/// Which links come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Standing {
    /// Moves little or nothing.
    Quiet,
    /// Moves something worth looking at.
    Busy,
    /// On the path of a watched flow.
    Tested,
}

/// When a link was last seen to move, ns; 0 for never.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LinkActivity {
    moved: u64,
    busy: u64,
    tested: u64,
    /// Packets since that instant, ns.
    packets: f64,
    since: u64,
}

impl LinkActivity {
    /// What moves now; both lists are of the same links.
    pub fn observe(stirs: &mut [Self], metrics: &Metrics) {
        let now_ns = metrics.machine.at_ns;
        for (stir, link) in stirs.iter_mut().zip(metrics.machine.links.iter()) {
            let Some(rates) = &link.rates else { continue };
            let packets = rates.packets_per_s().unwrap_or(0.0);
            if now_ns.saturating_sub(stir.since) >= IDLE_NS {
                (stir.packets, stir.since) = (0.0, now_ns);
            }
            let bits = rates.peak_bits_per_s().unwrap_or(0.0);
            let moved = (packets + bits / BITS_A_PACKET) * metrics.machine.elapsed_s.unwrap_or(0.0);
            stir.packets += moved;
            if moved > 0.0 && stir.packets >= LEAST_PACKETS {
                stir.moved = now_ns;
            }
            if packets >= BUSY_PACKETS_PER_S || rates.peak_bits_per_s().unwrap_or(0.0) >= BUSY_BITS_PER_S {
                stir.busy = now_ns;
            }
        }
        for hop in metrics.subject.paths.iter().flat_map(|path| &path.hops) {
            if let Ok(at) = metrics.machine.links.binary_search_by_key(&hop.link, |link| link.facts.key()) {
                stirs[at].tested = now_ns;
            }
        }
    }

    pub fn standing(&self, now_ns: u64) -> Standing {
        let within = |then_ns: u64| then_ns > 0 && now_ns.saturating_sub(then_ns) < HELD_NS;
        match self {
            Self { tested, .. } if within(*tested) => Standing::Tested,
            Self { busy, .. } if within(*busy) => Standing::Busy,
            _ => Standing::Quiet,
        }
    }

    /// It moved next to nothing for a while. One without rates yet is given the benefit of the doubt, unless it cannot move or
    /// never has.
    pub fn is_idle(&self, link: &LinkMetrics, now_ns: u64) -> bool {
        if self.standing(now_ns) == Standing::Tested {
            return false;
        }
        if link.rates.is_none() {
            let never_moved = link.counters.is_some_and(|counters| counters.rx_packets + counters.tx_packets == 0);
            return never_moved || !matches!(link.facts.state, LinkState::Up | LinkState::Unknown);
        }
        self.moved == 0 || now_ns.saturating_sub(self.moved) >= IDLE_NS
    }
}
