//! What iperf 3 said itself on a card, and what was measured of the same test.

use crate::derive::run::{OwnFigures, RunCard};
use crate::derive::{TestMetrics, plural};
use crate::report::figures::{digits, percent, rate, seconds, signed_points};
use crate::report::json::InJson;
use crate::report::page::Fact;
use crate::sample::{Side, Unread};
use serde_json::{Value, json};

/// More tests than these are told by how many they were and what they lay between.
const ONE_BY_ONE: usize = 4;

pub(super) fn facts(card: &RunCard) -> Vec<Fact> {
    let label = |nth| if nth == 0 { "iperf3" } else { "" };
    let fact = |(nth, text)| Fact { label: label(nth), text };
    let unread = card.unread.map(|why| format!("iperf3's own results are unknown: {}", why.sentence()));
    let stated = match &card.reported[..] {
        many if many.len() > ONE_BY_ONE => vec![together(many)],
        few => few.iter().map(one).collect(),
    };
    stated.into_iter().chain(unread).enumerate().map(fact).collect()
}

/// What counts of a test: what arrived, where that is known.
fn bits_per_s(one: &OwnFigures) -> Option<f64> {
    one.whole.received_bits_per_s.or(one.whole.sent_bits_per_s).map(|bits| bits as f64)
}

fn one(of: &OwnFigures) -> String {
    let whole = &of.whole;
    let of_rate = |word: &str, bits: Option<u64>| bits.map(|bits| format!("{word} {}", rate(bits as f64)));
    let lost = whole.lost_packets.map(|lost| match whole.packets.filter(|&packets| packets > 0) {
        Some(packets) => {
            format!("{lost} of {} lost ({})", plural(packets, "datagram"), percent(lost as f64 / packets as f64))
        }
        None => format!("{} lost", plural(lost, "datagram")),
    });
    let said = [
        of_rate("sent", whole.sent_bits_per_s),
        of_rate("received", whole.received_bits_per_s),
        whole.retransmits.map(|times| plural(times, "retransmit")),
        lost,
        whole
            .jitter_ns
            .filter(|_| whole.lost_packets.is_some())
            .map(|ns| format!("jitter {} ms", digits(ns as f64 / 1e6))),
    ];
    let said = said.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let who = if of.side == Some(Side::Server) { "server: " } else { "" };
    let measured = match (of.measured, bits_per_s(of)) {
        (Some(ours), Some(theirs)) if theirs > 0.0 => {
            let off = signed_points(ours.bits_per_s / theirs - 1.0);
            format!("; measured {} over {} ({off} %)", rate(ours.bits_per_s), seconds(ours.seconds))
        }
        _ => String::new(),
    };
    format!("{who}{said} in {}{measured}", seconds(whole.length_ms as f64 / 1e3))
}

fn together(all: &[OwnFigures]) -> String {
    let mut rates: Vec<f64> = all.iter().filter_map(bits_per_s).collect();
    rates.sort_by(f64::total_cmp);
    let between = |from: &f64, to: &f64| format!(", {} to {}", rate(*from), rate(*to));
    let between = rates.first().zip(rates.last()).map_or_else(String::new, |(from, to)| between(from, to));
    let off = all.iter().filter_map(|one| Some(one.measured?.bits_per_s / bits_per_s(one)? - 1.0));
    let most = off.filter(|off| off.is_finite()).max_by(|a, b| a.abs().total_cmp(&b.abs()));
    let most = most.map_or_else(String::new, |off| format!("; measured at most {} % off", signed_points(off)));
    format!("{}{between}{most}", plural(all.len(), "test"))
}

pub(super) fn json(card: &RunCard) -> Value {
    // Nothing else of a sample is in them.
    let alone = TestMetrics::default();
    let test = |one: &OwnFigures| {
        json!({
            "run": one.run, "pid": one.pid, "side": one.side, "whole": InJson(&one.whole, &alone),
            "measured_bits_per_s": one.measured.map(|of| of.bits_per_s), "measured_s": one.measured.map(|of| of.seconds),
        })
    };
    json!({ "tests": card.reported.iter().map(test).collect::<Vec<_>>(), "gap": card.unread.map(Unread::sentence) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derive::run::MeasuredRate;
    use crate::sample::Whole;

    fn measured(bits_per_s: f64) -> MeasuredRate {
        MeasuredRate { bits_per_s, seconds: 9.8 }
    }

    fn tcp() -> OwnFigures {
        let whole = Whole {
            length_ms: 10_000,
            sent_bits_per_s: Some(9_420_000_000),
            received_bits_per_s: Some(9_410_000_000),
            retransmits: Some(12),
            ..Whole::default()
        };
        OwnFigures { run: 0, pid: 7, side: Some(Side::Client), whole, measured: Some(measured(9.4e9)) }
    }

    #[test]
    fn both_figures_stand_in_one_line() {
        assert_eq!(
            one(&tcp()),
            "sent 9.42 Gbit/s, received 9.41 Gbit/s, 12 retransmits in 10 s; measured 9.40 Gbit/s over 9.8 s (−0.11 %)"
        );
        let whole = Whole {
            length_ms: 2000,
            received_bits_per_s: Some(0),
            lost_packets: Some(50),
            packets: Some(200),
            jitter_ns: Some(7300),
            ..Whole::default()
        };
        let udp = OwnFigures { whole, side: Some(Side::Server), measured: None, ..tcp() };
        assert_eq!(one(&udp), "server: received 0.00 bit/s, 50 of 200 datagrams lost (25.0 %), jitter 0.01 ms in 2 s");
    }

    #[test]
    fn many_tests_are_one_line() {
        let all: Vec<OwnFigures> = (0..9)
            .map(|run| OwnFigures { run, measured: Some(measured(9.41e9 + run as f64 * 1e7)), ..tcp() })
            .collect();
        assert_eq!(together(&all), "9 tests, 9.41 Gbit/s to 9.41 Gbit/s; measured at most +0.85 % off");
    }
}
