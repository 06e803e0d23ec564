//! Where packets can be lost besides links and backlogs: qdiscs of the links on a path, protocols of the namespaces that
//! flows end in or cross. Nothing is read while there are no flows, and nothing is kept open, unless a flow may begin soon:
//! what its first packets lose is known only by what the counters said before. It attributes nothing.

mod conntrack;
mod netns_counters;
mod offloads;
mod packet_sockets;
mod qdisc;
mod segmentation;
mod snmp;

use crate::netns::Spaces;
use crate::{Roots, publish, way_out};
use netns_counters::NetnsCounters;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::PathBuf;
use std::sync::Arc;
use vnettop_sample::{
    FlowPath, FlowSample, Ifindex, LinkKey, Offloads, PacketSocket, Problem, ProblemSource, ProtocolCounters,
    QdiscCounters, Space,
};

/// Namespaces that are read at most: the two ends and what lies between, of many flows.
const MOST_PLACES: usize = 64;
/// While a benchmark waits for its flows: how often everything is read, ns, and in how many namespaces at most.
const WAITING_EVERY_NS: u64 = 900_000_000;
const MOST_WAITING: usize = 16;
/// How often the offloads of an unchanged path are asked for again, ns.
const OFFLOADS_EVERY_NS: u64 = 3_000_000_000;

/// Whose counters are read.
#[derive(Debug, Clone, Copy)]
pub struct WatchedFlows<'a> {
    /// The namespaces, to enter them.
    pub spaces: &'a Spaces,
    /// The namespaces, each with a process that lives in it, where one is known.
    pub list: &'a [Space],
    /// Somebody is watched: a flow may begin.
    pub waits: bool,
    /// The connections of the watched processes.
    pub flows: &'a [FlowSample],
    /// The paths of these connections.
    pub paths: &'a [FlowPath],
}

/// What was read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LossReading {
    /// Sorted by link and handle.
    pub qdiscs: Vec<QdiscCounters>,
    /// Sorted by namespace.
    pub protocols: Vec<ProtocolCounters>,
    /// Sorted by link and inode.
    pub packet_sockets: Vec<PacketSocket>,
    /// Sorted by link; the same `Arc` while it is the same.
    pub offloads: Arc<Vec<Offloads>>,
}

/// What is wanted of one namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct LossQuery {
    /// Links on a path, sorted; empty when no path through the namespace is known.
    links: Vec<Ifindex>,
    /// A process that lives in it.
    pid: Option<u32>,
    /// A flow speaks IPv6 there, or has spoken it.
    ipv6: bool,
    /// IPv6 has just been added to its counters: they do not compare with those of before.
    jumps: bool,
    /// A flow may cross the namespace: its path is not known yet.
    maybe: bool,
    /// Links of the last path through the namespace, when no path is known any more.
    left: Option<Vec<Ifindex>>,
}

/// Reads qdiscs, protocol counters and offloads.
#[derive(Debug, Default)]
pub struct LossReader {
    proc: PathBuf,
    /// Every namespace is read on every tick while there are no flows.
    at_rest: bool,
    /// What was read last while there were no flows, and when.
    waiting: Option<(u64, LossReading)>,
    /// Open counters by namespace; `None` when it cannot be looked into.
    places: BTreeMap<u64, Option<NetnsCounters>>,
    wants: BTreeMap<u64, LossQuery>,
    offloads: Arc<Vec<Offloads>>,
    offloads_at_ns: u64,
    buffer: Vec<u8>,
    problems: Vec<Problem>,
}

impl LossReader {
    /// Nothing is opened yet. With `at_rest` protocols and qdiscs of all namespaces are read also while there are no flows, so that
    /// what is lost counts from the first packet on.
    #[must_use]
    pub fn new(roots: &Roots, at_rest: bool) -> Self {
        Self { proc: roots.proc.clone(), at_rest, ..Self::default() }
    }

    /// The counters on the paths of these flows. They are read once more after the flows ended, for what was lost since.
    pub fn read(&mut self, watched: WatchedFlows<'_>, now_ns: u64) -> LossReading {
        let rests = watched.flows.is_empty();
        let waits = self.at_rest || (watched.waits && watched.list.len() <= MOST_WAITING);
        if rests && self.wants.is_empty() && !waits {
            // Nothing is allocated for it.
            return LossReading { offloads: Arc::clone(&self.offloads), ..LossReading::default() };
        }
        let before = self.waiting.take().filter(|_| rests && waits && !self.at_rest);
        if let Some(before) = before.filter(|(at_ns, _)| now_ns.saturating_sub(*at_ns) < WAITING_EVERY_NS) {
            let reading = before.1.clone();
            self.waiting = Some(before);
            return reading;
        }
        let ended = rests && !waits;
        if !ended {
            self.want(watched, now_ns);
            self.enter(watched.spaces);
        }
        let mut reading = LossReading::default();
        for (&netns, place) in &mut self.places {
            let (Some(place), Some(want)) = (place, self.wants.get(&netns)) else { continue };
            // A namespace that cannot be read any more has no counters this time; nothing else depends on it.
            let reported = place.protocols(netns, want.ipv6, &mut self.buffer);
            reading.protocols.extend(reported.ok().filter(|_| !want.jumps));
            // Where no flow is, a host of many links is not asked for the qdiscs of all of them again and again.
            let few = self.at_rest || !want.maybe || !place.has_many_qdiscs();
            if let Some(links) = if few { Some(&want.links) } else { want.left.as_ref() } {
                let _partly = place.qdiscs(netns, links, &mut reading.qdiscs);
            }
            place.packet_sockets(netns, &want.links, &mut reading.packet_sockets);
        }
        if !ended {
            self.ask(now_ns);
        }
        reading.offloads = Arc::clone(&self.offloads);
        if ended {
            self.rest();
        } else if rests {
            self.waiting = Some((now_ns, reading.clone()));
        }
        reading
    }

    /// Closes what is open in namespaces that have gone: an open file keeps one alive.
    pub fn leave(&mut self, spaces: &Spaces) {
        self.places.retain(|&netns, _| spaces.knows(netns));
    }

    /// What cannot be seen and why.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Closes everything: an open file keeps a namespace alive.
    fn rest(&mut self) {
        self.places.clear();
        self.wants.clear();
        self.waiting = None;
        self.problems.clear();
        self.offloads = Arc::default();
    }

    /// Which namespaces and links are wanted now; other links than before are asked for their offloads.
    fn want(&mut self, watched: WatchedFlows<'_>, now_ns: u64) {
        let mut wants: BTreeMap<u64, LossQuery> = BTreeMap::new();
        // Which of them a flow will end in, or cross, is not known before it does.
        let is_unknown = watched.paths.is_empty() && (self.at_rest || watched.list.len() <= MOST_WAITING);
        for space in watched.list.iter().filter(|_| is_unknown) {
            let want = wants.entry(space.netns).or_default();
            (want.pid, want.ipv6, want.maybe) = (space.pid, self.at_rest, true);
        }
        for flow in watched.flows {
            let want = wants.entry(flow.netns).or_default();
            (want.pid, want.maybe) = (Some(flow.pid), false);
            want.ipv6 |= flow.local.is_ipv6();
        }
        for path in watched.paths {
            for LinkKey { netns, ifindex } in path.hops.iter().map(|hop| hop.link) {
                let want = wants.entry(netns).or_default();
                want.ipv6 |= path.from.is_ipv6();
                want.links.extend(Some(ifindex).filter(|ifindex| ifindex.kernel().is_some()));
            }
        }
        for (netns, want) in &mut wants {
            want.links.sort_unstable();
            want.links.dedup();
            let lives = || watched.list.binary_search_by_key(netns, |space| space.netns).ok();
            want.pid = want.pid.or_else(|| watched.list[lives()?].pid);
            let before = self.wants.get(netns);
            want.left = before.filter(|before| want.maybe && !before.maybe).map(|before| before.links.clone());
            want.ipv6 |= before.is_some_and(|before| before.ipv6);
            want.jumps = before.is_some_and(|before| before.ipv6 != want.ipv6);
        }
        while wants.len() > MOST_PLACES {
            wants.pop_last();
        }
        let is_same = wants.len() == self.wants.len()
            && wants.iter().zip(&self.wants).all(|(one, other)| one.0 == other.0 && one.1.links == other.1.links);
        self.wants = wants;
        let wants = &self.wants;
        self.places.retain(|netns, _| wants.contains_key(netns));
        if !is_same || now_ns.saturating_sub(self.offloads_at_ns) >= OFFLOADS_EVERY_NS {
            self.offloads_at_ns = 0;
        }
    }

    /// Asks for offloads, where that is due.
    fn ask(&mut self, now_ns: u64) {
        if self.offloads_at_ns != 0 {
            return;
        }
        self.offloads_at_ns = now_ns;
        let mut reported = Vec::new();
        for (&netns, place) in &mut self.places {
            let (Some(place), Some(want)) = (place, self.wants.get(&netns)) else { continue };
            reported.extend(place.offloads(netns, &want.links));
        }
        publish(&mut self.offloads, reported);
    }

    /// Opens what is not open yet. From outside, through a process, only qdiscs and offloads are missing.
    fn enter(&mut self, spaces: &Spaces) {
        let mut came = false;
        for (&netns, want) in &self.wants {
            let Entry::Vacant(empty) = self.places.entry(netns) else { continue };
            let proc = self.proc.clone();
            let inside = spaces.inside(netns, move || NetnsCounters::here(&proc));
            if want.maybe && inside.is_err() {
                // Whether it will be needed is not known yet.
                continue;
            }
            let place = inside.map_err(|error| {
                // One that is not known is one that nobody wants to look into, or that is gone.
                if error.kind() != std::io::ErrorKind::NotFound {
                    self.problems = vec![problem(netns, want.pid, &error)];
                }
                want.pid.and_then(|pid| NetnsCounters::of_process(&self.proc, pid).ok())
            });
            empty.insert(place.map_or_else(|outside| outside, Some));
            came = true;
        }
        if came {
            self.offloads_at_ns = 0;
        }
    }
}

fn problem(netns: u64, pid: Option<u32>, error: &std::io::Error) -> Problem {
    let whose =
        pid.map_or_else(|| format!("namespace {netns}"), |pid| format!("the network namespace of process {pid}"));
    let mends = way_out(error, "run vnettop as root");
    let text = format!("cannot enter {whose} ({error}): drops of its qdiscs are unknown; {mends}");
    Problem { source: ProblemSource::Losses, text }
}

/// What a fuzzer gives every parser here.
#[cfg(fuzzing)]
pub(crate) fn fuzz(message: &crate::netlink::message::Message<'_>) {
    let link = LinkKey { netns: 1, ifindex: Ifindex(2) };
    let _ = (qdisc::qdisc(message, 1, 1), segmentation::parse(message), offloads::active(message, link));
    let _ = packet_sockets::parse(message, 1);
}

/// What a fuzzer gives the parsers of /proc here.
#[cfg(fuzzing)]
pub(crate) fn fuzz_text(text: &[u8]) {
    let mut counters = ProtocolCounters::default();
    snmp::parse_snmp(text, &mut counters);
    snmp::parse_snmp6(text, &mut counters);
    conntrack::parse(text, 1);
}

#[cfg(test)]
mod tests;
