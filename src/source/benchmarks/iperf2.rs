//! The command line of iperf 2, up to 2.1.9 (`src/Settings.cpp`). Some letters mean something else than in iperf 3, and
//! units in capitals are bytes.

use super::getopt::{Grammar, Value};
use super::{Asked, integer, milliseconds, whole};
use crate::sample::{Direction, Proto, Side};
use Value::{No, Perhaps, Yes};

/// Options without a letter by which both ends send.
const BOTH_SEND: char = '\u{1}';
/// And those that mean nothing here.
const OTHER: char = '\0';

const GRAMMAR: Grammar = Grammar {
    short: "146b:c:def:hi:l:mn:o:p:rst:uvw:x:y:zAB:CDF:H:IL:M:NP:RS:T:UVWXZ:",
    long: &[
        ("singleclient", No, '1'),
        ("bandwidth", Yes, 'b'),
        ("client", Yes, 'c'),
        ("dualtest", No, 'd'),
        ("enhanced", No, 'e'),
        ("enhancedreports", No, 'e'),
        ("format", Yes, 'f'),
        ("help", No, 'h'),
        ("interval", Yes, 'i'),
        ("len", Yes, 'l'),
        ("print_mss", No, 'm'),
        ("num", Yes, 'n'),
        ("output", Yes, 'o'),
        ("port", Yes, 'p'),
        ("tradeoff", No, 'r'),
        ("server", No, 's'),
        ("time", Yes, 't'),
        ("udp", No, 'u'),
        ("version", No, 'v'),
        ("window", Yes, 'w'),
        ("reportexclude", Yes, 'x'),
        ("reportstyle", Yes, 'y'),
        ("realtime", No, 'z'),
        ("awdl", No, 'A'),
        ("bind", Yes, 'B'),
        ("bounceback", Perhaps, BOTH_SEND),
        ("bounceback-congest", Perhaps, OTHER),
        ("bounceback-txdelay", Yes, OTHER),
        ("bounceback-hold", Yes, OTHER),
        ("bounceback-no-quickack", No, OTHER),
        ("bounceback-period", Yes, OTHER),
        ("compatibility", No, 'C'),
        ("daemon", No, 'D'),
        ("file_input", Yes, 'F'),
        ("ssm-host", Yes, 'H'),
        ("stdin_input", No, 'I'),
        ("mss", Yes, 'M'),
        ("nodelay", No, 'N'),
        ("listenport", Yes, 'L'),
        ("parallel", Yes, 'P'),
        ("reverse", No, 'R'),
        ("tos", Yes, 'S'),
        ("ttl", Yes, 'T'),
        ("single_udp", No, 'U'),
        ("ipv6_domain", No, 'V'),
        ("suggest_win_size", No, 'W'),
        ("peer-detect", No, 'X'),
        ("tcp-congestion", Yes, 'Z'),
        ("linux-congestion", Yes, 'Z'),
        ("histograms", Perhaps, OTHER),
        ("hide-ips", No, OTHER),
        ("udp-histograms", Perhaps, OTHER),
        ("l2checks", No, OTHER),
        ("incr-dstip", No, OTHER),
        ("incr-srcip", No, OTHER),
        ("incr-dstport", No, OTHER),
        ("incr-srcport", No, OTHER),
        ("sum-dstip", No, OTHER),
        ("txstart-time", Yes, OTHER),
        ("txdelay-time", Yes, OTHER),
        ("fq-rate", Yes, OTHER),
        ("trip-times", No, OTHER),
        ("no-udp-fin", No, OTHER),
        ("connect-only", Perhaps, OTHER),
        ("connect-retries", Yes, OTHER),
        ("no-connect-sync", No, OTHER),
        ("full-duplex", No, BOTH_SEND),
        ("ipg", Yes, OTHER),
        ("isochronous", Perhaps, OTHER),
        ("sum-only", No, OTHER),
        ("local-only", Perhaps, OTHER),
        ("near-congestion", Perhaps, OTHER),
        ("permit-key", Perhaps, OTHER),
        ("permit-key-timeout", Yes, OTHER),
        ("burst-size", Yes, OTHER),
        ("burst-period", Yes, OTHER),
        ("tos-override", Yes, OTHER),
        ("tcp-rx-window-clamp", Yes, OTHER),
        ("tcp-quickack", No, OTHER),
        ("tcp-write-prefetch", Yes, OTHER),
        ("tcp-write-times", No, OTHER),
        ("tap-dev", Perhaps, OTHER),
        ("tun-dev", Perhaps, OTHER),
        ("NUM_REPORT_STRUCTS", Yes, OTHER),
    ],
};

const PORT: u16 = 5001;

pub(super) fn asked(arguments: &[String]) -> Asked<'_> {
    let mut asked = Asked::nothing(PORT);
    for (letter, value) in GRAMMAR.options(arguments) {
        match letter {
            's' => asked.side = Some(Side::Server),
            'c' => (asked.side, asked.target) = (Some(Side::Client), Some(value)),
            'p' => asked.port = integer(value).unwrap_or(asked.port),
            'u' => asked.proto = Proto::Udp,
            'P' => asked.streams = integer(value).unwrap_or(asked.streams),
            'R' => asked.direction = Some(Direction::Reverse),
            'd' | BOTH_SEND => asked.direction = Some(Direction::Both),
            // First one way, then the other.
            'r' => asked.direction = None,
            't' => asked.time_ms = milliseconds(value),
            // Packets a second are no bits.
            'b' if !value.ends_with("pps") => asked.bitrate = whole(value.split(',').next().unwrap_or(value), bits),
            'l' => asked.length = whole(value, bytes),
            _ => {}
        }
    }
    asked
}

/// A rate's unit in bits: `m` is a million bits, `M` a million bytes.
fn bits(unit: char) -> f64 {
    match unit {
        'k' => 1e3,
        'm' => 1e6,
        'g' => 1e9,
        'K' => 8e3,
        'M' => 8e6,
        'G' => 8e9,
        _ => 1.0,
    }
}

/// A length's unit in bytes: `k` is 1000, `K` is 1024.
fn bytes(unit: char) -> f64 {
    match unit {
        'k' => 1e3,
        'm' => 1e6,
        'g' => 1e9,
        'K' => 1024.0,
        'M' => 1024.0 * 1024.0,
        'G' => 1024.0 * 1024.0 * 1024.0,
        _ => 1.0,
    }
}
