//! Connections from their ends: both ends of one are put together, the bytes of a bin are what lies between pulses, and
//! the time in which a connection begins or ends is not known, so that neither looks like a dip.

use super::connection::{CARRIES, Connection, End, Speaks, TcpFigures, connections};
use super::disorder::DisorderRates;
use super::end_track::EndTrack;
use super::join::{self, Translated};
use super::proxied;
use super::{BIN_NS, next_edge};
use std::collections::VecDeque;
use std::sync::Arc;
use vnettop_sample::{FlowPath, FlowSample, Proto, Sample};

/// An end whose last pulse is so much older than the tick's has ended.
const SILENT_NS: u64 = BIN_NS / 2;

/// All connections are read within less than this.
const ROUND_NS: u64 = BIN_NS / 10;

/// Every connection that is known.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Connections {
    /// Sorted by key.
    ends: Vec<EndTrack>,
    /// Both ends of each connection, or the one that is known; indices into `ends`.
    pairs: Vec<(usize, Option<usize>)>,
    /// Times in which a connection began or ended, oldest first.
    unknown: VecDeque<(u64, u64)>,
    /// Their paths in the newest sample.
    paths: Arc<Vec<FlowPath>>,
}

impl Connections {
    /// Takes the pulses of a sample, and tells the times that are now known to be unknown.
    pub fn observe(&mut self, previous_ns: Option<u64>, next: &Sample) -> Vec<(u64, u64)> {
        let mut unknown = Vec::new();
        for end in &mut self.ends {
            (end.before, end.tcp_before) = (end.pulses.back().copied(), end.tcp);
        }
        let names = Translated::on(&next.facts.paths);
        let mut is_other = self.paths != next.facts.paths;
        self.paths = Arc::clone(&next.facts.paths);
        for flow in next.flows.iter().filter(|flow| flow.proto == Proto::Tcp) {
            match self.ends.binary_search_by_key(&flow.key(), |end| end.key) {
                Ok(at) => {
                    let end = &mut self.ends[at];
                    if is_other {
                        end.place = names.place(flow).or_as(Some(end.place));
                    }
                    unknown.extend(end.extend(flow));
                }
                Err(at) => {
                    let mut end = EndTrack::new(flow, names.place(flow));
                    let began = end.extend(flow).map(|(from_ns, to_ns)| (previous_ns.unwrap_or(from_ns), to_ns));
                    // The other end may have been known for long.
                    let is_known =
                        self.ends.iter().any(|other| other.carries_from_ns.is_some() && end.place.faces(&other.place));
                    unknown.extend(began.filter(|_| !is_known));
                    self.ends.insert(at, end);
                    is_other = true;
                }
            }
        }
        if is_other {
            self.pair();
        }
        self.relay(next);
        self.end(next, &mut unknown);
        self.unknown.extend(&unknown);
        unknown
    }

    /// Marks the ends that carry what another connection carries already, from their first pulse on.
    fn relay(&mut self, next: &Sample) {
        for second in proxied::seconds(&next.flows, &next.facts.paths) {
            for &(key, relay) in second.firsts.iter().chain([&(second.key, second.relay)]) {
                let Ok(at) = self.ends.binary_search_by_key(&key, |end| end.key) else { continue };
                let end = &mut self.ends[at];
                end.relay = Some(relay).filter(|_| !second.firsts.is_empty());
                end.relayed = key == second.key && !second.firsts.is_empty();
            }
        }
    }

    /// The connections whose data count.
    fn counted(&self) -> impl Iterator<Item = &(usize, Option<usize>)> {
        self.pairs.iter().filter(|&&(one, _)| !self.ends[one].relayed)
    }

    /// Connections that carry data now.
    pub fn carrying(&self) -> usize {
        let carries = |end: usize| {
            let end = &self.ends[end];
            end.carries_from_ns.is_some() && !end.is_gone && !end.peer_is_gone
        };
        let is_carrying = |&&(one, other): &&(usize, Option<usize>)| carries(one) || other.is_some_and(carries);
        let token = |&(one, other): &(usize, Option<usize>)| {
            [Some(one), other].into_iter().flatten().filter_map(|end| self.ends[end].mptcp).min()
        };
        connections(self.counted().filter(is_carrying).map(token))
    }

    /// Up to when every living connection has been read; what it moved later may still come.
    pub fn read_to_ns(&self) -> u64 {
        let living = self.ends.iter().filter(|end| !end.is_gone && !end.peer_is_gone && end.carries_from_ns.is_some());
        let last = |end: &EndTrack| end.pulses.back().map_or(0, |pulse| pulse.at_ns);
        living.map(last).min().or_else(|| self.ends.iter().map(last).max()).unwrap_or(0)
    }

    /// Where a bin ends that begins at `from_ns` and would end at `to_ns`: while nothing was read, as where vnettop or the whole
    /// machine stood still, only the sum is known, and the bin goes on until the next edge after that.
    pub fn bin_until(&self, from_ns: u64, to_ns: u64) -> u64 {
        let mut until_ns = to_ns;
        for (before, after) in self.ends.iter().flat_map(EndTrack::gaps) {
            if after.at_ns > from_ns && before.at_ns < until_ns {
                until_ns = until_ns.max(next_edge(after.at_ns));
            }
        }
        if until_ns == to_ns { to_ns } else { self.bin_until(from_ns, until_ns) }
    }

    /// Whether any carried data in a part of that time.
    pub fn exist_in(&self, from_ns: u64, to_ns: u64) -> bool {
        self.ends.iter().any(|end| {
            let last_ns = end.pulses.back().map_or(0, |pulse| pulse.at_ns);
            end.carries_from_ns.is_some_and(|began_ns| began_ns < to_ns) && (!end.is_gone || last_ns > from_ns)
        })
    }

    /// Bytes moved by all of them; none where one began or ended, was not read, or none carried data throughout.
    pub fn bytes(&self, from_ns: u64, to_ns: u64) -> Option<f64> {
        if self.unknown.iter().any(|&(began_ns, ended_ns)| began_ns < to_ns && ended_ns > from_ns) {
            return None;
        }
        let (mut sum, mut throughout) = (0.0, false);
        for pair in self.counted() {
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
        self.ends.retain(|end| !end.is_gone);
        if self.ends.len() != count {
            self.pair();
        }
        for end in &mut self.ends {
            if end.peer_is_gone {
                end.carries_from_ns = None;
            }
            while end.pulses.get(1).is_some_and(|second| second.at_ns <= before_ns) {
                end.pulses.pop_front();
            }
        }
        self.unknown.retain(|&(_, ended_ns)| ended_ns > before_ns);
    }

    /// Every connection with its rate over the tick.
    pub fn list(&self) -> impl Iterator<Item = Connection> {
        self.pairs.iter().filter_map(|&pair| {
            let (to, from) = self.direction(pair);
            let end = |track: Option<&EndTrack>, faced: Option<&EndTrack>| {
                let address = track.map(|end| end.place.local).or(faced.map(|end| end.place.remote))?;
                Some(End { netns: track.map(|end| end.place.netns), address, pid: track.map(|end| end.pid) })
            };
            let arrived = to.and_then(|end| end.tick_bits_per_s(|pulse| pulse.received));
            let (sender, receiver) = (from.and_then(|end| end.tcp), to.and_then(|end| end.tcp));
            let both = || [from, to].into_iter().flatten();
            let tcp = TcpFigures {
                mptcp: both().find_map(|end| end.mptcp),
                joined: both().any(|end| end.joined),
                connecting: both().any(|end| end.connecting),
                silent_s: both().map(EndTrack::silent_s).reduce(f64::min),
                moved_bytes: to
                    .and_then(|end| Some(end.pulses.back()?.received))
                    .or_else(|| Some(from?.pulses.back()?.acked)),
                retransmits: from.and_then(|end| Some(end.tcp?.retransmits)),
                retransmits_per_s: from.and_then(EndTrack::retransmits_per_s),
                mss_bytes: sender.map(|tcp| tcp.mss),
                cwnd_bytes: sender.map(|tcp| u64::from(tcp.cwnd) * u64::from(tcp.mss)),
                rtt_us: sender.map(|tcp| tcp.rtt_us).filter(|&rtt| rtt > 0),
                min_rtt_us: sender.and_then(|tcp| tcp.min_rtt_us),
                pacing_bits_per_s: sender.and_then(|tcp| tcp.pacing).map(|rate| rate as f64 * 8.0),
                delivery_bits_per_s: sender.and_then(|tcp| tcp.delivery).map(|rate| rate as f64 * 8.0),
                allowed_bits_per_s: sender.and_then(|tcp| tcp.pacing_allowed).map(|rate| rate as f64 * 8.0),
                busy: from.and_then(EndTrack::busy),
                app_limited: sender.and_then(|tcp| tcp.app_limited),
                under_way: sender.and_then(|tcp| Some(f64::from(tcp.unacked?) / f64::from(tcp.cwnd.max(1)))),
                segments_per_s: from.and_then(EndTrack::segments_per_s),
                congestion: sender.and_then(|tcp| tcp.congestion),
                disorder: from.and_then(|end| {
                    let out_of_order_per_s = to.and_then(|end| end.disorder.out_of_order_per_s());
                    Some(DisorderRates { out_of_order_per_s, ..end.disorder.sent()? })
                }),
            };
            Some(Connection {
                speaks: Speaks::Tcp(tcp),
                stuck_s: from.or(to).map(EndTrack::stuck_s),
                carries: both().any(|end| end.carries_from_ns.is_some()),
                relayed: both().any(|end| end.relayed),
                relay: both().find_map(|end| end.relay),
                bits_per_s: arrived.or_else(|| from?.tick_bits_per_s(|pulse| pulse.acked)),
                tx_queue_bytes: sender.map(|tcp| u64::from(tcp.tx_queue)),
                rx_queue_bytes: receiver.map(|tcp| u64::from(tcp.rx_queue)),
                rx_buffer_bytes: receiver.and_then(|tcp| tcp.rcvbuf).map(u64::from),
                ..Connection::between(end(from, to)?, end(to, from)?)
            })
        })
    }

    /// The end that receives and the end that sends, of a connection whose busier direction is meant.
    fn direction(&self, (one, other): (usize, Option<usize>)) -> (Option<&EndTrack>, Option<&EndTrack>) {
        let one = &self.ends[one];
        let newest = |end: &EndTrack| end.pulses.back().map_or((0, 0), |pulse| (pulse.acked, pulse.received));
        // Where no more than greetings have arrived, the end that has something to send sends.
        let waits = |end: &EndTrack| end.tcp.map_or(0, |tcp| tcp.tx_queue);
        let receives = |end: &EndTrack| {
            let received = newest(end).1;
            (received.max(CARRIES), std::cmp::Reverse(waits(end)), received)
        };
        match other.map(|other| &self.ends[other]) {
            Some(other) if receives(one) >= receives(other) => (Some(one), Some(other)),
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
            let is_there = next.flows.binary_search_by_key(&end.key, FlowSample::key).is_ok();
            end.is_gone = !is_there || last_ns.saturating_add(SILENT_NS) < now_ns;
            if end.is_gone && end.carries_from_ns.is_some() {
                // The first round of pulses that it did not answer.
                let rounds = next.flows.iter().flat_map(|flow| &flow.pulses).map(|pulse| pulse.at_ns);
                let missed_ns = rounds.filter(|&at_ns| at_ns > last_ns.saturating_add(ROUND_NS)).min();
                unknown.push((last_ns.saturating_sub(BIN_NS), missed_ns.unwrap_or(now_ns.max(last_ns))));
            }
        }
        for &(one, other) in &self.pairs {
            let Some(other) = other else { continue };
            let is_ended = self.ends[one].is_gone || self.ends[other].is_gone;
            self.ends[one].peer_is_gone |= is_ended;
            self.ends[other].peer_is_gone |= is_ended;
        }
    }

    fn pair(&mut self) {
        self.pairs = join::pairs(&self.ends.iter().map(|end| end.place).collect::<Vec<_>>(), &self.paths);
    }
}
