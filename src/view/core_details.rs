//! The details of one core, and what is special about the others, in as many rows as there are.

use super::Tone;
use super::bars::busy_tone;
use super::canvas::{Canvas, cells};
use super::format::{Count, Percent, Seconds};
use crate::derive::cores::CoreLoad;
use crate::derive::{CoreMetrics, Metrics};
use crate::sample::{CorePlace, CoreSet, SOFTIRQ_KINDS, SoftirqKind, Word};
use crate::state::State;

/// A few words of one tone.
pub(super) type Phrase = (Tone, String);

/// Draws from row `y` on: the core, and at the end the special cores. Those of watched threads have a `t` in what is above, or none.
pub(super) fn prepare(
    canvas: &mut Canvas,
    state: &State,
    metrics: &Metrics,
    (watched, has_t): (&CoreSet, bool),
    y: u16,
) {
    let rows = canvas.area.height.saturating_sub(y);
    let Some(index) = state.cores.looked_at() else { return };
    let special = special(metrics, watched, has_t);
    let needed = self::rows(&special, canvas.area.width);
    let last = needed.min(rows.saturating_sub(2));
    let mut phrases = phrases(&metrics.machine.cores[index], metrics.machine.elapsed_s);
    if has_t && last == 0 && !watched.is_empty() {
        // Behind how busy it is.
        phrases.insert(phrases.len().min(1), (Tone::Watched, "t your threads".to_owned()));
    }
    flow(canvas, y, rows - last, &phrases);
    flow(canvas, y + rows - last, last, &special);
}

/// What is known of a core over the last tick, the most important first.
pub(super) fn phrases(core: &CoreMetrics, elapsed_s: Option<f64>) -> Vec<Phrase> {
    let number = core.place.core;
    let Some(load) = &core.load else {
        let why = if core.place.online { "not known yet" } else { "offline" };
        let mut phrases = vec![(Tone::Normal, format!("core {number}: {why}"))];
        phrases.extend(place(&core.place));
        return phrases;
    };
    let mut phrases = Vec::new();
    let shares = core.shares();
    match &shares {
        Some(shares) => {
            let tone = busy_tone(shares.busy());
            let tone = if tone == Tone::Muted { Tone::Normal } else { tone };
            phrases.push((tone, format!("core {number}: {} % busy", Percent(Some(shares.busy())))));
            phrases.push((Tone::Normal, format!("{} % softirq", Percent(Some(shares.softirq)))));
        }
        None => phrases.push((Tone::Normal, format!("core {number}: time not known"))),
    }
    let kinds = kinds(load);
    let (first, rest) = kinds.split_at(kinds.len().min(2));
    phrases.extend(first.iter().cloned());
    let (trouble, quiet): (Vec<Phrase>, Vec<Phrase>) =
        softnet(load).into_iter().partition(|(tone, _)| *tone != Tone::Muted);
    phrases.extend(trouble);
    if let Some(shares) = &shares {
        let parts = [
            ("user", shares.user),
            ("system", shares.system),
            ("irq", shares.irq),
            ("steal", shares.steal),
            ("idle", shares.idle),
        ];
        phrases.extend(parts.map(|(word, share)| (Tone::Muted, format!("{} % {word}", Percent(Some(share))))));
        phrases.extend(elapsed_s.map(|seconds| (Tone::Muted, format!("over {}", Seconds(seconds)))));
    }
    phrases.extend(quiet);
    phrases.extend(load.ksoftirqd.map(|share| {
        (if share > 0.01 { Tone::Warning } else { Tone::Muted }, format!("ksoftirqd {} %", Percent(Some(share))))
    }));
    phrases.extend(place(&core.place));
    phrases.extend(rest.iter().cloned());
    phrases
}

/// Softirqs a second by kind, largest first; kinds that did not happen are left out.
fn kinds(load: &CoreLoad) -> Vec<Phrase> {
    let happened = |(kind, rate): (&SoftirqKind, &Option<f64>)| Some((kind.word(), rate.filter(|rate| *rate > 0.0)?));
    let mut kinds: Vec<(&str, f64)> = SOFTIRQ_KINDS.iter().zip(&load.softirqs_per_s).filter_map(happened).collect();
    kinds.sort_by(|a, b| b.1.total_cmp(&a.1));
    kinds.into_iter().map(|(name, rate)| (Tone::Normal, format!("{name} {}/s", Count(Some(rate))))).collect()
}

fn softnet(load: &CoreLoad) -> Vec<Phrase> {
    let trouble = |rate: Option<f64>, word: &str, loud: Tone| {
        let tone = if rate.is_some_and(|rate| rate > 0.0) { loud } else { Tone::Muted };
        rate.map(|rate| (tone, format!("{} {word}/s", Count(Some(rate)))))
    };
    let mut phrases: Vec<Phrase> = Vec::new();
    phrases.extend(trouble(load.softnet_dropped_per_s, "backlog drops", Tone::Bad));
    phrases.extend(trouble(load.softnet_squeezed_per_s, "squeezed", Tone::Warning));
    phrases.extend(trouble(load.softnet_processed_per_s, "processed", Tone::Muted));
    phrases
}

fn place(place: &CorePlace) -> Vec<Phrase> {
    let levels = [
        ("node", place.node),
        ("socket", place.socket),
        ("llc", place.llc),
        ("cluster", place.cluster),
        ("capacity", place.capacity),
    ];
    let known = levels.into_iter().filter_map(|(word, number)| Some((Tone::Muted, format!("{word} {}", number?))));
    known.collect()
}

/// Cores that threads are on, that are isolated, that are offline.
fn special(metrics: &Metrics, watched: &CoreSet, has_t: bool) -> Vec<Phrase> {
    let offline: CoreSet =
        metrics.machine.cores.iter().filter(|core| !core.place.online).map(|core| core.place.core).collect();
    let sets = [
        (Tone::Watched, if has_t { "t your threads: cores" } else { "your threads: cores" }, watched),
        (Tone::Muted, "i isolated", &metrics.machine.facts.topology.isolated),
        (Tone::Muted, "x offline", &offline),
    ];
    let named = sets.into_iter().filter(|(_, _, set)| !set.is_empty());
    named.map(|(tone, word, set)| (tone, format!("{word} {set}"))).collect()
}

/// Phrases one after the other, a new row where one does not fit; what is left over is left out.
pub(super) fn flow(canvas: &mut Canvas, y: u16, rows: u16, phrases: &[Phrase]) {
    for (row, x, phrase) in placed(phrases, canvas.area.width) {
        if row >= rows {
            break;
        }
        if x > 1 {
            canvas.left(x - 3, y + row, 3, Tone::Muted, " · ");
        }
        canvas.left(x, y + row, canvas.area.width, phrase.0, &phrase.1);
    }
}

/// Rows that phrases take.
pub(super) fn rows(phrases: &[Phrase], width: u16) -> u16 {
    placed(phrases, width).last().map_or(0, |(row, ..)| row + 1)
}

/// The row and column of each phrase.
fn placed(phrases: &[Phrase], width: u16) -> impl Iterator<Item = (u16, u16, &Phrase)> {
    let (mut x, mut row) = (1, 0);
    phrases.iter().map(move |phrase| {
        let needed = u16::try_from(cells(&phrase.1)).unwrap_or(u16::MAX);
        if x > 1 && needed.saturating_add(x + 3) > width {
            (x, row) = (1, row + 1);
        } else if x > 1 {
            x += 3;
        }
        let at = x;
        x = x.saturating_add(needed);
        (row, at, phrase)
    })
}
