//! The command line of iperf 2, up to 2.1.9 (`src/Settings.cpp`). Some letters mean something else than in iperf 3, and
//! units in capitals are bytes.

use super::getopt::Grammar;
use super::{Asked, milliseconds, whole};
use vnettop_sample::{Direction, Program};

/// Options without a letter by which both ends send.
const BOTH_SEND: char = '\u{1}';

const GRAMMAR: Grammar = Grammar {
    short: "146b:c:def:hi:l:mn:o:p:rst:uvw:x:y:zAB:CDF:H:IL:M:NP:RS:T:UVWXZ:",
    long: "singleclient,bandwidth:,client:,dualtest,enhanced,enhancedreports,format:,help,interval:,len:,print_mss,\
        num:,output:,port:,tradeoff,server,time:,udp,version,window:,reportexclude:,reportstyle:,realtime,awdl,\
        bind:,bounceback::,bounceback-congest::,bounceback-txdelay:,bounceback-hold:,bounceback-no-quickack,\
        bounceback-period:,compatibility,daemon,file_input:,ssm-host:,stdin_input,mss:,nodelay,listenport:,\
        parallel:,reverse,tos:,ttl:,single_udp,ipv6_domain,suggest_win_size,peer-detect,tcp-congestion:,\
        linux-congestion:,histograms::,hide-ips,udp-histograms::,l2checks,incr-dstip,incr-srcip,incr-dstport,\
        incr-srcport,sum-dstip,txstart-time:,txdelay-time:,fq-rate:,trip-times,no-udp-fin,connect-only::,\
        connect-retries:,no-connect-sync,full-duplex,ipg:,isochronous::,sum-only,local-only::,near-congestion::,\
        permit-key::,permit-key-timeout:,burst-size:,burst-period:,tos-override:,tcp-rx-window-clamp:,\
        tcp-quickack,tcp-write-prefetch:,tcp-write-times,tap-dev::,tun-dev::,NUM_REPORT_STRUCTS:",
    letters: &[
        ("bandwidth", 'b'),
        ("client", 'c'),
        ("dualtest", 'd'),
        ("len", 'l'),
        ("port", 'p'),
        ("tradeoff", 'r'),
        ("server", 's'),
        ("time", 't'),
        ("udp", 'u'),
        ("bounceback", BOTH_SEND),
        ("parallel", 'P'),
        ("reverse", 'R'),
        ("full-duplex", BOTH_SEND),
    ],
};

const PORT: u16 = 5001;

pub(super) fn asked(arguments: &[String]) -> Asked {
    let mut asked = Asked::nothing(Program::Iperf, PORT);
    for (letter, value) in GRAMMAR.options(arguments) {
        match letter {
            'd' | BOTH_SEND => asked.test.direction = Some(Direction::Both),
            // First one way, then the other.
            'r' => asked.test.direction = None,
            't' => asked.test.time_ms = milliseconds(value),
            // Packets a second are no bits.
            'b' if !value.ends_with("pps") => {
                asked.test.asked_bits_per_s = whole(value.split(',').next().unwrap_or(value), bits);
            }
            'l' => asked.test.length_bytes = whole(value, bytes),
            _ => asked.take(letter, value),
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
