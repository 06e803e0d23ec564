//! A proposed placement as lines of its overlay: why, the cores before and after, each thread with its reason and the
//! core that would have been next, the same by hand.

use super::format::{Percent, UNKNOWN};
use super::lines::{Line, sentences};
use super::text::wrap;
use super::{Tone, canvas::cells, strip};
use crate::derive::Metrics;
use crate::derive::placement::{CoreChange, Proposal, ProposedSteer, Step};
use crate::sample::{CoreId, CorePlace, ProposalPart, SteerRequest, SteerValue};
use std::collections::{BTreeMap, BTreeSet};

/// Up to so many cores are a table of their own.
const MOST_ROWS: usize = 8;
/// From so many cores of the machine on, each touched node is a strip.
const STRIPS_FROM: usize = 16;
/// Cores in one row of a strip.
const IN_A_ROW: usize = 32;

/// A proposal as lines.
pub(super) struct PlacementLines {
    /// Top to bottom.
    pub lines: Vec<Line>,
    /// The first line of each part that can be taken off, in their order.
    pub parts: Vec<(usize, ProposalPart)>,
}

/// Everything; one part may be chosen, and some may be off.
pub(super) fn lines(
    all: &Proposal,
    (chosen, off): (Option<usize>, &BTreeSet<ProposalPart>),
    metrics: Option<&Metrics>,
    width: u16,
) -> PlacementLines {
    let proposal = &all.without(off);
    let mut lines: Vec<Line> = proposal.doubt.iter().flat_map(|why| sentences(Tone::Warning, why, width)).collect();
    lines.extend(proposal.reasons.iter().flat_map(|why| sentences(Tone::Normal, why, width)));
    let strips = metrics.filter(|metrics| metrics.machine.facts.topology.cores.len() >= STRIPS_FROM);
    lines.extend(strips.into_iter().flat_map(|metrics| self::strips(proposal, metrics)));
    if !proposal.cores.is_empty() && (strips.is_none() || proposal.cores.len() <= MOST_ROWS) {
        lines.extend(table(&proposal.cores, &proposal.steps));
        if proposal.cores.iter().any(comes_and_goes) {
            let text = "BUSY% − OTHERS = share of your threads";
            lines.extend(sentences(Tone::Muted, text, width));
        }
    }
    if !lines.is_empty() {
        lines.push(Vec::new());
    }
    let who: Vec<String> = all.steps.iter().map(|step| format!("{} {}", step.label, step.thread.tid)).collect();
    let widest = who.iter().map(|who| cells(who)).max().unwrap_or(0).min(40);
    let mut parts: Vec<(usize, ProposalPart)> = Vec::new();
    let mark = |parts: &[_], part| Mark { is_chosen: chosen == Some(parts.len()), is_off: off.contains(&part) };
    for (step, who) in all.steps.iter().zip(&who) {
        let part = ProposalPart::Thread(step.thread);
        let mark = mark(&parts, part);
        parts.push((lines.len(), part));
        lines.extend(step_lines(step, mark, who, widest, width));
    }
    for steer in &all.steers {
        let mark = mark(&parts, steer.part());
        parts.push((lines.len(), steer.part()));
        lines.extend(steer_lines(steer, mark, width));
    }
    let by_hand = proposal.shell_lines();
    if !by_hand.is_empty() {
        lines.push(Vec::new());
        lines.push(vec![(Tone::Muted, "equivalent commands:".to_owned())]);
        lines.extend(by_hand.iter().flat_map(|line| sentences(Tone::Accent, line, width)));
    }
    PlacementLines { lines, parts }
}

/// How a thread of a proposal is marked.
#[derive(Clone, Copy)]
struct Mark {
    is_chosen: bool,
    is_off: bool,
}

/// `[x] iperf3 server 39083  core 91 of 0-127 → 4  why`, the reason below where it does not fit beside, then the other cores.
fn step_lines(step: &Step, mark: Mark, who: &str, widest: usize, width: u16) -> Vec<Line> {
    let old = step.old.as_ref().map_or_else(|| UNKNOWN.to_owned(), ToString::to_string);
    let name = format!("{who}{}", " ".repeat(widest.saturating_sub(cells(who)) + 2));
    let change = format!("now core {} (allowed {old}), pin to {}", step.on, step.core);
    let (cross, tones) = if mark.is_off { ("[ ] ", [Tone::Muted; 2]) } else { ("[x] ", [Tone::Normal, Tone::Good]) };
    let used = cells(cross) + cells(&name) + cells(&change) + 2;
    let tone = if mark.is_chosen { Tone::Key } else { tones[0] };
    let mut lines = vec![vec![(tone, cross.to_owned()), (tone, name), (tones[1], change)]];
    if mark.is_off {
        lines[0].push((Tone::Muted, "  unchanged".to_owned()));
        return lines;
    }
    let below = |text: &str| {
        wrap(text, width.saturating_sub(4)).into_iter().map(|part| vec![(Tone::Muted, format!("    {part}"))])
    };
    if used + cells(&step.reason) <= usize::from(width) {
        lines[0].push((Tone::Muted, format!("  {}", step.reason)));
    } else {
        lines.extend(below(&step.reason));
    }
    lines.extend(step.others().iter().flat_map(|others| below(others)));
    lines
}

/// `[x] rps_cpus of veth2 (r1)  now 0, set to 2 (core 1)`, and why below.
fn steer_lines(steer: &ProposedSteer, mark: Mark, width: u16) -> Vec<Line> {
    let SteerRequest { name, setting, value, .. } = &steer.request;
    let space = steer.space.as_ref().map_or_else(String::new, |space| format!(" ({space})"));
    let cores = match value {
        SteerValue::Cores(cores) if cores.is_empty() => " (no core)".to_owned(),
        SteerValue::Cores(cores) if cores.len() == 1 => format!(" (core {cores})"),
        SteerValue::Cores(cores) => format!(" (cores {cores})"),
        SteerValue::Number(_) | SteerValue::Kind(_) => String::new(),
    };
    let (cross, tones) = if mark.is_off { ("[ ] ", [Tone::Muted; 2]) } else { ("[x] ", [Tone::Normal, Tone::Good]) };
    let tone = if mark.is_chosen { Tone::Key } else { tones[0] };
    let change = format!("now {}, set to {}{cores}", steer.now, value.to_text());
    let mut line = vec![(tone, cross.to_owned()), (tone, format!("{}{space}  ", setting.of(name))), (tones[1], change)];
    if mark.is_off {
        line.push((Tone::Muted, "  unchanged".to_owned()));
    }
    let why = wrap(&steer.reason, width.saturating_sub(4));
    std::iter::once(line).chain(why.into_iter().map(|part| vec![(Tone::Muted, format!("    {part}"))])).collect()
}

/// One row a core: its load now, who is there now, who would be there.
fn table(cores: &[CoreChange], steps: &[Step]) -> Vec<Line> {
    let row = |core: &dyn std::fmt::Display, node: &str, busy: &str, others: &str, now: &str| {
        format!("{core:>4} {node:>4} {busy:>6} {others:>6}  {now:<22}")
    };
    let head = row(&"CORE", "NODE", "BUSY%", "OTHERS", "THERE NOW");
    let mut lines = vec![vec![(Tone::Header, head), (Tone::Header, "THEN".to_owned())]];
    for change in cores {
        let node = change.node.map_or_else(|| UNKNOWN.to_owned(), |node| node.to_string());
        let busy = Percent(change.load.map(|load| load.busy)).to_string();
        let others = Percent(change.load.map(|load| load.others)).to_string();
        let text = row(&change.core, &node, &busy, &others, &names(&change.now, steps));
        lines.push(vec![(Tone::Muted, text), (Tone::Good, names(&change.then, steps))]);
    }
    lines
}

/// The watched threads used this core in the last seconds, though none of them was there at the last look.
fn comes_and_goes(core: &CoreChange) -> bool {
    core.now.is_empty() && core.load.is_some_and(|load| load.busy - load.others >= 0.10)
}

/// `client 39082`; of many only the first and how many more.
fn names(tids: &[u32], steps: &[Step]) -> String {
    let role = |tid: u32| steps.iter().find(|step| step.thread.tid == tid).map_or("", role);
    match tids {
        [] => UNKNOWN.to_owned(),
        [tid] => format!("{} {tid}", role(*tid)),
        [tid, rest @ ..] => format!("{} {tid} +{}", role(*tid), rest.len()),
    }
}

fn role(step: &Step) -> &str {
    step.label.rsplit(' ').next().unwrap_or("")
}

/// Two rows for each touched node: loads now with the threads where they are, and the threads where they would be.
fn strips(proposal: &Proposal, metrics: &Metrics) -> Vec<Line> {
    let mut nodes: BTreeMap<Option<u32>, Vec<&CorePlace>> = BTreeMap::new();
    for place in &metrics.machine.facts.topology.cores {
        nodes.entry(place.node).or_default().push(place);
    }
    let touched = |core: CoreId| proposal.cores.iter().any(|change| change.core == core);
    let rows = nodes.iter().flat_map(|(node, places)| places.chunks(IN_A_ROW).map(move |row| (*node, row)));
    let rows = rows.filter(|(_, row)| row.iter().any(|place| touched(place.core)));
    rows.flat_map(|(node, row)| strip_lines(node, row, proposal, metrics)).collect()
}

fn strip_lines(node: Option<u32>, row: &[&CorePlace], proposal: &Proposal, metrics: &Metrics) -> [Line; 2] {
    let name = node.map_or_else(String::new, |node| format!("node{node}"));
    let range = format!("{}-{}", row[0].core, row[row.len() - 1].core);
    let busy = |place: &CorePlace| {
        let at = metrics.machine.cores.binary_search_by_key(&place.core, |core| core.place.core).ok()?;
        metrics.machine.cores[at].shares().map(|shares| shares.busy())
    };
    let threads = |place: &CorePlace, core: &dyn Fn(&Step) -> CoreId| {
        let mut here = proposal.steps.iter().filter(|step| core(step) == place.core).map(role);
        let first = here.next()?.chars().next()?;
        Some(if here.next().is_some() { '*' } else { first })
    };
    let now = row.iter().map(|place| match (threads(place, &|step| step.on), busy(place)) {
        (Some(letter), _) => (Tone::Watched, letter.to_string()),
        (None, Some(busy)) => (Tone::Muted, strip::block(busy).to_string()),
        (None, None) => (Tone::Muted, if place.online { "·" } else { "x" }.to_owned()),
    });
    let then = row.iter().map(|place| match threads(place, &|step| step.core) {
        Some(letter) => (Tone::Good, letter.to_string()),
        None => (Tone::Muted, "·".to_owned()),
    });
    let label = |text: String, word: &str| (Tone::Header, format!("{text:<14} {word:<5}"));
    [
        std::iter::once(label(format!("{name:<6} {range}"), "now")).chain(now).collect(),
        std::iter::once(label(String::new(), "then")).chain(then).collect(),
    ]
}
