//! Who is at the other end of the watched processes' connections on this machine, whatever it is called: which namespace has a
//! socket with the same addresses turned round (`sock_diag`), and which process holds that (`holders`). Each connection is
//! looked for a few times, and all of it takes a small part of the time. A program that calls on, as one that copies does, is
//! left alone: whoever it calls is the other end.

use super::diag::{self, SocketId, SocketInfo};
use super::netns;
use super::socket_process::{self, FoundSocket, Search, SocketInode};
use crate::netlink::client::NetlinkClient;
use crate::netlink::message::Request;
use crate::now_ns;
use std::collections::{BTreeMap, BTreeSet};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use vnettop_sample::{FlowPath, FlowSample, Proto, SocketKey};

/// Most searches for the other end of a connection. An end that waits in its listener's queue is looked for until it is accepted.
const TRIES: u8 = 3;
const AGAIN_NS: u64 = 500_000_000;
/// Connections whose other ends are looked for at once, and namespaces that are asked in one tick.
const MOST_TOGETHER: usize = 32;
const MOST_SPACES: usize = 48;
/// Pause after a search, as a multiple of the time that it took.
const MOST_OF_TIME: u64 = 100;
/// How long a found process is kept after the end of its connection, ns: what arrived last is read there.
const KEPT_NS: u64 = 2_000_000_000;
/// Found processes at most, and sockets that one of them may have: a process with more serves others too.
const MOST_PEERS: usize = 32;
const MOST_SOCKETS: usize = 128;

/// The processes at the other ends of the followed connections.
#[derive(Debug, Default)]
pub(super) struct Peers {
    proc: PathBuf,
    /// Every connection of TCP.
    known: BTreeMap<SocketKey, KnownPeer>,
    search: Option<PeerSearch>,
    /// When the next search may begin.
    due_ns: u64,
    entries: Vec<MaybeUninit<u8>>,
}

#[derive(Debug, Clone, Copy)]
struct KnownPeer {
    tries: u8,
    due_ns: u64,
    seen_ns: u64,
    /// The process at the other end; `None` until it is found.
    pid: Option<u32>,
}

/// The own end of a connection, and the other one.
type SocketPair = (SocketAddr, SocketAddr);

/// A connection, and where its other end is.
#[derive(Debug)]
struct PeerQuestion {
    key: SocketKey,
    local: SocketAddr,
    remote: SocketAddr,
    /// The socket at the other end; `None` until it is found. Its inode is 0 while it waits to be accepted.
    socket: Option<SocketInode>,
}

/// One look for the other ends of some connections.
#[derive(Debug)]
struct PeerSearch {
    questions: Vec<PeerQuestion>,
    residents: BTreeMap<u64, Vec<u32>>,
    /// Namespaces still to be asked, the next one last.
    spaces: Vec<u64>,
    search: Option<Search>,
    spent_ns: u64,
}

impl Peers {
    pub fn new(proc: &Path) -> Self {
        Self { proc: proc.to_owned(), ..Self::default() }
    }

    /// The processes at the other ends, as of now. `flows` are the sockets of the newest sample, sorted by key; the known paths
    /// say where to look first.
    pub fn look(&mut self, flows: &[FlowSample], paths: &[FlowPath], now_ns: u64) -> BTreeSet<u32> {
        self.meet(flows, now_ns);
        self.leave_relays(flows);
        if self.search.is_none() && now_ns >= self.due_ns {
            self.begin(flows, paths, now_ns);
        }
        self.go_on(flows, now_ns);
        let peers = self.known.values().filter_map(|known| known.pid);
        peers.collect::<BTreeSet<u32>>().into_iter().take(MOST_PEERS).collect()
    }

    /// Takes note of new connections, and forgets those that have ended.
    fn meet(&mut self, flows: &[FlowSample], now_ns: u64) {
        // While a connection is being set up there is no socket at its other end.
        for flow in flows.iter().filter(|flow| flow.proto == Proto::Tcp && !flow.connecting) {
            let new = KnownPeer { tries: TRIES, due_ns: now_ns, seen_ns: now_ns, pid: None };
            self.known.entry(flow.key()).or_insert(new).seen_ns = now_ns;
        }
        let kept_ns = |known: &KnownPeer| if known.pid.is_some() { KEPT_NS } else { 0 };
        self.known.retain(|_, known| now_ns.saturating_sub(known.seen_ns) <= kept_ns(known));
    }

    /// Begins with the connections whose other end is not among the sockets seen. Other connections of a found process are not
    /// looked for.
    fn begin(&mut self, flows: &[FlowSample], paths: &[FlowPath], now_ns: u64) {
        let is_due = |known: &KnownPeer| known.tries > 0 && known.due_ns <= now_ns && known.pid.is_none();
        if !self.known.values().any(is_due) {
            return;
        }
        let peers: BTreeSet<u32> = self.known.values().filter_map(|known| known.pid).collect();
        let ends: BTreeSet<(SocketAddr, SocketAddr)> = flows.iter().map(|flow| (flow.local, flow.remote)).collect();
        let mut questions = Vec::new();
        for flow in flows {
            let Some(known) = self.known.get_mut(&flow.key()).filter(|known| is_due(known)) else { continue };
            if peers.contains(&flow.pid) || ends.contains(&(flow.remote, flow.local)) {
                known.tries = 0;
            } else if questions.len() < MOST_TOGETHER {
                known.tries -= 1;
                known.due_ns = now_ns.saturating_add(AGAIN_NS * u64::from(TRIES - known.tries));
                let (key, local, remote) = (flow.key(), flow.local, flow.remote);
                questions.push(PeerQuestion { key, local, remote, socket: None });
            }
        }
        if questions.is_empty() {
            return;
        }
        let began_ns = crate::now_ns();
        let residents = socket_process::residents(&self.proc);
        let hint = |question: &PeerQuestion| {
            let leads = |path: &&FlowPath| path.from == question.local && path.to == question.remote;
            let comes = |path: &&FlowPath| path.from == question.remote && path.to == question.local;
            let to = paths.iter().find(leads).and_then(|path| path.hops.last());
            let to = to.or_else(|| paths.iter().find(comes).and_then(|path| path.hops.first()));
            [to.map(|hop| hop.link.netns), Some(question.key.netns)]
        };
        let near: BTreeSet<u64> = questions.iter().flat_map(hint).flatten().collect();
        let far = residents.keys().copied().filter(|netns| !near.contains(netns));
        let spaces = far.chain(near.iter().copied()).collect();
        let spent_ns = crate::now_ns().saturating_sub(began_ns);
        self.search = Some(PeerSearch { questions, residents, spaces, search: None, spent_ns });
    }

    /// Lets go of found processes that have become relays: they connect to others by now.
    fn leave_relays(&mut self, flows: &[FlowSample]) {
        let peers: BTreeSet<u32> = self.known.values().filter_map(|known| known.pid).collect();
        for pid in peers {
            let ends = flows.iter().filter(|flow| flow.pid == pid && flow.proto == Proto::Tcp);
            let ends: Vec<SocketPair> = ends.map(|flow| (flow.local, flow.remote)).collect();
            let asked = |known: &KnownPeer| known.pid == Some(pid);
            let own: BTreeSet<SocketKey> =
                self.known.iter().filter(|(_, known)| asked(known)).map(|(&key, _)| key).collect();
            if calls_on(&ends, &own, flows) {
                self.known
                    .values_mut()
                    .filter(|known| asked(known))
                    .for_each(|known| (known.pid, known.tries) = (None, 0));
            }
        }
    }

    fn go_on(&mut self, flows: &[FlowSample], tick_ns: u64) {
        let Some(search) = &mut self.search else { return };
        let began_ns = now_ns();
        self.entries.resize(8 * 1024, MaybeUninit::uninit());
        search.ask(&self.proc);
        let found = search.search(&self.proc, &mut self.entries);
        for found in found.into_iter().filter(|found| found.sockets.len() <= MOST_SOCKETS) {
            let asked = search.questions.iter().filter(|question| question.socket == Some(found.socket));
            let asked: BTreeSet<SocketKey> = asked.map(|question| question.key).collect();
            let is_relay = calls_on(&search.ends_of(&found, &self.proc), &asked, flows);
            for key in &asked {
                if let Some(known) = self.known.get_mut(key) {
                    (known.pid, known.tries) = if is_relay { (None, 0) } else { (Some(found.pid), known.tries) };
                }
            }
        }
        search.spent_ns += now_ns().saturating_sub(began_ns);
        if search.is_over() {
            for waiting in
                search.questions.iter().filter(|question| question.socket.is_some_and(|socket| socket.1 == 0))
            {
                self.known.entry(waiting.key).and_modify(|known| known.tries = TRIES);
            }
            self.due_ns = tick_ns.saturating_add(search.spent_ns.saturating_mul(MOST_OF_TIME));
            (self.search, self.entries) = (None, Vec::new());
        }
    }
}

impl PeerSearch {
    /// Asks the next namespaces, until each question is answered.
    fn ask(&mut self, proc: &Path) {
        for _ in 0..MOST_SPACES {
            if self.questions.iter().all(|question| question.socket.is_some()) {
                self.spaces.clear();
            }
            let Some(netns) = self.spaces.pop() else { return };
            self.ask_in(netns, proc);
        }
    }

    fn ask_in(&mut self, netns: u64, proc: &Path) {
        // Connections over loopback or to the own address stay within one namespace.
        let is_near = |question: &PeerQuestion| {
            let (local, remote) = (question.local.ip(), question.remote.ip());
            question.key.netns == netns || !(remote.is_loopback() || remote == local)
        };
        let open = |question: &&PeerQuestion| question.socket.is_none() && is_near(question);
        let other_end = |question: &PeerQuestion| SocketId::between(question.remote, question.local);
        let asked = self.questions.iter().filter(open).map(|question| diag::one(Proto::Tcp, &other_end(question)));
        let mut asked: Vec<Request> = asked.collect();
        if asked.is_empty() {
            return;
        }
        let Some(mut netlink) = self.open(netns, proc) else { return };
        let questions = &mut self.questions;
        // Sockets without an answer are asked for again.
        let _ = netlink.get_each(&mut asked, |message, _| {
            let Some(info) = diag::parse(message).filter(SocketInfo::is_established) else { return };
            if let Some(question) = questions.iter_mut().find(|question| question.is_of(&info)) {
                question.socket = Some((netns, info.inode));
            }
        });
    }

    fn open(&self, netns: u64, proc: &Path) -> Option<NetlinkClient> {
        if netns::own() == Some(netns) {
            return netns::open_here().ok();
        }
        netns::open_inside(proc, *self.residents.get(&netns)?.last()?).ok()
    }

    /// The connections of a process in the namespace where it was found.
    fn ends_of(&self, found: &FoundSocket, proc: &Path) -> Vec<SocketPair> {
        let mut ends = Vec::new();
        let Some(mut netlink) = self.open(found.socket.0, proc) else { return ends };
        let each = |info: &SocketInfo| {
            if found.sockets.binary_search(&info.inode).is_ok() {
                ends.push((info.id.local(), info.id.remote()));
            }
        };
        // Connections missing here are seen once the process is watched.
        let _ = diag::list(&mut netlink, Proto::Tcp, each);
        ends
    }

    /// Looks for the holders of the sockets found, once every namespace has been asked.
    fn search(&mut self, proc: &Path, entries: &mut [MaybeUninit<u8>]) -> Vec<FoundSocket> {
        if !self.spaces.is_empty() {
            return Vec::new();
        }
        let (questions, residents) = (&self.questions, &self.residents);
        let search = self.search.get_or_insert_with(|| {
            let found = questions.iter().filter_map(|question| question.socket.filter(|socket| socket.1 != 0));
            Search::begin(proc, residents, found.collect())
        });
        search.go_on(entries)
    }

    fn is_over(&self) -> bool {
        self.search.as_ref().is_some_and(Search::is_over)
    }
}

/// Whether a process with the connections `ends` is a relay: one of them is neither with the process that has the connections
/// `asked`, nor on a port that this process is connected to.
fn calls_on(ends: &[SocketPair], asked: &BTreeSet<SocketKey>, flows: &[FlowSample]) -> bool {
    let askers = flows.iter().filter(|flow| asked.contains(&flow.key())).map(|flow| flow.pid);
    let askers: BTreeSet<u32> = askers.collect();
    let own: Vec<&FlowSample> = flows.iter().filter(|flow| askers.contains(&flow.pid)).collect();
    let calls = |&(local, remote): &SocketPair| {
        own.iter().all(|flow| flow.remote.port() != local.port() && (flow.local, flow.remote) != (remote, local))
    };
    !own.is_empty() && ends.iter().any(calls)
}

impl PeerQuestion {
    /// The socket is the other end.
    fn is_of(&self, info: &SocketInfo) -> bool {
        info.id.local() == self.remote && info.id.remote() == self.local
    }
}

#[cfg(test)]
mod tests;
