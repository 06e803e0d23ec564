//! Asking the kernel and hearing it out: one request, its datagrams, its end. Knows sequence numbers, errors,
//! truncation and interrupted dumps; knows no message's meaning.

use super::message::{Message, Request, i32_at, messages};
use super::socket::{KernelSocket, Transport};
use crate::{SourceError, now_ns};
use netlink_packet_core::NLM_F_DUMP_INTR;
use std::cell::Cell;
use std::io;

/// `NLMSG_ERROR`: the request failed (or, with errno 0, succeeded).
const ERROR: u16 = 2;
/// `NLMSG_DONE`: the end of a dump, with an errno.
const DONE: u16 = 3;
/// Types below this one are netlink's own.
const MIN_TYPE: u16 = 16;
/// The kernel caps a dump's datagram at 32 KiB, so this is never too small for one.
const BUFFER: usize = 64 * 1024;
/// A single message beyond the buffer makes it grow, up to here.
const LARGEST_BUFFER: usize = 4 * 1024 * 1024;

/// More datagrams than any unfinished dump has left (32 KiB each).
const MOST_LEFTOVERS: usize = 100_000;

/// Answers that took longer were held up, ns: the kernel gives 48 in a tenth of a millisecond.
const HELD_UP_NS: u64 = 5_000_000;
/// So often they are asked for.
const TRIES: u32 = 3;

thread_local! {
    /// What the last datagram was received into.
    static LAST: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Lends the thread's buffer for datagrams, which all of its sockets share.
pub fn with_buffer<T>(work: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    let mut buffer = LAST.take();
    buffer.resize(buffer.len().max(BUFFER), 0);
    let result = work(&mut buffer);
    LAST.set(buffer);
    result
}

/// How a dump ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DumpEnd {
    /// `CLOCK_MONOTONIC` at which the kernel had filled the first datagram, ns.
    pub at_ns: u64,
    /// Something changed meanwhile (`NLM_F_DUMP_INTR`) or a datagram was cut: an entry may be missing or come twice.
    pub interrupted: bool,
}

/// A socket that asks and is answered.
#[derive(Debug)]
pub struct NetlinkClient<W = KernelSocket> {
    wire: W,
    sequence: u32,
    /// An answer was not heard to its end; what is left of it must not be taken for the next one's.
    unfinished: bool,
}

impl NetlinkClient {
    /// Opens a socket of that netlink protocol in the calling thread's network namespace.
    ///
    /// # Errors
    /// The kernel has no such protocol, or no descriptor is left.
    pub fn open(protocol: isize) -> io::Result<Self> {
        KernelSocket::open(protocol).map(Self::new)
    }
}

impl<W: Transport> NetlinkClient<W> {
    /// A client over something that takes requests and gives answers.
    pub fn new(wire: W) -> Self {
        Self { wire, sequence: 0, unfinished: false }
    }

    /// Sends a dump request and hands over every message of the answer with the time at which the kernel wrote it.
    ///
    /// The kernel fills a dump's first datagram inside the send and each further one inside the receive of the one before
    /// (`netlink_dump_start` and `netlink_recvmsg` of `net/netlink/af_netlink.c`), so the clock is read right after those
    /// calls: a dump that waited 40 ms for RTNL halfway must not make its later rows look 40 ms older than they are.
    ///
    /// # Errors
    /// What the kernel answers with, or the socket's own failure.
    pub fn dump(
        &mut self,
        request: &mut Request,
        operation: &'static str,
        mut each: impl FnMut(&Message<'_>, u64),
    ) -> Result<DumpEnd, SourceError> {
        let mut interrupted = false;
        let received = with_buffer(|buffer| {
            self.ask(request, buffer)?;
            let at_ns = now_ns();
            let ((), cut) = self.hear(buffer, at_ns, |message, at_ns, reply| {
                interrupted |= message.flags & NLM_F_DUMP_INTR != 0;
                match reply {
                    Reply::Content => each(message, at_ns),
                    Reply::Skip => {}
                    Reply::End(end) => return Some(end),
                }
                None
            })?;
            Ok(DumpEnd { at_ns, interrupted: interrupted || cut })
        });
        received.map_err(|error| SourceError::Netlink { operation, error })
    }

    /// Sends a request that one message answers.
    ///
    /// # Errors
    /// What the kernel answers with, or the socket's own failure.
    pub fn get<T>(&mut self, request: &mut Request, mut answer: impl FnMut(&Message<'_>) -> T) -> io::Result<T> {
        with_buffer(|buffer| {
            self.ask(request, buffer)?;
            let received = self.hear(buffer, now_ns(), |message, _, reply| match reply {
                Reply::Content => Some(Ok(answer(message))),
                Reply::End(Err(error)) => Some(Err(error)),
                Reply::Skip | Reply::End(Ok(())) => None,
            });
            received.map(|(answer, _)| answer)
        })
    }

    /// Sends a request that is answered by its acknowledgement (`NLM_F_ACK`) alone.
    ///
    /// # Errors
    /// What the kernel answers with, or the socket's own failure.
    pub fn order(&mut self, request: &mut Request) -> io::Result<()> {
        with_buffer(|buffer| {
            self.ask(request, buffer)?;
            let received = self.hear(buffer, now_ns(), |_, _, reply| match reply {
                Reply::End(done) => Some(done),
                Reply::Content | Reply::Skip => None,
            });
            received.map(drop)
        })
    }

    /// Sends requests together that one message answers each; hands over the answers and leaves out what failed, which
    /// is a link that has gone. They must be few: all answers wait in the socket's buffer.
    ///
    /// Returns the time that sending and answering took, ns, which the kernel does in one call.
    ///
    /// # Errors
    /// What the kernel answers with, or the socket's own failure.
    pub fn get_each(&mut self, requests: &mut [Request], each: impl FnMut(&Message<'_>, u64)) -> io::Result<u64> {
        with_buffer(|buffer| {
            let (at_ns, took_ns) = self.ask_each(requests, buffer)?;
            self.hear_each(requests.len(), at_ns, buffer, each)?;
            Ok(took_ns)
        })
    }

    /// Like `get_each`, for answers whose instant matters: a round that was held up (a preempted virtual core) is asked for again,
    /// because the time of its figures is not known. Its requests wait for no lock.
    ///
    /// # Errors
    /// What the kernel answers with, or the socket's own failure.
    pub fn get_each_at_once(
        &mut self,
        requests: &mut [Request],
        each: impl FnMut(&Message<'_>, u64),
    ) -> io::Result<()> {
        with_buffer(|buffer| {
            let (mut at_ns, mut took_ns) = self.ask_each(requests, buffer)?;
            for _ in 1..TRIES {
                if took_ns > HELD_UP_NS {
                    (at_ns, took_ns) = self.ask_each(requests, buffer)?;
                }
            }
            self.hear_each(requests.len(), at_ns, buffer, each)
        })
    }

    /// Sends requests together; tells when they were answered, and how long that took, ns.
    fn ask_each(&mut self, requests: &mut [Request], buffer: &mut [u8]) -> io::Result<(u64, u64)> {
        self.hear_out(buffer);
        let together: Vec<u8> = requests.iter_mut().flat_map(|one| one.numbered(self.sequence)).copied().collect();
        let asked_at_ns = now_ns();
        self.wire.send(&together)?;
        self.unfinished = true;
        let at_ns = now_ns();
        Ok((at_ns, at_ns - asked_at_ns))
    }

    /// Hands over the answers to so many requests.
    fn hear_each(
        &mut self,
        mut missing: usize,
        at_ns: u64,
        buffer: &mut Vec<u8>,
        mut each: impl FnMut(&Message<'_>, u64),
    ) -> io::Result<()> {
        if missing == 0 {
            return Ok(());
        }
        let received = self.hear(buffer, at_ns, |message, _, reply| {
            match reply {
                Reply::Content => each(message, at_ns),
                Reply::End(_) => {}
                Reply::Skip => return None,
            }
            missing -= 1;
            (missing == 0).then_some(Ok(()))
        });
        received.map(drop)
    }

    /// Hands over the messages of the answer, each with the time at which the kernel wrote it, until one of them is the end; and
    /// whether a datagram was cut.
    fn hear<T>(
        &mut self,
        buffer: &mut Vec<u8>,
        mut at_ns: u64,
        mut each: impl FnMut(&Message<'_>, u64, Reply) -> Option<io::Result<T>>,
    ) -> io::Result<(T, bool)> {
        let mut cut = false;
        loop {
            let length = self.receive(buffer)?;
            let next_at_ns = now_ns();
            cut |= length > buffer.len();
            let datagram = &buffer[..length.min(buffer.len())];
            for message in messages(datagram).filter(|message| message.sequence == self.sequence) {
                if let Some(end) = each(&message, at_ns, verdict(&message)) {
                    self.unfinished = false;
                    return end.map(|end| (end, cut));
                }
            }
            let needed = length.next_power_of_two().min(LARGEST_BUFFER);
            buffer.resize(needed.max(buffer.len()), 0);
            at_ns = next_at_ns;
        }
    }

    fn ask(&mut self, request: &mut Request, buffer: &mut [u8]) -> io::Result<()> {
        self.hear_out(buffer);
        self.wire.send(request.numbered(self.sequence))?;
        self.unfinished = true;
        Ok(())
    }

    /// Leaves nothing of the last answer, and begins a new sequence number.
    fn hear_out(&mut self, buffer: &mut [u8]) {
        if self.unfinished {
            // Hearing a dump out is also what ends it: while it runs the kernel refuses the next with EBUSY.
            let silent =
                |received: io::Result<usize>| received.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
            let _heard_out = (0..MOST_LEFTOVERS).any(|_| silent(self.wire.receive(buffer)));
        }
        self.sequence = self.sequence.wrapping_add(1);
    }

    /// Receives the next datagram, and gives its true length. The kernel answers inside the calls that ask, so finding none
    /// means that it will not answer.
    fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.wire.receive(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => {
                io::Error::new(io::ErrorKind::UnexpectedEof, "the kernel's answer is incomplete")
            }
            _ => error,
        })
    }
}

enum Reply {
    Content,
    Skip,
    End(io::Result<()>),
}

fn verdict(message: &Message<'_>) -> Reply {
    match message.kind {
        DONE | ERROR => match i32_at(message.body, 0).unwrap_or(0) {
            0 => Reply::End(Ok(())),
            errno => Reply::End(Err(io::Error::from_raw_os_error(errno.saturating_neg()))),
        },
        kind if kind < MIN_TYPE => Reply::Skip,
        _ => Reply::Content,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::thread::sleep;
    use std::time::Duration;

    /// Counts up with each question; the first ones are held up after they were answered.
    #[derive(Debug)]
    struct Counter {
        held_up: u8,
        asked: RefCell<u8>,
        answers: RefCell<Vec<Vec<u8>>>,
    }

    impl Transport for Counter {
        fn send(&self, request: &[u8]) -> io::Result<()> {
            let mut asked = self.asked.borrow_mut();
            *asked += 1;
            let mut answer = Request::new(MIN_TYPE, 0, &[*asked; 4]);
            let sequence = u32::from_ne_bytes(request[8..12].try_into().expect("four bytes"));
            self.answers.borrow_mut().push(answer.numbered(sequence).to_vec());
            if *asked <= self.held_up {
                sleep(Duration::from_nanos(2 * HELD_UP_NS));
            }
            Ok(())
        }

        fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
            let answer = self.answers.borrow_mut().pop().ok_or(io::ErrorKind::WouldBlock)?;
            buffer[..answer.len()].copy_from_slice(&answer);
            Ok(answer.len())
        }
    }

    #[test]
    fn an_answer_that_was_held_up_after_it_was_read_is_asked_for_again() {
        for (held_up, expected) in [(1, 2), (2, 3), (9, 3)] {
            let mut netlink =
                NetlinkClient::new(Counter { held_up, asked: RefCell::new(0), answers: RefCell::new(Vec::new()) });
            let mut received = Vec::new();
            let mut requests = [Request::new(MIN_TYPE, 0, &[0; 4])];
            let answered = netlink.get_each_at_once(&mut requests, |message, _| {
                received.push(message.body[0]);
            });
            answered.expect("answered");
            assert_eq!(received, [expected], "of those that were held up none is taken, the last try but");
        }
    }
}
