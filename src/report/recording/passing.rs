//! What a report says of a router, a bridge or a guest that no test runs on: what passed it, what was dropped of that, and why.

use super::lost::LEAST;
use super::moment::as_at;
use super::rate_plot::{STRETCH, columns, lane};
use super::words::{UNKNOWN, count, done, for_so_long, known, known_percent, length, step};
use crate::derive::RecordingSummary;
use crate::derive::passing_traffic::TrafficState;
use crate::derive::summary::{DroppingPlace, PassingSummary};
use crate::report::document::{Block, KeyFigure, LegendEntry, ReportPlot, ReportTable, legend};
use crate::report::figures::{CommonUnit, percent, rate, scale};
use crate::report::plot::{LinePlot, LineSeries, PlotColor, PlotText, PlotTime, lines};

/// `ra → rb, no test: 52.0 % dropped, 100 of 207 Mbit/s go out`; none where a test ran, or hardly anything passed.
pub(super) fn headline(summary: &RecordingSummary) -> Option<String> {
    let passing = of(summary)?;
    let state = match passing.state {
        TrafficState::Dropping(_) => match passing.dropped_share.filter(|share| *share >= LEAST) {
            Some(share) => format!("{} of packets dropped ({})", percent(share), count(passing.dropped)),
            None => format!("{} packets dropped", count(passing.dropped)),
        },
        TrafficState::CoreFull => "a core is full".to_owned(),
        TrafficState::Forwarding => "forwarding".to_owned(),
        TrafficState::Carrying => "carrying".to_owned(),
    };
    let is_dropping = matches!(passing.state, TrafficState::Dropping(_)) && passing.comes_in;
    let rates = match (passing.bits_per_s, passing.other_bits_per_s.filter(|_| is_dropping)) {
        (Some(comes), Some(out)) => {
            let unit = CommonUnit::of_rates(&[comes, out]);
            format!(", {} of {} go out", unit.digits(out), unit.figure(comes))
        }
        (Some(bits), None) => format!(", {}", rate(bits)),
        (None, _) => String::new(),
    };
    Some(format!("{}: {state}{rates}; no test ran", passing.place))
}

fn of(summary: &RecordingSummary) -> Option<&PassingSummary> {
    summary.passing.as_ref().filter(|_| summary.tests.is_empty())
}

/// What is wrong, why, what it costs and what to do, as on the screen, with when it was so.
pub(super) fn reasons(summary: &RecordingSummary) -> Vec<String> {
    let Some(passing) = of(summary) else { return Vec::new() };
    let parts = &passing.parts;
    let all = [("What", &parts.what), ("Why", &parts.why), ("Cost", &parts.cost), ("Do", &parts.fix)];
    let line = |(label, text): (&str, &String)| {
        let moment = as_at(summary, passing.at_ns, text).filter(|_| label != "Do");
        let moment = moment.map_or_else(String::new, |moment| format!(" ({moment})"));
        format!("{label}: {text}{moment}")
    };
    all.into_iter().filter(|(_, text)| !text.is_empty()).map(line).collect()
}

/// Its rate over time, its figures, and what dropped packets.
pub(super) fn blocks(summary: &RecordingSummary) -> Vec<Block> {
    let Some(passing) = of(summary) else { return Vec::new() };
    let mut blocks = vec![
        Block::Heading(format!("What passed: {}", passing.place)),
        Block::Plot(plot(summary, passing)),
        Block::Figures(figures(summary, passing)),
    ];
    blocks.extend((!passing.places.is_empty()).then(|| places(passing)));
    blocks
}

/// What dropped packets, the place with most first.
fn places(passing: &PassingSummary) -> Block {
    let per_s = |packets: f64| known((passing.seconds > 0.0).then(|| packets / passing.seconds), count);
    let row = |one: &DroppingPlace| {
        vec![
            one.place.clone(),
            count(one.packets),
            per_s(one.packets),
            known(one.rate_bits_per_s, rate),
            if one.on_the_way { "yes" } else { "no" }.to_owned(),
        ]
    };
    let columns = ["place", ">packets", ">packets/s", ">was set to", "on this route"];
    let left = passing.dropped_elsewhere;
    let others = vec!["others".to_owned(), count(left), per_s(left), UNKNOWN.to_owned(), UNKNOWN.to_owned()];
    let rows = passing.places.iter().map(row).chain((left > 0.0).then_some(others)).collect();
    Block::Table(ReportTable::new("What dropped packets", &columns, rows).without_empty("was set to"))
}

/// The rate that the place which drops most was set to, where these packets pass it and it was set to no other.
fn set_to(passing: &PassingSummary) -> Option<(&str, f64)> {
    let worst = passing.places.first().filter(|worst| worst.on_the_way)?;
    let is_one = passing.places.iter().filter(|one| one.place == worst.place).count() == 1;
    Some((&*worst.place, worst.rate_bits_per_s?)).filter(|_| is_one)
}

/// Where the axis ends: above every rate, and above the rate that a place is set to where that is not far off.
fn reach(passing: &PassingSummary) -> f64 {
    let rates = passing.rate.bins.iter().map(|bin| bin.bits_per_s).chain(passing.other_columns.iter().copied());
    let highest = rates.flatten().fold(0.0, f64::max);
    set_to(passing)
        .map(|(_, bits)| bits)
        .filter(|bits| *bits <= highest * STRETCH)
        .map_or(highest, |bits| highest.max(bits))
}

fn figures(summary: &RecordingSummary, passing: &PassingSummary) -> Vec<KeyFigure> {
    let figure = |label: &str, value: String, hint: String| KeyFigure { label: label.to_owned(), value, hint };
    let [direction, other] = if passing.comes_in { ["in", "out"] } else { ["out", "in"] };
    let bytes = passing.bits_per_s.zip(passing.packets_per_s.filter(|packets| *packets > 0.0));
    let bytes = bytes.map_or_else(String::new, |(bits, packets)| format!(" of {:.0} bytes", bits / 8.0 / packets));
    let packets = known(passing.packets_per_s, count);
    let mut all = vec![figure(
        &format!("mean rate, {direction}"),
        known(passing.bits_per_s, rate),
        format!("all that comes or goes there, headers too: {packets} packets/s{bytes}"),
    )];
    all.extend(
        passing.other_bits_per_s.map(|bits| {
            figure(&format!("mean rate, {other}"), rate(bits), "by the other link that it passes".to_owned())
        }),
    );
    let jitter = passing.rate.jitter;
    let hint = jitter.map_or_else(String::new, |of| {
        let unit = CommonUnit::of_rate(of.mean);
        format!("p5 to p95: {}, of bins of {}", unit.range(of.p5, of.p95), length(of.bin_s))
    });
    all.push(figure("CV", known_percent(jitter.and_then(|of| of.cv)), hint));
    let share = passing.dropped_share.filter(|share| *share >= LEAST);
    let dropped = share
        .map_or_else(|| count(passing.dropped), |share| format!("{} ({})", percent(share), count(passing.dropped)));
    let hint = "by links, qdiscs and backlogs of its namespace; the share is of the place that drops most".to_owned();
    all.push(figure("packets dropped", dropped, hint));
    let hint = for_so_long(passing.seconds, summary.seconds());
    let hint = hint.map_or_else(|| "all of the recording".to_owned(), |part| format!("it was looked at {part}"));
    all.push(figure("length", length(passing.seconds), hint));
    all
}

fn plot(summary: &RecordingSummary, passing: &PassingSummary) -> ReportPlot {
    let bins = &passing.rate.bins;
    let highest = reach(passing);
    let (per_unit, unit) = scale(highest);
    let at = |ns| summary.columns.at_s(ns);
    let point = |bin: &crate::derive::Bin| {
        (at(bin.from_ns + bin.length_ns() / 2), bin.bits_per_s.map(|bits_per_s| bits_per_s / per_unit))
    };
    let column_s = summary.columns.seconds();
    let other = passing.other_columns.iter().enumerate();
    let other: Vec<(f64, Option<f64>)> =
        other.map(|(nth, bits)| ((nth as f64 + 0.5) * column_s, bits.map(|bits| bits / per_unit))).collect();
    let level = set_to(passing).map(|(place, bits)| (bits / per_unit, format!("{place}: {}", rate(bits))));
    let plot = LinePlot {
        x: PlotTime { from_s: 0.0, to_s: summary.seconds() },
        y_label: format!("rate, {unit}"),
        y_to: highest / per_unit * 1.08,
        series: vec![
            LineSeries { color: PlotColor::Green, points: other, band: Vec::new() },
            LineSeries { color: PlotColor::Blue, points: bins.iter().map(point).collect(), band: Vec::new() },
        ],
        lanes: vec![lane("dropped", PlotColor::Red, columns(summary, &passing.dropped_columns))],
        level,
        done: done(summary, &[]),
    };
    let per_s = known((passing.seconds > 0.0).then(|| passing.dropped / passing.seconds), count);
    let words = PlotText {
        title: "Rate over time".to_owned(),
        description: format!(
            "Rate of what passed. Mean {}. Packets dropped: {} ({per_s}/s).",
            known(passing.bits_per_s, rate),
            count(passing.dropped)
        ),
    };
    ReportPlot::new(words, colors(summary, passing), |text, width| lines(text, width, &plot))
}

fn colors(summary: &RecordingSummary, passing: &PassingSummary) -> Vec<LegendEntry> {
    let bin = passing.rate.bins.first().map(|bin| bin.length_ns() as f64 / 1e9);
    let bin = passing
        .rate
        .jitter
        .map(|of| of.bin_s)
        .or(bin)
        .map_or_else(String::new, |s| format!(", in bins of {}", length(s)));
    let other = if passing.comes_in { "goes out" } else { "comes in" };
    let mut all = vec![legend("blue", format!("the busier direction of the busier link{bin}"))];
    let has_other = passing.other_bits_per_s.is_some();
    all.extend(
        has_other.then(|| legend("green", format!("what {other} by the other link, a mean of each {}", step(summary)))),
    );
    all.extend(set_to(passing).map(|(place, bits)| {
        let (mark, above) = if bits <= reach(passing) { ("dashed", "") } else { ("text none", ": above the axis") };
        legend(mark, format!("{} that {place} was set to while it dropped{above}", rate(bits)))
    }));
    all.push(legend("red", format!("packets dropped/s, a bar is {}", step(summary))));
    all
}
