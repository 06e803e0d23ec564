//! One question over a unix socket that never waits: it is sent when the socket takes it, and whatever has come of the
//! answer is taken on each look. It knows nothing of what the answer means.

use super::http::{self, Answer};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv, send, socket_with,
    sockopt,
};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Nothing comes of an answer for no longer than this, ns.
const PATIENCE_NS: u64 = 5_000_000_000;
/// And it takes no longer than this altogether, ns: at a tick a second a large one takes some.
const WHOLE_PATIENCE_NS: u64 = 60_000_000_000;
/// Nor is it longer than this, bytes: 10,000 containers need about 15 MB.
const LONGEST: usize = 16 << 20;
/// One look takes no more than this, bytes.
const PIECE: usize = 1 << 20;
/// One call takes no more than this, bytes.
const CALL: usize = 64 * 1024;

/// A question that has been asked.
#[derive(Debug)]
pub(super) struct Asked {
    socket: OwnedFd,
    /// The process that listens, as the kernel knows it.
    pub listener: Option<u32>,
    received: Vec<u8>,
    since_ns: u64,
    /// When something last came.
    heard_ns: u64,
}

/// What a look at it gave.
#[derive(Debug)]
pub(super) enum Look {
    /// Nothing yet.
    Waiting,
    /// The body of a good answer.
    Body(Vec<u8>),
    /// There will be none, and why.
    Failed(String),
}

impl Asked {
    /// Connects and sends.
    ///
    /// # Errors
    /// Nobody listens there, it may not be asked, or it has no time (`WouldBlock`).
    pub fn ask(path: &Path, question: &str, now_ns: u64) -> io::Result<Self> {
        let address = SocketAddrUnix::new(path)?;
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        connect(&socket, &address)?;
        let request = format!(
            "GET {question} HTTP/1.1\r\nHost: docker\r\nUser-Agent: vnettop\r\nAccept: application/json\r\nConnection: close\r\n\r\n"
        );
        // A fresh socket takes that much at once, or the listener is not worth waiting for.
        let sent = send(&socket, request.as_bytes(), SendFlags::NOSIGNAL)?;
        if sent < request.len() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let listener = sockopt::socket_peercred(&socket).ok().map(|peer| peer.pid.as_raw_nonzero().get());
        let listener = listener.and_then(|pid| u32::try_from(pid).ok());
        Ok(Self { socket, listener, received: Vec::new(), since_ns: now_ns, heard_ns: now_ns })
    }

    /// Takes what has come.
    pub fn look(&mut self, now_ns: u64) -> Look {
        let before = self.received.len();
        let closed = match self.receive() {
            Ok(closed) => closed,
            Err(error) => return Look::Failed(format!("the connection broke: {}", io::Error::from(error))),
        };
        if closed || self.received.len() > before {
            match http::answer(&self.received, closed) {
                Answer::Whole(200, body) => return Look::Body(body),
                Answer::Whole(status, _) => return Look::Failed(format!("it answers with HTTP status {status}")),
                Answer::BrokenOff => return Look::Failed("it broke off its answer".to_owned()),
                Answer::Wrong => return Look::Failed("it answers something that is not HTTP".to_owned()),
                Answer::Partial => {}
            }
        }
        if self.received.len() > LONGEST {
            return Look::Failed(format!("its answer is longer than {} MB", LONGEST >> 20));
        }
        if self.received.len() > before {
            self.heard_ns = now_ns;
        }
        let silent_ns = now_ns.saturating_sub(self.heard_ns);
        if silent_ns >= PATIENCE_NS || now_ns.saturating_sub(self.since_ns) >= WHOLE_PATIENCE_NS {
            return Look::Failed(format!("it has said nothing for {} s", silent_ns / 1_000_000_000));
        }
        Look::Waiting
    }

    /// What is there, but no more than one piece; whether the other side has closed.
    fn receive(&mut self) -> Result<bool, Errno> {
        let end = self.received.len() + PIECE;
        loop {
            let filled = self.received.len();
            if filled >= end {
                return Ok(false);
            }
            self.received.resize(filled + CALL, 0);
            let got = recv(&self.socket, &mut self.received[filled..], RecvFlags::empty());
            self.received.truncate(filled + got.map_or(0, |(got, _)| got));
            match got {
                Ok((0, _)) => return Ok(true),
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }
}
