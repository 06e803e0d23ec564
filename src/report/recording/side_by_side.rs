//! Several recordings in one table, and their mean rates in one plot.

use super::ReportedRecording;
use super::verdict::main_test;
use super::words::{UNKNOWN, count, known, known_percent, known_rate, length};
use crate::derive::{RecordingSummary, TestSummary};
use crate::report::document::{Block, ReportPlot, ReportTable};
use crate::report::figures::{digits, scale};
use crate::report::plot::{BarPlot, BarRow, PlotColor, PlotText, bars};

type Cell = fn(&RecordingSummary, Option<&TestSummary>) -> String;

const ROWS: [(&str, Cell); 14] = [
    ("machine", |summary, _| summary.facts.host.name.clone()),
    ("kernel", |summary, _| summary.facts.host.kernel.clone()),
    ("cores", |summary, _| summary.facts.topology.cores.len().to_string()),
    ("governor", |summary, _| known(summary.facts.host.policy.governor.clone(), |governor| governor)),
    ("length", |summary, _| length(summary.seconds())),
    ("tests", |summary, _| summary.tests.iter().filter(|test| test.test.is_some()).count().to_string()),
    ("of which", |_, test| test.map_or_else(|| UNKNOWN.to_owned(), super::words::test_title)),
    ("mean rate", |_, test| known_rate(test.and_then(|test| test.mean_bits_per_s))),
    ("CV", |_, test| known_percent(test.and_then(|test| test.rate.jitter?.cv))),
    ("migrations/s", |_, test| known(test.and_then(|test| test.rate.moves_per_s), digits)),
    ("retransmits", |_, test| known(test.and_then(|test| test.retransmits), count)),
    ("packets lost", |_, test| known(test.map(|test| test.lost), count)),
    ("limit", |_, test| known(test.and_then(|test| test.limits.first()).map(|seen| &*seen.limit.text), str::to_owned)),
    ("busiest softirq", |summary, _| {
        let share = |core: &&crate::derive::summary::CoreSummary| core.softirq.unwrap_or(0.0);
        let busiest = summary.cores.iter().max_by(|one, other| share(one).total_cmp(&share(other)));
        known(busiest, |core| format!("core {}: {}", core.place.core, known_percent(core.softirq)))
    }),
];

pub(super) fn blocks(recordings: &[ReportedRecording]) -> Vec<Block> {
    let cell = |recording: &ReportedRecording, of: Cell| match &recording.summary {
        Some(summary) => of(summary, main_test(summary)),
        None => UNKNOWN.to_owned(),
    };
    let row = |(name, of): &(&str, Cell)| {
        std::iter::once((*name).to_owned()).chain(recordings.iter().map(|recording| cell(recording, *of))).collect()
    };
    let names: Vec<String> = recordings.iter().map(|recording| format!(">{}", recording.name)).collect();
    let columns: Vec<&str> = std::iter::once("").chain(names.iter().map(String::as_str)).collect();
    let caption = "Of each recording the test that carried most; each is shown in full below";
    let mut blocks = vec![Block::Table(ReportTable::new(caption, &columns, ROWS.iter().map(row).collect()))];
    blocks.extend(plot(recordings));
    blocks
}

/// The mean rates, each with the span from p5 to p95.
fn plot(recordings: &[ReportedRecording]) -> Option<Block> {
    let test = |recording: &ReportedRecording| recording.summary.as_ref().and_then(main_test).cloned();
    let tests: Vec<(&str, Option<TestSummary>)> = recordings.iter().map(|one| (&*one.name, test(one))).collect();
    let jitters = || tests.iter().filter_map(|(_, test)| test.as_ref()?.rate.jitter);
    let most = jitters().map(|jitter| jitter.p95).fold(0.0, f64::max);
    if most <= 0.0 {
        return None;
    }
    let (bits, unit) = scale(most);
    let row = |(name, test): &(&str, Option<TestSummary>)| {
        let mean = test.as_ref().and_then(|test| test.mean_bits_per_s);
        let jitter = test.as_ref().and_then(|test| test.rate.jitter);
        BarRow {
            label: (*name).to_owned(),
            value: mean.map(|mean| mean / bits),
            interval: jitter.map(|jitter| (jitter.p5 / bits, jitter.p95 / bits)),
            nominal: None,
            words: known(mean, |mean| digits(mean / bits)),
            color: PlotColor::Blue,
        }
    };
    let rows: Vec<BarRow> = tests.iter().map(row).collect();
    let list = rows.iter().map(|row| format!("{}: {}", row.label, row.words)).collect::<Vec<_>>().join("; ");
    let words =
        PlotText { title: "Mean rate of each recording".to_owned(), description: format!("In {unit}. {list}.") };
    let plot = BarPlot { x_label: format!("mean rate, {unit}; the line is from p5 to p95"), rows };
    Some(Block::Plot(ReportPlot::new(words, Vec::new(), |text, width| bars(text, width, &plot))))
}
