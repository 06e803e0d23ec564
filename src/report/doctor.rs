//! What works here and what is missing → text, JSON. Field names are the contract of docs/json.md; it computes nothing.

use super::timestamp;
use crate::derive::doctor::{Check, CheckGroup, Diagnosis};
use crate::sample::{DoctorFacts, Word};
use crate::text::{without_error_numbers, wrap};
use serde_json::json;
use unicode_width::UnicodeWidthStr;

/// Raised when a field changes its meaning or goes away; new fields do not raise it.
const SCHEMA_VERSION: u32 = 1;
/// Columns that no line is wider than, but for one word that is.
const WIDTH: usize = 98;
/// The widest word of a state, the widest name, and the blanks around them.
const STATE: usize = 9;
const NAME: usize = 20;
/// Where the lines below a check begin: left of what was found, so that a command has room on one line.
const BELOW: usize = 2 + STATE;

/// Plain lines, the last one the verdict; of ASCII alone where the terminal shows nothing else.
#[must_use]
pub fn text(facts: &DoctorFacts, diagnosis: &Diagnosis) -> String {
    let host = &facts.host;
    let mut lines = vec![format!(
        "vnettop doctor: {}, Linux {} {} (in brackets: where it was read)",
        host.name, host.kernel, host.arch
    )];
    for (_, title, checks) in &diagnosis.groups {
        lines.extend([String::new(), (*title).to_owned()]);
        lines.extend(checks.iter().flat_map(rows));
    }
    lines.extend([String::new(), diagnosis.verdict.clone()]);
    let text = lines.join("\n") + "\n";
    let shown = |c: char| if c.is_ascii() || facts.terminal.utf8 { c } else { '?' };
    text.chars().map(shown).collect()
}

/// What was found and looked at; below it what that adds, and what to do.
fn rows(check: &Check) -> Vec<String> {
    let found = format!("{} [{}]", check.found, check.source);
    let head = format!("  {:STATE$}{:NAME$}", check.state.word(), check.name);
    let below = |label: &str| format!("{:BELOW$}{label:6}", "");
    let mut rows = wrapped(&head, &found);
    rows.extend(check.adds.iter().flat_map(|adds| wrapped(&below("adds"), adds)));
    rows.extend(check.remedy.iter().flat_map(|remedy| steps(below, remedy)));
    rows
}

/// A command with what is said of it behind it, or below it where both have no room on one line: it is there to be copied.
fn steps(below: impl Fn(&str) -> String, remedy: &str) -> Vec<String> {
    let head = below("do");
    match remedy.split_once("  ") {
        Some((command, comment)) if head.width() + remedy.width() > WIDTH => {
            [wrapped(&head, command), wrapped(&below(""), comment)].concat()
        }
        _ => wrapped(&head, remedy),
    }
}

/// The words behind the head, the further lines below the first word.
fn wrapped(head: &str, words: &str) -> Vec<String> {
    let indent = " ".repeat(head.width());
    let lines = wrap(&without_error_numbers(words), WIDTH - indent.len(), UnicodeWidthStr::width);
    lines.iter().enumerate().map(|(at, line)| format!("{}{line}", if at == 0 { head } else { &indent })).collect()
}

/// One object on one line, and its end of line.
#[must_use]
pub fn json(facts: &DoctorFacts, diagnosis: &Diagnosis) -> String {
    let check = |(group, check): (CheckGroup, &Check)| {
        json!({
            "group": group.word(),
            "name": check.name,
            "state": check.state.word(),
            "needed": check.needed,
            "found": check.found,
            "looked_at": check.source,
            "adds": check.adds,
            "remedy": check.remedy,
        })
    };
    let object = json!({
        "schema_version": SCHEMA_VERSION,
        "ts": timestamp(facts.wall_ms),
        "host": { "name": facts.host.name, "kernel": facts.host.kernel, "arch": facts.host.arch },
        "works": diagnosis.works,
        "verdict": diagnosis.verdict,
        "checks": diagnosis.checks().map(check).collect::<Vec<_>>(),
    });
    format!("{object}\n")
}
