//! The command line of iperf 3, up to 3.20 (`src/iperf_api.c`). What changes nothing that vnettop tells is only taken
//! apart, so that a value is not mistaken for an option.

use super::getopt::{Grammar, Value};
use super::{Asked, integer, whole};
use crate::sample::{Direction, Proto, Side};
use Value::{No, Perhaps, Yes};

/// Options without a letter that mean something here.
const BIDIR: char = '\u{1}';
const JSON_STREAM: char = '\u{2}';
const GSRO: char = '\u{3}';
const LOG_FILE: char = '\u{4}';
/// And those that do not.
const OTHER: char = '\0';

const GRAMMAR: Grammar = Grammar {
    short: "p:f:i:D1VJvsc:ub:t:n:k:l:P:Rw:B:M:N46S:L:ZO:F:A:T:C:dI:mhX:",
    long: &[
        ("port", Yes, 'p'),
        ("format", Yes, 'f'),
        ("interval", Yes, 'i'),
        ("daemon", No, 'D'),
        ("one-off", No, '1'),
        ("verbose", No, 'V'),
        ("json", No, 'J'),
        ("json-stream", No, JSON_STREAM),
        ("json-stream-full-output", No, JSON_STREAM),
        ("version", No, 'v'),
        ("server", No, 's'),
        ("client", Yes, 'c'),
        ("udp", No, 'u'),
        ("bitrate", Yes, 'b'),
        ("bandwidth", Yes, 'b'),
        ("server-bitrate-limit", Yes, OTHER),
        ("server-max-duration", Yes, OTHER),
        ("time", Yes, 't'),
        ("bytes", Yes, 'n'),
        ("blockcount", Yes, 'k'),
        ("length", Yes, 'l'),
        ("parallel", Yes, 'P'),
        ("reverse", No, 'R'),
        ("bidir", No, BIDIR),
        ("window", Yes, 'w'),
        ("bind", Yes, 'B'),
        ("bind-dev", Yes, OTHER),
        ("cport", Yes, OTHER),
        ("set-mss", Yes, 'M'),
        ("no-delay", No, 'N'),
        ("version4", No, '4'),
        ("version6", No, '6'),
        ("tos", Yes, 'S'),
        ("dscp", Yes, OTHER),
        ("extra-data", Yes, OTHER),
        ("flowlabel", Yes, 'L'),
        ("zerocopy", No, 'Z'),
        ("omit", Yes, 'O'),
        ("file", Yes, 'F'),
        ("repeating-payload", No, OTHER),
        ("timestamps", Perhaps, OTHER),
        ("affinity", Yes, 'A'),
        ("title", Yes, 'T'),
        ("congestion", Yes, 'C'),
        ("linux-congestion", Yes, 'C'),
        ("sctp", No, OTHER),
        ("nstreams", Yes, OTHER),
        ("xbind", Yes, 'X'),
        ("pidfile", Yes, 'I'),
        ("logfile", Yes, LOG_FILE),
        ("forceflush", No, OTHER),
        ("get-server-output", No, OTHER),
        ("udp-counters-64bit", No, OTHER),
        ("no-fq-socket-pacing", No, OTHER),
        ("dont-fragment", No, OTHER),
        ("skip-rx-copy", No, OTHER),
        ("username", Yes, OTHER),
        ("rsa-public-key-path", Yes, OTHER),
        ("rsa-private-key-path", Yes, OTHER),
        ("authorized-users-path", Yes, OTHER),
        ("time-skew-threshold", Yes, OTHER),
        ("use-pkcs1-padding", No, OTHER),
        ("fq-rate", Yes, OTHER),
        ("pacing-timer", Yes, OTHER),
        ("connect-timeout", Yes, OTHER),
        ("idle-timeout", Yes, OTHER),
        ("rcv-timeout", Yes, OTHER),
        ("snd-timeout", Yes, OTHER),
        ("cntl-ka", Perhaps, OTHER),
        ("mptcp", No, 'm'),
        ("gsro", No, GSRO),
        ("debug", Perhaps, 'd'),
        ("help", No, 'h'),
    ],
};

const PORT: u16 = 5201;

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
            BIDIR => asked.direction = Some(Direction::Both),
            JSON_STREAM => asked.json_stream = true,
            GSRO => asked.batched = true,
            'O' => asked.omit_ms = integer::<u64>(value).and_then(|seconds| seconds.checked_mul(1000)),
            't' => asked.time_ms = integer::<u64>(value).and_then(|seconds| seconds.checked_mul(1000)),
            'b' => asked.bitrate = whole(value.split('/').next().unwrap_or(value), |unit| power(1000.0, unit)),
            'l' => asked.length = whole(value, |unit| power(1024.0, unit)),
            'A' => asked.affinity = Some(value),
            _ => {}
        }
    }
    asked
}

/// Whether it writes to a file of its own (`--logfile`) rather than to its standard output.
pub(super) fn has_log(arguments: &[String]) -> bool {
    GRAMMAR.options(arguments).iter().any(|(letter, _)| *letter == LOG_FILE)
}

/// What a unit's letter stands for.
fn power(kilo: f64, unit: char) -> f64 {
    let times = match unit.to_ascii_lowercase() {
        'k' => 1,
        'm' => 2,
        'g' => 3,
        't' => 4,
        _ => 0,
    };
    kilo.powi(times)
}
