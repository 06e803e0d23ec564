//! Whole frames, sizes × cases: symbols, then the tone of every cell. Clock and host are the world's own, so nothing has
//! to be filtered out.

mod paths;

use crate::world::change::{concluded, machine, own, threads};
use crate::world::scenes;
use crate::world::stage::Stage;
use crate::world::{NETNS, Traffic, World, stream};
use std::sync::Arc;
use vnettop::derive::experiment::Verdict;
use vnettop::derive::flow::{Connection, DatagramRate, DatagramTest, End, Speaks, UdpFigures};
use vnettop::derive::{Evidence, Test, TestKey, TestMean};
use vnettop::effect::{Outcome, OutcomeLine};
use vnettop::sample::{CoreSet, Event, Ifindex, Kind, LinkState, PeerRef, Problem, ProblemSource, Proto};
use vnettop::state::{Mode, Settings, Units};
use vnettop::ui::Colors;

/// Freezes the frame under the case's name and size.
fn freeze(case: &str, stage: &Stage, width: u16, height: u16) {
    insta::with_settings!({snapshot_suffix => format!("{width}x{height}"), omit_expression => true}, {
        insta::assert_snapshot!(case, stage.frame(width, height));
    });
}

/// The same at each size that is promised.
fn freeze_each(case: &str, stage: &Stage) {
    for (width, height) in [(60, 15), (80, 24), (120, 40), (200, 60)] {
        freeze(case, stage, width, height);
    }
}

fn replay() -> Settings {
    Settings { mode: Mode::Replay, ..Settings::default() }
}

#[test]
fn iperf3_over_a_bridge_at_every_size() {
    let mut stage = scenes::swinging(Settings::default());
    stage.press("jj");
    for (width, height) in [(60, 15), (80, 24), (120, 40), (200, 60), (300, 80), (66, 40)] {
        freeze("bridge", &stage, width, height);
    }
}

#[test]
fn queues_of_links_stand_in_a_wide_pane_where_they_are_known() {
    let with = |tx_queues, rx_queues, width| {
        let mut world = World::small();
        let card = world.link("eth0", Kind::Physical, Some(10_000), Traffic::default());
        let facts = world.facts(card);
        (facts.tx_queues, facts.rx_queues) = (tx_queues, rx_queues);
        Stage::after(2, world).text(width, 40)
    };
    let text = with(Some(64), Some(8), 200);
    assert!(text.contains("QUEUES") && text.contains(" 64/8"), "sending and receiving:\n{text}");
    assert!(with(Some(4), None, 200).contains(" 4/–"), "a kernel without RPS does not say how many receive");
    assert!(!with(None, None, 200).contains("QUEUES"), "nothing is known");
    assert!(!with(Some(64), Some(8), 120).contains("QUEUES"), "there is no room");
}

#[test]
fn a_machine_of_128_cores() {
    let stage = Stage::after(20, scenes::kunpeng());
    freeze_each("kunpeng", &stage);
}

#[test]
fn a_machine_of_512_cores_on_a_small_screen() {
    let mut world = World::new(512, 8, Some(4));
    scenes::containers(&mut world);
    world.work(300).softirq = 0.9;
    let mut stage = Stage::after(2, world);
    stage.press("<tab><end>");
    freeze_each("cores_512", &stage);
}

#[test]
fn a_containers_own_end_stands_under_its_end_outside() {
    let mut stage = Stage::after(3, scenes::namespaces());
    freeze_each("namespaces", &stage);
    stage.press("t/blue<enter>");
    freeze_each("namespaces_filtered", &stage);
}

#[test]
fn before_and_at_the_first_sample_no_rate_is_made_up() {
    let mut stage = Stage::new(scenes::bridge(), Settings::default());
    freeze_each("waiting", &stage);
    stage.tick();
    freeze_each("first_sample", &stage);
}

#[test]
fn two_thousand_links_of_which_few_are_busy() {
    let mut stage = Stage::after(3, scenes::crowd());
    stage.press("sjjj");
    freeze_each("crowd_idle_hidden", &stage);
    stage.press("i<end>");
    freeze_each("crowd_end", &stage);
}

#[test]
fn hundreds_of_containers_of_which_two_are_busy() {
    let stage = Stage::after(6, scenes::containers_by_the_hundred());
    freeze_each("containers_by_the_hundred", &stage);
}

#[test]
fn hostile_names_change_nothing_but_their_own_cell() {
    let stage = Stage::after(3, scenes::hostile());
    freeze_each("hostile", &stage);
}

#[test]
fn every_kind_of_nesting_in_bytes() {
    let mut world = World::small();
    let bridge = world.link("br0", Kind::Bridge, Some(20_000), stream(9e9, 1e9));
    let bond = world.link("bond0", Kind::Bond, Some(20_000), stream(9e9, 1e9));
    for name in ["eth0", "eth1"] {
        let port = world.link(name, Kind::Physical, Some(10_000), stream(4.5e9, 0.5e9));
        world.facts(port).master = Some(bond);
    }
    world.facts(bond).master = Some(bridge);
    let tap = world.link("tap0", Kind::Tap, Some(25_000), Traffic { drops: 24.0, errors: 2.0, ..stream(1e9, 9e9) });
    world.facts(tap).master = Some(bridge);
    world.facts(tap).speed_was_set = true;
    let vlan = world.link("bond0.100", Kind::Vlan, Some(20_000), stream(1e8, 1e8));
    world.facts(vlan).lower = Some(PeerRef { netnsid: None, netns: Some(NETNS), ifindex: bond });
    for (name, peer) in [("va", 8), ("vb", 7)] {
        let veth = world.link(name, Kind::Veth, Some(10_000), stream(20e9, 20e9));
        world.facts(veth).peer = Some(PeerRef { netnsid: None, netns: Some(NETNS), ifindex: Ifindex(peer) });
    }
    let wireguard = world.link("wg0", Kind::Wireguard, None, Traffic::default());
    world.facts(wireguard).state = LinkState::LowerLayerDown;
    let stage = Stage::with(3, world, Settings { units: Units::Bytes, ..Settings::default() });
    freeze_each("nesting", &stage);
}

#[test]
fn packets_and_their_sizes() {
    let mut world = World::small();
    let small = Traffic { rx_bits: 1.2e6 * 60.0 * 8.0, rx_packets: 1.2e6, ..Traffic::default() };
    world.link("eth0", Kind::Physical, Some(1_000), small);
    world.link("tun0", Kind::Tun, Some(10_000), stream(1e9, 1e7));
    let merged = Traffic { rx_bits: 8e9, rx_packets: 1e5, tx_bits: 1e7, tx_packets: 2e4, ..Traffic::default() };
    world.link("veth7", Kind::Veth, Some(10_000), merged);
    let mut stage = Stage::after(3, world);
    stage.press("uu");
    freeze_each("packets", &stage);
}

#[test]
fn a_proposed_placement() {
    let mut stage = Stage::after(3, scenes::kunpeng());
    let ids = [0, 1].map(|at: usize| stage.world.threads[at].sample.id);
    stage.state.open_proposal(Ok(scenes::proposal(ids[0], ids[1], [4, 5])));
    freeze_each("proposal", &stage);
    stage.press("<esc>p");
    freeze_each("proposal_derived", &stage);
    stage.state.open_proposal(Err("no watched thread is busy: start the benchmark, then press p".into()));
    freeze_each("no_proposal", &stage);
}

#[test]
fn cores_typed_by_hand_and_refused() {
    let mut stage = Stage::after(3, scenes::kunpeng());
    stage.press("<tab><tab>ja0-3,200<enter>");
    freeze_each("choose_cores", &stage);
}

#[test]
fn pinned_threads_and_what_came_of_it() {
    let mut stage = Stage::after(3, scenes::kunpeng());
    let server = stage.world.threads[0].sample.id;
    let core = CoreSet::single(4);
    stage.world.threads[0].sample.allowed = Some(core.clone());
    stage.world.threads[0].trail = vec![4];
    stage.world.threads[0].moves_per_s = 0.0;
    let old = "0-127".parse().expect("a list of cores");
    stage.event(Event::Pinned { thread: server, old, asked: core.clone(), got: core, at_ns: 0 });
    stage.state.outcome(&Outcome {
        lines: vec![
            OutcomeLine { warning: false, text: "iperf3 server 39081: 0-127 → 4".into() },
            OutcomeLine {
                warning: true,
                text: "cannot pin thread 39082: it has ended; press p for a new proposal".into(),
            },
        ],
        ..Outcome::default()
    });
    stage.play(3, |_, _| {});
    freeze_each("pinned", &stage);
}

/// The machine of 128 cores with all that is known of its flow.
fn measured(settings: Settings, verdict: Option<Verdict>) -> Stage {
    let mut stage = Stage::with(20, scenes::kunpeng(), settings);
    let mut metrics = stage.derive();
    own(&mut metrics).jitter = Some(scenes::jitter(24.1, 0.38, 30));
    concluded(&mut metrics).findings = scenes::findings();
    own(&mut metrics).card = verdict.map(scenes::card);
    threads(&mut metrics, |all| all.iter_mut().for_each(|thread| thread.evidence = Evidence::Traced));
    stage.state.receive(metrics);
    stage
}

#[test]
fn the_spread_of_the_flow_and_three_findings_at_every_size() {
    let stage = measured(Settings::default(), None);
    freeze_each("jitter", &stage);
}

#[test]
fn every_finding_on_a_key() {
    let mut stage = measured(Settings::default(), None);
    stage.press("F");
    freeze_each("findings", &stage);
    stage.press("<end>");
    freeze_each("findings_end", &stage);
}

#[test]
fn before_and_after_a_pin() {
    for (name, verdict) in [
        ("card_faster", Verdict::SteadierAndFaster),
        ("card_same", Verdict::NoDifference),
        ("card_open", Verdict::Inconclusive),
        ("card_worse", Verdict::Worse),
    ] {
        let mut stage = measured(Settings::default(), Some(verdict));
        stage.press("c");
        freeze_each(name, &stage);
    }
    let plain = Settings { utf8: false, units: Units::Bytes, ..Settings::default() };
    let mut stage = measured(plain, Some(Verdict::Steadier));
    stage.colors = Colors::None;
    stage.press("c");
    freeze_each("card_plain", &stage);
}

#[test]
fn the_keys() {
    let mut stage = Stage::after(3, scenes::bridge());
    stage.press("?");
    freeze_each("help", &stage);
    stage.press("<pgdn>");
    freeze("help_end", &stage, 60, 15);
    stage.press("?");
    freeze_each("help_words", &stage);
    for settings in [Settings::default(), replay()] {
        let mut stage = Stage::with(3, scenes::bridge(), settings);
        for page in ["1 of 2", "2 of 2"] {
            stage.press("?");
            for (width, height) in [(120, 40), (200, 60)] {
                let text = stage.text(width, height);
                let title = text.lines().find(|line| line.contains(page)).expect("the title tells the page");
                assert_eq!(title.matches(" of ").count(), 1, "the page is whole at {width}x{height}: {title}");
            }
        }
    }
}

#[test]
fn a_filter_while_it_is_typed() {
    let mut stage = Stage::after(3, scenes::bridge());
    stage.press("/VETHA");
    freeze_each("filter", &stage);
}

#[test]
fn replay_and_freeze_are_told() {
    let mut stage = Stage::with(3, scenes::bridge(), replay());
    freeze_each("replay", &stage);
    stage.press(" ");
    stage.state.is_recorded = true;
    freeze_each("replay_frozen", &stage);
}

#[test]
fn a_replay_shows_where_it_is() {
    use vnettop::derive::timeline::IncidentKind;
    use vnettop::derive::{Highlight, HighlightKind};
    let mut stage = Stage::with(3, scenes::bridge(), replay());
    let first_ns = stage.state.metrics().expect("samples").machine.at_ns - 3_000_000_000;
    let kinds = [
        HighlightKind::Dip,
        HighlightKind::Loss,
        HighlightKind::Done(IncidentKind::Pin),
        HighlightKind::Done(IncidentKind::Mark),
        HighlightKind::Migration,
    ];
    let highlight = |(at, kind)| Highlight { at_ns: first_ns + at, seen_ns: first_ns + at, kind };
    stage.state.playback = Some(vnettop::state::Playback {
        damage: None,
        span_ns: Some((first_ns, first_ns + 3_723_000_000_000)),
        is_whole: false,
        highlights: (1_000_000_000_000..).step_by(600_000_000_000).zip(kinds).map(highlight).collect(),
        speed: Some(0.25),
        is_over: false,
    });
    freeze_each("replay_bar", &stage);
    // Somebody wants to see a place that was not read yet.
    stage.state.notice(false, "shown as soon as the recording is read there");
    freeze_each("replay_awaits", &stage);
    // And it is over.
    if let Some(playback) = &mut stage.state.playback {
        (playback.is_over, playback.is_whole, playback.speed) = (true, true, None);
        playback.span_ns = Some((first_ns, first_ns + 3_000_000_000));
    }
    stage.state.notice(false, "end of the recording: Home plays it again, q quits");
    freeze_each("replay_over", &stage);
}

#[test]
fn without_colour_and_without_utf8() {
    let plain = Settings { utf8: false, ..Settings::default() };
    let mut stage = scenes::swinging(plain);
    stage.colors = Colors::None;
    stage.press("j");
    freeze("ascii", &stage, 120, 40);
    let buffer = stage.paint(&stage.view(120, 40));
    assert!(buffer.content.iter().all(|cell| cell.symbol().is_ascii()), "no cell holds more than ASCII");
    let colour = |cell: &&ratatui::buffer::Cell| cell.fg != ratatui::style::Color::Reset;
    assert_eq!(buffer.content.iter().find(colour), None, "no cell has a colour");
}

#[test]
fn moves_that_were_only_sampled_are_marked() {
    let mut world = scenes::bridge();
    world.iperf3(39_090, &[0], 0.0);
    for runner in &mut world.threads {
        runner.sample.migrations = None;
    }
    world.threads[2].sample.name = "sshd".into();
    world.threads[2].sample.allowed = None;
    world.threads[2].cpu = 0.0;
    let watch = vec!["iperf3".to_owned(), "sshd".to_owned()];
    let stage = Stage::with(5, world, Settings { watch, ..Settings::default() });
    freeze_each("sampled", &stage);
}

#[test]
fn nothing_watched_and_things_that_could_not_be_read() {
    let mut world = World::small();
    scenes::containers(&mut world);
    world.own.late_ticks = 12;
    world.own.realtime = false;
    let problem = |source, text: &str| Problem { source, text: text.to_owned() };
    world.problems = vec![
        problem(
            ProblemSource::Speed,
            "netlink: cannot open the ethtool family: Operation not permitted; claims are not shown",
        ),
        problem(
            ProblemSource::Threads,
            "cannot read /proc/39081/task: Permission denied (hidepid?); run as root to see it",
        ),
    ];
    let stage = Stage::with(3, world, Settings { readonly: true, ..Settings::default() });
    freeze_each("no_threads", &stage);
}

#[test]
fn each_pane_has_the_small_screen_to_itself() {
    let mut stage = Stage::after(5, scenes::kunpeng());
    stage.press("<tab>");
    freeze("small_cores", &stage, 60, 15);
    stage.press("<tab>");
    freeze("small_threads", &stage, 60, 15);
    freeze("too_small", &stage, 40, 10);
}

#[test]
fn every_size_is_drawn_within_its_borders() {
    let mut crowd = Stage::after(1, scenes::crowd());
    crowd.press("<end>");
    let mut hostile = Stage::after(1, scenes::hostile());
    hostile.press("?");
    for stage in [&crowd, &hostile, &Stage::after(1, scenes::kunpeng())] {
        for (width, height) in (0..=310).step_by(7).flat_map(|w| (0..=90).step_by(3).map(move |h| (w, h))) {
            let view = stage.view(width, height);
            for span in view.layers().into_iter().flat_map(vnettop::view::Canvas::spans) {
                let cells: usize =
                    span.text.chars().map(|c| unicode_width::UnicodeWidthChar::width(c).unwrap_or(99)).sum();
                let end = usize::from(span.x) + cells;
                assert!(end <= usize::from(width), "'{}' ends inside {width}×{height}", span.text);
                assert!(span.y < height.max(1), "'{}' is inside {width}×{height}", span.text);
            }
            let buffer = stage.paint(&view);
            assert_eq!(buffer.content.len(), usize::from(width) * usize::from(height), "{width}×{height} is painted");
        }
    }
}
