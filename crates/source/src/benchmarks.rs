//! Benchmark programs by their command lines: iperf 3 and iperf 2, read as the programs themselves read them. It looks at
//! no socket: what a server does is not in its command line. `stream` follows what iperf 3 itself reports.

mod client_report;
mod getopt;
mod iperf2;
mod iperf3;
pub(super) mod stream;

pub use client_report::{ClientReport, round_trips};
pub use stream::Lines;

use super::{Roots, proc_file, untrusted_reader};
use vnettop_sample::text;
use vnettop_sample::{Benchmark, Direction, Program, Proto, Side, Word};

/// What a process' command line asks for; `None` when neither its command name nor its first argument is a benchmark's. An
/// error when the command line cannot be read now.
pub(super) fn of(roots: &Roots, pid: u32) -> Result<Option<Benchmark>, UnreadableCmdline> {
    let comm = proc_file::text(&roots.proc.join(pid.to_string()).join("comm")).unwrap_or_default();
    let line = untrusted_reader::cmdline(&roots.proc, pid).ok_or(UnreadableCmdline)?;
    let words = line.split(|&byte| byte == 0).filter(|word| !word.is_empty());
    let words: Vec<String> = words.map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    Ok(words.split_first().and_then(|(first, arguments)| {
        let name = first.rsplit('/').next().unwrap_or(first);
        let program = [comm.as_str(), name].into_iter().find_map(|name| name.parse().ok())?;
        parse(pid, program, arguments)
    }))
}

/// The command line could not be read: the process keeps its reader waiting, or an earlier process still does.
#[derive(Debug, Clone, Copy)]
pub(super) struct UnreadableCmdline;

/// Whether a command is an iperf 3 that writes its lines of `--json-stream` to its standard output, or starts one, as far as
/// its words tell: after `ip netns exec`, or in what a shell is given.
#[must_use]
pub fn streams(command: &[String]) -> bool {
    let breaks = |c: char| c.is_whitespace() || matches!(c, ';' | '&' | '|' | '(' | ')' | '\'' | '"');
    let words: Vec<&str> = command.iter().flat_map(|word| word.split(breaks)).filter(|word| !word.is_empty()).collect();
    let is_iperf3 = |word: &&str| word.rsplit('/').next() == Some(Program::Iperf3.word());
    let Some(at) = words.iter().position(is_iperf3) else { return false };
    let arguments: Vec<String> = words[at + 1..].iter().map(|&word| word.to_owned()).collect();
    iperf3::asked(&arguments).test.json_stream && !iperf3::has_log(&arguments)
}

/// What the arguments ask for; `None` when they start neither a server nor a client (`--version`).
fn parse(pid: u32, program: Program, arguments: &[String]) -> Option<Benchmark> {
    let Asked { side, test } = match program {
        Program::Iperf3 => iperf3::asked(arguments),
        Program::Iperf => iperf2::asked(arguments),
    };
    let side = side?;
    let of_client = side == Side::Client;
    Some(Benchmark {
        pid,
        side,
        target: test.target.filter(|_| of_client),
        // The client sets the protocol of an iperf 3 server; an iperf 2 server has it in its own arguments.
        proto: test.proto.filter(|_| of_client || program == Program::Iperf),
        streams: test.streams.filter(|_| of_client),
        direction: test.direction.filter(|_| of_client),
        ..test
    })
}

/// What a command line asks for, before its side is known.
struct Asked {
    side: Option<Side>,
    /// The arguments read as a client's.
    test: Benchmark,
}

impl Asked {
    fn nothing(program: Program, port: u16) -> Self {
        let (proto, streams, direction) = (Some(Proto::Tcp), Some(1), Some(Direction::Forward));
        let test = Benchmark { proto, streams, direction, ..Benchmark::new(0, program, Side::Client, port) };
        Self { side: None, test }
    }

    /// Takes an option that both programs have.
    fn take(&mut self, letter: char, value: &str) {
        let test = &mut self.test;
        match letter {
            's' => self.side = Some(Side::Server),
            'c' => {
                self.side = Some(Side::Client);
                test.target = (!value.is_empty()).then(|| text::clean(value.as_bytes()));
            }
            'p' => test.port = integer(value).unwrap_or(test.port),
            'u' => test.proto = Some(Proto::Udp),
            'P' => test.streams = integer(value).or(test.streams),
            'R' => test.direction = Some(Direction::Reverse),
            _ => {}
        }
    }
}

/// The number at the beginning of a text as C's `sscanf("%lf%c")` takes it, and the letter behind it.
fn number(text: &str) -> Option<(f64, Option<char>)> {
    let text = text.trim_start();
    let digits = |from: usize, others: &[char]| {
        let past = text[from..].find(|c: char| !c.is_ascii_digit() && !others.contains(&c));
        past.map_or(text.len(), |past| from + past)
    };
    let mantissa = digits(0, &['.', '+', '-']);
    let sign =
        text[mantissa..].strip_prefix(['e', 'E']).map(|rest| mantissa + 1 + usize::from(rest.starts_with(['+', '-'])));
    // An `e` without digits behind it is a letter.
    let exponent = sign.map(|from| (from, digits(from, &[]))).filter(|(from, end)| from < end);
    let end = exponent.map_or(mantissa, |(_, end)| end);
    let number = text[..end].parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0)?;
    Some((number, text[end..].chars().next()))
}

/// A number with a unit, in whole units; `factor` knows the letters.
fn whole(text: &str, factor: impl Fn(char) -> f64) -> Option<u64> {
    let (number, letter) = number(text)?;
    rounded(number * letter.map_or(1.0, factor))
}

/// Seconds with a fraction, ms.
fn milliseconds(text: &str) -> Option<u64> {
    rounded(number(text)?.0 * 1000.0)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be within the range")]
fn rounded(number: f64) -> Option<u64> {
    (0.0..1e18).contains(&number).then_some(number as u64)
}

/// The digits at the beginning of a text, as C's `atoi` takes them.
fn integer<T: std::str::FromStr>(text: &str) -> Option<T> {
    let text = text.trim_start();
    text[..text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len())].parse().ok()
}

/// What a fuzzer gives every parser here.
#[cfg(fuzzing)]
pub(crate) fn fuzz(bytes: &[u8]) {
    stream::fuzz(bytes);
    let _ = (ClientReport::of_iperf3(bytes), ClientReport::of_load(bytes), round_trips(bytes));
    let words: Vec<String> =
        bytes.split(|&byte| byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    for program in [Program::Iperf3, Program::Iperf] {
        parse(1, program, &words);
    }
    let _ = (streams(&words), iperf3::has_log(&words));
}

#[cfg(test)]
mod tests;
