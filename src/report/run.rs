//! The card of a run → text, Markdown, JSON. The words and figures are chosen once, here; it computes nothing.

mod json;
mod reported;
mod round_trips;
mod rows;
mod search;
#[cfg(test)]
mod tests;

use super::Format;
use super::page::Page;
use crate::derive::run::RunCard;

/// The card, ending with an end of line.
#[must_use]
pub fn card(card: &RunCard, format: Format) -> String {
    match format {
        Format::Text => page(card).text(),
        Format::Markdown => page(card).markdown(),
        Format::Json => json::json(card),
    }
}

/// What stands on it.
pub(super) fn page(card: &RunCard) -> Page {
    Page {
        title: "vnettop run",
        of: card.asked.command.join(" "),
        facts: rows::facts(card),
        table: rows::table(card),
        conclusions: rows::conclusions(card),
    }
}

/// Which placement a search found best, as a headline; `None` where it ranked none.
pub(super) fn best_placement(card: &RunCard) -> Option<String> {
    let verdict = search::verdict(card.search.as_ref().filter(|search| search.is_enough())?);
    let mut letters = verdict.chars();
    Some(letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect())
}

/// The sentence that nothing was compared, or ranked, though that was asked for, and why.
#[must_use]
pub fn not_compared(card: &RunCard) -> Option<String> {
    if card.asked.is_search() {
        return card.missing.first().map(|why| format!("placements were not ranked: {why}"));
    }
    let is_empty = card.comparison.as_ref().is_some_and(|both| both.card.is_none());
    let why = card.missing.first().map_or("too little was measured", String::as_str);
    is_empty.then(|| format!("unpinned and pinned were not compared: {why}"))
}

/// The limits that were not kept or could not be checked, a sentence each; whether it was broken.
#[must_use]
pub fn limits(card: &RunCard) -> Vec<(bool, String)> {
    let not_kept = card.limits.iter().filter(|limit| limit.is_broken() || limit.measured().is_none());
    not_kept.map(|limit| (limit.is_broken(), rows::limit_text(limit))).collect()
}
