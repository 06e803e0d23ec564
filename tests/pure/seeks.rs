//! A recording of several frames and checkpoints, gone through in any order: what is shown is what playing up to there shows.

use crate::fixture::load::Load;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::collections::BTreeMap;
use std::time::Duration;
use vnettop::app::Player;
use vnettop::derive::{Derivation, HighlightKind};
use vnettop::record::{Recorder, Recording, StoredIn};
use vnettop::sample::{Item, Sample};
use vnettop::state::{Mode, Settings, State};
use vnettop::ui::{self, Colors, Theme};
use vnettop::view::prepare;

const SECOND_NS: u64 = 1_000_000_000;
const LENGTH_S: u64 = 300;

fn state() -> State {
    State::new(Settings { mode: Mode::Replay, ..Settings::default() })
}

fn frame(state: &State, derivation: &Derivation) -> Buffer {
    let mut buffer = Buffer::empty(Rect::new(0, 0, 120, 40));
    let theme = Theme { colors: Colors::Terminal, utf8: true };
    ui::paint(&prepare(state, derivation.history(), 120, 40), theme, &mut buffer);
    buffer
}

#[test]
fn any_second_of_a_recording_of_several_frames_is_shown_as_playing_shows_it() {
    let directory = tempfile::tempdir().expect("a directory");
    for name in ["run.zst", "run.jsonl"] {
        let path = directory.path().join(name);
        let mut recorder = Recorder::create(&path).expect("a new file");
        for item in Load::new(20, 128, SECOND_NS / 2).take(usize::try_from(LENGTH_S * 2).expect("small")) {
            recorder.write(&item).expect("writable");
        }
        recorder.finish().expect("writable");
        // One order for each file, so that both together take no longer than one alone.
        let targets: &[u64] = if name == "run.zst" { &[299, 31, 150, 151, 0, 400, 89] } else { &[298, 61, 200] };
        let mut player = Player::open(StoredIn::File(path.clone())).expect("readable").expect("it has samples");
        let first_ns = player.first_ns();
        let wanted: Vec<u64> = targets.iter().map(|target| first_ns + (*target).min(LENGTH_S) * SECOND_NS).collect();
        let (mut shown_live, mut derivation, mut frames) = (state(), Derivation::default(), BTreeMap::new());
        let mut recording = Recording::open(&path).expect("a recording");
        while let Some(item) = recording.next_item().expect("good lines") {
            let Some(metrics) = derivation.advance(item) else { continue };
            let at_ns = metrics.machine.at_ns;
            shown_live.receive(metrics);
            if at_ns == first_ns + (LENGTH_S * 2 - 1) * SECOND_NS / 2 || wanted.contains(&at_ns) {
                frames.insert(at_ns, frame(&shown_live, &derivation));
            }
        }
        let mut playback = player.playback(Some(1.0));
        player.receive(&mut playback, u64::MAX, Duration::from_mins(2));
        assert!(playback.is_whole, "it was read to its end");
        let mut sought = state();
        for to_ns in wanted {
            let start = player.start_at(to_ns, Some(&mut sought)).expect("it can be gone to");
            let metrics = start.metrics.expect("a sample");
            let at_ns = metrics.machine.at_ns;
            sought.receive(metrics);
            let (expected_ns, expected) = frames.range(..=to_ns).next_back().expect("it was played");
            assert_eq!(at_ns, *expected_ns, "{name}: the last sample not after {} s", (to_ns - first_ns) / SECOND_NS);
            let shown = frame(&sought, &start.derivation);
            let lines = |buffer: &Buffer| ui::text(buffer);
            assert!(
                shown == *expected,
                "{name}, {} s:\n{}\n{}",
                (to_ns - first_ns) / SECOND_NS,
                lines(&shown),
                lines(expected)
            );
        }
    }
}

/// The threads of the benchmark migrate in every sample, but for half a minute in which they stay where they are.
#[test]
fn n_goes_to_the_first_migration_after_a_time_without_and_every_ten_seconds_while_they_go_on() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("moves.jsonl");
    let mut recorder = Recorder::create(&path).expect("a new file");
    let (begin_s, quiet) = (98_000, 30..60);
    let mut stays: Option<Sample> = None;
    for mut item in Load::new(4, 8, SECOND_NS / 2).take(180) {
        if let Item::Sample(sample) = &mut item {
            let is_quiet = quiet.contains(&(sample.at_ns / SECOND_NS - begin_s));
            let from = stays.take().filter(|_| is_quiet).unwrap_or_else(|| (**sample).clone());
            for (thread, still) in sample.threads.iter_mut().zip(&from.threads).filter(|_| is_quiet) {
                (thread.core, thread.migrations) = (still.core, still.migrations);
            }
            stays = Some(from).filter(|_| is_quiet);
        }
        recorder.write(&item).expect("writable");
    }
    recorder.finish().expect("writable");
    let mut player = Player::open(StoredIn::File(path)).expect("readable").expect("it has samples");
    let mut playback = player.playback(Some(1.0));
    player.receive(&mut playback, u64::MAX, Duration::from_mins(2));
    assert!(playback.is_whole, "it was read to its end");
    playback.highlights.retain(|highlight| highlight.kind == HighlightKind::Migration);
    let (mut at_ns, mut stops) = (player.first_ns(), Vec::new());
    while let Some(next) = playback.next(at_ns) {
        at_ns = next.seen_ns;
        stops.push((at_ns - player.first_ns()) / SECOND_NS);
    }
    assert_eq!(stops, [0, 10, 20, 59, 69, 79, 89], "seconds after the start at which n stops");
}
