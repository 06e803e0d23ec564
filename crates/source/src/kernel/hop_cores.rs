//! On which cores the packets of the paths are handled: asked for once a second, where somebody looks, or a flow's packets
//! overtake each other.

use super::sites::named;
use crate::bpf::drops::FlowKey;
use crate::bpf::hops::{FlowHopCount, FlowHops, GLANCED_AT, HopCount, HopCounts, HopKey, HopRequest, LOOKED_AT};
use crate::bpf::{Order, Programs};
use crate::now_ns;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use vnettop_sample::{FlowCores, FlowPath, FlowSample, HopCores, HopWay, Ifindex, LinkKey, Proto, SocketKey};

/// How often hops are asked for, ns: on each tick of a second.
const EVERY_NS: u64 = 900_000_000;
/// After the last packet that was overtaken they are asked for so long, ns.
const DISORDERED_NS: u64 = 5_000_000_000;
/// Hops that are counted at most.
const MOST_HOPS: usize = 128;

/// What is known of the hops, and when they are asked for next.
#[derive(Debug, Default)]
pub(super) struct HopCounter {
    asked_at_ns: u64,
    /// Asked for and not answered yet: the counting thread is asked again only after its answer, however few turns it gets.
    is_asked: bool,
    /// How often each connection's packets were overtaken so far, and when that rose last, ns.
    overtaken: BTreeMap<SocketKey, u32>,
    disordered_at_ns: Option<u64>,
    /// As counted last.
    pub hops: Vec<HopCores>,
}

impl HopCounter {
    /// Has the packets of these paths counted by core, where that is due: for half of each second where it is `wanted`, for a
    /// moment of it where flows have packets that overtake each other.
    pub fn ask(
        &mut self,
        programs: &Programs,
        wanted: bool,
        (flows, paths): (&[FlowSample], &[FlowPath]),
        now_ns: u64,
    ) {
        self.follow(flows, now_ns);
        let is_disordered = self.disordered_at_ns.is_some_and(|at_ns| now_ns.saturating_sub(at_ns) < DISORDERED_NS);
        if !(wanted || is_disordered) || paths.is_empty() {
            // Hops counted at an earlier request say nothing about now.
            self.hops.clear();
        } else if !self.is_asked && now_ns.saturating_sub(self.asked_at_ns) >= EVERY_NS {
            (self.asked_at_ns, self.is_asked) = (now_ns, true);
            programs.order(Order::Hops(request(paths), if wanted { LOOKED_AT } else { GLANCED_AT }));
        }
    }

    /// Takes what was counted.
    pub fn take(&mut self, counts: HopCounts) {
        let for_ns = u64::try_from(counts.counted_for.as_nanos()).ok();
        let ago_ns = counts.read_at.and_then(|read_at| u64::try_from(read_at.elapsed().as_nanos()).ok());
        let time = (for_ns, ago_ns.map(|ago_ns| now_ns().saturating_sub(ago_ns)));
        self.hops = counts.hops.into_iter().map(|count| hop(count, time)).collect();
        self.is_asked = false;
    }

    /// Nothing can be counted.
    pub fn refuse(&mut self) {
        self.is_asked = false;
    }

    /// Notes whether packets of a connection were overtaken since the last look.
    fn follow(&mut self, flows: &[FlowSample], now_ns: u64) {
        for flow in flows {
            let Some(disorder) = flow.tcp.and_then(|tcp| tcp.disorder) else { continue };
            let sum = disorder.dsack_dups.wrapping_add(disorder.reord_seen);
            if self.overtaken.insert(flow.key(), sum).is_some_and(|before| before != sum) {
                self.disordered_at_ns = Some(now_ns);
            }
        }
        if self.overtaken.len() > flows.len() {
            self.overtaken.retain(|key, _| flows.iter().any(|flow| flow.key() == *key));
        }
    }
}

/// The hops of these paths, and their flows.
fn request(paths: &[FlowPath]) -> HopRequest {
    let every: BTreeSet<HopKey> = paths.iter().flat_map(keys).collect();
    let all: BTreeSet<HopKey> = every.into_iter().take(MOST_HOPS).collect();
    let flow = |path: &FlowPath| {
        let hops: Vec<HopKey> = keys(path).filter(|key| all.contains(key)).collect();
        let (flow, carried) = (key(path.proto, path.from, path.to), carried(path));
        (!hops.is_empty()).then_some(FlowHops { flow, carried, hops })
    };
    HopRequest { flows: paths.iter().filter_map(flow).collect(), hops: all.into_iter().collect() }
}

fn keys(path: &FlowPath) -> impl Iterator<Item = HopKey> + '_ {
    path.hops.iter().filter_map(|hop| {
        let sent = match hop.way {
            HopWay::Sent => 1,
            HopWay::Received => 0,
            HopWay::Passed => return None,
        };
        Some([u32::try_from(hop.link.netns).ok()?, hop.link.ifindex.kernel()?, sent])
    })
}

/// The addresses of a path's packets: as the sender names them, and as they are after translation.
pub(super) fn carried(path: &FlowPath) -> Vec<FlowKey> {
    let mut all = vec![key(path.proto, path.from, path.to)];
    all.extend(path.outside.map(|outside| key(path.proto, outside.from, outside.to)));
    if let Some(ends) = &path.ends {
        for end in [ends.near, ends.far] {
            // The sender's socket has its own address first, the receiver's socket has it last.
            let is_sender = end.local == path.from;
            let (from, to) = if is_sender { (end.local, end.remote) } else { (end.remote, end.local) };
            all.push(key(path.proto, from, to));
        }
    }
    all.sort_unstable();
    all.dedup();
    all
}

pub(super) fn key(proto: Proto, from: SocketAddr, to: SocketAddr) -> FlowKey {
    FlowKey { proto: proto.number(), from, to }
}

fn hop(
    HopCount { hop: [netns, ifindex, sent], cores, flows }: HopCount,
    (for_ns, at_ns): (Option<u64>, Option<u64>),
) -> HopCores {
    HopCores {
        link: LinkKey { netns: u64::from(netns), ifindex: Ifindex(ifindex) },
        way: if sent == 1 { HopWay::Sent } else { HopWay::Received },
        cores: most_first(cores),
        for_ns,
        at_ns,
        flows: flows.into_iter().map(flow).collect(),
    }
}

fn flow(FlowHopCount { flow, cores, switches }: FlowHopCount) -> FlowCores {
    FlowCores { flow: named(flow), cores: most_first(cores), switches }
}

fn most_first(mut cores: Vec<(u32, u64)>) -> Vec<(u32, u64)> {
    cores.sort_by_key(|&(core, packets)| (std::cmp::Reverse(packets), core));
    cores
}
