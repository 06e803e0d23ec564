//! What a report says of one test: the figures first, then why, then its threads and its path.

use super::cause::limits as limits_of;
use super::key_figures::figures;
use super::latency;
use super::lost::{burst, finding_in_all, limit_in_all};
use super::moment::{Momentary, beside, beside_cause};
use super::rate_plot::{axis, rate_plot};
use super::thread_names::{ReportedTest, ThreadNames};
use super::verdict::{Result as TestResult, listed_findings};
use super::words::{
    UNKNOWN, allowed, count, done, for_so_long, is_all, known, known_percent, legend_of_done, length, migrations,
    nominal, ran_s, step, test_title,
};
use crate::derive::finding::{Finding, FindingId};
use crate::derive::run::{RunCard, Seen};
use crate::derive::summary::{HopSummary, LimitSeen, PathSummary, StripColumn, ThreadSummary};
use crate::derive::{Evidence, LimitKind, RecordingSummary, TestSummary, plural};
use crate::report::card;
use crate::report::document::{Block, ListItem, ReportPlot, ReportTable, legend};
use crate::report::figures::{CommonUnit, digits, rate, scale};
use crate::report::page::Page;
use crate::report::pair::VERDICT;
use crate::report::plot::{
    BarPlot, BarRow, BarScale, PlotColor, PlotText, PlotWidth, StripPlot, StripRow, StripRun, bars, strips,
};
use crate::sample::{CoreId, HopWay, Word};

/// What limited it longest.
const LIMITS: usize = 4;
/// Rows of a table and of a plot of threads.
const THREADS: usize = 32;
const STRIPS: usize = 16;
/// A thread that uses less is in the table only, share of a core.
const IDLE: f64 = 0.02;

pub(super) fn run_card(run: &RunCard) -> Block {
    Block::Card(crate::report::run::page(run))
}

/// What a report says of a test; what it is led by stands above the whole report where that is told.
pub(super) fn blocks(
    (summary, names): (&RecordingSummary, &ThreadNames),
    test: &TestSummary,
    result: &TestResult<'_>,
    is_led: bool,
) -> Vec<Block> {
    let mut blocks = vec![Block::Heading(test_title(test))];
    if !is_led {
        blocks.push(Block::Lead(result.headline.clone()));
        blocks.extend(result.sentence.iter().chain(&result.reasons).cloned().map(Block::Text));
    }
    if test.rate.bins.is_empty() {
        blocks.push(Block::Text("No rate is known of it.".to_owned()));
    } else {
        blocks.push(Block::Plot(rate_plot(summary, test, result.is_mixed)));
    }
    blocks.push(Block::Figures(figures(test, result)));
    if result.card.is_some_and(|card| card.pinned_at_ns.is_some()) {
        blocks.extend(before_after(test, result.is_rebuilt));
    }
    let ran_s = ran_s(test);
    blocks.extend(limits((summary, test, names), ran_s));
    if listed_findings(test).next().is_some() {
        blocks.push(Block::Subheading("Findings".to_owned()));
        let items = listed_findings(test).map(|seen| finding((summary, test, names), seen, ran_s));
        blocks.push(Block::List(items.collect()));
    }
    blocks.extend(losses(test));
    blocks.extend(burst(summary, test).map(Block::Text));
    for path in &test.paths {
        blocks.extend(path_blocks(path, test.treated().is_some()));
    }
    blocks.extend(latency::blocks(test, names));
    blocks.extend(threads((summary, names), test));
    blocks
}

/// A limit of a smaller part of a test is one of a moment.
const MOMENT: f64 = 0.05;

fn limits((summary, test, names): ReportedTest<'_>, ran_s: f64) -> Vec<Block> {
    let mut limits = with_one_loss(limits_of(test));
    // Beside what was there for long, what was there for a moment limited nothing.
    let least_s = MOMENT * ran_s.min(limits.first().map_or(0.0, |seen| seen.seconds) / MOMENT);
    limits.retain(|seen| seen.seconds >= least_s);
    if limits.is_empty() {
        return Vec::new();
    }
    let item = |seen: &LimitSeen| {
        let (words, in_all) = limit_in_all(test, &seen.limit);
        let is_fixed = seen.limit.meets_what_was_asked() || words != seen.limit.text_alone();
        let said = names.sentence(&words);
        let one = Momentary { said: &said, at_ns: seen.at_ns, id: None, numbers: &seen.limit.numbers };
        let moment = beside((summary, test, names), one).filter(|_| !is_fixed);
        ListItem { text: said, aside: aside([moment, in_all], seen.seconds, ran_s) }
    };
    let mut items: Vec<ListItem> = limits.iter().take(LIMITS).map(item).collect();
    let rest = limits.get(LIMITS..).unwrap_or_default();
    if !rest.is_empty() {
        let words = if rest.len() > 1 { ", each for less time" } else { ", for less time" };
        let words = format!("{} more{words}", rest.len());
        // Several hold at once: their sum is no time.
        let longest = rest.iter().map(|seen| seen.seconds).fold(0.0, f64::max);
        items.push(ListItem { text: words, aside: for_so_long(longest, ran_s).unwrap_or_default() });
    }
    vec![Block::Subheading("What limited it".to_owned()), Block::List(items)]
}

/// What was lost is said once, for as long as anything was: the table of losses has its places.
fn with_one_loss<'a>(limits: impl Iterator<Item = &'a LimitSeen>) -> Vec<LimitSeen> {
    let mut all: Vec<LimitSeen> = Vec::new();
    for seen in limits {
        let is_loss = |one: &LimitSeen| one.limit.kind == LimitKind::Loss;
        match all.iter_mut().find(|one| is_loss(one) && is_loss(seen)) {
            Some(loss) => loss.seconds += seen.seconds,
            None => all.push(seen.clone()),
        }
    }
    all.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    all
}

fn finding(of: ReportedTest<'_>, seen: &Seen, ran_s: f64) -> ListItem {
    let (words, in_all) = finding_in_all(of.1, &seen.finding);
    let text = of.2.sentence(&words);
    let Finding { id, numbers, .. } = &seen.finding;
    let moment = match id {
        _ if words == seen.finding.text => {
            beside(of, Momentary { said: &text, at_ns: seen.at_ns, id: Some(*id), numbers })
        }
        FindingId::Loss => beside_cause(of, seen.at_ns, &seen.finding),
        _ => None,
    };
    ListItem { text, aside: aside([moment, in_all], seen.seconds, ran_s) }
}

/// When the sentence's figures were so, what it was in all, and how long it was there.
fn aside(beside: [Option<String>; 2], seconds: f64, ran_s: f64) -> String {
    beside.into_iter().chain([for_so_long(seconds, ran_s)]).flatten().collect::<Vec<_>>().join("; ")
}

fn before_after(test: &TestSummary, is_rebuilt: bool) -> Vec<Block> {
    let Some(metrics) = test.test.as_ref().map(|test| &test.metrics) else { return Vec::new() };
    let Some(card) = &metrics.card else { return Vec::new() };
    let (bits, unit) = scale(card.before.jitter.p95.max(card.after.jitter.p95));
    let row = |label: &str, side: &crate::derive::experiment::CardSide, color| BarRow {
        label: label.to_owned(),
        value: Some(side.jitter.mean / bits),
        interval: Some((side.jitter.p5 / bits, side.jitter.p95 / bits)),
        nominal: None,
        words: format!("mean {}", digits(side.jitter.mean / bits)),
        color,
    };
    let plot = BarPlot {
        scale: BarScale::Linear,
        x_label: format!("mean rate, {unit}; the line is from p5 to p95"),
        rows: vec![row("before", &card.before, PlotColor::Gray), row("after", &card.after, PlotColor::Blue)],
    };
    let words = PlotText {
        title: "Before and after the pin".to_owned(),
        description: format!(
            "Mean rate before: {}, after: {}.",
            rate(card.before.jitter.mean),
            rate(card.after.jitter.mean)
        ),
    };
    let mut blocks = vec![
        Block::Subheading("What the pin changed".to_owned()),
        Block::Lead(card.sentence()),
        Block::Plot(ReportPlot::new(words, Vec::new(), |text, width| bars(text, width, &plot))),
    ];
    let page: Option<Page> = card::page(metrics, &metrics.threads, test.test.as_ref().map(|test| test.number));
    blocks.extend(page.map(|mut page| {
        // It is the sentence above.
        page.conclusions.retain(|fact| fact.label != VERDICT);
        let rebuilt = "Its seconds repeat, so its 99 % intervals say nothing of a machine.";
        let said = is_rebuilt.then(|| Block::Text(rebuilt.to_owned()));
        Block::FoldedPart("The card of the pin".to_owned(), said.into_iter().chain([Block::Card(page)]).collect())
    }));
    blocks
}

fn losses(test: &TestSummary) -> Vec<Block> {
    if test.losses.is_empty() {
        return Vec::new();
    }
    let row = |loss: &crate::derive::summary::LossSummary| {
        let word = |of: &Option<std::sync::Arc<str>>| known(of.as_deref(), str::to_owned);
        let space = known(loss.space.clone(), |space| space);
        let reason = if loss.reason.is_none() && loss.function.is_none() {
            "none: a counter has it, no event".to_owned()
        } else {
            word(&loss.reason)
        };
        vec![loss.words(), space, count(loss.packets), reason, word(&loss.function)]
    };
    let rows = test.losses.iter().map(row).collect();
    let columns = ["place", "netns", ">packets", "reason of the kernel", "function"];
    let caption = format!("Where its {} lost packets were lost, until just after its end", count(test.lost));
    vec![Block::Table(ReportTable::new(&caption, &columns, rows).without_empty("function"))]
}

fn path_blocks(path: &PathSummary, is_mixed: bool) -> Vec<Block> {
    let unit = unit_of_path(path);
    let name = |hop: &HopSummary| hop.name.clone().unwrap_or_else(|| "a link that is gone".to_owned());
    let cell = |(nth, hop): (usize, &HopSummary)| {
        let side = if hop.way == HopWay::Passed { "crosses" } else { hop.way.word() };
        vec![
            format!("{} {}", nth + 1, name(hop)),
            hop.space.clone(),
            known(hop.owner.clone(), |owner| owner),
            known(hop.kind.as_ref(), |kind| kind.word().to_owned()),
            side.to_owned(),
            nominal(hop.claim_mbps, hop.basis),
            known(hop.bits_per_s, |bits_per_s| unit.figure(bits_per_s)),
            count(hop.lost),
            known(hop.mtu, |mtu| mtu.to_string()),
        ]
    };
    let rows: Vec<Vec<String>> = path.hops.iter().enumerate().map(cell).collect();
    let columns = ["link", "netns", "owner", "kind", "packets", ">nominal speed", ">mean rate", ">lost", ">MTU"];
    let mixed = if is_mixed { ", pinned or not" } else { "" };
    let is_crossed = path.hops.iter().any(|hop| hop.way == HopWay::Passed && hop.bits_per_s.is_none());
    let crossed = if is_crossed { "; – at a bridge, which counts nothing that only crosses it" } else { "" };
    let caption = format!(
        "In the packets' order. Mean rate: all traffic, headers too, while the test ran{mixed}{crossed}. Lost: packets of the test at \
         the link, in its qdiscs or in a socket behind it; either direction, its whole time"
    );
    let mut blocks = vec![Block::Subheading("Path".to_owned())];
    blocks.extend(path_plot(path, &name));
    blocks.push(Block::Table(ReportTable::new(&caption, &columns, rows).without_empty("owner")));
    let gap = path.gap.as_ref().map(|gap| Block::Warning(format!("The path is not known to its end: {gap}")));
    blocks.extend(gap.into_iter().chain(path.note.clone().map(Block::Text)));
    blocks
}

/// One for the rates of a path.
fn unit_of_path(path: &PathSummary) -> CommonUnit {
    CommonUnit::of_rate(path.hops.iter().filter_map(|hop| hop.bits_per_s).fold(0.0, f64::max))
}

/// The rate at each hop, beside what the link says that it can do.
fn path_plot(path: &PathSummary, name: &impl Fn(&HopSummary) -> String) -> Option<Block> {
    let most = path.hops.iter().filter_map(|hop| hop.bits_per_s).fold(0.0, f64::max);
    if most <= 0.0 {
        return None;
    }
    let unit = unit_of_path(path);
    let row = |hop: &HopSummary| {
        let bits_of = |mbps: u32| f64::from(mbps) * 1e6;
        let claim = hop.claim_mbps.filter(|&mbps| mbps > 0).map(bits_of);
        let nominal = claim.map_or_else(String::new, |claim| format!(", nominal {}", rate(claim)));
        BarRow {
            label: name(hop),
            value: hop.bits_per_s.map(|bits_per_s| unit.number(bits_per_s)),
            interval: None,
            nominal: claim.map(|claim| unit.number(claim)),
            words: known(hop.bits_per_s, |bits_per_s| format!("{}{nominal}", unit.figure(bits_per_s))),
            color: PlotColor::Blue,
        }
    };
    // The table has those that count nothing, and why.
    let rows: Vec<BarRow> = path.hops.iter().filter(|hop| hop.bits_per_s.is_some()).map(row).collect();
    let list = rows.iter().map(|row| format!("{}: {}", row.label, row.words)).collect::<Vec<_>>().join("; ");
    let words = PlotText {
        title: "Mean rate and nominal speed along the path".to_owned(),
        description: format!("In the order of the packets: {list}."),
    };
    let plot = BarPlot { scale: BarScale::Linear, x_label: unit.name.to_owned(), rows };
    let mut entries = vec![legend("blue bar", "mean rate")];
    let is_drawn = plot.rows.iter().filter(|row| row.nominal.is_some()).count() > plot.beyond().count();
    entries.extend(is_drawn.then(|| legend("text", "a line: the nominal speed of the link")));
    let beyond: Vec<String> =
        plot.beyond().map(|row| format!("{} ({})", row.label, rate(unit.bits(row.nominal.unwrap_or(0.0))))).collect();
    let all = beyond.join(", ");
    entries.extend((!beyond.is_empty()).then(|| legend("text", format!("nominal speed beyond the axis: {all}"))));
    // On a phone the line and the table have the nominal speed.
    let short = |row: &BarRow| {
        let words = row.words.split(", nominal").next().unwrap_or_default().to_owned();
        BarRow { words, ..row.clone() }
    };
    let narrow = BarPlot { rows: plot.rows.iter().map(short).collect(), ..plot.clone() };
    let of = |width| if width == PlotWidth::Narrow { &narrow } else { &plot };
    Some(Block::Plot(ReportPlot::new(words, entries, |text, width| bars(text, width, of(width)))))
}

fn threads((summary, names): (&RecordingSummary, &ThreadNames), test: &TestSummary) -> Vec<Block> {
    let number = test.test.as_ref().map(|test| test.number);
    let is_own = |thread: &&ThreadSummary| number.is_none() || thread.test == number;
    let own: Vec<&ThreadSummary> = summary.threads.iter().filter(is_own).collect();
    if own.is_empty() {
        return Vec::new();
    }
    let mut blocks = vec![Block::Subheading("Threads".to_owned())];
    let busy: Vec<&ThreadSummary> =
        own.iter().copied().filter(|thread| thread.cpu.is_some_and(|cpu| cpu >= IDLE)).take(STRIPS).collect();
    if !busy.is_empty() {
        blocks.push(Block::Plot(strip_plot((summary, names), test, &busy)));
    }
    let is_whole = |thread: &ThreadSummary| is_all(summary, thread.figures().seconds, ran_s(test));
    let watched = |thread: &ThreadSummary| match own.iter().all(|one| is_whole(one)) {
        true => UNKNOWN.to_owned(),
        false if is_whole(thread) => "all of it".to_owned(),
        false => length(thread.figures().seconds),
    };
    let rows = own.iter().take(THREADS).map(|thread| row((summary, names), thread, watched(thread))).collect();
    let columns = ["thread", ">watched", ">CPU", ">waits", ">migrations", "of which", "allowed at the end"];
    let whole = own.iter().all(|thread| thread.in_test.is_none());
    let time = if whole { "while each was watched" } else { "while the test ran" };
    let caption = format!(
        "Its threads {time}; means: CPU time, softirqs within it too, and time waiting for a core as shares of one core; all \
         migrations"
    );
    let table = ReportTable::new(&caption, &columns, rows).without_empty("watched").without_empty("of which");
    blocks.push(Block::Table(table));
    if own.len() > THREADS {
        blocks.push(Block::Text(format!("{} more used less.", plural(own.len() - THREADS, "thread"))));
    }
    blocks
}

fn row((summary, names): (&RecordingSummary, &ThreadNames), thread: &ThreadSummary, watched: String) -> Vec<String> {
    let at_least = if thread.evidence == Evidence::Sampled { "≥ " } else { "" };
    let of = thread.figures();
    let classes = migrations(of.by_class, of.only_counted() as f64);
    vec![
        names.of_thread(thread),
        watched,
        known_percent(of.cpu),
        known_percent(of.wait),
        format!("{at_least}{}", count(of.moves as f64)),
        if classes.is_empty() { UNKNOWN.to_owned() } else { classes },
        allowed(summary, thread),
    ]
}

const CORE_COLORS: [PlotColor; 6] =
    [PlotColor::Blue, PlotColor::Teal, PlotColor::Green, PlotColor::Purple, PlotColor::Brown, PlotColor::Gray];

/// Core over time; the cores that were used most have a colour each.
fn strip_plot(
    (summary, names): (&RecordingSummary, &ThreadNames),
    test: &TestSummary,
    threads: &[&ThreadSummary],
) -> ReportPlot {
    let mut used: Vec<(CoreId, usize)> = Vec::new();
    for core in threads.iter().flat_map(|thread| &thread.columns).filter_map(|column| column.core()) {
        match used.iter_mut().find(|(known, _)| *known == core) {
            Some((_, columns)) => *columns += 1,
            None => used.push((core, 1)),
        }
    }
    used.sort_by_key(|&(core, columns)| (std::cmp::Reverse(columns), core));
    let color = |core: CoreId| {
        let rank = used.iter().position(|(known, _)| *known == core).unwrap_or(usize::MAX);
        CORE_COLORS[rank.min(CORE_COLORS.len() - 1)]
    };
    let x = axis(summary, test);
    let column_s = summary.columns.seconds();
    let strip = |thread: &&ThreadSummary| {
        let mut runs = Vec::new();
        let mut at = 0;
        for run in thread.columns.chunk_by(|one, other| one.core() == other.core()) {
            let (from_s, to_s) = (at as f64 * column_s, (at + run.len()) as f64 * column_s);
            at += run.len();
            let Some(core) = run[0].core().filter(|_| to_s > x.from_s && from_s < x.to_s) else { continue };
            let (from_s, to_s) = (from_s.max(x.from_s), to_s.min(x.to_s));
            runs.push(StripRun { from_s, to_s, word: format!("core {core}"), color: color(core) });
        }
        let moved = |(nth, column): (usize, &StripColumn)| {
            let at_s = (nth as f64 + 0.5) * column_s;
            (column.moves >= 0.5 && at_s >= x.from_s && at_s <= x.to_s).then_some(at_s)
        };
        let ticks = thread.columns.iter().enumerate().filter_map(moved).collect();
        StripRow { label: names.role(thread), runs, ticks }
    };
    let plot = StripPlot { x, rows: threads.iter().map(strip).collect(), done: done(summary, &test.incidents) };
    let moved = |thread: &&ThreadSummary| {
        let of = thread.figures();
        let is_whole = is_all(summary, of.seconds, ran_s(test));
        let time = if is_whole { String::new() } else { format!(" in {}", length(of.seconds)) };
        format!("{}: {} migrations{time}", names.of_thread(thread), count(of.moves as f64))
    };
    let list = threads.iter().map(moved);
    let words = PlotText {
        title: "Core over time of each busy thread".to_owned(),
        description: format!(
            "Which core each thread was on. {}; cores used: {}.",
            list.collect::<Vec<_>>().join("; "),
            used.len()
        ),
    };
    let mut entries = vec![
        legend("red", "above a strip: it migrated"),
        legend("blue", format!("one colour a core, gray for the rest; a column is {}", step(summary))),
    ];
    entries.extend(legend_of_done(&plot.done, false));
    ReportPlot::new(words, entries, |text, width| strips(text, width, &plot))
}
