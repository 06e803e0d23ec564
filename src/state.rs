//! What is chosen and what is shown: settings, focus, sort, filter, selection, overlay, and the newest metrics.
//! Selections are identities, never row numbers. Choices are written by `update` only; samples and outcomes come in
//! through [`State::receive`] and [`State::outcome`]. It reads no clock and draws nothing.

mod all_hosts;
mod axis;
mod choices;
mod columns;
mod cores;
mod lately;
mod link_activity;
mod link_hierarchy;
mod links;
mod memory;
mod notices;
mod overlay;
mod playback;
mod selection;
mod settings;
mod steers;
mod sticky;
mod test_choice;
mod threads;
mod tree;
mod worse_placements;

use crate::action::{KeyMap, Pane, RowId};
use crate::derive::experiment::Verdict;
use crate::derive::{FindingId, Metrics, OverriddenPin, Test};
use crate::effect::Outcome;
use crate::sample::{Event, FoundPlacement, HostState, SteerSetting, SteeredFile, ThreadId, qdisc_kind};
use crate::text::without_error_numbers;

pub use crate::action::{CoreSort, LinkSort, ThreadSort};
pub use crate::derive::test::{LOSING, losing};
pub use all_hosts::AllHosts;
pub use axis::TimeAxis;
pub use choices::{Arrangement, Choices, GraphStyle, Part, ThemeList};
pub use columns::{LinkColumn, ThreadColumn};
pub use cores::{CoreChoices, CoreList};
pub use links::{Hidden, Idle, LinkChoices, LinkList, ListShape};
pub use memory::ScreenMemory;
pub use notices::{Notice, Notices};
pub use overlay::{HelpPage, Overlay};
pub use playback::Playback;
pub use selection::Selection;
pub use settings::{Mode, Settings, Units};
pub use steers::SteerNotices;
pub use sticky::Sticky;
pub(crate) use sticky::napi_of;
pub use test_choice::{TestList, rows};
pub use threads::{ThreadChoices, ThreadList};
pub use tree::LinkRow;
pub use worse_placements::WorsePlacements;

/// Whether the screen follows the samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ScreenPhase {
    /// Every sample is shown.
    #[default]
    Running,
    /// The screen holds what it shows.
    Frozen,
    /// The program is to end.
    Quitting,
}

/// Everything the screen depends on, but for the history.
#[derive(Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is another question")]
pub struct State {
    pub(crate) settings: Settings,
    pub(crate) phase: ScreenPhase,
    pub(crate) focus: Pane,
    /// Which links are shown, and how.
    pub links: LinkList,
    pub(crate) cores: CoreList,
    pub(crate) threads: ThreadList,
    pub(crate) tests: TestList,
    /// What is chosen of the axis of the graph.
    pub axis: TimeAxis,
    /// The focused pane has the whole screen.
    pub(crate) is_zoomed: bool,
    pub(crate) overlay: Overlay,
    pub(crate) notices: Notices,
    /// Whether new workers of pinned processes are pinned as well.
    pub sticky: Sticky,
    /// What was said of changed settings of links.
    pub steers: SteerNotices,
    /// Placements that a card found worse.
    pub worse: WorsePlacements,
    /// What searches have found, for kinds of tests.
    pub found: Vec<FoundPlacement>,
    pub(crate) themes: ThemeList,
    pub(crate) arrangement: Arrangement,
    /// A key of a pane was pressed in bands: panes are shown until bands are asked for again.
    pub(crate) reveals_panes: bool,
    pub(crate) graph: GraphStyle,
    keys: KeyMap,
    parts: Vec<Part>,
    /// The recording that is replayed, as far as it is known; none where nothing is, or where it can only be played from its start to
    /// its end.
    pub playback: Option<Playback>,
    /// A recording runs.
    pub is_recorded: bool,
    /// Which of how many hosts it is, counted from 1; none of one machine alone.
    pub place: Option<(usize, usize)>,
    /// How the host stands that is reached over ssh; none of this machine.
    pub connection: Option<HostState>,
    shown: Option<Metrics>,
    waiting: Option<Metrics>,
    /// How far a frozen screen is behind the history, which goes on: finished one-second bins since what is shown.
    pub(crate) behind_s: usize,
    /// When the last pin was seen, monotonic ns; none before it, or when it was taken back.
    pub(crate) pinned_at_ns: Option<u64>,
    /// When it was said that no core is free, monotonic ns: who asks again soon after that insists.
    pub(crate) told_no_free_core_ns: Option<u64>,
    /// The first sample that was received, monotonic ns.
    first_ns: Option<u64>,
    had_card: bool,
    /// The card opens by itself when it is ready, once, unless something else is open then.
    pub opens_card: bool,
}

/// One sentence for all pins that were found undone at once.
fn undone(pins: &[OverriddenPin], keys: &KeyMap) -> Option<String> {
    let (first, more) = (pins.first()?.sentence(), pins.len() - 1);
    Some(if more == 0 { first } else { format!("{first} (and {more} more: {})", keys.key("findings")) })
}

/// The first queue speaks for all of them; each interrupt for itself.
fn is_told(file: &SteeredFile) -> bool {
    file.queue == 0 || file.setting == SteerSetting::Interrupt
}

/// `rps_cpus of veth2`
fn steered(metrics: &Metrics, file: &SteeredFile) -> String {
    file.setting.of(metrics.machine.link(file.link).map_or("a link", |link| &link.facts.name))
}

/// `iperf3 server`
fn called(metrics: &Metrics, id: ThreadId) -> String {
    let thread = metrics.machine.threads.iter().find(|thread| thread.sample.id == id);
    thread.map_or_else(|| id.tid.to_string(), |one| format!("{} {}", one.sample.name, one.sample.role()))
}

impl State {
    /// Nothing received, nothing chosen.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self { settings, parts: Choices::default().parts, ..Self::default() }
    }

    /// Takes the newest metrics. A frozen live screen keeps showing what it shows and remembers the newest; a frozen
    /// replay is only sent what was stepped to, so it shows it.
    pub fn receive(&mut self, metrics: Metrics) {
        self.first_ns.get_or_insert(metrics.machine.at_ns);
        self.sticky.observe(&metrics);
        let holds = self.phase == ScreenPhase::Frozen && self.settings.mode != Mode::Replay;
        let held_ns = self.shown.as_ref().filter(|_| holds).map(|shown| shown.machine.at_ns);
        // The list belongs to what is shown.
        let metrics = if held_ns.is_some() { self.tests.clone().apply(metrics) } else { self.tests.apply(metrics) };
        let had_card = self.had_card;
        self.tell(&metrics);
        if self.opens_card && self.had_card && !had_card {
            self.opens_card = false;
            if self.overlay == Overlay::None {
                self.overlay = Overlay::Card { scroll: 0 };
            }
        }
        if let Some(held_ns) = held_ns {
            let second = |at_ns: u64| usize::try_from(at_ns / 1_000_000_000).unwrap_or(usize::MAX);
            self.behind_s = second(metrics.machine.at_ns).saturating_sub(second(held_ns));
            self.waiting = Some(metrics);
        } else {
            self.show(metrics);
        }
    }

    /// Shows the outcome of an effect: its sentences replace those of the effect before.
    pub fn outcome(&mut self, outcome: &Outcome) {
        let lines = outcome.lines.iter().map(|line| (line.warning, line.text.clone()));
        self.notices.replace(lines);
        if let Some(newest) = self.waiting.as_ref().or(self.shown.as_ref()) {
            self.sticky.done(&outcome.events, newest);
        }
    }

    /// One sentence for the person at the screen; it replaces those before.
    pub fn notice(&mut self, warning: bool, text: impl Into<String>) {
        self.notices.replace(std::iter::once((warning, without_error_numbers(&text.into()))));
    }

    /// Adds a sentence to those of the last effect: something happened that was not asked for.
    pub(crate) fn add_notice(&mut self, warning: bool, text: &str) {
        self.notices.add(Notice { warning, text: without_error_numbers(text), finding: None });
    }

    /// Remembers when threads were pinned, adds notices of a recording's pins and of undone pins, and says once when the card
    /// is there.
    fn tell(&mut self, metrics: &Metrics) {
        self.notices.age(metrics.machine.at_ns);
        self.worse.observe(metrics);
        let had_card = std::mem::replace(&mut self.had_card, metrics.subject.card.is_some());
        let mut reported = Vec::new();
        for event in &metrics.machine.events {
            match event {
                Event::Pinned { thread, got, .. } => {
                    self.pinned_at_ns = Some(metrics.machine.at_ns);
                    reported.push(format!("{} pinned to core {got}", called(metrics, *thread)));
                }
                Event::Restored { thread, got, .. } => {
                    self.pinned_at_ns = None;
                    reported.push(format!("{} restored to cores {got}", called(metrics, *thread)));
                }
                Event::Steered { file, got, .. } if is_told(file) => {
                    self.pinned_at_ns = Some(metrics.machine.at_ns);
                    reported.push(format!("{} set to {}", steered(metrics, file), qdisc_kind(got)));
                }
                Event::Unsteered { file, got, .. } if is_told(file) => {
                    reported.push(format!("{} restored to {got}", steered(metrics, file)));
                }
                _ => {}
            }
        }
        if self.settings.mode == Mode::Replay && !reported.is_empty() {
            self.notice(false, format!("in the recording: {}", reported.join(", ")));
        }
        if metrics.subject.card.is_some() && !had_card {
            let key = self.keys().key("card");
            let is_worse = metrics.subject.card.as_ref().is_some_and(|card| card.verdict == Verdict::Worse);
            if is_worse && self.settings.mode != Mode::Replay {
                let undo = self.keys().key("undo");
                self.notice(
                    true,
                    format!("{} made it worse: {undo} undoes it ({key}: before and after)", self.change()),
                );
            } else {
                self.notice(false, format!("first comparison: press {key} to see before and after {}", self.change()));
            }
        }
        if self.settings.mode != Mode::Replay {
            for (warning, sentence) in self.steers.observe(metrics) {
                self.add_notice(warning, &sentence);
            }
        }
        if let Some(text) = undone(&metrics.machine.undone, self.keys()) {
            self.notices.add(Notice { warning: true, text, finding: Some(FindingId::MaskChanged) });
        }
    }

    /// Of several tests the screen is about this one.
    #[must_use]
    pub fn is_about(&self, test: &Test) -> bool {
        self.shown.as_ref().is_some_and(|metrics| metrics.tests.len() > 1 && metrics.test == Some(test.number))
    }

    /// Makes what is on screen that of the test that has been chosen.
    pub(crate) fn apply_test(&mut self) {
        self.shown = self.shown.take().map(|metrics| self.tests.apply(metrics));
        self.waiting = self.waiting.take().map(|metrics| self.tests.clone().apply(metrics));
    }

    /// How long samples have been received, ns.
    #[must_use]
    pub(crate) fn watched_ns(&self) -> u64 {
        let newest_ns = self.newest().map_or(0, |metrics| metrics.machine.at_ns);
        newest_ns.saturating_sub(self.first_ns.unwrap_or(newest_ns))
    }

    /// The metrics on screen.
    #[must_use]
    pub fn metrics(&self) -> Option<&Metrics> {
        self.shown.as_ref()
    }

    /// The newest metrics, on screen or not: what effects are decided by.
    #[must_use]
    pub fn newest(&self) -> Option<&Metrics> {
        self.waiting.as_ref().or(self.shown.as_ref())
    }

    /// The program is to end.
    #[must_use]
    pub fn quitting(&self) -> bool {
        self.phase == ScreenPhase::Quitting
    }

    /// The screen holds what it shows; a replay must not go on by itself.
    #[must_use]
    pub fn frozen(&self) -> bool {
        self.phase == ScreenPhase::Frozen
    }

    /// The sentences that the last thing done has left.
    #[must_use]
    pub fn notices(&self) -> &Notices {
        &self.notices
    }

    /// Forgets the notices: they have been shown.
    pub fn forget_notices(&mut self) {
        self.notices.clear();
    }

    /// What lies over the panes.
    #[must_use]
    pub fn overlay(&self) -> &Overlay {
        &self.overlay
    }

    /// What is shown is old: nothing comes from that host now.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        matches!(self.connection, Some(HostState::Silent | HostState::Lost { .. } | HostState::Connecting))
    }

    /// What was decided at the start, and changed by keys since.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Threads on screen that vnettop pinned.
    #[must_use]
    pub fn pins(&self) -> usize {
        self.shown.as_ref().map_or(0, |metrics| metrics.threads.iter().filter(|thread| thread.pinned).count())
    }

    /// Settings of links on screen that vnettop changed.
    #[must_use]
    pub fn steers(&self) -> usize {
        self.shown.as_ref().map_or(0, |metrics| metrics.machine.steers.len())
    }

    /// What stands, at the start or end of a sentence.
    fn change(&self) -> &'static str {
        match (self.pins(), self.steers()) {
            (0, 1..) => "the steer",
            (_, 0) => "the pin",
            _ => "pin and steer",
        }
    }

    /// Something stands that vnettop has pinned or steered.
    #[must_use]
    pub fn is_placed(&self) -> bool {
        self.pins() + self.steers() > 0
    }

    /// The row whose details can be shown: the selected one of the focused pane, else of cores the one looked at, else the first.
    pub(crate) fn row(&self) -> Option<RowId> {
        let metrics = self.metrics()?;
        match self.focus {
            Pane::Links => {
                let first = || self.links.rows().first().map(|row| LinkList::id(metrics, row));
                self.links.selection.id().or_else(first).map(RowId::Link)
            }
            Pane::Cores => self.cores.looked_at().map(|at| RowId::Core(metrics.machine.cores[at].place.core)),
            Pane::Threads => {
                let first = || self.threads.rows().first().map(|&at| metrics.threads[at].sample.id);
                self.threads.selection.id().or_else(first).map(RowId::Thread)
            }
            Pane::Test => None,
        }
    }

    /// Lets the screen go on with the newest metrics.
    pub(crate) fn thaw(&mut self) {
        self.phase = ScreenPhase::Running;
        if let Some(metrics) = self.waiting.take() {
            let metrics = self.tests.apply(metrics);
            self.show(metrics);
        }
    }

    /// Brings the rows in line with what is chosen.
    pub(crate) fn arrange(&mut self) {
        if let Some(metrics) = &self.shown {
            self.links.arrange(metrics);
            self.cores.arrange(metrics);
            self.threads.arrange(metrics);
        }
    }

    fn show(&mut self, metrics: Metrics) {
        self.links.follow(&metrics);
        self.axis.follow(&metrics.subject.timeline);
        self.threads.follow(&metrics);
        self.withdraw_proposal(&metrics);
        self.shown = Some(metrics);
        self.behind_s = 0;
        self.arrange();
    }
}
