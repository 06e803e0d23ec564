//! Samples → Metrics. Pure: no clock, no file, no terminal; the same two samples always give the same numbers.
//! It knows `sample` and nothing else of ours. Unknown is `None` from here to the last cell: a first sample, a counter
//! that went backwards, a core that came online have no rate.

pub mod before_after;
pub mod benchmarks;
pub mod cause;
pub mod comparison;
pub mod cores;
pub mod denial;
pub mod diagnosis;
pub mod doctor;
pub mod drops;
pub mod end_to_end;
pub mod finding;
pub mod fleet;
pub mod flow;
pub mod highlights;
pub mod history;
pub mod jitter;
pub mod limit;
pub mod links;
pub mod losses;
pub mod moves;
pub mod ovs;
pub mod owners;
mod part;
pub mod paths;
pub mod pins;
pub mod placement;
pub mod run;
mod scope;
mod short_lives;
pub mod summary;
pub mod test;
mod test_stages;
pub mod threads;
pub mod timeline;
pub mod totals;
pub(in crate::derive) mod window;

use crate::sample::{
    Benchmark, CoreId, Duty, Event, Facts, FlowPath, Item, KernelCounts, LinkKey, OwnCost, Owned, Owner, Sample,
    TraceSource, Tracer, row_of,
};
use history::History;
use owners::Owners;
use pins::Pins;
use placement::RecentLoad;
use scope::Scope;
use std::fmt::Display;
use std::sync::Arc;
use test::Tests;
use test_stages::TestStages;

pub use before_after::Card;
pub use cause::{Cause, Crossing};
pub use cores::CoreMetrics;
pub use drops::Drop;
pub use end_to_end::{EndToEnd, HostEnd, HostHop, HostLoss, HostMetrics, end_to_end};
pub use finding::{Finding, FindingId};
pub use flow::{Bin, FlowBasis, FlowMetrics};
pub use highlights::{Highlight, HighlightKind, Highlights};
pub use jitter::Jitter;
pub use limit::{Limit, LimitKind};
pub use links::{Basis, LinkMetrics, OvsPlace};
pub use losses::{Loss, LossPlace, Losses};
pub use moves::{Evidence, MoveClass, MovesByClass, TracedMove};
pub use ovs::DatapathMetrics;
pub use pins::OverriddenPin;
pub use short_lives::ShortLivedGroup;
pub use summary::{RecordingSummary, SummaryRoom, SummaryTrack, TestSummary};
pub use test::{Test, TestKey, TestMean};
pub use threads::ThreadMetrics;
pub use timeline::Timeline;
pub use totals::Totals;
pub(in crate::derive) use window::Mean;

/// Everything derived from two or more samples: what every face shows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Metrics {
    /// Wall clock of the newer sample, milliseconds since 1970, UTC.
    pub wall_ms: u64,
    /// `CLOCK_MONOTONIC` of the newer sample, ns.
    pub at_ns: u64,
    /// True time between the two samples, seconds; none for the first.
    pub elapsed_s: Option<f64>,
    /// What hardly changes, of the whole machine and as read. What is joined to it, or is of one test alone, is beside it:
    /// links, owners, benchmarks and paths.
    pub facts: Arc<Facts>,
    /// Inode of vnettop's own network namespace.
    pub netns: u64,
    /// Every link, sorted by namespace and ifindex.
    pub links: Arc<Vec<LinkMetrics>>,
    /// Who the links belong to, also where only Open vSwitch knows, sorted by link; the same `Arc` until it changes.
    pub owners: Arc<Vec<Owned>>,
    /// The datapaths of Open vSwitch that flows cross, sorted by socket, namespace and name.
    pub datapaths: Vec<DatapathMetrics>,
    /// Every present core, sorted by core.
    pub cores: Vec<CoreMetrics>,
    /// Every watched thread, sorted by (pid, tid).
    pub threads: Vec<ThreadMetrics>,
    /// The connections of the watched processes, and how fast their traffic runs.
    pub flow: FlowMetrics,
    /// The benchmark programs among the watched processes, sorted by pid.
    pub benchmarks: Vec<Benchmark>,
    /// Where packets of the watched flows were lost since the sample before.
    pub losses: Losses,
    /// What the kernel itself has counted, as of the newer and of the older sample; none where its programs do not run.
    pub kernel: [Option<Arc<KernelCounts>>; 2],
    /// Which way the flows go; see [`paths::of`].
    pub paths: Arc<Vec<FlowPath>>,
    /// The spread of the watched flow's rate over the last half minute, or since the last pin has settled: the same time
    /// as the findings'. None before there is one.
    pub jitter: Option<Jitter>,
    /// The last minute of the rate, with what happened in it.
    pub timeline: Arc<Timeline>,
    /// What a pin brought; none before the first pin, and while its windows fill.
    pub card: Option<Card>,
    /// The moves since the sample before, as traced; empty where they are not.
    pub moves: Vec<TracedMove>,
    /// Threads that ended before they were found, by program, since the beginning; none where the kernel does not tell of them.
    pub short_lives: Option<Arc<Vec<ShortLivedGroup>>>,
    /// Where the traced moves come from, and how many were lost since the trace began; none where nothing is traced.
    pub trace: Option<(TraceSource, u64)>,
    /// Whether the kernel is asked, and since when; none in older recordings.
    pub tracer: Option<Tracer>,
    /// vnettop's own CPU time, share of one core; none for the first sample.
    pub own_cpu: Option<f64>,
    /// vnettop's own counters.
    pub own: OwnCost,
    /// What vnettop or its user did since the sample before.
    pub events: Vec<Event>,
    /// Pins of vnettop that were found undone by something else since the sample before.
    pub undone: Vec<OverriddenPin>,
    /// The last seconds of every core and thread; what others put on a core is told apart from what these threads do.
    pub recent: Arc<RecentLoad>,
    /// Cores can be proposed for the busy threads, and the proposal does not itself doubt that it helps; as of the last second.
    pub placement_may_help: bool,
    /// Sentences of advice, most important first.
    pub findings: Vec<Finding>,
    /// What holds it back now; none before two samples of a test that runs.
    pub limit: Option<Limit>,
    /// The tests, in the order in which they began: those that run, and the last ones that have ended. Empty where what belongs
    /// to one command is derived.
    pub tests: Vec<Arc<Test>>,
    /// The test that everything from the flows to the findings is about, by number; none: everything that is watched, or what
    /// belongs to one command.
    pub test: Option<u32>,
}

impl Metrics {
    /// The threads that the test consists of; where there is none, all that are watched without those of switches.
    pub fn benchmark(&self) -> impl Iterator<Item = &ThreadMetrics> + Clone {
        let is_own = |thread: &&ThreadMetrics| self.test.is_none() || thread.test == self.test;
        self.threads.iter().filter(|thread| thread.sample.duty != Duty::Switch).filter(is_own)
    }

    /// `CLOCK_MONOTONIC` of the older sample, ns.
    fn began_ns(&self) -> Option<u64> {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time between two samples")]
        self.elapsed_s.map(|elapsed_s| self.at_ns.saturating_sub((elapsed_s * 1e9) as u64))
    }

    /// Whether the kernel says of each dropped packet where and why.
    #[must_use]
    pub fn asks_kernel(&self) -> bool {
        self.kernel[0].as_ref().is_some_and(|kernel| kernel.drops.is_some())
    }

    /// Whether softirqs are timed from entry to exit; else their share is sampled at clock ticks.
    #[must_use]
    pub fn times_softirqs(&self) -> bool {
        self.cores.iter().any(|core| core.load.is_some_and(|load| load.softirqs_exact.is_some()))
    }

    /// A link by its place.
    #[must_use]
    pub fn link(&self, key: LinkKey) -> Option<&LinkMetrics> {
        row_of(&self.links, &key, |link| link.facts.key())
    }

    /// A core by its number.
    #[must_use]
    pub fn core(&self, core: CoreId) -> Option<&CoreMetrics> {
        row_of(&self.cores, &core, |row| row.place.core)
    }

    /// Who a link belongs to.
    #[must_use]
    pub fn owner(&self, link: LinkKey) -> Option<&Owner> {
        row_of(&self.owners, &link, |owned| owned.link).map(|owned| &owned.owner)
    }
}

/// Folds the stream of a run into metrics; keeps the previous sample and what needs more than two. A sample goes through two
/// stages: what it says of the machine, and of that what concerns a benchmark, from its flows to what is found.
#[derive(Debug, Clone)]
pub struct Derivation {
    previous: Option<Sample>,
    machine: FirstStage,
    /// What belongs to the command, or everything that is watched while no test runs.
    stages_without_test: TestStages,
    /// None where everything is one.
    tests: Option<Tests>,
    /// What of a sample is looked at; none is all of it.
    scope: Option<Scope>,
}

impl Default for Derivation {
    /// One that tells tests apart.
    fn default() -> Self {
        Self { tests: Some(Tests::default()), ..Self::of_everything() }
    }
}

impl Derivation {
    /// One that looks at what belongs to the command that vnettop runs, and at nothing else that is watched.
    #[must_use]
    pub fn of_command() -> Self {
        Self { scope: Some(Scope::default()), ..Self::of_everything() }
    }

    /// One to which everything that is watched is one test.
    #[must_use]
    pub fn of_everything() -> Self {
        Self {
            previous: None,
            machine: FirstStage::default(),
            stages_without_test: TestStages::default(),
            tests: None,
            scope: None,
        }
    }

    /// Takes the next item of the stream; a sample gives metrics, an event is remembered.
    pub fn advance(&mut self, item: Item) -> Option<Metrics> {
        match item {
            Item::Sample(sample) => Some(self.sample(*sample)),
            Item::Event(event) => {
                self.machine.events.push(event);
                None
            }
        }
    }

    /// The strips of the links and the trails of the threads.
    #[must_use]
    pub fn history(&self) -> &History {
        &self.machine.history
    }

    /// The newest sample.
    #[must_use]
    pub fn latest(&self) -> Option<&Sample> {
        self.previous.as_ref()
    }

    /// Threads of switches are taken out before the benchmark is derived and put back at the end.
    fn sample(&mut self, mut next: Sample) -> Metrics {
        let mut previous = self.previous.take();
        if let Some(scope) = &mut self.scope {
            self.stages_without_test.flow.beside = scope.narrow(&mut next);
        }
        self.machine.history.observe_threads(previous.as_ref(), &next);
        let before = previous.as_mut().map(threads::without_switches).unwrap_or_default();
        let now = threads::without_switches(&mut next);
        let mut metrics = self.machine.observe(previous.as_ref(), &next);
        let leading = self
            .tests
            .as_mut()
            .and_then(|tests| tests.observe(previous.as_ref(), &next, &mut metrics, &self.machine.history));
        if let Some(test) = leading {
            metrics.copy_from(&test);
            // Whatever was concluded without it says nothing of what comes after it.
            self.stages_without_test = TestStages::default();
        } else {
            self.stages_without_test.observe(previous.as_ref(), &next, &mut metrics, &self.machine.history);
            // The proof outlives what it is of.
            let last_card = || metrics.tests.iter().rev().find_map(|test| test.metrics.card.clone());
            metrics.card = metrics.card.take().or_else(last_card);
        }
        if !now.is_empty() {
            metrics.threads.extend(threads::of_switches(&before, &now, &self.machine.history, &self.machine.pins));
            metrics.threads.sort_by_key(|thread| (thread.sample.id.pid, thread.sample.id.tid));
            next.threads.extend(now);
            next.threads.sort_by_key(|thread| (thread.id.pid, thread.id.tid));
        }
        self.previous = Some(next);
        metrics
    }
}

/// The first stage: links, cores, threads, and who they belong to.
#[derive(Debug, Clone, Default)]
struct FirstStage {
    owners: Owners,
    history: History,
    /// The pins of vnettop that stand.
    pins: Pins,
    switches: ovs::Switches,
    short_lives: short_lives::ShortLives,
    /// As of the sample before.
    datapaths: Vec<ovs::DatapathMetrics>,
    /// What happened since the last sample.
    events: Vec<Event>,
}

impl FirstStage {
    /// What of the metrics is of no benchmark; the rest is empty.
    fn observe(&mut self, previous: Option<&Sample>, next: &Sample) -> Metrics {
        self.events.iter().for_each(|event| self.pins.event(event));
        let mut links = links::between(previous, next);
        let facts = &next.facts;
        self.switches.join(&facts.ovs, &mut links);
        self.datapaths = ovs::between(&self.datapaths, &next.datapaths);
        let threads = threads::between(previous, next, &self.history, &self.pins);
        let elapsed_s = previous.and_then(|prev| seconds(prev.at_ns, next.at_ns));
        let own_ns_per_s = previous
            .zip(elapsed_s)
            .and_then(|(prev, elapsed_s)| per_second(prev.own.cpu_ns, next.own.cpu_ns, elapsed_s));
        let metrics = Metrics {
            wall_ms: next.wall_ms,
            at_ns: next.at_ns,
            elapsed_s,
            facts: Arc::clone(facts),
            netns: next.netns,
            kernel: [next.kernel.clone(), previous.and_then(|previous| previous.kernel.clone())],
            datapaths: self.datapaths.clone(),
            paths: Arc::clone(&facts.paths),
            links: Arc::new(links),
            owners: self.owners.join(&facts.owners, &facts.ovs),
            cores: cores::between(previous, next),
            undone: self.pins.undone(threads.iter().map(|thread| &thread.sample), &facts.topology),
            threads,
            moves: moves::traced(previous, next),
            short_lives: self.short_lives.observe(next),
            own_cpu: own_ns_per_s.map(|ns| ns / 1e9),
            own: next.own,
            tracer: next.tracer,
            trace: next.trace.as_ref().map(|trace| (trace.source, trace.lost)),
            events: std::mem::take(&mut self.events),
            ..Metrics::default()
        };
        self.history.observe_metrics(&metrics);
        metrics
    }
}

/// A number and what it counts: `1 core`, `2 cores`.
pub(crate) fn plural<N: Display + PartialEq + From<u8> + Copy>(count: N, one: &str) -> String {
    if count == N::from(1) { format!("1 {one}") } else { format!("{count} {one}s") }
}

/// Seconds from one monotonic instant to a later one; none when they do not advance.
pub(crate) fn seconds(from_ns: u64, to_ns: u64) -> Option<f64> {
    to_ns.checked_sub(from_ns).filter(|&ns| ns > 0).map(|ns| ns as f64 / 1e9)
}

/// How much a counter rose a second; none when it went backwards (reset, wrap, another device under the same index).
pub(crate) fn per_second(from: u64, to: u64, seconds: f64) -> Option<f64> {
    to.checked_sub(from).map(|rise| rise as f64 / seconds)
}
