//! What the kernel itself counts (`bpf`): begun once somebody is watched, read on each tick, asked for what the flows and the
//! faces want. Where it cannot be had it says once what that would add (`refusal`).

mod datagrams;
mod hop_cores;
pub(crate) mod latency;
mod lost_flows;
pub(crate) mod refusal;
mod sites;

use super::{Roots, now_ns};
use crate::bpf::drops::{DropRow, FlowKey};
use crate::bpf::moves::MoveRings;
use crate::bpf::softirqs::{SoftirqTimes, SoftirqTotal};
use crate::bpf::{Maps, Order, Programs, Refusal, TracerEvent};
use hop_cores::HopCounter;
use latency::{LatencyReader, OnThePath};
use lost_flows::{SeenFlow, end, release, remember};
use sites::Sites;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use vnettop_sample::{
    DropCount, Drops, FlowPath, FlowSample, KernelCounts, OnRequest, Problem, ProblemSource, SOFTIRQ_KINDS,
    SoftirqTime, Tracer, TracerStage,
};

/// How often the drops of other flows are read unless the whole machine is asked for, ns.
const OTHERS_EVERY_NS: u64 = 500_000_000;
/// Longest wait for the programs when a command's packets count from the first one on.
const WAIT: Duration = Duration::from_secs(2);
const UNNAMED: &str = "drops without a reason are not counted: naming their functions needs root or CAP_SYSLOG";

/// How far the programs have come.
enum LoadStage {
    /// Nobody needed them so far.
    Idle,
    Loading(Programs),
    Running(Programs, Box<Maps>),
    Refused,
}

/// The programs of a run.
pub struct KernelReader {
    roots: Roots,
    stage: LoadStage,
    /// Start of the programs' counting, ns; `None` before.
    since_ns: Option<u64>,
    wanted: OnRequest,
    /// The sockets' flows.
    flows: BTreeMap<FlowKey, SeenFlow>,
    /// Inodes of the known namespaces; `None` before the first [`KernelReader::follow`].
    spaces: Option<BTreeSet<u32>>,
    /// Drops of flows that have ended, sorted.
    ended: Vec<DropCount>,
    sites: Sites,
    /// Of which reading of each table the counts were made, how many functions were known then, and whether the whole machine
    /// was asked for.
    made_of: (u64, u64, usize, bool),
    others_at_ns: u64,
    counts: Option<Arc<KernelCounts>>,
    /// `None` until softirq times were asked for.
    times: Option<SoftirqTimes>,
    hops: HopCounter,
    latency: LatencyReader,
    problems: Vec<Problem>,
    refusal: Option<String>,
    /// Why softirqs are not timed and hops not counted on request.
    no_more: Option<String>,
}

impl KernelReader {
    /// Loads nothing yet, but where a command's first packets count.
    #[must_use]
    pub fn new(roots: &Roots, at_once: bool, wanted: OnRequest) -> Self {
        let refusal = refusal::elsewhere(roots);
        let mut reader = Self {
            roots: roots.clone(),
            stage: if refusal.is_none() { LoadStage::Idle } else { LoadStage::Refused },
            since_ns: None,
            wanted: of_bpf(wanted),
            flows: BTreeMap::new(),
            spaces: None,
            ended: Vec::new(),
            sites: Sites::default(),
            made_of: (0, 0, 0, false),
            others_at_ns: 0,
            counts: None,
            times: None,
            hops: HopCounter::default(),
            latency: LatencyReader::default(),
            problems: Vec::new(),
            no_more: refusal.is_some().then(refusal::no_more_elsewhere),
            refusal: refusal.flatten(),
        };
        if at_once && matches!(reader.stage, LoadStage::Idle) {
            reader.load();
            if let LoadStage::Loading(programs) = &reader.stage
                && let Some(report) = programs.report(WAIT)
            {
                reader.take(report);
            }
        }
        reader
    }

    /// Sets what the kernel is to count on request.
    pub fn want(&mut self, wanted: OnRequest) {
        let wanted = of_bpf(wanted);
        if let LoadStage::Running(programs, _) = &self.stage
            && wanted.softirqs != self.wanted.softirqs
        {
            programs.order(Order::Softirqs(wanted.softirqs));
        }
        self.wanted = wanted;
    }

    /// Loads the programs once they are needed, and takes what their thread reports. Call it on each tick before anything is read.
    pub fn begin(&mut self, is_watching: bool) {
        if matches!(self.stage, LoadStage::Idle) && (is_watching || self.wanted != OnRequest::default()) {
            self.load();
        }
        while let LoadStage::Loading(programs) | LoadStage::Running(programs, _) = &self.stage {
            let Some(report) = programs.report(Duration::ZERO) else { break };
            self.take(report);
        }
        let is_wanted = is_watching || self.wanted != OnRequest::default();
        let counts_more = self.wanted.softirqs || self.wanted.hops || self.wanted.latency || self.wanted.latency_glance;
        let no_row = refusal::no_row(self.no_row());
        let refusals = [self.refusal.as_ref().filter(|_| is_wanted), self.no_more.as_ref().filter(|_| counts_more)];
        let texts = refusals.into_iter().flatten().chain(&no_row);
        if !self.problems.iter().map(|problem| &problem.text).eq(texts.clone()) {
            let problem = |text: &String| Problem { source: ProblemSource::Kernel, text: text.clone() };
            self.problems = texts.map(problem).collect();
        }
    }

    /// Dropped packets that stand in no row, as of the last reading.
    fn no_row(&self) -> u64 {
        self.counts.as_ref().and_then(|counts| counts.drops.as_ref()).map_or(0, |drops| drops.no_room)
    }

    /// How far they have come.
    #[must_use]
    pub fn tracer(&self) -> Tracer {
        let state = match self.stage {
            LoadStage::Idle => TracerStage::Idle,
            LoadStage::Loading(_) => TracerStage::BeingAttached,
            LoadStage::Running(..) => TracerStage::Attached,
            LoadStage::Refused => TracerStage::Refused,
        };
        Tracer { state, since_ns: self.since_ns }
    }

    /// The rings of migrations, where the kernel tells them.
    pub fn moves(&mut self) -> Option<&mut MoveRings> {
        match &mut self.stage {
            LoadStage::Running(_, maps) => maps.moves.as_mut(),
            _ => None,
        }
    }

    /// What could not be had; empty is the normal case.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Takes the known namespaces, on each tick before [`KernelReader::read`]. A new one is not the namespace that had its inode
    /// before.
    pub fn follow(&mut self, spaces: impl Iterator<Item = u64>) {
        let now: BTreeSet<u32> = spaces.filter_map(|netns| u32::try_from(netns).ok()).collect();
        let new = self.spaces.as_ref().map(|before| now.difference(before).copied().collect::<BTreeSet<u32>>());
        self.spaces = Some(now);
        let Some(new) = new.filter(|new| !new.is_empty()) else { return };
        if let LoadStage::Running(_, maps) = &mut self.stage
            && let Some(tables) = &mut maps.drops
        {
            tables.begin_anew(&new);
        }
        release(&mut self.ended, &new);
    }

    /// The counts until now; `flows` and what is `on` the path say what is counted next. The same `Arc` while nothing has changed, `None` before
    /// the programs run.
    pub fn read(&mut self, flows: &[FlowSample], on: OnThePath<'_>) -> Option<Arc<KernelCounts>> {
        let paths = on.paths;
        if !matches!(self.stage, LoadStage::Running(..)) {
            return None;
        }
        let now_ns = now_ns();
        if let LoadStage::Running(programs, _) = &self.stage {
            self.hops.ask(programs, self.wanted.hops, (flows, paths), now_ns);
            self.latency.follow(programs, self.wanted, on, now_ns);
        }
        let softirqs = self.softirqs();
        let changed = self.ask_drops(flows, paths, now_ns);
        let is_same = |counts: &KernelCounts| {
            counts.hops == self.hops.hops && counts.softirqs == softirqs && counts.latency == self.latency.now
        };
        if changed || !self.counts.as_deref().is_some_and(is_same) {
            let (drops, hops, latency) = (self.drops(), self.hops.hops.clone(), self.latency.now.clone());
            self.counts = Some(Arc::new(KernelCounts { drops, softirqs, hops, latency }));
        }
        self.counts.clone()
    }

    /// Softirq time of the cores that had any; `None` when it is not wanted or not available.
    fn softirqs(&self) -> Option<Vec<SoftirqTime>> {
        let times = self.times.as_ref().filter(|_| self.wanted.softirqs)?;
        let core = |(core, kinds): (u32, [SoftirqTotal; SOFTIRQ_KINDS.len()])| SoftirqTime {
            core,
            at_ns: now_ns(),
            ns: kinds.map(|kind| kind.ns),
        };
        Some((0..).zip(times.read()).map(core).filter(|core| core.ns.iter().any(|&ns| ns > 0)).collect())
    }

    /// Tells the programs whose drops are asked for now, and reads the tables; whether they say anything new.
    fn ask_drops(&mut self, flows: &[FlowSample], paths: &[FlowPath], now_ns: u64) -> bool {
        let LoadStage::Running(_, maps) = &mut self.stage else { return false };
        let Some(tables) = &mut maps.drops else { return false };
        let gone = remember(&mut self.flows, flows, now_ns);
        let reported = self.counts.as_deref().and_then(|counts| counts.drops.as_ref()).filter(|_| !gone.is_empty());
        for row in reported.iter().flat_map(|reported| &reported.flows) {
            end(row, &gone, &mut self.ended);
        }
        tables.ask_flows(self.flows.keys(), now_ns);
        let mut shown = namespaces(flows, paths);
        if self.wanted.drops {
            shown.extend(self.spaces.iter().flatten().chain(&[0]));
        }
        tables.ask_namespaces(shown, self.wanted.drops);
        tables.read_flows();
        let mut others = self.made_of.1;
        if self.wanted.drops || now_ns.saturating_sub(self.others_at_ns) >= OTHERS_EVERY_NS {
            self.others_at_ns = now_ns;
            tables.read_others();
            others = tables.of_others.generation;
        }
        let made_of = (tables.of_flows.generation, others, self.sites.named, self.wanted.drops);
        std::mem::replace(&mut self.made_of, made_of) != made_of
    }

    /// The tables as they were read last; functions that are not known yet are asked for.
    fn drops(&mut self) -> Option<Drops> {
        let LoadStage::Running(programs, maps) = &mut self.stage else { return None };
        let Maps { drops, functions, .. } = &mut **maps;
        let tables = drops.as_mut()?;
        let mut unknown = Vec::new();
        let mut reported = |rows: &[DropRow]| {
            let name = |address| functions.name(address);
            let tell = |row| self.sites.count(row, &name, &mut unknown);
            let mut reported: Vec<DropCount> = rows.iter().filter_map(tell).collect();
            reported.sort_by(|one, other| one.key().cmp(&other.key()));
            reported
        };
        let (own, others) = (reported(&tables.of_flows.rows), reported(&tables.of_others.rows));
        if !unknown.is_empty() {
            programs.order(Order::Functions(unknown));
        }
        Some(Drops {
            flows: own,
            ended: self.ended.clone(),
            others,
            everywhere: self.wanted.drops,
            no_room: tables.no_room(),
        })
    }

    fn load(&mut self) {
        self.stage = match Programs::start(&self.roots.proc, &self.roots.sys) {
            Ok(programs) => LoadStage::Loading(programs),
            Err(error) => {
                self.refuse(&Refusal::Other(error.to_string()));
                LoadStage::Refused
            }
        };
    }

    fn refuse(&mut self, refusal: &Refusal) {
        self.refusal = Some(refusal::sentence(&self.roots, refusal, false));
        self.no_more = Some(refusal::no_more(&self.roots, refusal));
    }

    fn take(&mut self, report: TracerEvent) {
        match report {
            TracerEvent::Loaded(maps) => {
                if let LoadStage::Loading(programs) = std::mem::replace(&mut self.stage, LoadStage::Refused) {
                    if self.wanted.softirqs {
                        programs.order(Order::Softirqs(true));
                    }
                    let missing = maps.missing.as_ref();
                    self.refusal = missing.map(|missing| refusal::sentence(&self.roots, missing, maps.moves.is_some()));
                    self.since_ns = Some(now_ns());
                    self.stage = LoadStage::Running(programs, maps);
                }
            }
            TracerEvent::Refused(refusal) => {
                self.refuse(&refusal);
                self.stage = LoadStage::Refused;
            }
            TracerEvent::Functions(names) => {
                if self.refusal.is_none() && names.iter().all(|(_, name)| name.is_none()) {
                    self.refusal = Some(UNNAMED.to_owned());
                }
                self.sites.name(names);
            }
            TracerEvent::NoMore(refusal) => {
                self.no_more = Some(refusal::no_more(&self.roots, &refusal));
                self.hops.refuse();
            }
            TracerEvent::Softirqs(times) => self.times = Some(times),
            TracerEvent::Hops(counts) => self.hops.take(counts),
            TracerEvent::Latency(tables) => self.latency.take(tables),
            TracerEvent::NoLatency(refusal) => self.no_more = Some(refusal::no_more(&self.roots, &refusal)),
        }
    }
}

/// What of it these programs count: a profile needs none.
fn of_bpf(wanted: OnRequest) -> OnRequest {
    OnRequest { profile: None, ..wanted }
}

/// The namespaces that flows end in or cross, as the kernel writes their inodes.
fn namespaces(flows: &[FlowSample], paths: &[FlowPath]) -> BTreeSet<u32> {
    let ends = flows.iter().map(|flow| flow.netns);
    let crossed = paths.iter().flat_map(|path| path.hops.iter().map(|hop| hop.link.netns));
    ends.chain(crossed).filter_map(|netns| u32::try_from(netns).ok()).filter(|&netns| netns != 0).collect()
}
