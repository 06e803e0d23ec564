//! The help: the keys and the mouse on one page, every mark, column and word on the other. A click on a key of the list presses it.

use super::Tone;
use super::canvas::cells;
use super::glossary::GLOSSARY;
use super::lines::Line;
use super::text::wrap;
use crate::action::{Action, KEYS, Key, KeyContext, MOUSE, help_groups};
use crate::state::{HelpPage, Mode, State};

/// From so many cells on there are two columns.
const TWO_COLUMNS: u16 = 100;
/// A column wider than this is no easier to read.
const WIDEST: u16 = 90;
const GAP: u16 = 3;
/// Cells for the words on the left.
const WORDS: usize = 13;

/// What a click on some cells of a line asks for: line, first cell, cells, action.
pub(super) type LineSpot = (usize, u16, u16, Action);

/// One entry: what stands at the left in pieces, with what a click asks for, and what it means. Without words it is the title of
/// the entries below it.
struct HelpEntry {
    words: Vec<(String, Option<Action>)>,
    meaning: &'static str,
}

/// Title, lines and spots of a page.
pub(super) fn lines(state: &State, page: HelpPage, width: u16) -> (&'static str, Vec<Line>, Vec<LineSpot>) {
    let (title, entries) = match page {
        HelpPage::Keys => ("Keys and mouse (1 of 2)", keys(state)),
        HelpPage::Words => ("Marks, columns and words (2 of 2)", words()),
    };
    let (lines, spots) = columns(&entries, width);
    (title, lines, spots)
}

fn keys(state: &State) -> Vec<HelpEntry> {
    let place = if state.settings().mode == Mode::Replay { KeyContext::Replay } else { KeyContext::Main };
    let press = |key: &Key| state.keys().action_for(*key, place).map(|_| Action::Press(*key));
    let key = |(keys, meaning): (Vec<Key>, &'static str)| HelpEntry {
        words: keys.iter().map(|key| (key.to_string(), press(key))).collect(),
        meaning,
    };
    let mouse = MOUSE.iter().map(|(what, meaning)| HelpEntry { words: vec![((*what).to_owned(), None)], meaning });
    let is_of_use = |(_, meaning): &(Vec<Key>, &'static str)| is_of_use(meaning, place);
    let mut entries = Vec::new();
    for (title, lines) in help_groups(state.keys()) {
        let mut lines = lines.into_iter().filter(is_of_use).map(key).peekable();
        if lines.peek().is_some() {
            entries.push(titled(title));
            entries.extend(lines);
        }
    }
    entries.push(titled("Mouse"));
    entries.extend(mouse);
    entries
}

fn titled(title: &'static str) -> HelpEntry {
    HelpEntry { words: Vec::new(), meaning: title }
}

/// What is of a replay only is not listed live, and in a replay nothing that would change this machine.
fn is_of_use(meaning: &str, place: KeyContext) -> bool {
    let mut bindings = KEYS.iter().filter(|binding| binding.help == meaning);
    let changes = [Action::Undo, Action::ToggleSticky, Action::ChooseCores, Action::ToggleExactSoftirqs];
    bindings.any(|binding| match place {
        KeyContext::Replay => !changes.contains(&binding.action),
        _ => binding.contexts != [KeyContext::Replay],
    })
}

fn words() -> Vec<HelpEntry> {
    GLOSSARY.iter().map(|(words, meaning)| HelpEntry { words: vec![((*words).to_owned(), None)], meaning }).collect()
}

/// The entries one below the other, or in two columns where there is room.
fn columns(entries: &[HelpEntry], width: u16) -> (Vec<Line>, Vec<LineSpot>) {
    if width < TWO_COLUMNS {
        return column(entries, width);
    }
    let half = ((width - GAP) / 2).min(WIDEST);
    let heights: Vec<usize> = entries.iter().map(|entry| column(std::slice::from_ref(entry), half).0.len()).collect();
    let (whole, mut above, mut first) = (heights.iter().sum::<usize>(), 0, 0);
    while above < whole.div_ceil(2) {
        above += heights[first];
        first += 1;
    }
    // A title stands above what it is of.
    first -= usize::from(first > 0 && entries[first - 1].words.is_empty());
    let (left, mut spots) = column(&entries[..first], half);
    let (right, right_spots) = column(&entries[first..], half);
    spots.extend(right_spots.into_iter().map(|(line, x, cells, action)| (line, x + half + GAP, cells, action)));
    let mut lines = left;
    lines.resize(lines.len().max(right.len()), Line::new());
    for (at, more) in right.into_iter().enumerate() {
        let used: usize = lines[at].iter().map(|(_, text)| cells(text)).sum();
        lines[at].push((Tone::Normal, " ".repeat(usize::from(half + GAP).saturating_sub(used))));
        lines[at].extend(more);
    }
    (lines, spots)
}

fn column(entries: &[HelpEntry], width: u16) -> (Vec<Line>, Vec<LineSpot>) {
    let (mut lines, mut spots) = (Vec::new(), Vec::new());
    let room = width.saturating_sub(u16::try_from(WORDS + 1).unwrap_or(width));
    for HelpEntry { words, meaning } in entries {
        if words.is_empty() {
            lines.push(vec![(Tone::Title, (*meaning).to_owned())]);
            continue;
        }
        let (mut line, mut used): (Line, usize) = (Vec::new(), 0);
        for (word, action) in words {
            if used > 0 {
                line.push((Tone::Normal, " ".to_owned()));
                used += 1;
            }
            let long = cells(word);
            if let (Some(action), Ok(x), Ok(long)) = (action, u16::try_from(used), u16::try_from(long)) {
                spots.push((lines.len(), x, long, *action));
            }
            line.push((Tone::Key, word.clone()));
            used += long;
        }
        let mut parts = wrap(meaning, room).into_iter();
        // What does not fit beside its meaning stands above it.
        if used <= WORDS {
            let gap = " ".repeat(WORDS + 1 - used);
            line.push((Tone::Normal, format!("{gap}{}", parts.next().unwrap_or_default())));
        }
        lines.push(line);
        lines.extend(parts.map(|part| vec![(Tone::Normal, format!("{}{part}", " ".repeat(WORDS + 1)))]));
    }
    (lines, spots)
}
