//! The rate of a test over time, with the migrations, losses and pins below it on the same axis.

use super::words::{count, known_percent, length, marks};
use crate::derive::ledger::Bin;
use crate::derive::{RecordingSummary, TestSummary};
use crate::report::document::{LegendEntry, ReportPlot, legend};
use crate::report::figures::{digits, rate, scale};
use crate::report::plot::{Lane, LinePlot, LineSeries, PlotColor, PlotText, PlotTime, lines};

/// More points than these are drawn as their means with the band that they lie in.
const MOST_POINTS: usize = 800;
const FEW_POINTS: usize = 400;
/// Bars of a lane.
const BARS: usize = 120;

/// The time of a test on the axis of its recording: all of it where there is no other test.
pub(super) fn axis(summary: &RecordingSummary, test: &TestSummary) -> PlotTime {
    let at = |ns| summary.columns.at_s(ns);
    let whole = PlotTime { from_s: 0.0, to_s: summary.seconds() };
    let own = PlotTime { from_s: at(test.from_ns), to_s: at(test.to_ns) };
    let is_most = own.to_s - own.from_s > whole.to_s / 2.0;
    if summary.tests.len() == 1 || is_most { whole } else { own }
}

pub(super) fn rate_plot(summary: &RecordingSummary, test: &TestSummary) -> ReportPlot {
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
    let plot = LinePlot {
        x: axis(summary, test),
        y_label: format!("rate, {unit}"),
        y_to: highest * 1.08,
        series: vec![LineSeries { color: PlotColor::Blue, points, band: band.into_iter().flatten().collect() }],
        lanes: vec![migrations(summary, bins), lost(summary, test)],
        marks: marks(summary, &test.incidents),
    };
    ReportPlot::new(text(test), colors(test, has_band), |text, width| lines(text, width, &plot))
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

fn colors(test: &TestSummary, has_band: bool) -> Vec<LegendEntry> {
    let bin = test.rate.jitter.map_or(0.1, |jitter| jitter.bin_s);
    let band = if has_band { "; the band is from the lowest bin to the highest" } else { "" };
    let mut colors = vec![
        legend("blue", format!("payload in bins of {}{band}", length(bin))),
        legend("purple", "migrations of its threads from core to core"),
        legend("red", "packets lost"),
    ];
    if !test.incidents.is_empty() {
        colors.push(legend("orange", "a pin, its removal, or a mark"));
    }
    colors
}

fn text(test: &TestSummary) -> PlotText {
    let spread = test.rate.jitter.map_or_else(String::new, |jitter| {
        format!(
            " Mean {}, CV {}, from {} (5th percentile) to {} (95th).",
            rate(jitter.mean),
            known_percent(jitter.cv),
            rate(jitter.p5),
            rate(jitter.p95)
        )
    });
    let moves = test.rate.moves_per_s.map_or_else(String::new, |moves| format!(" {} migrations/s.", digits(moves)));
    let done = test.incidents.len();
    let done = if done > 0 { format!(" Pins and marks: {done}.") } else { String::new() };
    PlotText {
        title: "Rate over time".to_owned(),
        description: format!("Rate of the test over time.{spread}{moves} {} packets lost.{done}", count(test.lost)),
    }
}
