//! A test in bands: how much of the screen says something, that nothing of its verdict is cut, that what stands still stands
//! still, and the keys between bands and panes.

use crate::story::{played, seen_from};
use crate::world::scenes;
use crate::world::stage::Stage;
use vnettop::action::{Action, Mouse, Pane};
use vnettop::derive::Metrics;
use vnettop::state::{Arrangement, Choices, GraphStyle, Settings, ThemeList};
use vnettop::update::update;

const SIZES: [(u16, u16); 4] = [(60, 15), (80, 24), (120, 40), (200, 60)];

/// Cells of all that are blank, as a share.
fn blank(stage: &Stage, (width, height): (u16, u16)) -> f64 {
    let text = stage.text(width, height);
    let shown: usize = text.lines().map(|line| line.chars().filter(|c| *c != ' ').count()).sum();
    1.0 - shown as f64 / (f64::from(width) * f64::from(height))
}

/// Rows of the graph: those with a scale at their left, above its zero.
fn graph_rows(stage: &Stage, (width, height): (u16, u16)) -> usize {
    let is_graph = |line: &&str| matches!(line.chars().nth(7), Some('┤' | '│')) && line.starts_with('│');
    stage.text(width, height).lines().filter(is_graph).count()
}

/// The screen as one text without borders and line ends.
fn joined(stage: &Stage, (width, height): (u16, u16)) -> String {
    let text = stage.text(width, height);
    let words = text.lines().flat_map(|line| line.trim_matches(['│', ' ']).split_whitespace());
    words.collect::<Vec<_>>().join(" ")
}

fn metrics(stage: &Stage) -> &Metrics {
    stage.state.metrics().expect("it was played")
}

#[test]
fn little_of_the_screen_is_blank_while_a_test_runs() {
    for (seconds, tolerance) in [(30, 0.0), (70, 0.03)] {
        let stage = played(seconds);
        for (size, most, least) in [((80, 24), 0.20, 8), ((120, 40), 0.30, 16), ((200, 60), 0.35, 24)] {
            let (blank, rows) = (blank(&stage, size), graph_rows(&stage, size));
            assert!(blank <= most + tolerance, "{seconds} s, {size:?}: {:.1} % are blank", blank * 100.0);
            assert!(rows >= least, "{seconds} s, {size:?}: {rows} rows of graph");
        }
        assert!(graph_rows(&stage, (60, 15)) >= 2, "two rows on the smallest screen");
    }
}

#[test]
fn nothing_of_the_verdict_is_cut() {
    for seconds in [6, 16, 30, 50, 56, 70] {
        let stage = played(seconds);
        let limit = metrics(&stage).conclusions.limit.as_ref().expect("a test runs").text.clone();
        for size in SIZES {
            let text = joined(&stage, size);
            assert!(text.contains(&limit), "{seconds} s, {size:?}: {limit}\n{}", stage.text(size.0, size.1));
            assert!(text.contains("STEADY"), "{seconds} s, {size:?}: the state");
        }
        for size in [(60, 15), (80, 24)] {
            let frame = stage.text(size.0, size.1);
            let verdict = frame.lines().skip(2).take_while(|line| !line.contains('┤'));
            assert!(!verdict.into_iter().any(|line| line.contains('…')), "{seconds} s, {size:?}:\n{frame}");
            assert!(frame.contains("172.17.0.3 → 172.17.0.2:5201"), "its name:\n{frame}");
            assert!(frame.contains(" Gbit/s"), "its rate:\n{frame}");
        }
    }
}

#[test]
fn a_cause_has_its_cost_and_the_key_that_helps() {
    let text = joined(&played(30), (80, 24));
    for wanted in [
        "UNSTEADY",
        "threads migrate 1.6/s",
        " instead of 34.8, 16.2 while threads migrate",
        "DO keep it so: [p] pin client to core 6, server to core 4",
        "(+1 more: F)",
    ] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
    for (seconds, keep) in [(70, "PIN so far: before "), (76, "PIN helped, keep it; before ")] {
        let text = joined(&played(seconds), (80, 24));
        for wanted in [keep, ", after ", "steadier", "(99 % interval: ", "[c] before and after"] {
            assert!(text.contains(wanted), "{wanted}: {text}");
        }
    }
}

#[test]
fn an_end_that_migrates_has_one_share_in_the_whole_frame() {
    let stage = played(36);
    let text = joined(&stage, (120, 40));
    for wanted in
        ["97 %, core 49 ", "migrates 2.2/s", "LIMIT now: iperf3 client (tid 39082) fills one core at a time: 97 %"]
    {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
    assert!(!joined(&played(30), (120, 40)).contains("migrates 0"), "nor one that stays");
    assert!(joined(&played(30), (120, 40)).contains("97 % of core 6 "), "one that stays has its part of its core");
}

#[test]
fn a_rate_that_is_steady_again_is_not_called_unsteady() {
    let states = [16, 28, 34].map(|seconds| {
        SIZES.map(|size| {
            let text = joined(&played(seconds), size);
            let is_steady = text.contains("STEADY FOR ") && text.contains(", UNSTEADY BEFORE ");
            [is_steady, !is_steady && text.contains(" UNSTEADY ")]
        })
    });
    assert_eq!(states[0], [[false, true]; 4], "while it swings");
    assert_eq!(states[1], [[true, false]; 4], "steady for eleven seconds, with the mean of all 28");
    assert_eq!(states[2], [[false, true]; 4], "and when it swings again");
    let text = joined(&played(28), (80, 24));
    let wanted = [" Gbit/s now STEADY FOR ", " BEFORE mean of 28 s: 30.", "WHY in these 28 s: threads migrate"];
    assert!(wanted.iter().all(|part| text.contains(part)), "the rate now, what it was, and why: {text}");
}

/// The row of what happened, without its label; and the rows of the curve.
fn events_and_curve(stage: &Stage, (width, height): (u16, u16)) -> (Option<String>, String) {
    let text = stage.text(width, height);
    let events = text.lines().find(|line| line.starts_with("│events"));
    let curve = text.lines().filter(|line| matches!(line.chars().nth(7), Some('┤' | '│')) && line.starts_with('│'));
    let inner = |line: &str| line.chars().skip(8).take(usize::from(width) - 9).collect::<String>();
    (events.map(inner), curve.map(|line| inner(line) + "\n").collect())
}

#[test]
fn what_happened_hides_nothing_of_the_curve() {
    let stage = played(34);
    let signs = ['●', '•', '·', '!'];
    for size in SIZES {
        let (events, curve) = events_and_curve(&stage, size);
        assert!(!curve.contains(signs), "{size:?}: only the rate:\n{curve}");
        let text = stage.text(size.0, size.1);
        if let Some(events) = events {
            let count = events.chars().filter(|c| signs.contains(c)).count();
            assert!(count >= 10, "{size:?}: {count} in {events}");
            assert!(text.contains("● • · migrations, far to near"), "{size:?}: what they mean:\n{text}");
        } else {
            assert_eq!(size, (60, 15), "only the smallest screen has no row for it");
            let axis = text.lines().find(|line| line.contains("0┼")).expect("an axis");
            assert!(axis.contains('●'), "there it stands on the axis: {axis}");
        }
    }
}

#[test]
fn header_and_titles_stand_still_while_a_test_is_steady() {
    // What a key or a card has left stands in the line above the path for some seconds.
    let mut seen: Vec<Vec<String>> = Vec::new();
    seen_from(60, |stage| {
        let titles = SIZES.iter().flat_map(|&(width, height)| {
            let text = stage.text(width, height);
            text.lines().take(2).map(str::to_owned).collect::<Vec<_>>()
        });
        seen.push(titles.collect());
    });
    assert!(seen.len() >= 40, "{} captures", seen.len());
    for (at, title) in seen[0].iter().enumerate() {
        let other = seen.iter().map(|titles| &titles[at]).find(|other| *other != title);
        assert_eq!(other, None, "it was\n{title}");
    }
    assert!(seen[0].iter().step_by(2).all(|header| header.contains("kp920")), "a replay names its machine");
}

#[test]
fn panes_and_bands_are_a_key_apart() {
    let mut stage = played(30);
    let is_bands = |stage: &Stage| stage.text(120, 40).contains("├ Path ─");
    assert!(is_bands(&stage), "a test is shown in bands");
    stage.press("b");
    assert!(!is_bands(&stage) && stage.text(120, 40).contains("├▸Links ─"), "b: its panes");
    stage.press("b");
    assert!(is_bands(&stage), "and back");
    for (key, title) in [("1", "▸Links"), ("2", "▸Cores"), ("3", "▸Threads"), ("4", "▸Test")] {
        stage.press(key);
        assert!(stage.text(120, 40).contains(title), "{key}: {title}");
        stage.press(key);
        assert!(is_bands(&stage), "{key} again closes it");
    }
    stage.press("z");
    assert!(stage.text(120, 40).contains("▸Test"), "z: the graph");
    stage.press("z<tab>");
    assert!(!is_bands(&stage), "a key of panes shows them");
    let action = stage.view(120, 40).action_for(Mouse::Click { x: 3, y: 1 });
    assert_eq!(action, Some(Action::ToggleZoom(Some(Pane::Test))), "a click on its title");
    update(&mut stage.state, action.expect("one"));
    assert!(stage.text(120, 40).contains("▸Test"), "gives it the screen");
}

#[test]
fn the_graph_has_blocks_or_dots_as_chosen() {
    let stage = |graph, arrangement| {
        let mut stage = Stage::new(scenes::bridge(), Settings::default());
        let choices = Choices { graph, arrangement, ..Choices::default() };
        stage.state.choose(choices, vnettop::action::KeyMap::default(), ThemeList::default());
        (0..9).for_each(|_| stage.tick());
        stage.text(120, 40)
    };
    let blocks = stage(GraphStyle::Blocks, Arrangement::Bands);
    assert!(blocks.contains('█') && !blocks.contains('⣿'), "blocks:\n{blocks}");
    assert!(stage(GraphStyle::Braille, Arrangement::Panes).contains('⣿'), "dots");
}

#[test]
fn an_idle_machine_says_how_to_start_and_what_it_costs_is_not_known_at_once() {
    let mut world = crate::world::World::small();
    world.link("eth0", vnettop::sample::Kind::Physical, Some(10_000), crate::world::Traffic::default());
    let mut stage = Stage::new(world, Settings::default());
    stage.tick();
    stage.tick();
    assert!(stage.text(120, 40).contains("own CPU – "), "half a second:\n{}", stage.text(120, 40));
    stage.tick();
    assert!(stage.text(120, 40).contains("own CPU under 1 %"), "{}", stage.text(120, 40));
    for (size, wanted) in
        [((120, 40), "vnettop replay"), ((200, 60), "vnettop demo"), ((80, 24), "iperf3 -c HOST -t 60")]
    {
        let frame = stage.text(size.0, size.1);
        assert!(frame.contains("waiting for a test") && frame.contains(wanted), "{size:?}:\n{frame}");
    }
}
