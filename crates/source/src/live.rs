//! The kernel as a source: joins the readers of links, cores, threads and flows into one [`Sample`] a tick.

use super::benchmarks::stream::ReportStreams;
use super::cores::CoreReader;
use super::firewall::FirewallReader;
use super::flows::FlowReader;
use super::kernel::KernelReader;
use super::kernel::latency::OnThePath;
use super::links::all_namespaces::AllLinks;
use super::links::{LinkReader, LinkReading};
use super::losses::{LossReader, LossReading, WatchedFlows};
use super::moves::MoveReader;
use super::netns::{Choice, Spaces};
use super::ovs::{OvsReader, SocketPlace};
use super::owners::{OwnerReader, SocketPlaces};
use super::paths::{PathReader, WalkState};
use super::profile::ProfileReader;
use super::steering::SteeringReader;
use super::threads::{Carriers, ThreadReader, Watch, WorkerReader};
use super::traffic_gauge::TrafficGauge;
use super::{Roots, SourceError, clock_ns, host, now_ns, publish, untrusted_reader};
use crate::clock::wall_ms;
use std::path::PathBuf;
use std::sync::Arc;
use vnettop_sample::text::without_error_numbers;
use vnettop_sample::{
    Benchmark, Facts, FirewallRules, FlowPath, FlowSample, LinkFacts, LinkKey, OnRequest, OvsSwitch, OwnCost, Owned,
    Problem, QdiscCounters, Sample, Space, ThreadSample, Trace,
};

/// Which links a tick reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadPolicy {
    /// All of them: JSON lines and recordings are added up.
    Everything,
    /// Of very many links, those that stand still less often than every tick: for a screen.
    IdleLinksLess,
}

/// What is read.
#[derive(Debug, Clone)]
pub struct ReadScope {
    /// Where /proc and /sys are.
    pub roots: Roots,
    /// Threads and processes that are watched.
    pub watch: Vec<Watch>,
    /// Namespaces whose links are read.
    pub netns: Choice,
    /// Where databases of Open vSwitch may be.
    pub ovs: Vec<SocketPlace>,
    /// Where Docker's socket may be.
    pub docker: SocketPlaces,
    /// A file that iperf 3 writes to with `--json-stream`.
    pub iperf3_json: Option<PathBuf>,
    /// Which links a tick reads.
    pub read_policy: ReadPolicy,
    /// Protocols and qdiscs are read also while there are no flows, so that losses count from the first packet on.
    pub losses_at_rest: bool,
    /// What the kernel counts beyond the usual.
    pub on_request: OnRequest,
}

/// Every kernel descriptor of a run; owned by the sampler thread.
pub struct Live {
    pub(super) links: AllLinks,
    cores: CoreReader,
    pub(super) threads: ThreadReader,
    workers: WorkerReader,
    pub(super) flows: FlowReader,
    moves: MoveReader,
    pub(super) kernel: KernelReader,
    pub(super) spaces: Spaces,
    owners: OwnerReader,
    pub(super) ovs: OvsReader,
    paths: PathReader,
    losses: LossReader,
    /// Links of the paths whose root qdisc queues packets, as of the last tick.
    queueing: Vec<LinkKey>,
    steering: SteeringReader,
    pub(super) reports: ReportStreams,
    pub(super) profile: ProfileReader,
    firewall: FirewallReader,
    traffic: TrafficGauge,
    /// Facts of the last sample.
    facts: Arc<Facts>,
}

/// What is watched, as one tick read it.
struct ThreadReading {
    threads: Vec<ThreadSample>,
    benchmarks: Arc<Vec<Benchmark>>,
    trace: Option<Trace>,
}

impl Live {
    /// Opens everything in the current network namespace.
    ///
    /// # Errors
    /// Links or per-core counters cannot be read at all; what is merely missing becomes a problem of each sample.
    pub fn open(scope: &ReadScope) -> Result<Self, SourceError> {
        let roots = &scope.roots;
        let links = LinkReader::open()?;
        let looked_at = scope.read_policy == ReadPolicy::IdleLinksLess;
        let links = if looked_at { links.idle_ones_less_often() } else { links };
        Ok(Self {
            links: AllLinks::new(links, looked_at)?,
            cores: CoreReader::open(roots)?,
            threads: ThreadReader::open(roots, scope.watch.clone())?,
            workers: WorkerReader::new(roots),
            flows: FlowReader::new(roots),
            moves: MoveReader::new(roots),
            kernel: KernelReader::new(roots, scope.losses_at_rest, scope.on_request),
            spaces: Spaces::new(roots, scope.netns.clone()),
            owners: OwnerReader::new(roots, scope.docker.clone()),
            ovs: OvsReader::new(roots, &scope.ovs),
            paths: PathReader::default(),
            losses: LossReader::new(roots, scope.losses_at_rest),
            queueing: Vec::new(),
            steering: SteeringReader::new(roots),
            reports: ReportStreams::new(roots, scope.iperf3_json.clone()),
            profile: ProfileReader::new(roots, scope.on_request.profile),
            firewall: FirewallReader::default(),
            traffic: TrafficGauge::default(),
            facts: Arc::new(Facts { host: Arc::new(host::read()), ..Facts::default() }),
        })
    }

    /// Lets go of namespaces that nobody else keeps: an open socket in one would keep it alive.
    pub fn drop_departed(&mut self) {
        self.spaces.receive();
        self.close_unknown_namespaces();
    }

    /// Lets go of every namespace but the own one, for as long as nothing is to be read.
    pub fn release_all_namespaces(&mut self) {
        self.owners.rest();
        self.spaces.forget();
        self.flows.forget();
        self.close_unknown_namespaces();
    }

    fn follow_namespaces(&mut self) {
        if self.spaces.look() {
            self.close_unknown_namespaces();
        }
    }

    /// Closes whatever is open in namespaces that are not known any more.
    fn close_unknown_namespaces(&mut self) {
        self.links.follow(&self.spaces);
        self.paths.leave(&self.spaces);
        self.losses.leave(&self.spaces);
        self.ovs.leave(&self.spaces);
        self.steering.leave(&self.spaces);
    }

    /// Reads everything once. `own` is filled in by the sampler, but for the CPU time.
    ///
    /// # Errors
    /// Links or per-core counters could not be read.
    pub fn sample(&mut self, own: OwnCost, more: &[Problem]) -> Result<Sample, SourceError> {
        let now_ns = now_ns();
        self.follow_namespaces();
        let spaces = self.spaces.read(self.threads.newest(), now_ns);
        let mut links = self.links.read(&mut self.spaces, now_ns)?;
        let cores = self.cores.read()?;
        let ThreadReading { mut threads, benchmarks, trace } = self.watched_threads();
        let waits = self.traffic.passes_or_watches((&links.counters, &cores.cores), !threads.is_empty(), now_ns);
        let mut flows = self.flows.read(&threads);
        self.kernel.count_datagrams(&mut flows);
        let ovs = self.switches(&mut links, now_ns);
        let owners = self.owners(&spaces, &links.links, now_ns);
        let ground = WalkState { spaces: &self.spaces, owners: &self.owners, links: &links.links, ovs: &ovs };
        let paths = self.paths.read(ground, &flows, now_ns);
        self.workers.read(Carriers::of(&paths, &self.facts.steering, self.ovs.processes()), &mut threads);
        let runners = self.threads.runners(&threads, self.traffic.fills_a_core);
        self.threads.set_extra_pids(self.flows.other_ends(&flows, &paths, now_ns));
        let datapaths = self.ovs.datapaths(&self.spaces, &paths, now_ns);
        // What connection tracking counts as dropped is compared with what the kernel dropped until then.
        self.kernel.follow(self.spaces.all());
        let kernel = self.kernel.read(&flows, OnThePath { paths: &paths, threads: &threads, queueing: &self.queueing });
        let losses = self.losses(&spaces, waits, (&flows, &paths), now_ns);
        self.queueing = queueing(&losses.qdiscs);
        let ground = WalkState { spaces: &self.spaces, owners: &self.owners, links: &links.links, ovs: &ovs };
        self.paths.renew(ground, &flows, now_ns);
        let steering = self.steering.read(&self.spaces, &links.links, &paths, now_ns);
        let facts = Facts {
            firewall: self.firewall((&links.links, &paths), now_ns),
            host: Arc::clone(&self.facts.host),
            topology: cores.topology,
            links: links.links,
            problems: self.problems(more),
            spaces,
            owners,
            ovs,
            paths,
            benchmarks,
            offloads: losses.offloads,
            steering,
            family: self.threads.family(),
            runners,
        };
        publish(&mut self.facts, facts);
        Ok(Sample {
            wall_ms: wall_ms(),
            at_ns: links.at_ns,
            netns: self.spaces.own(),
            cores_at_ns: cores.at_ns,
            own: OwnCost { cpu_ns: clock_ns(rustix::time::ClockId::ProcessCPUTime), ..own },
            counters: links.counters,
            cores: cores.cores,
            threads,
            trace,
            kernel,
            tracer: Some(self.kernel.tracer()),
            flows,
            qdiscs: losses.qdiscs,
            protocols: losses.protocols,
            packet_sockets: losses.packet_sockets,
            datapaths,
            facts: Arc::clone(&self.facts),
        })
    }

    /// Reads the watched threads, and their moves as soon after them as can be.
    fn watched_threads(&mut self) -> ThreadReading {
        let threads = self.threads.read();
        let benchmarks = self.reports.join(self.threads.benchmarks());
        self.kernel.begin(!threads.is_empty());
        let trace = self.moves.read(self.kernel.moves(), &threads, &self.threads);
        ThreadReading { threads, benchmarks, trace }
    }

    /// Reads what Open vSwitch says; its ports are links among the others.
    fn switches(&mut self, links: &mut LinkReading, now_ns: u64) -> Arc<Vec<OvsSwitch>> {
        let ovs = self.ovs.read(&links.links, |netns| self.spaces.wants(netns), now_ns);
        links.links = self.ovs.among(Arc::clone(&links.links));
        self.ovs.count_among(&mut links.counters);
        ovs
    }

    /// Who made each namespace, and who holds each link.
    fn owners(&mut self, spaces: &Arc<Vec<Space>>, links: &Arc<Vec<Arc<LinkFacts>>>, now_ns: u64) -> Arc<Vec<Owned>> {
        self.owners.ask_soon(self.spaces.joined(), now_ns);
        self.owners.read(spaces, |netns| self.spaces.inhabitants(netns), links, now_ns)
    }

    /// Reads what was lost beside these flows and along their paths.
    fn losses(
        &mut self,
        list: &[Space],
        waits: bool,
        (flows, paths): (&[FlowSample], &[FlowPath]),
        now_ns: u64,
    ) -> LossReading {
        let mut losses = self.losses.read(WatchedFlows { spaces: &self.spaces, list, waits, flows, paths }, now_ns);
        if !self.kernel.counts_datagrams() {
            self.flows.count_others(&mut losses.protocols, now_ns);
        }
        self.owners.name_sockets(&mut losses.packet_sockets);
        losses
    }

    /// Counts the rules that packets of the paths meet, while the profile goes through some.
    fn firewall(&mut self, ground: (&[Arc<LinkFacts>], &[FlowPath]), now_ns: u64) -> Arc<Vec<FirewallRules>> {
        self.firewall.read(self.profile.goes_through_rules(), &self.spaces, ground, now_ns)
    }

    /// The problems of all readers, and `more`; the same `Arc` until they change.
    fn problems(&self, more: &[Problem]) -> Arc<Vec<Problem>> {
        let waits = untrusted_reader::problem();
        let now = || {
            let readers = self.links.problems().iter().chain(self.cores.problems()).chain(self.threads.problems());
            let readers = readers.chain(self.kernel.problems()).chain(self.flows.problems());
            let network = self.spaces.problems().iter().chain(self.owners.problems()).chain(self.ovs.problems());
            let network = network.chain(self.reports.problems()).chain(self.profile.problems());
            let readers = readers.chain(network).chain(self.paths.problems()).chain(self.losses.problems());
            readers.chain(&waits).chain(more)
        };
        let plain = |problem: &Problem| without_error_numbers(&problem.text);
        let is_same = |(now, before): (&Problem, &Problem)| {
            now.source == before.source && (now.text == before.text || plain(now) == before.text)
        };
        let before = &self.facts.problems;
        if now().count() == before.len() && now().zip(before.iter()).all(is_same) {
            return Arc::clone(before);
        }
        Arc::new(now().map(|problem| Problem { source: problem.source.clone(), text: plain(problem) }).collect())
    }
}

/// The links whose packets wait in a qdisc where they must; sorted.
fn queueing(qdiscs: &[QdiscCounters]) -> Vec<LinkKey> {
    let mut links: Vec<LinkKey> =
        qdiscs.iter().filter(|qdisc| qdisc.kind != "noqueue").map(|qdisc| qdisc.link).collect();
    links.dedup();
    links
}
