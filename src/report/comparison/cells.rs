//! The tables, plots and sentences of a comparison.

use super::treatment_words::{self, is_apart, tells_retransmits};
use crate::derive::comparison::{Estimate, LoadTable, PathRow, SideFigures};
use crate::derive::experiment::Difference;
use crate::derive::plural;
use crate::report::document::{Block, ListItem, ReportPlot, ReportTable, legend};
use crate::report::figures::{digits, percent, points_range, rate_range, seconds, signed_points, small_digits};
use crate::report::plot::{BarPlot, BarRow, BarScale, PlotColor, PlotText, bars};
use crate::report::timestamp;
use crate::sample::{ClaimedLink, Comparison, Load, Measurement, Treatment, Word};

pub(super) const UNKNOWN: &str = "–";

/// Host and kernel.
pub(super) fn title(comparison: &Comparison) -> String {
    let host = &comparison.machine.host;
    format!("{} · Linux {} {}", host.name, host.kernel, host.arch)
}

/// What was measured, where and how.
pub(super) fn facts(comparison: &Comparison) -> Vec<String> {
    let (machine, plan) = (&comparison.machine, &comparison.plan);
    let policy = &machine.host.policy;
    let governor = policy.governor.as_ref().map_or(String::new(), |governor| format!(", governor {governor}"));
    let processor = machine.processor.as_ref().map_or(String::new(), |name| format!("{name}, "));
    let cores = match (machine.cores as u64, u64::from(machine.nodes)) {
        (0, _) => "cores not known".to_owned(),
        (cores, 0) => plural(cores, "core"),
        (cores, nodes) => format!("{} in {}", plural(cores, "core"), plural(nodes, "NUMA node")),
    };
    let written = format!("vnettop {}, {}", comparison.vnettop, timestamp(comparison.began_ms));
    let mut facts = vec![format!("{processor}{cores}{governor}; {written}")];
    let sender = match &plan.iperf3 {
        Some(version) => version,
        None if measurements(comparison).any(|one| one.sender == "iperf3") => "iperf3",
        None => "vnettop itself",
    };
    let order = if plan.rounds > 1 { ", each through all paths" } else { "" };
    let mut own = if plan.loads.contains(&Load::Rr) { vec!["request/response"] } else { Vec::new() };
    let is_own = |one: &Measurement| one.sender == "vnettop" && one.load != Load::Rr;
    let by_own = comparison.paths.iter().filter(|path| path.measurements.iter().any(is_own));
    own.extend(by_own.map(|path| path.name.as_str()).filter(|_| sender != "vnettop itself"));
    let answers = if own.is_empty() { String::new() } else { format!(", {} by vnettop", and(&own)) };
    facts.push(format!(
        "{} of {} after {} of warm-up{order}; sent by {sender}{answers}",
        plural(u64::from(plan.rounds), "round"),
        seconds(plan.seconds),
        seconds(plan.warm_up_s),
    ));
    facts.extend(others(comparison));
    if !plan.is_root {
        facts.push("Without root: what needs it is listed as not measured".to_owned());
    }
    facts.extend(plan.unsteered.as_ref().map(|why| format!("Nothing is steered: {why}")));
    if comparison.interrupted {
        facts.push("It was stopped early: these are the figures up to there".to_owned());
    }
    facts
}

/// From this many cores' worth on, and from this share of all, other programs change the rates.
const OTHERS: (f64, f64) = (0.25, 0.02);

/// What other programs used while nothing was sent, where that is enough to change the rates.
fn others(comparison: &Comparison) -> Option<String> {
    let cores = comparison.machine.cores as u64;
    let known: Vec<f64> = measurements(comparison).filter_map(|one| one.others_cores).collect();
    let used = Estimate::of(known)?.mean;
    (used > OTHERS.0.max(cores as f64 * OTHERS.1)).then(|| {
        let of = if cores > 0 { format!(" of {cores}") } else { String::new() };
        format!("Other programs used {}{of} cores before the loads: an idle machine carries more", digits(used))
    })
}

/// All of all paths.
fn measurements(comparison: &Comparison) -> impl Iterator<Item = &Measurement> {
    comparison.paths.iter().flat_map(|path| &path.measurements)
}

/// What a rate of this load is told in, and how many a second that is.
pub(super) fn unit(load: Load) -> (f64, &'static str) {
    match load {
        Load::Tcp | Load::Tcp4 => (1e9, "Gbit/s"),
        Load::Rr => (1e3, "1,000/s"),
        Load::Udp => (1e6, "Mpps"),
    }
}

/// What CPU time is told in, and how many of these a second of it for one bit, transaction or packet is.
pub(super) fn cpu_unit(load: Load) -> (f64, &'static str, &'static str) {
    match load {
        Load::Tcp | Load::Tcp4 => (1e12, ">CPU ms/Gbit", ">SOFTIRQ ms"),
        Load::Rr => (1e6, ">CPU µs/trans.", ">SOFTIRQ µs"),
        Load::Udp => (1e6, ">CPU µs/packet", ">SOFTIRQ µs"),
    }
}

/// One load on all paths.
pub(super) fn table(comparison: &Comparison, table: &LoadTable) -> ReportTable {
    let load = table.load;
    let rate = format!(">{}", unit(load).1);
    let mut columns = vec!["PATH", ">PLACE", &rate, ">99 % INTERVAL"];
    match load {
        Load::Tcp | Load::Tcp4 => columns.push(">CV"),
        Load::Udp => columns.push(">LOST"),
        Load::Rr => {}
    }
    let has = Beside { retransmits: tells_retransmits(table), pins: comparison.plan.pins && !is_apart(table) };
    if has.retransmits {
        columns.push(">RETRANS");
    }
    columns.extend([">MIGR/S", cpu_unit(load).1, cpu_unit(load).2]);
    if has.pins {
        columns.extend([">PINNED", ">GAIN (99 %)"]);
    }
    let rows = table.rows.iter().map(|row| cells(has, load, row)).collect();
    ReportTable::new(load.label(), &columns, rows)
}

/// What stands beside an unpinned rate, where it is known.
#[derive(Clone, Copy)]
struct Beside {
    retransmits: bool,
    pins: bool,
}

fn cells(has: Beside, load: Load, row: &PathRow) -> Vec<String> {
    let (scale, (cpu, ..)) = (unit(load).0, cpu_unit(load));
    let place = row.place.map(|(best, worst)| if best == worst { best.to_string() } else { format!("{best}–{worst}") });
    let side = row.unpinned.as_ref();
    let mut cells = vec![Some(row.name.clone()), place];
    cells.push(side.map(|side| small_digits(side.rate.mean / scale)));
    cells.push(side.and_then(|side| interval(&side.rate, scale)));
    match load {
        Load::Tcp | Load::Tcp4 => cells.push(side.and_then(|side| Some(percent(side.cv?)))),
        Load::Udp => cells.push(side.and_then(|side| Some(percent(side.lost_share?)))),
        Load::Rr => {}
    }
    if has.retransmits {
        cells.push(side.and_then(|side| Some(digits(side.retransmits?))));
    }
    cells.push(side.and_then(|side| Some(digits(side.moves_per_s?))));
    cells.push(side.and_then(|side| Some(digits(side.cpu_s_each(side.busy_cores)? * cpu))));
    cells.push(side.and_then(|side| Some(digits(side.cpu_s_each(side.softirq_cores)? * cpu))));
    if has.pins {
        cells.push(row.pinned.as_ref().map(|side| small_digits(side.rate.mean / scale)));
        cells.push(row.gain.as_ref().map(|gain| change(gain.mean, gain.interval)));
    }
    cells.into_iter().map(|cell| cell.unwrap_or_else(|| UNKNOWN.to_owned())).collect()
}

/// Shorter measurements have too few bins of 100 ms for a coefficient of variation, seconds.
const CV_S: f64 = 2.0;

/// Why a rate has no coefficient of variation, where it could have one.
pub(super) fn without_cv(comparison: &Comparison, load: Load, row: &PathRow) -> Option<String> {
    if !load.is_bulk() || row.unpinned.as_ref()?.cv.is_some() {
        return None;
    }
    let why = if comparison.plan.seconds < CV_S {
        "needs --time 2 or more"
    } else {
        "needs a TCP connection and enough samples of it"
    };
    Some(format!("CV {why}"))
}

/// Why it is not known what the machine did meanwhile.
pub(super) fn without_samples(row: &PathRow) -> Option<String> {
    let side = row.unpinned.as_ref()?;
    (side.moves_per_s.is_none() || side.busy_cores.is_none())
        .then(|| "MIGR/S or CPU: too few samples, use a longer --time or a less busy machine".to_owned())
}

/// `+12.0 % (+3.1 to +21.7)`: what changed, of what was there before.
pub(super) fn change(share: f64, interval: Option<Difference>) -> String {
    let range = interval.map_or(String::new(), |of| format!(" ({})", points_range(of.from, of.to)));
    format!("{} %{range}", signed_points(share))
}

/// `28.6 to 33.6`; none of one round.
pub(super) fn interval(rate: &Estimate, scale: f64) -> Option<String> {
    let Difference { estimate, from, to } = rate.interval?;
    Some(rate_range([estimate, from, to].map(|rate| rate / scale), small_digits))
}

/// What the drivers of a path's links claim beside what was measured; none where no path has links.
pub(super) fn claims(comparison: &Comparison, tables: &[LoadTable]) -> Option<ReportTable> {
    let rates = tables.iter().find(|table| table.load == Load::Tcp)?;
    let row = |row: &PathRow| {
        let path = comparison.paths.iter().find(|path| path.name == row.name)?;
        let rate = row.unpinned.as_ref()?.rate.mean;
        let link = |link: &ClaimedLink| {
            let claim = link.claim_mbps.map_or_else(|| "none".to_owned(), nominal);
            format!("{} ({}) {claim}", link.name, link.kind)
        };
        let links: Vec<String> = path.links.iter().map(link).collect();
        let least = path.links.iter().filter_map(|link| link.claim_mbps).min().filter(|least| *least > 0);
        let times = least
            .map_or_else(|| UNKNOWN.to_owned(), |mbps| format!("× {}", small_digits(rate / (f64::from(mbps) * 1e6))));
        (!links.is_empty()).then(|| vec![row.name.clone(), small_digits(rate / 1e9), times, links.join(", ")])
    };
    let rows: Vec<Vec<String>> = rates.rows.iter().filter_map(row).collect();
    let columns = ["PATH", ">TCP Gbit/s", ">OF NOMINAL", "LINKS AND THEIR NOMINAL SPEEDS"];
    (!rows.is_empty()).then(|| ReportTable::new("Nominal speed and measured rate", &columns, rows))
}

/// The rates of one load as bars, the treatments of a path below each other.
pub(super) fn plot(comparison: &Comparison, table: &LoadTable) -> ReportPlot {
    let (scale, unit) = unit(table.load);
    let bar = |label: String, side: Option<&SideFigures>, color: PlotColor| {
        let rate = side.map(|side| &side.rate);
        let words = rate.map_or_else(|| "not known".to_owned(), |rate| with_interval(rate, scale));
        let interval = rate.and_then(|rate| rate.interval).map(|of| (of.from / scale, of.to / scale));
        BarRow { label, value: rate.map(|rate| rate.mean / scale), interval, nominal: None, words, color }
    };
    let treated = treatment_words::measured(comparison, table);
    let bars_of = |row: &PathRow| {
        let others = treated.iter().filter(|of| row.side(**of).is_some() || **of == Treatment::Pinned);
        let others = others.map(|of| bar(String::new(), row.side(*of), color(*of).0)).collect::<Vec<_>>();
        std::iter::once(bar(row.name.clone(), row.unpinned.as_ref(), PlotColor::Blue)).chain(others).collect::<Vec<_>>()
    };
    let rows: Vec<BarRow> = table.rows.iter().flat_map(bars_of).collect();
    let reported: Vec<String> =
        rows.iter().filter(|row| !row.label.is_empty()).map(|row| format!("{} {}", row.label, row.words)).collect();
    let text = PlotText {
        title: format!("{}: {unit} by path", table.load.label()),
        description: format!("Unpinned, in {unit}: {}.", reported.join("; ")),
    };
    let mut colors = vec![legend("blue bar", "unpinned")];
    colors.extend(treated.iter().map(|of| legend(color(*of).1, of.word())));
    colors.push(legend("text", "99 % interval of the mean (line; without an end: longer than shown)"));
    let plot = BarPlot { scale: BarScale::Linear, x_label: unit.to_owned(), rows };
    ReportPlot::new(text, colors, |text, width| bars(text, width, &plot))
}

/// The colour of a treatment's bars, and what the legend calls it.
fn color(treatment: Treatment) -> (PlotColor, &'static str) {
    match treatment {
        Treatment::Unpinned => (PlotColor::Blue, "blue bar"),
        Treatment::Pinned => (PlotColor::Orange, "orange bar"),
        Treatment::PinnedAndSteered => (PlotColor::Green, "green bar"),
        Treatment::Steered => (PlotColor::Purple, "purple bar"),
    }
}

/// `31.0 (28.6 to 33.6)`.
pub(super) fn with_interval(rate: &Estimate, scale: f64) -> String {
    let range = interval(rate, scale).map_or(String::new(), |range| format!(" ({range})"));
    small_digits(rate.mean / scale) + &range
}

/// `10 G`, `2.5 G`, `10 M`.
fn nominal(mbps: u32) -> String {
    if mbps < 1000 { format!("{mbps} M") } else { format!("{} G", f64::from(mbps) / 1e3) }
}

/// Which paths do not differ, and of which that is not known: a sentence each, and where there are several groups, each group.
pub(super) fn same(table: &LoadTable) -> Vec<Block> {
    let groups = &table.groups;
    let more = "; more rounds (--repeat) on an idle machine tell more";
    let mut blocks = reported("No difference", &groups.same, " (any two are within 3 % of each other)");
    blocks.extend(reported("Inconclusive", &groups.open, more));
    blocks
}

fn reported(what: &str, groups: &[Vec<String>], rest: &str) -> Vec<Block> {
    let item = |group: &Vec<String>| ListItem { text: group.join(", "), aside: String::new() };
    match groups {
        [] => Vec::new(),
        [only] => {
            let names: Vec<&str> = only.iter().map(String::as_str).collect();
            vec![Block::Text(format!("{what} between {}{rest}", and(&names)))]
        }
        groups => vec![
            Block::Text(format!("{what} within each of these groups{rest}")),
            Block::List(groups.iter().map(item).collect()),
        ],
    }
}

pub(super) fn and(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// What the heads mean.
pub(super) fn words(comparison: &Comparison) -> Vec<(&'static str, &'static str)> {
    let mut words = vec![
        ("PLACE", "1 is the fastest; 1–2: first or second, as the rounds do not show which"),
        ("99 %", "interval that holds the true mean (or change) 99 times of 100, by the rounds"),
        ("CV", "coefficient of variation of the rate within a round, 100 ms bins"),
        ("MIGR/S", "migrations between cores a second, of all threads of the load"),
        ("CPU", "time of all cores, without vnettop, for each Gbit, transaction or packet"),
        ("SOFTIRQ", "the part of CPU that is spent in softirqs"),
    ];
    words.extend(treatment_words::words(comparison));
    words.push(("OF NOMINAL", "rate divided by the lowest nominal speed, which virtual drivers make up"));
    words.push((UNKNOWN, "not known"));
    words
}
