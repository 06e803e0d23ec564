//! The ranking of a search in words and figures, and as JSON.

use crate::derive::experiment::{CONFIDENCE, Difference, PlacementStanding};
use crate::derive::plural;
use crate::derive::run::{BestTreatment, RunCard, SearchResult, SearchedPlacement};
use crate::report::figures::{digits, points_range, rate_range, scale, signed_points};
use crate::report::page::{ComparisonTable, Fact, fact};
use crate::report::pair::{pins_json, unknown};
use crate::sample::{PlacementClass, SteerMode, SteerTarget, Word};
use serde_json::{Value, json};

/// The placements with their rates, the best first; none where nothing was ranked.
pub(super) fn table(search: &SearchResult) -> Option<ComparisonTable> {
    let most = search.ranking.iter().map(|one| one.mean).fold(0.0, f64::max);
    let (bits, unit) = scale(most);
    let header = ["placement", &format!("{unit} (99 % interval)"), "% against the best", "phases"].map(str::to_owned);
    let row = |one: &SearchedPlacement| {
        let rate = |bits_per_s: f64| digits(bits_per_s / bits);
        let interval = |of: Difference| {
            format!(" ({})", rate_range([of.estimate, of.from, of.to].map(|rate| rate / bits), digits))
        };
        let mean = rate(one.mean) + &one.interval.map_or_else(String::new, interval);
        let against = match (one.standing, one.against_best) {
            (PlacementStanding::Best, _) => "best".to_owned(),
            (_, None) => unknown(),
            (_, Some(of)) => format!("{} ({})", signed_points(of.estimate), points_range(of.from, of.to)),
        };
        [one.tried.words(), mean, against, one.phases.to_string()]
    };
    let rows: Vec<[String; 4]> = search.ranking.iter().map(row).collect();
    (!rows.is_empty()).then_some(ComparisonTable { header, rows })
}

/// What follows from the ranking, and how it was made.
pub(super) fn conclusions(card: &RunCard, search: &SearchResult) -> Vec<Fact> {
    let mut facts = Vec::new();
    if search.is_enough() {
        facts.push(fact("verdict", verdict(search)));
        facts.extend(best(search));
        facts.extend(search.found().map(|found| fact("p", proposed(&found))));
    }
    let dropped = search.ranking.iter().filter_map(|one| {
        let rounds = plural(one.dropped_after?, "round");
        Some(format!("{} after {rounds}", one.tried.words()))
    });
    let dropped = dropped.collect::<Vec<_>>().join(", ");
    facts.extend((!dropped.is_empty()).then(|| fact("dropped", dropped)));
    facts.extend(search.left_out.iter().map(|why| fact("left out", why.clone())));
    if card.asked.steer != SteerMode::Never {
        facts.extend(costs(search));
    }
    if !search.ranking.is_empty() {
        facts.push(fact("method", method(card, search)));
    }
    facts
}

/// What can be said of all placements, one sentence. That nothing differs is said only where intervals say so.
pub(super) fn verdict(search: &SearchResult) -> String {
    let such = |standing: PlacementStanding| search.ranking.iter().filter(move |one| one.standing == standing);
    // What is steered has a comma in its own words.
    let between = if search.ranking.iter().any(|one| !one.tried.steers.is_empty()) { "; " } else { ", " };
    let classes = |standing| such(standing).map(|one| one.tried.words()).collect::<Vec<_>>().join(between);
    let (same, open) = (classes(PlacementStanding::Same), classes(PlacementStanding::Open));
    match search.differs() {
        Some(true) => {}
        Some(false) if search.alike => {
            return "the placements do not differ: any two are within 3 % of each other".to_owned();
        }
        Some(false) => return "no placement is worse than the best by more than 3 %".to_owned(),
        None => return format!("inconclusive: {}", undecided(such(PlacementStanding::Open))),
    }
    let worse = classes(PlacementStanding::Worse);
    let best = classes(PlacementStanding::Best);
    let same = if same.is_empty() { same } else { format!("; within 3 % of it: {same}") };
    let open = if open.is_empty() { open } else { format!("; inconclusive: {open}") };
    format!("best: {best}{same}; clearly worse: {worse}{open}")
}

/// What is known of placements that may be as good as the best one or not, as far as they have an interval.
fn undecided<'a>(open: impl Iterator<Item = &'a SearchedPlacement>) -> String {
    let known: Vec<Difference> = open.filter_map(|one| one.against_best).collect();
    if known.is_empty() {
        return "too few rounds have two placements".to_owned();
    }
    let from = known.iter().map(|of| of.from).fold(f64::INFINITY, f64::min);
    let to = known.iter().map(|of| of.to).fold(f64::NEG_INFINITY, f64::max);
    format!("against the best it may be anything from {} %; a longer test narrows it", points_range(from, to))
}

/// The best placement by hand, where placements differ.
fn best(search: &SearchResult) -> Vec<Fact> {
    let Some(best) = search.best().filter(|_| search.differs() == Some(true)) else { return Vec::new() };
    let lines = best.tried.threads.iter().zip(best.taskset_lines());
    let pins = lines.map(|(at, line)| format!("{line}   {} → core {}", at.label, at.core)).chain(best.steer_lines());
    let is_needed = search.unpinned().is_some_and(|one| one.standing == PlacementStanding::Worse);
    let none = (!is_needed).then(|| "untouched: nothing was clearly faster".to_owned());
    let labelled = |label: &'static str, lines: Vec<String>| {
        let label = move |nth| if nth == 0 { label } else { "" };
        lines.into_iter().enumerate().map(move |(nth, text)| fact(label(nth), text))
    };
    let lasting = if is_needed { best.lasting_lines() } else { Vec::new() };
    labelled("best", pins.chain(none).collect()).chain(labelled("to keep it", lasting)).collect()
}

/// What each treatment cost beside its rate: segments sent again, and CPU time for what arrived.
fn costs(search: &SearchResult) -> Vec<Fact> {
    let line = |figure: &dyn Fn(&SearchedPlacement) -> Option<String>| {
        let of = |one: &SearchedPlacement| format!("{} {}", one.tried.words(), figure(one).unwrap_or_else(unknown));
        search.ranking.iter().map(of).collect::<Vec<_>>().join("; ")
    };
    let again = |one: &SearchedPlacement| one.retransmits_per_s.map(|again| format!("{}/s", digits(again)));
    let cpu = |one: &SearchedPlacement| cpu_s_per_gbit(one).map(|each| format!("{} ms/Gbit", digits(each * 1e3)));
    if search.ranking.is_empty() {
        return Vec::new();
    }
    let is_tcp = search.ranking.iter().any(|one| one.retransmits_per_s.is_some());
    let again = is_tcp.then(|| fact("retransmits", line(&again)));
    again.into_iter().chain([fact("CPU", line(&cpu))]).collect()
}

/// CPU time of the whole machine for 10^9 bits, seconds.
fn cpu_s_per_gbit(one: &SearchedPlacement) -> Option<f64> {
    one.busy_cores.filter(|_| one.mean > 0.0).map(|cores| cores / (one.mean / 1e9))
}

/// What `p` proposes from now on.
fn proposed(found: &BestTreatment) -> String {
    let also = match (found.steered, &found.tuned) {
        (None, None) => String::new(),
        (Some(SteerTarget::Nobody), _) => "lets its packets stay on the cores that send them".to_owned(),
        (Some(_), _) => "steers its packets".to_owned(),
        (None, Some((setting, value))) => match value.to_text().as_str() {
            "1" if setting.is_switch() => format!("turns on {}", setting.word()),
            text => format!("sets {} to {text}", setting.word()),
        },
    };
    match found.class {
        PlacementClass::Unpinned if also.is_empty() => {
            "proposes no pin for this kind of test: its own proposal was measured worse".to_owned()
        }
        PlacementClass::Unpinned => format!("{also} for this kind of test from now on"),
        class if also.is_empty() => format!("proposes {} for this kind of test from now on", class.word()),
        class => format!("proposes {} and {also} for this kind of test from now on", class.word()),
    }
}

fn method(card: &RunCard, search: &SearchResult) -> String {
    let settle_s = card.asked.settle_ns as f64 / 1e9;
    let rule =
        search.rule().map_or_else(String::new, |rule| format!("; by its rule p proposes {}", rule.tried.class.word()));
    format!(
        "random order in each round (seed {}), phases without their first {settle_s} s, compared round by round: \
         t intervals, all pairs together at {:.0} %{rule}",
        search.seed,
        CONFIDENCE * 100.0
    )
}

/// The search as JSON.
pub(super) fn json(card: &RunCard, search: &SearchResult) -> Value {
    let ranked = |one: &SearchedPlacement| {
        json!({
            "class": one.tried.class.word(), "rule": one.tried.is_rule, "phases": one.phases,
            "mean_bits_per_s": one.mean, "mean_interval_bits_per_s": one.interval, "against_best": one.against_best,
            "standing": one.standing.word(), "dropped_after": one.dropped_after,
            "retransmits_per_s": one.retransmits_per_s, "busy_cores": one.busy_cores, "cpu_s_per_gbit": cpu_s_per_gbit(one),
            "pins": pins_json(&one.pins()), "taskset": one.taskset_lines(), "steers": one.tried.steers,
            "lasting": one.lasting_lines(),
        })
    };
    let found = search.found();
    json!({
        "rounds": search.rounds,
        "seed": search.seed,
        "ranking": search.ranking.iter().map(ranked).collect::<Vec<_>>(),
        "left_out": search.left_out,
        "differs": search.differs(),
        "found": found.as_ref().map(|found| found.class.word()),
        "found_steered": found.as_ref().and_then(|found| found.steered),
        "found_setting": found.and_then(|found| found.tuned).map(|(setting, value)| json!({"setting": setting, "value": value})),
        "text": search.is_enough().then(|| verdict(search)),
        "method": method(card, search),
        "test": search.test,
    })
}
