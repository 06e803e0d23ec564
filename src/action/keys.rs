//! The KEYS table: every key, what it does, where it is valid, and the words for people. Nothing else in the program
//! knows which key does what.

use super::{Action, Edit, Key, KeyContext, Motion, Pane, Seek, WorldAction};
use strum::VariantArray;

/// One row of the table.
#[derive(Debug)]
pub struct Binding {
    /// Name by which its keys are chosen (`[keys]` of config.toml), the same for rows that belong together; empty when its keys
    /// cannot be chosen. The first row of a name has all its usual keys; a later one may lack keys that mean something else in
    /// its context.
    pub name: &'static str,
    /// Any of these, unless others were chosen.
    pub keys: &'static [Key],
    /// What it asks for.
    pub action: Action,
    /// Where it is valid.
    pub contexts: &'static [KeyContext],
    /// What it does, for the help overlay and docs/screen.md; neighbours with the same words share a line.
    pub help: &'static str,
    /// One word for the footer; empty where the footer does not name it.
    pub hint: &'static str,
}

const MAIN: &[KeyContext] = &[KeyContext::Main, KeyContext::Replay];
/// A key may do something else in a replay than live: only a replay can go back in time.
const LIVE: &[KeyContext] = &[KeyContext::Main];
const REPLAY: &[KeyContext] = &[KeyContext::Replay];
const EVERYWHERE: &[KeyContext] = KeyContext::VARIANTS;
/// Wherever no text is typed.
const SCROLLS: &[KeyContext] = EVERYWHERE.split_last().expect("there are places").1;
/// What lies over the panes and takes no text.
const READ: &[KeyContext] = SCROLLS.split_at(WATCHED.len()).1;
/// The screens that lie under everything.
const WATCHED: &[KeyContext] = &[KeyContext::Main, KeyContext::Replay, KeyContext::Hosts];
const HOSTS: &[KeyContext] = &[KeyContext::Hosts];
/// Where a finding or a card may be answered at once.
const ANSWERS: &[KeyContext] =
    &[KeyContext::Main, KeyContext::Replay, KeyContext::Hosts, KeyContext::Findings, KeyContext::Card];
/// Where one list is opened instead of another, and closed.
const LISTS: &[KeyContext] = &[
    KeyContext::Main,
    KeyContext::Replay,
    KeyContext::Hosts,
    KeyContext::Findings,
    KeyContext::Paths,
    KeyContext::Drops,
    KeyContext::Latency,
    KeyContext::Profile,
    KeyContext::Card,
];
/// Where undo is obeyed though the footer has no room for it.
const BOXES: &[KeyContext] = &[
    KeyContext::Help,
    KeyContext::Paths,
    KeyContext::Drops,
    KeyContext::Latency,
    KeyContext::Profile,
    KeyContext::Details,
    KeyContext::Proposal,
];
const UNDO: &str = "undo: restore every replaced mask and setting";
const HOST: &str = "next host, then all; with one: row left";
const MOVES: &str = "select a row (many cores: node by node)";
const LEAVES: &str = "close the overlay; else clear notices, filter and selection";
const CARD: &str = "the card: before and after the pin";
const FINDINGS: &str = "every finding in full";
const PATHS: &str = "the path of each flow, hop by hop";
const DROPS: &str = "drops: every lost packet, by reason";
const LOOKS: &str = "where packets and threads wait; what a core does";
const NEXT_TEST: &str = "next test, if there are several";
const PREVIOUS_TEST: &str = "previous test";
const SPACE: &str = "pause/resume; proposal: thread off/on";
const WRITES: &str = "write an HTML report of everything so far";
const SAVES_CARD: &str = "on the card: save it as text, Markdown, JSON";
const SAVES: &str = "save the last minutes as a recording";
const ENTER: &str = "all figures of a row; of hosts: open one";
const IDLE: &str = "hide or show what is idle for 5 s";
const TIME: &str = "select a time on the graph: back, forward";
const SPAN: &str = "graph: more time, less time";
const PAGES: &str = "ten rows up or down, first row, last row";
const HELP: &str = "this help; again: marks and words";
const SEEK: &str = "in a replay: 5 s back or forward";
const ENDS: &str = "in a replay: start or end of the recording";
const EVENTS: &str = "in a replay: next or previous pin, marker, dip, loss or migration";
const STEPS: &str = "in a replay: one sample back or forward, and pause";
const PACE: &str = "sample (or play) faster, slower";
const APPLIES: &str = "apply the proposal";
const OPENS: &str = "one pane alone, and back: focused; links, cores, threads, test";
const PANES: &str = "next pane, previous pane";

const fn row(
    name: &'static str,
    keys: &'static [Key],
    action: Action,
    contexts: &'static [KeyContext],
    help: &'static str,
    hint: &'static str,
) -> Binding {
    Binding { name, keys, action, contexts, help, hint }
}

/// Every key there is, in the order people read them.
pub const KEYS: &[Binding] = &[
    row("up", &[Key::Up, Key::Char('k')], Action::Move(Motion::Up), SCROLLS, MOVES, ""),
    row("down", &[Key::Down, Key::Char('j')], Action::Move(Motion::Down), SCROLLS, MOVES, ""),
    row("left", &[Key::Left], Action::Move(Motion::Left), LIVE, MOVES, ""),
    // Only keys that were chosen: the arrow goes back in time there.
    row("left", &[], Action::Move(Motion::Left), REPLAY, MOVES, ""),
    row("right", &[Key::Right, Key::Char('l')], Action::Move(Motion::Right), LIVE, MOVES, ""),
    row("right", &[Key::Char('l')], Action::Move(Motion::Right), REPLAY, MOVES, ""),
    row("page_up", &[Key::PageUp], Action::Move(Motion::PageUp), SCROLLS, PAGES, ""),
    row("page_down", &[Key::PageDown], Action::Move(Motion::PageDown), SCROLLS, PAGES, ""),
    row("first", &[Key::Home, Key::Char('g')], Action::Move(Motion::Home), LIVE, PAGES, ""),
    row("first", &[Key::Home, Key::Char('g')], Action::Move(Motion::Home), READ, PAGES, ""),
    row("first", &[Key::Home, Key::Char('g')], Action::Move(Motion::Home), HOSTS, PAGES, ""),
    row("first", &[Key::Char('g')], Action::Move(Motion::Home), REPLAY, PAGES, ""),
    row("last", &[Key::End, Key::Char('G')], Action::Move(Motion::End), LIVE, PAGES, ""),
    row("last", &[Key::End, Key::Char('G')], Action::Move(Motion::End), READ, PAGES, ""),
    row("last", &[Key::End, Key::Char('G')], Action::Move(Motion::End), HOSTS, PAGES, ""),
    row("last", &[Key::Char('G')], Action::Move(Motion::End), REPLAY, PAGES, ""),
    row("seek_back", &[Key::Left, Key::Char('[')], Action::Seek(Seek::By(-5)), REPLAY, SEEK, "-5 s"),
    row("seek_forward", &[Key::Right, Key::Char(']')], Action::Seek(Seek::By(5)), REPLAY, SEEK, "+5 s"),
    row("seek_start", &[Key::Home], Action::Seek(Seek::Start), REPLAY, ENDS, "start"),
    row("seek_end", &[Key::End], Action::Seek(Seek::End), REPLAY, ENDS, ""),
    row("next_event", &[Key::Char('n')], Action::Seek(Seek::NextHighlight), REPLAY, EVENTS, "event"),
    row("previous_event", &[Key::Char('N')], Action::Seek(Seek::PreviousHighlight), REPLAY, EVENTS, ""),
    row("step_back", &[Key::Char('{')], Action::Seek(Seek::StepBack), REPLAY, STEPS, ""),
    row("step", &[Key::Char('}')], Action::Seek(Seek::Step), REPLAY, STEPS, ""),
    row("next_pane", &[Key::Tab], Action::NextPane, MAIN, PANES, "pane"),
    row("previous_pane", &[Key::BackTab], Action::PreviousPane, MAIN, PANES, ""),
    row("details", &[Key::Enter], Action::Details, MAIN, ENTER, ""),
    row("details", &[Key::Enter], Action::Cancel, &[KeyContext::Details], ENTER, ""),
    row("details", &[Key::Enter], Action::Details, HOSTS, ENTER, "open"),
    row("next_host", &[Key::Char('h')], Action::NextHost, MAIN, HOST, "host"),
    row("next_host", &[Key::Char('h')], Action::NextHost, HOSTS, HOST, "host"),
    row("propose", &[Key::Char('p')], Action::Propose, ANSWERS, "propose cores; again: pin threads to them", "pin"),
    row("propose", &[Key::Char('p')], Action::Accept, &[KeyContext::Proposal], APPLIES, "apply"),
    row("accept", &[Key::Enter], Action::Accept, &[KeyContext::Proposal], APPLIES, ""),
    row("auto_pin", &[Key::Char('P')], Action::ToggleSticky, MAIN, "auto-pin threads born later (on/off)", ""),
    row("undo", &[Key::Char('U')], Action::Undo, ANSWERS, UNDO, "undo"),
    row("undo", &[Key::Char('U')], Action::Undo, BOXES, UNDO, ""),
    row("card", &[Key::Char('c')], Action::Card, ANSWERS, CARD, "card"),
    row(
        "findings",
        &[Key::Char('F')],
        Action::Findings,
        &[
            KeyContext::Main,
            KeyContext::Replay,
            KeyContext::Hosts,
            KeyContext::Paths,
            KeyContext::Drops,
            KeyContext::Latency,
            KeyContext::Profile,
            KeyContext::Card,
        ],
        FINDINGS,
        "findings",
    ),
    row("findings", &[Key::Char('F')], Action::Cancel, &[KeyContext::Findings], FINDINGS, ""),
    row("paths", &[Key::Char('v')], Action::Paths, LISTS, PATHS, ""),
    row("drops", &[Key::Char('d')], Action::Drops, LISTS, DROPS, ""),
    row("latency", &[Key::Char('L')], Action::Latency, LISTS, LOOKS, "latency"),
    row("profile", &[Key::Char('K')], Action::Profile, LISTS, LOOKS, ""),
    row("details", &[Key::Enter], Action::ToggleFunctions, &[KeyContext::Profile], ENTER, ""),
    row(
        "exact_softirqs",
        &[Key::Char('x')],
        Action::ToggleExactSoftirqs,
        MAIN,
        "softirq time: measured or sampled",
        "",
    ),
    row("next_test", &[Key::Char('n'), Key::Char('T')], Action::NextTest, LIVE, NEXT_TEST, "test"),
    row("next_test", &[Key::Char('T')], Action::NextTest, REPLAY, NEXT_TEST, "test"),
    row("previous_test", &[Key::Char('N')], Action::PreviousTest, LIVE, PREVIOUS_TEST, ""),
    row("choose_cores", &[Key::Char('a')], Action::ChooseCores, MAIN, "choose cores for the selected thread", "cores"),
    row("filter", &[Key::Char('/')], Action::StartFilter, MAIN, "filter links or threads by name", "filter"),
    row("sort", &[Key::Char('s')], Action::NextSort, MAIN, "sort by the next column", "sort"),
    row("reverse_sort", &[Key::Char('S')], Action::ReverseSort, MAIN, "reverse sort", ""),
    row("tree", &[Key::Char('t')], Action::ToggleTree, MAIN, "links as a tree or a flat list", "tree"),
    row("idle", &[Key::Char('i')], Action::ToggleIdle(None), MAIN, IDLE, "idle"),
    row("units", &[Key::Char('u')], Action::ToggleUnits, WATCHED, "links in bits, bytes or packets", "units"),
    row("toggle_thread", &[Key::Char(' ')], Action::TogglePart(None), &[KeyContext::Proposal], SPACE, "on/off"),
    row("pause", &[Key::Char(' ')], Action::ToggleFreeze, WATCHED, SPACE, "pause"),
    row("time_back", &[Key::Char(',')], Action::Earlier, MAIN, TIME, "time"),
    row("time_forward", &[Key::Char('.')], Action::Later, MAIN, TIME, ""),
    row("time_more", &[Key::Char('<')], Action::MoreTime, MAIN, SPAN, ""),
    row("time_less", &[Key::Char('>')], Action::LessTime, MAIN, SPAN, ""),
    row(
        "bands",
        &[Key::Char('b')],
        Action::ToggleBands,
        MAIN,
        "a test in bands (verdict, graph, path), or as panes",
        "bands",
    ),
    row("zoom", &[Key::Char('z')], Action::ToggleZoom(None), MAIN, OPENS, "zoom"),
    row("open_links", &[Key::Char('1')], Action::ToggleZoom(Some(Pane::Links)), MAIN, OPENS, ""),
    row("open_cores", &[Key::Char('2')], Action::ToggleZoom(Some(Pane::Cores)), MAIN, OPENS, ""),
    row("open_threads", &[Key::Char('3')], Action::ToggleZoom(Some(Pane::Threads)), MAIN, OPENS, ""),
    row("open_test", &[Key::Char('4')], Action::ToggleZoom(Some(Pane::Test)), MAIN, OPENS, ""),
    row("faster", &[Key::Char('+'), Key::Char('=')], Action::Faster, WATCHED, PACE, ""),
    row("slower", &[Key::Char('-')], Action::Slower, WATCHED, PACE, ""),
    row("mark", &[Key::Char('m')], Action::World(WorldAction::Mark), WATCHED, "add a marker to the recording", ""),
    row("report", &[Key::Char('w')], Action::World(WorldAction::Report), MAIN, WRITES, ""),
    row("save_card", &[Key::Char('s')], Action::World(WorldAction::SaveCard), &[KeyContext::Card], SAVES_CARD, "save"),
    row("record", &[Key::Char('R')], Action::World(WorldAction::Record), WATCHED, "start/stop recording", ""),
    row("save_last", &[Key::Char('B')], Action::World(WorldAction::SaveLast), WATCHED, SAVES, ""),
    row("next_theme", &[Key::Char('C')], Action::NextTheme, WATCHED, "next colour theme", ""),
    row(
        "save_settings",
        &[Key::Char('W')],
        Action::World(WorldAction::SaveSettings),
        MAIN,
        "save settings to config.toml",
        "",
    ),
    row("accept", &[Key::Enter], Action::Accept, &[KeyContext::Text], "keep the filter; apply the cores", "ok"),
    row("erase", &[Key::Backspace], Action::Edit(Edit::Erase), &[KeyContext::Text], "delete character", ""),
    row("erase_all", &[Key::Ctrl('u')], Action::Edit(Edit::EraseAll), &[KeyContext::Text], "delete the whole text", ""),
    row("cancel", &[Key::Esc], Action::Cancel, WATCHED, LEAVES, ""),
    row("cancel", &[Key::Esc], Action::Cancel, &[KeyContext::Text], LEAVES, "close"),
    row("cancel", &[Key::Esc], Action::Cancel, READ, LEAVES, "close"),
    row("quit", &[Key::Char('q')], Action::Cancel, READ, LEAVES, ""),
    row("help", &[Key::Char('?')], Action::Help, &[KeyContext::Help], HELP, ""),
    row("help", &[Key::Char('?')], Action::Help, WATCHED, HELP, "help"),
    row(
        "help_page",
        &[Key::Tab, Key::BackTab, Key::Left, Key::Right],
        Action::TurnHelpPage,
        &[KeyContext::Help],
        "in the help: its other page",
        "",
    ),
    row("quit", &[Key::Char('q')], Action::Quit, WATCHED, "quit", "quit"),
    row("", &[Key::Ctrl('c')], Action::Quit, EVERYWHERE, "quit, from anywhere", ""),
    row(
        "stop",
        &[Key::Ctrl('z')],
        Action::World(WorldAction::Suspend),
        EVERYWHERE,
        "suspend (shell: fg); namespaces released",
        "",
    ),
];
