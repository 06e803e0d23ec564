//! What would show the screen. JSON lines and `--print` need none of it.

use super::{Check, CheckSubject};
use crate::sample::{DoctorFacts, TerminalFacts};

/// Columns and rows that every pane has room in.
const USUAL: (u16, u16) = (80, 24);

pub(super) fn checks(facts: &DoctorFacts) -> Vec<Check> {
    let terminal = &facts.terminal;
    vec![screen(terminal), size(terminal), characters(terminal), color(terminal)]
}

fn screen(terminal: &TerminalFacts) -> Check {
    let about = CheckSubject("screen", "isatty, TERM");
    match (terminal.is_output, terminal.term.as_deref()) {
        (_, Some("dumb")) => {
            let remedy = "TERM=xterm-256color vnettop  (or vnettop --json)";
            about.missing("TERM=dumb cannot position text", "the live screen", remedy)
        }
        (true, Some(term)) => about.ok(format!("a terminal, TERM={term}")),
        (true, None) => about.ok("a terminal, without TERM"),
        (false, _) => about.note("standard output is not a terminal: vnettop writes JSON lines to it"),
    }
}

fn size(terminal: &TerminalFacts) -> Check {
    let about = CheckSubject("size", "TIOCGWINSZ");
    match terminal.size {
        Some((0, _) | (_, 0)) => about.unknown("the terminal does not report its size"),
        Some((columns, rows)) if columns < USUAL.0 || rows < USUAL.1 => {
            let found = format!("{columns} columns, {rows} rows: columns and panes are left out");
            about
                .note(found)
                .adding("from 80x24 on every pane, from 200x60 on every column")
                .mended_by("vnettop --json, or vnettop --print 200x60")
        }
        Some((columns, rows)) => about.ok(format!("{columns} columns, {rows} rows")),
        None => about.unknown("there is no terminal"),
    }
}

fn characters(terminal: &TerminalFacts) -> Check {
    let about = CheckSubject("characters", "LC_ALL, LC_CTYPE, LANG, --ascii");
    if terminal.utf8 {
        about.ok("UTF-8")
    } else {
        about.note("only ASCII").adding("boxes, bars and graphs").mended_by("LC_ALL=C.UTF-8 vnettop")
    }
}

fn color(terminal: &TerminalFacts) -> Check {
    let about = CheckSubject("colour", "NO_COLOR, --theme");
    if terminal.color {
        about.ok("on")
    } else {
        about.note("turned off; letters carry the same information").mended_by("env -u NO_COLOR vnettop")
    }
}
