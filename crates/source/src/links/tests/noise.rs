//! Bytes that no kernel sent: nothing panics, nothing hangs, and a reader keeps reading.

use super::super::claimed_speed::claim;
use super::super::counters;
use super::super::facts::{MessageNamespace, change};
use super::fixture;
use super::kernel::{FAMILY, GETSTATS, TestKernel, done, link, linkmodes, row};
use crate::netlink::generic;
use crate::netlink::message::messages;
use proptest::collection::vec;
use proptest::prelude::*;

const CAPTURED: [&str; 9] = [
    "newlink-br0",
    "newlink-tap1",
    "newlink-vx0",
    "getstats-0",
    "linkmodes",
    "ethtool-family",
    "notifications-port-leaves-bridge",
    "notifications-link-deleted",
    "notifications-speed-set",
];

/// Everything that looks at bytes looks at these.
fn look(bytes: &[u8]) {
    for message in messages(bytes) {
        let _ = change(&message, &MessageNamespace::default());
        let _ = counters::row(&message, 0, 0);
        let _ = claim(&message, 4);
        let _ = generic::parse(&message);
    }
}

/// A captured datagram, cut and with some bytes replaced.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let captured = (0..CAPTURED.len()).prop_map(|n| fixture(CAPTURED[n]));
    (captured, vec((any::<prop::sample::Index>(), any::<u8>()), 0..12), any::<prop::sample::Index>()).prop_map(
        |(mut bytes, changes, cut)| {
            let length = bytes.len();
            for (at, byte) in changes {
                bytes[at.index(length)] = byte;
            }
            // Half of them whole.
            bytes.truncate(cut.index(2 * length).min(length));
            bytes
        },
    )
}

fn quietly() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) }
}

proptest! {
    #![proptest_config(quietly())]

    #[test]
    fn random_bytes_are_survived(bytes in vec(any::<u8>(), 0..400)) {
        look(&bytes);
    }

    #[test]
    fn mutated_messages_are_survived(bytes in mutated()) {
        look(&bytes);
    }

    #[test]
    fn a_reader_fed_with_noise_reads_on(noise in vec(mutated(), 1..6)) {
        let kernel = TestKernel::with(&[link(1, "one", &[])]);
        let mut reader = kernel.open().unwrap();
        for bytes in &noise {
            kernel.news.push(Ok(bytes.clone()));
            kernel.monitor.push(Ok(bytes.clone()));
            kernel.ethtool.answer(FAMILY, std::slice::from_ref(bytes));
            kernel.dumps.answer(GETSTATS, std::slice::from_ref(bytes));
            // Noise in a dump may be an error; it is never the end.
            let _whatever_it_says = reader.read();
        }
        kernel.news.push(Ok(link(1_000_000, "last", &[])));
        for _ in 0..8 {
            kernel.ethtool.answer(FAMILY, &[linkmodes(4, 1_000_000, 100), done(0)]);
        }
        kernel.dumps.answer(GETSTATS, &[row(1_000_000, 5), done(0)]);
        let _noise_may_have_left_an_unfinished_answer = reader.read();
        kernel.dumps.answer(GETSTATS, &[row(1_000_000, 5), done(0)]);
        let reading = reader.read().unwrap();
        let last = reading.links.iter().find(|link| link.name == "last");
        prop_assert!(last.is_some(), "a true message is understood after any noise");
        prop_assert!(reading.links.is_sorted_by(|a, b| a.ifindex < b.ifindex), "links stay sorted");
        prop_assert!(reading.counters.is_sorted_by(|a, b| a.ifindex < b.ifindex), "rows stay sorted");
    }
}
