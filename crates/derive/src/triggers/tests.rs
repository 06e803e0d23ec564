//! Each trigger at its threshold, once for each time that something begins.

use super::*;
use crate::ledger::{BIN_NS, Bin};
use crate::moves::MovesByClass;
use strum::VariantArray;
use vnettop_sample::Word;

fn bins(rates: &[f64]) -> Vec<Bin> {
    let bin = |(n, &rate): (usize, &f64)| Bin {
        from_ns: n as u64 * BIN_NS,
        to_ns: (n as u64 + 1) * BIN_NS,
        bits_per_s: Some(rate),
        moves: MovesByClass::default(),
        unclassed: 0.0,
    };
    rates.iter().enumerate().map(bin).collect()
}

fn of(text: &str) -> Trigger {
    text.parse().expect("a trigger")
}

#[test]
fn a_dip_of_three_bins_is_one_event_whatever_the_tick() {
    let mut rates = vec![35.0; 200];
    rates[100..103].fill(0.0);
    // One low bin alone is none.
    rates[150] = 1.0;
    for tick in [1, 2, 5, 10, 30] {
        let mut found = Vec::new();
        for end in (tick..=rates.len()).step_by(tick) {
            let scene = TriggerScene {
                bins: bins(&rates[..end]),
                judged_ns: (end - tick) as u64 * BIN_NS,
                ..TriggerScene::default()
            };
            found.extend(happened(of("dip"), &scene).map(|event| event.at_ns / BIN_NS));
        }
        assert_eq!(found, [100], "ticks of {tick} bins");
    }
    let scene = TriggerScene { bins: bins(&rates[..20]), ..TriggerScene::default() };
    assert_eq!(happened(of("dip"), &scene), None, "a test that begins has no median");
    let low = TriggerScene { bins: bins(&[vec![35.0; 60], vec![20.0; 5]].concat()), ..TriggerScene::default() };
    let is_met = |text: &str| happened(of(text), &low).is_some();
    assert!(!is_met("dip") && is_met("dip:60%") && is_met("dip:0.6"), "a share of the median");
}

/// The rate of each sample's interval as bins that end between the samples, `late` of an interval before the sample.
fn in_between(samples: &[f64], late: f64) -> Vec<f64> {
    samples.windows(2).map(|two| late * two[0] + (1.0 - late) * two[1]).collect()
}

#[test]
fn a_stop_of_0_3_s_is_one_dip_however_samples_and_bins_lie() {
    for begins in 0..10 {
        for late in 0..10 {
            let (begins, late) = (f64::from(begins) / 10.0, f64::from(late) / 10.0);
            let mut samples = vec![1.0; 100];
            // What was not sent is sent at once.
            samples[60..64].copy_from_slice(&[begins, 0.0, 0.0, 4.0 - begins]);
            let bins = bins(&in_between(&samples, late));
            let mut found = Vec::new();
            for end in 1..=bins.len() {
                let judged_ns = (end as u64 - 1) * BIN_NS;
                let scene = TriggerScene { bins: bins[..end].to_vec(), judged_ns, ..TriggerScene::default() };
                found.extend(happened(of("dip"), &scene).map(|event| event.at_ns / BIN_NS));
            }
            // Of the bins, one sample ends in the one before it.
            assert!(matches!(found[..], [59..=61]), "{begins} {late}: {found:?}");
        }
    }
}

#[test]
fn what_is_counted_triggers_when_it_rises_above_its_threshold() {
    let scene = TriggerScene {
        now_ns: 7,
        lost: [0.0, 3.0],
        migrations: [4.0, 12.0],
        p99_s: [0.001, 0.02],
        held_s: Some(4.0),
        ..TriggerScene::default()
    };
    let is_met = |text: &str| happened(of(text), &scene).is_some_and(|event| event.at_ns == 7);
    assert!(is_met("loss") && is_met("loss:3") && !is_met("loss:4"));
    assert!(is_met("migration-burst") && !is_met("migration-burst:13"));
    assert!(!is_met("migration-burst:3"), "it was above before");
    assert!(is_met("latency") && is_met("latency:1500us") && !is_met("latency:25ms"));
    assert!(is_met("limit-change") && !is_met("limit-change:5"));
    let quiet = TriggerScene { lost: [3.0, 3.0], held_s: None, ..scene.clone() };
    assert!(happened(of("loss"), &quiet).is_none() && happened(of("limit-change"), &quiet).is_none());
}

#[test]
fn a_wrong_threshold_is_a_sentence_with_an_example() {
    for text in ["", "frob", "dip:", "dip:150%", "dip:0", "loss:0", "loss:x", "latency:10", "limit-change:0", "Dip"] {
        let error = text.parse::<Trigger>().expect_err(text);
        assert!(error.to_string().starts_with("give "), "{text}: {error}");
    }
    for kind in TriggerKind::VARIANTS {
        assert_eq!(of(kind.word()).kind, *kind, "each has a usual threshold");
    }
}
