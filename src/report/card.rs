//! The card of a pin by itself, as text, Markdown and JSON. Rates in bits/s, shares 0..1; nothing is computed here.

use super::json::InJson;
use super::page::{Page, fact};
use super::timestamp;
use super::{Format, pair};
use crate::derive::{Card, TestMetrics, ThreadMetrics, plural};
use crate::sample::{CoreSet, ThreadSample};
use serde_json::json;

/// The card of a test, as a file of its own, with the pins among these threads; none before there is one. `test` is its number; none is
/// everything watched.
#[must_use]
pub fn card(metrics: &TestMetrics, threads: &[ThreadMetrics], test: Option<u32>, format: Format) -> Option<String> {
    let card = metrics.card.as_ref()?;
    let host = &metrics.machine.facts.host;
    Some(match format {
        Format::Text => page(metrics, threads, test)?.text(),
        Format::Markdown => page(metrics, threads, test)?.markdown(),
        Format::Json => {
            let object = json!({
                "schema_version": 1,
                "ts": when(metrics, card),
                "host": {
                    "name": host.name, "kernel": host.kernel, "arch": host.arch, "cores": metrics.machine.facts.topology.cores.len(),
                },
                "test": test,
                "basis": metrics.flow.basis.as_ref().map(pair::basis_json),
                "card": InJson(card, metrics),
                "pins": pair::pins_json(&pins(threads)),
            });
            object.to_string() + "\n"
        }
    })
}

/// What stands on it.
pub(super) fn page(metrics: &TestMetrics, threads: &[ThreadMetrics], test: Option<u32>) -> Option<Page> {
    let card = metrics.card.as_ref()?;
    let host = &metrics.machine.facts.host;
    let cores = plural(metrics.machine.facts.topology.cores.len(), "core");
    let mut facts = vec![fact("machine", format!("{}, Linux {} {}, {cores}", host.name, host.kernel, host.arch))];
    facts.extend(metrics.flow.basis.as_ref().map(|basis| fact("rate of", pair::basis(basis, None))));
    let of = test.map_or_else(|| "everything watched".to_owned(), |number| format!("test {number}"));
    Some(Page {
        title: "vnettop, before and after a pin",
        of: format!("{of}, pinned {}", when(metrics, card)),
        facts,
        table: Some(pair::table(card, ["before", "after"])),
        conclusions: pair::conclusions(card, 0.0).into_iter().chain(pair::pins(&pins(threads))).collect(),
    })
}

/// When the pin was set, by the wall clock.
fn when(metrics: &TestMetrics, card: &Card) -> String {
    let since_ms = metrics.machine.at_ns.saturating_sub(card.pinned_at_ns.unwrap_or(metrics.machine.at_ns)) / 1_000_000;
    timestamp(metrics.machine.wall_ms.saturating_sub(since_ms))
}

/// The pinned threads: name and role, tid, cores.
pub(super) fn pins(threads: &[ThreadMetrics]) -> Vec<(String, u32, CoreSet)> {
    let pinned = threads.iter().map(|thread| (&thread.sample, thread.pinned)).filter(|(_, pinned)| *pinned);
    let pin = |thread: &ThreadSample| {
        Some((format!("{} {}", thread.name, thread.role()), thread.id.tid, thread.allowed.clone()?))
    };
    pinned.filter_map(|(thread, _)| pin(thread)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derive::ledger::BIN_NS;
    use crate::derive::moves::MovesByClass;
    use crate::derive::{Bin, Card, Ledger};
    use serde_json::Value;

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
        let card = Card::of(&pairs, &Ledger::new()).expect("enough bins");
        let json = serde_json::to_value(InJson(&card, &TestMetrics::default())).expect("it can be written");
        assert_eq!(json["verdict"], "steadier and faster", "{json}");
        assert_eq!(json["before"]["mean_bits_per_s"], 20e9, "{json}");
        assert!(json["after"]["moves_per_s"].as_f64().is_some_and(|per_s| (per_s - 10.0).abs() < 1e-6), "{json}");
        let gained = json["mean_difference_bits_per_s"]["is"].as_f64();
        assert!(gained.is_some_and(|gained| (gained - 14.5e9).abs() < 1.0), "{json}");
        assert_eq!(json["pinned_t_ns"], Value::Null, "nobody pinned anything");
        assert_eq!(json["text"], "steadier and faster: the mean rose, the spread fell", "{json}");
        assert_eq!((&json["pairs"], &json["phases"][1]["kind"]), (&5.into(), &"pinned".into()), "{json}");
        assert_eq!(json["before"]["other_cores"], Value::Null, "nobody looked");
    }
}
