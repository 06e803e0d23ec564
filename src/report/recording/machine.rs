//! What a report says of the machine: what it is, what its cores and links did.

use super::words::{
    UNKNOWN, WHOLE, all_done, count, in_tests, is_all, known, known_percent, known_rate, legend_of_done, length,
    machine, nominal, ran_s, step, when,
};
use super::{ReportedRecording, profile, provenance};
use crate::derive::profile::rules_counted;
use crate::derive::summary::{CoreColumn, CoreSummary, LinkSummary};
use crate::derive::{RecordingSummary, plural};
use crate::report::document::{Block, ReportPlot, ReportTable, legend};
use crate::report::figures::percent;
use crate::report::plot::{HeatPlot, HeatRow, PlotColor, PlotText, PlotTime, heat};
use crate::sample::{CoreId, Topology, Word};
use std::collections::BTreeSet;

/// Rows of a heat map and of a table.
const CORES: usize = 64;
/// Rows of the map of cores; if there are clearly more, the rest is folded.
const FIRST: usize = 16;
const SOFTIRQ_CORES: usize = 24;
const LINKS: usize = 40;
/// Busiest cores that a sentence names.
const BUSIEST: usize = 5;
/// A core that was never busier than this is left out of the map, and one with less in softirqs out of theirs.
const QUIET: f64 = 0.05;
const FEW_SOFTIRQS: f64 = 0.01;
/// A link that carried less than this share of the busiest one's traffic is left out.
const IDLE_LINK: f64 = 0.001;

/// Which recording it is, and what is wrong with it.
pub(super) fn head(recording: &ReportedRecording) -> Vec<Block> {
    let mut blocks = Vec::new();
    match &recording.summary {
        Some(summary) => {
            let by = recording.recorded_by.as_ref();
            let by = by.map_or_else(String::new, |version| format!(" by vnettop {version}"));
            let machine = machine(summary);
            // A test that is all of it has its own length below.
            let is_test = matches!(&*summary.tests, [one] if is_all(summary, summary.seconds(), ran_s(one)));
            let long = if is_test { String::new() } else { format!(", {} long", length(summary.seconds())) };
            let about = match &summary.origin {
                Some(_) => format!("{machine}. Nothing here was measured: the recording is rebuilt{long}."),
                None => format!("{machine}. Recorded {}{by}{long}.", when(summary.begin_wall_ms)),
            };
            if let Some(saved) = &summary.saved {
                let option = saved.trigger.map_or_else(String::new, |kind| format!(" (--on {})", kind.word()));
                blocks.push(Block::Text(format!("The recording was {}{option}.", saved.text())));
            }
            blocks.push(Block::Text(about));
        }
        None => blocks.push(Block::Warning("It has fewer than two samples, so nothing was measured.".to_owned())),
    }
    let Some(summary) = &recording.summary else { return blocks };
    if summary.restarts > 0 {
        let sentence = "The clock of the recording went back: this is what came after that.";
        blocks.push(Block::Warning(sentence.to_owned()));
    }
    if summary.tests.is_empty() {
        blocks.push(Block::Text("No benchmark test ran.".to_owned()));
    }
    blocks
}

pub(super) fn blocks(recording: &ReportedRecording, summary: &RecordingSummary) -> Vec<Block> {
    let mut blocks = vec![Block::Heading("Cores".to_owned())];
    blocks.extend(cores(summary));
    blocks.extend(softirqs(summary));
    blocks.extend(profile::blocks(summary));
    blocks.push(Block::Folded("Links".to_owned(), vec![links(summary)]));
    blocks.push(measurement(summary));
    blocks.extend(provenance::blocks(recording, summary));
    blocks
}

/// What it is and how it was measured; that something could not be read is in the title.
fn measurement(summary: &RecordingSummary) -> Block {
    let mut blocks = vec![facts(summary)];
    let problems = &summary.facts.problems;
    let unread = || format!(": {} could not be read", plural(problems.len(), "thing"));
    let unread = if problems.is_empty() { String::new() } else { unread() };
    if !problems.is_empty() {
        blocks.push(Block::Subheading("What could not be read".to_owned()));
        // Recordings of older versions call migrations moves.
        let item = |problem: &crate::sample::Problem| crate::report::document::ListItem {
            text: problem.text.replace("moves are counted", "migrations are counted"),
            aside: String::new(),
        };
        blocks.push(Block::List(problems.iter().take(20).map(item).collect()));
    }
    Block::Folded(format!("The machine in detail{unread}"), blocks)
}

fn core_label(topology: &Topology, core: &CoreSummary) -> String {
    match core.place.node.filter(|_| topology.nodes > 1) {
        Some(node) => format!("core {} · n{node}", core.place.core),
        None => format!("core {}", core.place.core),
    }
}

/// The heat map of these cores, in the order of their numbers.
fn map(
    summary: &RecordingSummary,
    mut cores: Vec<&CoreSummary>,
    (text, color, word): (PlotText, PlotColor, &'static str),
    cell: fn(CoreColumn) -> Option<f64>,
) -> Block {
    cores.sort_by_key(|core| (core.place.node, core.place.core));
    let row = |core: &&CoreSummary| HeatRow {
        label: core_label(&summary.facts.topology, core),
        cells: core.columns.iter().map(|column| cell(*column)).collect(),
    };
    let plot = HeatPlot {
        x: PlotTime { from_s: 0.0, to_s: summary.seconds() },
        column_s: summary.columns.seconds(),
        rows: cores.iter().map(row).collect(),
        color,
        done: all_done(summary),
    };
    let mut entries = vec![legend(
        word,
        format!(
            "share of its time, 0 % (nothing drawn) to 100 % (darkest) in steps of 10 %; a column is {}",
            step(summary)
        ),
    )];
    entries.extend(legend_of_done(&plot.done, false));
    Block::Plot(ReportPlot::new(text, entries, |text, width| heat(text, width, &plot)))
}

/// Why a thread may have more CPU time than its core is busy: one that sleeps between two ticks is not met by them.
const AT_TICKS: &str = "Counted at the kernel's clock ticks: a thread's own CPU time may be more";

fn cores(summary: &RecordingSummary) -> Vec<Block> {
    let peak = |core: &CoreSummary| core.columns.iter().filter_map(|column| column.busy()).fold(0.0, f64::max);
    let mut busy: Vec<&CoreSummary> = summary.cores.iter().filter(|core| peak(core) >= QUIET).collect();
    if busy.is_empty() {
        let is_known = summary.cores.iter().any(|core| core.whole.busy.is_some());
        let sentence = if is_known { "No core was busy." } else { "How busy the cores were is not known." };
        return vec![Block::Text(sentence.to_owned())];
    }
    let mean = |core: &CoreSummary| summary.of_core(core).busy.unwrap_or(0.0);
    busy.sort_by(|one, other| mean(other).total_cmp(&mean(one)));
    let quiet = summary.cores.len() - busy.len().min(CORES);
    let first: Vec<String> = busy
        .iter()
        .take(BUSIEST)
        .map(|core| format!("core {} {}", core.place.core, known_percent(summary.of_core(core).busy)))
        .collect();
    busy.truncate(CORES);
    let rest = if busy.len() > FIRST + FIRST / 4 { busy.split_off(FIRST) } else { Vec::new() };
    let text = PlotText {
        title: "Busy share of each core over time".to_owned(),
        description: format!(
            "User, system, irq and softirq time. Busiest, mean of {}: {}.",
            in_tests(summary),
            first.join(", ")
        ),
    };
    let mut blocks = vec![map(summary, busy, (text, PlotColor::Blue, "blue"), CoreColumn::busy)];
    if let Some(first) = rest.first() {
        let text = PlotText {
            title: "Busy share of less busy cores over time".to_owned(),
            description: format!(
                "The same for cores that were {} busy or less on average.",
                known_percent(summary.of_core(first).busy)
            ),
        };
        let title = format!("{} that were less busy", plural(rest.len(), "core"));
        let map = map(summary, rest, (text, PlotColor::Blue, "blue"), CoreColumn::busy);
        blocks.push(Block::FoldedPart(title, vec![map]));
    }
    if quiet > 0 {
        blocks.push(Block::Text(format!("Not shown: {} that were hardly ever busy.", plural(quiet, "core"))));
    }
    blocks
}

fn softirqs(summary: &RecordingSummary) -> Vec<Block> {
    let share = |core: &CoreSummary| summary.of_core(core).softirq.unwrap_or(0.0);
    let has_softirqs = |core: &&CoreSummary| {
        let of = summary.of_core(core);
        share(core) >= FEW_SOFTIRQS || of.backlog_drops > 0.0 || of.squeezes >= 1.0
    };
    let mut cores: Vec<&CoreSummary> = summary.cores.iter().filter(has_softirqs).collect();
    let mut blocks = vec![Block::Subheading("Softirqs".to_owned())];
    if cores.is_empty() {
        let is_known = summary.cores.iter().any(|core| summary.of_core(core).softirq.is_some());
        let sentence = if is_known {
            format!("No core spent 1 % of {} in softirqs.", in_tests(summary))
        } else {
            "The softirq time is not known.".to_owned()
        };
        blocks.push(Block::Text(sentence));
        return blocks;
    }
    cores.sort_by(|one, other| share(other).total_cmp(&share(one)));
    cores.truncate(SOFTIRQ_CORES);
    let named =
        |core: &&CoreSummary| format!("core {} {}", core.place.core, known_percent(summary.of_core(core).softirq));
    let first: Vec<String> = cores.iter().take(5).map(named).collect();
    let text = PlotText {
        title: "Softirq share of each core over time".to_owned(),
        description: format!(
            "Where the kernel handles packets. Most, mean of {}: {}.",
            in_tests(summary),
            first.join(", ")
        ),
    };
    blocks.push(map(summary, cores.clone(), (text, PlotColor::Orange, "orange"), CoreColumn::softirq));
    let row = |core: &&CoreSummary| {
        let of = summary.of_core(core);
        vec![
            core_label(&summary.facts.topology, core),
            known_percent(of.busy),
            known_percent(of.softirq),
            known(of.net_rx_per_s, count),
            count(of.backlog_drops),
            count(of.squeezes),
        ]
    };
    let columns = ["core", ">busy", ">softirq", ">NET_RX/s", ">backlog drops", ">squeezes"];
    let all = format!("All traffic, means of {}; drops and squeezes are totals of {WHOLE}", in_tests(summary));
    let caption = format!("{AT_TICKS}. {all}");
    let named = named_cores(summary);
    let is_listed = |core: &CoreSummary| cores.iter().any(|other| other.place.core == core.place.core);
    let more: Vec<&CoreSummary> =
        summary.cores.iter().filter(|core| named.contains(&core.place.core) && !is_listed(core)).collect();
    let rows = cores.iter().chain(&more).map(row).collect();
    let table = Block::Table(ReportTable::new(&caption, &columns, rows));
    blocks.push(Block::FoldedPart("Each core in figures".to_owned(), vec![table]));
    blocks
}

/// The cores that sentences of the report name: those of limits and findings, and the busiest of the map.
fn named_cores(summary: &RecordingSummary) -> BTreeSet<CoreId> {
    let limits = summary.tests.iter().flat_map(|test| &test.limits).filter_map(|seen| seen.limit.core);
    let numbers = summary.tests.iter().flat_map(|test| &test.findings).flat_map(|seen| &seen.finding.numbers);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the number of a core")]
    let findings = numbers.filter(|(name, _)| *name == "core").map(|(_, core)| *core as CoreId);
    let mut busiest: Vec<&CoreSummary> = summary.cores.iter().filter(|core| core.whole.busy.is_some()).collect();
    let mean = |core: &CoreSummary| summary.of_core(core).busy.unwrap_or(0.0);
    busiest.sort_by(|one, other| mean(other).total_cmp(&mean(one)));
    limits.chain(findings).chain(busiest.iter().take(BUSIEST).map(|core| core.place.core)).collect()
}

fn links(summary: &RecordingSummary) -> Block {
    let peak = |link: &LinkSummary| summary.of_link(link).into_iter().flatten().fold(0.0, f64::max);
    let most = summary.links.iter().map(peak).fold(0.0, f64::max);
    let is_shown =
        |link: &&LinkSummary| most > 0.0 && (peak(link) >= most * IDLE_LINK || link.dropped.is_some_and(|n| n > 0));
    let shown: Vec<&LinkSummary> = summary.links.iter().filter(is_shown).take(LINKS).collect();
    let row = |link: &&LinkSummary| {
        let [received, sent] = summary.of_link(link);
        let nominal_bits = link.facts.speed_mbps.filter(|&mbps| mbps > 0).map(|mbps| f64::from(mbps) * 1e6);
        vec![
            link.facts.name.clone(),
            link.space.clone(),
            known(link.owner.as_ref(), |owner| owner.name.clone()),
            link.facts.kind.word().to_owned(),
            nominal(link.facts.speed_mbps, link.basis),
            known_rate(received),
            known_rate(sent),
            known(nominal_bits.filter(|_| peak(link) > 0.0), |bits| percent(peak(link) / bits)),
            known(link.dropped, |packets| count(packets as f64)),
        ]
    };
    let left_out = summary.links.len() - shown.len();
    let rest = if left_out > 0 {
        format!("; not listed: {} that carried next to nothing", plural(left_out, "link"))
    } else {
        String::new()
    };
    let columns =
        ["link", "netns", "owner", "kind", ">nominal speed", ">received", ">sent", ">of nominal", ">drops counted"];
    let caption = format!(
        "All traffic, means of {}; drops are of its own counters in {WHOLE}; qdiscs and sockets have others{rest}",
        in_tests(summary)
    );
    Block::Table(ReportTable::new(&caption, &columns, shown.iter().map(row).collect()).without_empty("owner"))
}

fn facts(summary: &RecordingSummary) -> Block {
    let (host, topology) = (&summary.facts.host, &summary.facts.topology);
    let policy = &host.policy;
    let yes = |of: Option<bool>| known(of, |is| if is { "on" } else { "off" }.to_owned());
    let ghz = |khz: u64| format!("{:.2} GHz", khz as f64 / 1e6);
    let clock = match (policy.limit_khz, policy.most_khz) {
        (None, None) => UNKNOWN.to_owned(),
        (limit, most) => format!("{} of {}", known(limit, ghz), known(most, ghz)),
    };
    let ovs = summary.facts.ovs.iter().map(|switch| known(switch.version.clone(), |version| version));
    let ovs: Vec<String> = ovs.collect();
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    let mut rows = vec![
        row("cores", cores_in_words(topology)),
        row(
            "isolated cores",
            if topology.isolated.is_empty() { "none".to_owned() } else { topology.isolated.to_string() },
        ),
        row("governor", known(policy.governor.clone(), |governor| governor)),
        row("clock", clock),
        row("NUMA balancing", yes(policy.numa_balancing)),
        row("irqbalance", yes(policy.irqbalance)),
    ];
    rows.extend(rules_counted(&summary.facts).map(|rules| row("firewall on the paths", rules)));
    if !ovs.is_empty() {
        rows.push(row("Open vSwitch", ovs.join(", ")));
    }
    rows.push(row("CPU time of vnettop", known(summary.own_cpu, |share| format!("{} of one core", percent(share)))));
    let (unknown, mut rows): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row[1] == UNKNOWN);
    let names: Vec<&str> = unknown.iter().map(|row| row[0].as_str()).collect();
    // A guest has no cpufreq, and an old recording none of the rest.
    rows.extend((!names.is_empty()).then(|| row(&names.join(", "), "not in this recording".to_owned())));
    Block::Table(ReportTable::new("The machine in detail", &["what", "value"], rows))
}

fn cores_in_words(topology: &Topology) -> String {
    if topology.cores.is_empty() {
        return UNKNOWN.to_owned();
    }
    let distinct = |of: fn(&crate::sample::CorePlace) -> Option<u32>| {
        let mut all: Vec<u32> = topology.cores.iter().filter_map(of).collect();
        all.sort_unstable();
        all.dedup();
        all.len()
    };
    let levels = [
        (distinct(|place| place.physical), "physical core"),
        (distinct(|place| place.cluster), "cluster"),
        (distinct(|place| place.llc), "last-level cache"),
        (distinct(|place| place.node), "node"),
        (distinct(|place| place.socket), "socket"),
    ];
    let words = levels.iter().filter(|(count, _)| *count > 0).map(|&(count, word)| plural(count, word));
    std::iter::once(plural(topology.cores.len(), "core")).chain(words).collect::<Vec<_>>().join(", ")
}
