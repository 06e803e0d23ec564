//! One question to Docker over its unix socket. It is asked in HTTP/1.0, where an answer comes in one piece and ends with its
//! length or with the connection. It knows nothing of what the answer means.

use super::Slow;
use crate::{peer, scan};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, send, socket_with};
use std::io::{self, ErrorKind, Read};
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longest silence within an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest time from the question to the end of the answer.
const WHOLE_PATIENCE: Duration = Duration::from_mins(1);
/// Largest answer, bytes: 10,000 containers need about 15 MB.
const LONGEST: usize = 16 << 20;
/// Longest head of an answer, bytes, and most headers in it.
const LONGEST_HEAD: usize = 16 * 1024;
const MOST_HEADERS: usize = 64;
/// Buffer of one call, bytes.
const CALL: usize = 64 * 1024;

/// What came of a question.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The socket that took the question; when none did, the first that exists.
    pub path: PathBuf,
    /// The process that listens, as the kernel knows it.
    pub listener: Option<u32>,
    /// The body of a good answer, or why there is none: an error of connecting, or a sentence.
    pub body: io::Result<Vec<u8>>,
}

/// Asks the first socket that takes the question.
pub(crate) fn ask(paths: &[PathBuf], question: &'static str) -> Option<Slow<Answer>> {
    let paths = paths.to_vec();
    Slow::start("docker", move |_| reach(&paths, question))
}

fn reach(paths: &[PathBuf], question: &str) -> Answer {
    let mut refused: Option<(&PathBuf, io::Error)> = None;
    for path in paths {
        match open(path, question) {
            Ok(socket) => {
                return Answer { path: path.clone(), listener: peer::pid(socket.as_fd()), body: receive(socket) };
            }
            Err(error) if refused.as_ref().is_none_or(|(_, known)| known.kind() == ErrorKind::NotFound) => {
                refused = Some((path, error));
            }
            Err(_) => {}
        }
    }
    let (path, error) =
        refused.map_or((PathBuf::new(), ErrorKind::NotFound.into()), |(path, error)| (path.clone(), error));
    Answer { path, listener: None, body: Err(error) }
}

/// Connects and sends the question; the timeout of the socket ends both.
fn open(path: &Path, question: &str) -> io::Result<UnixStream> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&socket, Timeout::Send, Some(PATIENCE))?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    let request =
        format!("GET {question} HTTP/1.0\r\nHost: docker\r\nUser-Agent: vnettop\r\nAccept: application/json\r\n\r\n");
    // A new socket's buffer holds the question.
    send(&socket, request.as_bytes(), SendFlags::NOSIGNAL)?;
    Ok(socket.into())
}

/// The body of the answer.
fn receive(mut from: UnixStream) -> io::Result<Vec<u8>> {
    let until = Instant::now() + WHOLE_PATIENCE;
    let mut received = Vec::new();
    loop {
        let is_over = take_in(&mut from, &mut received, PATIENCE)?;
        if let Some(body) = body(&received, is_over)? {
            received.truncate(body.end);
            received.drain(..body.start);
            return Ok(received);
        }
        if is_over {
            return Err(other("its answer is incomplete"));
        }
        if received.len() > LONGEST {
            return Err(other(format!("its answer is longer than {} MB", LONGEST >> 20)));
        }
        if Instant::now() >= until {
            return Err(other(format!("its answer takes longer than {} s", WHOLE_PATIENCE.as_secs())));
        }
    }
}

/// Takes what comes next; whether the other side has closed.
fn take_in(from: &mut UnixStream, received: &mut Vec<u8>, patience: Duration) -> io::Result<bool> {
    from.set_read_timeout(Some(patience))?;
    let filled = received.len();
    received.resize(filled + CALL, 0);
    let got = from.read(&mut received[filled..]);
    received.truncate(filled + got.as_ref().map_or(0, |&got| got));
    match got {
        Ok(got) => Ok(got == 0),
        Err(error) if error.kind() == ErrorKind::Interrupted => Ok(false),
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            Err(other(format!("it has sent nothing for {} s", patience.as_secs())))
        }
        Err(error) => Err(other(format!("the connection broke: {error}"))),
    }
}

/// Where the body is, once all of it has come.
pub(super) fn body(received: &[u8], is_over: bool) -> io::Result<Option<Range<usize>>> {
    let no_http = || other("its answer is not HTTP");
    let head = &received[..received.len().min(LONGEST_HEAD)];
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut answer = httparse::Response::new(&mut headers);
    let start = match answer.parse(head) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if head.len() < LONGEST_HEAD => return Ok(None),
        _ => return Err(no_http()),
    };
    let reported = answer.headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-length"));
    let length = reported.map(|reported| scan::number(reported.value.trim_ascii()).ok_or_else(no_http)).transpose()?;
    let end = match length {
        Some(length) => start.saturating_add(usize::try_from(length).unwrap_or(usize::MAX)),
        None if is_over => received.len(),
        None => return Ok(None),
    };
    match answer.code {
        _ if end > received.len() => Ok(None),
        Some(200) => Ok(Some(start..end)),
        status => Err(other(format!("it answers with HTTP status {}", status.ok_or_else(no_http)?))),
    }
}

fn other(sentence: impl Into<String>) -> io::Error {
    io::Error::other(sentence.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The body of these bytes, or the sentence about them.
    fn whole(text: &str, is_over: bool) -> Result<Option<String>, String> {
        let at = body(text.as_bytes(), is_over).map_err(|error| error.to_string())?;
        Ok(at.map(|at| text[at].to_owned()))
    }

    #[test]
    fn each_way_of_telling_the_end_is_understood() {
        let there = || Ok(Some("[1,2]".to_owned()));
        let length = "HTTP/1.1 200 OK\r\nX: y\r\nCONTENT-length: 5\r\n\r\n[1,2]";
        assert_eq!(whole(length, false), there(), "by a length");
        assert_eq!(whole("HTTP/1.0 200 OK\r\n\r\n[1,2]", true), there(), "by closing");
        assert_eq!(whole("HTTP/1.0 200 OK\r\n\r\n[1,2]", false), Ok(None), "which is to come");
        for cut in 0..length.len() {
            assert_eq!(whole(&length[..cut], true), Ok(None), "{cut} bytes are no answer yet");
        }
        let refused = whole("HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\n{}", false);
        assert_eq!(refused, Err("it answers with HTTP status 403".to_owned()));
    }

    #[test]
    fn what_is_no_answer_is_told_at_once() {
        let endless = "HTTP/1.1 200 OK\r\nX: ".to_owned() + &"a".repeat(20_000);
        let long = "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n";
        for text in [
            "SSH-2.0-x",
            "HTTP/2 200\r\n\r\n",
            "HTTP/1.1 \r\n\r\n",
            "HTTP/1.1 99999 x\r\n\r\n",
            "\0\0\0",
            &*endless,
            long,
        ] {
            assert_eq!(whole(text, false), Err("its answer is not HTTP".to_owned()), "{text:.40}");
        }
    }

    #[test]
    fn whoever_says_nothing_is_not_waited_for() {
        let (mut here, _there) = UnixStream::pair().expect("a pair");
        let error = take_in(&mut here, &mut Vec::new(), Duration::from_millis(20)).expect_err("nothing comes");
        assert_eq!(error.to_string(), "it has sent nothing for 0 s");
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>, is_over: bool) {
            let _ = body(&bytes, is_over);
            let _ = body(&[&b"HTTP/1.1 200 OK\r\nContent-Length: "[..], &bytes].concat(), is_over);
        }
    }
}
