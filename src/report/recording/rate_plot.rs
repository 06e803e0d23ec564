//! The rate of a test over time, with the migrations, losses and pins below it on the same axis.

use super::lost::share_and_count;
use super::words::{count, done, is_udp, known_percent, legend_of_done, length, nominal, step};
use crate::derive::ledger::Bin;
use crate::derive::links::Basis;
use crate::derive::summary::pinned_times;
use crate::derive::{RecordingSummary, TestSummary};
use crate::report::document::{LegendEntry, ReportPlot, legend};
use crate::report::figures::{CommonUnit, digits, grouped as thousands, rate, scale, seconds};
use crate::report::plot::{Lane, LinePlot, LineSeries, PlotColor, PlotPhase, PlotText, PlotTime, lines};

/// Phases that the text alternative lists.
const PHASES_TOLD: usize = 8;
/// More points than these are drawn as their means with the band that they lie in.
const MOST_POINTS: usize = 800;
const FEW_POINTS: usize = 400;
/// Bars of a lane.
const BARS: usize = 120;
/// The axis is made as long as this times the highest rate for a nominal speed, and no longer.
pub(super) const STRETCH: f64 = 1.5;

/// From this part of what was sent on all of it arrives, as far as a plot shows.
const MOST_ARRIVED: f64 = 0.98;

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
        let groups = groups(bins, &cuts(test), bins.len().div_ceil(FEW_POINTS));
        groups.into_iter().map(|group| grouped(group, per_unit, &middle)).unzip()
    } else {
        (bins.iter().map(|bin| (middle(bin), bin.bits_per_s.map(|rate| rate / per_unit))).collect(), Vec::new())
    };
    let highest = bins.iter().filter_map(|bin| bin.bits_per_s).fold(0.0, f64::max) / per_unit;
    let has_band = !band.is_empty();
    let nominal = lowest_nominal(test);
    let of_nominal =
        nominal.as_ref().map(|lowest| (lowest.bits_per_s / per_unit, format!("nominal {}", rate(lowest.bits_per_s))));
    // What is lost lies between what was sent and what arrived: that is worth more than what a link claims.
    let sent = sent_more(test).map(|sent| (sent / per_unit, format!("sent {}", rate(sent))));
    let has_sent = sent.is_some();
    let level = sent.or(of_nominal);
    let reach = level.as_ref().map(|(at, _)| *at).filter(|&at| has_sent || at <= highest * STRETCH);
    let done = done(summary, &test.incidents);
    let mut colors = colors(summary, test, has_band);
    colors.extend(has_sent.then(|| legend("dashed", "what its sender sent, the mean of the test")));
    colors.extend(nominal.filter(|_| !has_sent).map(|Lowest { word, .. }| match reach {
        Some(_) => legend("dashed", format!("{word}, the lowest on its path")),
        None => legend("text none", format!("{word}, the lowest on its path, lies above the axis")),
    }));
    colors.extend(legend_of_done(&done, true));
    let plot = LinePlot {
        x: axis(summary, test),
        y_label: format!("rate, {unit}"),
        y_to: highest.max(reach.unwrap_or(0.0)) * 1.08,
        series: vec![LineSeries { color: PlotColor::Blue, points, band: band.into_iter().flatten().collect() }],
        lanes: [migrations(summary, test), lost(summary, test)].into_iter().chain(again(summary, test)).collect(),
        level,
        done,
    };
    ReportPlot::new(text(summary, test, is_mixed), colors, |text, width| lines(text, width, &plot))
}

/// What a UDP test sent, bits/s, where clearly less of it arrived.
fn sent_more(test: &TestSummary) -> Option<f64> {
    let mean = test.mean_bits_per_s.filter(|_| is_udp(test))?;
    test.sent_bits_per_s.filter(|sent| mean < MOST_ARRIVED * sent)
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

/// A pin carries its threads to their cores within this time, ns: what it does itself stands apart from what follows.
const PINNING_NS: u64 = 200_000_000;

/// When pinned time starts and ends, and when it has started, monotonic ns.
fn cuts(test: &TestSummary) -> Vec<u64> {
    let ends = |(from, to): (u64, Option<u64>)| [from, from.saturating_add(PINNING_NS)].into_iter().chain(to);
    pinned_times(&test.incidents).into_iter().flat_map(ends).collect()
}

/// The bins, so many in one, and never from both sides of a cut: one that reaches across it stands alone.
fn groups<'a>(bins: &'a [Bin], cuts: &[u64], most: usize) -> Vec<&'a [Bin]> {
    // Two more for each cut that is before, one for each that it reaches across.
    let side = |bin: &Bin| -> usize {
        cuts.iter().map(|cut| usize::from(bin.from_ns >= *cut) + usize::from(bin.to_ns > *cut)).sum()
    };
    let parts = bins.chunk_by(|one, other| side(one) == side(other));
    parts.flat_map(|part| part.chunks(most.max(1))).collect()
}

/// Bins in one bar of the migrations.
fn bins_of_bar(test: &TestSummary) -> usize {
    test.rate.bins.len().div_ceil(BARS).max(1)
}

fn migrations(summary: &RecordingSummary, test: &TestSummary) -> Lane {
    let bar = |group: &[Bin]| {
        let moves = group.iter().map(|bin| bin.moves.all() as f64 + bin.unclassed).sum::<f64>();
        let (from, to) = (group[0].from_ns, group[group.len() - 1].to_ns);
        let (from_s, to_s) = (summary.columns.at_s(from), summary.columns.at_s(to));
        (from_s, to_s, moves / (to_s - from_s).max(f64::EPSILON))
    };
    lane(
        "migrations",
        PlotColor::Purple,
        groups(&test.rate.bins, &cuts(test), bins_of_bar(test)).into_iter().map(bar).collect(),
    )
}

fn lost(summary: &RecordingSummary, test: &TestSummary) -> Lane {
    lane("lost", PlotColor::Red, columns(summary, &test.lost_columns))
}

/// What TCP sent again: not known of a test whose recording does not count it, and nothing of datagrams.
fn again(summary: &RecordingSummary, test: &TestSummary) -> Option<Lane> {
    test.own_retransmits.or(test.retransmits).filter(|_| !is_udp(test))?;
    Some(lane("retransmits", PlotColor::Brown, columns(summary, &test.retransmit_columns)))
}

/// Counts by column of time as bars of so many a second.
pub(super) fn columns(summary: &RecordingSummary, counts: &[f64]) -> Vec<(f64, f64, f64)> {
    let column_s = summary.columns.seconds();
    let bar = |(nth, counted): (usize, &f64)| (nth as f64 * column_s, (nth + 1) as f64 * column_s, *counted / column_s);
    counts.iter().enumerate().map(bar).filter(|(_, _, per_s)| *per_s > 0.0).collect()
}

/// Its highest bar says how much that is.
pub(super) fn lane(name: &str, color: PlotColor, bars: Vec<(f64, f64, f64)>) -> Lane {
    let most = bars.iter().map(|(_, _, per_s)| *per_s).filter(|per_s| per_s.is_finite()).fold(0.0, f64::max);
    let highest = if most > 0.0 { format!("max {}/s", large_rate(most)) } else { "none".to_owned() };
    Lane { name: name.to_owned(), color, bars, highest }
}

/// `23.5`, `940`, `14.2k`: short enough for the label of a lane.
fn large_rate(per_s: f64) -> String {
    match per_s {
        999.5e3.. => format!("{}M", digits(per_s / 1e6)),
        9_999.5.. => format!("{}k", digits(per_s / 1e3)),
        999.5.. => thousands(per_s),
        _ => digits(per_s),
    }
}

fn colors(summary: &RecordingSummary, test: &TestSummary, has_band: bool) -> Vec<LegendEntry> {
    let bin = test.rate.jitter.map_or(0.1, |jitter| jitter.bin_s);
    let group = bins_of_bar(test) as f64;
    let band = if has_band { "; the band is from the lowest bin to the highest" } else { "" };
    let mut entries = vec![
        legend("blue", format!("payload in bins of {}{band}", length(bin))),
        legend("purple", format!("migrations/s of its threads from core to core, a bar is {}", length(bin * group))),
        legend("red", format!("packets lost/s, a bar is {}", step(summary))),
    ];
    let whose = if test.own_retransmits.is_some() { "" } else { " in its namespaces" };
    let again =
        again(summary, test).map(|_| legend("brown", format!("TCP segments sent again/s{whose}, a bar as of losses")));
    entries.extend(again);
    entries
}

/// The lowest nominal speed on a path.
struct Lowest {
    bits_per_s: f64,
    /// What it is, and what that is worth.
    word: String,
}

fn lowest_nominal(test: &TestSummary) -> Option<Lowest> {
    let hops = test.paths.iter().flat_map(|path| &path.hops);
    let known = hops.filter_map(|hop| Some((hop.claim_mbps.filter(|&mbps| mbps > 0)?, hop.basis)));
    let (mbps, basis) = known.filter(|(_, basis)| *basis != Basis::None).min_by_key(|(mbps, _)| *mbps)?;
    Some(Lowest { bits_per_s: f64::from(mbps) * 1e6, word: format!("nominal {}", nominal(Some(mbps), basis)) })
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
        let mean = test.mean_bits_per_s.unwrap_or(jitter.mean);
        let unit = CommonUnit::of_rate(mean);
        format!(
            " Mean {}, CV {}, from {} (5th percentile) to {} (95th).",
            unit.figure(mean),
            known_percent(jitter.cv),
            unit.figure(jitter.p5),
            unit.figure(jitter.p95)
        )
    });
    let moves = test
        .rate
        .moves_per_s
        .filter(|_| !is_mixed)
        .map_or_else(String::new, |moves| format!(" {} migrations/s.", digits(moves)));
    let again = test.own_retransmits.or(test.retransmits).filter(|_| !is_udp(test));
    let again = again.map_or_else(String::new, |again| format!(" Retransmits: {}.", count(again)));
    PlotText {
        title: "Rate over time".to_owned(),
        description: format!(
            "Rate of the test over time.{spread}{moves} Packets lost: {}.{again}{}",
            share_and_count(test),
            done_in_words(summary, test)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_column_has_time_from_both_sides_of_a_pin() {
        let bin = |nth: u64| Bin { from_ns: nth * 100, to_ns: (nth + 1) * 100, ..Bin::default() };
        let bins: Vec<Bin> = (0..20).map(bin).collect();
        let ends = |cuts: &[u64]| -> Vec<(u64, u64)> {
            groups(&bins, cuts, 4).iter().map(|group| (group[0].from_ns, group[group.len() - 1].to_ns)).collect()
        };
        assert_eq!(ends(&[]), [(0, 400), (400, 800), (800, 1_200), (1_200, 1_600), (1_600, 2_000)]);
        let across = [(0, 400), (400, 500), (500, 600), (600, 1_000), (1_000, 1_400), (1_400, 1_800), (1_800, 2_000)];
        assert_eq!(ends(&[550]), across, "the bin that the pin falls into stands alone");
        assert_eq!(ends(&[600])[1..3], [(400, 600), (600, 1_000)], "between two bins nothing stands alone");
    }
}
