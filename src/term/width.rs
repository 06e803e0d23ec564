//! Whether a terminal shows lines and blocks two cells wide, as some do in Chinese, Japanese and Korean surroundings: a character is
//! printed, and the terminal asked where its cursor is then (CPR).

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// Prints a line at the left, and asks for the cursor.
const QUESTION: &str = "\r─\x1b[6n";
/// Takes it away again.
const ERASE: &str = "\r\x1b[K";
/// One that does not answer by then is taken to be as most are.
const PATIENCE: Duration = Duration::from_millis(200);
/// An answer is shorter.
const LONGEST: usize = 64;

/// What a terminal has answered.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CharacterWidth {
    /// Lines and blocks take two cells.
    pub is_wide: bool,
    /// The characters that somebody typed meanwhile.
    pub typed: String,
}

/// Asks, and waits a little for the answer.
///
/// # Errors
/// The terminal is gone.
pub(super) fn ask(input: impl AsFd, out: &mut impl Write) -> io::Result<CharacterWidth> {
    out.write_all(QUESTION.as_bytes())?;
    out.flush()?;
    let (asked, mut answer) = (Instant::now(), Vec::new());
    while column(&answer).is_none() && answer.len() < LONGEST {
        let left = PATIENCE.saturating_sub(asked.elapsed());
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(left.subsec_nanos()) };
        match poll(&mut [PollFd::new(&input, PollFlags::IN)], Some(&timeout)) {
            _ if left.is_zero() => break,
            Ok(0) => break,
            // A signal, as when the window gets another size, is no answer.
            Err(Errno::INTR) => continue,
            waited => waited?,
        };
        let mut bytes = [0; LONGEST];
        match read(&input, &mut bytes) {
            Ok(0) => break,
            Err(Errno::INTR) => {}
            Ok(count) => answer.extend(&bytes[..count]),
            Err(gone) => return Err(gone.into()),
        }
    }
    out.write_all(ERASE.as_bytes())?;
    Ok(CharacterWidth { is_wide: column(&answer).is_some_and(|column| column > 2), typed: typed(&answer) })
}

/// What stands beside answers and keys of several bytes: those begin with ESC and end with a letter.
fn typed(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut parts = text.split('\x1b');
    let first = parts.next().unwrap_or_default();
    let after = |part: &str| part.split_once(|c: char| c.is_ascii_alphabetic()).map(|(_, rest)| rest.to_owned());
    let all: String = std::iter::once(first.to_owned()).chain(parts.filter_map(after)).collect();
    all.chars().filter(|c| !c.is_control()).collect()
}

/// The column of `ESC [ row ; column R`, counted from 1, wherever it stands.
fn column(bytes: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(bytes).ok()?;
    text.split("\x1b[").skip(1).find_map(|rest| rest.split_once('R')?.0.split_once(';')?.1.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_found_among_what_was_typed() {
        assert_eq!(column(b"\x1b[1;2R"), Some(2), "one cell: the cursor stands in the second column");
        assert_eq!(column(b"q\x1b[A\x1b[12;3Rj"), Some(3), "among keys");
        assert_eq!(typed(b"q\x1b[A\x1b[12;3Rjp"), "qjp", "and what was typed is kept");
        assert_eq!([&b"\x1b[1;2"[..], b"", b"R;1"].map(column), [None; 3], "not whole, or none");
    }

    #[test]
    fn one_that_says_nothing_is_not_waited_for_long() {
        let (input, _held) = rustix::pipe::pipe().expect("a pipe");
        let (mut out, asked) = (Vec::new(), Instant::now());
        assert_eq!(ask(&input, &mut out).expect("it is open"), CharacterWidth::default(), "as most are");
        assert!(asked.elapsed() < 10 * PATIENCE, "{:?}", asked.elapsed());
        assert!(out.ends_with(ERASE.as_bytes()), "nothing is left of the question");
    }
}
