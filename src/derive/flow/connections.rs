//! Connections from their ends: both ends of one are put together, the bytes of a bin are what lies between pulses, and
//! the time in which a connection begins or ends is not known, so that neither looks like a dip.

use super::BIN_NS;
use crate::sample::{FlowSample, Pulse, Sample};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// A connection that has moved less carries no benchmark: it controls one (iperf3's first connection).
const CARRIES: u64 = 16 * 1024;
/// Pulses further apart than this leave the bins between them unknown: a straight line would be made up.
const MOST_GAP_NS: u64 = 5 * BIN_NS / 2;
/// An end whose last pulse is so much older than the tick's has ended.
const SILENT_NS: u64 = BIN_NS / 2;

/// All connections are read within less than this.
const ROUND_NS: u64 = BIN_NS / 10;

/// One connection of the watched processes in one tick.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Connection {
    /// The end that sends more.
    pub from: End,
    /// The end that receives more.
    pub to: End,
    /// Rate over the tick in that direction, bits/s; none for a connection that is new.
    pub bits_per_s: Option<f64>,
}

/// One end of a connection; whose it is is known only of a watched process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the words of the JSON")]
pub struct End {
    pub netns: Option<u64>,
    pub address: SocketAddr,
    pub pid: Option<u32>,
}

/// Every connection that is known.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Connections {
    /// Sorted by cookie.
    ends: Vec<Track>,
    /// Both ends of each connection, or the one that is known; indices into `ends`.
    pairs: Vec<(usize, Option<usize>)>,
    /// Times in which a connection began or ended, oldest first.
    unknown: VecDeque<(u64, u64)>,
}

/// One end, pulse by pulse.
#[derive(Debug, Clone, PartialEq)]
struct Track {
    cookie: u64,
    netns: u64,
    pid: u32,
    local: SocketAddr,
    remote: SocketAddr,
    /// Oldest first; from the last one before the next bin on.
    pulses: VecDeque<Pulse>,
    /// The last pulse of the tick before.
    before: Option<Pulse>,
    /// Since when it is known to carry data.
    carries_from_ns: Option<u64>,
    /// It is gone.
    over: bool,
    /// The other end is gone: what this one still does is no part of a benchmark.
    ended: bool,
}

impl Connections {
    /// Takes the pulses of a sample, and tells the times that are now known to be unknown.
    pub fn observe(&mut self, previous_ns: Option<u64>, next: &Sample) -> Vec<(u64, u64)> {
        let mut unknown = Vec::new();
        for end in &mut self.ends {
            end.before = end.pulses.back().copied();
        }
        let mut is_other = false;
        for flow in &next.flows {
            match self.ends.binary_search_by_key(&flow.cookie, |end| end.cookie) {
                Ok(at) => unknown.extend(self.ends[at].extend(flow)),
                Err(at) => {
                    let mut end = Track::new(flow);
                    let began = end.extend(flow).map(|(from_ns, to_ns)| (previous_ns.unwrap_or(from_ns), to_ns));
                    // The other end may have been known for long.
                    let is_known = self.ends.iter().any(|other| other.carries_from_ns.is_some() && end.faces(other));
                    unknown.extend(began.filter(|_| !is_known));
                    self.ends.insert(at, end);
                    is_other = true;
                }
            }
        }
        if is_other {
            self.pair();
        }
        self.end(next, &mut unknown);
        self.unknown.extend(&unknown);
        unknown
    }

    /// Connections that carry data now.
    pub fn carrying(&self) -> usize {
        let carries = |end: usize| {
            let end = &self.ends[end];
            end.carries_from_ns.is_some() && !end.over && !end.ended
        };
        let is_carrying = |&&(one, other): &&(usize, Option<usize>)| carries(one) || other.is_some_and(carries);
        self.pairs.iter().filter(is_carrying).count()
    }

    /// Up to when every living connection has been read; what it moved later may still come.
    pub fn read_to_ns(&self) -> u64 {
        let living = self.ends.iter().filter(|end| !end.over && !end.ended && end.carries_from_ns.is_some());
        let last = |end: &Track| end.pulses.back().map_or(0, |pulse| pulse.at_ns);
        living.map(last).min().or_else(|| self.ends.iter().map(last).max()).unwrap_or(0)
    }

    /// Whether any carried data in a part of that time.
    pub fn exist_in(&self, from_ns: u64, to_ns: u64) -> bool {
        self.ends.iter().any(|end| {
            let last_ns = end.pulses.back().map_or(0, |pulse| pulse.at_ns);
            end.carries_from_ns.is_some_and(|began_ns| began_ns < to_ns) && (!end.over || last_ns > from_ns)
        })
    }

    /// Bytes moved by all of them; none where one began or ended, was not read, or none carried data throughout.
    pub fn bytes(&self, from_ns: u64, to_ns: u64) -> Option<f64> {
        if self.unknown.iter().any(|&(began_ns, ended_ns)| began_ns < to_ns && ended_ns > from_ns) {
            return None;
        }
        let (mut sum, mut throughout) = (0.0, false);
        for pair in &self.pairs {
            let (to, from) = self.direction(*pair);
            let arrived = to.and_then(|end| end.bytes(from_ns, to_ns, |pulse| pulse.received));
            let moved = arrived.or_else(|| from.and_then(|end| end.bytes(from_ns, to_ns, |pulse| pulse.acked)));
            let carries = [to, from].into_iter().flatten().any(|end| end.carries_in(from_ns, to_ns));
            throughout |= carries;
            if carries || moved.is_some() {
                sum += moved?;
            }
        }
        throughout.then_some(sum)
    }

    /// Forgets what no bin from this instant on needs.
    pub fn forget(&mut self, before_ns: u64) {
        let count = self.ends.len();
        self.ends.retain(|end| !end.over);
        if self.ends.len() != count {
            self.pair();
        }
        for end in &mut self.ends {
            if end.ended {
                end.carries_from_ns = None;
            }
            while end.pulses.get(1).is_some_and(|second| second.at_ns <= before_ns) {
                end.pulses.pop_front();
            }
        }
        self.unknown.retain(|&(_, ended_ns)| ended_ns > before_ns);
    }

    /// Every connection with its rate over the tick.
    pub fn list(&self) -> Vec<Connection> {
        let connection = |&pair: &(usize, Option<usize>)| {
            let (to, from) = self.direction(pair);
            let end = |track: Option<&Track>, faced: Option<&Track>| {
                let address = track.map(|end| end.local).or(faced.map(|end| end.remote))?;
                Some(End { netns: track.map(|end| end.netns), address, pid: track.map(|end| end.pid) })
            };
            let arrived = to.and_then(|end| end.tick_bits_per_s(|pulse| pulse.received));
            let bits_per_s = arrived.or_else(|| from?.tick_bits_per_s(|pulse| pulse.acked));
            Some(Connection { from: end(from, to)?, to: end(to, from)?, bits_per_s })
        };
        self.pairs.iter().filter_map(connection).collect()
    }

    /// The end that receives and the end that sends, of a connection whose busier direction is meant.
    fn direction(&self, (one, other): (usize, Option<usize>)) -> (Option<&Track>, Option<&Track>) {
        let one = &self.ends[one];
        let newest = |end: &Track| end.pulses.back().map_or((0, 0), |pulse| (pulse.acked, pulse.received));
        match other.map(|other| &self.ends[other]) {
            Some(other) if newest(one).1 >= newest(other).1 => (Some(one), Some(other)),
            Some(other) => (Some(other), Some(one)),
            None if newest(one).1 > newest(one).0 => (Some(one), None),
            None => (None, Some(one)),
        }
    }

    /// Marks the ends that have ended. What happened around the end of one is not known: a test stops sending a moment
    /// before its connection is gone.
    fn end(&mut self, next: &Sample, unknown: &mut Vec<(u64, u64)>) {
        let newest_ns = next.flows.iter().filter_map(|flow| flow.pulses.last()).map(|pulse| pulse.at_ns).max();
        let now_ns = newest_ns.unwrap_or(next.at_ns);
        for end in &mut self.ends {
            let last_ns = end.pulses.back().map_or(0, |pulse| pulse.at_ns);
            let is_there = next.flows.binary_search_by_key(&end.cookie, |flow| flow.cookie).is_ok();
            end.over = !is_there || last_ns.saturating_add(SILENT_NS) < now_ns;
            if end.over && end.carries_from_ns.is_some() {
                // The first round of pulses that it did not answer.
                let rounds = next.flows.iter().flat_map(|flow| &flow.pulses).map(|pulse| pulse.at_ns);
                let missed_ns = rounds.filter(|&at_ns| at_ns > last_ns.saturating_add(ROUND_NS)).min();
                unknown.push((last_ns.saturating_sub(BIN_NS), missed_ns.unwrap_or(now_ns.max(last_ns))));
            }
        }
        for &(one, other) in &self.pairs {
            let Some(other) = other else { continue };
            let is_ended = self.ends[one].over || self.ends[other].over;
            self.ends[one].ended |= is_ended;
            self.ends[other].ended |= is_ended;
        }
    }

    fn pair(&mut self) {
        let ends = &self.ends;
        let mut paired = vec![false; ends.len()];
        self.pairs.clear();
        for one in 0..ends.len() {
            if paired[one] {
                continue;
            }
            let is_other = |&other: &usize| other != one && !paired[other];
            let exact = (0..ends.len()).filter(is_other).find(|&other| ends[one].faces(&ends[other]));
            let other = exact.or_else(|| translated(ends, &paired, one));
            paired[one] = true;
            if let Some(other) = other {
                paired[other] = true;
            }
            self.pairs.push((one, other));
        }
    }
}

/// The other end behind a translated address (a published port): it sees the client as the client sees itself, and no
/// other connection does.
fn translated(ends: &[Track], paired: &[bool], one: usize) -> Option<usize> {
    let free = || (0..ends.len()).filter(|&at| at != one && !paired[at]);
    let names = |a: usize, b: usize| ends[a].remote == ends[b].local;
    let alone = |address: SocketAddr| ends.iter().filter(|end| end.local == address).count() == 1;
    let only = |found: &dyn Fn(usize) -> bool| {
        let mut found = free().filter(|&at| found(at));
        found.next().filter(|_| found.next().is_none())
    };
    let server = only(&|at| names(at, one)).filter(|_| alone(ends[one].local));
    server.or_else(|| only(&|at| names(one, at)).filter(|&at| alone(ends[at].local)))
}

impl Track {
    fn new(flow: &FlowSample) -> Self {
        Self {
            cookie: flow.cookie,
            netns: flow.netns,
            pid: flow.pid,
            local: flow.local,
            remote: flow.remote,
            pulses: VecDeque::new(),
            before: None,
            carries_from_ns: None,
            over: false,
            ended: false,
        }
    }

    /// It is the other end of the same connection.
    fn faces(&self, other: &Self) -> bool {
        self.cookie != other.cookie && self.local == other.remote && self.remote == other.local
    }

    /// Takes new pulses; tells the time in which it began to carry data, if it did.
    fn extend(&mut self, flow: &FlowSample) -> Option<(u64, u64)> {
        let mut began = None;
        for pulse in &flow.pulses {
            let last = self.pulses.back();
            if last.is_some_and(|last| last.at_ns >= pulse.at_ns) {
                continue;
            }
            if self.carries_from_ns.is_none() && !self.ended && pulse.acked.max(pulse.received) >= CARRIES {
                self.carries_from_ns = Some(pulse.at_ns);
                began = Some((last.map_or(pulse.at_ns, |last| last.at_ns), pulse.at_ns));
            }
            self.pulses.push_back(*pulse);
        }
        began
    }

    fn carries_in(&self, from_ns: u64, to_ns: u64) -> bool {
        let last_ns = self.pulses.back().map_or(0, |pulse| pulse.at_ns);
        self.carries_from_ns.is_some_and(|began_ns| began_ns <= from_ns) && last_ns >= to_ns
    }

    /// What a counter rose in that time; none where pulses do not cover it.
    fn bytes(&self, from_ns: u64, to_ns: u64, counter: impl Fn(&Pulse) -> u64 + Copy) -> Option<f64> {
        let moved = self.at(to_ns, counter)? - self.at(from_ns, counter)?;
        let inner = self.pulses.iter().zip(self.pulses.iter().skip(1));
        let mut crossing = inner.filter(|(before, after)| after.at_ns > from_ns && before.at_ns < to_ns);
        let is_torn = crossing.any(|(before, after)| after.at_ns - before.at_ns > MOST_GAP_NS);
        (!is_torn).then_some(moved.max(0.0))
    }

    /// A counter at an instant, on the straight line between two pulses.
    fn at(&self, at_ns: u64, counter: impl Fn(&Pulse) -> u64) -> Option<f64> {
        let after = self.pulses.partition_point(|pulse| pulse.at_ns < at_ns);
        let next = self.pulses.get(after)?;
        if next.at_ns == at_ns {
            return Some(counter(next) as f64);
        }
        let last = self.pulses.get(after.checked_sub(1)?)?;
        let share = (at_ns - last.at_ns) as f64 / (next.at_ns - last.at_ns) as f64;
        Some(counter(last) as f64 + share * counter(next).saturating_sub(counter(last)) as f64)
    }

    fn tick_bits_per_s(&self, counter: impl Fn(&Pulse) -> u64) -> Option<f64> {
        let (before, now) = (self.before?, self.pulses.back()?);
        let moved = counter(now).checked_sub(counter(&before))?;
        let elapsed_ns = now.at_ns.checked_sub(before.at_ns).filter(|&ns| ns > 0)?;
        Some(moved as f64 * 8e9 / elapsed_ns as f64)
    }
}
