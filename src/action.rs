//! What a person can ask for, as values: the keys, the mouse, the actions, and the one KEYS table that the help
//! overlay, the footer and docs/screen.md are made from. It knows identities (`sample`), never the terminal and never the
//! state: what an action does is `update`'s business.

mod key_groups;
mod keymap;
mod keys;
mod mouse;
mod parse;
mod sort;

use crate::sample::{CoreId, LinkKey, ProposalPart, ThreadId};

pub use key_groups::{HelpLine, help_groups};
pub use keymap::KeyMap;
pub use keys::{Binding, KEYS};
pub use mouse::MOUSE;
pub use parse::{parse_key, parse_keys};
pub use sort::{CoreSort, LinkSort, SortColumn, ThreadSort};

/// A key as pressed, free of any terminal library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names on the keys")]
pub enum Key {
    Char(char),
    Ctrl(char),
    Enter,
    Esc,
    Tab,
    BackTab,
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
    Backspace,
    Insert,
    Delete,
    F(u8),
}

/// One step of a `--keys` string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyStep {
    /// Press this key.
    Press(Key),
    /// Wait for the next sample.
    Tick,
}

/// What the mouse did, in cells counted from the top left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "x is the column, y the row")]
pub enum Mouse {
    Click { x: u16, y: u16 },
    ScrollUp { x: u16, y: u16 },
    ScrollDown { x: u16, y: u16 },
}

/// A pane that can have the focus.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[allow(missing_docs, reason = "the words of the house")]
pub enum Pane {
    #[default]
    Links,
    Cores,
    Threads,
    Test,
}

impl Pane {
    /// In the order of Tab.
    pub const ALL: [Self; 4] = [Self::Test, Self::Links, Self::Cores, Self::Threads];
    /// The panes with rows that can be selected.
    pub const LISTS: [Self; 3] = [Self::Links, Self::Cores, Self::Threads];
}

/// One link, unmistakable: a reused ifindex has another `born`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "see LinkFacts")]
pub struct LinkId {
    pub key: LinkKey,
    pub born: u64,
}

/// A row of a pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the panes")]
pub enum RowId {
    Link(LinkId),
    Core(CoreId),
    Thread(ThreadId),
}

/// What is done beside the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorldAction {
    /// Stop the program until it is continued.
    Suspend,
    /// Put a mark into the recording.
    Mark,
    /// Write a report.
    Report,
    /// Write the card that is shown.
    SaveCard,
    /// Begin or end a recording.
    Record,
    /// Save the last minutes as a recording.
    SaveLast,
    /// Save what the screen is like now to the configuration.
    SaveSettings,
}

/// A change of the text being typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edit {
    /// Add a character.
    Insert(char),
    /// Take the last character away.
    Erase,
    /// Take all of it away.
    EraseAll,
}

/// Where to go in a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seek {
    /// To the next sample, and stay there.
    Step,
    /// To the sample before, and stay there.
    StepBack,
    /// So many seconds forward, or back.
    By(i8),
    /// To this moment, recorded monotonic ns.
    To(u64),
    /// To the start.
    Start,
    /// To the end.
    End,
    /// To the next pin, mark, dip or loss.
    NextHighlight,
    /// To the one before.
    PreviousHighlight,
}

/// A movement of the selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names on the keys")]
pub enum Motion {
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
}

/// What listens to the keys at the moment: first the panes, then what lies over them, at last a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::VariantArray)]
pub enum KeyContext {
    /// The panes.
    Main,
    /// The panes of a replay.
    Replay,
    /// The screen of all hosts.
    Hosts,
    /// Something that is only read: the help, or why there is no placement.
    Help,
    /// The list of findings.
    Findings,
    /// The paths of the flows.
    Paths,
    /// Every drop of the machine.
    Drops,
    /// Where packets and threads wait.
    Latency,
    /// What one core does.
    Profile,
    /// Before and after a pin.
    Card,
    /// The details of a row.
    Details,
    /// The proposed placement, waiting for yes or no.
    Proposal,
    /// A text being typed: a filter or a list of cores.
    Text,
}

/// Everything a person can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// End the program.
    Quit,
    /// Move the selection of the focused pane, or scroll the overlay.
    Move(Motion),
    /// Give the focus to the next pane.
    NextPane,
    /// Give the focus to the pane before.
    PreviousPane,
    /// Give the focus to this pane.
    Focus(Pane),
    /// Select this link.
    SelectLink(LinkId),
    /// Select this core.
    SelectCore(CoreId),
    /// Select this thread.
    SelectThread(ThreadId),
    /// Move the selection of a pane by this many rows, wherever the focus is.
    Scroll(Pane, i8),
    /// Show the next host, and after the last one all of them.
    NextHost,
    /// Show this host, by its place.
    OpenHost(usize),
    /// Make the screen about the next test.
    NextTest,
    /// Make the screen about the test before.
    PreviousTest,
    /// Make the screen about this test.
    SelectTest(u32),
    /// Begin to type a filter.
    StartFilter,
    /// Sort by the next column.
    NextSort,
    /// Sort by this column, or turn its order round.
    SortBy(SortColumn),
    /// Turn the order round.
    ReverseSort,
    /// Links as a tree or as a flat list.
    ToggleTree,
    /// Show or hide what is idle in this pane; none: in the focused one.
    ToggleIdle(Option<Pane>),
    /// Bits, bytes or packets.
    ToggleUnits,
    /// Hold the screen, or let it go on.
    ToggleFreeze,
    /// Sample more often.
    Faster,
    /// Sample less often.
    Slower,
    /// Show where the busy threads should be.
    Propose,
    /// Pin new workers of pinned processes as well, or no longer.
    ToggleSticky,
    /// Put back every mask that was replaced.
    Undo,
    /// Show every finding with its numbers.
    Findings,
    /// Show the paths of the flows, hop by hop.
    Paths,
    /// Show every packet that the kernel drops.
    Drops,
    /// Show where packets and threads wait, and measure it meanwhile.
    Latency,
    /// Show what one core does, and sample it meanwhile.
    Profile,
    /// Show the functions of that, or the stages again.
    ToggleFunctions,
    /// Time softirqs exactly, or take the share sampled at clock ticks.
    ToggleExactSoftirqs,
    /// Show before and after the pin.
    Card,
    /// Choose cores for the selected thread by hand.
    ChooseCores,
    /// Do something that changes nothing that is chosen.
    World(WorldAction),
    /// Select the time before on the graph.
    Earlier,
    /// Show everything in the next colour theme.
    NextTheme,
    /// Select the bin after the selected one.
    Later,
    /// Select this instant on the graph, monotonic ns.
    SelectTime(u64),
    /// Select no time.
    ReleaseTime,
    /// Show more time on the graph.
    MoreTime,
    /// Show less time on the graph, finer.
    LessTime,
    /// Show a running test in bands, or its panes.
    ToggleBands,
    /// Give a pane the whole screen, or its place again; none: the focused one.
    ToggleZoom(Option<Pane>),
    /// Show the details of the selected row.
    Details,
    /// Go to another moment of a replay.
    Seek(Seek),
    /// Open the help overlay; from its first page its second, from that nothing.
    Help,
    /// Show the other page of the help.
    TurnHelpPage,
    /// Close what lies over the panes and press this key.
    Press(Key),
    /// Change the text being typed.
    Edit(Edit),
    /// Take this thread off the proposal, or on again; none: the chosen one.
    TogglePart(Option<ProposalPart>),
    /// Say yes to the overlay.
    Accept,
    /// Leave the overlay; without one, clear filter and selection.
    Cancel,
}
