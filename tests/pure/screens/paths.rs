//! Paths of flows, several tests at once, and whom links belong to.

use super::*;

/// Two streams between two containers on a bridge, the test's control connection, and one through a tun.
fn with_paths(settings: Settings) -> Stage {
    let mut stage = Stage::with(3, scenes::between_containers(), settings);
    let mut metrics = stage.derive();
    let (connections, paths) = scenes::ways();
    (own(&mut metrics).flow.connections, own(&mut metrics).paths) = (connections, paths);
    machine(&mut metrics, |machine| Arc::make_mut(&mut machine.facts).spaces = scenes::spaces());
    stage.state.receive(metrics);
    stage
}

#[test]
fn what_was_asked_for_stands_beside_a_rate_that_is_less() {
    for size in ["80x24", "120x40"] {
        let said = |recording: &str, state: &str| {
            let frame = printed(recording, ["10", size]);
            frame.lines().find(|line| line.contains(&format!("{state}  mean"))).expect("the test's line").to_owned()
        };
        let too_little = said("sends-too-little", "LOSING 18 %");
        assert!(too_little.contains(" of 355 sent · 900 asked for"), "{size}: {too_little}");
        let as_asked = said("three-at-once", "LOSING 8.2 %");
        assert!(as_asked.contains(" · now 275 of 300 sent ") && !as_asked.contains("asked for"), "{size}: {as_asked}");
    }
}

#[test]
fn the_paths_of_the_flows() {
    let mut stage = with_paths(Settings::default());
    stage.press("v");
    freeze_each("paths", &stage);
    stage.press("<end>");
    freeze_each("paths_end", &stage);
    let mut empty = Stage::after(3, scenes::bridge());
    empty.press("v");
    freeze_each("paths_none", &empty);
}

#[test]
fn the_paths_in_packets_and_a_udp_test_with_what_it_lost() {
    let mut stage = with_paths(Settings::default());
    let mut metrics = stage.state.newest().expect("there are some").clone();
    let flow = &mut own(&mut metrics).flow;
    let (one, tcp) = (flow.connections[0], flow.connections.remove(3));
    let udp = Connection { speaks: Speaks::Udp(UdpFigures::default()), carries: true, bits_per_s: None, ..one };
    flow.connections = vec![udp, udp, Connection { carries: true, ..tcp }, flow.connections[2]];
    let rate = |packets_per_s: f64| {
        Some(DatagramRate { packets_per_s: Some(packets_per_s), bits_per_s: packets_per_s * 8.0 * 1448.0 })
    };
    let end = |end: &End| end.pid.zip(end.netns);
    let (from, to) = (end(&one.from), end(&one.to));
    let (sent, received) = (rate(172_650.0), rate(169_200.0));
    flow.tests = vec![DatagramTest {
        from,
        to,
        streams: 2,
        length_bytes: Some(1448),
        sent,
        received,
        ..DatagramTest::default()
    }];
    let paths = Arc::make_mut(&mut own(&mut metrics).paths);
    paths.iter_mut().take(2).for_each(|path| path.proto = Proto::Udp);
    stage.state.receive(metrics);
    stage.press("v");
    freeze_each("paths_udp", &stage);
    stage.press("<esc>uuv");
    freeze_each("paths_packets", &stage);
}

/// The test of the scene, one that is busier but elsewhere, and one that has ended.
fn three_tests() -> Stage {
    let mut stage = with_paths(Settings::default());
    let mut metrics = stage.state.newest().expect("there are some").clone();
    let key = TestKey::Client(metrics.subject.flow.connections[0].from.pid.expect("a process"));
    let began_ns = metrics.machine.at_ns - 8_000_000_000;
    let test = |number, bits_per_s, ended_ns| {
        let mut told = (*metrics.subject).clone();
        told.flow.bits_per_s = Some(bits_per_s);
        Arc::make_mut(&mut told.threads).truncate(number as usize);
        Arc::new(Test {
            number,
            key,
            began_ns,
            ended_ns,
            mean: Some(TestMean { bits_per_s: 9.4e8, from_ns: 1, to_ns: 8_000_000_001, known_s: 8.0 }),
            ends_seen: None,
            last_findings: std::sync::Arc::default(),
            lost: 1_234.0,
            metrics: Arc::new(told),
            conclusions: Arc::clone(&metrics.conclusions),
        })
    };
    metrics.tests = vec![test(1, 2.1e10, None), test(2, 9.9e10, None), test(3, 1e9, Some(began_ns + 4_000_000_000))];
    metrics.test = Some(2);
    stage.state.receive(metrics);
    stage
}

#[test]
fn several_tests() {
    let mut stage = three_tests();
    freeze_each("tests", &stage);
    stage.press("n");
    freeze_each("tests_ended", &stage);
}

#[test]
fn whom_the_links_belong_to() {
    let mut stage = Stage::after(3, scenes::owned());
    freeze_each("owned", &stage);
    stage.press("/OpenVPN");
    freeze_each("owned_filter", &stage);
}

/// A frame of a recording at so many seconds, in this size.
fn printed(recording: &str, [at, size]: [&str; 2]) -> String {
    let file = format!("{}/tests/fixtures/tests/{recording}.vnettop.zst", env!("CARGO_MANIFEST_DIR"));
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_vnettop"));
    command.args(["replay", &file, "--at", at, "--print", size, "--no-config"]);
    String::from_utf8(command.output().expect("vnettop runs").stdout).expect("text")
}

#[test]
fn rates_are_of_all_tests_where_another_one_shares_a_link() {
    for (recording, is_shared) in [("three-at-once", true), ("two-apart", false)] {
        let frame = printed(recording, ["1", "120x40"]);
        let title = frame.lines().find(|line| line.starts_with("├ Path ")).expect("a path");
        assert!(frame.contains("test 2 ") && title.contains("hop by hop"), "several tests, and one's path: {frame}");
        assert_eq!(title.contains("rates of all tests"), is_shared, "{recording}: {title}");
    }
}
