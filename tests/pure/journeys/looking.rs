//! Journeys that look closer: a time on the graph, another scale of time, one pane alone, a row in full, another order.

use super::*;
use crate::world::change::own;
use vnettop::derive::TestMetrics;
use vnettop::derive::flow::{DatagramRate, DatagramTest};

fn act(stage: &mut Stage, mouse: Mouse, size: (u16, u16)) -> Option<Action> {
    let action = stage.view(size.0, size.1).action_for(mouse)?;
    update(&mut stage.state, action);
    Some(action)
}

/// Column and row of a text on the screen.
fn place(stage: &Stage, text: &str) -> (u16, u16) {
    let frame = stage.text(120, 40);
    let (y, line) = frame.lines().enumerate().find(|(_, line)| line.contains(text)).expect("it is on screen");
    let x = line.split(text).next().unwrap_or_default().chars().count();
    (u16::try_from(x).expect("few columns"), u16::try_from(y).expect("few rows"))
}

#[test]
fn a_selected_time_is_marked_and_read_until_it_is_let_go() {
    let mut stage = scenes::swinging(Settings::default());
    let before = stage.text(120, 40);
    stage.press(",");
    let newest = line(&stage, "−0.1 s");
    assert!(newest.contains(" Gbit/s · ") && newest.contains("migrations"), "its rate and its migrations: {newest}");
    assert!(line(&stage, "│     0┼").contains('▲'), "and where it is");
    stage.press(",,,,");
    assert!(shows(&stage, "−0.5 s"), "further back, bin by bin:\n{}", stage.text(120, 40));
    stage.press(".");
    assert!(shows(&stage, "−0.4 s"), "and forward");
    let column = |stage: &Stage| line(stage, "│     0┼").chars().position(|c| c == '▲').expect("it is marked");
    let (at, _) = (column(&stage), stage.press("<tick><tick>"));
    assert!(shows(&stage, "−1.4 s"), "a second later it is a second older");
    assert_eq!(column(&stage), at - 5, "and its mark five cells of 200 ms further left");
    stage.press("<esc>");
    assert!(!line(&stage, "│     0┼").contains('▲') && !shows(&stage, "−1.4 s"), "Esc lets go");
    assert_eq!(before.lines().count(), stage.text(120, 40).lines().count(), "nothing else has gone");
}

#[test]
fn a_click_selects_a_time_and_one_on_what_was_then_lets_go() {
    let mut stage = scenes::swinging(Settings::default());
    let action = act(&mut stage, Mouse::Click { x: 100, y: 4 }, (120, 40));
    assert!(matches!(action, Some(Action::SelectTime(_))), "a cell of the graph is a time: {action:?}");
    // The newest cell is in column 117.
    let told = line(&stage, "−3.");
    assert!(told.contains("Gbit/s"), "17 cells of 200 ms before now: {told}");
    let (x, y) = place(&stage, "−3.");
    assert_eq!(act(&mut stage, Mouse::Click { x, y }, (120, 40)), Some(Action::ReleaseTime));
    assert_eq!(stage.state.axis.selected_ns(), None, "nothing is selected");
    assert_eq!(act(&mut stage, Mouse::ScrollDown { x: 50, y: 4 }, (120, 40)), Some(Action::MoreTime), "the wheel");
}

#[test]
fn a_selected_time_stands_still_on_a_frozen_screen_and_ends_with_what_is_kept() {
    let mut stage = scenes::swinging(Settings::default());
    stage.press(",,, ");
    let frozen = stage.frame(120, 40);
    stage.press("<tick><tick><tick>");
    assert_eq!(stage.frame(120, 40), frozen, "while time goes on behind it");
    stage.press(" ");
    assert!(shows(&stage, "−1.8 s"), "thawed, it is as old as it is:\n{}", stage.text(120, 40));
    stage.play(20, |_, _| {});
    assert!(shows(&stage, "−21.8 s"), "the axis goes back to it:\n{}", stage.text(80, 24));
    stage.play(42, |_, _| {});
    assert_eq!(stage.state.axis.selected_ns(), None, "what is no longer kept is selected no longer");
}

#[test]
fn a_minute_is_seen_at_80_columns() {
    let mut stage = scenes::swinging(Settings::default());
    assert!(stage.text(80, 24).contains("28 s"), "two bins a column of dots: most of what the figures are of");
    stage.press("<lt>");
    assert!(stage.text(80, 24).contains("70 s"), "five bins a column:\n{}", stage.text(80, 24));
    assert!(stage.text(80, 24).contains('█'), "with what came before");
    stage.press("<lt>");
    assert!(shows(&stage, "as much time as is kept"), "there is no more");
    stage.press(">>>");
    assert!(stage.text(80, 24).contains("14 s"), "a bin a column");
}

#[test]
fn a_small_screen_has_the_graph_and_the_columns_that_matter_with_two_tests() {
    let mut stage = scenes::swinging(Settings::default());
    stage.world.traffic(Ifindex(4)).drops = 812.0;
    stage.world.traffic(Ifindex(5)).errors = 3.0;
    stage.press("<tick>");
    let mut metrics = stage.derive();
    let test = |number| Test {
        number,
        key: TestKey::Client(number),
        began_ns: metrics.machine.at_ns,
        ended_ns: None,
        mean: None,
        ends_seen: None,
        last_findings: std::sync::Arc::default(),
        lost: 0.0,
        metrics: Arc::clone(&metrics.subject),
        conclusions: Arc::clone(&metrics.conclusions),
    };
    metrics.tests = vec![Arc::new(test(1)), Arc::new(test(2))];
    stage.state.receive(metrics);
    let frame = stage.text(80, 24);
    for wanted in ["test 2", "┌ Test ─", "██", "LIMIT", "DROP/s", "ERR/s", "RX ↓", "TX ↑", "812", "MIGR/s", "+"]
    {
        assert!(frame.contains(wanted), "{wanted}:\n{frame}");
    }
}

/// A test that loses this share of its datagrams.
fn losing(number: u32, share: f64, metrics: &Metrics) -> Arc<Test> {
    let rate = |share: f64| Some(DatagramRate { packets_per_s: Some(1e4 * share), bits_per_s: 1e8 * share });
    let of = DatagramTest { streams: 1, sent: rate(1.0), received: rate(1.0 - share), ..DatagramTest::default() };
    let mut subject = TestMetrics::clone(&metrics.subject);
    subject.flow.tests = vec![of];
    let (metrics, conclusions) = (Arc::new(subject), Arc::clone(&metrics.conclusions));
    let last_findings = Arc::default();
    let (key, began_ns) = (TestKey::Client(number), metrics.machine.at_ns);
    let (ended_ns, mean, ends_seen, lost) = (None, None, None, 0.0);
    Arc::new(Test { number, key, began_ns, ended_ns, mean, ends_seen, last_findings, lost, metrics, conclusions })
}

#[test]
fn of_several_tests_the_one_that_loses_is_shown_until_another_is_chosen() {
    let mut stage = scenes::swinging(Settings::default());
    let mut shown = |shares: [f64; 3], keys: &str| {
        let mut metrics = stage.derive();
        metrics.tests = (1..).zip(shares).map(|(number, share)| losing(number, share, &metrics)).collect();
        metrics.test = Some(1);
        stage.state.receive(metrics);
        stage.press(keys);
        let frame = stage.text(80, 24);
        let marked = frame.lines().find(|line| line.contains('▸') && line.contains("test "));
        marked.and_then(|line| line.split("test ").nth(1)?.chars().next()).expect("one is marked")
    };
    assert_eq!(shown([0.0, 0.0, 0.0], ""), '1', "the one that leads");
    assert_eq!(shown([0.0, 0.005, 0.0], ""), '1', "a few lost packets change nothing");
    assert_eq!(shown([0.0, 0.08, 0.0], ""), '2', "much is lost");
    assert_eq!(shown([0.0, 0.0, 0.3], ""), '2', "and it stays, whatever becomes of it");
    assert_eq!(shown([0.0, 0.08, 0.3], "T"), '3', "a key chooses");
    assert_eq!(shown([0.0, 0.9, 0.0], ""), '3', "and what was chosen stays");
}

#[test]
fn the_border_says_what_it_is_what_it_was_and_what_the_pin_brought() {
    let mut world = four_links();
    world.iperf3(7, &[0], 0.0);
    world.threads[0].sample.side = None;
    let stage = Stage::after(5, world);
    assert!(shows(&stage, "┌ Link ─ b ─"), "what is watched is no test: {}", stage.text(120, 40));
    let mut stage = Stage::after(12, scenes::kunpeng());
    assert!(shows(&stage, "┌ Test ─ rate of link vethe61f5c0 ─"), "{}", stage.text(120, 40));
    let (thread, core) = (thread(&stage, 0), CoreSet::single(4));
    let old = "0-127".parse().expect("a list of cores");
    stage.event(Event::Pinned { thread, old, asked: core.clone(), got: core.clone(), at_ns: 0 });
    stage.world.threads[0].sample.allowed = Some(core);
    stage.press("<tick>");
    let mut metrics = stage.derive();
    own(&mut metrics).card = Some(scenes::card(Verdict::SteadierAndFaster));
    own(&mut metrics).jitter = Some(scenes::jitter(34.9, 0.016, 10));
    stage.state.receive(metrics);
    assert!(shows(&stage, "STEADY 34.9 Gbit/s ± 0.56 · CV 1.6 % · was 24.1, CV 38 %"), "{}", stage.text(120, 40));
    assert!(
        shows(&stage, "pin: steadier and faster, +10.8 Gbit/s (99 % interval: +9.1 to +12.4) ─"),
        "below the graph"
    );
    let (x, y) = place(&stage, "pin: steadier");
    assert_eq!(act(&mut stage, Mouse::Click { x, y }, (120, 40)), Some(Action::Card), "a click shows the card");
}

#[test]
fn a_click_on_a_head_sorts_and_a_second_one_reverses() {
    let mut stage = Stage::after(2, four_links());
    let first = |stage: &Stage| stage.text(120, 40).lines().find(|line| line.contains("10G const")).map(str::to_owned);
    let (x, y) = place(&stage, "RX ↓");
    act(&mut stage, Mouse::Click { x, y }, (120, 40));
    assert!(shows(&stage, "RX ↓▼") && first(&stage).is_some_and(|row| row.contains(" b ")), "the largest on top");
    act(&mut stage, Mouse::Click { x, y }, (120, 40));
    assert!(shows(&stage, "RX ↓▲") && first(&stage).is_some_and(|row| row.contains(" a ")), "the smallest on top");
    let (x, y) = place(&stage, "NAME");
    act(&mut stage, Mouse::Click { x, y }, (120, 40));
    assert!(shows(&stage, "NAME▲"), "names from the top down");
}

#[test]
fn a_row_is_shown_in_full_by_enter_and_by_a_second_click() {
    let mut stage = Stage::after(2, four_links());
    stage.press("jj<enter>");
    assert!(shows(&stage, "═ Details ═") && shows(&stage, "nominal speed"), "{}", stage.text(120, 40));
    assert!(line(&stage, "║ bit/s ").contains("4.00G received"), "{}", stage.text(120, 40));
    stage.press("<enter>");
    assert!(!shows(&stage, "═ Details ═"), "Enter again goes back");
    let (x, y) = place(&stage, " c ");
    assert!(matches!(act(&mut stage, Mouse::Click { x, y }, (120, 40)), Some(Action::SelectLink(_))));
    assert_eq!(act(&mut stage, Mouse::Click { x, y }, (120, 40)), Some(Action::Details), "the selected row again");
    let mut stage = Stage::after(3, scenes::kunpeng());
    stage.press("<tab><enter>");
    assert!(shows(&stage, "core 5: 83 % busy") && shows(&stage, "═ Details"), "a core");
    stage.press("<esc><tab>j<enter>");
    assert!(line(&stage, "║ core ").contains("(node"), "a thread, and its node's name:\n{}", stage.text(120, 40));
    let (id, _) = (thread(&stage, 0), stage.world.threads.remove(0));
    stage.press("<tick>");
    assert!(shows(&stage, "it no longer exists"), "thread {} has ended", id.tid);
}

#[test]
fn one_pane_may_have_the_whole_screen() {
    let mut stage = Stage::after(3, scenes::kunpeng());
    stage.press("z");
    assert!(shows(&stage, "▸Links") && !shows(&stage, "Cores ─") && !shows(&stage, " Test ─"), "links alone");
    stage.press("<tab>");
    assert!(shows(&stage, "▸Cores") && !shows(&stage, "Links ─"), "Tab goes to the next one");
    stage.press("z");
    let (x, y) = place(&stage, "Threads ─");
    act(&mut stage, Mouse::Click { x, y }, (120, 40));
    assert!(shows(&stage, "▸Threads") && !shows(&stage, "Links ─"), "a click on a title does the same");
    for (width, height) in [(60, 15), (80, 24), (300, 80)] {
        assert!(stage.text(width, height).contains("39081"), "at {width}x{height}");
    }
}

#[test]
fn idle_threads_are_one_line_while_others_work() {
    let mut world = World::small();
    for tid in [11, 12, 13, 14] {
        world.iperf3(tid, &[0], 0.0);
    }
    world.threads[2..].iter_mut().for_each(|thread| thread.cpu = 0.0);
    let mut stage = Stage::after(3, world);
    assert!(shows(&stage, " 13 server"), "of a pause of three seconds nothing is hidden");
    stage.play(4, |_, _| {});
    assert!(!shows(&stage, " 13 server") && shows(&stage, "2 idle threads hidden (i to show)"), "seven hide them");
    let (x, y) = place(&stage, "2 idle threads");
    act(&mut stage, Mouse::Click { x, y }, (120, 40));
    assert!(shows(&stage, " 13 server"), "a click shows them");
    stage.press("<tab><tab>i");
    assert!(!shows(&stage, " 13 server"), "and i hides them, where the threads have the focus");
    stage.world.threads[..2].iter_mut().for_each(|thread| thread.cpu = 0.0);
    stage.play(7, |_, _| {});
    assert!(shows(&stage, " 13 server") && shows(&stage, " 11 server"), "where all wait, all are shown");
}

#[test]
fn a_few_packets_of_neighbour_discovery_are_idle() {
    let mut world = World::small();
    world.link("busy", Kind::Veth, None, stream(1e9, 1e6));
    let traffic = |packets: f64, bits: f64| Traffic { rx_packets: packets, rx_bits: bits, ..Traffic::default() };
    world.link("chatty", Kind::Veth, None, traffic(0.5, 300.0));
    world.link("pinged", Kind::Veth, None, traffic(2.0, 1600.0));
    let mut stage = Stage::after(8, world);
    stage.press("i");
    assert!(shows(&stage, "pinged") && !shows(&stage, "chatty"), "a ping is traffic:\n{}", stage.text(120, 40));
    assert!(shows(&stage, "1 idle link hidden (i to show)"), "and what is hidden is told");
}

#[test]
fn a_thread_tells_where_its_process_is_and_with_whom_it_talks() {
    let mut stage = Stage::after(3, scenes::kunpeng());
    let mut metrics = stage.derive();
    let (connections, paths) = scenes::ways();
    (own(&mut metrics).flow.connections, own(&mut metrics).paths) = (connections, paths);
    own(&mut metrics).flow.connections.iter_mut().for_each(|connection| connection.carries = true);
    stage.state.receive(metrics);
    stage.press("<tab><tab>z");
    let row = |role| stage.text(200, 60).lines().find(|line| line.contains(role)).expect("a thread").to_owned();
    assert!(row(" client ").contains("43210 → 172.17.0.3:5201 +"), "{}", row(" client "));
    assert!(row(" server ").contains("5201 ← 172.17.0.2:43210 +"), "{}", row(" server "));
}
