//! How long packets of watched flows take from point to point of their path, how late softirqs run, and how long watched threads
//! wait for a core (`bpf/latency.bpf.c`), while it is asked for. The tables are the sampler's; the thread that attaches the
//! programs (`object::LatencyPrograms`) looks at packets for a part of the time, at threads all of it.

use super::drops::others::Bits;
use super::drops::{FlowKey, Tuple, tuple};
use super::hops::HopKey;
use super::looked_at::LookedAt;
use aya::Ebpf;
use aya::maps::{Array, HashMap, MapData, PerCpuArray};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// `BUCKETS` of the program.
const BUCKETS: usize = 112;
/// Lanes: flows at points that are told apart at most, from 1 on.
const MOST_LANES: u32 = 1024;
/// Flows that are told apart at most.
const MOST_FLOWS: u32 = 1024;
/// Rows from which on those of ended flows make room for others.
const MOST_ROWS: usize = 800;
/// Threads that are watched at most.
const MOST_THREADS: u32 = 512;
/// `UDP` and `UNCONNECTED` of the program.
const UDP: u32 = 17;
const UNCONNECTED: u32 = 0x100;
/// `IS_FIRST` and `IS_LAST` of the program.
const IS_FIRST: u32 = 0x1_0000;
const IS_LAST: u32 = 0x2_0000;

/// The third number of a point: received, sent, read by the program, given to the qdisc.
pub const RECEIVED: u32 = 0;
/// See [`RECEIVED`].
pub const SENT: u32 = 1;
/// See [`RECEIVED`]; of no link.
pub const READ: u32 = 2;
/// See [`RECEIVED`].
pub const QUEUED: u32 = 3;

/// `struct waiting`.
type RawWaiting = [u64; 6];
/// `struct latencies`: maximum, and of each bucket number and sum.
type RawLatencies = [u64; 1 + 2 * BUCKETS];
/// `struct taken`: ns, count, name (16 bytes), pid and priority, core and priority.
type RawTaken = [u64; 6];

/// A flow, and where it is looked at, in the order of its packets.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowPoints {
    /// What it is called.
    pub flow: FlowKey,
    /// What its packets carry, which differs along the way where addresses are translated.
    pub carried: Vec<FlowKey>,
    /// Its points.
    pub points: Vec<HopKey>,
    /// Inode of the namespace in which it is read.
    pub reader_netns: Option<u32>,
}

/// What is looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LatencyRequest {
    /// The flows.
    pub flows: Vec<FlowPoints>,
    /// Tids, sorted.
    pub threads: Vec<u32>,
}

/// Of what the times are, as the program tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitOf {
    /// Packets between two points.
    Packets(FlowKey, HopKey, HopKey),
    /// Softirqs on a core.
    Softirq(FlowKey, u32),
    /// A thread.
    Wakeup(u32),
    /// See above.
    ReadGap(u32),
    /// See above.
    SendGap(u32),
    /// Packets at the end.
    ArrivalGap(FlowKey),
    /// Packets that cannot be told apart.
    Alike(FlowKey),
    /// Packets over the whole path.
    Whole(FlowKey),
    /// A thread, from having read to its next packet.
    Answer(u32),
}

/// Times of one kind.
#[derive(Debug, Clone)]
pub struct WaitCount {
    /// Of what.
    pub of: WaitOf,
    /// Longest, ns.
    pub max_ns: u64,
    /// Bucket, number and sum in ns.
    pub buckets: Vec<(u8, u64, u64)>,
}

/// Who ran before a thread that had waited.
#[derive(Debug, Clone)]
pub struct RanInstead {
    /// Tid of who waited.
    pub thread: u32,
    /// Tid; 0 for idle.
    pub by: u32,
    /// Its process.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Its real-time priority or 0.
    pub real_time: u32,
    /// The same of who waited.
    pub own_real_time: u32,
    /// The core.
    pub core: u32,
    /// ns.
    pub ns: u64,
    /// How often.
    pub count: u64,
}

/// The tables.
pub struct LatencyTables {
    latencies: HashMap<MapData, [u32; 3], RawLatencies>,
    waiting: HashMap<MapData, u32, RawWaiting>,
    waited_for: HashMap<MapData, [u32; 2], RawTaken>,
    wakeups: Array<MapData, RawLatencies>,
    ran: PerCpuArray<MapData, u64>,
    points: HashMap<MapData, HopKey, u32>,
    lane_numbers: HashMap<MapData, [u32; 4], u32>,
    flows: HashMap<MapData, Tuple, u32>,
    ports: Bits,
    asked: LatencyRequest,
    /// Flows for which there was no room.
    pub left_out: usize,
    /// Which request for flows it is: what the program remembers of an earlier one is void.
    request: u32,
    /// Where the waits of each thread are counted.
    slots: BTreeMap<u32, u32>,
    /// The number of each flow with these points and its first lane, for good: what was counted keeps its meaning.
    numbers: BTreeMap<FlowPoints, (u32, u32)>,
    /// Flow and point by lane, from 1 on.
    lanes: Vec<(FlowKey, HopKey)>,
    /// For how long packets were looked at.
    pub looked_at: Arc<LookedAt>,
    /// For how long threads were.
    pub threads_at: Arc<LookedAt>,
    /// The kernel tells of reads and sends.
    pub tells_reads: bool,
}

impl LatencyTables {
    pub(super) fn take(
        ebpf: &mut Ebpf,
        [looked_at, threads_at]: [Arc<LookedAt>; 2],
        tells_reads: bool,
    ) -> Option<Self> {
        Some(Self {
            latencies: HashMap::try_from(ebpf.take_map("latencies")?).ok()?,
            waiting: HashMap::try_from(ebpf.take_map("waiting")?).ok()?,
            waited_for: HashMap::try_from(ebpf.take_map("waited_for")?).ok()?,
            ran: PerCpuArray::try_from(ebpf.take_map("ran")?).ok()?,
            wakeups: Array::try_from(ebpf.take_map("wakeups")?).ok()?,
            points: HashMap::try_from(ebpf.take_map("points")?).ok()?,
            lane_numbers: HashMap::try_from(ebpf.take_map("lane_numbers")?).ok()?,
            flows: HashMap::try_from(ebpf.take_map("flows")?).ok()?,
            ports: Bits::take(ebpf, "ports")?,
            asked: LatencyRequest::default(),
            left_out: 0,
            request: 0,
            slots: BTreeMap::new(),
            numbers: BTreeMap::new(),
            lanes: Vec::new(),
            looked_at,
            threads_at,
            tells_reads,
        })
    }

    /// Has these looked at from now on, and nothing else; what was counted stays.
    pub fn ask(&mut self, request: &LatencyRequest) {
        if request.threads != self.asked.threads || self.slots.len() < request.threads.len().min(MOST_THREADS as usize)
        {
            self.ask_threads(&request.threads);
        }
        let is_full = self.latencies.keys().count() >= MOST_ROWS;
        if request.flows != self.asked.flows || is_full {
            self.ask_flows(&request.flows);
        }
        self.asked = request.clone();
    }

    fn ask_threads(&mut self, threads: &[u32]) {
        for gone in self.asked.threads.iter().filter(|tid| threads.binary_search(tid).is_err()) {
            let _ = self.waiting.remove(gone);
            (3..=4).for_each(|kind| drop(self.latencies.remove(&[kind, *gone, 0])));
            let rows: Vec<[u32; 2]> = self.waited_for.keys().flatten().filter(|key| key[0] == *gone).collect();
            for row in &rows {
                let _ = self.waited_for.remove(row);
            }
        }
        self.slots.retain(|tid, _| threads.binary_search(tid).is_ok());
        let new: Vec<u32> = threads.iter().filter(|tid| !self.slots.contains_key(tid)).copied().collect();
        for new in &new {
            let taken: BTreeSet<u32> = self.slots.values().copied().collect();
            let Some(slot) = (0..MOST_THREADS).find(|slot| !taken.contains(slot)) else { break };
            let _ = self.wakeups.set(slot, [0; 1 + 2 * BUCKETS], 0);
            self.slots.insert(*new, slot);
            let _ = self.waiting.insert(new, [0, 0, 0, 0, 0, u64::from(slot)], 0);
        }
    }

    fn ask_flows(&mut self, flows: &[FlowPoints]) {
        self.request = self.request.wrapping_add(1);
        let old: Vec<HopKey> = self.points.keys().flatten().collect();
        for point in &old {
            let _ = self.points.remove(point);
        }
        let old: Vec<[u32; 4]> = self.lane_numbers.keys().flatten().collect();
        for key in &old {
            let _ = self.lane_numbers.remove(key);
        }
        let old: Vec<Tuple> = self.flows.keys().flatten().collect();
        for tuple in &old {
            let _ = self.flows.remove(tuple);
        }
        self.make_room(flows);
        let mut known = Vec::new();
        for one in flows {
            let Some((number, first)) = self.number(one) else { continue };
            one.carried.iter().for_each(|&carried| drop(self.flows.insert(tuple(carried), number, 0)));
            let reader = unconnected(one);
            // Of several senders to one socket it is not known whose datagram was read.
            let is_alone = flows.iter().filter(|other| unconnected(other) == reader).count() == 1;
            if let Some(reader) = reader.filter(|_| is_alone) {
                let _ = self.flows.insert(reader, number, 0);
            }
            let links = one.points.iter().rposition(|point| point[2] != READ);
            for (at, &[netns, ifindex, what]) in one.points.iter().enumerate() {
                let lane = first + u32::try_from(at).unwrap_or(0);
                let marks = if at == 0 { IS_FIRST } else { 0 } | if Some(at) == links { IS_LAST } else { 0 };
                let _ = self.lane_numbers.insert([netns, ifindex, what, number], lane | marks, 0);
            }
            known.push(one);
        }
        self.left_out = flows.len() - known.len();
        let ports = known.iter().flat_map(|one| &one.carried).map(|flow| u32::from(flow.to.port().to_be()));
        self.ports.set(ports);
        for point in known.iter().flat_map(|one| &one.points).filter(|point| point[2] != READ) {
            let _ = self.points.insert(point, self.request, 0);
        }
    }

    /// The number of a flow, and its first lane; none where there are too many.
    fn number(&mut self, one: &FlowPoints) -> Option<(u32, u32)> {
        if let Some(&known) = self.numbers.get(one) {
            return Some(known);
        }
        let number = u32::try_from(self.numbers.len()).ok()? + 1;
        let first = u32::try_from(self.lanes.len()).ok()? + 1;
        let is_room = first + u32::try_from(one.points.len()).ok()? <= MOST_LANES && number < MOST_FLOWS;
        if !is_room {
            return None;
        }
        self.numbers.insert(one.clone(), (number, first));
        self.lanes.extend(one.points.iter().map(|&point| (one.flow, point)));
        Some((number, first))
    }

    /// Forgets every count and number where there is no room for these flows any more.
    fn make_room(&mut self, flows: &[FlowPoints]) {
        let new = flows.iter().filter(|one| !self.numbers.contains_key(one));
        let lanes = self.lanes.len() + new.map(|one| one.points.len()).sum::<usize>();
        if lanes < MOST_LANES as usize && self.latencies.keys().count() < MOST_ROWS {
            return;
        }
        let rows: Vec<[u32; 3]> = self.latencies.keys().flatten().collect();
        for row in &rows {
            let _ = self.latencies.remove(row);
        }
        self.numbers.clear();
        self.lanes.clear();
    }

    /// Everything counted so far.
    #[must_use]
    pub fn read(&self) -> Vec<WaitCount> {
        let rows = self.latencies.iter().flatten().filter_map(|(key, raw)| Some(wait_count(self.of(key)?, &raw)));
        let of_thread = |(&tid, slot): (&u32, &u32)| {
            let count = wait_count(WaitOf::Wakeup(tid), &self.wakeups.get(slot, 0).ok()?);
            (!count.buckets.is_empty()).then_some(count)
        };
        rows.chain(self.slots.iter().filter_map(of_thread)).collect()
    }

    fn of(&self, [kind, one, other]: [u32; 3]) -> Option<WaitOf> {
        let lane = |lane: u32| self.lanes.get((lane as usize).checked_sub(1)?).copied();
        let flow = || self.numbers.iter().find(|(_, (number, _))| *number == one).map(|(points, _)| points.flow);
        Some(match kind {
            0 => {
                let ((flow, from), (_, to)) = (lane(one)?, lane(other)?);
                WaitOf::Packets(flow, from, to)
            }
            1 => WaitOf::Softirq(flow()?, other),
            3 => WaitOf::ReadGap(one),
            4 => WaitOf::SendGap(one),
            5 => WaitOf::ArrivalGap(flow()?),
            6 => WaitOf::Alike(flow()?),
            7 => WaitOf::Whole(flow()?),
            8 => WaitOf::Answer(one),
            _ => return None,
        })
    }

    /// How often programs ran for looks at packets.
    #[must_use]
    pub fn runs(&self) -> u64 {
        self.ran.get(&0, 0).map_or(0, |cores| cores.iter().sum())
    }

    /// For whom threads waited.
    #[must_use]
    pub fn ran_instead(&self) -> Vec<RanInstead> {
        self.waited_for.iter().flatten().map(ran_instead).collect()
    }
}

/// What stands for the socket of a flow's reader that has no peer (`flow_of_unconnected`); only UDP has such.
fn unconnected(one: &FlowPoints) -> Option<Tuple> {
    let FlowKey { proto, to, .. } = one.flow;
    let is_udp = u32::from(proto) == UDP;
    let anybody = FlowKey { from: SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)), ..one.flow };
    let mut reader = tuple(FlowKey { to, ..anybody });
    reader[0] = one.reader_netns?;
    reader[9] |= UNCONNECTED;
    is_udp.then_some(reader)
}

fn wait_count(of: WaitOf, raw: &RawLatencies) -> WaitCount {
    let &[max_ns, ref buckets @ ..] = raw;
    let both = buckets.chunks_exact(2).map(|both| (both[0], both[1]));
    let buckets = (0..).zip(both).filter(|&(_, (count, _))| count > 0);
    WaitCount { of, max_ns, buckets: buckets.map(|(bucket, (count, sum_ns))| (bucket, count, sum_ns)).collect() }
}

fn ran_instead(([thread, by], raw): ([u32; 2], RawTaken)) -> RanInstead {
    let [ns, count, name @ .., pid_priority, core_priority] = raw;
    let bytes: Vec<u8> = name.iter().flat_map(|word: &u64| word.to_le_bytes()).take_while(|&byte| byte != 0).collect();
    let name = String::from_utf8_lossy(&bytes).into_owned();
    let low = |word: u64| u32::try_from(word & u64::from(u32::MAX)).unwrap_or(0);
    RanInstead {
        thread,
        by,
        pid: low(pid_priority),
        name,
        real_time: low(pid_priority >> 32),
        own_real_time: low(core_priority >> 32),
        core: low(core_priority),
        ns,
        count,
    }
}
