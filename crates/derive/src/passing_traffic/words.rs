//! What is to be said of passing traffic: what is wrong, why, what it costs, what to do.

use super::{DropPlace, FullCore, PassingTraffic, TrafficDrop};
use crate::figure::{large_in, large_part, large_rate, percent, speed};
use crate::finding::FindingParts;
use crate::losses::QdiscLoad;
use crate::machine::MachineMetrics;
use crate::plural;
use crate::spare_core::calmest_beside;
use vnettop_sample::{CoreSet, SteerRequest, SteerSetting, SteerValue, shell_word};

/// Below this share of the packets a drop is in the figures only.
const DROPPING: f64 = 0.001;
/// A full core concerns the packets from this share of softirqs on.
const CONCERNS: f64 = 0.1;
/// Programs are to be moved from a core of which they have so much, where softirqs have less.
const OTHERS: f64 = 0.3;
/// A program that has less of it is not worth stopping.
const OTHERS_SHARE: f64 = 0.1;
/// From this core on its mask has several words.
const LONG_MASK: u32 = 32;
/// So many places of drops are named.
const MOST_PLACES: usize = 2;

/// How the traffic is, the worst first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TrafficState {
    /// So much of it is dropped in one place; none where that is of another link, which may have packets of its own.
    Dropping(Option<f64>),
    /// A core that handles it has no time left.
    CoreFull,
    /// As much of it leaves by one link as comes in by another.
    Forwarding,
    /// It is there.
    Carrying,
}

impl PassingTraffic {
    /// How it is.
    #[must_use]
    pub fn state(&self) -> TrafficState {
        match self.dropped() {
            Some(share) if share >= DROPPING => {
                let is_known = self.drops.first().is_some_and(|worst| self.is_on_the_way(worst));
                TrafficState::Dropping(is_known.then_some(share))
            }
            _ if self.full_core().is_some() => TrafficState::CoreFull,
            _ if self.other.is_some() => TrafficState::Forwarding,
            _ => TrafficState::Carrying,
        }
    }

    /// The full core that handles most packets.
    fn full_core(&self) -> Option<&FullCore> {
        self.full.first().filter(|core| core.softirq >= CONCERNS)
    }

    /// What there is to say of it.
    #[must_use]
    pub fn parts(&self, machine: &MachineMetrics) -> FindingParts {
        let is_dropping = matches!(self.state(), TrafficState::Dropping(_));
        let worst = self.drops.first().filter(|_| is_dropping);
        let what = match (worst, self.full_core()) {
            (Some(_), _) => self.dropped_where(),
            (None, Some(core)) if self.drops.is_empty() && !self.looked_at.is_none() => {
                format!("nothing is counted as lost yet, but core {} has no time left for more packets", core.core)
            }
            _ => String::new(),
        };
        let more = match &self.full[..] {
            [] | [_] => String::new(),
            [_, other] => format!("; core {} is {} % busy too", other.core, percent(other.busy + other.steal)),
            [_, others @ ..] => format!("; {} more cores have no time left", others.len()),
        };
        // Where a queue is why they are dropped, no core is.
        let core = || self.full_core().map(|core| format!("{}{more}", core.sentence()));
        let why = worst.and_then(|worst| self.why_dropped(worst)).or_else(core).unwrap_or_default();
        let fix = match worst {
            Some(worst) => {
                for_drop(worst, QdiscLoad { offered_bits_per_s: self.offered(worst), dropped: self.dropped() }, machine)
            }
            None => self.full_core().map_or_else(String::new, |core| self.for_core(core, machine)),
        };
        FindingParts { what, why, cost: self.cost(machine), fix, by_limit: false }
    }

    /// `106.9 Mbit/s: 10.8k of 21k packets/s dropped`, else what was looked at without finding any.
    fn cost(&self, machine: &MachineMetrics) -> String {
        let all: f64 = self.drops.iter().map(|drop| drop.packets_per_s).sum();
        if let Some(packets_per_s) = self.before_the_worst() {
            let bits_per_s = all * self.packet_bytes().unwrap_or(0.0) * 8.0;
            // Of another link it is not known how many come there.
            let is_known = self.drops.iter().all(|drop| self.is_on_the_way(drop));
            let part = if is_known { large_part(all, packets_per_s.max(all)) } else { large_rate(all) };
            return format!("{}: {part} packets/s dropped", speed(bits_per_s));
        }
        self.counted_by(machine).map_or_else(String::new, |places| format!("0 packets/s dropped, counted by {places}"))
    }

    /// `3 links, 1 qdisc and 2 backlogs in qa`: what was looked at for drops; `None` where nothing was.
    #[must_use]
    pub fn counted_by(&self, machine: &MachineMetrics) -> Option<String> {
        let counted = self.looked_at;
        let places = [(counted.links, "link"), (counted.qdiscs, "qdisc"), (counted.backlogs, "backlog")];
        let places: Vec<String> =
            places.into_iter().filter(|(many, _)| *many > 0).map(|(many, what)| plural(many, what)).collect();
        let there = self.elsewhere(machine);
        let (last, others) = places.split_last()?;
        Some(match others {
            [] => format!("{last}{there}"),
            others => format!("{} and {last}{there}", others.join(", ")),
        })
    }

    /// ` in qa`, where it is another namespace than vnettop's own: nothing was looked at elsewhere.
    fn elsewhere(&self, machine: &MachineMetrics) -> String {
        let is_own = self.link.netns == machine.netns;
        if is_own { String::new() } else { format!(" in {}", machine.space_label(self.link.netns)) }
    }

    /// `ra → rb`, `a0 in qa`
    #[must_use]
    pub fn place(&self, machine: &MachineMetrics) -> String {
        format!("{}{}", self.route().join(" → "), self.elsewhere(machine))
    }

    /// `ra → rb: 62.1 Mbit/s, 6.3k packets/s. 0 packets/s dropped, counted by 3 links …`
    #[must_use]
    pub fn sentence(&self, machine: &MachineMetrics) -> String {
        let parts = self.parts(machine);
        let route = self.place(machine);
        let rate = format!("{route}: {}, {} packets/s", speed(self.bits_per_s), large_rate(self.packets_per_s));
        let rest = [parts.what, parts.why, parts.cost].into_iter().filter(|part| !part.is_empty());
        std::iter::once(rate).chain(rest).collect::<Vec<_>>().join(". ")
    }

    /// `tbf on rb drops 3.2k packets/s, ra 12`
    fn dropped_where(&self) -> String {
        let word = |(at, drop): (usize, &TrafficDrop)| {
            // In the unit that its part of all has.
            let per_s = large_in(drop.packets_per_s, self.before_the_worst().unwrap_or(0.0));
            let place = drop.place_word();
            if at == 0 { format!("{place} drops {per_s} packets/s") } else { format!("{place} {per_s}") }
        };
        let words: Vec<String> = self.drops.iter().take(MOST_PLACES).enumerate().map(word).collect();
        words.join(", ")
    }

    /// Why packets are dropped there; `None` where that is for want of CPU time, or not known.
    fn why_dropped(&self, drop: &TrafficDrop) -> Option<String> {
        let DropPlace::Qdisc(link, qdisc, _) = &drop.place else { return None };
        let other = self.other.as_ref().filter(|other| self.comes_in && other.link == *link);
        let load = QdiscLoad { offered_bits_per_s: self.offered(drop), dropped: self.dropped() };
        let Some(other) = other else { return Some(qdisc.cause("more is sent", load)) };
        let comes = format!("{} come in, more", speed(self.bits_per_s));
        let cause = qdisc.cause(&comes, load);
        // What goes out stands for a rate that is not known.
        let is_unknown = qdisc.rate_bits_per_s().is_none() && cause.starts_with(&comes);
        let out = other.bits_per_s.filter(|_| is_unknown).map(|out| format!("; {} go out", speed(out)));
        Some(cause + &out.unwrap_or_default())
    }

    /// What comes to a queue on its way, bits/s; `None` of another link, which may have packets of its own.
    fn offered(&self, drop: &TrafficDrop) -> Option<f64> {
        if !self.is_on_the_way(drop) {
            return None;
        }
        Some(self.before_the_worst()? * self.packet_bytes()? * 8.0)
    }

    /// What gives the packets of a full core more time.
    fn for_core(&self, core: &FullCore, machine: &MachineMetrics) -> String {
        let idle = calmest_beside(machine, [&CoreSet::default(), &CoreSet::default()]);
        if core.process >= OTHERS && core.process > core.softirq {
            // What sends or receives for a benchmark is the last to be stopped.
            let others =
                core.programs.iter().filter(|(name, share)| !name.starts_with("iperf") && *share >= OTHERS_SHARE);
            let who = others.chain(&core.programs).next().map(|(name, _)| name);
            let (share, core) = (percent(core.process), core.core);
            return match (idle, who) {
                (Some(idle), Some(who)) => format!("give {who} another core: core {idle} has room"),
                (Some(idle), None) => format!("give the programs on core {core} another one: core {idle} has room"),
                (None, Some(who)) => {
                    format!("stop {who}, unless it sends these packets: programs use {share} % of core {core}")
                }
                (None, None) => format!("stop what uses {share} % of core {core}, unless it sends these packets"),
            };
        }
        match (idle, self.way_in()) {
            // A longer mask is no line to read.
            (Some(idle), Some((_, name))) if idle >= LONG_MASK => {
                format!("let core {idle} handle packets of {name} (rps_cpus of its queues)")
            }
            (Some(idle), Some((link, name))) => {
                let (name, value) = (name.to_owned(), SteerValue::Cores(CoreSet::single(idle)));
                let request = SteerRequest { link, name, setting: SteerSetting::RpsCpus, value };
                let command = request.shell_line(&machine.space_entry(link.netns));
                format!("let core {idle} handle packets of {} ({command})", request.name)
            }
            (Some(idle), None) => format!("RPS can give packets to core {idle}, which has room"),
            (None, _) => "no core has half of its time left: larger packets (GRO, MTU) need less".to_owned(),
        }
    }
}

fn for_drop(drop: &TrafficDrop, load: QdiscLoad, machine: &MachineMetrics) -> String {
    let inside = |netns: u64, line: &str| machine.space_entry(netns).command(line);
    match &drop.place {
        DropPlace::Qdisc(link, qdisc, name) => {
            let (fix, command) = qdisc.remedy(name, load);
            format!("{fix} ({})", inside(link.netns, &command))
        }
        DropPlace::Link(link, name) => {
            let look = inside(link.netns, &format!("ip -s -s link show {}", shell_word(name)));
            format!("see which of its counters rises ({look}), then ethtool -S")
        }
        DropPlace::Backlog(_) => "raise net.core.netdev_max_backlog, or spread the packets over cores (RPS)".to_owned(),
    }
}
