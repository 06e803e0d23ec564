//! The numbers behind a finding in words and units, for the list of findings. Their names are for programs; here only
//! people read. A name that has no word is shown with blanks for its underscores.

use super::format::{Scale, Seconds, Share, Signed};
use crate::state::Units;

/// What kind of figure it is.
enum Kind {
    Plain,
    Share,
    Seconds,
    Bits,
    Bytes,
}

/// Every name that needs another word, or a unit.
const WORDS: [(&str, &str, Kind); 46] = [
    ("cv", "CV", Kind::Share),
    ("mean_bits_per_s", "mean", Kind::Bits),
    ("deviation_bits_per_s", "standard deviation", Kind::Bits),
    ("window_s", "seen for", Kind::Seconds),
    ("bin_s", "bins of", Kind::Seconds),
    ("moves_per_s", "moves/s", Kind::Plain),
    ("moves_across_nodes_per_s", "across nodes/s", Kind::Plain),
    ("blamed_moves_per_s", "moves/s that cost", Kind::Plain),
    ("with_move_bits_per_s", "with a move", Kind::Bits),
    ("without_move_bits_per_s", "without", Kind::Bits),
    ("bytes_per_move", "lost by each", Kind::Bytes),
    ("slowdown", "slower by", Kind::Share),
    ("slowdown_lasts_s", "slower for", Kind::Seconds),
    ("lost", "lost of the throughput", Kind::Share),
    ("explained", "explained of the swing", Kind::Share),
    ("p_value", "by mere chance with probability", Kind::Plain),
    ("correlates_with_mean", "of that in the mean", Kind::Plain),
    ("moves_seen", "moves with known cores", Kind::Plain),
    ("moves_seen_across_nodes", "of them across nodes", Kind::Plain),
    ("wait", "waiting for a core", Kind::Share),
    ("steal", "stolen", Kind::Share),
    ("others_interrupts", "interrupts of others", Kind::Share),
    ("dropped_per_s", "packets dropped/s", Kind::Plain),
    ("squeezed_per_s", "rounds cut short/s", Kind::Plain),
    ("bits_per_s", "moves", Kind::Bits),
    ("claim_mbps", "claims Mbit/s", Kind::Plain),
    ("times", "times its claim", Kind::Plain),
    ("limit_khz", "may run at kHz", Kind::Plain),
    ("most_khz", "could run at kHz", Kind::Plain),
    ("busy", "busy", Kind::Share),
    ("own_threads", "own threads", Kind::Share),
    ("own_softirq", "own softirqs", Kind::Share),
    ("others", "others", Kind::Share),
    ("thread", "its CPU time", Kind::Share),
    ("quota_cores", "cores allowed", Kind::Plain),
    ("throttled", "of its periods", Kind::Share),
    ("rwnd_limited", "receive window full", Kind::Share),
    ("sndbuf_limited", "send buffer full", Kind::Share),
    ("nothing_to_send", "nothing to send", Kind::Share),
    ("app_limited", "no more to send", Kind::Share),
    ("asked_bits_per_s", "asked for", Kind::Bits),
    ("allowed_bits_per_s", "allowed", Kind::Bits),
    ("pacing_bits_per_s", "paced at", Kind::Bits),
    ("claim_bits_per_s", "speed", Kind::Bits),
    ("cwnd_bytes", "window", Kind::Bytes),
    ("waits", "packets wait", Kind::Share),
];

/// `mean 24.1 Gbit/s`
pub(super) fn words(name: &str, value: f64) -> String {
    let known = WORDS.iter().find(|(known, ..)| *known == name);
    let Some((_, word, kind)) = known else {
        return format!("{} {}", name.replace("_per_s", "/s").replace('_', " "), Signed(value));
    };
    let figure = match kind {
        Kind::Plain => Signed(value).to_string(),
        Kind::Share => Share(value).to_string(),
        Kind::Seconds => Seconds(value).to_string(),
        Kind::Bits => scaled(value, Units::Bits),
        Kind::Bytes => scaled(value * 8.0, Units::Bytes).trim_end_matches("/s").to_owned(),
    };
    format!("{word} {figure}")
}

fn scaled(bits: f64, units: Units) -> String {
    let scale = Scale::of(bits, units);
    format!("{} {}", scale.number(bits), scale.unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_read_words_with_units_not_the_names_of_fields() {
        let told = [("p_value", 0.001), ("slowdown_lasts_s", 0.2), ("lost", 0.17), ("bytes_per_move", 2.19e8)];
        let told = told.map(|(name, value)| words(name, value));
        let wanted = [
            "by mere chance with probability 0.001",
            "slower for 0.2 s",
            "lost of the throughput 17 %",
            "lost by each 219 MB",
        ];
        assert_eq!(told, wanted);
        assert_eq!(words("mean_bits_per_s", 24.1e9), "mean 24.1 Gbit/s");
        assert_eq!(words("pins_undone", 2.0), "pins undone 2", "what needs no word has its blanks");
    }
}
