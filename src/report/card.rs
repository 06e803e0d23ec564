//! The card of a pin as JSON. Rates in bits/s, shares 0..1; nothing is computed here.

use crate::derive::proof::{Difference, Side};
use crate::derive::{Card, Jitter};
use serde::Serialize;

/// The object `card`.
#[derive(Serialize)]
pub(super) struct Proof<'a> {
    pinned_t_ns: Option<u64>,
    verdict: &'a str,
    text: String,
    before: Half,
    after: Half,
    mean_difference_bits_per_s: Interval,
    cv_difference: Option<Interval>,
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
}

/// A difference, after minus before, and the ends of its 95 % confidence interval.
#[derive(Serialize)]
struct Interval {
    is: f64,
    from: f64,
    to: f64,
}

impl<'a> Proof<'a> {
    pub(super) fn of(card: &'a Card) -> Self {
        Self {
            pinned_t_ns: card.pinned_at_ns,
            verdict: card.verdict.words(),
            text: card.sentence(),
            before: half(&card.before),
            after: half(&card.after),
            mean_difference_bits_per_s: interval(card.mean),
            cv_difference: card.cv.map(interval),
        }
    }
}

fn half(side: &Side) -> Half {
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
    }
}

fn interval(difference: Difference) -> Interval {
    let Difference { is, from, to } = difference;
    Interval { is, from, to }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derive::Bin;
    use crate::derive::flow::BIN_NS;
    use crate::derive::moves::MovesByClass;

    #[test]
    fn figures_are_named_with_their_units_and_the_verdict_is_in_words() {
        let bins = |rates: [f64; 2]| -> Vec<Bin> {
            let bin = |at: u64| Bin {
                from_ns: at * BIN_NS,
                to_ns: (at + 1) * BIN_NS,
                bits_per_s: Some(rates[usize::from(at % 2 == 1)]),
                moves: MovesByClass::default(),
                unclassed: 1.0,
            };
            (0..100).map(bin).collect()
        };
        let card = Card::of(&bins([10e9, 30e9]), &bins([34e9, 35e9])).expect("enough bins");
        let json = serde_json::to_value(Proof::of(&card)).expect("it can be written");
        assert_eq!(json["verdict"], "steadier and faster", "{json}");
        assert_eq!(json["before"]["mean_bits_per_s"], 20e9, "{json}");
        assert!(json["after"]["moves_per_s"].as_f64().is_some_and(|per_s| (per_s - 10.0).abs() < 1e-6), "{json}");
        assert_eq!(json["mean_difference_bits_per_s"]["is"], 14.5e9, "{json}");
        assert_eq!(json["pinned_t_ns"], serde_json::Value::Null, "nobody pinned anything");
        assert!(json["text"].as_str().is_some_and(|text| text.starts_with("steadier and faster: mean +7")), "{json}");
    }
}
