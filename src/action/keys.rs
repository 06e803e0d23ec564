//! The KEYS table: every key, what it does, where it is valid, and the words for people. Nothing else in the program
//! knows which key does what.

use super::{Action, Key, Motion, Place};

/// One row of the table.
#[derive(Debug)]
pub struct Binding {
    /// What it is called where its keys are chosen (`[keys]` of config.toml), the same for rows that belong together; empty
    /// where it keeps its key.
    pub name: &'static str,
    /// Any of these, unless others were chosen.
    pub keys: &'static [Key],
    /// What it asks for.
    pub action: Action,
    /// Where it is valid.
    pub places: &'static [Place],
    /// What it does, for the help overlay and docs/screen.md; neighbours with the same words share a line.
    pub help: &'static str,
    /// One word for the footer; empty where the footer does not name it.
    pub hint: &'static str,
}

const MAIN: &[Place] = &[Place::Main];
const EVERYWHERE: &[Place] =
    &[Place::Main, Place::Help, Place::Findings, Place::Paths, Place::Drops, Place::Card, Place::Proposal, Place::Text];
const SCROLLS: &[Place] =
    &[Place::Main, Place::Help, Place::Findings, Place::Paths, Place::Drops, Place::Card, Place::Proposal];
/// What lies over the panes and takes no text.
const READ: &[Place] = &[Place::Help, Place::Findings, Place::Paths, Place::Drops, Place::Card, Place::Proposal];
/// Where a finding or a card may be answered at once.
const ANSWERS: &[Place] = &[Place::Main, Place::Findings, Place::Card];
/// Where undo is obeyed though the footer has no room for it.
const BOXES: &[Place] = &[Place::Help, Place::Paths, Place::Drops, Place::Proposal];
const UNDO: &str = "undo: put back every mask that vnettop replaced";
const MOVES: &str = "move the selection (Up and Down go from node to node among many cores)";
const LEAVES: &str = "leave what lies over the panes; else clear notices, filter and selection";
const CARD: &str = "the card: before and after the pin, and whether it helped";
const FINDINGS: &str = "every finding, whole, with its numbers";
const PATHS: &str = "the path of each flow: every link it crosses, hop by hop";
const DROPS: &str = "drops: every packet the kernel drops here, by reason, function and interface";
const TESTS: &str =
    "of several tests: show the next one, or the one before; findings, card and proposals are of that one";
const SPACE: &str = "freeze the screen, or let it go on; in a proposal: take a thread off, or on";
const WRITES: &str = "write a report of this moment to a file; on the card: the card, in three formats";
const APPLIES: &str = "apply what is proposed";
const PAGES: &str = "move it by ten rows, to the first, to the last";

const fn row(
    name: &'static str,
    keys: &'static [Key],
    action: Action,
    places: &'static [Place],
    help: &'static str,
    hint: &'static str,
) -> Binding {
    Binding { name, keys, action, places, help, hint }
}

/// Every key there is, in the order people read them.
pub const KEYS: &[Binding] = &[
    row("up", &[Key::Up, Key::Char('k')], Action::Move(Motion::Up), SCROLLS, MOVES, ""),
    row("down", &[Key::Down, Key::Char('j')], Action::Move(Motion::Down), SCROLLS, MOVES, ""),
    row("left", &[Key::Left, Key::Char('h')], Action::Move(Motion::Left), MAIN, MOVES, ""),
    row("right", &[Key::Right, Key::Char('l')], Action::Move(Motion::Right), MAIN, MOVES, ""),
    row("page_up", &[Key::PageUp], Action::Move(Motion::PageUp), SCROLLS, PAGES, ""),
    row("page_down", &[Key::PageDown], Action::Move(Motion::PageDown), SCROLLS, PAGES, ""),
    row("first", &[Key::Home], Action::Move(Motion::Home), SCROLLS, PAGES, ""),
    row("last", &[Key::End], Action::Move(Motion::End), SCROLLS, PAGES, ""),
    row(
        "next_pane",
        &[Key::Tab],
        Action::NextPane,
        MAIN,
        "give the focus to the next pane, or to the one before",
        "pane",
    ),
    row(
        "previous_pane",
        &[Key::BackTab],
        Action::PreviousPane,
        MAIN,
        "give the focus to the next pane, or to the one before",
        "",
    ),
    row(
        "propose",
        &[Key::Char('p')],
        Action::Propose,
        ANSWERS,
        "propose cores for the busy threads; again: pin them there",
        "pin",
    ),
    row("propose", &[Key::Char('p')], Action::Accept, &[Place::Proposal], APPLIES, "apply"),
    row("accept", &[Key::Enter], Action::Accept, &[Place::Proposal], APPLIES, ""),
    row(
        "sticky",
        &[Key::Char('P')],
        Action::ToggleSticky,
        MAIN,
        "sticky: pin new workers of a pinned process too, or no longer",
        "",
    ),
    row("undo", &[Key::Char('U')], Action::Undo, ANSWERS, UNDO, "undo"),
    row("undo", &[Key::Char('U')], Action::Undo, BOXES, UNDO, ""),
    row("card", &[Key::Char('c')], Action::Card, &[Place::Main, Place::Findings], CARD, ""),
    row("card", &[Key::Char('c')], Action::Cancel, &[Place::Card], CARD, ""),
    row(
        "findings",
        &[Key::Char('F')],
        Action::Findings,
        &[Place::Main, Place::Paths, Place::Drops, Place::Card],
        FINDINGS,
        "findings",
    ),
    row("findings", &[Key::Char('F')], Action::Cancel, &[Place::Findings], FINDINGS, ""),
    row(
        "paths",
        &[Key::Char('v')],
        Action::Paths,
        &[Place::Main, Place::Findings, Place::Drops, Place::Card],
        PATHS,
        "",
    ),
    row("paths", &[Key::Char('v')], Action::Cancel, &[Place::Paths], PATHS, ""),
    row(
        "drops",
        &[Key::Char('d')],
        Action::Drops,
        &[Place::Main, Place::Findings, Place::Paths, Place::Card],
        DROPS,
        "",
    ),
    row("drops", &[Key::Char('d')], Action::Cancel, &[Place::Drops], DROPS, ""),
    row(
        "exact_softirqs",
        &[Key::Char('x')],
        Action::ToggleExactSoftirqs,
        MAIN,
        "softirq time from entry to exit, or as /proc/stat samples it at clock ticks",
        "",
    ),
    row("next_test", &[Key::Char('n')], Action::NextTest, MAIN, TESTS, "test"),
    row("previous_test", &[Key::Char('N')], Action::PreviousTest, MAIN, TESTS, ""),
    row(
        "choose_cores",
        &[Key::Char('a')],
        Action::ChooseCores,
        MAIN,
        "choose cores for the selected thread by hand",
        "cores",
    ),
    row(
        "filter",
        &[Key::Char('/')],
        Action::StartFilter,
        MAIN,
        "filter links or threads by a part of the name",
        "filter",
    ),
    row("sort", &[Key::Char('s')], Action::NextSort, MAIN, "sort by the next column", "sort"),
    row("reverse_sort", &[Key::Char('S')], Action::ReverseSort, MAIN, "turn the order round", ""),
    row("tree", &[Key::Char('t')], Action::ToggleTree, MAIN, "links as a tree or as a flat list", "tree"),
    row("idle", &[Key::Char('i')], Action::ToggleIdle, MAIN, "hide or show links that moved nothing for 5 s", "idle"),
    row("units", &[Key::Char('u')], Action::ToggleUnits, MAIN, "bits, bytes or packets, for the links", "units"),
    row("toggle_thread", &[Key::Char(' ')], Action::ToggleThread(None), &[Place::Proposal], SPACE, "on/off"),
    row("freeze", &[Key::Char(' ')], Action::ToggleFreeze, MAIN, SPACE, "freeze"),
    row("step", &[Key::Char('.')], Action::Step, MAIN, "show the next sample of a frozen replay", ""),
    row("faster", &[Key::Char('+'), Key::Char('=')], Action::Faster, MAIN, "sample more often, or less often", ""),
    row("slower", &[Key::Char('-')], Action::Slower, MAIN, "sample more often, or less often", ""),
    row("mark", &[Key::Char('m')], Action::Mark, MAIN, "put a mark into the recording", ""),
    row("report", &[Key::Char('w')], Action::Report, MAIN, WRITES, ""),
    row("save_card", &[Key::Char('w')], Action::SaveCard, &[Place::Card], WRITES, "save"),
    row("record", &[Key::Char('R')], Action::Record, MAIN, "begin or end a recording", ""),
    row("next_theme", &[Key::Char('C')], Action::NextTheme, MAIN, "the next colour theme", ""),
    row(
        "save_settings",
        &[Key::Char('W')],
        Action::SaveSettings,
        MAIN,
        "save layout, columns, sorting, units, interval and theme to config.toml",
        "",
    ),
    row("accept", &[Key::Enter], Action::Accept, &[Place::Text], "keep the filter; apply the cores", "ok"),
    row("erase", &[Key::Backspace], Action::Erase, &[Place::Text], "take the last character away", ""),
    row("erase_all", &[Key::Ctrl('u')], Action::EraseAll, &[Place::Text], "take the whole text away", ""),
    row("cancel", &[Key::Esc], Action::Cancel, MAIN, LEAVES, ""),
    row("cancel", &[Key::Esc], Action::Cancel, &[Place::Text], LEAVES, "leave"),
    row("cancel", &[Key::Esc], Action::Cancel, READ, LEAVES, "leave"),
    row("quit", &[Key::Char('q')], Action::Cancel, READ, LEAVES, ""),
    row("help", &[Key::Char('?')], Action::Cancel, &[Place::Help], "this help", ""),
    row("help", &[Key::Char('?')], Action::Help, MAIN, "this help", "help"),
    row("quit", &[Key::Char('q')], Action::Quit, MAIN, "quit", "quit"),
    row("", &[Key::Ctrl('c')], Action::Quit, EVERYWHERE, "quit, from anywhere", ""),
    row(
        "stop",
        &[Key::Ctrl('z')],
        Action::Stop,
        EVERYWHERE,
        "stop, until the shell's fg; every namespace is let go meanwhile",
        "",
    ),
];
