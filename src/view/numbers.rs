//! The numbers behind a finding in words and units, for the list of findings. Their names are for programs; here only
//! people read. A name that has no word is shown with blanks for its underscores.

use super::format::{Elapsed, Scale, Seconds, Share, Signed, speed};
use crate::state::Units;

/// What kind of figure it is.
enum NumberKind {
    Plain,
    Share,
    Seconds,
    Bits,
    Megabits,
    Bytes,
    Kilohertz,
    Microseconds,
}

/// Every name that needs another word, or a unit.
const WORDS: [(&str, &str, NumberKind); 66] = [
    ("cv", "CV", NumberKind::Share),
    ("mean_bits_per_s", "mean", NumberKind::Bits),
    ("deviation_bits_per_s", "standard deviation", NumberKind::Bits),
    ("window_s", "measured for", NumberKind::Seconds),
    ("bin_s", "bins of", NumberKind::Seconds),
    ("moves_per_s", "migrations/s", NumberKind::Plain),
    ("moves_across_nodes_per_s", "across nodes/s", NumberKind::Plain),
    ("blamed_moves_per_s", "migrations/s that cost", NumberKind::Plain),
    ("with_move_bits_per_s", "with a migration", NumberKind::Bits),
    ("without_move_bits_per_s", "without", NumberKind::Bits),
    ("bytes_per_move", "lost by each", NumberKind::Bytes),
    ("slowdown", "slower by", NumberKind::Share),
    ("slowdown_lasts_s", "slower for", NumberKind::Seconds),
    ("lost", "throughput lost", NumberKind::Share),
    ("explained", "of the variance explained", NumberKind::Share),
    ("p_value", "probability by chance", NumberKind::Plain),
    ("correlates_with_mean", "correlation with the mean", NumberKind::Plain),
    ("moves_seen", "migrations with known cores so far", NumberKind::Plain),
    ("moves_seen_across_nodes", "of these across nodes", NumberKind::Plain),
    ("wait", "waiting for a core", NumberKind::Share),
    ("system", "system", NumberKind::Share),
    ("softirq", "softirq", NumberKind::Share),
    ("steal", "stolen", NumberKind::Share),
    ("others_interrupts", "interrupts of others", NumberKind::Share),
    ("dropped_per_s", "packets dropped/s", NumberKind::Plain),
    ("squeezed_per_s", "squeezes/s", NumberKind::Plain),
    ("bits_per_s", "carries", NumberKind::Bits),
    ("claim_mbps", "nominal", NumberKind::Megabits),
    ("times", "times nominal", NumberKind::Plain),
    ("limit_khz", "may run at", NumberKind::Kilohertz),
    ("most_khz", "could run at", NumberKind::Kilohertz),
    ("busy", "busy", NumberKind::Share),
    ("own_threads", "own threads", NumberKind::Share),
    ("own_softirq", "own softirqs", NumberKind::Share),
    ("others", "other work", NumberKind::Share),
    ("thread", "its CPU time", NumberKind::Share),
    ("quota_cores", "cores allowed", NumberKind::Plain),
    ("throttled", "of its periods", NumberKind::Share),
    ("rwnd_limited", "receive window full", NumberKind::Share),
    ("sndbuf_limited", "send buffer full", NumberKind::Share),
    ("nothing_to_send", "nothing to send", NumberKind::Share),
    ("app_limited", "no more to send", NumberKind::Share),
    ("asked_bits_per_s", "asked for", NumberKind::Bits),
    ("allowed_bits_per_s", "allowed", NumberKind::Bits),
    ("pacing_bits_per_s", "paced at", NumberKind::Bits),
    ("claim_bits_per_s", "speed", NumberKind::Bits),
    ("cwnd_bytes", "window", NumberKind::Bytes),
    ("waits", "packets wait", NumberKind::Share),
    ("packets_per_s", "packets lost/s", NumberKind::Plain),
    ("all_packets_per_s", "lost at all places/s", NumberKind::Plain),
    ("sent_per_s", "packets sent/s", NumberKind::Plain),
    ("share", "share", NumberKind::Share),
    ("all_share", "share at all places", NumberKind::Share),
    ("retransmits_per_s", "segments sent again/s", NumberKind::Plain),
    ("dsack_dups_per_s", "sent again for nothing/s", NumberKind::Plain),
    ("reord_seen_per_s", "reorderings TCP notices/s", NumberKind::Plain),
    ("core_switches_per_s", "changes of core/s", NumberKind::Plain),
    ("out_of_order_per_s", "packets out of order/s", NumberKind::Plain),
    ("rtt_us", "round trip", NumberKind::Microseconds),
    ("p50_us", "p50", NumberKind::Microseconds),
    ("p99_us", "p99", NumberKind::Microseconds),
    ("waiting_bytes", "waiting", NumberKind::Bytes),
    ("tx_queue_bytes", "waiting at the sender", NumberKind::Bytes),
    ("datagram_bytes", "datagrams of", NumberKind::Bytes),
    ("largest_bytes", "whole up to", NumberKind::Bytes),
    ("held", "held back for each that passed", NumberKind::Plain),
];

/// `mean 24.1 Gbit/s`
pub(super) fn words(name: &str, value: f64) -> String {
    let known = WORDS.iter().find(|(known, ..)| *known == name);
    let Some((_, word, kind)) = known else {
        return format!("{} {}", name.replace("_per_s", "/s").replace('_', " "), Signed(value));
    };
    let figure = match kind {
        NumberKind::Plain => Signed(value).to_string(),
        NumberKind::Share => Share(value).to_string(),
        NumberKind::Seconds if value < 1.0 => format!("{:.0} ms", value * 1e3),
        NumberKind::Seconds => Seconds(value).to_string(),
        NumberKind::Bits => speed(value),
        NumberKind::Megabits => speed(value * 1e6),
        NumberKind::Kilohertz => format!("{:.2} GHz", value / 1e6),
        NumberKind::Microseconds => Elapsed(value / 1e6).to_string(),
        NumberKind::Bytes => {
            let scale = Scale::of(value * 8.0, Units::Bytes);
            scale.with_unit(value * 8.0).trim_end_matches("/s").to_owned()
        }
    };
    format!("{word} {figure}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_read_words_with_units_not_the_names_of_fields() {
        let reported = [("p_value", 0.001), ("slowdown_lasts_s", 0.2), ("lost", 0.17), ("bytes_per_move", 2.19e8)];
        let reported = reported.map(|(name, value)| words(name, value));
        let wanted =
            ["probability by chance 0.001", "slower for 200 ms", "throughput lost 17 %", "lost by each 219 MB"];
        assert_eq!(reported, wanted);
        assert_eq!(words("mean_bits_per_s", 24.1e9), "mean 24.1 Gbit/s");
        assert_eq!(words("pins_undone", 2.0), "pins undone 2", "what needs no word has its blanks");
    }
}
