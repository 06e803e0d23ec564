//! One connection to a database: bytes in, bytes out, never waiting. It knows the frame of the messages, not what they say.

use super::budget::Budget;
use super::framer::Framer;
use super::spent_ns;
use crate::source::peer;
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, recv, send};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// What is read at once.
const PIECE: usize = 64 << 10;
/// How often at most until others have their turn.
const MOST_PIECES: usize = 8;
/// Answers that the database does not take: it is broken.
const MOST_UNSENT: usize = 1 << 20;

/// An open connection.
#[derive(Debug)]
pub(super) struct OvsConnection {
    socket: OwnedFd,
    framer: Framer,
    unsent: Vec<u8>,
}

/// Why a connection is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Over {
    /// The other end closed it.
    Closed,
    /// What came is not what a database sends: the end of a sentence.
    Wrong(String),
}

impl OvsConnection {
    /// Connects; a listener that does not take connections in is an error, not a wait.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
        Ok(Self { socket, framer: Framer::default(), unsent: Vec::new() })
    }

    /// The process that listens.
    pub fn peer(&self) -> Option<u32> {
        peer::pid(self.socket.as_fd())
    }

    /// Sends as much as the other end takes now, the rest with the next call.
    pub fn say(&mut self, bytes: &[u8]) -> Result<(), Over> {
        self.unsent.extend_from_slice(bytes);
        while !self.unsent.is_empty() {
            match send(&self.socket, &self.unsent, SendFlags::NOSIGNAL) {
                Ok(sent) => drop(self.unsent.drain(..sent)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if self.unsent.len() > MOST_UNSENT => {
                    return Err(Over::Wrong("it asks and does not read the answers".to_owned()));
                }
                Err(Errno::AGAIN) => break,
                Err(_) => return Err(Over::Closed),
            }
        }
        Ok(())
    }

    /// Reads what is there, up to a limit and while the budget allows it, and hands over each whole message. Returns
    /// whether anything came.
    pub fn receive(
        &mut self,
        buffer: &mut Vec<u8>,
        budget: &mut Budget,
        mut each: impl FnMut(&[u8]) -> Result<(), String>,
    ) -> Result<bool, Over> {
        buffer.resize(PIECE, 0);
        let mut heard = false;
        for _ in 0..MOST_PIECES {
            if !budget.is_left() {
                break;
            }
            match recv(&self.socket, &mut buffer[..], RecvFlags::empty()) {
                Ok((0, _)) => return Err(Over::Closed),
                Ok((received, _)) => {
                    let before_ns = spent_ns();
                    let taken = self.framer.take_in(&buffer[..received], &mut each);
                    budget.spend(received, spent_ns().saturating_sub(before_ns));
                    taken.map_err(Over::Wrong)?;
                    heard = true;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => return Err(Over::Closed),
            }
        }
        Ok(heard)
    }
}

impl AsFd for OvsConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
