//! Unpinned against pinned in words and figures, whatever made the phases: a table, the verdict, the phases, the method.

use super::figures::{CommonUnit, digits, percent, scale, seconds, signed_digits, signed_points};
use super::page::{ComparisonTable, Fact, fact};
use crate::derive::experiment::{CONFIDENCE, CardSide, Difference, Phase, QuantileChange};
use crate::derive::{Card, FlowBasis, Jitter, plural};
use crate::sample::{CoreSet, StretchSide};
use serde_json::{Value, json};

/// The figures of both sides, which are called so.
pub(super) fn table(card: &Card, names: [&str; 2]) -> ComparisonTable {
    let Card { before, after, mean, cv, .. } = card;
    let of_rate = |name: &str, of: fn(&Jitter) -> f64| {
        let both = [&before.jitter, &after.jitter].map(of);
        let unit = CommonUnit::of_rates(&both);
        let [before, after] = both.map(|rate| unit.figure(rate));
        [name.to_owned(), before, after, String::new()]
    };
    let interval = |of: &Difference, figure: &dyn Fn(f64) -> String, unit: &str| {
        format!("{} ({} to {}) {unit}", figure(of.estimate), figure(of.from), figure(of.to))
    };
    let mut means = of_rate("mean", |jitter| jitter.mean);
    let (bits, unit) = scale(mean.from.abs().max(mean.to.abs()));
    means[3] = interval(mean, &|rate| signed_digits(rate / bits), unit);
    let share = |side: &CardSide| side.jitter.cv.map_or_else(unknown, percent);
    let points = cv.as_ref().map_or_else(String::new, |cv| interval(cv, &signed_points, "pp"));
    let moves = |side: &CardSide| side.moves_per_s.map_or_else(unknown, |moves| format!("{}/s", digits(moves)));
    let others = |side: &CardSide| side.others.map_or_else(unknown, |cores| format!("{} cores", digits(cores)));
    let dip = |side: &CardSide| seconds(side.jitter.longest_dip_s);
    let row = |name: &str, of: &dyn Fn(&CardSide) -> String| [name.to_owned(), of(before), of(after), String::new()];
    let mut cvs = row("CV", &share);
    cvs[3] = points;
    let mut busy = row("others", &others);
    "busy with other work on this machine".clone_into(&mut busy[3]);
    let mut rows = vec![
        means,
        of_rate("sd", |jitter| jitter.deviation),
        cvs,
        of_rate("p5", |jitter| jitter.p5),
        of_rate("p50", |jitter| jitter.p50),
        of_rate("p95", |jitter| jitter.p95),
        row("dip", &dip),
        row("migrations", &moves),
        busy,
    ];
    rows.extend(
        card.latency
            .iter()
            .flat_map(|latency| [quantile("p50 of the path", latency.p50), quantile("p99 of the path", latency.p99)]),
    );
    let difference = format!("difference ({:.0} % interval)", CONFIDENCE * 100.0);
    ComparisonTable { header: ["", names[0], names[1], &difference].map(str::to_owned), rows }
}

/// How long packets or answers took, of both sides, us.
pub(super) fn quantile(name: &str, one: QuantileChange) -> [String; 4] {
    let us = |seconds: f64| digits(seconds * 1e6);
    let signed = |seconds: f64| signed_digits(seconds * 1e6);
    let change = one.change.map_or_else(String::new, |of| {
        format!("{} ({} to {}) us", signed(of.estimate), signed(of.from), signed(of.to))
    });
    [name.to_owned(), format!("{} us", us(one.before_s)), format!("{} us", us(one.after_s)), change]
}

/// What the fact is called that says whether the pin helped.
pub(super) const VERDICT: &str = "verdict";

/// What follows from them, and what they were made of.
pub(super) fn conclusions(card: &Card, settle_s: f64) -> Vec<Fact> {
    vec![fact(VERDICT, card.sentence()), fact("phases", phases(card)), fact("method", card.method(settle_s))]
}

/// `U:9.90  P:5.60  P:5.30  U:9.20 Gbit/s`: no end of a line falls between a letter and its figure.
fn phases(card: &Card) -> String {
    let (scale, unit) = scale(card.phases.iter().map(|phase| phase.mean_bits_per_s).fold(0.0, f64::max));
    let kind = |phase: &Phase| match phase.side {
        StretchSide::Pinned => 'P',
        StretchSide::Unpinned => 'U',
    };
    let one = |phase: &Phase| format!("{}:{}", kind(phase), digits(phase.mean_bits_per_s / scale));
    let all: Vec<String> = card.phases.iter().map(one).collect();
    format!("{} {unit} (U unpinned, P pinned, in the order of time)", all.join("  "))
}

/// Its phases as JSON.
pub(super) fn phases_json(card: &Card) -> Vec<Value> {
    let one = |phase: &Phase| {
        json!({
            "kind": phase.side,
            "mean_bits_per_s": phase.mean_bits_per_s, "from_t_ns": phase.from_ns, "to_t_ns": phase.to_ns,
        })
    };
    card.phases.iter().map(one).collect()
}

/// Who is pinned where: name and role, tid, cores.
pub(super) type PinRows = [(String, u32, CoreSet)];

pub(super) fn pins(pins: &PinRows) -> Option<Fact> {
    let one = |(label, tid, cores): &(String, u32, CoreSet)| format!("{label} {tid} → {cores}");
    (!pins.is_empty()).then(|| fact("pins", pins.iter().map(one).collect::<Vec<_>>().join(", ")))
}

pub(super) fn pins_json(pins: &PinRows) -> Vec<Value> {
    let one = |(label, tid, cores): &(String, u32, CoreSet)| json!({ "label": label, "tid": tid, "cores": cores });
    pins.iter().map(one).collect()
}

/// What a rate is the rate of.
pub(super) fn basis_json(basis: &FlowBasis) -> Value {
    match basis {
        FlowBasis::Sockets(connections) => json!({ "of": "connections", "connections": connections, "link": null }),
        FlowBasis::Datagrams(streams) => json!({ "of": "datagrams", "connections": streams, "link": null }),
        FlowBasis::Link(name) => json!({ "of": "link", "connections": null, "link": name }),
    }
}

/// What a rate is the rate of, in words; `why` says why a link stands for the test's own traffic, `None` when unknown.
pub(super) fn basis(basis: &FlowBasis, why: Option<&str>) -> String {
    match basis {
        FlowBasis::Sockets(connections) => plural(*connections, "connection"),
        FlowBasis::Datagrams(streams) => {
            format!("{}, payload by the datagrams counted", plural(*streams, "UDP stream"))
        }
        FlowBasis::Link(name) => {
            let why = why.unwrap_or("no connection of the watched threads carried data: it is another protocol");
            format!("link {name}, because {why}")
        }
    }
}

pub(super) fn unknown() -> String {
    "–".to_owned()
}
