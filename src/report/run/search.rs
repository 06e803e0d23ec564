//! The ranking of a search in words and figures, and as JSON.

use crate::derive::before_after::{CONFIDENCE, Difference};
use crate::derive::plural;
use crate::derive::run::{PlacementStanding, RunCard, SearchResult, SearchedPlacement};
use crate::report::figures::{digits, scale, signed_points};
use crate::report::page::{ComparisonTable, Fact, fact};
use crate::report::pair::{pins_json, unknown};
use crate::sample::{PlacementClass, Word};
use serde_json::{Value, json};

/// The placements with their rates, the best first; none where nothing was ranked.
pub(super) fn table(search: &SearchResult) -> Option<ComparisonTable> {
    let most = search.ranking.iter().map(|one| one.mean).fold(0.0, f64::max);
    let (bits, unit) = scale(most);
    let header = ["placement", &format!("{unit} (99 % interval)"), "% against the best", "phases"].map(str::to_owned);
    let row = |one: &SearchedPlacement| {
        let rate = |bits_per_s: f64| digits(bits_per_s / bits);
        let interval = |of: Difference| format!(" ({} to {})", rate(of.from.max(0.0)), rate(of.to));
        let mean = rate(one.mean) + &one.interval.map_or_else(String::new, interval);
        let against = match (one.standing, one.against_best) {
            (PlacementStanding::Best, _) => "best".to_owned(),
            (_, None) => unknown(),
            (_, Some(of)) => {
                format!("{} ({} to {})", signed_points(of.estimate), signed_points(of.from), signed_points(of.to))
            }
        };
        [one.tried.class.word().to_owned(), mean, against, one.phases.to_string()]
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
        facts.extend(search.found().map(|class| fact("p", proposed(class))));
    }
    let dropped = search.ranking.iter().filter_map(|one| {
        let rounds = plural(one.dropped_after?, "round");
        Some(format!("{} after {rounds}", one.tried.class.word()))
    });
    let dropped = dropped.collect::<Vec<_>>().join(", ");
    facts.extend((!dropped.is_empty()).then(|| fact("dropped", dropped)));
    facts.extend(search.left_out.iter().map(|why| fact("left out", why.clone())));
    if !search.ranking.is_empty() {
        facts.push(fact("method", method(card, search)));
    }
    facts
}

/// What can be said of all placements, one sentence.
fn verdict(search: &SearchResult) -> String {
    let classes = |standings: &[PlacementStanding]| {
        let such = search.ranking.iter().filter(|one| standings.contains(&one.standing));
        such.map(|one| one.tried.class.word()).collect::<Vec<_>>()
    };
    let (worse, open) = (classes(&[PlacementStanding::Worse]), classes(&[PlacementStanding::Open]));
    if worse.is_empty() && open.is_empty() {
        return "the placements do not differ: each is within 3 % of the best".to_owned();
    }
    if worse.is_empty() {
        let largest = |of: Difference| of.from.abs().max(of.to.abs());
        let most = search.ranking.iter().filter_map(|one| one.against_best).map(largest).fold(0.0, f64::max);
        let most =
            if most < 1.0 { format!("up to {} %", digits(most * 100.0)) } else { "a large difference".to_owned() };
        return format!("the placements do not differ: none is surely worse; {most} is not ruled out");
    }
    let best = classes(&[PlacementStanding::Best, PlacementStanding::Same]);
    let alike = if best.len() > 1 { " (no difference)" } else { "" };
    let open = if open.is_empty() { String::new() } else { format!("; not surely worse: {}", open.join(", ")) };
    format!("best: {}{alike}; surely worse: {}{open}", best.join(", "), worse.join(", "))
}

/// The best placement by hand, where placements differ.
fn best(search: &SearchResult) -> Vec<Fact> {
    let Some(best) = search.best().filter(|_| search.differs()) else { return Vec::new() };
    let lines = best.tried.threads.iter().zip(best.taskset_lines());
    let pins = lines.map(|(at, line)| format!("{line}   {} → core {}", at.label, at.core));
    let is_needed = search.unpinned().is_some_and(|one| one.standing == PlacementStanding::Worse);
    let none = (!is_needed).then(|| "unpinned: no pin was surely faster".to_owned());
    let label = |nth| if nth == 0 { "best" } else { "" };
    pins.chain(none).enumerate().map(|(nth, text)| fact(label(nth), text)).collect()
}

/// What `p` proposes from now on.
fn proposed(class: PlacementClass) -> String {
    match class {
        PlacementClass::Unpinned => {
            "proposes no pin for this kind of test: its own proposal was measured worse".to_owned()
        }
        class => format!("proposes {} for this kind of test from now on", class.word()),
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
            "pins": pins_json(&one.pins()), "taskset": one.taskset_lines(),
        })
    };
    json!({
        "rounds": search.rounds,
        "seed": search.seed,
        "ranking": search.ranking.iter().map(ranked).collect::<Vec<_>>(),
        "left_out": search.left_out,
        "differs": search.is_enough().then(|| search.differs()),
        "found": search.found().map(Word::word),
        "text": search.is_enough().then(|| verdict(search)),
        "method": method(card, search),
        "test": search.test,
    })
}
