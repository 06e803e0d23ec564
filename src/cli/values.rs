//! Values of options: each is what was meant, or one sentence that says what is allowed.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::error::Error;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

/// One of these words, as what it says.
pub(super) fn words<T, const N: usize>(words: [&'static str; N]) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err: Error + Send + Sync + 'static> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(words.map(PossibleValue::new)).try_map(|word| T::from_str(&word))
}

/// Seconds of this range, or the sentence that says which.
pub(super) fn seconds_of(text: &str, range: RangeInclusive<f64>, wrong: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| range.contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| wrong.to_owned())
}

pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let _number: f64 = text.parse().map_err(|_| "give seconds, for example 0.5".to_owned())?;
    seconds_of(text, 0.01..=3600.0, "an interval is between 0.01 and 3600 seconds")
}

/// A core to profile, or `limit`.
pub(super) fn profile(text: &str) -> Result<String, String> {
    let is_one = text == "limit" || text.parse::<u32>().is_ok();
    if is_one { Ok(text.to_owned()) } else { Err("give a core's number, or limit".to_owned()) }
}

/// Time between sentences.
pub(super) fn lines(text: &str) -> Result<Duration, String> {
    seconds_of(text, 0.5..=3600.0, "give seconds between lines, 0.5 to 3600, for example 5")
}

/// How many intervals.
pub(super) fn count(text: &str) -> Result<u64, String> {
    text.parse().ok().filter(|count| *count > 0).ok_or_else(|| "give a whole number, at least 1".to_owned())
}

/// How often something is done.
pub(super) fn times(text: &str) -> Result<u32, String> {
    let times = text.parse().ok().filter(|times| (1..=1000).contains(times));
    times.ok_or_else(|| "give a whole number from 1 to 1000".to_owned())
}

/// How many links.
pub(super) fn links(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "give a number of links, for example 2000".to_owned())
}

/// Whether something is done.
pub(super) fn on_or_off(text: &str) -> Result<bool, String> {
    match text.to_lowercase().as_str() {
        "on" | "yes" | "true" | "1" => Ok(true),
        "off" | "no" | "false" | "0" => Ok(false),
        _ => Err("give on or off".to_owned()),
    }
}

/// How many packets.
pub(super) fn packets(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "give a number of packets, for example 0".to_owned())
}

pub(super) fn watch(text: &str) -> Result<String, String> {
    if text.is_empty() || text == "0" { Err("give a command name or a pid".to_owned()) } else { Ok(text.to_owned()) }
}

pub(super) fn pair(text: &str) -> Result<(String, String), String> {
    let wrong = || "give a setting and its value, for example links.sort=rx".to_owned();
    let (name, value) = text.split_once('=').ok_or_else(wrong)?;
    let (name, value) = (name.trim(), value.trim());
    if name.is_empty() { Err(wrong()) } else { Ok((name.to_owned(), value.to_owned())) }
}

pub(super) fn netns(text: &str) -> Result<String, String> {
    let wrong = text.is_empty() || text.chars().any(char::is_control);
    if wrong { Err("give all, self or the name of a namespace".to_owned()) } else { Ok(text.to_owned()) }
}

/// How fast a recording is replayed: times its own speed, or without an end.
pub(super) fn speed(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('x').parse::<f64>() {
        _ if text == "max" => Ok(f64::INFINITY),
        Ok(times) if (0.01..=1000.0).contains(&times) => Ok(times),
        _ => Err("a speed is between 0.01 and 1000 times real time, or max".to_owned()),
    }
}

/// Seconds, minutes and seconds, or hours too; only the first may be 60 or more.
pub(super) fn place(text: &str) -> Result<Duration, String> {
    let wrong = || "give the time since its start, as in 90, 1:30 or 1:02:03".to_owned();
    let parts: Vec<&str> = text.split(':').collect();
    let mut seconds = 0.0;
    for (at, part) in parts.iter().enumerate() {
        let number: f64 = part.parse().map_err(|_| wrong())?;
        if !(0.0..1e6).contains(&number) || at > 0 && number >= 60.0 || at + 1 < parts.len() && number.fract() > 0.0 {
            return Err(wrong());
        }
        seconds = seconds * 60.0 + number;
    }
    if parts.len() > 3 { Err(wrong()) } else { Ok(Duration::from_secs_f64(seconds)) }
}

pub(super) fn size(text: &str) -> Result<(u16, u16), String> {
    let wrong = || "give columns and rows, for example 80x24 (at least 60x15, at most 1000x500)".to_owned();
    let (width, height) = text.split_once(['x', 'X']).ok_or_else(wrong)?;
    match (width.parse::<u16>(), height.parse::<u16>()) {
        (Ok(width @ 60..=1000), Ok(height @ 15..=500)) => Ok((width, height)),
        _ => Err(wrong()),
    }
}

/// Time that is kept: minutes or seconds with their unit.
pub(super) fn kept(text: &str) -> Result<Duration, String> {
    let units = [("min", 60.0), ("m", 60.0), ("s", 1.0)];
    let found = units.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, *seconds)));
    let (number, seconds) = if text == "0" { (text, 1.0) } else { found.unwrap_or(("", 1.0)) };
    let time = number.trim().parse::<f64>().ok().map(|number| number * seconds);
    let time = time.filter(|time| (0.0..=3600.0).contains(time)).map(Duration::from_secs_f64);
    time.ok_or_else(|| "give a time up to 60m with its unit, for example 5m or 90s; 0 keeps nothing".to_owned())
}

/// Time before or after an event.
pub(super) fn span(text: &str) -> Result<Duration, String> {
    seconds_of(text, 0.0..=600.0, "give seconds, 0 to 600")
}

/// Files that are left.
pub(super) fn files(text: &str) -> Result<usize, String> {
    let files = text.parse().ok().filter(|files| (1..=10_000).contains(files));
    files.ok_or_else(|| "give a number of files, 1 to 10000".to_owned())
}
