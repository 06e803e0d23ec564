//! The card of a pin as JSON, and by itself as text, Markdown and JSON. Rates in bits/s, shares 0..1; nothing is computed here.

use super::figures::count;
use super::page::{Page, fact};
use super::timestamp;
use super::{Format, pair};
use crate::derive::proof::{CardSide, Difference};
use crate::derive::{Card, Jitter, Metrics};
use crate::sample::{ThreadSample, Word};
use serde::Serialize;
use serde_json::{Value, json};

/// The card of what these metrics are of, as a file of its own; none before there is one. `test` is the number of the test that
/// they are of.
#[must_use]
pub fn card(metrics: &Metrics, test: Option<u32>, format: Format) -> Option<String> {
    let card = metrics.card.as_ref()?;
    let since_ms = metrics.at_ns.saturating_sub(card.pinned_at_ns.unwrap_or(metrics.at_ns)) / 1_000_000;
    let when = timestamp(metrics.wall_ms.saturating_sub(since_ms));
    let host = &metrics.facts.host;
    let pinned = metrics.threads.iter().map(|thread| (&thread.sample, thread.pinned)).filter(|(_, pinned)| *pinned);
    let pin = |thread: &ThreadSample| {
        Some((format!("{} {}", thread.name, thread.role()), thread.id.tid, thread.allowed.clone()?))
    };
    let pins: Vec<_> = pinned.filter_map(|(thread, _)| pin(thread)).collect();
    let page = || {
        let cores = count(metrics.facts.topology.cores.len(), "core");
        let mut facts = vec![fact("machine", format!("{}, Linux {} {}, {cores}", host.name, host.kernel, host.arch))];
        facts.extend(metrics.flow.basis.as_ref().map(|basis| fact("rate of", pair::basis(basis, None))));
        let of = test.map_or_else(|| "everything watched".to_owned(), |number| format!("test {number}"));
        Page {
            title: "vnettop, before and after a pin",
            of: format!("{of}, pinned {when}"),
            facts,
            table: Some(pair::table(card, ["before", "after"])),
            conclusions: pair::conclusions(card, 0.0).into_iter().chain(pair::pins(&pins)).collect(),
        }
    };
    Some(match format {
        Format::Text => page().text(),
        Format::Markdown => page().markdown(),
        Format::Json => {
            let object = json!({
                "schema_version": 1,
                "ts": when,
                "host": {
                    "name": host.name, "kernel": host.kernel, "arch": host.arch, "cores": metrics.facts.topology.cores.len(),
                },
                "test": test,
                "basis": metrics.flow.basis.as_ref().map(pair::basis_json),
                "card": Proof::of(card),
                "pins": pair::pins_json(&pins),
            });
            object.to_string() + "\n"
        }
    })
}

/// The object `card`.
#[derive(Serialize)]
pub(super) struct Proof<'a> {
    pinned_t_ns: Option<u64>,
    verdict: &'a str,
    text: String,
    method: String,
    pairs: usize,
    phases: Vec<Value>,
    before: Half,
    after: Half,
    mean_difference_bits_per_s: ConfidenceInterval,
    cv_difference: Option<ConfidenceInterval>,
}

#[derive(Serialize)]
struct Half {
    bins: usize,
    bin_s: f64,
    window_s: f64,
    mean_bits_per_s: f64,
    deviation_bits_per_s: f64,
    cv: Option<f64>,
    p5_bits_per_s: f64,
    p50_bits_per_s: f64,
    p95_bits_per_s: f64,
    longest_dip_s: f64,
    moves_per_s: Option<f64>,
    other_cores: Option<f64>,
}

/// A difference, after minus before, and the ends of its confidence interval.
#[derive(Serialize)]
struct ConfidenceInterval {
    is: f64,
    from: f64,
    to: f64,
}

impl<'a> Proof<'a> {
    pub(super) fn of(card: &'a Card) -> Self {
        Self {
            pinned_t_ns: card.pinned_at_ns,
            verdict: card.verdict.word(),
            text: card.sentence(),
            method: card.method(0.0),
            pairs: card.pairs(),
            phases: pair::phases_json(card),
            before: half(&card.before),
            after: half(&card.after),
            mean_difference_bits_per_s: interval(card.mean),
            cv_difference: card.cv.map(interval),
        }
    }
}

fn half(side: &CardSide) -> Half {
    let Jitter { bins, bin_s, window_s, mean, deviation, cv, p5, p50, p95, longest_dip_s } = side.jitter;
    Half {
        bins,
        bin_s,
        window_s,
        mean_bits_per_s: mean,
        deviation_bits_per_s: deviation,
        cv,
        p5_bits_per_s: p5,
        p50_bits_per_s: p50,
        p95_bits_per_s: p95,
        longest_dip_s,
        moves_per_s: side.moves_per_s,
        other_cores: side.others,
    }
}

fn interval(difference: Difference) -> ConfidenceInterval {
    let Difference { is, from, to } = difference;
    ConfidenceInterval { is, from, to }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derive::Bin;
    use crate::derive::flow::BIN_NS;
    use crate::derive::moves::MovesByClass;
    use crate::derive::proof::Others;

    #[test]
    fn figures_are_named_with_their_units_and_the_verdict_is_in_words() {
        let bins = |from: u64, rates: [f64; 2]| -> Vec<Bin> {
            let bin = |at: u64| Bin {
                from_ns: at * BIN_NS,
                to_ns: (at + 1) * BIN_NS,
                bits_per_s: Some(rates[usize::from(at % 2 == 1)]),
                moves: MovesByClass::default(),
                unclassed: 1.0,
            };
            (from..from + 20).map(bin).collect()
        };
        let pair = |nth: u64| [bins(nth * 40, [10e9, 30e9]), bins(nth * 40 + 20, [34e9, 35e9])];
        let pairs: Vec<_> = (0..5).map(pair).collect();
        let card = Card::of(&pairs, &Others::default()).expect("enough bins");
        let json = serde_json::to_value(Proof::of(&card)).expect("it can be written");
        assert_eq!(json["verdict"], "steadier and faster", "{json}");
        assert_eq!(json["before"]["mean_bits_per_s"], 20e9, "{json}");
        assert!(json["after"]["moves_per_s"].as_f64().is_some_and(|per_s| (per_s - 10.0).abs() < 1e-6), "{json}");
        assert_eq!(json["mean_difference_bits_per_s"]["is"], 14.5e9, "{json}");
        assert_eq!(json["pinned_t_ns"], serde_json::Value::Null, "nobody pinned anything");
        assert_eq!(json["text"], "steadier and faster: the mean rose, the spread fell", "{json}");
        assert_eq!((&json["pairs"], &json["phases"][1]["kind"]), (&5.into(), &"pinned".into()), "{json}");
        assert_eq!(json["before"]["other_cores"], Value::Null, "nobody looked");
    }
}
