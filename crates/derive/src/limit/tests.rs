//! The table of cases: what is seen, and what of it holds the test back.

use super::judge::judge;
use super::scene::{Core, HoldingQdisc, QuotaUse, RealSpeed, Scene, Tcp, Thread};
use super::{Limit, LimitKind};
use crate::flow::BusyShares;
use crate::{Loss, LossPlace};
use vnettop_sample::{Congestion, CoreSet, Proto, Runner};

mod edges;

const SENDER: u32 = 50;
const RECEIVER: u32 = 90;

/// A core of which so much is used by processes and by softirqs.
fn core(core: u32, process: f64, softirq: f64) -> Core {
    Core { number: core, process, softirq, steal: 0.0, idle: (1.0 - process - softirq).max(0.0) }
}

fn thread(pid: u32, core: u32, cpu: f64, wait: f64) -> Thread {
    let role = if pid == SENDER { "client" } else { "server" };
    Thread {
        pid,
        tid: pid,
        label: format!("iperf3 {role}"),
        cores: vec![(core, cpu)],
        cpu,
        moved: false,
        wait,
        sends: pid == SENDER,
        receives: pid == RECEIVER,
    }
}

fn runner(pid: u32, name: &str, core: u32, share: f64) -> Runner {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share")]
    let (cpu_ns, over_ns) = ((share * 1e9) as u64, 1_000_000_000);
    Runner { pid, tid: pid, name: name.to_owned(), core, cpu_ns, over_ns, kernel: None }
}

#[allow(clippy::unnecessary_wraps, reason = "what is known in a scene")]
pub(super) fn busy(all: f64, rwnd: f64, sndbuf: f64) -> Option<BusyShares> {
    Some(BusyShares { all, rwnd, sndbuf })
}

/// A TCP test at 10 Gbit/s of which nothing is full: the sender on core 0, the receiver on core 1.
fn tcp() -> Scene {
    Scene {
        seconds: 1.0,
        cores: vec![core(0, 0.4, 0.2), core(1, 0.5, 0.0), core(2, 0.0, 0.0)],
        threads: vec![thread(SENDER, 0, 0.5, 0.0), thread(RECEIVER, 1, 0.5, 0.0)],
        proto: Some(Proto::Tcp),
        rate_bits_per_s: Some(10e9),
        sender: Some("iperf3".to_owned()),
        tcp: Some(Tcp {
            busy: busy(1.0, 0.0, 0.0),
            app_limited: Some(0.0),
            under_way: Some(0.4),
            cwnd_bytes: Some(140e3),
            rtt_us: Some(20_000.0),
            congestion: Some(Congestion::new(b"cubic")),
            ..Tcp::default()
        }),
        ..Scene::default()
    }
}

/// A scene of UDP, else as of [`tcp`].
fn udp() -> Scene {
    Scene { proto: Some(Proto::Udp), rate_bits_per_s: Some(100e6), tcp: None, ..tcp() }
}

fn lost(place: LossPlace, share: Option<f64>) -> Loss {
    Loss { place, packets: 500.0, share, ..Loss::default() }
}

pub(super) fn with_tcp(change: impl FnOnce(&mut Tcp)) -> Scene {
    let mut scene = tcp();
    change(scene.tcp.as_mut().expect("it has one"));
    scene
}

fn is(what: &str, scene: &Scene, kind: LimitKind, text: &str) -> Limit {
    let limit = judge(scene);
    assert_eq!((limit.kind, limit.text.as_str()), (kind, text), "{what}");
    assert!(limit.text.chars().count() <= 100, "{what}: it is one line: {}", limit.text);
    limit
}

#[test]
fn a_full_core_is_named_with_whose_work_fills_it() {
    let full = |cores, threads| Scene { cores, threads, ..tcp() };
    let sender = full(vec![core(0, 0.8, 0.2), core(1, 0.5, 0.0)], vec![thread(SENDER, 0, 0.98, 0.01)]);
    let text = "core 0 is 100 % busy: 100 % iperf3 client (20 % in test softirqs)";
    let limit = is("the sender's", &sender, LimitKind::OwnThread, text);
    assert_eq!((limit.core, limit.pid, limit.name.as_deref()), (Some(0), Some(SENDER), Some("iperf3 client")));
    assert_eq!(limit.tid, Some(SENDER), "the thread itself");
    let softirq = full(vec![core(0, 0.3, 0.7)], vec![thread(SENDER, 0, 0.95, 0.01)]);
    let text = "core 0 is 100 % busy: 100 % iperf3 client (70 % in test softirqs)";
    is("mostly softirqs, which the thread's time has in it", &softirq, LimitKind::OwnSoftirq, text);
    let rps = Scene {
        handling: CoreSet::single(2),
        cores: vec![core(0, 0.4, 0.1), core(1, 0.5, 0.0), core(2, 0.02, 0.97)],
        ..tcp()
    };
    is(
        "of RPS, where no thread is",
        &rps,
        LimitKind::OwnSoftirq,
        "core 2 is 99 % busy: 97 % test softirqs, 2 % others",
    );
    let nobodys = Scene { handling: CoreSet::new(), ..rps };
    assert_eq!(judge(&nobodys).kind, LimitKind::Nothing, "a core that no way of the test leads to");
    let both = full(vec![core(0, 1.0, 0.0)], vec![thread(SENDER, 0, 0.55, 0.2), thread(RECEIVER, 0, 0.44, 0.3)]);
    let text = "core 0 is 100 % busy: 55 % iperf3 client, 44 % iperf3 server, 1 % others";
    is("both ends on one", &both, LimitKind::OwnThread, text);
    let restless = Thread { cores: vec![(0, 0.5), (1, 0.46)], ..thread(SENDER, 0, 0.96, 0.01) };
    let moves = full(vec![core(0, 0.6, 0.0), core(1, 0.6, 0.0)], vec![restless]);
    let text = "iperf3 client (tid 50) fills one core at a time: 96 %";
    is("a thread that moves", &moves, LimitKind::OwnThread, text);
    let capped = Scene { clock_khz: Some((1.2e6, 3e6)), ..sender };
    let text = "core 0 is 100 % busy at 1.2 of 3.0 GHz: 100 % iperf3 client (20 % in test softirqs)";
    is("a clock that is held down", &capped, LimitKind::Frequency, text);
}

#[test]
fn the_slower_end_is_named_where_both_are_full() {
    let both = Scene {
        cores: vec![core(0, 0.98, 0.0), core(1, 0.96, 0.0)],
        threads: vec![thread(SENDER, 0, 0.98, 0.0), thread(RECEIVER, 1, 0.96, 0.0)],
        ..tcp()
    };
    is("the sender", &both, LimitKind::OwnThread, "core 0 is 98 % busy: 98 % iperf3 client");
    // A receiver that is slow lets a large window fill.
    let slow = with_tcp(|tcp| (tcp.busy, tcp.cwnd_bytes, tcp.under_way) = (busy(1.0, 0.9, 0.0), Some(3e6), Some(0.5)));
    let behind = Scene { tcp: slow.tcp, ..both };
    let text = "core 1 is 96 % busy: 96 % iperf3 server";
    is("not its window, but the receiver that leaves it full", &behind, LimitKind::OwnThread, text);
}

#[test]
fn others_are_named_where_a_thread_of_the_test_waits_for_them() {
    let beside = |share: f64, wait: f64| Scene {
        cores: vec![core(0, 1.0, 0.0), core(1, 0.5, 0.0)],
        threads: vec![thread(SENDER, 0, 1.0 - share, wait), thread(RECEIVER, 1, 0.4, 0.0)],
        runners: vec![runner(7, "sh", 0, 0.5), runner(8, "rustc", 1, 0.5), runner(SENDER, "iperf3", 0, 0.5)],
        ..tcp()
    };
    let text = "core 0 is 100 % busy: 50 % sh (pid 7), 50 % iperf3 client";
    let limit = is("a spinner", &beside(0.5, 0.49), LimitKind::Others, text);
    assert_eq!((limit.core, limit.pid, limit.name.as_deref()), (Some(0), Some(7), Some("sh")));
    let threads = Scene { runners: vec![runner(7, "sh", 0, 0.2), runner(7, "sh", 0, 0.3)], ..beside(0.5, 0.49) };
    is("two threads of it", &threads, LimitKind::Others, text);
    let unnamed = Scene { runners: Vec::new(), ..beside(0.5, 0.49) };
    let text = "core 0 is 100 % busy: 50 % others, 50 % iperf3 client";
    is("before they are looked at", &unnamed, LimitKind::Others, text);
    let asleep = beside(0.6, 0.02);
    let text = "nothing makes it wait: core 0 is 100 % busy, its threads wait 2 %";
    is("at a lower priority it only fills what is left", &asleep, LimitKind::Nothing, text);
    let most =
        Scene { threads: vec![thread(SENDER, 0, 0.6, 0.02), thread(RECEIVER, 1, 0.4, 0.0)], ..beside(0.4, 0.02) };
    assert_eq!(judge(&most).kind, LimitKind::Nothing, "nor where the test has more than half of the core");
    let late =
        Scene { threads: vec![thread(SENDER, 0, 0.38, 0.4)], cores: vec![core(0, 1.0, 0.0)], ..beside(0.6, 0.4) };
    assert_eq!(judge(&late).kind, LimitKind::Others, "one that the other end gives less to do, because it is late");
    let little = Scene { threads: vec![thread(SENDER, 0, 0.02, 0.4)], ..late.clone() };
    assert_eq!(judge(&little).kind, LimitKind::Others, "nothing else is found, and nothing is not saturated there");
    let resting = Scene { tcp: with_tcp(|tcp| tcp.busy = busy(0.3, 0.0, 0.0)).tcp, ..little };
    assert_eq!(
        judge(&resting).kind,
        LimitKind::Application,
        "one that has little to do loses nothing by waiting for it"
    );
    let looked_at = vec![runner(7, "rustc", 0, 0.5), runner(8, "cc", 0, 0.37), runner(9, "ld", 0, 0.3)];
    let text = "core 0 is 100 % busy: 26 % rustc (pid 7), 20 % cc (pid 8), 38 % iperf3 client, 16 % others";
    let over = Scene { runners: looked_at, ..late };
    is("who is looked at over another time is not more than the core", &over, LimitKind::Others, text);
    let stolen = Core { steal: 0.4, ..core(0, 0.6, 0.0) };
    let stolen =
        Scene { cores: vec![Core { idle: 0.0, ..stolen }], threads: vec![thread(SENDER, 0, 0.6, 0.35)], ..tcp() };
    let text = "core 0 is 100 % busy: 40 % taken by the hypervisor, 60 % iperf3 client";
    is("the hypervisor", &stolen, LimitKind::Steal, text);
    let throttled = Scene { quota: Some(QuotaUse { cores: 0.2, throttled: 0.98 }), ..beside(0.5, 0.49) };
    let text = "CPU quota: the cgroup may use 20 % of a core; throttled in 98 % of periods";
    is("a quota goes before it", &throttled, LimitKind::Quota, text);
    let rare = Scene { quota: Some(QuotaUse { cores: 2.0, throttled: 0.05 }), ..tcp() };
    assert_eq!(judge(&rare).kind, LimitKind::Nothing, "one that is hardly ever used up");
}

#[test]
fn a_ceiling_that_is_reached_goes_before_all() {
    let asked = Scene { asked_bits_per_s: Some(300e6), rate_bits_per_s: Some(299e6), ..tcp() };
    let text = "application: iperf3 sends the 300 Mbit/s it was asked for";
    is("-b", &asked, LimitKind::Application, text);
    let full = Scene { cores: vec![core(0, 1.0, 0.0)], threads: vec![thread(SENDER, 0, 0.95, 0.0)], ..asked.clone() };
    is("however full its core", &full, LimitKind::Application, text);
    let less = Scene { rate_bits_per_s: Some(200e6), ..full };
    assert_eq!(judge(&less).kind, LimitKind::OwnThread, "where it is not reached, what keeps it from that");
    let paced = Scene { rate_bits_per_s: Some(96e6), ..with_tcp(|tcp| tcp.allowed_bits_per_s = Some(100e6)) };
    let text = "pacing: 96 Mbit/s of the 100 Mbit/s that SO_MAX_PACING_RATE allows";
    is("iperf3 --fq-rate", &paced, LimitKind::Pacing, text);
    let claim = Some(RealSpeed { name: "eth0".to_owned(), bits_per_s: 984e6, speed_bits_per_s: 1e9 });
    let text = "link speed: eth0 carries 984 Mbit/s of its 1 Gbit/s";
    is("a real speed", &Scene { claim: claim.clone(), ..tcp() }, LimitKind::Claim, text);
    let slow = Scene { claim: claim.map(|claim| RealSpeed { bits_per_s: 900e6, ..claim }), ..tcp() };
    assert_eq!(judge(&slow).kind, LimitKind::Nothing, "that is not reached");
}

#[test]
fn what_tcp_waits_for_is_told_by_itself() {
    let limited = |rwnd, sndbuf| with_tcp(|tcp| tcp.busy = busy(1.0, rwnd, sndbuf));
    let text = "receive window: full 92 % of the time, so the sender waits";
    is("a small window", &limited(0.92, 0.0), LimitKind::ReceiveWindow, text);
    let text = "send buffer: 78 % of the time full, and all of it in flight";
    is("a small buffer", &limited(0.1, 0.78), LimitKind::SendBuffer, text);
    let idle = with_tcp(|tcp| (tcp.busy, tcp.app_limited) = (busy(1.0, 0.0, 0.1), Some(1.0)));
    assert_eq!(judge(&idle).kind, LimitKind::SendBuffer, "a program that waits for a buffer has more to send");
    let under_way = with_tcp(|tcp| tcp.under_way = Some(0.98));
    let text = "congestion window (cubic): 140 kB in each 20.0 ms round trip";
    is("a small congestion window", &under_way, LimitKind::CongestionWindow, text);
    let again = with_tcp(|tcp| (tcp.under_way, tcp.retransmits_per_s) = (Some(0.98), 12.0));
    let text = "congestion window (cubic): 140 kB in each 20.0 ms round trip; 12 segments/s retransmitted";
    is("with what makes it small", &again, LimitKind::CongestionWindow, text);
    let bbr = Scene {
        rate_bits_per_s: Some(94e6),
        ..with_tcp(|tcp| (tcp.congestion, tcp.paced_bits_per_s) = (Some(Congestion::new(b"bbr")), Some(95e6)))
    };
    let text = "pacing: bbr sends at 95 Mbit/s, its estimate of the path's bandwidth";
    is("BBR", &bbr, LimitKind::Pacing, text);
    let rarely = with_tcp(|tcp| (tcp.busy, tcp.app_limited) = (busy(0.3, 0.0, 0.0), Some(1.0)));
    let text = "application: iperf3 gives TCP nothing to send 70 % of the time";
    is("a program that rests", &rarely, LimitKind::Application, text);
    let little = with_tcp(|tcp| tcp.app_limited = Some(1.0));
    let text = "application: iperf3 gives TCP less to send than the path could carry";
    is("one that sends a little, over a long way", &little, LimitKind::Application, text);
    let old = with_tcp(|tcp| (tcp.busy, tcp.app_limited, tcp.under_way) = (None, None, None));
    assert_eq!(judge(&old).kind, LimitKind::Nothing, "a kernel that does not tell");
}

#[test]
fn what_is_lost_is_told_with_its_place() {
    let buffer = lost(LossPlace::ReceiveBuffer, Some(0.12));
    let with = |losses_per_s: Vec<Loss>, scene| Scene { losses_per_s, ..scene };
    let text = "losses: 12 % of packets lost in the receiver's socket buffer";
    let asked = Scene { asked_bits_per_s: Some(100e6), ..udp() };
    let limit = is("a small buffer", &with(vec![buffer.clone()], asked.clone()), LimitKind::Loss, text);
    assert_eq!(limit.name.as_deref(), Some("receive_buffer"));
    let behind = Scene {
        cores: vec![core(0, 0.4, 0.2), core(1, 0.99, 0.0)],
        threads: vec![thread(SENDER, 0, 0.5, 0.0), thread(RECEIVER, 1, 0.98, 0.0)],
        ..with(vec![buffer], asked.clone())
    };
    let text = "core 1 is 99 % busy: 98 % iperf3 server, 1 % others; 12 % of packets lost";
    is("not the buffer, but who does not empty it", &behind, LimitKind::OwnThread, text);
    let unmissed = lost(LossPlace::ReceiveBuffer, Some(0.001));
    let text = "application: iperf3 sends the 100 Mbit/s it was asked for";
    is("one in a thousand", &with(vec![unmissed], asked), LimitKind::Application, text);
    let looked_at = "the counters of 2 namespaces".to_owned();
    let nowhere = Scene { missing: Some(0.12), looked_at, asked_bits_per_s: Some(100e6), ..udp() };
    let text = "losses: 12 % of datagrams do not arrive; where is not known from the counters of 2 namespaces";
    is("on another machine", &nowhere, LimitKind::Loss, text);
    let backlog = Loss { core: Some(2), ..lost(LossPlace::Backlog, None) };
    let full = Scene { handling: CoreSet::single(2), cores: vec![core(2, 0.0, 0.99)], ..with(vec![backlog], udp()) };
    let text = "core 2 is 99 % busy: 99 % test softirqs; 500 packets/s lost";
    is("a backlog whose core is full", &full, LimitKind::OwnSoftirq, text);
    let queue = Loss { name: Some("pfifo on v0".to_owned()), ..lost(LossPlace::Qdisc, None) };
    let text = "losses: 500 packets/s lost in the qdisc pfifo on v0";
    is("a queue, of TCP", &with(vec![queue.clone()], tcp()), LimitKind::Qdisc, text);
    // 1,448 bytes and 20 ms with one segment lost of 10,000: 71 Mbit/s.
    let few = Loss { share: Some(0.0001), ..queue.clone() };
    let over = |rtt_us| Scene {
        rate_bits_per_s: Some(60e6),
        ..with(vec![few.clone()], with_tcp(|tcp| (tcp.mss_bytes, tcp.rtt_us) = (Some(1448.0), Some(rtt_us))))
    };
    assert_eq!(judge(&over(20_000.0)).kind, LimitKind::Qdisc, "losses over a long way");
    assert_eq!(judge(&over(100.0)).kind, LimitKind::Nothing, "over a short one they cost nothing");
    let silent = Scene { rate_bits_per_s: Some(0.0), ..with(vec![few], tcp()) };
    let text = "losses: nothing arrives, though data is in flight";
    is("a link that was deleted", &silent, LimitKind::Loss, text);
    let stopped = Scene { rate_bits_per_s: Some(0.0), ..with_tcp(|tcp| tcp.busy = busy(1.0, 1.0, 0.0)) };
    assert_eq!(judge(&stopped).kind, LimitKind::ReceiveWindow, "a receiver that reads nothing");
    let shaper = HoldingQdisc {
        name: "tbf on v0".to_owned(),
        bits_per_s: 95e6,
        set_bits_per_s: Some(100e6),
        times: 1.1,
        waits: 0.9,
    };
    let text = "shaping: the qdisc tbf on v0 holds packets back at 95 of its 100 Mbit/s, 500 packets/s dropped";
    let dropping = Scene { held: vec![shaper.clone()], ..with(vec![queue], tcp()) };
    is("a shaper", &dropping, LimitKind::Qdisc, text);
    let text = "shaping: the qdisc tbf on v0 holds packets back at 95 of its 100 Mbit/s";
    let full = with_tcp(|tcp| tcp.busy = busy(1.0, 0.9, 0.0));
    is("what waits in it fills windows", &Scene { held: vec![shaper.clone()], ..full }, LimitKind::Qdisc, text);
    let burst = Scene { held: vec![HoldingQdisc { waits: 0.1, ..shaper }], ..tcp() };
    assert_eq!(judge(&burst).kind, LimitKind::Nothing, "one that is empty most of the time");
}

#[test]
fn one_that_nothing_holds_back_here_is_told_so() {
    is("both ends are here", &tcp(), LimitKind::Nothing, "nothing is saturated here (core 0 is 60 % busy)");
    let waits = Scene { waits: Some("packets wait".to_owned()), ..tcp() };
    is("latency", &waits, LimitKind::Nothing, "nothing is saturated here (core 0 is 60 % busy); packets wait");
    is("nothing is known", &Scene::default(), LimitKind::Nothing, "nothing is saturated here: look at the other end");
    is("all datagrams arrive", &udp(), LimitKind::Application, "application: iperf3 sends no more than 100 Mbit/s");
    let receives = Scene { sender: None, tcp: None, ..tcp() };
    let text = "nothing is saturated here (core 0 is 60 % busy): look at the other end";
    is("the sender is on another machine", &receives, LimitKind::Nothing, text);
}

#[test]
fn a_full_core_hides_neither_losses_nor_a_shaper_nor_a_small_window() {
    // A core that others fill, and for which both ends wait.
    let beside = |scene: Scene| Scene {
        cores: vec![core(0, 1.0, 0.0), core(1, 1.0, 0.0)],
        threads: vec![thread(SENDER, 0, 0.3, 0.65), thread(RECEIVER, 1, 0.3, 0.65)],
        runners: vec![runner(7, "sh", 0, 0.7), runner(8, "sh", 1, 0.7)],
        ..scene
    };
    assert_eq!(judge(&beside(tcp())).kind, LimitKind::Others, "where nothing else is");
    let rule = |share| Scene { losses_per_s: vec![lost(LossPlace::Firewall, Some(share))], ..tcp() };
    for (share, percents) in [(0.01, "1"), (0.03, "3"), (0.07, "7")] {
        let text = format!("losses: {percents} % of packets lost by a firewall rule");
        is("segments", &beside(rule(share)), LimitKind::Loss, &text);
    }
    let timeouts = Scene { rate_bits_per_s: Some(1e6), ..rule(0.07) };
    assert_eq!(judge(&timeouts).kind, LimitKind::Loss, "so few are left that timers rule, and no formula does");
    let few = judge(&beside(rule(0.0001)));
    assert_eq!(few.kind, LimitKind::Others, "one in ten thousand holds nothing back");
    let untold = Scene { sent_again: Some(0.07), ..tcp() };
    let text = "losses: 7 % of segments are sent again; where they are lost is not known";
    is("before anybody could tell where", &beside(untold), LimitKind::Loss, text);
    let swallowed = Scene { losses_per_s: vec![lost(LossPlace::Firewall, Some(1.0))], missing: Some(1.0), ..udp() };
    is("datagrams", &beside(swallowed), LimitKind::Loss, "losses: 100 % of packets lost by a firewall rule");
    let looked_at = "the counters of 2 namespaces".to_owned();
    let missing = Scene { missing: Some(0.2), looked_at, ..udp() };
    let text = "losses: 20 % of datagrams do not arrive; where is not known from the counters of 2 namespaces";
    is("nobody knows where", &beside(missing.clone()), LimitKind::Loss, text);
    let seen = Scene { losses_per_s: vec![lost(LossPlace::Firewall, Some(0.002))], ..missing };
    let text = "losses: 20 % of datagrams do not arrive; where most are lost is not known";
    is("but of a few", &beside(seen), LimitKind::Loss, text);
    let shaper =
        HoldingQdisc { name: "tbf on v0".to_owned(), bits_per_s: 95e6, set_bits_per_s: None, times: 1.1, waits: 0.9 };
    let held = Scene { held: vec![shaper], ..tcp() };
    assert_eq!(judge(&beside(held)).kind, LimitKind::Qdisc, "a shaper");
    let small = || with_tcp(|tcp| (tcp.busy, tcp.under_way) = (busy(0.66, 0.64, 0.0), Some(0.04)));
    let text = "receive window: full 64 % of the time, so the sender waits";
    is("eight kilobytes", &beside(small()), LimitKind::ReceiveWindow, text);
    let threads = vec![thread(SENDER, 0, 0.4, 0.2), thread(RECEIVER, 1, 0.65, 0.25)];
    let at_work =
        |receive_buffer_bytes| judge(&beside(Scene { threads: threads.clone(), receive_buffer_bytes, ..small() })).kind;
    assert_eq!(at_work(Some(8192.0)), LimitKind::ReceiveWindow, "whatever its reader does");
    let large = with_tcp(|tcp| (tcp.busy, tcp.cwnd_bytes) = (busy(1.0, 0.9, 0.0), Some(3e6)));
    assert_eq!(judge(&beside(large)).kind, LimitKind::Others, "a large one is full because its reader is late");
}

#[test]
fn a_neighbour_that_does_not_answer_is_named() {
    let silent = |ip: &str, rate| Scene {
        silent: Some(("v0".to_owned(), ip.parse().expect("an address"))),
        rate_bits_per_s: Some(rate),
        ..udp()
    };
    let text = "losses: neighbour 198.18.2.2 does not answer ARP on v0, so nothing is sent";
    let limit = is("UDP", &silent("198.18.2.2", 0.0), LimitKind::Loss, text);
    assert_eq!(limit.name.as_deref(), Some("neighbour"));
    let text = "losses: neighbour fd00::2 does not answer ND on v0, so nothing is sent";
    is("TCP", &Scene { tcp: tcp().tcp, proto: Some(Proto::Tcp), ..silent("fd00::2", 0.0) }, LimitKind::Loss, text);
    assert_eq!(judge(&silent("198.18.2.2", 1e6)).kind, LimitKind::Application, "one that was asked a moment ago");
    let given_up = lost(LossPlace::Neighbour, Some(0.15));
    let queued = Scene { losses_per_s: vec![given_up], ..silent("198.18.2.2", 1e6) };
    assert_eq!(judge(&queued).text, limit.text, "what was queued for it until it is given up");
    let waiting = Scene { waiting_bytes: Some(212e3), rate_bits_per_s: Some(0.0), ..udp() };
    let text = "send buffer: nothing gets out, 212 kB wait in the sender's socket";
    is("nobody knows why", &waiting, LimitKind::SendBuffer, text);
    let silence = Scene { rate_bits_per_s: Some(0.0), ..udp() };
    assert_eq!(judge(&silence).kind, LimitKind::Nothing, "who sends nothing is not said to send what it was asked for");
}

#[test]
fn messages_that_wait_for_answers_are_the_round_trips() {
    let pong = |threads, cores| {
        let talks = |tcp: &mut Tcp| {
            (tcp.segments_per_s, tcp.app_limited, tcp.rtt_us) = (Some([24e3, 24e3]), Some(1.0), Some(31.0));
        };
        Scene { threads, cores, rate_bits_per_s: Some(200e3), ..with_tcp(talks) }
    };
    let text = "nothing is saturated: each message waits for an answer; the round trip takes 31 µs";
    let two = pong(vec![thread(SENDER, 0, 0.4, 0.0), thread(RECEIVER, 1, 0.4, 0.0)], tcp().cores);
    is("on two cores", &two, LimitKind::Nothing, text);
    let one = pong(vec![thread(SENDER, 0, 0.5, 0.02), thread(RECEIVER, 0, 0.5, 0.02)], vec![core(0, 0.99, 0.0)]);
    let text = "each message waits for an answer; the round trip takes 31 µs";
    is("on one, which is full and has nobody waiting", &one, LimitKind::Nothing, text);
    let beside = pong(vec![thread(SENDER, 0, 0.3, 0.6)], vec![core(0, 1.0, 0.0)]);
    assert_eq!(judge(&beside).kind, LimitKind::Others, "unless it waits for its core");
    let bulk = with_tcp(|tcp| (tcp.segments_per_s, tcp.rtt_us) = (Some([24e3, 0.0]), Some(31.0)));
    assert!(!judge(&bulk).text.contains("answer"), "bulk data have none");
}
