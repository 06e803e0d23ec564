//! Open vSwitch: bridges and ports from its database over its unix socket (RFC 7047), joined with the kernel's links. It
//! follows what the database tells and asks again and again for nothing; where there is none it costs a stat a second.

mod column_values;
mod control;
mod daemon;
mod datapaths;
mod inactivity;
mod kernel;
mod port_links;
mod protocol;
mod session;
mod socket_place;
mod tables;
#[cfg(test)]
mod tests;

use crate::netns::Spaces;
use crate::{Roots, clock_ns, netns_of, now_ns, publish};
use column_values::Uuid;
use datapaths::{Around, DatapathReader};
use port_links::{JoinedPorts, join};
use rustix::time::ClockId;
use session::Session;
pub use socket_place::{SocketPlace, places};
use std::collections::BTreeMap;
use std::sync::Arc;
use tables::Statistics;
use vnettop_sample::{FlowPath, Ifindex, LinkCounters, LinkFacts, OvsDatapath, OvsSwitch, Problem, ProblemSource};

/// Follows every Open vSwitch of the machine.
#[derive(Debug, Default)]
pub struct OvsReader {
    roots: Roots,
    /// The namespace of a switch whose own cannot be told.
    own_netns: u64,
    sessions: Vec<Session>,
    /// The index of each interface without a kernel link, by session and row.
    numbers: BTreeMap<(usize, Uuid), Ifindex>,
    next_number: u32,
    /// The kernel's links of the last join; empty while no switch is known.
    kernel: Arc<Vec<Arc<LinkFacts>>>,
    /// The session and the row that count for each link.
    counted: Vec<(usize, Uuid, Arc<LinkFacts>)>,
    published: Arc<Vec<OvsSwitch>>,
    /// The links that only Open vSwitch knows (patch ports, tunnels, ports of a userspace datapath without a device), sorted
    /// by key; the same `Arc` until they change.
    links: Arc<Vec<Arc<LinkFacts>>>,
    /// Their counters, sorted by key. The time of each is that at which ovs-vswitchd wrote it.
    counters: Vec<LinkCounters>,
    /// The last union with the kernel's links: what it was made of, and itself.
    union: Option<[Arc<Vec<Arc<LinkFacts>>>; 3]>,
    datapaths: DatapathReader,
}

impl OvsReader {
    /// Nothing is opened yet.
    #[must_use]
    pub fn new(roots: &Roots, places: &[SocketPlace]) -> Self {
        Self {
            roots: roots.clone(),
            own_netns: netns_of(&roots.proc.join("thread-self")).unwrap_or(0),
            sessions: places.iter().cloned().map(Session::new).collect(),
            next_number: Ifindex::OVS,
            ..Self::default()
        }
    }

    /// Takes in what the databases have said, also where no tick asks for it: it must not heap up.
    pub fn receive(&mut self) {
        let now_ns = now_ns();
        for session in &mut self.sessions {
            session.receive(now_ns);
        }
        self.datapaths.receive(now_ns);
    }

    /// What the datapaths on these ways have counted.
    pub fn datapaths(&mut self, spaces: &Spaces, paths: &Arc<Vec<FlowPath>>, now_ns: u64) -> Vec<OvsDatapath> {
        let sessions = &self.sessions;
        let control = |socket: &str| sessions.iter().find(|session| session.name == socket)?.control();
        let around = Around { spaces, paths, switches: &self.published, control: &control, now_ns };
        self.datapaths.read(around)
    }

    /// Closes what is open in namespaces that have gone.
    pub fn leave(&mut self, spaces: &Spaces) {
        self.datapaths.leave(spaces);
    }

    /// What the databases say now, joined with the kernel's links. Of a switch whose namespace is not wanted no port is a
    /// link.
    pub fn read(
        &mut self,
        links: &Arc<Vec<Arc<LinkFacts>>>,
        wanted: impl Fn(u64) -> bool,
        now_ns: u64,
    ) -> Arc<Vec<OvsSwitch>> {
        // In this order: what has been said since the last tick is no silence.
        self.receive();
        self.look(now_ns);
        let (mut facts, mut counters) = (false, false);
        let mut reported = Vec::new();
        for (at, session) in self.sessions.iter_mut().enumerate() {
            session.age(now_ns);
            let changes = std::mem::take(&mut session.changes);
            reported.extend(changes.facts.then_some(at));
            let wanted = wanted(session.daemon.netns.unwrap_or(self.own_netns));
            facts |= changes.facts | (std::mem::replace(&mut session.wanted, wanted) != wanted);
            counters |= changes.counters;
        }
        let is_any = self.sessions.iter().any(|session| session.known);
        if facts || is_any && !Arc::ptr_eq(&self.kernel, links) {
            let before_ns = spent_ns();
            self.join(links);
            // Who changes what there is pays for what that costs.
            let spent_ns = spent_ns().saturating_sub(before_ns);
            for at in reported {
                self.sessions[at].pay(spent_ns);
            }
            counters = true;
        }
        if counters {
            self.count();
        }
        Arc::clone(&self.published)
    }

    /// The kernel's links and those that only Open vSwitch knows, sorted by key; the same `Arc` until one of them changes.
    pub fn among(&mut self, kernel: Arc<Vec<Arc<LinkFacts>>>) -> Arc<Vec<Arc<LinkFacts>>> {
        if self.links.is_empty() {
            self.union = None;
            return kernel;
        }
        let is_of = |[of, own, _]: &&[Arc<Vec<_>>; 3]| Arc::ptr_eq(of, &kernel) && Arc::ptr_eq(own, &self.links);
        if let Some([_, _, all]) = self.union.as_ref().filter(is_of) {
            return Arc::clone(all);
        }
        let mut all: Vec<Arc<LinkFacts>> = kernel.iter().chain(&*self.links).cloned().collect();
        all.sort_by_key(|link| link.key());
        let all = Arc::new(all);
        self.union = Some([kernel, Arc::clone(&self.links), Arc::clone(&all)]);
        all
    }

    /// Puts the counters of those links among the kernel's.
    pub fn count_among(&self, kernel: &mut Vec<LinkCounters>) {
        if !self.counters.is_empty() {
            kernel.extend_from_slice(&self.counters);
            kernel.sort_by_key(LinkCounters::key);
        }
    }

    /// The processes of ovs-vswitchd of every switch that has a bridge.
    pub fn processes(&self) -> impl Iterator<Item = u32> {
        let working = |session: &&Session| session.known && !session.tables.bridges.is_empty();
        self.sessions.iter().filter(working).filter_map(|session| session.daemon.pid)
    }

    /// What cannot be seen and why.
    pub fn problems(&self) -> impl Iterator<Item = &Problem> {
        self.sessions.iter().filter_map(|session| session.problem.as_ref()).chain(self.datapaths.problems())
    }

    /// Looks for what is not connected, and after what is.
    fn look(&mut self, now_ns: u64) {
        for at in 0..self.sessions.len() {
            let taken: Vec<_> = self.sessions.iter().filter_map(Session::file).collect();
            self.sessions[at].look(&self.roots, &taken, now_ns);
        }
    }

    fn join(&mut self, kernel: &Arc<Vec<Arc<LinkFacts>>>) {
        let (mut switches, mut counted, mut numbers) = (Vec::new(), Vec::new(), BTreeMap::new());
        for (at, session) in self.sessions.iter().enumerate().filter(|(_, session)| session.known) {
            let netns = session.daemon.netns.unwrap_or(self.own_netns);
            let (socket, tables, wanted) = (&*session.name, &session.tables, session.wanted);
            let reported = JoinedPorts { socket, netns, pid: session.daemon.pid, tables, wanted, kernel };
            let (switch, links) = join(reported, |id| {
                let known = self.numbers.get(&(at, id)).copied();
                let number = known.unwrap_or_else(|| {
                    self.next_number = self.next_number.checked_add(1).unwrap_or(Ifindex::OVS);
                    Ifindex(self.next_number)
                });
                *numbers.entry((at, id)).or_insert(number)
            });
            switches.push(switch);
            counted.extend(links.into_iter().map(|(id, facts)| (at, id, facts)));
        }
        switches.sort_by(|a: &OvsSwitch, b| a.socket.cmp(&b.socket));
        counted.sort_by_key(|(_, _, facts)| facts.key());
        self.numbers = numbers;
        self.kernel = if switches.is_empty() { Arc::default() } else { Arc::clone(kernel) };
        publish(&mut self.published, switches);
        self.publish_links(counted);
    }

    /// Each link keeps its `Arc`, and all of them theirs, until one changes.
    fn publish_links(&mut self, mut counted: Vec<(usize, Uuid, Arc<LinkFacts>)>) {
        for (_, _, facts) in &mut counted {
            let known = self.links.binary_search_by_key(&facts.key(), |link| link.key()).ok();
            if let Some(known) = known.map(|at| &self.links[at]).filter(|known| *known == facts) {
                *facts = Arc::clone(known);
            }
        }
        publish(&mut self.links, counted.iter().map(|(_, _, facts)| Arc::clone(facts)).collect());
        self.counted = counted;
    }

    fn count(&mut self) {
        self.counters.clear();
        for (at, id, facts) in &self.counted {
            let session = &self.sessions[*at];
            // How old the first statistics of a connection are is not known: a tick without them keeps them from being
            // taken for the continuation of those before.
            if session.counts() && !session.begun {
                let statistics = session.tables.statistics.get(id);
                self.counters.extend(statistics.and_then(|row| counters(row, facts, session.counted_at_ns)));
            }
        }
        for session in &mut self.sessions {
            session.changes.counters |= std::mem::take(&mut session.begun);
        }
    }
}

fn problem(text: String) -> Problem {
    Problem { source: ProblemSource::Ovs, text }
}

/// CPU time of this thread, ns.
fn spent_ns() -> u64 {
    clock_ns(ClockId::ThreadCPUTime)
}

fn counters(row: &Statistics, facts: &LinkFacts, at_ns: u64) -> Option<LinkCounters> {
    let [rx_bytes, tx_bytes, rx_packets, tx_packets, dropped @ ..] = row.0;
    // Where they are not counted, `OvsPort::counts_drops` says so.
    let [rx_dropped, tx_dropped, rx_errors, tx_errors] = dropped.map(|count| count.unwrap_or(0));
    Some(LinkCounters {
        rx_bytes: rx_bytes?,
        tx_bytes: tx_bytes?,
        rx_packets: rx_packets?,
        tx_packets: tx_packets?,
        rx_dropped,
        tx_dropped,
        rx_errors,
        tx_errors,
        ..LinkCounters::zero(facts.key(), at_ns)
    })
}

/// What a fuzzer gives every parser here.
#[cfg(fuzzing)]
pub(crate) fn fuzz(message: &crate::netlink::message::Message<'_>) {
    kernel::fuzz(message);
}

/// What a fuzzer gives the parsers of JSON here: one message after the other.
#[cfg(fuzzing)]
pub(crate) fn fuzz_json(bytes: &[u8]) {
    let messages = serde_json::Deserializer::from_slice(bytes).into_iter::<serde_json::Value>();
    let mut known = tables::Tables::default();
    for message in messages.map_while(Result::ok) {
        control::fuzz(&message);
        let _ = protocol::understand(message.clone());
        known.learn(&message);
        known.count(&message);
        let _ = (known.bounded(), known.statistics_ns());
    }
}
