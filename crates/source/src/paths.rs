//! Which links each flow crosses: asks the kernel hop by hop, from the sender to the receiver. Without flows it asks
//! nothing and keeps nothing open; with them when flows change, soon after links or switches do, and every two seconds
//! besides, then when the sample's counters have been read: what lies between two counters is what passed meanwhile.

mod ends;
mod kernel;
mod lookups;
mod map;
mod walk;

use crate::netns::Spaces;
use crate::owners::OwnerReader;
use crate::publish;
use ends::WantedPath;
use kernel::{KernelQueries, QuerySockets, Round};
use lookups::NetworkQueries;
use map::NetworkMap;
use std::net::SocketAddr;
use std::sync::Arc;
use vnettop_sample::{
    EndName, Ends, FlowPath, FlowSample, LinkFacts, OvsSwitch, Problem, ProblemSource, SocketKey, WireNames,
};

/// Routes and forwarding tables change without a word to anyone who only looks at links.
const AGAIN_NS: u64 = 2_000_000_000;
/// Where asking takes long (many flows, thousands of routing rules), what is asked again takes at most this part of the time.
const MOST_OF_TIME: u64 = 50;
/// While links come and go all the time, the paths of hundreds of flows are not asked for on every tick.
const UNREST_NS: u64 = 250_000_000;
/// For `YOUNG_NS` (ns) after the flows changed, Open vSwitch may not have named its ports yet: paths are asked for again after
/// ten times as long as the last search took, not [`MOST_OF_TIME`] times.
const YOUNG_NS: u64 = 10_000_000_000;
const MOST_OF_YOUTH: u64 = 10;

/// What paths are found with.
#[derive(Debug, Clone, Copy)]
pub struct WalkState<'a> {
    /// The namespaces.
    pub spaces: &'a Spaces,
    /// Who holds tuns and taps.
    pub owners: &'a OwnerReader,
    /// Every link, sorted by key.
    pub links: &'a Arc<Vec<Arc<LinkFacts>>>,
    /// What Open vSwitch says.
    pub ovs: &'a Arc<Vec<OvsSwitch>>,
}

/// A socket: what it is connected with, its mark, whether it sends, whether it receives.
type SeenSocket = (SocketKey, SocketAddr, Option<u32>, (bool, bool));

/// Finds and keeps the paths of the flows.
#[derive(Debug, Default)]
pub struct PathReader {
    published: Arc<Vec<FlowPath>>,
    problem: Option<Problem>,
    sockets: QuerySockets,
    /// What the published paths were found with.
    links: Arc<Vec<Arc<LinkFacts>>>,
    ovs: Arc<Vec<OvsSwitch>>,
    ends: Vec<SeenSocket>,
    wanted: Vec<WantedPath>,
    /// When the flows changed last.
    began_at_ns: u64,
    found_at_ns: u64,
    /// How long that took.
    took_ns: u64,
}

impl PathReader {
    /// The paths of these flows; the same `Arc` until one changes.
    pub fn read(&mut self, ground: WalkState<'_>, flows: &[FlowSample], now_ns: u64) -> Arc<Vec<FlowPath>> {
        if flows.is_empty() {
            if !self.ends.is_empty() {
                *self = Self::default();
            }
            return Arc::clone(&self.published);
        }
        let ends = || flows.iter().map(|flow| (flow.key(), flow.remote, flow.mark, ends::directions(flow)));
        let flows_changed = !ends().eq(self.ends.iter().copied());
        let same_ground = Arc::ptr_eq(&self.links, ground.links) && Arc::ptr_eq(&self.ovs, ground.ovs);
        if flows_changed {
            self.ends = ends().collect();
            self.wanted = ends::wanted(flows);
            self.began_at_ns = now_ns;
            self.sockets.holders.forget();
        }
        if flows_changed || (!same_ground && self.is_old(now_ns, UNREST_NS)) {
            self.find(ground, flows, now_ns);
        }
        Arc::clone(&self.published)
    }

    /// Asks again for what changes unannounced; the next `read` gives it. `flows` are those of the last `read`.
    pub fn renew(&mut self, ground: WalkState<'_>, flows: &[FlowSample], now_ns: u64) {
        let again_ns = if self.sockets.holders.go_on() { 0 } else { AGAIN_NS };
        if !flows.is_empty() && self.is_old(now_ns, again_ns) {
            self.find(ground, flows, now_ns);
        }
    }

    fn is_old(&self, now_ns: u64, least_ns: u64) -> bool {
        let is_young = now_ns.saturating_sub(self.began_at_ns) < YOUNG_NS;
        let part = if is_young { MOST_OF_YOUTH } else { MOST_OF_TIME };
        now_ns.saturating_sub(self.found_at_ns) >= least_ns.max(self.took_ns.saturating_mul(part))
    }

    /// Closes what is in namespaces that nobody else keeps.
    pub fn leave(&mut self, spaces: &Spaces) {
        self.sockets.keep(|netns| spaces.knows(netns));
    }

    /// What cannot be seen and why.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        self.problem.as_slice()
    }

    fn find(&mut self, ground: WalkState<'_>, flows: &[FlowSample], now_ns: u64) {
        (self.links, self.ovs) = (Arc::clone(ground.links), Arc::clone(ground.ovs));
        let began_ns = crate::now_ns();
        let map = NetworkMap::new(ground.links, ground.ovs);
        self.sockets.round = Round::default();
        let held: Vec<(u64, SocketAddr)> = flows.iter().map(|flow| (flow.netns, flow.local)).collect();
        let mut kernel =
            KernelQueries { sockets: &mut self.sockets, spaces: ground.spaces, owners: ground.owners, map };
        let paths = ways(map, &mut kernel, &held, &self.wanted);
        publish(&mut self.published, paths);
        let crossed = |netns| {
            let mut hops = self.published.iter().flat_map(|path| &path.hops);
            hops.any(|hop| hop.link.netns == netns) || held.iter().any(|&(holder, _)| holder == netns)
        };
        let mut refused = self.sockets.refused().filter(|(netns, _)| ground.spaces.knows(*netns));
        let problem = refused.next().map(|(_, why)| Problem {
            source: ProblemSource::Paths,
            text: format!("{why}, so paths are cut off there; run vnettop as root"),
        });
        drop(refused);
        self.sockets.keep(|netns| ground.spaces.knows(netns) && crossed(netns));
        self.problem = problem;
        self.found_at_ns = now_ns;
        self.took_ns = crate::now_ns().saturating_sub(began_ns);
    }
}

/// The paths of these, the senders' first: one that is known from its sender is not asked for backwards.
fn ways<L: NetworkQueries>(
    map: NetworkMap<'_>,
    lookups: &mut L,
    held: &[(u64, SocketAddr)],
    wanted: &[WantedPath],
) -> Vec<FlowPath> {
    let (backwards, forth): (Vec<&WantedPath>, Vec<&WantedPath>) = wanted.iter().partition(|wanted| wanted.backwards);
    let mut paths: Vec<FlowPath> = forth.into_iter().map(|wanted| path(map, lookups, held, wanted)).collect();
    for wanted in backwards {
        let WantedPath { netns, packet, .. } = *wanted;
        let end = EndName { netns, local: packet.to, remote: packet.from };
        let is_it =
            |path: &FlowPath| path.proto == packet.proto && path.ends.as_ref().is_some_and(|ends| ends.far == end);
        if !paths.iter().any(is_it) {
            paths.push(path(map, lookups, held, wanted));
        }
    }
    paths
}

/// One path, forwards or backwards.
fn path<L: NetworkQueries>(
    map: NetworkMap<'_>,
    lookups: &mut L,
    held: &[(u64, SocketAddr)],
    wanted: &WantedPath,
) -> FlowPath {
    let WantedPath { packet, netns, backwards } = *wanted;
    let sent = if backwards { lookups::Packet { from: packet.to, to: packet.from, ..packet } } else { packet };
    let way = walk::walk(map, lookups, held, netns, sent);
    let ends = reported_ends(netns, sent, &way);
    let carriers = if backwards { ends::turned_carriers(&way.hops, &way.carriers) } else { way.carriers };
    let (netns, hops, gap) = if backwards {
        let gap = way.gap.map(|why| format!("found backwards from the receiver; before the first link: {why}"));
        (way.netns, ends::turned(&way.hops), gap)
    } else {
        (netns, way.hops, way.gap)
    };
    let outside = way.outside.map(|out| if backwards { WireNames { from: out.to, to: out.from } } else { out });
    let lookups::Packet { proto, from, to, .. } = packet;
    let neighbours = if backwards { Vec::new() } else { way.neighbours };
    FlowPath {
        netns,
        proto,
        from,
        to,
        hops,
        gap,
        note: way.note,
        ends,
        outside,
        silent: way.silent,
        neighbours,
        carriers,
    }
}

/// What is known of both ends beyond the packet's addresses.
fn reported_ends(netns: u64, packet: lookups::Packet, way: &walk::WalkedPath) -> Option<Ends> {
    let (there, arrived) = way.arrived?;
    let near = EndName { netns, local: packet.from, remote: packet.to };
    let far = EndName { netns: there, local: arrived.to, remote: arrived.from };
    let is_more = (near.local, near.remote) != (far.remote, far.local) || !way.holders.is_empty();
    is_more.then(|| Ends { near, far, holders: way.holders.clone() })
}

/// What a fuzzer gives every parser here.
#[cfg(fuzzing)]
pub(crate) fn fuzz(message: &crate::netlink::message::Message<'_>) {
    kernel::fuzz(message);
}

#[cfg(test)]
mod tests;
