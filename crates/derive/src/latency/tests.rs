//! Latency of a test from readings of the kernel: since when, stage by stage, and whose fault it is.

use super::{LatencyTrack, Stage, TestLatency, UnknownLatency};
use crate::TestMetrics;
use crate::cores::Shares;
use crate::flow::{Connection, Speaks, UdpFigures};
use crate::placement::tests::machine::Machine;
use std::net::SocketAddr;
use std::sync::Arc;
use vnettop_sample::{
    DropFlow, FlowPath, Hop, HopBy, HopWay, Ifindex, KernelCounts, Latencies, LatencyOf, LatencyRow, LinkKey,
    PathPoint, PointKind, Proto, Sample, ThreadId, WaitedFor,
};

const SECOND: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;
const READER: ThreadId = ThreadId { pid: 7, tid: 7, start: 7 };
const SENDER: ThreadId = ThreadId { pid: 6, tid: 6, start: 7 };
const NEAR: LinkKey = LinkKey { netns: 11, ifindex: Ifindex(2) };
const FAR: LinkKey = LinkKey { netns: 12, ifindex: Ifindex(3) };

fn at(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

fn flow() -> DropFlow {
    DropFlow { proto: Proto::Udp, from: at("10.0.0.1:40000"), to: at("10.0.0.2:5201") }
}

fn point(link: Option<LinkKey>, what: PointKind) -> PathPoint {
    PathPoint { link, what }
}

/// A UDP test from core 0 to core 1 over one veth pair.
fn test() -> TestMetrics {
    let thread = |machine: Machine, id: ThreadId, core| machine.thread_with(id.pid, id.tid, core, |_| {});
    let mut metrics = thread(thread(Machine::small(2), SENDER, 0), READER, 1).metrics();
    let hop = |link, way, by| Hop { link, way, by };
    let path = FlowPath {
        netns: NEAR.netns,
        proto: Proto::Udp,
        from: flow().from,
        to: flow().to,
        hops: vec![hop(NEAR, HopWay::Sent, HopBy::Route), hop(FAR, HopWay::Received, HopBy::Peer)],
        gap: None,
        note: None,
        ends: None,
        outside: None,
        silent: None,
        neighbours: Vec::new(),
        carriers: Vec::new(),
    };
    metrics.paths = Arc::new(vec![path]);
    let mut connection =
        Connection { speaks: Speaks::Udp(UdpFigures::default()), carries: true, ..Connection::default() };
    (connection.from.address, connection.to.address) = (flow().from, flow().to);
    metrics.flow.connections = vec![connection];
    metrics
}

/// So many times of this length.
fn row(of: LatencyOf, ns: u64, count: u64) -> LatencyRow {
    let bucket = (0..112)
        .find(|bucket| (vnettop_sample::bucket_ns(*bucket).0..vnettop_sample::bucket_ns(*bucket).1).contains(&ns));
    let bucket = u8::try_from(bucket.expect("it has a bucket")).expect("few buckets");
    LatencyRow { of, max_ns: ns, buckets: vec![(bucket, count, count * ns)] }
}

fn packets(from: PathPoint, to: PathPoint, ns: u64, count: u64) -> LatencyRow {
    row(LatencyOf::Packets { flow: flow(), from, to }, ns, count)
}

fn hop(ns: u64, count: u64) -> LatencyRow {
    packets(point(Some(NEAR), PointKind::Sent), point(Some(FAR), PointKind::Received), ns, count)
}

fn read(ns: u64, count: u64) -> LatencyRow {
    packets(point(Some(FAR), PointKind::Received), point(None, PointKind::Read), ns, count)
}

fn waits(thread: ThreadId, ns: u64, count: u64) -> LatencyRow {
    row(LatencyOf::Wakeup { thread }, ns, count)
}

fn sample(at_ns: u64, rows: Vec<LatencyRow>, waited_for: Vec<WaitedFor>) -> Sample {
    let latency = Latencies {
        at_ns,
        threads_for_ns: at_ns,
        packets_for_ns: at_ns / 2,
        is_looking: true,
        left_out: 0,
        tells_reads: true,
        rows,
        waited_for,
    };
    let kernel = KernelCounts { latency: Some(latency), ..KernelCounts::default() };
    Sample { at_ns, kernel: Some(Arc::new(kernel)), ..Sample::default() }
}

fn for_whom(by: u32, name: &str, real_time: u32, own_real_time: u32) -> WaitedFor {
    let name = Arc::from(name);
    WaitedFor { thread: READER, by, pid: by, name, real_time, own_real_time, core: 1, ns: 20 * MS, count: 1 }
}

/// What is derived of two readings a second apart.
fn derived(metrics: &TestMetrics, rows: Vec<LatencyRow>, waited_for: Vec<WaitedFor>) -> Arc<TestLatency> {
    let mut track = LatencyTrack::default();
    track.observe(&sample(SECOND, Vec::new(), Vec::new()), metrics.latency_ground());
    track.observe(&sample(2 * SECOND, rows, waited_for), metrics.latency_ground()).expect("it is looked at")
}

fn cause(metrics: &TestMetrics, rows: Vec<LatencyRow>, waited_for: Vec<WaitedFor>) -> String {
    derived(metrics, rows, waited_for).cause.as_ref().map_or_else(String::new, |cause| cause.text.clone())
}

#[test]
fn the_last_second_is_told_apart_from_all_before() {
    let metrics = test();
    let mut track = LatencyTrack::default();
    let ground = metrics.latency_ground();
    assert!(track.observe(&Sample::default(), ground).is_none(), "nobody looks");
    track.observe(&sample(SECOND, vec![hop(2_000, 10)], Vec::new()), ground);
    let latency = track.observe(&sample(2 * SECOND, vec![hop(2_000, 110)], Vec::new()), ground).expect("looked at");
    assert_eq!(latency.packets_looked, Some(0.5));
    let (from, to) = (point(Some(NEAR), PointKind::Sent), point(Some(FAR), PointKind::Received));
    let stage = latency.stage(Stage::Hop { from, to }).expect("it was passed");
    assert_eq!((stage.now.expect("now").count, stage.so_far.count()), (100, 110));
    let idle = track.observe(&sample(3 * SECOND, vec![hop(2_000, 110)], Vec::new()), ground).expect("looked at");
    assert_eq!(idle.stage(Stage::Hop { from, to }).expect("it was passed").now, None, "nothing came in that second");
    let anew = track.observe(&sample(4 * SECOND, vec![hop(2_000, 5)], Vec::new()), ground).expect("looked at");
    assert_eq!(anew.stage(Stage::Hop { from, to }).expect("it was passed").so_far.count(), 5, "counted anew");
}

#[test]
fn waits_of_a_thread_before_the_test_are_not_the_tests() {
    let metrics = test();
    let mut track = LatencyTrack::default();
    track.observe(&sample(SECOND, vec![waits(READER, 20 * MS, 50)], Vec::new()), metrics.latency_ground());
    let now = sample(2 * SECOND, vec![waits(READER, 20 * MS, 52)], Vec::new());
    let latency = track.observe(&now, metrics.latency_ground()).expect("looked at");
    assert_eq!(latency.stage(Stage::Wakeup(READER)).expect("it waited").so_far.count(), 2);
}

#[test]
fn a_wait_in_the_socket_is_told_at_its_cause() {
    let metrics = test();
    let gaps = || row(LatencyOf::ReadGap { thread: READER }, MS, 1_000);
    let rows = || vec![hop(2_000, 1_000), read(18 * MS, 1_000), waits(READER, 20 * MS, 40), gaps()];
    let text = cause(&metrics, rows(), vec![for_whom(99, "hog", 50, 0)]);
    assert_eq!(
        text,
        "packets wait 18 ms in the receiver's socket: hog 99 (real-time, priority 50) keeps the reader iperf3 7 off core 1 \
         for up to 20 ms"
    );
    let text = cause(&metrics, rows(), vec![for_whom(99, "rustc", 0, 0)]);
    assert!(text.ends_with("rustc 99 keeps the reader iperf3 7 off core 1 for up to 20 ms"), "{text}");
    let text = cause(&metrics, rows(), vec![for_whom(99, "rustc", 0, 10)]);
    assert!(text.contains("it is real-time, and throttled (rt_runtime_us)"), "{text}");
    let text = cause(&metrics, rows(), vec![for_whom(0, "swapper/1", 0, 0)]);
    assert!(text.ends_with("though core 1 is idle"), "{text}");
    // The reader does not wait: it does not read.
    let text = cause(&metrics, vec![hop(2_000, 1_000), read(18 * MS, 1_000)], Vec::new());
    assert!(text.ends_with("in the receiver's socket: its reader is slow"), "{text}");
    let long = || row(LatencyOf::ReadGap { thread: READER }, 60 * MS, 16);
    let text = cause(&metrics, vec![hop(2_000, 1_000), read(18 * MS, 1_000), long()], Vec::new());
    assert!(text.ends_with("the reader iperf3 7 stopped reading for up to 60 ms"), "its waits are not known: {text}");
    let free = waits(READER, 20_000, 100);
    let text = cause(&metrics, vec![hop(2_000, 1_000), read(18 * MS, 1_000), long(), free], Vec::new());
    assert!(text.ends_with("stopped reading for up to 60 ms, not for want of a core"), "{text}");
    assert_eq!(cause(&metrics, vec![hop(2_000, 1_000), read(50_000, 1_000)], Vec::new()), "", "nothing takes long");
}

#[test]
fn a_stolen_core_and_a_used_up_quota_are_told_apart() {
    let rows = || vec![read(18 * MS, 1_000), waits(READER, 20 * MS, 40)];
    let mut stolen = test();
    let load = stolen.machine_mut().cores[1].load.as_mut().expect("it is online");
    load.shares = Some(Shares { steal: 0.3, idle: 0.7, ..Shares::default() });
    let text = cause(&stolen, rows(), vec![for_whom(99, "rustc", 0, 0)]);
    assert!(text.ends_with("for core 1, of which the hypervisor takes 30 % (steal)"), "{text}");
    let quota = |throttled| {
        let mut metrics = test();
        let quota = vnettop_sample::Quota { quota_us: 20_000, period_us: 100_000, periods: 100, throttled };
        metrics.threads_mut().iter_mut().for_each(|thread| thread.sample.quota = Some(quota));
        metrics
    };
    let (before, after) = (quota(10), quota(19));
    let mut track = LatencyTrack::default();
    track.observe(&sample(SECOND, Vec::new(), Vec::new()), before.latency_ground());
    let now = sample(2 * SECOND, rows(), vec![for_whom(0, "swapper/1", 0, 0)]);
    let latency = track.observe(&now, after.latency_ground()).expect("looked at");
    let text = &latency.cause.as_ref().expect("it waits").text;
    assert!(
        text.ends_with("is stopped for up to 20 ms: the CPU quota of its cgroup (20 % of a core) is used up"),
        "{text}"
    );
    let remedy = latency.cause.as_ref().and_then(|cause| cause.remedy.as_deref());
    assert_eq!(remedy, Some("raise that quota: cpu.max (cgroup v1: cpu.cfs_quota_us)"));
}

#[test]
fn a_softirq_that_starts_late_explains_the_hop_before_it() {
    let metrics = test();
    let late = |ns| row(LatencyOf::Softirq { flow: flow(), core: 1 }, ns, 100);
    let text = cause(&metrics, vec![hop(5 * MS, 1_000), late(4 * MS)], Vec::new());
    assert_eq!(text, "receive softirqs start 4 ms late on core 1");
    let text = cause(&metrics, vec![hop(5 * MS, 1_000), late(2_000)], Vec::new());
    assert!(text.starts_with("packets take 5 ms from "), "{text}");
}

#[test]
fn what_cannot_be_measured_is_said() {
    let metrics = test();
    assert_eq!(derived(&metrics, Vec::new(), Vec::new()).unknown, [UnknownLatency::NoPacket]);
    let alike = row(LatencyOf::Alike { flow: flow() }, MS, 200);
    assert_eq!(derived(&metrics, vec![hop(2_000, 1_000), alike], Vec::new()).unknown, [UnknownLatency::Alike]);
    let mut nowhere = test();
    nowhere.paths = Arc::default();
    let unknown = &derived(&nowhere, Vec::new(), Vec::new()).unknown;
    assert_eq!(unknown[..], [UnknownLatency::NoPath, UnknownLatency::NoPacket]);
}

#[test]
fn a_step_that_skips_a_point_is_none() {
    let metrics = test();
    let skipped = packets(point(Some(NEAR), PointKind::Sent), point(None, PointKind::Read), 3_000, 4);
    let elsewhere = point(Some(LinkKey { netns: 13, ..FAR }), PointKind::Received);
    let few = packets(point(Some(NEAR), PointKind::Sent), elsewhere, 3_000, 4);
    let latency = derived(&metrics, vec![hop(2_000, 1_000), few, skipped], Vec::new());
    let hops = latency.stages.iter().filter(|one| matches!(one.key.stage, Stage::Hop { .. }));
    assert_eq!(hops.count(), 1);
}

#[test]
fn what_was_measured_is_remembered_for_a_minute_and_says_so() {
    let metrics = test();
    let mut track = LatencyTrack::default();
    let ground = metrics.latency_ground();
    track.observe(&sample(SECOND, Vec::new(), Vec::new()), ground);
    let now = track.observe(&sample(2 * SECOND, vec![hop(5 * MS, 100)], Vec::new()), ground).expect("looked at");
    assert_eq!(now.measured_ago_s, None);
    let nobody_looks = |at_s: u64| Sample { at_ns: at_s * SECOND, ..Sample::default() };
    let later = track.observe(&nobody_looks(12), ground).expect("it is remembered");
    assert_eq!((later.measured_ago_s, &later.cause), (Some(10.0), &now.cause));
    assert!(track.observe(&nobody_looks(63), ground).is_none(), "it is too long ago");
}

#[test]
fn of_many_packets_the_figures_are_of_the_last_look() {
    let metrics = test();
    let mut track = LatencyTrack::default();
    // Looked at for 0.2 s of every four seconds.
    let at = |second: u64, looked_ms: u64, packets: u64| {
        let mut sample = sample(second * SECOND, vec![hop(2_000, packets)], Vec::new());
        let kernel = Arc::make_mut(sample.kernel.as_mut().expect("it is there"));
        kernel.latency.as_mut().expect("it is there").packets_for_ns = looked_ms * MS;
        sample
    };
    let mut latency = None;
    for (second, looked_ms, packets) in [(1, 0, 1), (2, 200, 100), (3, 200, 100), (4, 200, 100)] {
        latency = track.observe(&at(second, looked_ms, packets), metrics.latency_ground());
    }
    let latency = latency.expect("looked at");
    let (from, to) = (point(Some(NEAR), PointKind::Sent), point(Some(FAR), PointKind::Received));
    let stage = latency.stage(Stage::Hop { from, to }).and_then(|one| one.now).expect("the last look had some");
    assert_eq!((stage.count, latency.over_s), (99, 3.0));
}
