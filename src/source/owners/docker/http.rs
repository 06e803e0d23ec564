//! The bytes of an HTTP/1.1 answer → its status and its body, as far as it has come. It reads no socket and knows
//! nothing of what is asked.

use crate::source::scan;

/// What a head may be long, bytes.
const LONGEST_HEAD: usize = 16 * 1024;
/// What a line with the length of a chunk may be long, bytes.
const LONGEST_SIZE: usize = 128;

/// An answer as it stands.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// There is more to come.
    Partial,
    /// The whole body of an answer with this status.
    Whole(u16, Vec<u8>),
    /// It is none.
    Wrong,
    /// Nothing more comes of it.
    BrokenOff,
}

/// How the end of a body is told.
enum Framing {
    Length(usize),
    Chunks,
    Close,
}

/// Looks at what has been received; `closed` when nothing can follow.
pub(super) fn answer(bytes: &[u8], closed: bool) -> Answer {
    let unfinished = || if closed { Answer::BrokenOff } else { Answer::Partial };
    let looked_at = &bytes[..bytes.len().min(LONGEST_HEAD)];
    let Some(end) = looked_at.windows(4).position(|four| four == b"\r\n\r\n") else {
        let wrong = bytes.len() >= LONGEST_HEAD || !likely(bytes);
        return if wrong { Answer::Wrong } else { unfinished() };
    };
    let Some((status, framing)) = head(&bytes[..end]) else { return Answer::Wrong };
    let rest = &bytes[end + 4..];
    match framing {
        Framing::Length(length) => {
            rest.get(..length).map_or_else(unfinished, |body| Answer::Whole(status, body.to_vec()))
        }
        Framing::Close if closed => Answer::Whole(status, rest.to_vec()),
        Framing::Close => Answer::Partial,
        // Putting megabytes together on every look would cost more than reading them.
        Framing::Chunks if !closed && !rest.ends_with(b"\r\n\r\n") => Answer::Partial,
        Framing::Chunks => match chunks(rest) {
            Ok(Some(body)) => Answer::Whole(status, body),
            Ok(None) => unfinished(),
            Err(Malformed) => Answer::Wrong,
        },
    }
}

/// Whether this can be the beginning of an answer.
fn likely(bytes: &[u8]) -> bool {
    let expected = b"HTTP/1.";
    let known = bytes.len().min(expected.len());
    bytes[..known] == expected[..known]
}

fn head(bytes: &[u8]) -> Option<(u16, Framing)> {
    let mut lines = bytes.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let first = lines.next().filter(|line| likely(line) && line.len() > 8)?;
    let status = u16::try_from(scan::number(scan::fields(first).nth(1)?)?).ok()?;
    let mut framing = Framing::Close;
    for line in lines {
        let Some(colon) = line.iter().position(|&byte| byte == b':') else { continue };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"transfer-encoding") {
            framing = Framing::Chunks;
        } else if name.eq_ignore_ascii_case(b"content-length") && !matches!(framing, Framing::Chunks) {
            framing = Framing::Length(usize::try_from(scan::number(value)?).ok()?);
        }
    }
    Some((status, framing))
}

struct Malformed;

/// The pieces put together; none when the last has not come yet.
fn chunks(mut rest: &[u8]) -> Result<Option<Vec<u8>>, Malformed> {
    let mut body = Vec::with_capacity(rest.len());
    loop {
        let Some(end) = rest.iter().take(LONGEST_SIZE).position(|&byte| byte == b'\n') else {
            return if rest.len() >= LONGEST_SIZE { Err(Malformed) } else { Ok(None) };
        };
        let size = rest[..end].split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
        let size = scan::hex32(size).and_then(|size| usize::try_from(size).ok()).ok_or(Malformed)?;
        rest = &rest[end + 1..];
        if size == 0 {
            return Ok(rest.ends_with(b"\r\n").then_some(body));
        }
        let Some(piece) = rest.get(..size) else { return Ok(None) };
        body.extend_from_slice(piece);
        rest = &rest[size..];
        match rest {
            [] | [b'\r'] => return Ok(None),
            [b'\r', b'\n', more @ ..] => rest = more,
            _ => return Err(Malformed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fmt::Write;

    fn whole(text: &str, closed: bool) -> Answer {
        answer(text.as_bytes(), closed)
    }

    #[test]
    fn each_way_of_telling_the_end_is_understood() {
        let body = || Answer::Whole(200, b"[1,2]".to_vec());
        let length = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n[1,2]";
        assert_eq!(whole(length, false), body(), "by a length");
        let chunks = "HTTP/1.1 200 OK\r\nTRANSFER-encoding: chunked\r\n\r\n3\r\n[1,\r\n2;x=y\r\n2]\r\n0\r\n\r\n";
        assert_eq!(whole(chunks, false), body(), "in chunks");
        assert_eq!(whole("HTTP/1.0 200 OK\r\n\r\n[1,2]", true), body(), "by closing");
        for part in [length, chunks].iter().flat_map(|text| (0..text.len() - 4).map(|cut| &text[..cut])) {
            assert_eq!(whole(part, true), Answer::BrokenOff, "{part:?} was broken off");
            assert_eq!(whole(part, false), Answer::Partial, "{part:?} may become an answer");
        }
    }

    #[test]
    fn what_is_no_answer_is_told_at_once() {
        for text in ["SSH-2.0-x", "HTTP/2 200\r\n\r\n", "HTTP/1.1 \r\n\r\n", "HTTP/1.1 99999 x\r\n\r\n", "\0\0\0"] {
            assert_eq!(whole(text, false), Answer::Wrong, "{text:?} is no answer");
        }
        let endless = "HTTP/1.1 200 OK\r\nX: ".to_owned() + &"a".repeat(20_000);
        assert_eq!(whole(&endless, false), Answer::Wrong, "a head has an end");
        let wrong = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n";
        assert_eq!(whole(wrong, false), Answer::Wrong, "a chunk has a length");
        let long = "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n";
        assert_eq!(whole(long, false), Answer::Wrong, "a length is a number");
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>, closed: bool) {
            let _ = answer(&bytes, closed);
            let _ = answer(&[&b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"[..], &bytes].concat(), closed);
        }

        #[test]
        fn any_body_in_any_chunks_comes_out_whole(pieces in proptest::collection::vec("[a-z\r\n]{1,20}", 0..5)) {
            let mut text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned();
            for piece in &pieces {
                write!(text, "{:x}\r\n{piece}\r\n", piece.len()).expect("a string takes it");
            }
            text += "0\r\n\r\n";
            prop_assert_eq!(whole(&text, false), Answer::Whole(200, pieces.concat().into_bytes()));
        }
    }
}
