//! A kernel to play with: sockets that answer what a test put down for them, and messages to put down.

use super::super::LinkReader;
use super::super::claimed_speed::EthtoolSpeed;
use super::super::facts::MessageNamespace;
use crate::netlink::client::NetlinkClient;
use crate::netlink::message::Request;
use crate::netlink::socket::Transport;
use crate::{SourceError, now_ns};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::rc::Rc;

pub const FAMILY: u16 = 21;
pub const GETLINK: u16 = 18;
pub const GETSTATS: u16 = 94;
const NEWLINK: u16 = 16;
const DELLINK: u16 = 17;

/// One socket's far end.
#[derive(Debug, Clone, Default)]
pub struct Line(Rc<RefCell<Ends>>);

#[derive(Debug, Default)]
struct Ends {
    /// What to answer to a request of that type, request by request; `NLMSG_DONE` when nothing is left.
    answers: BTreeMap<u16, VecDeque<Vec<Vec<u8>>>>,
    queue: VecDeque<Result<Vec<u8>, i32>>,
    asked: Vec<u16>,
    /// When each datagram was filled: the first in the send, each other in the receive before.
    filled_at: Vec<u64>,
}

impl Line {
    /// Puts down the datagrams of one answer.
    pub fn answer(&self, kind: u16, datagrams: &[Vec<u8>]) {
        self.0.borrow_mut().answers.entry(kind).or_default().push_back(datagrams.to_vec());
    }

    /// Puts a datagram, or an errno, in the queue.
    pub fn push(&self, datagram: Result<Vec<u8>, i32>) {
        self.0.borrow_mut().queue.push_back(datagram);
    }

    /// The types of the requests since the last call.
    pub fn asked(&self) -> Vec<u16> {
        std::mem::take(&mut self.0.borrow_mut().asked)
    }

    pub fn filled_at(&self) -> Vec<u64> {
        self.0.borrow().filled_at.clone()
    }
}

impl Transport for Line {
    fn send(&self, request: &[u8]) -> io::Result<()> {
        let mut ends = self.0.borrow_mut();
        let kind = u16::from_ne_bytes([request[4], request[5]]);
        ends.asked.push(kind);
        let answer = if ends.queue.is_empty() {
            ends.answers.get_mut(&kind).and_then(VecDeque::pop_front)
        } else {
            // As the kernel does while a dump on the same socket is not heard out.
            Some(vec![error(libc::EBUSY)])
        };
        for mut datagram in answer.unwrap_or_else(|| vec![done(0)]) {
            number(&mut datagram, &request[8..12]);
            ends.queue.push_back(Ok(datagram));
        }
        ends.filled_at = vec![now_ns()];
        Ok(())
    }

    fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut ends = self.0.borrow_mut();
        let datagram = ends.queue.pop_front().unwrap_or(Err(libc::EAGAIN)).map_err(io::Error::from_raw_os_error)?;
        let length = datagram.len().min(buffer.len());
        buffer[..length].copy_from_slice(&datagram[..length]);
        ends.filled_at.push(now_ns());
        Ok(datagram.len())
    }
}

/// Gives every message the sequence number of its request, unless a test gave it one.
fn number(datagram: &mut [u8], sequence: &[u8]) {
    let mut rest = datagram;
    while rest.len() >= 16 {
        let length = u32::from_ne_bytes([rest[0], rest[1], rest[2], rest[3]]) as usize;
        if rest[8..12] == [0; 4] {
            rest[8..12].copy_from_slice(sequence);
        }
        let here = std::mem::take(&mut rest);
        rest = here.get_mut(length.next_multiple_of(4).max(16)..).unwrap_or_default();
    }
}

/// The three sockets of a reader.
#[derive(Debug, Default)]
pub struct TestKernel {
    pub dumps: Line,
    pub news: Line,
    pub ethtool: Line,
    pub monitor: Line,
}

impl TestKernel {
    /// A kernel with these links.
    pub fn with(links: &[Vec<u8>]) -> Self {
        let kernel = Self::default();
        kernel.dumps.answer(GETLINK, &[links.concat(), done(0)]);
        kernel
    }

    pub fn open(&self) -> Result<LinkReader<Line>, SourceError> {
        let claims = EthtoolSpeed::new(NetlinkClient::new(self.ethtool.clone()), self.monitor.clone(), FAMILY);
        let dumps = NetlinkClient::new(self.dumps.clone());
        LinkReader::over(dumps, self.news.clone(), Ok(claims), MessageNamespace::default(), 0)
    }
}

pub fn message(kind: u16, fixed: &[u8], attributes: &[(u16, &[u8])]) -> Vec<u8> {
    let whole =
        attributes.iter().fold(Request::new(kind, 0, fixed), |request, (kind, value)| request.with(*kind, value));
    let mut whole = whole;
    whole.numbered(0).to_vec()
}

/// This message with more header flags.
pub fn flagged(mut message: Vec<u8>, flags: u16) -> Vec<u8> {
    let flags = u16::from_ne_bytes([message[6], message[7]]) | flags;
    message[6..8].copy_from_slice(&flags.to_ne_bytes());
    message
}

pub fn done(errno: i32) -> Vec<u8> {
    message(3, &(-errno).to_ne_bytes(), &[])
}

pub fn error(errno: i32) -> Vec<u8> {
    message(2, &[(-errno).to_ne_bytes(), [0; 4], [0; 4], [0; 4], [0; 4]].concat(), &[])
}

/// `struct ifinfomsg`.
pub fn ifinfo(family: u8, layer: u16, ifindex: u32, flags: u32) -> Vec<u8> {
    let layer = layer.to_ne_bytes();
    [&[family, 0, layer[0], layer[1]], ifindex.to_ne_bytes().as_slice(), &flags.to_ne_bytes(), &[0; 4]].concat()
}

/// An Ethernet link that is up.
pub fn link(ifindex: u32, name: &str, more: &[(u16, &[u8])]) -> Vec<u8> {
    let name = [name.as_bytes(), b"\0"].concat();
    let own: [(u16, &[u8]); 1] = [(libc::IFLA_IFNAME, &name)];
    message(NEWLINK, &ifinfo(0, 1, ifindex, 1), &[&own, more].concat())
}

pub fn gone(ifindex: u32) -> Vec<u8> {
    message(DELLINK, &ifinfo(0, 1, ifindex, 0), &[])
}

/// A counter row that received that many bytes.
pub fn row(ifindex: u32, rx_bytes: u64) -> Vec<u8> {
    let mut stats = [0; 200];
    stats[16..24].copy_from_slice(&rx_bytes.to_ne_bytes());
    let fixed = [[0; 4], ifindex.to_ne_bytes(), 1_u32.to_ne_bytes()].concat();
    message(92, &fixed, &[(1, &stats)])
}

/// What ethtool's family says of a link: 4 is a reply, 5 a notification.
pub fn linkmodes(command: u8, ifindex: u32, mbps: u32) -> Vec<u8> {
    let header = [8_u16.to_ne_bytes(), 1_u16.to_ne_bytes()].concat();
    let header = [header, ifindex.to_ne_bytes().to_vec()].concat();
    message(FAMILY, &[command, 1, 0, 0], &[(1 | 0x8000, &header), (5, &mbps.to_ne_bytes())])
}
