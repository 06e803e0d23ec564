//! One end of a connection, pulse by pulse.

use super::BIN_NS;
use super::connection::{BusyShares, CARRIES};
use super::disorder::DisorderTrack;
use super::join::EndPlace;
use crate::rate::seconds;
use crate::share;
use std::collections::VecDeque;
use vnettop_sample::{FlowProgress, FlowSample, SocketKey, TcpState};

/// Pulses further apart than this have one bin between them: what happened when within it would be made up.
const MOST_GAP_NS: u64 = 5 * BIN_NS / 2;

/// One end, pulse by pulse.
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Debug, Clone, PartialEq)]
pub(super) struct EndTrack {
    pub key: SocketKey,
    pub place: EndPlace,
    pub pid: u32,
    /// Oldest first; from the last one before the next bin on.
    pub pulses: VecDeque<FlowProgress>,
    /// The last pulse of the tick before.
    pub before: Option<FlowProgress>,
    /// Since when nothing has moved, in whichever direction.
    pub silent_from_ns: u64,
    /// When it had nothing to send and waited for nobody's answer last.
    idle_until_ns: u64,
    pub connecting: bool,
    pub mptcp: Option<u32>,
    pub joined: bool,
    /// How it stands, and stood in the tick before.
    pub tcp: Option<TcpState>,
    pub tcp_before: Option<TcpState>,
    /// Its packets that overtook each other.
    pub disorder: DisorderTrack,
    /// Since when it is known to carry data.
    pub carries_from_ns: Option<u64>,
    /// It is gone.
    pub is_gone: bool,
    /// The other end is gone: what this one still does is no part of a benchmark.
    pub peer_is_gone: bool,
    /// It carries what a program copies from another connection.
    pub relayed: bool,
    /// The process of that program, of both connections.
    pub relay: Option<u32>,
}

impl EndTrack {
    pub fn new(flow: &FlowSample, place: EndPlace) -> Self {
        Self {
            key: flow.key(),
            place,
            pid: flow.pid,
            pulses: VecDeque::new(),
            before: None,
            silent_from_ns: flow.pulses.first().map_or(0, |pulse| pulse.at_ns),
            idle_until_ns: 0,
            connecting: flow.connecting,
            mptcp: flow.mptcp,
            joined: flow.joined,
            tcp: None,
            tcp_before: None,
            disorder: DisorderTrack::default(),
            carries_from_ns: None,
            is_gone: false,
            peer_is_gone: false,
            relayed: false,
            relay: None,
        }
    }

    /// Takes new pulses; tells the time in which it began to carry data, if it did.
    pub fn extend(&mut self, flow: &FlowSample) -> Option<(u64, u64)> {
        let mut began = None;
        (self.tcp, self.connecting, self.joined) = (flow.tcp, flow.connecting, flow.joined);
        self.mptcp = flow.mptcp.or(self.mptcp);
        if let Some(pulse) = flow.pulses.last() {
            self.disorder.observe(pulse.at_ns, flow.tcp.as_ref());
            if !flow.connecting && flow.tcp.is_some_and(|tcp| tcp.tx_queue == 0) {
                self.idle_until_ns = pulse.at_ns;
            }
        }
        for pulse in &flow.pulses {
            let last = self.pulses.back();
            if last.is_some_and(|last| last.at_ns >= pulse.at_ns) {
                continue;
            }
            if last.is_some_and(|last| (last.acked, last.received) != (pulse.acked, pulse.received)) {
                self.silent_from_ns = pulse.at_ns;
            }
            if self.carries_from_ns.is_none() && !self.peer_is_gone && pulse.acked.max(pulse.received) >= CARRIES {
                self.carries_from_ns = Some(pulse.at_ns);
                began = Some((last.map_or(pulse.at_ns, |last| last.at_ns), pulse.at_ns));
            }
            self.pulses.push_back(*pulse);
        }
        began.or_else(|| self.begin_to_wait())
    }

    /// Marks a connection as carrying data when as many bytes as a benchmark sends wait to be acknowledged, even if none ever
    /// arrives.
    pub fn begin_to_wait(&mut self) -> Option<(u64, u64)> {
        let waits = self.tcp.is_some_and(|tcp| u64::from(tcp.tx_queue) >= CARRIES);
        let newest_ns = self.pulses.back()?.at_ns;
        (waits && self.carries_from_ns.is_none() && !self.peer_is_gone).then(|| {
            self.carries_from_ns = Some(newest_ns);
            (newest_ns, newest_ns)
        })
    }

    pub fn carries_in(&self, from_ns: u64, to_ns: u64) -> bool {
        let last_ns = self.pulses.back().map_or(0, |pulse| pulse.at_ns);
        self.carries_from_ns.is_some_and(|began_ns| began_ns <= from_ns) && last_ns >= to_ns
    }

    /// Neighbouring pulses between which nothing was read for long.
    pub fn gaps(&self) -> impl Iterator<Item = (&FlowProgress, &FlowProgress)> {
        let pairs = self.pulses.iter().zip(self.pulses.iter().skip(1));
        pairs.filter(|(before, after)| after.at_ns - before.at_ns > MOST_GAP_NS)
    }

    /// What a counter rose in that time; none where pulses do not cover it.
    pub fn bytes(&self, from_ns: u64, to_ns: u64, counter: impl Fn(&FlowProgress) -> u64 + Copy) -> Option<f64> {
        let moved = self.at(to_ns, counter)? - self.at(from_ns, counter)?;
        // How much of a gap's sum lies on which side of an edge within it is not known.
        let is_cut = |at_ns| self.gaps().any(|(before, after)| before.at_ns < at_ns && at_ns < after.at_ns);
        (!is_cut(from_ns) && !is_cut(to_ns)).then_some(moved.max(0.0))
    }

    /// A counter at an instant, on the straight line between two pulses.
    pub fn at(&self, at_ns: u64, counter: impl Fn(&FlowProgress) -> u64) -> Option<f64> {
        let after = self.pulses.partition_point(|pulse| pulse.at_ns < at_ns);
        let next = self.pulses.get(after)?;
        if next.at_ns == at_ns {
            return Some(counter(next) as f64);
        }
        let last = self.pulses.get(after.checked_sub(1)?)?;
        let share = (at_ns - last.at_ns) as f64 / (next.at_ns - last.at_ns) as f64;
        Some(counter(last) as f64 + share * counter(next).saturating_sub(counter(last)) as f64)
    }

    /// How long nothing has moved.
    pub fn silent_s(&self) -> f64 {
        let newest_ns = self.pulses.back().map_or(0, |pulse| pulse.at_ns);
        newest_ns.saturating_sub(self.silent_from_ns) as f64 / 1e9
    }

    /// How long nothing has moved although this end had something to send, or waited for an answer.
    pub fn stuck_s(&self) -> f64 {
        let newest_ns = self.pulses.back().map_or(0, |pulse| pulse.at_ns);
        newest_ns.saturating_sub(self.silent_from_ns.max(self.idle_until_ns)) as f64 / 1e9
    }

    /// Segments sent again over the tick.
    pub fn retransmits_per_s(&self) -> Option<f64> {
        let rise = self.tcp?.retransmits.wrapping_sub(self.tcp_before?.retransmits);
        Some(f64::from(rise) / seconds(self.before?.at_ns, self.pulses.back()?.at_ns)?)
    }

    /// Segments with data over the tick, sent and received.
    pub fn segments_per_s(&self) -> Option<[f64; 2]> {
        let (now, before) = (self.tcp?, self.tcp_before?);
        let elapsed_s = seconds(self.before?.at_ns, self.pulses.back()?.at_ns)?;
        let rise = |of: fn(&TcpState) -> Option<u32>| Some(f64::from(of(&now)?.wrapping_sub(of(&before)?)) / elapsed_s);
        Some([rise(|tcp| tcp.data_out)?, rise(|tcp| tcp.data_in)?])
    }

    /// What it was busy with over the tick. The kernel counts in its own ticks, which may be longer than what was missed here.
    pub fn busy(&self) -> Option<BusyShares> {
        let (now, before) = (self.tcp?.busy?, self.tcp_before?.busy?);
        let elapsed_us = seconds(self.before?.at_ns, self.pulses.back()?.at_ns)? * 1e6;
        let share = |from: u64, to: u64| share::share(to.checked_sub(from)? as f64, elapsed_us);
        Some(BusyShares {
            all: share(before.all_us, now.all_us)?,
            rwnd: share(before.rwnd_us, now.rwnd_us)?,
            sndbuf: share(before.sndbuf_us, now.sndbuf_us)?,
        })
    }

    pub fn tick_bits_per_s(&self, counter: impl Fn(&FlowProgress) -> u64) -> Option<f64> {
        let (before, now) = (self.before?, self.pulses.back()?);
        let moved = counter(now).checked_sub(counter(&before))?;
        let elapsed_ns = now.at_ns.checked_sub(before.at_ns).filter(|&ns| ns > 0)?;
        Some(moved as f64 * 8e9 / elapsed_ns as f64)
    }
}
