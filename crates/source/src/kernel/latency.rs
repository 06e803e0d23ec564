//! How long the packets of the paths, the softirqs that receive them and the watched threads wait: asked for while somebody looks.
//! Packets are looked at for so much of each second that what that costs stays small.

use super::hop_cores::{carried, key};
use super::sites::named;
use crate::bpf::hops::HopKey;
use crate::bpf::latency::{
    FlowPoints, LatencyRequest, LatencyTables, QUEUED, READ, RECEIVED, RanInstead, SENT, WaitCount, WaitOf,
};
use crate::bpf::{MorePackets, Order, PacketLook, Programs};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use vnettop_sample::{
    Duty, FlowPath, HopWay, Ifindex, Latencies, LatencyOf, LatencyRow, LinkKey, OnRequest, PathPoint, PointKind, Proto,
    ThreadId, ThreadSample, WaitedFor,
};

/// How often packets are looked at anew, ns: on each tick of a second.
const EVERY_NS: u64 = 900_000_000;
/// How long at first, before it is known how many there are, and where nobody has asked for more.
const FIRST_LOOK: Duration = Duration::from_millis(100);
/// How often programs may run for packets, reads and softirqs a second: each takes some 0.3 us of the core that it runs on.
const MOST_A_SECOND: u64 = 8_000;
/// Packets that take half of it are seen at both ends: where there are many, the looks are fewer, not shorter, and each costs some
/// 2 ms of a core for switching the programs on and off.
const SHORTEST_LOOK: Duration = Duration::from_millis(300);
/// The same where looks that are as seldom as may be would be too many.
const SHORTEST_OF_A_FLOOD: Duration = Duration::from_millis(150);
/// A tick may come so much early, ns.
const SLACK_NS: u64 = 100_000_000;
/// From one look to the next at most, s.
const SELDOM: u32 = 8;
/// A look that takes most of a second need not end.
const WHOLE: Duration = Duration::from_millis(800);
/// Of those that a thread waited for, so many are named.
const MOST_NAMED: usize = 6;
/// Flows that are looked at at most.
const MOST_PATHS: usize = 64;

/// What is looked at, and when it is asked for next.
#[derive(Default)]
pub(super) struct LatencyReader {
    tables: Option<Box<LatencyTables>>,
    is_asked: bool,
    /// For a moment of each second, threads too.
    is_glance: bool,
    asked_at_ns: u64,
    /// How often programs ran for packets, and for how long they were looked at, as of the last look.
    counted: (u64, u64),
    look: Option<Duration>,
    /// From the beginning of that look to the next one, ns.
    every_ns: u64,
    /// What the paths have: a qdisc that packets wait in, datagrams.
    more: MorePackets,
    threads: BTreeMap<u32, ThreadId>,
    /// What was read last.
    pub now: Option<Latencies>,
}

/// What a tick knows of the paths.
#[derive(Clone, Copy)]
pub struct OnThePath<'a> {
    /// The paths.
    pub paths: &'a [FlowPath],
    /// The watched threads.
    pub threads: &'a [ThreadSample],
    /// Links whose root qdisc queues packets.
    pub queueing: &'a [LinkKey],
}

impl LatencyReader {
    /// Has the waits looked at while that is `wanted`, all the time or at a glance, and reads what was counted.
    pub fn follow(&mut self, programs: &Programs, wanted: OnRequest, on: OnThePath<'_>, now_ns: u64) {
        if !(wanted.latency || wanted.latency_glance) {
            if std::mem::take(&mut self.is_asked) {
                programs.order(Order::NoLatency);
            }
            self.now = None;
            return;
        }
        let datagrams = on.paths.iter().any(|path| path.proto == Proto::Udp);
        self.more = MorePackets { queues: !on.queueing.is_empty(), datagrams };
        let was_glance = std::mem::replace(&mut self.is_glance, !wanted.latency);
        if !self.is_asked || was_glance != self.is_glance {
            (self.is_asked, self.asked_at_ns, self.look) = (true, now_ns, Some(FIRST_LOOK));
            programs.order(self.order());
        }
        let Some(tables) = &mut self.tables else { return };
        self.threads = watched(on.threads);
        let request = LatencyRequest { flows: flows(&on), threads: self.threads.keys().copied().collect() };
        tables.ask(&request);
        let left_out = tables.left_out + on.paths.len().saturating_sub(MOST_PATHS);
        let waits = tables.read();
        let (packets_ns, is_looking) = tables.looked_at.until(now_ns);
        let runs = tables.runs();
        let row = |count| row(count, &self.threads);
        let mut rows: Vec<LatencyRow> = waits.into_iter().filter_map(row).collect();
        rows.sort_by(|one, other| one.of.cmp(&other.of));
        let rows = merged(rows);
        let waited_for = longest(tables.ran_instead().into_iter().filter_map(|one| ran(one, &self.threads)).collect());
        self.now = Some(Latencies {
            at_ns: now_ns,
            threads_for_ns: tables.threads_at.until(now_ns).0,
            packets_for_ns: packets_ns,
            is_looking,
            left_out: u32::try_from(left_out).unwrap_or(u32::MAX),
            tells_reads: tables.tells_reads,
            rows,
            waited_for,
        });
        if now_ns.saturating_sub(self.asked_at_ns) >= self.every_ns.max(EVERY_NS) {
            self.asked_at_ns = now_ns;
            let look = self.next_look(runs, packets_ns);
            // One that need not end goes on.
            if look.is_some() || self.look.is_some() {
                self.look = look;
                programs.order(self.order());
            }
        }
    }

    fn order(&self) -> Order {
        Order::Latency(PacketLook { packets_for: self.look, more: self.more, threads_too: self.is_glance })
    }

    /// How long the next look takes; none where it need not end.
    fn next_look(&mut self, runs: u64, packets_ns: u64) -> Option<Duration> {
        let (runs_before, ns_before) = std::mem::replace(&mut self.counted, (runs, packets_ns));
        let (runs, ns) = (runs.saturating_sub(runs_before), packets_ns.saturating_sub(ns_before));
        if ns == 0 || self.is_glance {
            self.every_ns = EVERY_NS;
            return Some(FIRST_LOOK);
        }
        let a_second = runs.saturating_mul(1_000_000_000) / ns;
        let look = Duration::from_micros(1_000_000 * MOST_A_SECOND / a_second.max(1));
        let most = look.saturating_mul(SELDOM).clamp(SHORTEST_OF_A_FLOOD, SHORTEST_LOOK);
        let longer = look.max(most);
        // As much of the time, whatever the length.
        let seldom = 1_000_000_000.0 * longer.as_secs_f64() / look.as_secs_f64().max(1e-6);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some seconds")]
        let every_ns = (seldom as u64).saturating_sub(SLACK_NS);
        self.every_ns = every_ns.clamp(EVERY_NS, u64::from(SELDOM) * 1_000_000_000);
        (longer < WHOLE).then_some(longer)
    }

    /// The tables are there.
    pub fn take(&mut self, tables: Box<LatencyTables>) {
        self.tables = Some(tables);
    }
}

/// Threads that carry traffic, by tid.
fn watched(threads: &[ThreadSample]) -> BTreeMap<u32, ThreadId> {
    let carries = |thread: &&ThreadSample| matches!(thread.duty, Duty::Worker | Duty::Carrier);
    threads.iter().filter(carries).map(|thread| (thread.id.tid, thread.id)).collect()
}

/// The paths' points, a test's busy flows first as they are.
fn flows(on: &OnThePath<'_>) -> Vec<FlowPoints> {
    let one = |path: &FlowPath| {
        let flow = key(path.proto, path.from, path.to);
        let mut points: Vec<HopKey> = path.hops.iter().flat_map(|hop| points(hop.link, hop.way, on.queueing)).collect();
        if path.gap.is_none() {
            points.push([0, 0, READ]);
        }
        let reader_netns = path.receiver_netns().and_then(|netns| u32::try_from(netns).ok());
        (!points.is_empty()).then(|| FlowPoints { flow, carried: carried(path), points, reader_netns })
    };
    on.paths.iter().filter_map(one).take(MOST_PATHS).collect()
}

fn points(link: LinkKey, way: HopWay, queueing: &[LinkKey]) -> impl Iterator<Item = HopKey> {
    let of = |what: u32| Some([u32::try_from(link.netns).ok()?, link.ifindex.kernel()?, what]);
    let kinds = match way {
        HopWay::Sent => [queueing.contains(&link).then_some(QUEUED), Some(SENT)],
        HopWay::Received => [Some(RECEIVED), None],
        HopWay::Passed => [None, None],
    };
    kinds.into_iter().flatten().filter_map(of).collect::<Vec<_>>().into_iter()
}

fn point([netns, ifindex, what]: HopKey) -> PathPoint {
    let link = (what != READ).then_some(LinkKey { netns: u64::from(netns), ifindex: Ifindex(ifindex) });
    let what = match what {
        QUEUED => PointKind::Queued,
        SENT => PointKind::Sent,
        READ => PointKind::Read,
        _ => PointKind::Received,
    };
    PathPoint { link, what }
}

fn row(count: WaitCount, threads: &BTreeMap<u32, ThreadId>) -> Option<LatencyRow> {
    let thread = |tid: u32| threads.get(&tid).copied();
    let of = match count.of {
        WaitOf::Packets(flow, from, to) => LatencyOf::Packets { flow: named(flow), from: point(from), to: point(to) },
        WaitOf::Softirq(flow, core) => LatencyOf::Softirq { flow: named(flow), core },
        WaitOf::Wakeup(tid) => LatencyOf::Wakeup { thread: thread(tid)? },
        WaitOf::ReadGap(tid) => LatencyOf::ReadGap { thread: thread(tid)? },
        WaitOf::SendGap(tid) => LatencyOf::SendGap { thread: thread(tid)? },
        WaitOf::ArrivalGap(flow) => LatencyOf::ArrivalGap { flow: named(flow) },
        WaitOf::Alike(flow) => LatencyOf::Alike { flow: named(flow) },
        WaitOf::Whole(flow) => LatencyOf::Whole { flow: named(flow) },
        WaitOf::Answer(tid) => LatencyOf::Answer { thread: thread(tid)? },
    };
    Some(LatencyRow { of, max_ns: count.max_ns, buckets: count.buckets })
}

/// Rows of the same thing, which a flow has whose path has changed, are one.
fn merged(rows: Vec<LatencyRow>) -> Vec<LatencyRow> {
    let mut merged: Vec<LatencyRow> = Vec::with_capacity(rows.len());
    for row in rows {
        match merged.last_mut().filter(|last| last.of == row.of) {
            Some(last) => {
                last.max_ns = last.max_ns.max(row.max_ns);
                let mut buckets: BTreeMap<u8, (u64, u64)> =
                    last.buckets.iter().map(|&(bucket, count, sum_ns)| (bucket, (count, sum_ns))).collect();
                for (bucket, count, sum_ns) in row.buckets {
                    let both = buckets.entry(bucket).or_default();
                    *both = (both.0.saturating_add(count), both.1.saturating_add(sum_ns));
                }
                last.buckets = buckets.into_iter().map(|(bucket, (count, sum_ns))| (bucket, count, sum_ns)).collect();
            }
            None => merged.push(row),
        }
    }
    merged
}

/// Of each thread those that it waited for longest, sorted.
fn longest(mut all: Vec<WaitedFor>) -> Vec<WaitedFor> {
    all.sort_by(|one, other| (one.thread, other.ns).cmp(&(other.thread, one.ns)));
    let mut kept: Vec<WaitedFor> = Vec::new();
    for one in all {
        if kept.iter().rev().take_while(|other| other.thread == one.thread).count() < MOST_NAMED {
            kept.push(one);
        }
    }
    kept.sort_by_key(|one| (one.thread, one.by));
    kept
}

fn ran(one: RanInstead, threads: &BTreeMap<u32, ThreadId>) -> Option<WaitedFor> {
    let RanInstead { thread, by, pid, name, real_time, own_real_time, core, ns, count } = one;
    // Its threads have names of their own.
    let name = if pid == std::process::id() { "vnettop" } else { name.as_str() };
    let (thread, name) = (*threads.get(&thread)?, Arc::from(name));
    Some(WaitedFor { thread, by, pid, name, real_time, own_real_time, core, ns, count })
}
