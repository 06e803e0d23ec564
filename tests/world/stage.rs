//! A world on a stage: its samples derived, received, and shown; keys pressed; frames as text with their tones.

use super::World;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use vnettop::action::{Step, parse_keys};
use vnettop::derive::{Derivation, Metrics};
use vnettop::effect::Effect;
use vnettop::sample::{Event, Item};
use vnettop::state::{Settings, State};
use vnettop::ui::{self, Theme};
use vnettop::update::press;
use vnettop::view::{Tone, View, prepare};

/// A world and the program that watches it.
pub struct Stage {
    pub world: World,
    pub derivation: Derivation,
    pub state: State,
}

impl Stage {
    /// Nothing sampled yet.
    pub fn new(world: World, settings: Settings) -> Self {
        Self { world, derivation: Derivation::default(), state: State::new(settings) }
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
                Step::Tick => self.tick(),
                Step::Press(key) => effects.extend(press(&mut self.state, key)),
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
        let settings = self.state.settings();
        let theme = Theme { color: settings.color, utf8: settings.utf8 };
        let mut buffer = Buffer::empty(Rect::new(0, 0, view.width, view.height));
        ui::paint(view, theme, &mut buffer);
        buffer
    }

    /// The frame as snapshots keep it: symbols with a `|` at the right edge, then the tone of every cell.
    pub fn frame(&self, width: u16, height: u16) -> String {
        let view = self.view(width, height);
        let mut out = String::new();
        for line in ui::text(&self.paint(&view)).lines() {
            let used: usize = line.chars().map(|c| unicode_width::UnicodeWidthChar::width(c).unwrap_or(1)).sum();
            out.push_str(line);
            out.extend(std::iter::repeat_n(' ', usize::from(width).saturating_sub(used)));
            out.push_str("|\n");
        }
        out.push_str("tones:\n");
        for row in tones(&view) {
            out.push_str(row.trim_end());
            out.push('\n');
        }
        out
    }
}

/// The tone of every cell as a letter; selected cells are `S`, blanks are blank.
fn tones(view: &View) -> Vec<String> {
    let mut grid = vec![vec![' '; usize::from(view.width)]; usize::from(view.height)];
    for canvas in view.layers() {
        let area = canvas.area;
        if canvas.opaque {
            for row in &mut grid[usize::from(area.y)..usize::from(area.y + area.height)] {
                row[usize::from(area.x)..usize::from(area.x + area.width)].fill(' ');
            }
        }
        for span in canvas.spans() {
            let mut x = usize::from(span.x);
            for c in span.text.chars() {
                let wide = unicode_width::UnicodeWidthChar::width(c).unwrap_or(1);
                let letter = if c == ' ' { ' ' } else { letter(span.tone) };
                grid[usize::from(span.y)][x..x + wide].fill(letter);
                x += wide;
            }
        }
        for selected in &canvas.selected {
            let cells = usize::from(selected.x)..usize::from(selected.x + selected.width);
            grid[usize::from(selected.y)][cells].fill('S');
        }
    }
    grid.into_iter().map(|row| row.into_iter().collect()).collect()
}

fn letter(tone: Tone) -> char {
    match tone {
        Tone::Normal => 'n',
        Tone::Muted => '.',
        Tone::Header => 'h',
        Tone::Title => 't',
        Tone::FocusedTitle => 'T',
        Tone::Accent => 'a',
        Tone::Key => 'k',
        Tone::Good => 'g',
        Tone::Warning => 'w',
        Tone::Bad => 'b',
        Tone::Watched => '_',
        Tone::Moved(_) => 'M',
        Tone::Node(number) | Tone::NodeBright(number) | Tone::NodeDim(number) => char::from(b'0' + number % 10),
    }
}
