//! A conversation in JSON-RPC 1.0 over a unix socket, as the programs of Open vSwitch hold it (RFC 7047, section 4.1). A thread
//! reads for as long as the connection lasts, and sleeps while nothing comes: it answers the question whether vnettop lives, and
//! hands over every other message with its time. To say something never waits. What a message means is not known here.

mod read_budget;
#[cfg(test)]
mod tests;

use crate::{clock_ns, now_ns, peer};
pub(crate) use read_budget::{BYTES_PER_S, ReadBudget};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType, connect, recv, send,
    shutdown, socket_with,
};
use rustix::time::ClockId;
use serde::Deserialize;
use serde_json::error::Category;
use serde_json::{Deserializer, Value, json};
use std::convert::Infallible;
use std::io::{self, BufReader, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, sleep};
use std::time::Duration;

/// The largest message: a database of some ten thousand interfaces sends 8 MiB.
const MOST_BYTES: u64 = 16 << 20;
/// What a message takes beside its text, bytes; while messages of [`MOST_BYTES`] wait to be taken nothing more is read.
const MESSAGE_BYTES: u64 = 64;
/// What nests deeper is refused by `serde_json`; the programs' own messages nest nine deep.
const DEEPEST: u32 = 128;
/// The longest question that is answered by repeating it, bytes.
const LONGEST_ECHO: usize = 64 << 10;
/// What is read at once, bytes.
const PIECE: usize = 64 << 10;
/// A pause is looked at again after so long at most.
const LONGEST_PAUSE_NS: u64 = 100_000_000;

/// An open conversation; the connection ends with it.
#[derive(Debug)]
pub(crate) struct Conversation {
    connection: Arc<RpcConnection>,
    arrived: Receiver<Result<RpcMessage, Over>>,
}

/// What both threads use.
#[derive(Debug)]
struct RpcConnection {
    socket: OwnedFd,
    budget: Arc<ReadBudget>,
    received_at_ns: AtomicU64,
    /// Bytes of the messages that wait to be taken.
    waiting_bytes: AtomicU64,
}

/// What was said, and when it came, monotonic ns.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RpcMessage {
    pub at_ns: u64,
    pub value: Value,
}

/// Why a conversation is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Over {
    /// The other end closed it.
    Closed,
    /// What came is not what such a program sends: the end of a sentence.
    Wrong(String),
}

impl Conversation {
    /// Connects; a listener that does not take connections in is an error, not a wait. What reading may cost is the budget's.
    pub fn open(path: &Path, budget: &Arc<ReadBudget>) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        connect(&socket, &SocketAddrUnix::new(path)?)?;
        ioctl_fionbio(&socket, false)?;
        let connection = Arc::new(RpcConnection::new(socket, budget));
        let (give, arrived) = channel();
        let listened_to = Arc::clone(&connection);
        let listen = move || {
            let Err(over) = listened_to.listen(&give);
            let _not_wanted_any_more = give.send(Err(over));
        };
        // What it may take is the budget's; with less, what is said would be late on a machine that is full.
        Builder::new().name("ovs".to_owned()).spawn(listen).map_err(io::Error::other)?;
        Ok(Self { connection, arrived })
    }

    /// The process that listens.
    pub fn peer(&self) -> Option<u32> {
        peer::pid(self.connection.socket.as_fd())
    }

    /// Sends it. Questions are so few that only who reads nothing does not take one; that a connection has broken is heard.
    pub fn say(&self, text: &[u8]) {
        let _is_heard = self.connection.send(text);
    }

    /// What was said since the last call, in order; an error is the end of it.
    pub fn arrived(&self) -> impl Iterator<Item = Result<RpcMessage, Over>> {
        self.connection.waiting_bytes.store(0, Ordering::Relaxed);
        self.arrived.try_iter()
    }

    /// When anything came last, or was left in the socket because of the budget, monotonic ns; 0 before the first.
    pub fn received_at_ns(&self) -> u64 {
        self.connection.received_at_ns.load(Ordering::Relaxed)
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        let _is_closed = shutdown(&self.connection.socket, Shutdown::Both);
        // Who pauses because much waits goes on, and hears that it is over.
        self.connection.waiting_bytes.store(0, Ordering::Relaxed);
    }
}

impl RpcConnection {
    fn new(socket: OwnedFd, budget: &Arc<ReadBudget>) -> Self {
        Self { socket, budget: Arc::clone(budget), received_at_ns: AtomicU64::new(0), waiting_bytes: AtomicU64::new(0) }
    }

    /// Hands over one message after the other, until the conversation is over.
    fn listen(&self, give: &Sender<Result<RpcMessage, Over>>) -> Result<Infallible, Over> {
        let mut incoming = BufReader::with_capacity(PIECE, Incoming { connection: self, paid_ns: 0 });
        loop {
            let mut text = incoming.by_ref().take(MOST_BYTES);
            let value = Value::deserialize(&mut Deserializer::from_reader(&mut text));
            let value = value.map_err(|error| over(&error, text.limit() == 0))?;
            if value["method"] == "echo" {
                self.answer(&value)?;
            } else if value.is_object() {
                let message = RpcMessage { at_ns: self.received_at_ns.load(Ordering::Relaxed), value };
                self.waiting_bytes.fetch_add(MESSAGE_BYTES + MOST_BYTES - text.limit(), Ordering::Relaxed);
                give.send(Ok(message)).map_err(|_| Over::Closed)?;
            } else {
                let why = if value.is_array() { "it does not send objects" } else { "it does not send JSON" };
                return Err(Over::Wrong(why.to_owned()));
            }
        }
    }

    /// Repeats what was asked.
    fn answer(&self, question: &Value) -> Result<(), Over> {
        let answer = json!({"id": question["id"], "result": question["params"], "error": null}).to_string();
        if answer.len() > LONGEST_ECHO {
            return Err(Over::Wrong(format!("it asks for an echo of more than {} KiB", LONGEST_ECHO >> 10)));
        }
        self.send(answer.as_bytes()).map_err(|error| match error {
            Errno::AGAIN => Over::Wrong("it asks and does not read the answers".to_owned()),
            _ => Over::Closed,
        })
    }

    /// What the other end does not take now is an error: its socket holds many questions and answers.
    fn send(&self, mut text: &[u8]) -> Result<(), Errno> {
        while !text.is_empty() {
            text = &text[send(&self.socket, text, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?..];
        }
        Ok(())
    }
}

/// The bytes that come, as fast as the budget allows and as what came is taken.
struct Incoming<'a> {
    connection: &'a RpcConnection,
    /// CPU time of this thread that was spent of the budget, ns.
    paid_ns: u64,
}

impl Read for Incoming<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let RpcConnection { socket, budget, received_at_ns, waiting_bytes } = self.connection;
        loop {
            let is_full = waiting_bytes.load(Ordering::Relaxed) > MOST_BYTES;
            let pause_ns = if is_full { LONGEST_PAUSE_NS } else { budget.debt_ns(now_ns()).min(LONGEST_PAUSE_NS) };
            if pause_ns == 0 {
                break;
            }
            sleep(Duration::from_nanos(pause_ns));
            // Nor is the other end silent while nobody listens.
            received_at_ns.store(now_ns(), Ordering::Relaxed);
        }
        let (received, _) = recv(socket, &mut *into, RecvFlags::empty())?;
        let (now_ns, cpu_ns) = (now_ns(), clock_ns(ClockId::ThreadCPUTime));
        received_at_ns.store(now_ns, Ordering::Relaxed);
        budget.spend(now_ns, received, cpu_ns - std::mem::replace(&mut self.paid_ns, cpu_ns));
        Ok(received)
    }
}

/// Why nothing more is understood.
fn over(error: &serde_json::Error, is_too_long: bool) -> Over {
    Over::Wrong(match error.classify() {
        _ if is_too_long => format!("it sends a message of more than {} MiB", MOST_BYTES >> 20),
        Category::Io | Category::Eof => return Over::Closed,
        _ if error.to_string().starts_with("recursion") => format!("it nests more than {DEEPEST} deep"),
        _ => "it does not send JSON".to_owned(),
    })
}
