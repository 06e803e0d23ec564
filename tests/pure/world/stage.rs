//! A world on a stage: its samples derived, received, and shown; keys pressed; frames as text with their tones.

use super::World;
use crate::frames;
use ratatui::buffer::Buffer;
use vnettop::action::{KeyStep, parse_keys};
use vnettop::derive::{Derivation, Metrics};
use vnettop::effect::Effect;
use vnettop::sample::{Event, Item};
use vnettop::state::{Settings, State};
use vnettop::ui::{self, Colors, Theme};
use vnettop::update::press;
use vnettop::view::{View, prepare};

/// A world and the program that watches it.
pub struct Stage {
    pub world: World,
    pub derivation: Derivation,
    pub state: State,
    pub colors: Colors,
}

impl Stage {
    /// Nothing sampled yet.
    pub fn new(world: World, settings: Settings) -> Self {
        Self { world, derivation: Derivation::default(), state: State::new(settings), colors: Colors::Terminal }
    }

    /// Default settings, after so many seconds of samples each half a second.
    pub fn after(seconds: usize, world: World) -> Self {
        Self::with(seconds, world, Settings::default())
    }

    /// The same with other settings.
    pub fn with(seconds: usize, world: World, settings: Settings) -> Self {
        let mut stage = Self::new(world, settings);
        for _ in 0..=seconds * 2 {
            stage.tick();
        }
        stage
    }

    /// So many more seconds of samples; the world may change before each.
    pub fn play(&mut self, seconds: usize, mut change: impl FnMut(&mut World, usize)) {
        for second in 0..seconds {
            change(&mut self.world, second);
            self.tick();
            self.tick();
        }
    }

    /// One sample, half a second after the one before.
    pub fn tick(&mut self) {
        let metrics = self.derive();
        self.state.receive(metrics);
    }

    /// One sample, derived but not received.
    pub fn derive(&mut self) -> Metrics {
        let sample = self.world.tick(0.5);
        self.derivation.advance(Item::Sample(Box::new(sample))).expect("a sample gives metrics")
    }

    /// Something that was done.
    pub fn event(&mut self, event: Event) {
        assert!(self.derivation.advance(Item::Event(event)).is_none(), "an event gives no metrics");
    }

    /// Presses the keys of a `--keys` string; returns the effects asked for.
    pub fn press(&mut self, keys: &str) -> Vec<Effect> {
        let mut effects = Vec::new();
        for step in parse_keys(keys).expect("the keys of the test exist") {
            match step {
                KeyStep::Tick => self.tick(),
                KeyStep::Press(key) => effects.extend(press(&mut self.state, key)),
            }
        }
        effects
    }

    pub fn view(&self, width: u16, height: u16) -> View {
        prepare(&self.state, self.derivation.history(), width, height)
    }

    /// The painted symbols, without trailing blanks.
    pub fn text(&self, width: u16, height: u16) -> String {
        ui::text(&self.paint(&self.view(width, height)))
    }

    pub fn paint(&self, view: &View) -> Buffer {
        frames::painted(view, self.theme())
    }

    /// The frame as snapshots keep it.
    pub fn frame(&self, width: u16, height: u16) -> String {
        frames::frame(&self.view(width, height), self.theme())
    }

    fn theme(&self) -> Theme {
        let settings = self.state.settings();
        Theme { colors: self.colors, utf8: settings.utf8 }
    }
}
