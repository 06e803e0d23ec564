//! The last minute of what is watched on one axis of time, as a graph needs it: the rate's bins, where packets were lost,
//! what was done.

use super::Losses;
use super::flow::FlowMetrics;
use super::ledger::{Bin, FlowBasis, Ledger, MOST_BINS, Ticked, TimeSpan};
use std::collections::VecDeque;
use std::sync::Arc;
use vnettop_sample::{Event, Word};

/// A graph shows no more: older bins, losses and incidents are forgotten, ns.
pub const KEPT_NS: u64 = 60_000_000_000;

/// Everything on the axis, oldest first; empty before there is a rate.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Timeline {
    /// The rate, and the moves of each bin.
    pub bins: Vec<Bin>,
    /// The times in which packets were lost.
    pub losses: Vec<LostTime>,
    /// What was done.
    pub incidents: Vec<Incident>,
}

/// A time between two samples in which packets were lost.
#[derive(Debug, Clone, PartialEq)]
pub struct LostTime {
    /// The older sample, monotonic ns.
    pub from_ns: u64,
    /// The newer one.
    pub to_ns: u64,
    /// How many.
    pub packets: f64,
    /// What they were of the rate; none where that is not known.
    pub part: Option<LostPart>,
    /// Where most of them: the kind of place and its name.
    pub place: Arc<str>,
}

/// What lost packets were of a rate, or what they would have been.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LostPart {
    /// Payload of what was lost, bits/s, or all of it where the rate is a link's.
    pub bits_per_s: f64,
    /// The rate was measured before they were lost, and has them in it.
    pub within: bool,
}

impl Ticked for LostTime {
    fn span(&self) -> TimeSpan {
        TimeSpan { from_ns: self.from_ns, to_ns: self.to_ns }
    }
}

/// Something that was done while the rate ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Incident {
    /// When, monotonic ns.
    pub at_ns: u64,
    /// What.
    pub kind: IncidentKind,
    /// How many threads it was done to at once; 1 where it is not done to threads.
    pub count: usize,
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[allow(missing_docs, reason = "each is its word")]
#[strum(serialize_all = "lowercase")]
pub enum IncidentKind {
    Pin,
    #[strum(to_string = "unpin")]
    Restore,
    Mark,
    Saved,
}

impl IncidentKind {
    /// It is done to threads.
    #[must_use]
    pub fn is_of_threads(self) -> bool {
        matches!(self, Self::Pin | Self::Restore)
    }
}

/// What the bins do not have.
#[derive(Debug, Clone, Default)]
pub(super) struct TimelineTrack {
    losses: Ledger<LostTime>,
    incidents: VecDeque<Incident>,
    /// When the last thing was done: several threads that are pinned at once are one incident.
    last_ns: u64,
    /// The newest sample.
    seen_ns: u64,
}

/// Pins so close to each other are one, ns.
const AT_ONCE_NS: u64 = 500_000_000;
/// Things done that are kept.
const MOST_INCIDENTS: usize = 1024;

impl TimelineTrack {
    pub fn event(&mut self, event: &Event) {
        let (at_ns, kind) = match event {
            Event::Pinned { at_ns, .. } => (*at_ns, IncidentKind::Pin),
            Event::Restored { at_ns, .. } => (*at_ns, IncidentKind::Restore),
            Event::Mark { at_ns } => (*at_ns, IncidentKind::Mark),
            Event::Saved { at_ns, .. } => (*at_ns, IncidentKind::Saved),
            _ => return,
        };
        // A recording of old does not tell when: after the sample before it.
        let at_ns = if at_ns == 0 { self.seen_ns } else { at_ns };
        let is_at_once = at_ns.saturating_sub(self.last_ns) <= AT_ONCE_NS;
        match self.incidents.back_mut() {
            Some(incident) if incident.kind == kind && is_at_once => incident.count += 1,
            _ => self.incidents.push_back(Incident { at_ns, kind, count: 1 }),
        }
        // Of a minute in which something is done all the time, the last.
        let more = self.incidents.len().saturating_sub(MOST_INCIDENTS);
        self.incidents.drain(..more);
        self.last_ns = at_ns;
    }

    /// Takes the losses of a tick; an empty timeline where there is no rate.
    pub fn observe(
        &mut self,
        (from_ns, to_ns): (u64, u64),
        losses: &Losses,
        flow: &FlowMetrics,
        bins: &Ledger<Bin>,
    ) -> Arc<Timeline> {
        self.seen_ns = to_ns;
        let packets = losses.packets();
        if packets > 0.0 {
            self.losses.add(LostTime { from_ns, to_ns, packets, part: lost_part(flow), place: worst_place(losses) });
        }
        let since_ns = to_ns.saturating_sub(KEPT_NS);
        self.losses.forget(since_ns);
        self.losses.keep_newest(MOST_BINS);
        while self.incidents.pop_front_if(|incident| incident.at_ns < since_ns).is_some() {}
        if bins.is_empty() {
            return Arc::default();
        }
        Arc::new(Timeline {
            bins: bins.since(since_ns).copied().collect(),
            losses: self.losses.iter().cloned().collect(),
            incidents: self.incidents.iter().copied().collect(),
        })
    }
}

/// What UDP tests sent and their receivers did not read; none where that is not known of all of them. TCP sends again what it lost.
fn lost_part(flow: &FlowMetrics) -> Option<LostPart> {
    let tests = flow.tests.iter().filter(|_| matches!(flow.basis, Some(FlowBasis::Datagrams(_))));
    let lost: Option<f64> = tests.map(|test| Some(test.lost()? * test.sent?.bits_per_s)).sum();
    lost.filter(|bits| *bits > 0.0).map(|bits_per_s| LostPart { bits_per_s, within: false })
}

/// `qdisc fq veth0`, `backlog of core 3`, `receive buffer`
fn worst_place(losses: &Losses) -> Arc<str> {
    let Some(worst) = losses.places.first() else { return Arc::from("") };
    let kind = worst.place.word().replace('_', " ");
    match (&worst.name, worst.core) {
        (_, Some(core)) => format!("{kind} of core {core}").into(),
        (Some(name), None) => format!("{kind} {name}").into(),
        (None, None) => kind.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moves::MovesByClass;
    use vnettop_sample::{CoreSet, ThreadId};

    fn pinned(tid: u32, at_ns: u64) -> Event {
        let thread = ThreadId { pid: 1, tid, start: 0 };
        Event::Pinned { thread, old: CoreSet::single(0), asked: CoreSet::single(1), got: CoreSet::single(1), at_ns }
    }

    fn bins(count: u64) -> Ledger<Bin> {
        let bin = |n: u64| Bin {
            from_ns: n * 100_000_000,
            to_ns: (n + 1) * 100_000_000,
            bits_per_s: Some(n as f64),
            moves: MovesByClass::default(),
            unclassed: 0.0,
        };
        (0..count).map(bin).collect()
    }

    #[test]
    fn threads_pinned_at_once_are_one_incident() {
        let mut track = TimelineTrack::default();
        for event in [pinned(1, 5_000_000_000), pinned(2, 5_001_000_000), Event::Mark { at_ns: 6_000_000_000 }] {
            track.event(&event);
        }
        track.observe((8_000_000_000, 9_000_000_000), &Losses::default(), &FlowMetrics::default(), &bins(90));
        track.event(&pinned(1, 0));
        let timeline =
            track.observe((9_000_000_000, 9_500_000_000), &Losses::default(), &FlowMetrics::default(), &bins(95));
        let reported: Vec<_> =
            timeline.incidents.iter().map(|one| (one.at_ns / 1_000_000_000, one.kind.word(), one.count)).collect();
        let wanted = [(5, "pin", 2), (6, "mark", 1), (9, "pin", 1)];
        assert_eq!(reported, wanted, "what has no time was done after the sample before it");
    }

    #[test]
    fn a_minute_is_kept_and_nothing_where_there_is_no_rate() {
        let mut track = TimelineTrack::default();
        track.event(&Event::Mark { at_ns: 1 });
        let none = track.observe((0, 1_000_000_000), &Losses::default(), &FlowMetrics::default(), &Ledger::new());
        assert_eq!(*none, Timeline::default(), "no axis without a rate");
        let timeline =
            track.observe((99_000_000_000, 100_000_000_000), &Losses::default(), &FlowMetrics::default(), &bins(1000));
        assert_eq!((timeline.bins.len(), timeline.incidents.len()), (600, 0), "older things are forgotten");
        assert_eq!(timeline.bins.last().and_then(|bin| bin.bits_per_s), Some(999.0), "the newest is there");
    }
}
