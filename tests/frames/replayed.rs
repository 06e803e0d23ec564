//! The recording of a benchmark, played up to its last moments: what its user saw.

use super::{frame, painted};
use std::path::Path;
use vnettop::action::{KeyStep, parse_keys};
use vnettop::derive::flow::Connection;
use vnettop::derive::{Derivation, Metrics};
use vnettop::record::Recording;
use vnettop::sample::Item;
use vnettop::state::{Mode, Settings, State};
use vnettop::ui::{self, Colors, Theme};
use vnettop::update::press;
use vnettop::view::prepare;

const THEME: Theme = Theme { colors: Colors::Terminal, utf8: true };

/// A recording at the sample before the last one in which its benchmark moved something.
pub struct Replayed {
    derivation: Derivation,
    state: State,
}

impl Replayed {
    /// Plays it up to there.
    pub fn at_the_benchmark(file: &Path) -> Self {
        let (mut derivation, mut moves) = (Derivation::default(), Vec::new());
        for item in items(file) {
            moves.extend(derivation.advance(item).map(|metrics| has_benchmark(&metrics)));
        }
        let with = moves.iter().enumerate().filter(|(_, moves)| **moves).map(|(at, _)| at);
        let last = with.rev().nth(1).expect("a benchmark runs in two samples of the recording at least");
        let settings = Settings { mode: Mode::Replay, ..Settings::default() };
        let mut replayed = Self { derivation: Derivation::default(), state: State::new(settings) };
        let mut left = last + 1;
        for item in items(file) {
            if left > 0
                && let Some(metrics) = replayed.derivation.advance(item)
            {
                replayed.state.receive(metrics);
                left -= 1;
            }
        }
        replayed
    }

    /// Presses the keys of a `--keys` string.
    pub fn press(&mut self, keys: &str) {
        for step in parse_keys(keys).expect("the keys of the test exist") {
            let KeyStep::Press(key) = step else { panic!("a recording that stands still has no next sample") };
            press(&mut self.state, key);
        }
    }

    /// The figures of this moment.
    pub fn metrics(&self) -> &Metrics {
        self.state.metrics().expect("it was played up to a sample")
    }

    /// The frame as snapshots keep it.
    pub fn frame(&self, width: u16, height: u16) -> String {
        frame(&prepare(&self.state, self.derivation.history(), width, height), THEME)
    }

    /// The frame's symbols, without trailing blanks.
    pub fn text(&self, width: u16, height: u16) -> String {
        let view = prepare(&self.state, self.derivation.history(), width, height);
        ui::text(&painted(&view, THEME))
    }
}

fn items(file: &Path) -> impl Iterator<Item = Item> {
    let mut recording = Recording::open(file).unwrap_or_else(|error| panic!("{error}"));
    std::iter::from_fn(move || recording.next_item().unwrap_or_else(|error| panic!("{error}")))
}

/// A connection carries more than what controls it, and its way was asked for.
fn has_benchmark(metrics: &Metrics) -> bool {
    let busy = |connection: &Connection| connection.bits_per_s.is_some_and(|rate| rate > 1e6);
    !metrics.subject.paths.is_empty() && metrics.subject.flow.connections.iter().any(busy)
}
