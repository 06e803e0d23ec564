//! What two samples say of the machine, whatever is tested on it: links, cores, threads, and who they belong to.

use super::cores::CoreMetrics;
use super::links::LinkMetrics;
use super::moves::TracedMove;
use super::ovs::DatapathMetrics;
use super::pins::OverriddenPin;
use super::profile::CoreActivity;
use super::saved::SavedFor;
use super::short_lives::ShortLivedGroup;
use super::steers::StandingSteer;
use super::threads::ThreadMetrics;
use std::sync::Arc;
use vnettop_sample::{CoreId, Event, Facts, KernelCounts, LinkKey, OwnCost, Owned, Owner, TraceSource, Tracer, row_of};

/// The machine as of the newer of two samples.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MachineMetrics {
    /// Wall clock of the newer sample, milliseconds since 1970, UTC.
    pub wall_ms: u64,
    /// `CLOCK_MONOTONIC` of the newer sample, ns.
    pub at_ns: u64,
    /// True time between the two samples, seconds; none for the first.
    pub elapsed_s: Option<f64>,
    /// Facts that hardly change, as read; links and owners are joined with derived figures in fields of their own.
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
    /// Every watched thread and the threads of switches, sorted by (pid, tid).
    pub threads: Arc<Vec<ThreadMetrics>>,
    /// What BPF programs have counted in the kernel so far; none where they do not run.
    pub kernel: Option<Arc<KernelCounts>>,
    /// The same as of the sample before.
    pub kernel_before: Option<Arc<KernelCounts>>,
    /// The moves since the sample before, as traced; empty where they are not.
    pub moves: Arc<Vec<TracedMove>>,
    /// Threads that ended before they were found, by program, since the start; none where the kernel does not report them.
    pub short_lives: Option<Arc<Vec<ShortLivedGroup>>>,
    /// Where the traced moves come from, and how many were lost since the trace began; none where nothing is traced.
    pub trace: Option<(TraceSource, u64)>,
    /// Whether the kernel is asked, and since when; none in older recordings.
    pub tracer: Option<Tracer>,
    /// vnettop's own CPU time, share of one core; none for the first sample.
    pub own_cpu: Option<f64>,
    /// vnettop's own counters.
    pub own: OwnCost,
    /// What one core did in the last seconds, stage by stage; none while nobody looks.
    pub profile: Option<Arc<CoreActivity>>,
    /// What vnettop or its user did since the sample before.
    pub events: Vec<Event>,
    /// Why the recording was saved by itself; none of what is live, and of recordings that somebody asked for.
    pub saved: Option<SavedFor>,
    /// Pins of vnettop that were found undone by something else since the sample before.
    pub undone: Vec<OverriddenPin>,
    /// The settings of links that vnettop has changed, sorted by link and setting.
    pub steers: Vec<StandingSteer>,
}

impl MachineMetrics {
    /// `CLOCK_MONOTONIC` of the older sample, ns.
    pub(super) fn began_ns(&self) -> Option<u64> {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time between two samples")]
        self.elapsed_s.map(|elapsed_s| self.at_ns.saturating_sub((elapsed_s * 1e9) as u64))
    }

    /// Whether the kernel says of each dropped packet where and why.
    #[must_use]
    pub fn asks_kernel(&self) -> bool {
        self.kernel.as_ref().is_some_and(|kernel| kernel.drops.is_some())
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

    /// The core that idles least; none where that is not known of any.
    #[must_use]
    pub fn fullest_core(&self) -> Option<CoreId> {
        let known = self.cores.iter().filter_map(|core| Some((core.load?.shares?.idle, core.place.core)));
        known.min_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, core)| core)
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
