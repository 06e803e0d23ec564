//! Where the packets and threads of the test wait: a stage a line, in the order of the data's path, with what holds them longest on
//! top, and the last second's times on an axis that every line shares.

use super::Tone;
use super::canvas::fitted;
use super::format::{Count, Elapsed, Seconds, Share, UNKNOWN};
use super::lines::{Line, sentences};
use super::strip::block;
use crate::derive::TestMetrics;
use crate::derive::latency::{Histogram, StageLatency, TestLatency};
use crate::sample::ProblemSource;
use crate::state::{Mode, State};

/// Cells of the figures: how many a second, median, 99th percentile, longest, and the share of the path.
const FIGURES: [usize; 5] = [6, 8, 8, 8, 6];
/// Cells of the axis: two powers of two each, from 128 ns to 34 s.
const AXIS: usize = 14;
/// Where the axis has its marks, by cell.
const MARKS: [(usize, &str); 3] = [(1, "1us"), (6, "1ms"), (11, "1s")];
/// Longer than this is worth a look, and a look at once, s.
const SLOW_S: f64 = 1e-3;
const VERY_SLOW_S: f64 = 1e-2;

/// How bad a latency is, whatever its glyph.
pub(super) fn tone(seconds: f64) -> Tone {
    match seconds {
        VERY_SLOW_S.. => Tone::Bad,
        SLOW_S.. => Tone::Warning,
        _ => Tone::Normal,
    }
}

/// The stages, or why there are none.
pub(super) fn lines(state: &State, width: u16) -> Vec<Line> {
    let Some(metrics) = state.metrics() else { return sentences(Tone::Muted, "nothing is known yet", width) };
    let metrics = &*metrics.subject;
    let Some(latency) = metrics.latency.as_deref() else {
        return sentences(Tone::Muted, missing(state, metrics), width);
    };
    let mut lines = Vec::new();
    match &latency.cause {
        Some(cause) => {
            lines.extend(sentences(Tone::Bad, &cause.text, width));
            let remedy = cause.remedy.iter().flat_map(|remedy| sentences(Tone::Key, remedy, width));
            lines.extend(remedy);
        }
        None if latency.stages.is_empty() => {}
        None => {
            let (tone, text) = no_cause(metrics, latency);
            lines.extend(sentences(tone, &text, width));
        }
    }
    let (tone, text) = legend(latency);
    lines.extend(sentences(tone, &text, width));
    let width = usize::from(width);
    lines.push(head(width));
    let first = lines.len();
    let path_s: f64 = steps(latency).filter_map(|one| one.now).map(|now| now.mean_s).sum();
    for stage in &latency.stages {
        let share = || stage.now.filter(|_| path_s > 0.0).map(|now| now.mean_s / path_s);
        let share = if stage.key.is_of_packets() && !stage.key.is_back { share() } else { None };
        lines.push(row(metrics, latency, (stage, share), width));
    }
    // Beside the stages that it is made of.
    let on_links = latency.stages.iter().take_while(|one| one.key.is_link() && !one.key.is_back).count();
    let whole = latency.whole.iter().map(|whole| row(metrics, latency, (whole, None), width));
    lines.splice(first + on_links..first + on_links, whole);
    for unknown in &latency.unknown {
        lines.extend(sentences(Tone::Warning, &unknown.to_string(), u16::try_from(width).unwrap_or(u16::MAX)));
    }
    lines
}

/// Where no stage is slow, the one wait that was: it may be what a loss or a dip came from.
fn no_cause(metrics: &TestMetrics, latency: &TestLatency) -> (Tone, String) {
    let none = "no stage takes 1 ms (p99)".to_owned();
    let longest = |stage: &'_ StageLatency| Some((stage.now.filter(|_| !stage.key.is_gap())?.max_s, stage.key));
    let longest = latency.stages.iter().filter_map(longest).max_by(|one, other| one.0.total_cmp(&other.0));
    match longest.filter(|(max_s, _)| *max_s >= VERY_SLOW_S) {
        Some((max_s, key)) => {
            let place = latency.place(metrics.latency_ground(), &key);
            (Tone::Warning, format!("{none}; the longest single wait: {}, {place}", Elapsed(max_s)))
        }
        None => (Tone::Good, none),
    }
}

/// Stages of the data that a packet passes one after the other.
fn steps(latency: &TestLatency) -> impl Iterator<Item = &StageLatency> {
    latency.stages.iter().filter(|one| one.key.is_of_packets() && !one.key.is_back)
}

fn missing(state: &State, metrics: &TestMetrics) -> &'static str {
    match state.settings().mode {
        Mode::Replay => "recorded without --latency and with this list closed: there are none",
        _ if metrics.machine.facts.problems.iter().any(|problem| problem.source == ProblemSource::Kernel) => {
            "not known: the BPF programs that measure it do not run here; F shows why"
        }
        _ if metrics.flow.connections.is_empty() => "no test runs: start one, then its packets are followed",
        _ => "the BPF programs are being attached",
    }
}

/// Of which time the figures are, and of which part of it.
fn legend(latency: &TestLatency) -> (Tone, String) {
    if let Some(ago_s) = latency.measured_ago_s {
        return (Tone::Warning, format!("as it was {} ago, when it was measured last", Seconds(ago_s)));
    }
    let over = format!("the last {}; % PATH: share of the mean time on the path", Seconds(latency.over_s));
    match latency.packets_looked {
        Some(share) if share < 0.95 => {
            // A look is 0.15 s long at least, and follows packets from its first half on.
            let text =
                format!("{over}; packets are followed {} of the time: a wait over 0.07 s may be missed", Share(share));
            (Tone::Warning, text)
        }
        _ => (Tone::Muted, over),
    }
}

fn head(width: usize) -> Line {
    let titles = ["N", "P50", "P99", "MAX", "% PATH"];
    let figures = FIGURES.iter().zip(titles).map(|(&cells, title)| format!(" {title:>cells$}"));
    let figures = figures.collect::<Vec<_>>().concat();
    let mut axis = vec![' '; AXIS + 2];
    for (at, mark) in MARKS {
        for (place, glyph) in axis.iter_mut().skip(at).zip(mark.chars()) {
            *place = glyph;
        }
    }
    let axis: String = axis.into_iter().collect();
    let place = place_cells(width);
    let axis = if has_axis(width) { format!("  {axis}") } else { String::new() };
    vec![(Tone::Header, format!("{}{figures}{axis}", fitted("WHERE TIME PASSES", place)))]
}

fn has_axis(width: usize) -> bool {
    width >= 90
}

fn place_cells(width: usize) -> usize {
    let figures: usize = FIGURES.iter().map(|cells| cells + 1).sum();
    width.saturating_sub(figures + if has_axis(width) { AXIS + 4 } else { 0 }).max(16)
}

fn row(
    metrics: &TestMetrics,
    latency: &TestLatency,
    (stage, share): (&StageLatency, Option<f64>),
    width: usize,
) -> Line {
    let back = if stage.key.is_back { "back: " } else { "" };
    // What stands beside the path is indented: it is in the stages above, or no wait at all.
    let indent = if stage.key.is_of_packets() { "" } else { " " };
    let place = format!("{indent}{back}{}", latency.place(metrics.latency_ground(), &stage.key));
    let slow = stage.now.filter(|_| !stage.key.is_gap()).map_or(Tone::Normal, |now| tone(now.p99_s));
    let time = |of: fn(&crate::derive::latency::Spread) -> f64| {
        stage.now.as_ref().map_or_else(|| UNKNOWN.to_owned(), |now| Elapsed(of(now)).to_string())
    };
    let texts = [
        Count(stage.now.map(|now| now.count as f64)).to_string(),
        time(|now| now.p50_s),
        time(|now| now.p99_s),
        time(|now| now.max_s),
        share.map_or_else(String::new, |share| Share(share).to_string()),
    ];
    let place_tone = if stage.key.is_gap() { Tone::Muted } else { slow };
    let mut line = vec![(place_tone, fitted(&place, place_cells(width)))];
    let tones = [Tone::Muted, Tone::Normal, slow, slow, Tone::Normal];
    line.extend(
        tones.into_iter().zip(&texts).zip(FIGURES).map(|((tone, text), cells)| (tone, format!(" {text:>cells$}"))),
    );
    if has_axis(width) {
        line.push((Tone::Normal, "  ".to_owned()));
        line.extend(axis(&stage.recent));
    }
    line
}

/// The times on the axis: the height of a glyph is how many they are, on a scale that shows few ones too.
fn axis(times: &Histogram) -> Vec<(Tone, String)> {
    let mut cells = [0_u64; AXIS];
    for (to_s, count) in times.powers_of_two() {
        // 256 ns is the end of the first power of two.
        let power = (to_s * 1e9 / 256.0).max(1.0).log2();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 27")]
        let at = (power / 2.0) as usize;
        cells[at.min(AXIS - 1)] += count;
    }
    let all: u64 = cells.iter().sum();
    let glyph = |(at, &count): (usize, &u64)| {
        if count == 0 {
            return (Tone::Muted, "·".to_owned());
        }
        let ends_s = 256e-9 * 4_f64.powi(i32::try_from(at).unwrap_or(0));
        // One of a million is an eighth of all of them.
        let height = 1.0 + (count as f64 / all as f64).log10() / 7.0;
        (tone(ends_s / 2.0), block(height.max(0.0)).to_string())
    };
    cells.iter().enumerate().map(glyph).collect()
}
