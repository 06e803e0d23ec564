//! What of a sample belongs to the command that vnettop runs: its processes' threads and connections, and those at the
//! other end of these connections. What is joined is decided among all sockets of the sample, before the others are taken
//! out of it: alone they might look certain.

use super::flow::join::{self, Translated};
use super::flow::{CARRIES, OtherTraffic, proxied};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use vnettop_sample::{
    Benchmark, DropCount, DropFlow, Duty, FlowPath, FlowSample, Proto, ProtocolCounters, Sample, SocketKey,
};

/// A connection of a program that is no known benchmark is one's from so many bytes on: what `ssh` or `kubectl exec` bring
/// of a benchmark that runs elsewhere is its output, and less.
const DRIVES: u64 = 1024 * 1024;
/// Or where it moves so many a second for so long: a test that asks and answers, a byte each time.
const DRIVES_PER_S: u64 = 4 * 1024;
const DRIVES_NS: u64 = 1_000_000_000;
/// UDP sockets are a benchmark's once their namespace has had so many datagrams: a name is looked up with fewer.
const DATAGRAMS: u64 = 1_000;

/// Directions of ended connections that are remembered until all are forgotten at once.
const MOST_FLOWS: usize = 8192;

/// What belongs to the command.
#[derive(Debug, Clone, Default)]
pub(super) struct Scope {
    /// The sockets that belong.
    own: BTreeSet<SocketKey>,
    /// Sockets that were assigned from outside (one test); none where they follow from the command's processes.
    taken: Option<BTreeSet<SocketKey>>,
    /// Flows of sockets that belonged, in both directions: the kernel reports their drops later.
    flows: BTreeSet<DropFlow>,
    /// Namespaces in which others send or receive datagrams.
    datagrams: BTreeSet<u64>,
    /// Sockets that answer sockets that belong, and others as well: a UDP server with one socket for all clients.
    servers: BTreeSet<SocketKey>,
    /// What these sets were made from: the command's processes, each socket and its remote address, the paths.
    family: Arc<Vec<u32>>,
    sockets: Vec<(SocketKey, SocketAddr)>,
    paths: Arc<Vec<FlowPath>>,
    /// Of the sample before: the threads, and the namespaces that its connections end in or cross.
    threads: BTreeSet<u32>,
    spaces: BTreeSet<u64>,
    /// The command has a benchmark of its own, or had: a program that is known to be one, or a connection that moves much.
    pub has_benchmark: bool,
    /// What the command's sockets had moved when they were seen first: by socket, instant and bytes; by namespace, datagrams.
    first: BTreeMap<SocketKey, (u64, u64)>,
    first_datagrams: BTreeMap<u64, u64>,
    /// Processes at the other end, ever.
    mates: BTreeSet<u32>,
    /// Processes at the other end that are no known benchmarks and were connected with others too, and the connections of the
    /// previous sample that may show so.
    serving: BTreeSet<u32>,
    strangers: BTreeSet<SocketKey>,
    /// A process at the other end that served others too: its connections are told apart, its threads are not.
    pub shared: Option<u32>,
}

impl Scope {
    /// Whether reports of this process are about the command's test: it is one of its processes, or at the other end of its
    /// connections and serves nobody else.
    pub fn concerns(&self, pid: u32) -> bool {
        self.family.binary_search(&pid).is_ok() || (self.mates.contains(&pid) && self.shared != Some(pid))
    }

    /// From now on these sockets belong, besides the command's processes.
    pub fn take(&mut self, sockets: BTreeSet<SocketKey>) {
        if self.taken.as_ref() != Some(&sockets) {
            self.sockets.clear();
            self.taken = Some(sockets);
        }
    }

    /// Takes out of a sample what does not belong; what others do there. As long as the command's processes are not known
    /// nothing belongs.
    pub fn narrow(&mut self, sample: &mut Sample) -> OtherTraffic {
        let family = sample.facts.family.clone().unwrap_or_default();
        self.narrow_to(&family, sample)
    }

    /// Takes out of a sample what does not belong to these processes, sorted; gives what others do there.
    pub fn narrow_to(&mut self, family: &Arc<Vec<u32>>, sample: &mut Sample) -> OtherTraffic {
        self.join(family, sample);
        self.follow_relays(sample);
        let is_ours = |pid: u32| family.binary_search(&pid).is_ok();
        // One that cannot connect is the command's benchmark too, and no reason to measure others'.
        self.has_benchmark = self.has_benchmark
            || sample.facts.benchmarks.iter().any(|one: &Benchmark| is_ours(one.pid))
            || sample.flows.iter().any(|flow| is_ours(flow.pid) && self.drives(flow, &sample.protocols));
        let belongs = |flow: &FlowSample| self.own.contains(&flow.key()) || self.servers.contains(&flow.key());
        let (mut own, others): (Vec<_>, Vec<_>) = std::mem::take(&mut sample.flows).into_iter().partition(belongs);
        let mut answering = BTreeSet::new();
        for flow in own.iter_mut().filter(|flow| self.servers.contains(&flow.key())) {
            // It is known who answers; what it has moved and dropped is of all.
            flow.udp = None;
            answering.insert(flow.pid);
        }
        let mates: BTreeSet<u32> = own.iter().map(|flow| flow.pid).filter(|&pid| !is_ours(pid)).collect();
        self.mates.extend(&mates);
        let busy: BTreeSet<u32> = others.iter().filter(|flow| is_busy(flow)).map(|flow| flow.pid).collect();
        self.look_for_strangers(&others, &mates, &sample.facts.benchmarks);
        let serves = |pid: &u32| busy.contains(pid) || self.serving.contains(pid) || answering.contains(pid);
        self.shared = mates.iter().copied().find(serves).or(self.shared);
        sample.flows = own;
        let is_known = |one: &Benchmark| is_ours(one.pid) || mates.contains(&one.pid);
        let benchmarks = kept(&sample.facts.benchmarks, is_known);
        let paths = kept(&sample.facts.paths, |path| sample.flows.iter().any(|flow| is_way_of(path, flow)));
        let facts = &sample.facts;
        if !(Arc::ptr_eq(&benchmarks, &facts.benchmarks) && Arc::ptr_eq(&paths, &facts.paths)) {
            let facts = sample.facts_mut();
            (facts.benchmarks, facts.paths) = (benchmarks, paths);
        }
        sample.threads.retain(|thread| {
            let pid = thread.id.pid;
            thread.duty == Duty::Carrier || is_ours(pid) || (mates.contains(&pid) && !serves(&pid))
        });
        self.keep_moves(sample);
        self.keep_drops(sample, &others);
        self.keep_protocols(sample);
        OtherTraffic { flows: !busy.is_empty(), datagrams: self.datagrams.clone(), servers: self.servers.clone() }
    }

    /// It is a benchmark's connection, or the command's namespace is full of datagrams while it has a socket for them.
    fn drives(&mut self, flow: &FlowSample, protocols: &[ProtocolCounters]) -> bool {
        if flow.proto == Proto::Udp {
            if let Some(counts) = flow.udp.and_then(|udp| udp.counts) {
                return counts.sent.max(counts.received) >= DATAGRAMS;
            }
            let Some(counters) = protocols.iter().find(|one| one.netns == flow.netns) else { return false };
            let now = counters.udp_out_datagrams.saturating_add(counters.udp_in_datagrams);
            let first = *self.first_datagrams.entry(flow.netns).or_insert(now);
            return now.saturating_sub(first) >= DATAGRAMS;
        }
        let (Some(newest), moved) = (flow.pulses.last(), moved(flow)) else { return false };
        if self.first.len() > MOST_FLOWS {
            self.first.clear();
        }
        let &mut (since_ns, before) = self.first.entry(flow.key()).or_insert((newest.at_ns, moved));
        let lasted_ns = newest.at_ns.saturating_sub(since_ns);
        let steady = DRIVES_PER_S.saturating_mul(lasted_ns / DRIVES_NS);
        moved >= DRIVES || (moved >= CARRIES && steady > 0 && moved.saturating_sub(before) >= steady)
    }

    /// A process at the other end of the command's connections that is no known benchmark is the command's alone only as long
    /// as nothing else is connected with it. A connection of the command may be seen at one end first, so it takes two samples.
    /// In a test among others, the data that connections move decide what belongs.
    fn look_for_strangers(&mut self, others: &[FlowSample], mates: &BTreeSet<u32>, benchmarks: &[Benchmark]) {
        let is_known = |pid: u32| benchmarks.binary_search_by_key(&pid, |one| one.pid).is_ok();
        let is_strange = |flow: &&FlowSample| {
            self.taken.is_none() && flow.proto == Proto::Tcp && mates.contains(&flow.pid) && !is_known(flow.pid)
        };
        let strange: BTreeMap<SocketKey, u32> =
            others.iter().filter(is_strange).map(|flow| (flow.key(), flow.pid)).collect();
        let lasting = strange.iter().filter(|(socket, _)| self.strangers.contains(socket));
        self.serving.extend(lasting.map(|(_, pid)| *pid));
        self.strangers = strange.into_keys().collect();
    }

    /// Which sockets belong: the command's, and those that certainly are their other ends. A connection of TCP stays what
    /// it was found to be, also when one of its ends is gone.
    fn join(&mut self, family: &Arc<Vec<u32>>, sample: &Sample) {
        let (flows, paths) = (&sample.flows, &sample.facts.paths);
        let sockets: Vec<_> = flows.iter().map(|flow| (flow.key(), flow.remote)).collect();
        if *family == self.family && sockets == self.sockets && Arc::ptr_eq(&self.paths, paths) {
            return;
        }
        (self.family, self.sockets, self.paths) = (Arc::clone(family), sockets, Arc::clone(paths));
        let (before, names) = (std::mem::take(&mut self.own), Translated::on(&self.paths));
        self.datagrams.clear();
        self.servers.clear();
        for proto in [Proto::Tcp, Proto::Udp] {
            let flows: Vec<&FlowSample> = flows.iter().filter(|flow| flow.proto == proto).collect();
            let places = names.places(flows.iter().copied());
            let pairs = join::pairs(&places, &self.paths);
            for &(one, other) in &pairs {
                let ends = || [Some(one), other].into_iter().flatten().map(|at| flows[at]);
                let was = |flow: &FlowSample| proto == Proto::Tcp && before.contains(&flow.key());
                let belongs = |flow: &FlowSample| match &self.taken {
                    Some(taken) => taken.contains(&flow.key()),
                    None => family.binary_search(&flow.pid).is_ok() || was(flow),
                };
                if ends().any(belongs) {
                    self.own.extend(ends().map(FlowSample::key));
                } else if proto == Proto::Udp && (other.is_some() || places[one].is_connected()) {
                    self.datagrams.extend(ends().map(|flow| flow.netns));
                }
            }
            for (client, server) in join::shared_servers(&places, &pairs) {
                let [client, server] = [client, server].map(|at| flows[at]);
                if self.own.contains(&client.key()) && !self.own.contains(&server.key()) {
                    self.servers.insert(server.key());
                    self.datagrams.insert(server.netns);
                }
            }
        }
    }

    /// A connection behind a program that copies belongs where all belong whose data it may carry.
    fn follow_relays(&mut self, sample: &Sample) {
        if self.taken.is_some() {
            return;
        }
        for second in proxied::seconds(&sample.flows, &sample.facts.paths) {
            if !second.firsts.is_empty() && second.firsts.iter().all(|(socket, _)| self.own.contains(socket)) {
                self.own.insert(second.key);
            }
        }
    }

    /// The moves of a thread that has just ended come after its last sample.
    fn keep_moves(&mut self, sample: &mut Sample) {
        let now: BTreeSet<u32> = sample.threads.iter().map(|thread| thread.id.tid).collect();
        if let Some(trace) = &mut sample.trace {
            trace.moves.retain(|one| now.contains(&one.tid) || self.threads.contains(&one.tid));
        }
        self.threads = now;
    }

    /// Takes out drops of others' flows. The first packets to a listening socket are known by its port alone: they are of the
    /// flows that send there, when no others do.
    fn keep_drops(&mut self, sample: &mut Sample, others: &[FlowSample]) {
        if self.flows.len() > MOST_FLOWS {
            self.flows.clear();
        }
        let own_only = |flow: &&FlowSample| !self.servers.contains(&flow.key());
        self.flows.extend(sample.flows.iter().filter(own_only).flat_map(FlowSample::directions));
        let Some(kernel) = &mut sample.kernel else { return };
        let sends = |flows: &[FlowSample], to: DropFlow| {
            flows.iter().any(|flow| flow.proto == to.proto && flow.remote.port() == to.to.port())
        };
        let own = &sample.flows;
        let is_own = |row: &DropCount| {
            row.flow.is_none_or(|flow| {
                self.flows.contains(&flow) || (flow.from.port() == 0 && sends(own, flow) && !sends(others, flow))
            })
        };
        if kernel.drops.as_ref().is_some_and(|drops| !drops.flows.iter().all(is_own))
            && let Some(drops) = &mut Arc::make_mut(kernel).drops
        {
            drops.flows.retain(is_own);
        }
    }

    /// Takes out counters of namespaces that none of the connections is in, or was in a sample ago. Before there are
    /// connections all counters stay.
    fn keep_protocols(&mut self, sample: &mut Sample) {
        let hops = sample.facts.paths.iter().flat_map(|path| &path.hops).map(|hop| hop.link.netns);
        let now: BTreeSet<u64> = sample.flows.iter().map(|flow| flow.netns).chain(hops).collect();
        let before = std::mem::replace(&mut self.spaces, now);
        if !self.spaces.is_empty() || !before.is_empty() {
            let is_there = |netns: &u64| self.spaces.contains(netns) || before.contains(netns);
            sample.protocols.retain(|one| is_there(&one.netns));
        }
    }
}

/// Rows of a list to keep; the list itself, not a copy, where nothing is left out.
pub(super) fn kept<T: Clone>(list: &Arc<Vec<T>>, keep: impl Fn(&T) -> bool) -> Arc<Vec<T>> {
    if list.iter().all(&keep) {
        return Arc::clone(list);
    }
    Arc::new(list.iter().filter(|one| keep(one)).cloned().collect())
}

/// It is more than a connection that controls a test, or one that is refused because another test runs.
pub(super) fn is_busy(flow: &FlowSample) -> bool {
    match flow.proto {
        Proto::Tcp => moved(flow) >= CARRIES || waiting(flow) >= CARRIES,
        Proto::Udp => flow.remote.port() != 0,
    }
}

/// Bytes that are not acknowledged yet, sent or not; one of a connection that nobody has answered.
pub(super) fn waiting(flow: &FlowSample) -> u64 {
    flow.tcp.map_or(0, |tcp| u64::from(tcp.tx_queue))
}

/// Bytes so far, in the direction in which more went.
pub(super) fn moved(flow: &FlowSample) -> u64 {
    flow.pulses.last().map_or(0, |pulse| pulse.acked.max(pulse.received))
}

pub(super) fn is_way_of(path: &FlowPath, flow: &FlowSample) -> bool {
    let is_sender = path.from == flow.local && (path.netns == flow.netns || path.netns == 0);
    let is_receiver = path.from == flow.remote && path.receiver_netns().is_none_or(|netns| netns == flow.netns);
    path.proto == flow.proto && (is_sender || is_receiver)
}

#[cfg(test)]
mod tests;
