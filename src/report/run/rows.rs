//! The rows of a card, in words; how they are laid out is not decided here.

use crate::derive::moves::{Evidence, MovesByClass};
use crate::derive::placement::Proposal;
use crate::derive::run::{CardLimit, CommandRun, DroppedOnPath, Measured, PinComparison, RunCard};
use crate::derive::{FindingId, Jitter, plural};
use crate::report::figures::{digits, percent, rate, seconds};
use crate::report::page::{ComparisonTable, Fact, fact};
use crate::report::pair::{self, unknown};
use crate::report::timestamp;

/// What was run, watched and measured.
pub(super) fn facts(card: &RunCard) -> Vec<Fact> {
    let host = &card.host;
    let mut facts = vec![fact("result", ended(card))];
    if card.cores > 0 {
        let cores = plural(card.cores, "core");
        let when = timestamp(card.asked.wall_ms);
        facts.push(fact("machine", format!("{}, Linux {} {}, {cores}, {when}", host.name, host.kernel, host.arch)));
    }
    facts.extend(card.measured.map(|of| fact("measured", measured(card, of))));
    if !card.watched.is_empty() {
        facts.push(fact("watched", watched(card)));
    }
    if let Some(basis) = &card.basis {
        facts.push(fact("rate of", pair::basis(basis, card.why_link.as_deref())));
    }
    let compared = card.comparison.as_ref().is_some_and(|both| both.card.is_some())
        || card.search.as_ref().is_some_and(|search| !search.ranking.is_empty());
    if let Some(jitter) = card.jitter.filter(|_| !compared) {
        facts.extend(steadiness(card, &jitter));
    }
    facts.extend(super::reported::facts(card));
    facts.extend(super::round_trips::fact(card));
    facts.push(fact("drops", drops(card)));
    facts
}

/// The figures of both sides, or of all placements; none where they were not, or could not be, compared.
pub(super) fn table(card: &RunCard) -> Option<ComparisonTable> {
    if let Some(search) = &card.search {
        return super::search::table(search);
    }
    let mut table = pair::table(card.comparison.as_ref()?.card.as_ref()?, ["unpinned", "pinned"]);
    table.rows.extend(super::round_trips::row(card));
    Some(table)
}

/// What follows from the figures.
pub(super) fn conclusions(card: &RunCard) -> Vec<Fact> {
    let mut facts = Vec::new();
    if let Some(both) = &card.comparison {
        facts.extend(comparison(card, both));
    }
    facts.extend(card.search.iter().flat_map(|search| super::search::conclusions(card, search)));
    facts.extend(card.proposal.iter().flat_map(|proposal| match proposal {
        Ok(proposal) => proposed(proposal),
        Err(sentence) => vec![fact("proposal", sentence.clone())],
    }));
    for seen in &card.findings {
        // How often threads moved is of the whole run already.
        let last = if seen.finding.id == FindingId::Moves { "" } else { ", its last figures" };
        let time = format!("[for {} of {}{last}]", seconds(seen.seconds), seconds(card.busy_s));
        facts.push(fact("finding", format!("{} {time}", seen.finding.text)));
    }
    facts.extend(card.limits.iter().map(|limit| fact("limit", limit_text(limit))));
    facts.extend(card.missing.iter().map(|sentence| fact("missing", sentence.clone())));
    facts
}

/// Whose benchmark it is, in one sentence.
pub(super) fn measured(card: &RunCard, of: Measured) -> String {
    let names = || card.asked.watch.join(" and ");
    match of {
        Measured::Command { shared: None } => {
            "the command's own benchmark: its processes, and those at the other end of their connections".to_owned()
        }
        Measured::Command { shared: Some(pid) } => format!(
            "the command's own benchmark: its processes, and those at the other end of their connections; of process {pid}, \
             which also served others, the connections alone"
        ),
        Measured::Everything { knows_command: true } => format!(
            "every {} of this machine: the command's own processes have no benchmark connection (docker exec and ssh run theirs elsewhere)",
            names()
        ),
        Measured::Everything { knows_command: false } => {
            format!("every {} of this machine, because the command's processes were not visible", names())
        }
        Measured::Named => format!("what --watch names ({}), and the command's process", card.asked.watch.join(", ")),
    }
}

/// How the runs ended, those with the same exit code together.
fn ended(card: &RunCard) -> String {
    let took = |run: &CommandRun| run.to_ns.map(|to_ns| to_ns.saturating_sub(run.from_ns));
    let mut by_code: Vec<(i32, Vec<u64>)> = Vec::new();
    for (code, took) in card.runs.iter().filter_map(|run| run.code.zip(took(run))) {
        match by_code.iter_mut().find(|(known, _)| *known == code) {
            Some((_, all)) => all.push(took),
            None => by_code.push((code, vec![took])),
        }
    }
    let of_code = |(code, all): &(i32, Vec<u64>)| {
        let end = |ns: Option<&u64>| seconds(*ns.unwrap_or(&0) as f64 / 1e9);
        let (least, most) = (end(all.iter().min()), end(all.iter().max()));
        let after = if least == most { most } else { format!("{least} to {most}") };
        let times = if by_code.len() > 1 { format!("{} × ", all.len()) } else { String::new() };
        format!("{times}exit code {code} after {after}")
    };
    let mut ends: Vec<String> = by_code.iter().map(of_code).collect();
    if by_code.iter().map(|(_, all)| all.len()).sum::<usize>() < card.runs.len() {
        ends.push("not within the recording".to_owned());
    }
    if card.runs.len() > 1 { format!("{}: {}", plural(card.runs.len(), "run"), ends.join("; ")) } else { ends.join("") }
}

fn watched(card: &RunCard) -> String {
    let one = |of: &crate::derive::run::WatchedThreads| format!("{} {} {}", of.threads, of.name, of.role);
    card.watched.iter().map(one).collect::<Vec<_>>().join(", ") + " (busy threads)"
}

fn steadiness(card: &RunCard, jitter: &Jitter) -> Vec<Fact> {
    let settle = seconds(card.asked.settle_ns as f64 / 1e9);
    let window = format!(
        "{} in {} bins of {}, without the first {settle}",
        seconds(jitter.window_s),
        jitter.bins,
        seconds(jitter.bin_s)
    );
    let cv = jitter.cv.map_or_else(unknown, percent);
    let spread = format!(
        "p5 {}, p50 {}, p95 {}, longest dip {}",
        rate(jitter.p5),
        rate(jitter.p50),
        rate(jitter.p95),
        seconds(jitter.longest_dip_s)
    );
    let mut facts = vec![
        fact("window", window),
        fact("rate", format!("mean {}, sd {}, CV {cv}", rate(jitter.mean), rate(jitter.deviation))),
        fact("spread", spread),
    ];
    facts.extend(card.moves.map(|moves| {
        let marked = if moves.evidence == Evidence::Sampled { "≥ " } else { "" };
        let rests_on = match moves.evidence {
            Evidence::Traced => "each traced",
            Evidence::Counted if moves.by_class == MovesByClass::default() => "counted by the kernel, not traced",
            Evidence::Counted => "counted by the kernel, not all traced",
            Evidence::Sampled => "sampled only, so the true figure is higher",
        };
        let text = format!("{marked}{}/s ({rests_on}){}", digits(moves.per_s), classes(moves.by_class));
        fact("migrated", text)
    }));
    facts
}

fn classes(by: MovesByClass) -> String {
    let seen: Vec<String> = by.words().into_iter().rev().collect();
    if seen.is_empty() { String::new() } else { format!(", by class: {}", seen.join(", ")) }
}

fn drops(card: &RunCard) -> String {
    let Some(drops) = &card.drops else { return "not known: the run was too short for two readings".to_owned() };
    let worst: Vec<String> =
        drops.links().iter().take(3).map(|(name, packets)| format!("{packets} by {name}")).collect();
    let links = if worst.is_empty() { String::new() } else { format!(" ({})", worst.join(", ")) };
    let way = if let Some(DroppedOnPath { qdiscs, sockets, protocols }) = drops.on_path() {
        format!(", {qdiscs} by qdiscs, {sockets} by socket buffers, {protocols} by rules and protocols")
    } else {
        "; loss in qdiscs and socket buffers was not read".to_owned()
    };
    format!("{} by links{links}, {} by softnet{way}", plural(drops.by_links(), "packet"), drops.softnet)
}

fn comparison(card: &RunCard, both: &PinComparison) -> Vec<Fact> {
    let settle_s = card.asked.settle_ns as f64 / 1e9;
    let mut facts = both.card.as_ref().map_or_else(Vec::new, |of| pair::conclusions(of, settle_s));
    facts.extend(pair::pins(&both.pins));
    facts
}

fn proposed(proposal: &Proposal) -> Vec<Fact> {
    let steps = proposal.steps.iter().zip(proposal.taskset_lines()).enumerate();
    let line = |(nth, (step, taskset)): (usize, (&crate::derive::placement::Step, String))| {
        let label = if nth == 0 { "proposal" } else { "" };
        fact(label, format!("{taskset}   {} → core {}: {}", step.label, step.core, step.reason))
    };
    let reasons = proposal.doubt.iter().chain(&proposal.reasons).map(|reason| fact("", reason.clone()));
    steps.map(line).chain(reasons).collect()
}

/// A limit in a sentence.
pub(super) fn limit_text(limit: &CardLimit) -> String {
    let (name, what, most, measured) = match limit {
        CardLimit::MaxDrops { most, measured } => {
            ("--max-drops", "packets dropped", most.to_string(), measured.map(|packets| packets.to_string()))
        }
        CardLimit::MaxCv { most, measured } => ("--max-cv", "CV", percent(*most), measured.map(percent)),
    };
    match measured {
        None => format!("{name} {most} was not checked: its figure was not measured"),
        Some(measured) => {
            let verdict = if limit.is_broken() { "exceeded" } else { "ok" };
            format!("{name} {verdict}: {what} {measured} (limit {most})")
        }
    }
}
