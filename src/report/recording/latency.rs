//! What a report says of where a test's packets and threads waited: what held them longest, the stages in a table, and how the
//! times of the whole path are spread.

use super::thread_names::ThreadNames;
use super::words::count;
use crate::derive::TestSummary;
use crate::derive::finding::FindingId;
use crate::derive::latency::{Histogram, Spread, Stage};
use crate::derive::summary::StageSummary;
use crate::report::document::{Block, ReportPlot, ReportTable, legend};
use crate::report::figures::{CommonUnit, digits, percent, time};
use crate::report::plot::{BarPlot, BarRow, BarScale, PlotColor, PlotText, bars};

/// A second, us.
const US: f64 = 1e6;
/// Stages of the data that have a bar.
const BARS: usize = 16;
/// A stage that took so long is worth a sentence, s.
const WORTH_S: f64 = 1e-3;

/// Nothing where it was not measured.
pub(super) fn blocks(test: &TestSummary, names: &ThreadNames) -> Vec<Block> {
    let known: Vec<(&StageSummary, Spread)> =
        test.stages.iter().filter_map(|stage| Some((stage, stage.times.spread()?))).collect();
    if known.is_empty() {
        return Vec::new();
    }
    let mut blocks = vec![Block::Subheading("Where packets and threads waited".to_owned())];
    blocks.push(Block::Lead(lead((test, names), &known)));
    blocks.extend(not_measured(test).map(Block::Text));
    blocks.extend(stages_plot(&known));
    let whole = known.iter().find(|(stage, _)| stage.key.stage == Stage::Whole);
    blocks.extend(whole.map(|(stage, spread)| histogram(&stage.times, *spread)));
    let row = |(stage, spread): &(&StageSummary, Spread)| {
        let back = if stage.key.is_back { "back: " } else { "" };
        let figures = [spread.mean_s, spread.p50_s, spread.p99_s, spread.max_s];
        let unit = CommonUnit::of_times(&figures);
        let figures = figures.map(|time| unit.figure(time));
        let mut row = vec![format!("{back}{}", names.sentence(&stage.place)), count(spread.count as f64)];
        row.extend(figures);
        row
    };
    let columns = ["where time passes", ">count", ">mean", ">p50", ">p99", ">longest"];
    let caption = "The whole path, its stages in the packets' order, then what is beside them";
    blocks.push(Block::Table(ReportTable::new(caption, &columns, known.iter().map(row).collect())));
    blocks
}

/// What held packets or threads longest. That no stage did is said of those that were measured.
fn lead((test, names): (&TestSummary, &ThreadNames), known: &[(&StageSummary, Spread)]) -> String {
    if let Some(seen) = test.findings.iter().find(|seen| seen.finding.id == FindingId::Latency) {
        let said = &seen.finding.text;
        // The sentence has the figures of a moment, the stage those of all of the test.
        // Of two directions of one place the way of the data is meant.
        let stage = known.iter().rev().filter(|(stage, _)| said.contains(&stage.place));
        if let Some((stage, spread)) = stage.max_by_key(|(stage, _)| stage.place.len()) {
            let place = names.sentence(&stage.place);
            let [p50, p99] = [spread.p50_s, spread.p99_s].map(time);
            let mut others =
                known.iter().filter(|(stage, _)| stage.key.is_of_packets() && stage.key.stage != Stage::Whole);
            let what = if others.all(|(_, other)| other.p99_s <= spread.p99_s) { "Longest wait" } else { "Waits" };
            return format!("{what}: {place}, {p50} (median; p99 {p99}).");
        }
    }
    let stages = known.iter().filter(|(stage, _)| stage.key.stage != Stage::Whole);
    match stages.max_by(|(_, one), (_, other)| one.p99_s.total_cmp(&other.p99_s)) {
        Some((stage, spread)) => {
            let below = if spread.p99_s < WORTH_S { ", so each took less than 1 ms" } else { "" };
            let place = names.sentence(&stage.place);
            format!("Slowest of the stages that were measured: {place}, p99 {}{below}.", time(spread.p99_s))
        }
        None => "Of the whole path only the sum is known, not where it was spent.".to_owned(),
    }
}

/// The stages that nothing was seen to pass, and what else is not known, with its reason.
fn not_measured(test: &TestSummary) -> Option<String> {
    let unseen = test.stages.iter().filter(|stage| stage.times.spread().is_none());
    let unseen: Vec<String> = unseen.map(|stage| stage.place.clone()).collect();
    let unseen = (!unseen.is_empty()).then(|| format!("no packet or thread passed {}", unseen.join(", ")));
    let all: Vec<String> = test.unknown_stages.iter().map(ToString::to_string).chain(unseen).collect();
    (!all.is_empty()).then(|| format!("Not known: {}.", all.join("; ")))
}

/// The stages that a packet of the data passes, one after the other.
fn stages_plot(known: &[(&StageSummary, Spread)]) -> Option<Block> {
    let steps = known.iter().filter(|(stage, _)| stage.key.is_of_packets() && !stage.key.is_back);
    let steps: Vec<_> = steps.take(BARS).collect();
    let most = steps.iter().map(|(_, spread)| spread.p99_s).fold(0.0, f64::max);
    if most <= 0.0 {
        return None;
    }
    let row = |(stage, spread): &&(&StageSummary, Spread)| {
        let unit = CommonUnit::of_times(&[spread.p50_s, spread.p99_s]);
        BarRow {
            label: stage.place.clone(),
            value: Some(spread.p50_s * US),
            interval: Some((spread.p50_s * US, spread.p99_s * US)),
            nominal: None,
            words: format!("{} / {}", unit.digits(spread.p50_s), unit.figure(spread.p99_s)),
            color: PlotColor::Blue,
        }
    };
    let rows: Vec<BarRow> = steps.iter().map(row).collect();
    let list = rows.iter().map(|row| format!("{}: {}", row.label, row.words)).collect::<Vec<_>>().join("; ");
    let words = PlotText {
        title: "How long packets took, stage by stage".to_owned(),
        description: format!("Median / 99th percentile, in the order of the packets: {list}."),
    };
    let entries = vec![
        legend("blue bar", "to the median (p50); each step of the axis is ten times as long"),
        legend("text", "a line: from the median to the 99th percentile (p99)"),
    ];
    let plot = BarPlot { scale: BarScale::Logarithmic, x_label: "µs, logarithmic: p50 / p99".to_owned(), rows };
    Some(Block::Plot(ReportPlot::new(words, entries, |text, width| bars(text, width, &plot))))
}

/// Packets by power of two.
fn histogram(times: &Histogram, spread: Spread) -> Block {
    let row = |(to_s, packets): (f64, u64)| {
        let share = packets as f64 / spread.count as f64;
        BarRow {
            label: format!("{} to {}", digits_of(to_s / 2.0), time(to_s)),
            value: Some(share * 100.0),
            interval: None,
            nominal: None,
            words: percent(share),
            color: PlotColor::Blue,
        }
    };
    let words = PlotText {
        title: "How long packets took over the whole path".to_owned(),
        description: format!(
            "{} packets: half took less than {}, 99 % less than {}, the longest {}.",
            count(spread.count as f64),
            time(spread.p50_s),
            time(spread.p99_s),
            time(spread.max_s)
        ),
    };
    let plot = BarPlot {
        scale: BarScale::Linear,
        x_label: "share of the packets, %".to_owned(),
        rows: times.powers_of_two().into_iter().map(row).collect(),
    };
    Block::Plot(ReportPlot::new(words, Vec::new(), |text, width| bars(text, width, &plot)))
}

/// A time in the unit of twice as much.
fn digits_of(seconds: f64) -> String {
    let twice = time(2.0 * seconds);
    let per_s = match twice.rsplit(' ').next() {
        Some("us") => 1e6,
        Some("ms") => 1e3,
        _ => 1.0,
    };
    digits(seconds * per_s)
}
