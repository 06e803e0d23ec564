//! The rows of a card, in words; how they are laid out is not decided here.

use super::figures::{count, digits, percent, rate, seconds, signed_points, signed_rate};
use crate::derive::moves::{Evidence, MovesByClass};
use crate::derive::placement::Proposal;
use crate::derive::proof::{Card, Side, Verdict};
use crate::derive::run::{Comparison, Limit, Measured, Ran, RunCard};
use crate::derive::{FlowBasis, Jitter};
use crate::report::json::timestamp;

/// One line: what it is about, and what there is to say. An empty label continues the line above.
pub(super) struct Fact {
    pub(super) label: &'static str,
    pub(super) text: String,
}

/// Unpinned against pinned.
pub(super) struct Table {
    pub(super) header: [String; 4],
    pub(super) rows: Vec<[String; 4]>,
}

fn fact(label: &'static str, text: String) -> Fact {
    Fact { label, text }
}

/// What was run, watched and measured.
pub(super) fn facts(card: &RunCard) -> Vec<Fact> {
    let host = &card.host;
    let mut facts = vec![fact("ended", ended(card))];
    if card.cores > 0 {
        let cores = count(card.cores, "core");
        let when = timestamp(card.asked.wall_ms);
        facts.push(fact("machine", format!("{}, Linux {} {}, {cores}, {when}", host.name, host.kernel, host.arch)));
    }
    facts.extend(card.measured.map(|of| fact("measured", measured(card, of))));
    if !card.watched.is_empty() {
        facts.push(fact("watched", watched(card)));
    }
    if let Some(basis) = &card.basis {
        facts.push(fact("rate of", basis_of(basis, card.why_link.as_deref())));
    }
    let compared = card.comparison.as_ref().is_some_and(|both| both.card.is_some());
    if let Some(jitter) = card.jitter.filter(|_| !compared) {
        facts.extend(steadiness(card, &jitter));
    }
    facts.extend(super::reported::facts(card));
    facts.push(fact("drops", drops(card)));
    facts
}

/// The figures of both sides; none where they were not, or could not be, compared.
pub(super) fn table(card: &RunCard) -> Option<Table> {
    let both = card.comparison.as_ref()?;
    let Card { before, after, mean, cv, .. } = both.card.as_ref()?;
    let of_rate = |name: &str, of: fn(&Jitter) -> f64| {
        [name.to_owned(), rate(of(&before.jitter)), rate(of(&after.jitter)), String::new()]
    };
    let interval = |is: String, from: String, to: String| format!("{is} ({from} to {to})");
    let mut means = of_rate("mean", |jitter| jitter.mean);
    means[3] = interval(signed_rate(mean.is), signed_rate(mean.from), signed_rate(mean.to));
    let share = |side: &Side| side.jitter.cv.map_or_else(unknown, percent);
    let points = cv.map_or_else(String::new, |cv| {
        interval(signed_points(cv.is), signed_points(cv.from), signed_points(cv.to)) + " points"
    });
    let moves = |side: &Side| side.moves_per_s.map_or_else(unknown, |moves| format!("{}/s", digits(moves)));
    let dip = |side: &Side| seconds(side.jitter.longest_dip_s);
    let row = |name: &str, of: &dyn Fn(&Side) -> String| [name.to_owned(), of(before), of(after), String::new()];
    let mut cvs = row("CV", &share);
    cvs[3] = points;
    let rows = vec![
        means,
        of_rate("sd", |jitter| jitter.deviation),
        cvs,
        of_rate("p5", |jitter| jitter.p5),
        of_rate("p50", |jitter| jitter.p50),
        of_rate("p95", |jitter| jitter.p95),
        row("dip", &dip),
        row("moves", &moves),
    ];
    let header = ["", "unpinned", "pinned", "difference (95 % interval)"].map(str::to_owned);
    Some(Table { header, rows })
}

/// What follows from the figures.
pub(super) fn conclusions(card: &RunCard) -> Vec<Fact> {
    let mut facts = Vec::new();
    if let Some(both) = &card.comparison {
        facts.extend(comparison(card, both));
    }
    facts.extend(card.proposal.iter().flat_map(|proposal| match proposal {
        Ok(proposal) => proposed(proposal),
        Err(sentence) => vec![fact("proposal", sentence.clone())],
    }));
    for seen in &card.findings {
        // How often threads moved is of the whole run already.
        let last = if seen.finding.id == "moves" { "" } else { "; figures as last seen" };
        let time = format!("[{} of {}{last}]", seconds(seen.seconds), seconds(card.busy_s));
        facts.push(fact("finding", format!("{} {time}", seen.finding.text)));
    }
    facts.extend(card.limits.iter().map(|limit| fact("limit", limit_text(limit))));
    facts.extend(card.missing.iter().map(|sentence| fact("missing", sentence.clone())));
    facts
}

fn unknown() -> String {
    "–".to_owned()
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
            "every {} of this machine, because no process of the command had a benchmark's connection (one that it has run \
             elsewhere, by docker exec or ssh, is no process of its)",
            names()
        ),
        Measured::Everything { knows_command: false } => {
            format!("every {} of this machine, because the command's processes could not be seen", names())
        }
        Measured::Named => format!("what --watch names ({}), and the command's process", card.asked.watch.join(", ")),
    }
}

/// How the runs ended, those with the same exit code together.
fn ended(card: &RunCard) -> String {
    let took = |run: &Ran| run.to_ns.map(|to_ns| to_ns.saturating_sub(run.from_ns));
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
    if card.runs.len() > 1 { format!("{}: {}", count(card.runs.len(), "run"), ends.join("; ")) } else { ends.join("") }
}

fn watched(card: &RunCard) -> String {
    let one = |of: &crate::derive::run::WatchedThreads| format!("{} {} {}", of.threads, of.name, of.role);
    card.watched.iter().map(one).collect::<Vec<_>>().join(", ") + " (busy threads)"
}

fn basis_of(basis: &FlowBasis, why: Option<&str>) -> String {
    match basis {
        FlowBasis::Sockets(connections) => count(*connections, "connection"),
        FlowBasis::Datagrams(streams) => format!("{}, payload by the datagrams counted", count(*streams, "UDP stream")),
        FlowBasis::Link(name) => {
            let why = why.unwrap_or("no connection of the watched threads carried data: it is another protocol");
            format!("link {name}, because {why}")
        }
    }
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
            Evidence::Sampled => "seen from sample to sample, there are more",
        };
        let text = format!("{marked}{}/s ({rests_on}){}", digits(moves.per_s), classes(moves.by_class));
        fact("moves", text)
    }));
    facts
}

fn classes(by: MovesByClass) -> String {
    let all = [("smt", by.smt), ("cluster", by.cluster), ("llc", by.llc), ("node", by.node), ("socket", by.socket)];
    let seen: Vec<String> =
        all.iter().filter(|(_, moves)| *moves > 0).map(|(word, moves)| format!("{moves} {word}")).collect();
    if seen.is_empty() { String::new() } else { format!(", by class: {}", seen.join(", ")) }
}

fn drops(card: &RunCard) -> String {
    let Some(drops) = &card.drops else { return "not known: the run was too short for two readings".to_owned() };
    let worst: Vec<String> =
        drops.links().iter().take(3).map(|(name, packets)| format!("{packets} by {name}")).collect();
    let links = if worst.is_empty() { String::new() } else { format!(" ({})", worst.join(", ")) };
    let way = if drops.knows_way() {
        let (qdiscs, sockets, protocols) = (drops.by_qdiscs(), drops.by_sockets(), drops.by_protocols());
        format!(", {qdiscs} by qdiscs, {sockets} by socket buffers, {protocols} by rules and protocols")
    } else {
        "; loss in qdiscs and socket buffers was not read".to_owned()
    };
    format!("{} by links{links}, {} by softnet{way}", count(drops.by_links(), "packet"), drops.by_softnet())
}

fn comparison(card: &RunCard, both: &Comparison) -> Vec<Fact> {
    let mut facts = Vec::new();
    if let Some(of) = &both.card {
        let words = match of.verdict {
            Verdict::Worse => format!("worse ({})", of.why_worse()),
            verdict => verdict.words().to_owned(),
        };
        let what = if card.asked.repeat > 1 { "run" } else { "stretch" };
        let plural = |n: usize| {
            if n == 1 {
                ""
            } else if card.asked.repeat > 1 {
                "s"
            } else {
                "es"
            }
        };
        let settle = seconds(card.asked.settle_ns as f64 / 1e9);
        let doubt = of.doubt().map_or_else(String::new, |doubt| format!("; {doubt}"));
        facts.push(fact(
            "verdict",
            format!(
                "{words}: {} unpinned and {} pinned {what}{}, {} and {} of rates without the first {settle} of each{doubt}",
                both.unpinned,
                both.pinned,
                plural(both.pinned),
                seconds(of.before.jitter.window_s),
                seconds(of.after.jitter.window_s)
            ),
        ));
    }
    let pin = |(label, tid, cores): &(String, u32, crate::sample::CoreSet)| format!("{label} {tid} → {cores}");
    let pins: Vec<String> = both.pins.iter().map(pin).collect();
    if !pins.is_empty() {
        facts.push(fact("pins", pins.join(", ")));
    }
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
pub(super) fn limit_text(limit: &Limit) -> String {
    let (name, what) = match limit.name {
        "max_drops" => ("--max-drops", "packets dropped"),
        _ => ("--max-cv", "CV"),
    };
    let figure = |value: f64| if limit.name == "max_drops" { value.to_string() } else { percent(value) };
    let allowed = figure(limit.limit);
    match limit.measured {
        None => format!("{name} {allowed} was not checked, because that could not be measured"),
        Some(measured) => {
            let verdict = if limit.is_broken() { "broken" } else { "kept" };
            format!("{name} is {verdict}: {what} {}, at most {allowed} allowed", figure(measured))
        }
    }
}
