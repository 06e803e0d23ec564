//! What would show the screen. JSON lines and `--print` need none of it.

use super::Check;
use crate::sample::{DoctorFacts, TerminalFacts};

/// Columns and rows that every pane has room in.
const USUAL: (u16, u16) = (80, 24);

pub(super) fn checks(facts: &DoctorFacts) -> Vec<Check> {
    let terminal = &facts.terminal;
    vec![screen(terminal), size(terminal), characters(terminal), color(terminal)]
}

fn screen(terminal: &TerminalFacts) -> Check {
    let (name, source) = ("screen", "isatty, TERM");
    match (terminal.is_output, terminal.term.as_deref()) {
        (_, Some("dumb")) => {
            let remedy = "TERM=xterm-256color vnettop  (or vnettop --json)";
            Check::missing(name, source, "TERM=dumb cannot position text", "the live screen", remedy)
        }
        (true, Some(term)) => Check::ok(name, source, format!("a terminal, TERM={term}")),
        (true, None) => Check::ok(name, source, "a terminal, without TERM"),
        (false, _) => Check::note(name, source, "standard output is not a terminal: vnettop writes JSON lines to it"),
    }
}

fn size(terminal: &TerminalFacts) -> Check {
    let (name, source) = ("size", "TIOCGWINSZ");
    match terminal.size {
        Some((0, _) | (_, 0)) => Check::unknown(name, source, "the terminal does not report its size"),
        Some((columns, rows)) if columns < USUAL.0 || rows < USUAL.1 => {
            let found = format!("{columns} columns, {rows} rows: columns and panes are left out");
            Check::note(name, source, found)
                .adding("from 80x24 on every pane, from 200x60 on every column")
                .mended_by("vnettop --json, or vnettop --print 200x60")
        }
        Some((columns, rows)) => Check::ok(name, source, format!("{columns} columns, {rows} rows")),
        None => Check::unknown(name, source, "there is no terminal"),
    }
}

fn characters(terminal: &TerminalFacts) -> Check {
    let (name, source) = ("characters", "LC_ALL, LC_CTYPE, LANG, --ascii");
    if terminal.utf8 {
        Check::ok(name, source, "UTF-8")
    } else {
        Check::note(name, source, "only ASCII").adding("boxes, bars and graphs").mended_by("LC_ALL=C.UTF-8 vnettop")
    }
}

fn color(terminal: &TerminalFacts) -> Check {
    let (name, source) = ("colour", "NO_COLOR, --theme");
    if terminal.color {
        Check::ok(name, source, "on")
    } else {
        Check::note(name, source, "turned off; letters carry the same information").mended_by("env -u NO_COLOR vnettop")
    }
}
