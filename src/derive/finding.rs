//! Sentences of advice with the numbers behind them, most important first. Plain facts only: no finding says what made
//! the rate swing, because on some machines moves cost nothing. It runs every tick, so a check looks at each row once.

mod cores;
mod links;
mod own;
#[cfg(test)]
mod tests;
mod threads;

use super::Metrics;
use super::history::History;

/// One sentence of advice.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Stable id: `softnet`, `same_core`, `moves`, `squeeze`, `label`, `late`.
    pub id: &'static str,
    /// The sentence, with its numbers and units.
    pub text: String,
    /// The numbers behind it, by name with unit.
    pub numbers: Vec<(&'static str, f64)>,
    /// The key that mends it, if there is one (`p`).
    pub key: Option<char>,
}

/// One thing to look for.
struct Lint {
    id: &'static str,
    /// The key that mends it.
    key: Option<char>,
    check: fn(&Metrics, &History) -> Option<Said>,
}

/// What a lint has to say: a sentence and its numbers.
struct Said {
    text: String,
    numbers: Vec<(&'static str, f64)>,
}

/// Everything that is looked for, most important first: lost packets, then what slows threads down, then what misleads.
const LINTS: [Lint; 6] = [
    Lint { id: "softnet", key: None, check: cores::dropped },
    Lint { id: "same_core", key: Some('p'), check: threads::on_the_same_core },
    Lint { id: "moves", key: Some('p'), check: threads::moving },
    Lint { id: "squeeze", key: None, check: cores::squeezed },
    Lint { id: "label", key: None, check: links::beyond_label },
    Lint { id: "late", key: None, check: own::late },
];

/// Every finding of this moment, most important first.
#[must_use]
pub fn all(metrics: &Metrics, history: &History) -> Vec<Finding> {
    let found = |lint: &Lint| {
        let Said { text, numbers } = (lint.check)(metrics, history)?;
        Some(Finding { id: lint.id, text, numbers, key: lint.key })
    };
    LINTS.iter().filter_map(found).collect()
}

/// A count a second, with as many digits as it deserves.
fn rate(per_s: f64) -> String {
    if per_s < 10.0 { format!("{per_s:.1}") } else { format!("{per_s:.0}") }
}

/// Whole things, as a number of a finding.
fn count(things: usize) -> f64 {
    things as f64
}
