//! The KEYS table: every key, what it does, where it is valid, and the words for people. Nothing else in the program
//! knows which key does what.

use super::{Action, Key, Motion, Place};
use std::fmt::Write as _;

/// One row of the table.
#[derive(Debug)]
pub struct Binding {
    /// Any of these.
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

const MAIN: &[Place] = &[Place::Main, Place::Replay];
/// What a key does live and in a replay is not always the same: time goes both ways in one of them only.
const LIVE: &[Place] = &[Place::Main];
const REPLAY: &[Place] = &[Place::Replay];
const EVERYWHERE: &[Place] = &[
    Place::Main,
    Place::Replay,
    Place::Help,
    Place::Findings,
    Place::Paths,
    Place::Drops,
    Place::Card,
    Place::Details,
    Place::Proposal,
    Place::Text,
];
const SCROLLS: &[Place] = &[
    Place::Main,
    Place::Replay,
    Place::Help,
    Place::Findings,
    Place::Paths,
    Place::Drops,
    Place::Card,
    Place::Details,
    Place::Proposal,
];
/// Where Home and End are the first line and the last.
const LINES: &[Place] = &[
    Place::Main,
    Place::Help,
    Place::Findings,
    Place::Paths,
    Place::Drops,
    Place::Card,
    Place::Details,
    Place::Proposal,
];
/// What lies over the panes and takes no text.
const READ: &[Place] =
    &[Place::Help, Place::Findings, Place::Paths, Place::Drops, Place::Card, Place::Details, Place::Proposal];
/// Where a finding or a card may be answered at once.
const ANSWERS: &[Place] = &[Place::Main, Place::Replay, Place::Findings, Place::Card];
/// Where undo is obeyed though the footer has no room for it.
const BOXES: &[Place] = &[Place::Help, Place::Paths, Place::Drops, Place::Details, Place::Proposal];
const UNDO: &str = "undo: restore every replaced mask";
const MOVES: &str = "select a row (of many cores: node by node)";
const LEAVES: &str = "close the overlay; else clear notices, filter and selection";
const CARD: &str = "the card: before and after the pin";
const FINDINGS: &str = "every finding in full";
const PATHS: &str = "the path of each flow, hop by hop";
const DROPS: &str = "drops: every lost packet, by its reason";
const TESTS: &str = "next or previous test of several";
const SPACE: &str = "pause/resume; in a proposal: thread off/on";
const WRITES: &str = "write a report of this moment to a file; on the card: save it as text, Markdown and JSON";
const ENTER: &str = "every figure of the selected row";
const IDLE: &str = "hide or show what is idle for 5 s";
const TIME: &str = "read a time on the graph: back, forward";
const SPAN: &str = "graph: more time, less time";
const PAGES: &str = "ten rows up or down, first row, last row";
const HELP: &str = "this help; again: marks and words";
const SEEK: &str = "in a replay: 5 s back, or forward";
const ENDS: &str = "in a replay: to the start of the recording, to its end";
const EVENTS: &str = "in a replay: to the next pin, marker, dip or loss, or to the one before";
const STEPS: &str = "in a replay: one sample back, or forward; then it is paused";
const PACE: &str = "sample (or play) faster, slower";

const fn row(
    keys: &'static [Key],
    action: Action,
    places: &'static [Place],
    help: &'static str,
    hint: &'static str,
) -> Binding {
    Binding { keys, action, places, help, hint }
}

/// Every key there is, in the order people read them.
pub const KEYS: &[Binding] = &[
    row(&[Key::Up, Key::Char('k')], Action::Move(Motion::Up), SCROLLS, MOVES, ""),
    row(&[Key::Down, Key::Char('j')], Action::Move(Motion::Down), SCROLLS, MOVES, ""),
    row(&[Key::Char('h')], Action::Move(Motion::Left), MAIN, MOVES, ""),
    row(&[Key::Left], Action::Move(Motion::Left), LIVE, MOVES, ""),
    row(&[Key::Char('l')], Action::Move(Motion::Right), MAIN, MOVES, ""),
    row(&[Key::Right], Action::Move(Motion::Right), LIVE, MOVES, ""),
    row(&[Key::PageUp], Action::Move(Motion::PageUp), SCROLLS, PAGES, ""),
    row(&[Key::PageDown], Action::Move(Motion::PageDown), SCROLLS, PAGES, ""),
    row(&[Key::Home], Action::Move(Motion::Home), LINES, PAGES, ""),
    row(&[Key::Char('g')], Action::Move(Motion::Home), SCROLLS, PAGES, ""),
    row(&[Key::End], Action::Move(Motion::End), LINES, PAGES, ""),
    row(&[Key::Char('G')], Action::Move(Motion::End), SCROLLS, PAGES, ""),
    row(&[Key::Left, Key::Char('[')], Action::SeekBy(-5), REPLAY, SEEK, "-5 s"),
    row(&[Key::Right, Key::Char(']')], Action::SeekBy(5), REPLAY, SEEK, "+5 s"),
    row(&[Key::Home], Action::SeekStart, REPLAY, ENDS, "start"),
    row(&[Key::End], Action::SeekEnd, REPLAY, ENDS, ""),
    row(&[Key::Char('n')], Action::NextHighlight, REPLAY, EVENTS, "event"),
    row(&[Key::Char('N')], Action::PreviousHighlight, REPLAY, EVENTS, ""),
    row(&[Key::Char('{')], Action::StepBack, REPLAY, STEPS, ""),
    row(&[Key::Char('}')], Action::Step, REPLAY, STEPS, ""),
    row(&[Key::Tab], Action::NextPane, MAIN, "next pane, previous pane", "pane"),
    row(&[Key::BackTab], Action::PreviousPane, MAIN, "next pane, previous pane", ""),
    row(&[Key::Enter], Action::Details, MAIN, ENTER, ""),
    row(&[Key::Enter], Action::Cancel, &[Place::Details], ENTER, ""),
    row(
        &[Key::Char('p')],
        Action::Propose,
        ANSWERS,
        "propose cores for the busy threads; again: pin them there",
        "pin",
    ),
    row(&[Key::Char('p'), Key::Enter], Action::Accept, &[Place::Proposal], "apply the proposal", "apply"),
    row(&[Key::Char('P')], Action::ToggleSticky, MAIN, "auto-pin threads born later (on/off)", ""),
    row(&[Key::Char('U')], Action::Undo, ANSWERS, UNDO, "undo"),
    row(&[Key::Char('U')], Action::Undo, BOXES, UNDO, ""),
    row(&[Key::Char('c')], Action::Card, &[Place::Main, Place::Replay, Place::Findings], CARD, ""),
    row(&[Key::Char('c')], Action::Cancel, &[Place::Card], CARD, ""),
    row(
        &[Key::Char('F')],
        Action::Findings,
        &[Place::Main, Place::Replay, Place::Paths, Place::Drops, Place::Card],
        FINDINGS,
        "findings",
    ),
    row(&[Key::Char('F')], Action::Cancel, &[Place::Findings], FINDINGS, ""),
    row(
        &[Key::Char('v')],
        Action::Paths,
        &[Place::Main, Place::Replay, Place::Findings, Place::Drops, Place::Card],
        PATHS,
        "",
    ),
    row(&[Key::Char('v')], Action::Cancel, &[Place::Paths], PATHS, ""),
    row(
        &[Key::Char('d')],
        Action::Drops,
        &[Place::Main, Place::Replay, Place::Findings, Place::Paths, Place::Card],
        DROPS,
        "",
    ),
    row(&[Key::Char('d')], Action::Cancel, &[Place::Drops], DROPS, ""),
    row(&[Key::Char('x')], Action::ToggleExactSoftirqs, MAIN, "softirq time: measured or sampled", ""),
    row(&[Key::Char('n')], Action::NextTest, LIVE, TESTS, "test"),
    row(&[Key::Char('N')], Action::PreviousTest, LIVE, TESTS, ""),
    row(&[Key::Char('T')], Action::NextTest, MAIN, TESTS, ""),
    row(&[Key::Char('a')], Action::ChooseCores, MAIN, "choose cores for the selected thread", "cores"),
    row(&[Key::Char('/')], Action::StartFilter, MAIN, "filter links or threads by name", "filter"),
    row(&[Key::Char('s')], Action::NextSort, MAIN, "sort by the next column", "sort"),
    row(&[Key::Char('S')], Action::ReverseSort, MAIN, "reverse sort", ""),
    row(&[Key::Char('t')], Action::ToggleTree, MAIN, "links as a tree or a flat list", "tree"),
    row(&[Key::Char('i')], Action::ToggleIdle(None), MAIN, IDLE, "idle"),
    row(&[Key::Char('u')], Action::ToggleUnits, MAIN, "links in bits, bytes or packets", "units"),
    row(&[Key::Char(' ')], Action::ToggleThread(None), &[Place::Proposal], SPACE, "on/off"),
    row(&[Key::Char(' ')], Action::ToggleFreeze, MAIN, SPACE, "pause"),
    row(&[Key::Char(',')], Action::Earlier, MAIN, TIME, "time"),
    row(&[Key::Char('.')], Action::Later, MAIN, TIME, ""),
    row(&[Key::Char('<')], Action::MoreTime, MAIN, SPAN, ""),
    row(&[Key::Char('>')], Action::LessTime, MAIN, SPAN, ""),
    row(&[Key::Char('z')], Action::ToggleZoom(None), MAIN, "focused pane alone, and back", "zoom"),
    row(&[Key::Char('+'), Key::Char('=')], Action::Faster, MAIN, PACE, ""),
    row(&[Key::Char('-')], Action::Slower, MAIN, PACE, ""),
    row(&[Key::Char('m')], Action::Mark, MAIN, "add a marker to the recording", ""),
    row(&[Key::Char('w')], Action::Report, MAIN, WRITES, ""),
    row(&[Key::Char('w')], Action::SaveCard, &[Place::Card], WRITES, "save"),
    row(&[Key::Char('R')], Action::Record, MAIN, "start/stop recording", ""),
    row(&[Key::Enter], Action::Accept, &[Place::Text], "keep the filter; apply the cores", "ok"),
    row(&[Key::Backspace], Action::Erase, &[Place::Text], "delete character", ""),
    row(&[Key::Ctrl('u')], Action::EraseAll, &[Place::Text], "delete the whole text", ""),
    row(&[Key::Esc], Action::Cancel, MAIN, LEAVES, ""),
    row(&[Key::Esc], Action::Cancel, &[Place::Text], LEAVES, "close"),
    row(&[Key::Esc, Key::Char('q')], Action::Cancel, READ, LEAVES, "close"),
    row(&[Key::Char('?')], Action::Help, &[Place::Help], HELP, ""),
    row(&[Key::Char('?')], Action::Help, MAIN, HELP, "help"),
    row(
        &[Key::Tab, Key::BackTab, Key::Left, Key::Right],
        Action::TurnHelpPage,
        &[Place::Help],
        "in the help: its other page",
        "page",
    ),
    row(&[Key::Char('q')], Action::Quit, MAIN, "quit", "quit"),
    row(&[Key::Ctrl('c')], Action::Quit, EVERYWHERE, "quit, from anywhere", ""),
    row(
        &[Key::Ctrl('z')],
        Action::Stop,
        EVERYWHERE,
        "suspend until the shell's fg; network namespaces are released meanwhile",
        "",
    ),
];

/// What a key asks for where the keys now go; none where it is not valid.
#[must_use]
pub fn action_for(key: Key, place: Place) -> Option<Action> {
    let valid = |binding: &&Binding| binding.places.contains(&place) && binding.keys.contains(&key);
    match (place, key) {
        (Place::Text, Key::Char(c)) => Some(Action::Insert(c)),
        _ => KEYS.iter().find(valid).map(|binding| binding.action),
    }
}

/// The footer of a place: the first key of each hinted binding and its word.
pub fn hints(place: Place) -> impl Iterator<Item = (Key, &'static str)> {
    KEYS.iter()
        .filter(move |binding| binding.places.contains(&place) && !binding.hint.is_empty())
        .map(|binding| (binding.keys[0], binding.hint))
}

/// The table for people: keys and what they do, one line for neighbours with the same words.
#[must_use]
pub fn help_lines() -> Vec<(Vec<Key>, &'static str)> {
    let mut lines: Vec<(Vec<Key>, &'static str)> = Vec::new();
    for binding in KEYS {
        let at = lines.iter().position(|(_, help)| *help == binding.help).unwrap_or_else(|| {
            lines.push((Vec::new(), binding.help));
            lines.len() - 1
        });
        for key in binding.keys {
            if !lines[at].0.contains(key) {
                lines[at].0.push(*key);
            }
        }
    }
    lines
}

/// The table as Markdown, for docs/screen.md.
#[must_use]
pub fn markdown() -> String {
    let mut table = String::from("| key | what it does |\n|---|---|\n");
    for (keys, help) in help_lines() {
        let keys: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
        let _ = writeln!(table, "| {} | {help} |", keys.join(" "));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_means_two_things_in_one_place() {
        for &place in EVERYWHERE {
            let here: Vec<Key> =
                KEYS.iter().filter(|b| b.places.contains(&place)).flat_map(|b| b.keys.iter().copied()).collect();
            for key in &here {
                let times = here.iter().filter(|other| *other == key).count();
                assert_eq!(times, 1, "'{key}' has one meaning in {place:?}");
            }
        }
    }

    #[test]
    fn ctrl_c_quits_everywhere_and_letters_are_text_while_typing() {
        for &place in EVERYWHERE {
            assert_eq!(action_for(Key::Ctrl('c'), place), Some(Action::Quit), "Ctrl-C quits from {place:?}");
        }
        assert_eq!(action_for(Key::Char('q'), Place::Text), Some(Action::Insert('q')), "q can be typed into a filter");
        assert_eq!(action_for(Key::Char('p'), Place::Proposal), Some(Action::Accept), "the second p applies");
    }

    #[test]
    fn the_tables_for_people_name_every_key() {
        let table = markdown();
        for binding in KEYS {
            for key in binding.keys {
                assert!(table.contains(&format!("`{key}`")), "the manual's table names '{key}'");
            }
        }
        assert!(help_lines().len() < KEYS.len(), "neighbours with the same words share a line");
    }
}
