//! Boxes, findings and tests that have ended.

use super::*;

#[test]
fn a_key_that_means_nothing_to_a_box_closes_it_and_is_obeyed() {
    let mut stage = scenes::swinging(Settings { mode: Mode::Replay, ..Settings::default() });
    for keys in ["F", "c", "j<enter>"] {
        stage.press(keys);
        assert!(shows(&stage, "Esc closes"), "{keys} opens a box:\n{}", stage.text(120, 40));
        stage.press(" ");
        assert!(shows(&stage, "paused") && !shows(&stage, "Esc closes"), "{keys}:\n{}", stage.text(120, 40));
        stage.press(" ");
    }
}

#[test]
fn every_finding_can_be_read_and_answered() {
    let mut stage = Stage::after(3, scenes::kunpeng());
    let mut metrics = stage.derive();
    concluded(&mut metrics).findings = scenes::findings();
    stage.state.receive(metrics);
    assert!(
        shows(&stage, "(+2 more: F)") && !shows(&stage, "% steal on"),
        "three on the pane, and where the others are"
    );
    stage.press("F");
    assert!(shows(&stage, "2 % steal on") && shows(&stage, "difference -0.004"), "the list has all, with numbers");
    stage.press("F");
    assert!(!shows(&stage, "% steal on"), "F closes what F opened");
    stage.press("F<end>");
    assert!(stage.text(60, 15).contains("times nominal 3.48"), "the last number is reached on the smallest screen");
    stage.press("p");
    assert!(shows(&stage, "lacement ═"), "a finding that names p is answered with p");
}

#[test]
fn a_limit_that_a_pin_may_answer_ends_with_its_key() {
    let mut stage = Stage::after(3, scenes::kunpeng());
    for (key, text) in [(None, "nothing makes it wait"), (Some('p'), "its vCPU 7"), (Some('p'), &"wait ".repeat(99))] {
        let mut metrics = stage.derive();
        let limit = concluded(&mut metrics).limit.as_mut().expect("something limits it");
        (limit.key, limit.text) = (key, text.to_owned());
        stage.state.receive(metrics);
        let row = line(&stage, "LIMIT");
        assert_eq!(row.contains("[p]"), key.is_some(), "however long the sentence is: {row}");
    }
    stage.press("F");
    assert!(stage.text(120, 40).matches("[p]").count() > 1, "in the list as well");
}

#[test]
fn a_strip_shows_where_a_thread_was_and_marks_where_it_moved() {
    let mut world = World::kunpeng();
    world.iperf3(39_081, &[5, 5, 5, 5, 6, 6, 6, 100, 100, 100], 1.0);
    let mut stage = Stage::after(20, world);
    let row = line(&stage, "39081");
    assert!(row.contains("3▄▄0▄▄▄0▄▄3▄▄"), "the node where it came there, also within a node: {row}");
    assert!(line(&stage, "ROLE").contains("NODE, LAST"), "the head says how long");
    stage.world.threads[0].trail = vec![5];
    stage.press("+<tick><tick>");
    assert!(line(&stage, "39081").contains("3▄▄0▄"), "it goes on");
    let mut small = World::small();
    small.iperf3(7, &[0, 0, 1], 1.0);
    let stage = Stage::after(20, small);
    assert!(line(&stage, "server").contains("10▄10▄10▄"), "on few cores each has its own character");
}

#[test]
fn the_graph_of_a_test_that_has_ended_stays_with_its_result() {
    let mut stage = with(Settings::default());
    let running = stage.state.newest().expect("there are some").clone();
    assert!(!running.subject.timeline.bins.is_empty(), "something is measured");
    let mut told = (*running.subject).clone();
    told.flow.bits_per_s = Some(4e9);
    let pid = running.threads[0].sample.id.pid;
    let ended = Test {
        number: 1,
        key: TestKey::Client(pid),
        began_ns: running.machine.at_ns - 9_000_000_000,
        ended_ns: Some(running.machine.at_ns + 1_000_000_000),
        mean: Some(TestMean { bits_per_s: 4e9, from_ns: 1, to_ns: 9_000_000_001, known_s: 9.0 }),
        ends_seen: None,
        last_findings: Arc::new(running.conclusions.findings.clone()),
        lost: 7.0,
        metrics: Arc::new(told),
        conclusions: Arc::default(),
    };
    let later = |seconds: u64| {
        let mut metrics = running.clone();
        machine(&mut metrics, |machine| machine.at_ns += seconds * 1_000_000_000);
        let of = own(&mut metrics);
        (of.timeline, of.jitter, of.flow) = (Arc::default(), None, FlowMetrics::default());
        (metrics.tests, metrics.test) = (vec![Arc::new(ended.clone())], None);
        metrics
    };
    stage.state.receive(later(6));
    let verdict = line(&stage, "ENDED");
    assert!(verdict.contains("5 s ago · mean over 9 s · 7 lost"), "{verdict}");
    assert!(stage.text(80, 24).contains("4.00 Gbit/s  ENDED"), "its mean");
    assert!(stage.text(120, 40).contains("██"), "its graph is there still");
    assert!(stage.text(120, 40).contains("before it stopped: "), "and what was found of it: {}", stage.text(120, 40));
    assert!(stage.state.metrics().expect("some").subject.flow.bits_per_s.is_none(), "no rate of now");
    assert!(!stage.state.metrics().expect("some").threads.is_empty(), "and the threads of now");
    let mut again = later(8);
    let of = own(&mut again);
    (of.timeline, of.flow) = (Arc::clone(&running.subject.timeline), running.subject.flow.clone());
    stage.state.receive(again);
    assert!(!stage.text(120, 40).contains("ENDED"), "what is measured now goes before it");
}

#[test]
fn of_several_tests_one_is_proposed_for() {
    let mut stage = with(Settings::default());
    let mut metrics = stage.state.newest().expect("there are some").clone();
    let pids: Vec<u32> = metrics.threads.iter().map(|thread| thread.sample.id.pid).collect();
    let test = |number: u32, bits_per_s| {
        let pid = pids[number as usize - 1];
        let mut told = (*metrics.subject).clone();
        Arc::make_mut(&mut told.threads).retain(|thread| thread.sample.id.pid == pid);
        told.flow.bits_per_s = Some(bits_per_s);
        let mut conclusions = metrics.conclusions.clone();
        Arc::make_mut(&mut conclusions).limit = None;
        let (began_ns, ended_ns, mean, ends_seen) = (metrics.machine.at_ns, None, None, None);
        Arc::new(Test {
            number,
            key: TestKey::Client(pid),
            began_ns,
            ended_ns,
            mean,
            ends_seen,
            last_findings: Arc::default(),
            lost: 0.0,
            metrics: Arc::new(told),
            conclusions,
        })
    };
    metrics.tests = vec![test(1, 1e9), test(2, 2e9)];
    metrics.test = Some(2);
    stage.state.receive(metrics);
    let threads = |stage: &Stage| -> Vec<u32> {
        let metrics = stage.state.metrics().expect("there are some");
        metrics.threads.iter().map(|thread| thread.sample.id.pid).collect()
    };
    assert!(line(&stage, "test 2").contains('▸'), "the one that leads, as nobody has chosen");
    assert_eq!(threads(&stage), pids[1..2], "its threads alone");
    stage.press("n");
    assert!(line(&stage, "test 1").contains('▸'), "after the last one comes the first");
    stage.press("p");
    let frame = stage.text(120, 40);
    assert!(frame.contains(&pids[0].to_string()) && !frame.contains(&pids[1].to_string()), "{frame}");
    stage.press("<esc>N");
    assert_eq!(threads(&stage), pids[1..2], "and back");
    let row = stage.text(120, 40).lines().position(|line| line.contains("test 1")).expect("it is listed");
    let click = Mouse::Click { x: 8, y: u16::try_from(row).expect("a row") };
    let action = stage.view(120, 40).action_for(click).expect("a line is a place to click");
    assert_eq!((action, update(&mut stage.state, action).is_none()), (Action::SelectTest(1), true), "by the mouse");
    assert_eq!(threads(&stage), pids[..1], "the test of the line");
}
