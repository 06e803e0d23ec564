//! What would show the screen. JSON lines and `--print` need none of it.

use super::{Check, CheckRow};
use vnettop_sample::DoctorFacts;

/// Columns and rows that every pane has room in.
const USUAL: (u16, u16) = (80, 24);

pub(super) const CHECKS: &[CheckRow] = &[
    CheckRow::new("screen", "isatty, TERM", "the live screen", screen),
    CheckRow::new("size", "TIOCGWINSZ", "every pane from 80x24, every column from 200x60", size),
    CheckRow::new("characters", "LC_ALL, LC_CTYPE, LANG, --ascii", "boxes, bars and graphs", characters),
    CheckRow::new("colour", "NO_COLOR, --theme", "", color),
];

fn screen(about: &CheckRow, facts: &DoctorFacts) -> Check {
    let terminal = &facts.terminal;
    match (terminal.is_output, terminal.term.as_deref()) {
        (_, Some("dumb")) => {
            let remedy = "TERM=xterm-256color vnettop  (or vnettop --json)";
            about.missing("TERM=dumb cannot position text", remedy)
        }
        (true, Some(term)) => about.ok(format!("a terminal, TERM={term}")),
        (true, None) => about.ok("a terminal, without TERM"),
        (false, _) => about.note("standard output is not a terminal: vnettop writes JSON lines to it").adding_nothing(),
    }
}

fn size(about: &CheckRow, facts: &DoctorFacts) -> Check {
    match facts.terminal.size {
        Some((0, _) | (_, 0)) => about.unknown("the terminal does not report its size").adding_nothing(),
        Some((columns, rows)) if columns < USUAL.0 || rows < USUAL.1 => {
            let found = format!("{columns} columns, {rows} rows: columns and panes are left out");
            about.note(found).mended_by("vnettop --json, or vnettop --print 200x60")
        }
        Some((columns, rows)) => about.ok(format!("{columns} columns, {rows} rows")),
        None => about.unknown("there is no terminal").adding_nothing(),
    }
}

fn characters(about: &CheckRow, facts: &DoctorFacts) -> Check {
    if facts.terminal.utf8 { about.ok("UTF-8") } else { about.note("only ASCII").mended_by("LC_ALL=C.UTF-8 vnettop") }
}

fn color(about: &CheckRow, facts: &DoctorFacts) -> Check {
    if facts.terminal.color {
        about.ok("on")
    } else {
        about.note("turned off; letters carry the same information").mended_by("env -u NO_COLOR vnettop")
    }
}
