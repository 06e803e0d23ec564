//! A whole recording in a bounded number of figures, however long it is: its tests with their rates, losses and findings, and
//! what cores, threads and links did over its time. Folded sample by sample; nothing of a sample is kept but the newest facts.

mod columns;
mod cores;
mod latency;
mod limits;
mod links;
mod lost;
mod passing;
mod path;
mod profiles;
mod rate;
mod sent;
mod test;
mod threads;
mod treated;

use super::Metrics;
use super::saved::SavedFor;
use std::sync::Arc;
use vnettop_sample::{Facts, Problem, ProblemSource, TraceSource};

pub use columns::TimeColumns;
pub use cores::{CoreColumn, CoreFigures, CoreSummary};
pub use latency::StageSummary;
pub use limits::LimitSeen;
pub use links::LinkSummary;
pub use lost::LossSummary;
pub use passing::{DroppingPlace, PassingSummary};
pub use path::{HopSummary, PathSummary};
pub use profiles::ProfileSummary;
pub use rate::RateSummary;
pub use test::TestSummary;
pub use threads::{StripColumn, ThreadFigures, ThreadSummary};
pub use treated::{TreatedTime, pinned_times};

use cores::CoresTrack;
use links::LinksTrack;
pub(crate) use passing::PassingTrack;
use profiles::ProfilesTrack;
use test::TestsTrack;
use threads::ThreadsTrack;

/// The source that a recording names where it says what it is.
const ORIGIN: &str = "recording";

/// How much is kept. Twice as much time is kept with half of the detail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SummaryRoom {
    /// Bins of a test's rate: more than these are merged two by two.
    pub bins: usize,
    /// Columns of the time that cores, threads and losses share.
    pub columns: usize,
    /// Tests; of more than these the ones that carried least are left out.
    pub tests: usize,
    /// Threads; of more than these the ones that used least CPU time are left out.
    pub threads: usize,
}

impl SummaryRoom {
    /// That of a report of a file: ten minutes of a test keep every bin of 100 ms.
    pub const REPORT: Self = Self { bins: 6_000, columns: 240, tests: 24, threads: 64 };
    /// That of the screen, which keeps it all the time: two minutes of a test keep every bin.
    pub const SCREEN: Self = Self { bins: 1_200, columns: 120, tests: 6, threads: 24 };
}

/// Folds the metrics of a run, live or replayed, into its summary.
#[derive(Debug, Clone)]
pub struct SummaryTrack {
    room: SummaryRoom,
    columns: TimeColumns,
    samples: u64,
    begin_wall_ms: u64,
    to_ns: u64,
    facts: Arc<Facts>,
    trace: Option<TraceSource>,
    interval_ns: u64,
    late_ticks: u64,
    left_out: u64,
    own_cpu: super::Mean,
    tests_s: f64,
    restarts: u32,
    saved: Option<SavedFor>,
    origin: Option<String>,
    cores: CoresTrack,
    threads: ThreadsTrack,
    links: LinksTrack,
    profiles: ProfilesTrack,
    tests: TestsTrack,
    passing: PassingTrack,
}

/// What a recording was like.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordingSummary {
    /// Samples that it was made of.
    pub samples: u64,
    /// Wall clock of the first one, milliseconds since 1970, UTC.
    pub begin_wall_ms: u64,
    /// The first sample, monotonic ns.
    pub from_ns: u64,
    /// The last one, monotonic ns.
    pub to_ns: u64,
    /// The columns of its time.
    pub columns: TimeColumns,
    /// The facts as they were last.
    pub facts: Arc<Facts>,
    /// Where the migrations come from; none where they are not traced.
    pub trace: Option<TraceSource>,
    /// Time from sample to sample that was asked for, ns.
    pub interval_ns: u64,
    /// Ticks that were late, and samples that were left out.
    pub late_ticks: u64,
    /// Samples that were left out.
    pub left_out: u64,
    /// Mean CPU time of vnettop itself, share of one core; none of fewer than two samples.
    pub own_cpu: Option<f64>,
    /// How long the samples are together that lie within a test, seconds: what `in_tests` of a core and of a link is of.
    pub tests_s: f64,
    /// How often its clock went back: another stream begins there, and this is of the last one.
    pub restarts: u32,
    /// Why it was saved by itself; none where somebody asked for it.
    pub saved: Option<SavedFor>,
    /// What the recording says of itself, as that it was rebuilt from published figures; none of most.
    pub origin: Option<String>,
    /// Every core, sorted by core.
    pub cores: Vec<CoreSummary>,
    /// The watched threads, busiest first.
    pub threads: Vec<ThreadSummary>,
    /// Threads that there was no room for.
    pub threads_left_out: usize,
    /// Every link that there was, the one that carried most first.
    pub links: Vec<LinkSummary>,
    /// Every core that was profiled, sorted by core.
    pub profiles: Vec<ProfileSummary>,
    /// The tests in the order in which they began; where there was none, everything that was watched, if it had a rate.
    pub tests: Vec<TestSummary>,
    /// Tests that there was no room for.
    pub tests_left_out: usize,
    /// What passed while no test ran; none where hardly anything did.
    pub passing: Option<PassingSummary>,
}

impl RecordingSummary {
    /// Migrations of the watched threads that were only counted, and all of them.
    #[must_use]
    pub fn only_counted(&self) -> (u64, u64) {
        let sum = |of: fn(&ThreadSummary) -> u64| self.threads.iter().map(of).sum();
        (sum(ThreadSummary::only_counted), sum(|thread| thread.moves))
    }

    /// The means of a core while tests ran; over all the time where no sample lies within a test. What is counted is of all the time.
    #[must_use]
    pub fn of_core(&self, core: &CoreSummary) -> CoreFigures {
        let CoreFigures { backlog_drops, squeezes, .. } = core.whole;
        if self.tests_s > 0.0 { CoreFigures { backlog_drops, squeezes, ..core.in_tests } } else { core.whole }
    }

    /// The rates of a link, received and sent, in the same time; none of one that was not there then.
    #[must_use]
    pub fn of_link(&self, link: &LinkSummary) -> [Option<f64>; 2] {
        let whole = [link.rx_bits_per_s, link.tx_bits_per_s];
        if self.tests_s > 0.0 { link.in_tests.map_or([None; 2], |both| both.map(Some)) } else { whole }
    }

    /// Its length, seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.to_ns.saturating_sub(self.from_ns) as f64 / 1e9
    }
}

impl SummaryTrack {
    /// An empty one.
    #[must_use]
    pub fn new(room: SummaryRoom) -> Self {
        Self {
            room,
            columns: TimeColumns::new(0, room.columns),
            samples: 0,
            begin_wall_ms: 0,
            to_ns: 0,
            facts: Arc::default(),
            trace: None,
            interval_ns: 0,
            late_ticks: 0,
            left_out: 0,
            own_cpu: super::Mean::default(),
            tests_s: 0.0,
            restarts: 0,
            saved: None,
            origin: None,
            cores: CoresTrack::default(),
            threads: ThreadsTrack::new(room.threads),
            links: LinksTrack::default(),
            profiles: ProfilesTrack::default(),
            tests: TestsTrack::new(room),
            passing: PassingTrack::default(),
        }
    }

    /// Takes the metrics of the next sample.
    pub fn observe(&mut self, metrics: &Metrics) {
        if self.samples > 0 && metrics.machine.at_ns < self.to_ns {
            // Another machine or another boot: no axis of time has room for both.
            *self = Self { restarts: self.restarts + 1, ..Self::new(self.room) };
        }
        if self.samples == 0 {
            self.columns = TimeColumns::new(metrics.machine.at_ns, self.room.columns);
            self.begin_wall_ms = metrics.machine.wall_ms;
        }
        self.samples += 1;
        self.to_ns = metrics.machine.at_ns;
        while !self.columns.has_room_to(metrics.machine.at_ns) {
            self.columns.double();
            self.cores.halve();
            self.threads.halve();
            self.tests.halve();
            self.passing.halve();
        }
        self.facts = Arc::clone(&metrics.machine.facts);
        self.saved = metrics.machine.saved;
        if self.origin.is_none() {
            // Only the first samples have it, as something that is shown for a moment.
            let is_origin = |problem: &&Problem| problem.source == ProblemSource::Other(ORIGIN.to_owned());
            self.origin = metrics.machine.facts.problems.iter().find(is_origin).map(|problem| problem.text.clone());
        }
        self.trace = metrics.machine.trace.map(|(source, _)| source).or(self.trace);
        (self.interval_ns, self.late_ticks, self.left_out) =
            (metrics.machine.own.interval_ns, metrics.machine.own.late_ticks, metrics.machine.own.left_out);
        let elapsed_s = metrics.machine.elapsed_s.unwrap_or(0.0);
        self.own_cpu.add(metrics.machine.own_cpu, elapsed_s);
        let began_ns = metrics.machine.began_ns();
        let is_in_test = began_ns
            .is_some_and(|began_ns| metrics.tests.iter().any(|test| test.covers(began_ns, metrics.machine.at_ns)));
        self.tests_s += if is_in_test { elapsed_s } else { 0.0 };
        self.links.observe(metrics, is_in_test);
        self.profiles.observe(metrics);
        let Some(from_ns) = began_ns else { return };
        let spans: Vec<_> = self.columns.spans(from_ns, metrics.machine.at_ns).collect();
        self.cores.observe(metrics, &spans, is_in_test);
        self.threads.observe(metrics, from_ns, &self.columns);
        self.tests.observe(metrics, &spans);
        self.passing.observe(metrics, &spans);
    }

    /// What it was like so far; none before there are two samples.
    #[must_use]
    pub fn summary(&self) -> Option<RecordingSummary> {
        if self.samples < 2 {
            return None;
        }
        let (tests, tests_left_out) = self.tests.summaries();
        let (threads, threads_left_out) = self.threads.summaries();
        Some(RecordingSummary {
            samples: self.samples,
            begin_wall_ms: self.begin_wall_ms,
            from_ns: self.columns.origin_ns(),
            to_ns: self.to_ns,
            columns: self.columns,
            facts: Arc::clone(&self.facts),
            trace: self.trace,
            interval_ns: self.interval_ns,
            late_ticks: self.late_ticks,
            left_out: self.left_out,
            own_cpu: self.own_cpu.value(),
            tests_s: self.tests_s,
            restarts: self.restarts,
            saved: self.saved,
            origin: self.origin.clone(),
            cores: self.cores.summaries(),
            threads,
            threads_left_out,
            links: self.links.summaries(),
            profiles: self.profiles.summaries(),
            tests,
            tests_left_out,
            passing: self.passing.summary(),
        })
    }
}
