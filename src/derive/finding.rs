//! Sentences of advice with the numbers behind them, most important first.

use super::Metrics;
use super::history::History;

/// One sentence of advice.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Stable id: `moves`, `label`, `softnet`, `late`, …
    pub id: &'static str,
    /// The sentence, with its numbers and units.
    pub text: String,
    /// The numbers behind it, by name with unit.
    pub numbers: Vec<(&'static str, f64)>,
    /// The key that mends it, if there is one (`p`).
    pub key: Option<char>,
}

/// Every finding of this moment.
#[must_use]
pub fn all(_metrics: &Metrics, _history: &History) -> Vec<Finding> {
    Vec::new()
}
