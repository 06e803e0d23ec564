//! Recordings: what is read back is what was written; what is not a recording is one sentence.

use proptest::prelude::*;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vnettop::record::{Recorder, Recording};
use vnettop::sample::{
    Benchmark, Busy, Congestion, CoreSet, DatagramCounts, Direction, Event, Facts, FlowProgress, FlowSample, GsoLimits,
    Host, Ifindex, Interrupts, Item, Kind, LinkCounters, LinkFacts, LinkKey, LinkState, NapiThread, Offload, Offloads,
    OwnCost, PlacedThread, PlacementClass, PortState, Problem, ProblemSource, Program, Proto, Report, Reported, Runner,
    Sample, SearchStep, Side, Steering, TcpState, TestKind, ThreadId, TriedPlacement, UdpState, Unread, Whole,
    XdpProgram,
};

fn facts(ifindex: u32, name: &str) -> Arc<LinkFacts> {
    Arc::new(LinkFacts {
        born: 0,
        alias: Some("uplink".to_owned()),
        state: LinkState::Unknown,
        mtu: 1420,
        tx_queues: Some(4),
        master: Some(Ifindex(9)),
        slave_kind: Some("bridge".to_owned()),
        port_state: Some(PortState::Learning),
        isolated: true,
        mac: Some("02:00:00:00:00:01".to_owned()),
        macvlan_mode: Some(4),
        ..LinkFacts::new(LinkKey { netns: 1, ifindex: Ifindex(ifindex) }, name, Kind::Wireguard)
    })
}

fn sample(tick: u64, links: &Arc<Vec<Arc<LinkFacts>>>) -> Item {
    let row = |link: &Arc<LinkFacts>| LinkCounters {
        rx_bytes: u64::MAX - tick,
        tx_bytes: tick,
        ..LinkCounters::zero(LinkKey { netns: 1, ifindex: link.ifindex }, tick * 100)
    };
    Item::Sample(Box::new(Sample {
        wall_ms: 1_700_000_000_000 + tick,
        at_ns: tick * 100,
        netns: 4_026_531_840,
        cores_at_ns: tick,
        own: OwnCost {
            cpu_ns: tick,
            left_out: 2,
            behind_ns: Some(7),
            realtime: true,
            interval_ns: 100,
            seat: Some(3),
            ..OwnCost::default()
        },
        counters: links.iter().map(row).collect(),
        flows: vec![connection(tick), datagrams(tick)],
        facts: Arc::new(slow(tick, links)),
        ..Sample::default()
    }))
}

fn slow(tick: u64, links: &Arc<Vec<Arc<LinkFacts>>>) -> Facts {
    Facts {
        host: Arc::new(Host { name: "h".into(), kernel: "6.18".into(), arch: "x86_64".into(), ..Host::default() }),
        links: Arc::clone(links),
        runners: Arc::new(vec![Runner {
            pid: 90,
            tid: 91,
            name: "sh".into(),
            core: 1,
            cpu_ns: tick / 4,
            over_ns: 1_000_000_000,
            kernel: Some(false),
        }]),
        benchmarks: Arc::new(vec![benchmark(tick / 2)]),
        offloads: Arc::new(vec![Offloads {
            link: LinkKey { netns: 4_026_531_840, ifindex: Ifindex(2) },
            tso: tick > 3,
            gso: true,
            gro: false,
            tx_checksum: true,
            rx_checksum: false,
            unwanted: vec![Offload::Gro],
            gso_limits: Some(GsoLimits {
                size: 65_536,
                ipv4_size: Some(65_536),
                segments: 65_535,
                device_size: None,
                device_segments: None,
            }),
            xdp: (tick > 4).then_some(XdpProgram { id: Some(7), native: true }),
        }]),
        steering: Arc::new(vec![Steering {
            link: LinkKey { netns: 4_026_531_840, ifindex: Ifindex(2) },
            rps: vec![CoreSet::single(1), CoreSet::new()],
            rfs: false,
            threaded: true,
            napi: vec![NapiThread { pid: 812, core: 1, allowed: CoreSet::single(1) }],
            interrupts: Some(Interrupts::Cores(CoreSet::single(u32::try_from(tick).expect("small")))),
            irqs: vec![45],
        }]),
        family: Some(Arc::new(vec![4711, 4712])),
        problems: Arc::new(vec![Problem { source: ProblemSource::Speed, text: "unknown".into() }]),
        ..Facts::default()
    }
}

fn connection(tick: u64) -> FlowSample {
    let tcp = TcpState {
        unacked: Some(9),
        pacing_allowed: Some(5),
        app_limited: Some(true),
        busy: Some(Busy { all_us: tick, rwnd_us: 2, sndbuf_us: 1 }),
        retransmits: 3,
        pacing: Some(tick),
        congestion: Some(Congestion::new(b"cubic")),
        data_out: Some(8),
        data_in: Some(7),
        rcvbuf: Some(131_072),
        ..TcpState::default()
    };
    FlowSample {
        tcp: Some(tcp),
        pulses: vec![FlowProgress { at_ns: tick, acked: 1, received: 2 }],
        ..FlowSample::new(
            1,
            (7, 1),
            ("198.18.0.1:5201".parse().expect("an address"), "[2001:db8::1]:4000".parse().expect("an address")),
        )
    }
}

fn datagrams(tick: u64) -> FlowSample {
    let drops = u32::try_from(tick).expect("small");
    let counts = DatagramCounts {
        at_ns: tick,
        since_ns: 1,
        sent_bytes: 1200 * tick,
        sent: tick,
        received_bytes: 5,
        received: 2,
        merged: 1,
    };
    let udp = Some(UdpState { rx_queue: 1, tx_queue: 2, rcvbuf: 3, drops, counts: Some(counts) });
    FlowSample { proto: Proto::Udp, cookie: 2, tcp: None, udp, pulses: Vec::new(), ..connection(tick) }
}

fn benchmark(second: u64) -> Benchmark {
    Benchmark {
        pid: 1,
        program: Program::Iperf3,
        side: Side::Client,
        target: Some("198.18.0.1".into()),
        port: 5201,
        proto: Some(Proto::Udp),
        streams: Some(8),
        direction: Some(Direction::Both),
        json_stream: true,
        omit_ms: Some(1000),
        time_ms: Some(10_000),
        asked_bits_per_s: Some(1_000_000),
        length_bytes: Some(1470),
        batched: true,
        affinity: Some("2,3".into()),
        reported: Some(Reported { at_ms: second * 1000, packets: Some(9), ..Reported::default() }),
        unread: Some(Unread::Pipe),
    }
}

fn items() -> Vec<Item> {
    let (few, more) = (Arc::new(vec![facts(1, "wg0")]), Arc::new(vec![facts(1, "wg0"), facts(2, "网络")]));
    let id = ThreadId { pid: 1, tid: 2, start: 3 };
    let pinned = Event::Pinned {
        thread: id,
        old: "0-127".parse().expect("a list"),
        asked: CoreSet::single(4),
        got: CoreSet::single(4),
        at_ns: 0,
    };
    let whole = Whole { length_ms: 10_000, sent_bits_per_s: Some(9), jitter_ns: Some(7), ..Whole::default() };
    let reported = Event::Reported { at_ns: 9, pid: 1, side: Some(Side::Client), report: Report::Whole(whole) };
    vec![
        sample(1, &few),
        sample(2, &few),
        Item::Event(pinned),
        sample(3, &more),
        Item::Event(Event::Mark { at_ns: 9 }),
        Item::Event(reported),
        sample(4, &few),
    ]
}

fn written(name: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join(name);
    let mut recorder = Recorder::create(&path).expect("a new file");
    for item in items() {
        recorder.write(&item).expect("it is written");
    }
    recorder.finish().expect("it is closed");
    (dir, path)
}

fn read(path: &Path) -> (Vec<Item>, Option<String>) {
    let mut recording = Recording::open(path).expect("a recording");
    let mut items = Vec::new();
    while let Some(item) = recording.next_item().expect("good lines") {
        items.push(item);
    }
    (items, recording.truncated().map(str::to_owned))
}

#[test]
fn what_is_read_back_is_what_was_written() {
    for name in ["run.jsonl", "run.jsonl.zst"] {
        let (_dir, path) = written(name);
        assert_eq!(read(&path), (items(), None), "{name} comes back item by item, to the last bit");
    }
}

#[test]
fn every_step_of_a_search_comes_back() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("run.jsonl");
    let thread = ThreadId { pid: 1, tid: 2, start: 3 };
    let placed = PlacedThread { thread, label: "iperf3 client".to_owned(), core: 4 };
    let tried = |class, threads| TriedPlacement {
        class,
        is_rule: class == PlacementClass::SameCore,
        threads,
        steers: Vec::new(),
    };
    let placements = vec![tried(PlacementClass::Unpinned, vec![]), tried(PlacementClass::SameCore, vec![placed])];
    let test = TestKind { machine: "2 cores".to_owned(), links: vec!["veth".to_owned()], streams: 1, threads: 2 };
    let steps = [
        SearchStep::Started { seed: u64::MAX, placements, left_out: vec!["not tried: x".to_owned()], test },
        SearchStep::Phase { placement: 1, round: 2 },
        SearchStep::Dropped { placement: 1, rounds: 3 },
        SearchStep::Failed { placement: 1, why: "core 4 is offline".to_owned() },
        SearchStep::Ended,
    ];
    let items: Vec<Item> = steps.map(|step| Item::Event(Event::Search { at_ns: 7, step })).to_vec();
    let mut recorder = Recorder::create(&path).expect("a new file");
    for item in &items {
        recorder.write(item).expect("it is written");
    }
    recorder.finish().expect("it is closed");
    assert_eq!(read(&path), (items, None), "from the first to the last");
}

#[test]
fn a_recording_with_equal_cookies_in_two_namespaces_is_read_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("run.jsonl");
    let Item::Sample(plain) = items().remove(0) else { panic!("a sample comes first") };
    let end = |netns| FlowSample { netns, ..connection(1) };
    let written = Item::Sample(Box::new(Sample { flows: vec![end(7), end(8), datagrams(1)], ..*plain }));
    let mut recorder = Recorder::create(&path).expect("a new file");
    recorder.write(&written).expect("it is written");
    recorder.finish().expect("it is closed");
    assert_eq!(read(&path), (vec![written], None), "Linux before 5.4 counts them in each namespace");
}

#[test]
fn facts_are_written_once_while_they_hold() {
    let (_dir, path) = written("run.jsonl");
    let text = fs::read_to_string(path).expect("plain text");
    assert_eq!(text.matches("{\"links\":").count(), 3, "three times, for two changes");
    assert_eq!(text.matches("{\"host\":").count(), 1, "the host does not change");
}

#[test]
fn a_torn_end_is_tolerated_and_told() {
    for name in ["run.jsonl", "run.jsonl.zst"] {
        let (_dir, path) = written(name);
        let bytes = fs::read(&path).expect("readable");
        fs::write(&path, &bytes[..bytes.len() - 20]).expect("writable");
        let (read, told) = read(&path);
        assert!(items().starts_with(&read), "{name}: everything before the tear is right");
        let told = told.expect("the tear is told");
        assert!(told.contains("is cut off in the middle"), "{name}: {told}");
    }
}

#[test]
fn what_stands_before_a_block_that_cannot_be_unpacked_is_shown() {
    let mut bytes = include_bytes!("../../assets/kunpeng.vnettop.zst").to_vec();
    let at = bytes.len() * 3 / 4;
    bytes[at..at + 40].fill(0xa5);
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("damaged.zst");
    fs::write(&path, bytes).expect("writable");
    let (read, told) = read(&path);
    assert!(read.len() > 20, "{} items stand before it", read.len());
    let told = told.expect("the damage is told");
    assert!(told.contains("is damaged from line ") && told.ends_with("everything before that is shown"), "{told}");
}

#[test]
fn what_is_no_recording_is_one_sentence() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("x");
    let cases: [(&[u8], &str); 6] = [
        (b"", "is not a vnettop recording"),
        (b"hello\n", "is not a vnettop recording"),
        (&[0xff; 9000], "is not a vnettop recording"),
        (b"{\"vnettop_recording\":9,\"vnettop\":\"9\"}\n", "schema version 9"),
        (b"{\"vnettop_recording\":1,\"vnettop\":\"0\"}\n{\"frob\":1}\n{}\n", "damaged in line 2"),
        (&[0x28, 0xb5, 0x2f, 0xfd, 9, 9, 9, 9, 9, 9, 9, 9], "is not a vnettop recording"),
    ];
    for (bytes, says) in cases {
        fs::write(&path, bytes).expect("writable");
        let mut opened = Recording::open(&path);
        let error = match &mut opened {
            Err(error) => error.to_string(),
            Ok(recording) => recording.next_item().expect_err("it is refused").to_string(),
        };
        assert!(error.contains(says) && !error.contains('\n'), "{says:?} is said: {error}");
    }
}

#[test]
fn a_damaged_line_has_one_number() {
    let (_dir, path) = written("run.jsonl");
    let text = fs::read_to_string(&path).expect("readable");
    let lines: Vec<&str> = text.lines().collect();
    fs::write(&path, [&lines[..2], &["{\"sample\":x}"], &lines[2..]].concat().join("\n") + "\n").expect("writable");
    let mut recording = Recording::open(&path).expect("a header");
    let error = loop {
        match recording.next_item() {
            Ok(item) => assert!(item.is_some(), "the damage is met"),
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("damaged in line 3: ") && error.contains("(column "), "{error}");
    assert!(!error.contains("at line"), "it is the third line and no other: {error}");
}

#[test]
fn a_recording_is_for_nobody_else_to_read() {
    use std::os::unix::fs::PermissionsExt;
    let (_dir, path) = written("run.jsonl");
    let mode = fs::metadata(&path).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "it holds other users' command lines");
}

#[test]
fn a_recording_is_never_overwritten() {
    let (_dir, path) = written("run.jsonl");
    let error = Recorder::create(&path).err().expect("it is refused").to_string();
    assert!(error.contains("exists already"), "{error}");
    assert_eq!(read(&path).0, items(), "and nothing is lost");
}

#[test]
fn an_empty_file_may_be_recorded_to() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    assert!(Recorder::create(file.path()).is_ok(), "mktemp's empty file is no recording to lose");
}

proptest! {
    #[test]
    fn no_damage_panics(at in 0usize..4000, byte: u8, extra in proptest::collection::vec(any::<u8>(), 0..20)) {
        let (dir, path) = written("run.jsonl");
        let mut bytes = fs::read(&path).expect("readable");
        let at = at % bytes.len();
        bytes[at] = byte;
        bytes.extend(extra);
        let path = dir.path().join("damaged");
        fs::File::create(&path).and_then(|mut file| file.write_all(&bytes)).expect("writable");
        if let Ok(mut recording) = Recording::open(&path) {
            while let Ok(Some(_)) = recording.next_item() {}
        }
    }
}
