//! The command line of iperf 3, up to 3.20 (`src/iperf_api.c`). What changes nothing that vnettop tells is only taken
//! apart, so that a value is not mistaken for an option.

use super::getopt::Grammar;
use super::{Asked, integer, whole};
use vnettop_sample::text::clean;
use vnettop_sample::{Direction, Program};

/// Options without a letter that mean something here.
const BIDIR: char = '\u{1}';
const JSON_STREAM: char = '\u{2}';
const GSRO: char = '\u{3}';
const LOG_FILE: char = '\u{4}';

const GRAMMAR: Grammar = Grammar {
    short: "p:f:i:D1VJvsc:ub:t:n:k:l:P:Rw:B:M:N46S:L:ZO:F:A:T:C:dI:mhX:",
    long: "port:,format:,interval:,daemon,one-off,verbose,json,json-stream,json-stream-full-output,version,server,\
        client:,udp,bitrate:,bandwidth:,server-bitrate-limit:,server-max-duration:,time:,bytes:,blockcount:,\
        length:,parallel:,reverse,bidir,window:,bind:,bind-dev:,cport:,set-mss:,no-delay,version4,version6,tos:,\
        dscp:,extra-data:,flowlabel:,zerocopy,omit:,file:,repeating-payload,timestamps::,affinity:,title:,\
        congestion:,linux-congestion:,sctp,nstreams:,xbind:,pidfile:,logfile:,forceflush,get-server-output,\
        udp-counters-64bit,no-fq-socket-pacing,dont-fragment,skip-rx-copy,username:,rsa-public-key-path:,\
        rsa-private-key-path:,authorized-users-path:,time-skew-threshold:,use-pkcs1-padding,fq-rate:,\
        pacing-timer:,connect-timeout:,idle-timeout:,rcv-timeout:,snd-timeout:,cntl-ka::,mptcp,gsro,debug::,help",
    letters: &[
        ("port", 'p'),
        ("json-stream", JSON_STREAM),
        ("json-stream-full-output", JSON_STREAM),
        ("server", 's'),
        ("client", 'c'),
        ("udp", 'u'),
        ("bitrate", 'b'),
        ("bandwidth", 'b'),
        ("time", 't'),
        ("length", 'l'),
        ("parallel", 'P'),
        ("reverse", 'R'),
        ("bidir", BIDIR),
        ("omit", 'O'),
        ("affinity", 'A'),
        ("logfile", LOG_FILE),
        ("gsro", GSRO),
    ],
};

const PORT: u16 = 5201;

pub(super) fn asked(arguments: &[String]) -> Asked {
    let mut asked = Asked::nothing(Program::Iperf3, PORT);
    for (letter, value) in GRAMMAR.options(arguments) {
        match letter {
            BIDIR => asked.test.direction = Some(Direction::Both),
            JSON_STREAM => asked.test.json_stream = true,
            GSRO => asked.test.batched = true,
            'O' => asked.test.omit_ms = integer::<u64>(value).and_then(|seconds| seconds.checked_mul(1000)),
            't' => asked.test.time_ms = integer::<u64>(value).and_then(|seconds| seconds.checked_mul(1000)),
            'b' => {
                asked.test.asked_bits_per_s =
                    whole(value.split('/').next().unwrap_or(value), |unit| power(1000.0, unit));
            }
            'l' => asked.test.length_bytes = whole(value, |unit| power(1024.0, unit)),
            'A' => asked.test.affinity = Some(clean(value.as_bytes())),
            _ => asked.take(letter, value),
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
