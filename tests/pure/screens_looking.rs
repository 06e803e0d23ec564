//! Whole frames of looking closer: a selected time, a pin and what it brought, one pane alone, a row in full.

use crate::frames::replayed::Replayed;
use crate::world::change::{machine, own};
use crate::world::scenes;
use crate::world::stage::Stage;
use std::path::Path;
use std::sync::Arc;
use vnettop::derive::FlowBasis;
use vnettop::derive::experiment::Verdict;
use vnettop::sample::{CoreSet, Event, FlowPath, Problem, ProblemSource, Proto};
use vnettop::state::Settings;

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (200, 60)];

fn freeze(case: &str, stage: &Stage, (width, height): (u16, u16)) {
    insta::with_settings!({snapshot_suffix => format!("{width}x{height}"), omit_expression => true}, {
        insta::assert_snapshot!(case, stage.frame(width, height));
    });
}

#[test]
fn a_selected_time_at_every_size() {
    let mut stage = scenes::swinging(Settings::default());
    stage.press(&",".repeat(40));
    for size in SIZES {
        freeze("selected_time", &stage, size);
    }
    stage.press("<lt><lt>");
    freeze("selected_time_in_a_minute", &stage, (80, 24));
}

#[test]
fn what_a_pin_brought_at_every_size() {
    let mut stage = Stage::after(20, scenes::kunpeng());
    for at in 0..2 {
        let thread = stage.world.threads[at].sample.id;
        let core = CoreSet::single(4 + u32::try_from(at).expect("two"));
        let old = "0-127".parse().expect("a list of cores");
        stage.event(Event::Pinned { thread, old, asked: core.clone(), got: core.clone(), at_ns: 0 });
        stage.world.threads[at].sample.allowed = Some(core);
        stage.world.threads[at].trail = vec![4 + u32::try_from(at).expect("two")];
    }
    stage.play(8, |_, _| {});
    let mut metrics = stage.derive();
    let (connections, paths) = scenes::ways();
    (own(&mut metrics).flow.connections, own(&mut metrics).paths) = (connections, paths);
    own(&mut metrics).flow.connections.iter_mut().for_each(|connection| connection.carries = true);
    own(&mut metrics).flow.basis = Some(FlowBasis::Sockets(4));
    own(&mut metrics).card = Some(scenes::card(Verdict::SteadierAndFaster));
    own(&mut metrics).jitter = Some(scenes::jitter(34.9, 0.012, 8));
    stage.state.receive(metrics);
    for size in SIZES {
        freeze("pin_and_verdict", &stage, size);
    }
    stage.press("<tab><tab>jz");
    freeze("zoomed_threads", &stage, (80, 24));
    freeze("zoomed_threads", &stage, (120, 40));
    stage.press("<enter>");
    freeze("details_of_a_thread", &stage, (80, 24));
    stage.press("<esc>z<tab>jj<enter>");
    freeze("details_of_a_link", &stage, (80, 24));
}

#[test]
fn links_of_the_test_that_are_not_shown_are_said_with_the_option_that_shows_them() {
    let mut stage = Stage::after(3, scenes::bridge());
    let mut metrics = stage.derive();
    let elsewhere = FlowPath {
        netns: 4_026_539_999,
        proto: Proto::Tcp,
        from: "198.18.5.1:49922".parse().expect("an address"),
        to: "198.18.5.2:5201".parse().expect("an address"),
        hops: Vec::new(),
        gap: Some("the routes of network namespace 4026539999 cannot be read".to_owned()),
        note: None,
        ends: None,
        outside: None,
        silent: None,
        neighbours: Vec::new(),
        carriers: Vec::new(),
    };
    own(&mut metrics).paths = Arc::new(vec![elsewhere]);
    stage.state.receive(metrics.clone());
    let text = stage.text(120, 40);
    assert!(text.contains("network namespace that is not shown: vnettop --netns all"), "{text}");
    let mut facts = (*metrics.machine.facts).clone();
    facts.problems =
        Arc::new(vec![Problem { source: ProblemSource::Namespaces, text: "needs CAP_SYS_ADMIN".to_owned() }]);
    machine(&mut metrics, |machine| machine.facts = Arc::new(facts));
    assert!(metrics.machine.facts.problems[0].is_of_rights(), "the first line of the screen says what is missing");
    stage.state.receive(metrics);
    let text = stage.text(120, 40);
    assert!(!text.contains("--netns all"), "an option does not give rights:\n{text}");
}

#[test]
fn where_packets_wait_at_every_size() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/latency/tbf.vnettop.zst");
    let mut shown = Replayed::at_the_benchmark(&file);
    shown.press("L");
    for (width, height) in [(60, 15), (80, 24), (120, 40), (200, 60)] {
        insta::with_settings!({snapshot_suffix => format!("{width}x{height}"), omit_expression => true}, {
            insta::assert_snapshot!("where_packets_wait", shown.frame(width, height));
        });
    }
}
