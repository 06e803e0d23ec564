//! The rate of a test over time, with the migrations, losses and pins below it on the same axis.

use super::words::{count, done, known_percent, legend_of_done, length, nominal};
use crate::derive::ledger::Bin;
use crate::derive::links::Basis;
use crate::derive::{RecordingSummary, TestSummary};
use crate::report::document::{LegendEntry, ReportPlot, legend};
use crate::report::figures::{digits, rate, scale, seconds};
use crate::report::plot::{Lane, LinePlot, LineSeries, PlotColor, PlotPhase, PlotText, PlotTime, lines};

/// Phases that the text alternative lists.
const PHASES_TOLD: usize = 8;
/// More points than these are drawn as their means with the band that they lie in.
const MOST_POINTS: usize = 800;
const FEW_POINTS: usize = 400;
/// Bars of a lane.
const BARS: usize = 120;
/// The axis is made as long as this times the highest rate for a nominal speed, and no longer.
const STRETCH: f64 = 1.5;

/// The time of a test on the axis of its recording: all of it where there is no other test.
pub(super) fn axis(summary: &RecordingSummary, test: &TestSummary) -> PlotTime {
    let at = |ns| summary.columns.at_s(ns);
    let whole = PlotTime { from_s: 0.0, to_s: summary.seconds() };
    let own = PlotTime { from_s: at(test.from_ns), to_s: at(test.to_ns) };
    let is_most = own.to_s - own.from_s > whole.to_s / 2.0;
    if summary.tests.len() == 1 || is_most { whole } else { own }
}

/// `is_mixed`: pinned and unpinned time are both in it, so that its mean is of neither.
pub(super) fn rate_plot(summary: &RecordingSummary, test: &TestSummary, is_mixed: bool) -> ReportPlot {
    let bins = &test.rate.bins;
    let (per_unit, unit) = scale(bins.iter().filter_map(|bin| bin.bits_per_s).fold(0.0, f64::max));
    let at = |ns| summary.columns.at_s(ns);
    let middle = |bin: &Bin| at(bin.from_ns + bin.length_ns() / 2);
    let (points, band): (Vec<_>, Vec<_>) = if bins.len() > MOST_POINTS {
        let grouped = bins.chunks(bins.len().div_ceil(FEW_POINTS)).map(|group| grouped(group, per_unit, &middle));
        grouped.unzip()
    } else {
        (bins.iter().map(|bin| (middle(bin), bin.bits_per_s.map(|rate| rate / per_unit))).collect(), Vec::new())
    };
    let highest = bins.iter().filter_map(|bin| bin.bits_per_s).fold(0.0, f64::max) / per_unit;
    let has_band = !band.is_empty();
    let nominal = lowest_nominal(test);
    let level = nominal.as_ref().map(|(bits_per_s, _)| bits_per_s / per_unit);
    let reach = level.filter(|&at| at <= highest * STRETCH);
    let done = done(summary, &test.incidents);
    let mut colors = colors(summary, test, has_band);
    colors.extend(nominal.map(|(_, word)| match reach {
        Some(_) => legend("gray", format!("{word}, the lowest on its path")),
        None => legend("gray", format!("{word}, the lowest on its path, lies above the axis")),
    }));
    colors.extend(legend_of_done(&done, true));
    let plot = LinePlot {
        x: axis(summary, test),
        y_label: format!("rate, {unit}"),
        y_to: highest.max(reach.unwrap_or(0.0)) * 1.08,
        series: vec![LineSeries { color: PlotColor::Blue, points, band: band.into_iter().flatten().collect() }],
        lanes: vec![migrations(summary, bins), lost(summary, test)],
        level,
        done,
    };
    ReportPlot::new(text(summary, test, is_mixed), colors, |text, width| lines(text, width, &plot))
}

type Point = (f64, Option<f64>);
type Band = Option<(f64, f64, f64)>;

/// Several bins as one point.
fn grouped(group: &[Bin], bits: f64, middle: &impl Fn(&Bin) -> f64) -> (Point, Band) {
    let at = middle(&group[group.len() / 2]);
    let rates: Vec<f64> = group.iter().filter_map(|bin| bin.bits_per_s).map(|rate| rate / bits).collect();
    if rates.is_empty() {
        return ((at, None), None);
    }
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    let (low, high) = rates.iter().fold((f64::MAX, 0.0_f64), |(low, high), rate| (low.min(*rate), high.max(*rate)));
    ((at, Some(mean)), Some((at, low, high)))
}

fn migrations(summary: &RecordingSummary, bins: &[Bin]) -> Lane {
    let bar = |group: &[Bin]| {
        let moves = group.iter().map(|bin| bin.moves.all() as f64 + bin.unclassed).sum::<f64>();
        let (from, to) = (group[0].from_ns, group[group.len() - 1].to_ns);
        (summary.columns.at_s(from), summary.columns.at_s(to), moves)
    };
    let groups = bins.chunks(bins.len().div_ceil(BARS).max(1));
    Lane { name: "migrations".to_owned(), color: PlotColor::Purple, bars: groups.map(bar).collect() }
}

fn lost(summary: &RecordingSummary, test: &TestSummary) -> Lane {
    let column_s = summary.columns.seconds();
    let bar = |(nth, packets): (usize, &f64)| (nth as f64 * column_s, (nth + 1) as f64 * column_s, *packets);
    Lane {
        name: "lost".to_owned(),
        color: PlotColor::Red,
        bars: test.lost_columns.iter().enumerate().map(bar).filter(|(_, _, packets)| *packets > 0.0).collect(),
    }
}

fn colors(summary: &RecordingSummary, test: &TestSummary, has_band: bool) -> Vec<LegendEntry> {
    let bin = test.rate.jitter.map_or(0.1, |jitter| jitter.bin_s);
    let group = test.rate.bins.len().div_ceil(BARS).max(1) as f64;
    let band = if has_band { "; the band is from the lowest bin to the highest" } else { "" };
    vec![
        legend("blue", format!("payload in bins of {}{band}", length(bin))),
        legend("purple", format!("migrations of its threads from core to core, in columns of {}", length(bin * group))),
        legend("red", format!("packets lost, in columns of {}", length(summary.columns.seconds()))),
    ]
}

/// The lowest nominal speed on its path, bits/s, and as words.
fn lowest_nominal(test: &TestSummary) -> Option<(f64, String)> {
    let hops = test.paths.iter().flat_map(|path| &path.hops);
    let known = hops.filter_map(|hop| Some((hop.claim_mbps.filter(|&mbps| mbps > 0)?, hop.basis)));
    let (mbps, basis) = known.filter(|(_, basis)| *basis != Basis::None).min_by_key(|(mbps, _)| *mbps)?;
    Some((f64::from(mbps) * 1e6, format!("nominal {}", nominal(Some(mbps), basis))))
}

/// When threads were pinned and marks set, for who cannot see it.
fn done_in_words(summary: &RecordingSummary, test: &TestSummary) -> String {
    let done = done(summary, &test.incidents);
    let phase = |phase: &PlotPhase| format!("{} to {}", seconds(phase.from_s), seconds(phase.to_s));
    let phases = done.pinned.iter().take(PHASES_TOLD).map(phase).collect::<Vec<_>>().join(", ");
    let more = if done.pinned.len() > PHASES_TOLD { ", …" } else { "" };
    let pinned = if phases.is_empty() { String::new() } else { format!(" Pinned from {phases}{more}.") };
    let marks = if done.marks_s.is_empty() { String::new() } else { format!(" Marks: {}.", done.marks_s.len()) };
    pinned + &marks
}

fn text(summary: &RecordingSummary, test: &TestSummary, is_mixed: bool) -> PlotText {
    let spread = test.rate.jitter.filter(|_| !is_mixed).map_or_else(String::new, |jitter| {
        format!(
            " Mean {}, CV {}, from {} (5th percentile) to {} (95th).",
            rate(test.mean_bits_per_s.unwrap_or(jitter.mean)),
            known_percent(jitter.cv),
            rate(jitter.p5),
            rate(jitter.p95)
        )
    });
    let moves = test
        .rate
        .moves_per_s
        .filter(|_| !is_mixed)
        .map_or_else(String::new, |moves| format!(" {} migrations/s.", digits(moves)));
    PlotText {
        title: "Rate over time".to_owned(),
        description: format!(
            "Rate of the test over time.{spread}{moves} {} packets lost.{}",
            count(test.lost),
            done_in_words(summary, test)
        ),
    }
}
