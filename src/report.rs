//! Metrics → text for other programs. The same numbers as on the screen; unknown is null.

pub mod anonymise;
pub mod card;
pub mod comparison;
pub mod doctor;
mod document;
#[cfg(feature = "export")]
pub mod exposition;
mod figures;
pub mod fleet;
pub mod json;
mod page;
mod pair;
pub mod plot;
pub mod recording;
pub mod run;
mod written_as;

pub use written_as::WrittenAs;

/// How a card is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// For a terminal.
    #[default]
    Text,
    /// For a report or an issue.
    Markdown,
    /// For a program: one object on one line.
    Json,
}

/// RFC 3339, UTC, milliseconds.
#[must_use]
pub fn timestamp(wall_ms: u64) -> String {
    let instant = i64::try_from(wall_ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    instant.map_or_else(String::new, |instant| format!("{instant:.3}"))
}

/// The time of the day of a moment in milliseconds since 1970, to the second, with its zone: UTC.
#[must_use]
pub fn time_of_day(wall_ms: u64) -> String {
    let whole = timestamp(wall_ms);
    whole.get(11..19).map_or_else(String::new, |time| format!("{time} UTC"))
}
