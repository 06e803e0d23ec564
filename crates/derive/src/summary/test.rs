//! The tests of a recording: each with its rate, what it lost, what held it back and what was found.

use super::SummaryRoom;
use super::columns::{halve, spread};
use super::latency::{StageSummary, StagesTrack};
use super::limits::{LimitSeen, LimitsTrack};
use super::lost::{LossCauses, LossSummary};
use super::path::{PathSummary, PathTrack};
use super::rate::{RateSummary, RateTrack};
use super::sent::SentTrack;
use crate::latency::UnknownLatency;
use crate::run::Seen;
use crate::timeline::Incident;
use crate::workers::with_ends;
use crate::{Conclusions, FindingId, Mean, Metrics, Test, TestMetrics};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Places of losses and incidents that are kept.
const MOST_PLACES: usize = 64;
const MOST_INCIDENTS: usize = 256;
/// How often it is looked which paths there are, ns.
const LOOK_EVERY_NS: u64 = 2_000_000_000;

/// Everything that is known of one test, or of everything watched where there was none.
#[derive(Debug, Clone, PartialEq)]
pub struct TestSummary {
    /// The test as it was last; none for everything that was watched.
    pub test: Option<Arc<Test>>,
    /// Its rate.
    pub rate: RateSummary,
    /// Mean payload as every face tells it, bits/s: of a test that of [`Test::mean`].
    pub mean_bits_per_s: Option<f64>,
    /// When it began, monotonic ns.
    pub from_ns: u64,
    /// When it was over, or the last sample, monotonic ns.
    pub to_ns: u64,
    /// It still ran at the last sample.
    pub runs: bool,
    /// Packets that it lost.
    pub lost: f64,
    /// Which share of the packets that it sent, over its whole time; none where that is not known for most of it.
    pub lost_share: Option<f64>,
    /// Where, the worst first.
    pub losses: Vec<LossSummary>,
    /// Packets lost by column of time.
    pub lost_columns: Vec<f64>,
    /// TCP segments sent again by column of time: its own where these are known, else those of the senders' namespaces.
    pub retransmit_columns: Vec<f64>,
    /// Payload that its client was started with, all streams together, bits/s; none where it sends as fast as it can.
    pub asked_bits_per_s: Option<f64>,
    /// Payload of datagrams that its senders gave to the kernel, bits/s; none of TCP, and where that is not known for most of it.
    pub sent_bits_per_s: Option<f64>,
    /// The same that its receivers read: its rate is of what arrived, and not of what was sent.
    pub read_bits_per_s: Option<f64>,
    /// CPU time of its threads on this machine, cores' worth; none of a test without a whole sample.
    pub own_cores: Option<f64>,
    /// CPU time of all softirqs of this machine meanwhile, cores' worth.
    pub softirq_cores: Option<f64>,
    /// TCP segments sent again in the senders' namespaces; none where nothing counts them.
    pub retransmits: Option<f64>,
    /// TCP segments that its own connections sent again; none where one of them does not tell.
    pub own_retransmits: Option<f64>,
    /// These as a share of the segments that it sent; none where that is not known for most of its time.
    pub own_retransmit_share: Option<f64>,
    /// What held it back, the longest first.
    pub limits: Vec<LimitSeen>,
    /// What was found, as it was last (a loss: with the cause of most of it, as that was worst), and for how long, most important first.
    pub findings: Vec<Seen>,
    /// What was done meanwhile.
    pub incidents: Vec<Incident>,
    /// Which links its data crossed.
    pub paths: Vec<PathSummary>,
    /// Where its packets and threads waited: the whole path, then stage by stage; empty where it was not measured.
    pub stages: Vec<StageSummary>,
    /// What of that was not measured, and why.
    pub unknown_stages: Vec<UnknownLatency>,
}

#[derive(Debug, Clone)]
struct OneTest {
    test: Option<Arc<Test>>,
    rate: RateTrack,
    from_ns: u64,
    to_ns: u64,
    lost: f64,
    losses: Vec<LossSummary>,
    lost_columns: Vec<f64>,
    retransmits: Option<f64>,
    sent: SentTrack,
    limits: LimitsTrack,
    findings: Vec<Seen>,
    loss_causes: LossCauses,
    incidents: BTreeMap<u64, Incident>,
    path: PathTrack,
    stages: StagesTrack,
    looked_at_ns: u64,
    asked_bits_per_s: Option<f64>,
    own_cores: Mean,
    softirq_cores: Mean,
}

#[derive(Debug, Clone)]
pub(super) struct TestsTrack {
    room: SummaryRoom,
    /// Samples until now.
    samples: u64,
    /// By number; none is everything that is watched while there is no test.
    tests: BTreeMap<Option<u32>, OneTest>,
    /// Tests left out that samples still have, and how many were left out so far.
    left_out: Vec<u32>,
    left_out_so_far: usize,
}

impl TestsTrack {
    pub fn new(room: SummaryRoom) -> Self {
        Self { room, samples: 0, tests: BTreeMap::new(), left_out: Vec::new(), left_out_so_far: 0 }
    }

    pub fn observe(&mut self, metrics: &Metrics, spans: &[(usize, f64)]) {
        self.samples += 1;
        self.left_out.retain(|number| metrics.tests.iter().any(|test| test.number == *number));
        for test in &metrics.tests {
            if self.left_out.contains(&test.number) {
                continue;
            }
            let is_new = !self.tests.contains_key(&Some(test.number));
            if is_new && test.metrics.timeline.bins.is_empty() && test.ended_ns.is_some() {
                continue;
            }
            let one = self.tests.entry(Some(test.number)).or_insert_with(|| OneTest::new(self.room, test.began_ns));
            let was_over = one.test.as_ref().is_some_and(|last| last.ended_ns.is_some());
            let covers = metrics.machine.began_ns().is_some_and(|from_ns| test.covers(from_ns, metrics.machine.at_ns));
            one.observe(&test.metrics, &test.conclusions, spans, (test.ended_ns.is_none(), covers));
            if test.ended_ns.is_none() {
                one.sent.observe(&test.metrics, (self.samples > 1, covers), spans);
            }
            if !was_over {
                one.to_ns = test.ended_ns.unwrap_or(metrics.machine.at_ns);
            }
            one.lost = test.lost;
            one.test = Some(Arc::clone(test));
        }
        if metrics.test.is_none() && !metrics.subject.timeline.bins.is_empty() {
            let began_ns = metrics.subject.timeline.bins.first().map_or(metrics.machine.at_ns, |bin| bin.from_ns);
            let one = self.tests.entry(None).or_insert_with(|| OneTest::new(self.room, began_ns));
            one.observe(&metrics.subject, &metrics.conclusions, spans, (true, true));
            one.sent.observe(&metrics.subject, (self.samples > 1, true), spans);
            one.to_ns = metrics.machine.at_ns;
            one.lost += metrics.subject.losses.packets();
        }
        self.make_room();
    }

    fn make_room(&mut self) {
        while self.tests.len() > self.room.tests {
            let over = self.tests.iter().filter(|(number, _)| number.is_some());
            let least = over.min_by(|(_, one), (_, other)| one.rate.bits().total_cmp(&other.rate.bits()));
            let Some(least) = least.and_then(|(number, _)| *number) else { return };
            self.tests.remove(&Some(least));
            self.left_out.push(least);
            self.left_out_so_far += 1;
        }
    }

    pub fn halve(&mut self) {
        for one in self.tests.values_mut() {
            halve(&mut one.lost_columns, |one, other| *one += other);
            one.sent.halve();
        }
    }

    /// The tests; what was watched beside them only where there are none, or where nothing else has a rate.
    pub fn summaries(&self) -> (Vec<TestSummary>, usize) {
        let all: Vec<TestSummary> =
            self.tests.iter().filter(|(n, _)| n.is_some()).map(|(_, one)| one.summary()).collect();
        if all.is_empty() {
            let watched = self.tests.get(&None).map(OneTest::summary);
            return (watched.into_iter().filter(|one| one.rate.bits() > 0.0).collect(), 0);
        }
        (all, self.left_out_so_far)
    }
}

impl RateSummary {
    fn bits(&self) -> f64 {
        self.bins.iter().map(|bin| bin.bits_per_s.unwrap_or(0.0) * bin.length_s()).sum()
    }
}

impl OneTest {
    fn new(room: SummaryRoom, from_ns: u64) -> Self {
        Self {
            test: None,
            rate: RateTrack::new(room.bins),
            from_ns,
            to_ns: from_ns,
            lost: 0.0,
            losses: Vec::new(),
            lost_columns: Vec::new(),
            retransmits: None,
            sent: SentTrack::default(),
            limits: LimitsTrack::default(),
            findings: Vec::new(),
            loss_causes: LossCauses::default(),
            incidents: BTreeMap::new(),
            path: PathTrack::default(),
            stages: StagesTrack::default(),
            looked_at_ns: 0,
            asked_bits_per_s: None,
            own_cores: Mean::default(),
            softirq_cores: Mean::default(),
        }
    }

    /// Takes the figures of a sample, of which all is of the test where it `is_whole`. A test that is over may still lose packets for a moment.
    fn observe(
        &mut self,
        own: &Arc<TestMetrics>,
        concluded: &Conclusions,
        spans: &[(usize, f64)],
        (runs, is_whole): (bool, bool),
    ) {
        self.take_losses(own, spans);
        if !runs {
            return;
        }
        self.rate.follow(&own.timeline.bins, own.flow.basis.as_ref());
        for incident in &own.timeline.incidents {
            self.incidents.insert(incident.at_ns, *incident);
        }
        while self.incidents.len() > MOST_INCIDENTS {
            self.incidents.pop_first();
        }
        // A sample reaches back beyond the start of the test that it is the first of.
        let of_test_s = own.machine.at_ns.saturating_sub(self.from_ns) as f64 / 1e9;
        let elapsed_s = own.machine.elapsed_s.unwrap_or(0.0).min(of_test_s);
        if let Some(limit) = &concluded.limit {
            self.limits.add(limit, (elapsed_s, own.machine.at_ns));
        }
        for finding in &concluded.findings {
            if finding.id == FindingId::Loss {
                self.loss_causes.observe(finding, elapsed_s, own.machine.at_ns);
            }
            let at_ns = own.machine.at_ns;
            if let Some(seen) = self.findings.iter_mut().find(|seen| seen.finding.id == finding.id) {
                seen.seconds += elapsed_s;
                (seen.finding, seen.at_ns) = (finding.clone(), at_ns);
            } else {
                self.findings.push(Seen { finding: finding.clone(), seconds: elapsed_s, at_ns });
            }
        }
        self.path.observe(own, is_whole);
        self.asked_bits_per_s = own.asked_bits_per_s().or(self.asked_bits_per_s);
        if is_whole {
            self.add_cost(own);
        }
        self.stages.observe(own);
        if own.machine.at_ns.saturating_sub(self.looked_at_ns) >= LOOK_EVERY_NS {
            self.looked_at_ns = own.machine.at_ns;
            self.path.look(own);
        }
    }

    /// The CPU time that a sample took: of its own threads, and of softirqs, whosever packets they handle.
    fn add_cost(&mut self, own: &TestMetrics) {
        let elapsed_s = own.machine.elapsed_s.unwrap_or(0.0);
        // Who carries packets may be watched as well.
        let all = with_ends(&own.threads, &own.workers);
        let threads = all.iter().map(|thread| thread.cpu);
        let all = threads.map(|cpu| cpu.filter(|cpu| cpu.is_finite())).reduce(|sum, one| Some(sum? + one?)).flatten();
        self.own_cores.add(all, elapsed_s);
        let softirqs = own.machine.cores.iter().filter_map(|core| Some(core.shares()?.softirq));
        self.softirq_cores.add(softirqs.reduce(|sum, one| sum + one), elapsed_s);
    }

    fn take_losses(&mut self, own: &TestMetrics, spans: &[(usize, f64)]) {
        let losses = &own.losses;
        if let Some(again) = losses.retransmits {
            self.retransmits = Some(self.retransmits.unwrap_or(0.0) + again);
        }
        let packets = losses.packets();
        if packets <= 0.0 {
            return;
        }
        spread(&mut self.lost_columns, packets, spans);
        for loss in &losses.places {
            let known = self.losses.iter().position(|one| {
                (one.place, one.link, one.netns, &one.name, one.core, &one.reason, &one.function)
                    == (loss.place, loss.link, loss.netns, &loss.name, loss.core, &loss.reason, &loss.function)
            });
            match known {
                Some(at) => self.losses[at].packets += loss.packets,
                None if self.losses.len() < MOST_PLACES => self.losses.push(LossSummary {
                    place: loss.place,
                    link: loss.link,
                    netns: loss.netns,
                    space: loss.netns.map(|netns| own.machine.space_in_table(netns)),
                    name: loss.name.clone(),
                    core: loss.core,
                    reason: loss.reason.clone(),
                    function: loss.function.clone(),
                    packets: loss.packets,
                }),
                None => {}
            }
        }
    }

    fn summary(&self) -> TestSummary {
        let mean_bits_per_s = self.test.as_ref().and_then(|test| test.mean).map(|mean| mean.bits_per_s);
        let [sent_bits_per_s, read_bits_per_s] = self.sent.datagrams(mean_bits_per_s);
        let rate = self.rate.summary();
        let mut losses = self.losses.clone();
        losses.sort_by(|one, other| other.packets.total_cmp(&one.packets));
        let mut findings = self.findings.clone();
        if let Some((seen, cause)) =
            findings.iter_mut().find(|seen| seen.finding.id == FindingId::Loss).zip(self.loss_causes.main())
        {
            (seen.finding, seen.at_ns) = cause;
        }
        // As they are listed, the most important first.
        findings.sort_by_key(|seen| seen.finding.id as usize);
        let mut paths = self.path.summaries();
        for hop in paths.iter_mut().flat_map(|path| &mut path.hops) {
            let here = losses.iter().filter(|loss| loss.link == Some(hop.link));
            hop.lost = here.fold(0.0, |all, loss| all + loss.packets);
        }
        TestSummary {
            mean_bits_per_s: match &self.test {
                Some(_) => mean_bits_per_s,
                None => rate.jitter.map(|jitter| jitter.mean),
            },
            rate,
            from_ns: self.from_ns,
            to_ns: self.to_ns,
            runs: self.test.as_ref().is_none_or(|test| test.ended_ns.is_none()),
            lost: self.lost,
            lost_share: self.sent.lost_share(),
            losses,
            lost_columns: self.lost_columns.clone(),
            retransmit_columns: self.sent.again_columns(),
            asked_bits_per_s: self.asked_bits_per_s,
            sent_bits_per_s,
            read_bits_per_s,
            own_cores: self.own_cores.value(),
            softirq_cores: self.softirq_cores.value(),
            retransmits: self.retransmits,
            own_retransmits: self.sent.again(),
            own_retransmit_share: self.sent.again_share(),
            limits: self.limits.summaries(),
            findings,
            incidents: self.incidents.values().copied().collect(),
            paths,
            stages: self.stages.summaries(),
            unknown_stages: self.stages.unknown(),
            test: self.test.clone(),
        }
    }
}
