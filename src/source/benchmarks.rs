//! Benchmark programs by their command lines: iperf 3 and iperf 2, read as the programs themselves read them. It looks at
//! no socket: what a server does is not in its command line. `stream` follows what iperf 3 itself reports.

mod getopt;
mod iperf2;
mod iperf3;
pub(super) mod stream;

pub(crate) use stream::Lines;

use super::{Roots, proc_file, untrusted_reader};
use crate::sample::{Benchmark, Direction, Program, Proto, Side, Word};
use crate::text;

/// What a process' command line asks for, where it is a benchmark by its command name or its first argument. An error
/// where it could not be asked for it now.
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
pub(crate) fn streams(command: &[String]) -> bool {
    let breaks = |c: char| c.is_whitespace() || matches!(c, ';' | '&' | '|' | '(' | ')' | '\'' | '"');
    let words: Vec<&str> = command.iter().flat_map(|word| word.split(breaks)).filter(|word| !word.is_empty()).collect();
    let is_iperf3 = |word: &&str| word.rsplit('/').next() == Some(Program::Iperf3.word());
    let Some(at) = words.iter().position(is_iperf3) else { return false };
    let arguments: Vec<String> = words[at + 1..].iter().map(|&word| word.to_owned()).collect();
    iperf3::asked(&arguments).json_stream && !iperf3::has_log(&arguments)
}

/// What the arguments ask for; none where they make neither a server nor a client (`--version`).
fn parse(pid: u32, program: Program, arguments: &[String]) -> Option<Benchmark> {
    let asked = match program {
        Program::Iperf3 => iperf3::asked(arguments),
        Program::Iperf => iperf2::asked(arguments),
    };
    let side = asked.side?;
    let of_client = side == Side::Client;
    Some(Benchmark {
        target: asked
            .target
            .filter(|target| of_client && !target.is_empty())
            .map(|target| text::clean(target.as_bytes())),
        // A server of iperf 3 takes what the client asks for, one of iperf 2 has to be told.
        proto: (of_client || program == Program::Iperf).then_some(asked.proto),
        streams: of_client.then_some(asked.streams),
        direction: asked.direction.filter(|_| of_client),
        json_stream: asked.json_stream,
        omit_ms: asked.omit_ms,
        time_ms: asked.time_ms,
        bitrate: asked.bitrate,
        length: asked.length,
        batched: asked.batched,
        affinity: asked.affinity.map(|cores| text::clean(cores.as_bytes())),
        ..Benchmark::new(pid, program, side, asked.port)
    })
}

/// What a command line asks for, before it is known of which side it is.
struct Asked<'a> {
    side: Option<Side>,
    target: Option<&'a str>,
    port: u16,
    proto: Proto,
    streams: u32,
    direction: Option<Direction>,
    json_stream: bool,
    omit_ms: Option<u64>,
    time_ms: Option<u64>,
    bitrate: Option<u64>,
    length: Option<u64>,
    batched: bool,
    affinity: Option<&'a str>,
}

impl<'a> Asked<'a> {
    fn nothing(port: u16) -> Self {
        Self {
            side: None,
            target: None,
            port,
            proto: Proto::Tcp,
            streams: 1,
            direction: Some(Direction::Forward),
            json_stream: false,
            omit_ms: None,
            time_ms: None,
            bitrate: None,
            length: None,
            batched: false,
            affinity: None,
        }
    }

    /// Takes an option that both programs have.
    fn take(&mut self, letter: char, value: &'a str) {
        match letter {
            's' => self.side = Some(Side::Server),
            'c' => (self.side, self.target) = (Some(Side::Client), Some(value)),
            'p' => self.port = integer(value).unwrap_or(self.port),
            'u' => self.proto = Proto::Udp,
            'P' => self.streams = integer(value).unwrap_or(self.streams),
            'R' => self.direction = Some(Direction::Reverse),
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

#[cfg(test)]
mod tests;
