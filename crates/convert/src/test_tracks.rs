//! The tests of a trace: the rate of each in bins of 100 ms, what it lost, how long its packets and threads waited, what held it
//! back and what was found.

use super::bin_follower::BinFollower;
use super::core_lanes::heading;
use super::counter_track::{CounterPlace, CounterTrack};
use super::events::words;
use super::machine_tracks::link_name;
use super::trace_writer::{Annotated, TraceWriter, TrackId, TrackKind};
use std::collections::BTreeMap;
use std::io::{self, Write};
use vnettop_derive::latency::{LatencySecond, Stage, StageKey};
use vnettop_derive::{Bin, Conclusions, FindingId, LimitKind, Loss, Metrics, TestLatency, TestMetrics};
use vnettop_sample::{CoreId, LinkKey, PathPoint, Word};

/// Counters of a stage: median and 99th percentile.
type StageCounters = [CounterTrack; 2];

/// What holds a test back, without its figures, which change with every sample.
type LimitSort = (LimitKind, Option<CoreId>, Option<String>);

/// One test.
#[derive(Debug)]
struct TestLanes {
    track: TrackId,
    bins: BinFollower,
    rate: CounterTrack,
    lost: CounterTrack,
    losses: Option<TrackId>,
    /// By stage; none is the whole path.
    stages: BTreeMap<Option<StageKey>, StageCounters>,
    /// The end of the last second of latency, monotonic ns.
    latency_to_ns: u64,
    limit_track: Option<TrackId>,
    limit: Option<LimitSort>,
    finding_track: Option<TrackId>,
    findings: Vec<FindingId>,
    has_ended: bool,
}

/// The tests, and everything that is watched while there is none.
#[derive(Debug, Default)]
pub struct TestTracks {
    heading: Option<TrackId>,
    /// By number; none is everything that is watched.
    tests: BTreeMap<Option<u32>, TestLanes>,
}

impl TestTracks {
    /// Takes a sample, whose figures are since the moment of the sample before; bins that begin before `since_ns` are left out.
    pub fn observe<W: Write>(
        &mut self,
        out: &mut TraceWriter<W>,
        metrics: &Metrics,
        from_ns: u64,
        since_ns: u64,
    ) -> io::Result<()> {
        let span = (from_ns, metrics.machine.at_ns);
        for test in &metrics.tests {
            let number = Some(test.number);
            let has_ended = test.ended_ns.is_some();
            if has_ended && self.tests.get(&number).is_none_or(|one| one.has_ended) {
                continue;
            }
            let name = || format!("test {}: {}", test.number, test.words());
            let one = self.of(out, number, since_ns, name)?;
            one.follow(out, &test.metrics)?;
            if has_ended {
                one.end(out, from_ns, true)?;
            } else {
                one.sample(out, &test.metrics, &test.conclusions, span)?;
            }
        }
        // Of tests the newest that have ended are kept: another one went unseen.
        let gone = |(number, one): (&Option<u32>, &mut TestLanes)| {
            let is_kept = metrics.tests.iter().any(|test| Some(test.number) == *number);
            (number.is_some() && !is_kept && !one.has_ended).then_some(*number)
        };
        for number in self.tests.iter_mut().filter_map(gone).collect::<Vec<_>>() {
            self.tests.get_mut(&number).map_or(Ok(()), |one| one.end(out, from_ns, true))?;
        }
        // Nothing of these comes again.
        self.tests.retain(|number, one| {
            number.is_none() || !one.has_ended || metrics.tests.iter().any(|test| Some(test.number) == *number)
        });
        if metrics.test.is_none() && !metrics.subject.timeline.bins.is_empty() {
            let one = self.of(out, None, since_ns, || "everything that is watched".to_owned())?;
            one.follow(out, &metrics.subject)?;
            one.sample(out, &metrics.subject, &metrics.conclusions, span)?;
        }
        Ok(())
    }

    /// The trace ends at this moment.
    pub fn finish<W: Write>(&mut self, out: &mut TraceWriter<W>, at_ns: u64) -> io::Result<()> {
        self.tests.values_mut().filter(|one| !one.has_ended).try_for_each(|one| one.end(out, at_ns, false))
    }

    fn of<W: Write>(
        &mut self,
        out: &mut TraceWriter<W>,
        number: Option<u32>,
        since_ns: u64,
        name: impl FnOnce() -> String,
    ) -> io::Result<&mut TestLanes> {
        let tests = heading(out, &mut self.heading, "Tests")?;
        match self.tests.entry(number) {
            std::collections::btree_map::Entry::Occupied(known) => Ok(known.into_mut()),
            std::collections::btree_map::Entry::Vacant(new) => {
                let track = out.track(Some(tests), TrackKind::Named(&name()))?;
                Ok(new.insert(TestLanes::new(track, since_ns)))
            }
        }
    }
}

impl TestLanes {
    fn new(track: TrackId, since_ns: u64) -> Self {
        Self {
            track,
            bins: BinFollower::since(since_ns),
            rate: CounterTrack::default(),
            lost: CounterTrack::default(),
            losses: None,
            stages: BTreeMap::new(),
            latency_to_ns: since_ns,
            limit_track: None,
            limit: None,
            finding_track: None,
            findings: Vec::new(),
            has_ended: false,
        }
    }

    fn follow<W: Write>(&mut self, out: &mut TraceWriter<W>, metrics: &TestMetrics) -> io::Result<()> {
        let settled = self.bins.follow(&metrics.timeline.bins);
        self.rates(out, &settled)
    }

    fn rates<W: Write>(&mut self, out: &mut TraceWriter<W>, bins: &[Bin]) -> io::Result<()> {
        let place = CounterPlace { below: self.track, name: "rate", unit: "bit/s", shows_zero: true };
        bins.iter().try_for_each(|bin| self.rate.step(out, place, (bin.from_ns, bin.to_ns), bin.bits_per_s))
    }

    fn sample<W: Write>(
        &mut self,
        out: &mut TraceWriter<W>,
        metrics: &TestMetrics,
        conclusions: &Conclusions,
        span: (u64, u64),
    ) -> io::Result<()> {
        let place = CounterPlace { below: self.track, name: "lost", unit: "packets/s", shows_zero: false };
        let losses = &metrics.losses;
        let lost = (losses.seconds > 0.0).then(|| losses.per_second(losses.packets()));
        self.lost.step(out, place, span, lost)?;
        for loss in losses.places.iter().filter(|loss| loss.packets > 0.0) {
            self.loss(out, span.1, loss)?;
        }
        if let Some(latency) = &metrics.latency {
            self.latency(out, metrics, latency)?;
        }
        self.concluded(out, conclusions, span.1)
    }

    fn loss<W: Write>(&mut self, out: &mut TraceWriter<W>, at_ns: u64, loss: &Loss) -> io::Result<()> {
        let on = below(out, &mut self.losses, self.track, "losses")?;
        let place = words(loss.place);
        let at = loss.name.as_ref().map_or_else(String::new, |name| format!(" {name}"));
        let text = |text: &str| Annotated::Text(text.to_owned());
        let mut beside = vec![("packets", Annotated::Real(loss.packets)), ("place", text(loss.place.word()))];
        beside.extend(loss.reason.as_ref().map(|reason| ("reason", text(reason))));
        beside.extend(loss.function.as_ref().map(|function| ("function", text(function))));
        out.instant(on, at_ns, &format!("lost: {place}{at}"), &beside)
    }

    /// Figures of stages hold for the second that has just passed.
    fn latency<W: Write>(
        &mut self,
        out: &mut TraceWriter<W>,
        metrics: &TestMetrics,
        latency: &TestLatency,
    ) -> io::Result<()> {
        let new = latency.seconds.iter().filter(|second| second.at_ns > self.latency_to_ns).copied();
        let new: Vec<LatencySecond> = new.collect();
        let Some(last) = new.last() else { return Ok(()) };
        self.latency_to_ns = last.at_ns;
        for second in &new {
            let figures = second.whole.map(|whole| [whole.p50_s, whole.p99_s]);
            self.stage(out, None, "whole path", *second, figures)?;
        }
        for stage in &latency.stages {
            let figures = stage.now.map(|now| [now.p50_s, now.p99_s]);
            if figures.is_some() || self.stages.contains_key(&Some(stage.key)) {
                self.stage(out, Some(stage.key), &stage_name(metrics, stage.key), *last, figures)?;
            }
        }
        Ok(())
    }

    fn stage<W: Write>(
        &mut self,
        out: &mut TraceWriter<W>,
        key: Option<StageKey>,
        name: &str,
        second: LatencySecond,
        figures: Option<[f64; 2]>,
    ) -> io::Result<()> {
        let span = (second.at_ns.saturating_sub(second.for_ns), second.at_ns);
        let names = [format!("{name}: median"), format!("{name}: 99th percentile")];
        for (nth, (counter, name)) in self.stages.entry(key).or_default().iter_mut().zip(&names).enumerate() {
            let place = CounterPlace { below: self.track, name, unit: "us", shows_zero: true };
            counter.step(out, place, span, figures.map(|figures| figures[nth] * 1e6))?;
        }
        Ok(())
    }

    fn concluded<W: Write>(
        &mut self,
        out: &mut TraceWriter<W>,
        conclusions: &Conclusions,
        at_ns: u64,
    ) -> io::Result<()> {
        let limit = conclusions.limit.as_ref();
        let sort = limit.map(|limit| (limit.kind, limit.core, limit.name.clone()));
        if sort != self.limit {
            let on = below(out, &mut self.limit_track, self.track, "limit")?;
            if self.limit.is_some() {
                out.end(on, at_ns)?;
            }
            if let Some(limit) = limit {
                let core = limit.core.map_or_else(String::new, |core| format!(", core {core}"));
                let beside = [("text", Annotated::Text(limit.text.clone()))];
                out.begin(on, at_ns, &format!("{}{core}", words(limit.kind)), &beside)?;
            }
            self.limit = sort;
        }
        let before = std::mem::take(&mut self.findings);
        for finding in conclusions.findings.iter().filter(|finding| !before.contains(&finding.id)) {
            let on = below(out, &mut self.finding_track, self.track, "findings")?;
            let beside = [("finding", Annotated::Text(finding.id.word().to_owned()))];
            out.instant(on, at_ns, &finding.text, &beside)?;
        }
        self.findings.extend(conclusions.findings.iter().map(|finding| finding.id));
        Ok(())
    }

    /// The test, or the trace, ends: what has gone has a rate of 0 from then on.
    fn end<W: Write>(&mut self, out: &mut TraceWriter<W>, at_ns: u64, has_gone: bool) -> io::Result<()> {
        self.has_ended = true;
        let rest = self.bins.rest();
        self.rates(out, &rest)?;
        if let Some(on) = self.limit_track.filter(|_| self.limit.take().is_some()) {
            out.end(on, at_ns)?;
        }
        let stages = std::mem::take(&mut self.stages);
        for mut counter in stages.into_values().flatten() {
            counter.end(out)?;
        }
        for counter in [&mut self.rate, &mut self.lost] {
            if has_gone { counter.close(out) } else { counter.end(out) }?;
        }
        Ok(())
    }
}

fn below<W: Write>(
    out: &mut TraceWriter<W>,
    track: &mut Option<TrackId>,
    above: TrackId,
    name: &str,
) -> io::Result<TrackId> {
    match *track {
        Some(track) => Ok(track),
        None => Ok(*track.insert(out.track(Some(above), TrackKind::Named(name))?)),
    }
}

fn stage_name(metrics: &TestMetrics, key: StageKey) -> String {
    let machine = &metrics.machine;
    let link = |key: LinkKey| machine.link(key).map_or_else(|| "a link".to_owned(), |link| link_name(machine, link));
    let point = |point: PathPoint| match point.link {
        Some(key) => format!("{} {}", link(key), words(point.what)),
        None => words(point.what),
    };
    let of = match key.stage {
        Stage::Qdisc(at) => format!("qdisc of {}", link(at)),
        Stage::Hop { from, to } => format!("{} to {}", point(from), point(to)),
        Stage::Softirq(core) => format!("softirq of core {core}"),
        Stage::Wakeup(id) | Stage::SendGap(id) | Stage::ReadGap(id) | Stage::Answer(id) => {
            format!("{} of thread {}", words(key.stage), id.tid)
        }
        Stage::Socket | Stage::ArrivalGap | Stage::Whole | Stage::Alike => words(key.stage),
    };
    if key.is_back { format!("latency, {of} (answers)") } else { format!("latency, {of}") }
}
