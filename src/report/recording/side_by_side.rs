//! Several recordings in one table, and their mean rates in one plot.

use super::ReportedRecording;
use super::cause::main_limit;
use super::headline_of;
use super::lost::{limit_in_all, share_and_count};
use super::thread_names::ThreadNames;
use super::verdict::led;
use super::words::{UNKNOWN, count, is_udp, known, known_percent, known_rate, length};
use crate::derive::summary::TreatedTime;
use crate::derive::{Jitter, RecordingSummary, TestSummary};
use crate::report::document::{Block, ReportPlot, ReportTable};
use crate::report::figures::{digits, rate, scale};
use crate::report::plot::{BarPlot, BarRow, BarScale, PlotColor, PlotText, bars};

type Cell = fn(&RecordingSummary, Option<&TestSummary>) -> String;

const MACHINE: [(&str, Cell); 7] = [
    ("machine", |summary, _| summary.facts.host.name.clone()),
    ("kernel", |summary, _| summary.facts.host.kernel.clone()),
    ("cores", |summary, _| summary.facts.topology.cores.len().to_string()),
    ("governor", |summary, _| known(summary.facts.host.policy.governor.clone(), |governor| governor)),
    ("length", |summary, _| length(summary.seconds())),
    ("tests", |summary, _| summary.tests.iter().filter(|test| test.test.is_some()).count().to_string()),
    ("of which", |_, test| test.map_or_else(|| UNKNOWN.to_owned(), super::words::test_title)),
];

const RATES: [(&str, Cell); 3] = [
    ("mean rate", |_, test| known_rate(test.and_then(|test| test.mean_bits_per_s))),
    ("CV", |_, test| known_percent(test.and_then(|test| test.rate.jitter?.cv))),
    ("migrations/s", |_, test| known(test.and_then(|test| test.rate.moves_per_s), digits)),
];

/// The same where a recording has pinned time: unpinned and pinned by themselves.
const RATES_APART: [(&str, Cell); 6] = [
    ("mean rate, unpinned", |_, test| of_side(test, 0, |side| rate(side.mean_bits_per_s))),
    ("mean rate, pinned", |_, test| of_side(test, 1, |side| rate(side.mean_bits_per_s))),
    ("CV, unpinned", |_, test| of_side(test, 0, |side| known_percent(side.jitter.and_then(|of| of.cv)))),
    ("CV, pinned", |_, test| of_side(test, 1, |side| known_percent(side.jitter.and_then(|of| of.cv)))),
    ("migrations/s, unpinned", |_, test| of_side(test, 0, |side| digits(side.moves_per_s))),
    ("migrations/s, pinned", |_, test| of_side(test, 1, |side| digits(side.moves_per_s))),
];

const REST: [(&str, Cell); 4] = [
    ("retransmits", |_, test| known(test.filter(|test| !is_udp(test)).and_then(|test| test.own_retransmits), count)),
    ("packets lost", |_, test| known(test, share_and_count)),
    ("limit", |summary, test| known(test.and_then(|test| limit(summary, test)), |limit| limit)),
    ("busiest softirq", |summary, _| {
        let share = |core: &&crate::derive::summary::CoreSummary| summary.of_core(core).softirq.unwrap_or(0.0);
        let busiest = summary.cores.iter().max_by(|one, other| share(one).total_cmp(&share(other)));
        known(busiest, |core| format!("core {}: {}", core.place.core, known_percent(summary.of_core(core).softirq)))
    }),
];

/// What limited it longest, with what a rate in it came to.
fn limit(summary: &RecordingSummary, test: &TestSummary) -> Option<String> {
    let limit = &main_limit(test)?.limit;
    let (words, in_all) = limit_in_all(test, limit);
    let in_all = in_all.map_or_else(String::new, |in_all| format!(" ({in_all})"));
    Some(ThreadNames::of(summary).sentence(&words) + &in_all)
}

/// Unpinned (0) or pinned (1); of a test in which nothing was pinned all of it is unpinned.
fn of_side(test: Option<&TestSummary>, nth: usize, words: fn(&TreatedTime) -> String) -> String {
    let Some(test) = test else { return UNKNOWN.to_owned() };
    match (test.treated(), nth) {
        (Some(both), _) => words(&both[nth]),
        (None, 0) => known(test.untreated(), |side| words(&side)),
        (None, _) => "not pinned".to_owned(),
    }
}

fn is_any_pinned(recordings: &[ReportedRecording]) -> bool {
    let test = |one: &ReportedRecording| led(one).and_then(TestSummary::treated);
    recordings.iter().any(|one| test(one).is_some())
}

pub(super) fn blocks(recordings: &[ReportedRecording]) -> Vec<Block> {
    let cell = |recording: &ReportedRecording, of: Cell| match &recording.summary {
        Some(summary) => of(summary, led(recording)),
        None => UNKNOWN.to_owned(),
    };
    let row = |(name, of): &(&str, Cell)| {
        std::iter::once((*name).to_owned()).chain(recordings.iter().map(|recording| cell(recording, *of))).collect()
    };
    let verdict = |one: &ReportedRecording| known(headline_of(one), |headline| headline);
    let first = std::iter::once("verdict".to_owned()).chain(recordings.iter().map(verdict)).collect();
    let rates: &[(&str, Cell)] = if is_any_pinned(recordings) { &RATES_APART } else { &RATES };
    let rows = MACHINE.iter().chain(rates).chain(&REST).map(row);
    let names: Vec<String> = recordings.iter().map(|recording| format!(">{}", recording.name)).collect();
    let columns: Vec<&str> = std::iter::once("").chain(names.iter().map(String::as_str)).collect();
    let caption = "Of each recording the test that its report starts with; all are below";
    let rows = std::iter::once(first).chain(rows).collect();
    let mut blocks = vec![Block::Table(ReportTable::new(caption, &columns, rows))];
    blocks.extend(plot(recordings));
    blocks
}

/// The bars of a recording, with a word for each: its mean with the span from p5 to p95; where it has pinned time, unpinned and pinned by
/// themselves.
fn bars_of(recording: &ReportedRecording, (bits, has_pinned): (f64, bool)) -> Vec<BarRow> {
    let row = |word: &str, mean: Option<f64>, jitter: Option<Jitter>| BarRow {
        label: recording.name.clone(),
        value: mean.map(|mean| mean / bits),
        interval: jitter.map(|jitter| (jitter.p5 / bits, jitter.p95 / bits)),
        nominal: None,
        words: format!("{}{word}", known(mean, |mean| digits(mean / bits))),
        color: if word == PINNED { PlotColor::Orange } else { PlotColor::Blue },
    };
    let test = led(recording);
    let of = |word: &str, of: TreatedTime| row(word, Some(of.mean_bits_per_s), of.jitter);
    if let Some([unpinned, pinned]) = test.and_then(TestSummary::treated) {
        return vec![of(UNPINNED, unpinned), of(PINNED, pinned)];
    }
    let word = if has_pinned { UNPINNED } else { "" };
    vec![row(word, test.and_then(|test| test.mean_bits_per_s), test.and_then(|test| test.rate.jitter))]
}

/// What stands behind the figure of a bar.
const UNPINNED: &str = ", unpinned";
const PINNED: &str = ", pinned";

/// The mean rates, each with the span from p5 to p95.
fn plot(recordings: &[ReportedRecording]) -> Option<Block> {
    let test = |recording: &ReportedRecording| led(recording)?.rate.jitter;
    let most = recordings.iter().filter_map(test).map(|jitter| jitter.p95).fold(0.0, f64::max);
    if most <= 0.0 {
        return None;
    }
    let (bits, unit) = scale(most);
    let has_pinned = is_any_pinned(recordings);
    let rows: Vec<BarRow> = recordings.iter().flat_map(|one| bars_of(one, (bits, has_pinned))).collect();
    let list = rows.iter().map(|row| format!("{}: {}", row.label, row.words)).collect::<Vec<_>>().join("; ");
    let words =
        PlotText { title: "Mean rate of each recording".to_owned(), description: format!("In {unit}. {list}.") };
    let plot =
        BarPlot { scale: BarScale::Linear, x_label: format!("mean rate, {unit}; the line is from p5 to p95"), rows };
    Some(Block::Plot(ReportPlot::new(words, Vec::new(), |text, width| bars(text, width, &plot))))
}
