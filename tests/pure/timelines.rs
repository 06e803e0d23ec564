//! The graph of a test: its bins are the flow's, and what happened stands at its time. Played from the recording in `assets/`.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::path::Path;
use vnettop::action::Action;
use vnettop::derive::ledger::BIN_NS;
use vnettop::derive::timeline::IncidentKind;
use vnettop::derive::{Derivation, Metrics};
use vnettop::record::Recording;
use vnettop::sample::{Event, Item, Move};
use vnettop::state::{Mode, Settings, State};
use vnettop::ui::{self, Theme};
use vnettop::update::update;
use vnettop::view::prepare;

/// A cell of the graph, ns.
const CELL_NS: u64 = 200_000_000;

fn items() -> Vec<Item> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/kunpeng.vnettop.zst");
    let mut recording = Recording::open(&path).expect("the recording is there");
    std::iter::from_fn(|| recording.next_item().expect("it is whole")).collect()
}

/// The metrics of each sample.
fn played(items: &[Item]) -> Vec<Metrics> {
    let mut derivation = Derivation::default();
    items.iter().cloned().filter_map(|item| derivation.advance(item)).collect()
}

#[test]
fn the_newest_bin_is_the_rate_that_json_tells() {
    let mut seconds = 0;
    for metrics in played(&items()) {
        let bins = &metrics.subject.timeline.bins;
        assert!(bins.windows(2).all(|two| two[0].to_ns == two[1].from_ns), "no time is left out");
        let Some(newest) = bins.last() else { continue };
        // Of a test that has ended JSON tells no rate.
        if metrics.subject.flow.bits_per_s.is_some() {
            assert_eq!(newest.bits_per_s, metrics.subject.flow.bits_per_s, "at {}", metrics.machine.at_ns);
            seconds += 1;
        }
    }
    assert!(seconds > 100, "the test runs for a minute of two samples a second: {seconds}");
}

#[test]
fn each_traced_move_is_in_the_bin_of_its_instant() {
    let items = items();
    let moves: Vec<Move> = items
        .iter()
        .filter_map(|item| if let Item::Sample(sample) = item { sample.trace.as_ref() } else { None })
        .flat_map(|trace| trace.moves.iter().copied())
        .collect();
    let mut compared = 0;
    let all = played(&items);
    let end = all.iter().rev().find(|metrics| metrics.subject.flow.bits_per_s.is_some()).expect("a test runs");
    // A minute is kept: the moves are looked for while they are on it.
    let middle = &all[all.len() * 2 / 5];
    for metrics in [middle, end] {
        for bin in &metrics.subject.timeline.bins {
            let in_bin = moves.iter().filter(|one| (bin.from_ns..bin.to_ns).contains(&one.at_ns)).count();
            let counted = bin.moves.smt + bin.moves.cluster + bin.moves.llc + bin.moves.node + bin.moves.socket;
            assert_eq!((counted, bin.unclassed), (in_bin as u64, 0.0), "the bin from {} on", bin.from_ns);
            compared += in_bin;
        }
    }
    assert!(compared > 20, "there were moves to compare: {compared}");
}

#[test]
fn a_selected_bin_tells_its_own_rate_and_whose_its_migrations_are() {
    let items = items();
    let mut derivation = Derivation::default();
    let mut state = State::new(Settings { mode: Mode::Replay, ..Settings::default() });
    for item in items.into_iter().take(90) {
        derivation.advance(item).into_iter().for_each(|metrics| state.receive(metrics));
    }
    let bins = state.metrics().expect("it was played").subject.timeline.bins.clone();
    let told = bins.iter().rev().filter(|bin| bin.moves.node > 0 && bin.bits_per_s.is_some()).take(5);
    let mut compared = 0;
    for bin in told {
        update(&mut state, Action::SelectTime(bin.from_ns.div_ceil(BIN_NS) * BIN_NS));
        let mut buffer = Buffer::empty(Rect::new(0, 0, 200, 60));
        ui::paint(&prepare(&state, derivation.history(), 200, 60), Theme::plain(true), &mut buffer);
        let text = ui::text(&buffer);
        let is_told = |line: &&str| line.contains("migration") && !line.contains("0┼");
        let line = text.lines().find(is_told).expect("what was then");
        let rate = bin.bits_per_s.expect("known") / 1e9;
        assert!(line.contains(&format!("{rate:.1} Gbit/s")) || line.contains(&format!("{rate:.2} Gbit/s")), "{line}");
        let nodes: u64 =
            line.split(" node").filter_map(|before| before.rsplit([' ', '(']).next()?.parse::<u64>().ok()).sum();
        assert_eq!(nodes, bin.moves.node, "every migration to another node has its thread: {line}");
        compared += 1;
    }
    assert!(compared > 1, "some bins had migrations to compare: {compared}");
}

#[test]
fn the_pin_stands_on_the_axis_where_it_was_made() {
    let items = items();
    let mut derivation = Derivation::default();
    let mut state = State::new(Settings { mode: Mode::Replay, ..Settings::default() });
    let (mut before_ns, mut pinned, mut after) = (0, None, 0);
    for item in items {
        if let Item::Event(Event::Pinned { .. }) = &item {
            pinned = Some(before_ns);
        }
        let Some(metrics) = derivation.advance(item) else { continue };
        before_ns = metrics.machine.at_ns;
        after += u64::from(pinned.is_some());
        state.receive(metrics);
        if after == 24 {
            break;
        }
    }
    let pinned_ns = pinned.expect("somebody pins in it");
    let metrics = state.metrics().expect("it was played");
    let pins: Vec<_> = metrics.subject.timeline.incidents.iter().map(|one| (one.at_ns, one.kind)).collect();
    assert_eq!(pins, [(pinned_ns, IncidentKind::Pin)], "two threads at once are one pin");
    let view = prepare(&state, derivation.history(), 200, 60);
    let mut buffer = Buffer::empty(Rect::new(0, 0, 200, 60));
    ui::paint(&view, Theme::plain(true), &mut buffer);
    let text = ui::text(&buffer);
    let line = text.lines().find(|line| line.contains("┬ pin")).expect("it stands on the axis");
    let column = line.chars().position(|c| c == '┬').expect("it is there");
    // The newest cell is the last but two: a blank and the border are behind it.
    let newest_ns = metrics.subject.timeline.bins.last().expect("bins").to_ns.div_ceil(CELL_NS) * CELL_NS;
    let cells = usize::try_from((newest_ns - 1) / CELL_NS - pinned_ns / CELL_NS).expect("few");
    assert_eq!(column, 197 - cells, "in\n{line}");
}
