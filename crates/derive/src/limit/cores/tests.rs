//! What a full core does to a test, as the findings tell it, and parts that are all that is used of the core.

use super::super::judge::judge;
use super::super::scene::{Core, QuotaUse, Scene, Thread};
use super::super::tests::{busy, with_tcp};
use super::super::{Limit, LimitKind};
use crate::losses::{Loss, LossPlace};
use vnettop_sample::{Proto, Runner};

fn thread(pid: u32, core: u32, (cpu, wait): (f64, f64)) -> Thread {
    let (label, cores) = (if pid == 50 { "iperf3 client" } else { "iperf3 server" }, vec![(core, cpu)]);
    Thread {
        pid,
        tid: pid,
        label: label.to_owned(),
        cores,
        cpu,
        moved: false,
        wait,
        sends: pid == 50,
        receives: pid == 90,
    }
}

fn runner(pid: u32, name: &str, core: u32, cpu_ns: u64) -> Runner {
    Runner { pid, tid: pid, name: name.to_owned(), core, cpu_ns, over_ns: 1_000, kernel: None }
}

/// Datagrams are lost in the buffer of a reader that has 16 % of core 1, where rustc and others run.
fn starved() -> Scene {
    let core = |number, process| Core { number, process, softirq: 0.0, steal: 0.0, idle: 1.0 - process };
    let lost = Loss { place: LossPlace::ReceiveBuffer, packets: 500.0, share: Some(0.66), ..Loss::default() };
    Scene {
        seconds: 1.0,
        cores: vec![core(0, 0.6), core(1, 1.0)],
        threads: vec![thread(50, 0, (0.56, 0.0)), thread(90, 1, (0.16, 0.8))],
        runners: vec![runner(7, "rustc", 1, 680), runner(90, "iperf3", 1, 160)],
        proto: Some(Proto::Udp),
        rate_bits_per_s: Some(254e6),
        losses_per_s: vec![lost],
        ..Scene::default()
    }
}

fn because(limit: &Limit) -> &str {
    limit.because.as_deref().unwrap_or_default()
}

#[test]
fn a_reader_that_waits_for_its_core_is_why_its_buffer_overflows() {
    let limit = judge(&starved());
    let text = "core 1 is 100 % busy: 68 % rustc (pid 7), 16 % others, 16 % iperf3 server; 66 % of packets lost";
    assert_eq!(
        (limit.kind, limit.loses, limit.text.as_str()),
        (LimitKind::Others, Some(LossPlace::ReceiveBuffer), text)
    );
    let wanted = "rustc (pid 7) and others take 84 % of core 1, for which iperf3 server waits 80 % of the time";
    assert_eq!(because(&limit), wanted);
    let quota = Some(QuotaUse { cores: 0.05, throttled: 0.98 });
    let stopped = judge(&Scene { quota, ..starved() });
    assert_eq!((stopped.kind, stopped.loses), (LimitKind::Quota, Some(LossPlace::ReceiveBuffer)));
    assert_eq!(because(&stopped), "its CPU quota of 5 % of a core is used up in 98 % of the periods");
    let bursts = Scene { threads: vec![thread(50, 0, (0.56, 0.0)), thread(90, 1, (0.19, 0.19))], ..starved() };
    let held_up = judge(&bursts);
    assert_eq!((held_up.kind, held_up.loses), (LimitKind::Others, limit.loses), "it sleeps when its socket is empty");
    let free = Scene { threads: vec![thread(50, 0, (0.56, 0.0)), thread(90, 1, (0.16, 0.0))], ..starved() };
    assert_eq!((judge(&free).kind, judge(&free).loses), (LimitKind::Loss, None), "a buffer that is small");
}

#[test]
fn the_parts_of_a_core_have_the_test_among_them_and_are_all_of_it() {
    let crowd =
        vec![runner(1, "cc1", 0, 300), runner(2, "cc1", 0, 240), runner(3, "ld", 0, 100), runner(4, "as", 0, 90)];
    let core = Core { number: 0, process: 0.93, softirq: 0.05, steal: 0.0, idle: 0.02 };
    let sender = thread(50, 0, (0.15, 0.62));
    let scene = Scene {
        cores: vec![core],
        threads: vec![sender],
        runners: crowd,
        losses_per_s: Vec::new(),
        proto: Some(Proto::Tcp),
        ..starved()
    };
    let limit = super::full(&scene).expect("a full core");
    assert_eq!(limit.kind, LimitKind::Others);
    let text = "core 0 is 98 % busy: 54 % cc1 (2 processes), 10 % ld (pid 3), 15 % iperf3 client, 19 % others";
    assert_eq!(limit.text, text);
    let wanted = "cc1 (2 processes) and others take 82 % of core 0, for which iperf3 client waits 62 % of the time";
    assert_eq!(because(&limit), wanted);
}

#[test]
fn a_small_receive_buffer_goes_before_a_core_that_both_ends_fill() {
    let waits = |receive_buffer_bytes| {
        let scene = Scene {
            cores: vec![Core { number: 1, process: 0.42, softirq: 0.58, steal: 0.0, idle: 0.0 }],
            threads: vec![thread(50, 1, (0.2, 0.13)), thread(90, 1, (0.2, 0.13))],
            receive_buffer_bytes: Some(receive_buffer_bytes),
            ..with_tcp(|tcp| tcp.busy = busy(1.0, 0.45, 0.0))
        };
        judge(&scene).kind
    };
    assert_eq!(waits(8192.0), LimitKind::ReceiveWindow, "a larger one carries 16 times as much on the same core");
    assert_eq!(waits(6e6), LimitKind::OwnSoftirq, "a large one is full because its core is");
}

/// A receiver that sh takes core 1 from, and its sender on core 0: 10 Gbit/s.
fn held_up() -> Scene {
    let core = |number, process| Core { number, process, softirq: 0.0, steal: 0.0, idle: 1.0 - process };
    Scene {
        seconds: 1.0,
        cores: vec![core(0, 0.5), core(1, 1.0)],
        threads: vec![thread(50, 0, (0.5, 0.01)), thread(90, 1, (0.4, 0.55))],
        runners: vec![runner(7, "sh", 1, 600), runner(90, "iperf3", 1, 400)],
        proto: Some(Proto::Tcp),
        streams: 1,
        rate_bits_per_s: Some(10e9),
        ..Scene::default()
    }
}

fn gain_gbits(scene: &Scene) -> Option<String> {
    judge(scene).gain_bits_per_s().map(|gain| format!("{:.1}", gain / 1e9))
}

#[test]
fn what_waiting_costs_is_what_the_slower_end_would_have_time_for() {
    let gain = |of: fn(&mut Scene)| {
        let mut scene = held_up();
        of(&mut scene);
        gain_gbits(&scene)
    };
    assert_eq!(gain(|_| ()).as_deref(), Some("10.0"), "until the sender fills core 0");
    let light = gain(|scene| {
        scene.cores[0] = Core { process: 0.3, idle: 0.7, ..scene.cores[0] };
        scene.threads[0] = thread(50, 0, (0.3, 0.01));
    });
    assert_eq!(light.as_deref(), Some("13.8"), "until the receiver need not wait");
    assert_eq!(gain(|scene| scene.asked_bits_per_s = Some(14e9)).as_deref(), Some("4.0"), "no more than was asked for");
    assert_eq!(gain(|scene| scene.threads[0].wait = 0.4), None, "both wait for others");
    assert_eq!(
        gain(|scene| scene.streams = 4),
        None,
        "a thread with several takes less time for each bit with more to do"
    );
    assert_eq!(gain(|scene| scene.threads[1].wait = 0.0), None, "nobody waits");
    assert_eq!(gain(|scene| scene.proto = Some(Proto::Udp)), None, "of UDP it is counted what is lost");
    assert_eq!(gain(|scene| scene.threads[0].moved = true), None, "its time is of two cores");
    assert_eq!(gain(|scene| drop(scene.threads.remove(0))), None, "the other end is not seen");
}

#[test]
fn two_ends_on_one_core_wait_for_each_other() {
    let both = Scene {
        cores: vec![Core { number: 1, process: 1.0, softirq: 0.0, steal: 0.0, idle: 0.0 }],
        threads: vec![thread(50, 1, (0.6, 0.38)), thread(90, 1, (0.39, 0.55))],
        runners: Vec::new(),
        ..held_up()
    };
    assert_eq!(gain_gbits(&both).as_deref(), Some("6.3"), "until the sender has all of a core");
}

#[test]
fn a_core_that_a_thread_has_just_come_to_is_not_full_of_it() {
    let sender = |busy: f64| {
        let core = Core { number: 0, process: busy, softirq: 0.0, steal: 0.0, idle: 1.0 - busy };
        let thread = Thread { moved: true, ..thread(50, 0, (0.96, 0.01)) };
        judge(&Scene { cores: vec![core], threads: vec![thread], runners: Vec::new(), ..held_up() }).text
    };
    assert_eq!(sender(0.77), "iperf3 client (tid 50) fills one core at a time: 96 %");
    assert_eq!(sender(0.96), "core 0 is 96 % busy: 96 % iperf3 client", "a second later");
}

#[test]
fn a_few_segments_that_were_sent_again_are_not_why_a_full_core_is_waited_for() {
    let again = |share| judge(&Scene { sent_again: Some(share), ..held_up() }).kind;
    assert_eq!([again(0.006), again(0.05)], [LimitKind::Others, LimitKind::Loss]);
    let idle = vec![Core { number: 0, process: 0.3, softirq: 0.0, steal: 0.0, idle: 0.7 }];
    let alone = Scene { sent_again: Some(0.006), cores: idle, threads: Vec::new(), runners: Vec::new(), ..held_up() };
    assert_eq!(judge(&alone).kind, LimitKind::Loss, "where no core is full");
}

#[test]
fn softirqs_are_told_apart_where_the_threads_time_has_them_not() {
    let core = Core { number: 0, process: 0.3, softirq: 0.7, steal: 0.0, idle: 0.0 };
    let text = |load| {
        let threads = vec![thread(50, 0, load)];
        judge(&Scene { cores: vec![core], threads, runners: Vec::new(), ..held_up() }).text
    };
    assert_eq!(text((0.3, 0.6)), "core 0 is 100 % busy: 70 % test softirqs, 30 % iperf3 client");
    assert_eq!(text((0.95, 0.01)), "core 0 is 100 % busy: 100 % iperf3 client (70 % in test softirqs)");
}
