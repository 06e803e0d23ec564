//! The connections of the watched processes: which TCP sockets they hold that are established or about to be (`/proc/PID/fd` joined with
//! `sock_diag`), in whatever network namespace, and how far each has come, pulse by pulse; and their UDP sockets, tick by
//! tick. It computes no rate, and does not see what another user's process holds without the right to.

pub(super) mod diag;
mod netns;
mod peers;
mod process_sockets;
pub(super) mod socket_process;
mod space;

use super::netlink::socket::KernelSocket;
use super::{Roots, SourceError, now_ns, proc_file, way_out};
use diag::SocketInfo;
use peers::Peers;
use process_sockets::SocketHolder;
use rustix::io::Errno;
use rustix::thread::{CapabilitySet, capabilities};
use space::NamespaceFlows;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::mem::{Discriminant, MaybeUninit};
use std::path::PathBuf;
use vnettop_sample::{FlowPath, FlowSample, Problem, ProblemSource, Proto, ProtocolCounters, ThreadSample};

/// Connections that are followed at most: 128 streams with both ends here, and their controls.
const MOST_FLOWS: usize = 320;
/// Longest round through the namespaces, ns. A longer one, in which something else had the core, is made again: an end that was read
/// long before the other end looks like one that has ended.
const ROUND_NS: u64 = 10_000_000;
/// Most rounds at once.
const MOST_ROUNDS: usize = 3;
/// Entries of about 300 descriptors a call.
const ENTRIES: usize = 8 * 1024;

/// Follows the connections of the watched processes.
#[derive(Debug, Default)]
pub struct FlowReader {
    proc: PathBuf,
    own_netns: Option<u64>,
    /// By process; `None` when its descriptors may not be seen.
    holders: BTreeMap<u32, Option<SocketHolder>>,
    /// By namespace; `None` when it cannot be entered.
    spaces: BTreeMap<u64, Option<NamespaceFlows<KernelSocket>>>,
    peers: Peers,
    entries: Vec<MaybeUninit<u8>>,
    unseen: Unseen,
}

/// What cannot be seen, told once of each kind of blindness.
#[derive(Debug, Default)]
struct Unseen {
    kinds: Vec<Discriminant<Blind>>,
    problems: Vec<Problem>,
}

/// Why connections stay unseen.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Blind {
    Descriptors(u32),
    Namespace(u32, String, &'static str),
    Sockets(String),
    Datagrams(String),
    TooMany,
    TooFewFiles,
}

impl FlowReader {
    /// Nothing is opened before a watched process holds a socket.
    #[must_use]
    pub fn new(roots: &Roots) -> Self {
        Self { proc: roots.proc.clone(), own_netns: netns::own(), peers: Peers::new(&roots.proc), ..Self::default() }
    }

    /// There are connections, so pulses between ticks have something to read.
    #[must_use]
    pub fn has_flows(&self) -> bool {
        self.spaces.values().flatten().any(|space| space.len() > 0)
    }

    /// What cannot be seen and why; empty is the normal case.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.unseen.problems
    }

    /// Reads how far every known connection has come.
    pub fn pulse(&mut self) {
        for _ in 0..MOST_ROUNDS {
            let begun_ns = now_ns();
            for space in self.spaces.values_mut().flatten().filter(|space| space.len() > 0) {
                space.pulse();
            }
            if now_ns().saturating_sub(begun_ns) < ROUND_NS {
                break;
            }
        }
    }

    /// Closes what is open in namespaces that no watched process is in any more: where a reading is left out.
    pub fn leave(&mut self) {
        if self.spaces.is_empty() {
            return;
        }
        let known = self.holders.iter().filter_map(|(&pid, holder)| Some((pid, holder.as_ref()?.netns)));
        let living = known.filter(|&(pid, netns)| netns::of(&self.proc, pid) == Ok(netns));
        let lived_in: BTreeSet<u64> = living.map(|(_, netns)| netns).collect();
        self.spaces.retain(|netns, _| lived_in.contains(netns));
    }

    /// Closes everything; what there is by then is found by the next [`FlowReader::read`].
    pub fn forget(&mut self) {
        self.holders.clear();
        self.spaces.clear();
    }

    /// One tick: finds the connections of these threads' processes, and hands over every pulse since the tick before,
    /// sorted by key.
    pub fn read(&mut self, threads: &[ThreadSample]) -> Vec<FlowSample> {
        if threads.is_empty() && self.holders.is_empty() {
            return Vec::new();
        }
        let now_ns = now_ns();
        self.meet(threads, now_ns);
        self.enter();
        self.find(now_ns);
        self.pulse();
        for space in self.spaces.values_mut().flatten() {
            space.read_udp();
        }
        let mut flows = Vec::new();
        let holders = &mut self.holders;
        for space in self.spaces.values_mut().flatten() {
            space.take(&mut flows, |pid, lives| {
                let Some(holder) = holders.get_mut(&pid).and_then(Option::as_mut) else { return true };
                if !lives {
                    holder.lost_one();
                }
                !lives
            });
        }
        flows.sort_unstable_by_key(FlowSample::key);
        // An open socket keeps a namespace alive after its last process.
        self.spaces.retain(|&netns, _| holders.values().flatten().any(|holder| holder.netns == netns));
        flows
    }

    /// Notes the other UDP sockets of each namespace with followed ones: when a socket cannot be asked what it has moved, the
    /// namespace's counters stand for it, and these count the others too.
    pub fn count_others(&mut self, protocols: &mut [ProtocolCounters], now_ns: u64) {
        for one in protocols {
            let space = self.spaces.get_mut(&one.netns).and_then(Option::as_mut);
            one.other_udp = space.and_then(|space| space.other_udp(now_ns));
        }
    }

    /// The processes of this machine at the other ends of the connections that were read last; they are to be watched with
    /// those that have these. `paths` are the ways that are known of them.
    pub fn other_ends(&mut self, flows: &[FlowSample], paths: &[FlowPath], now_ns: u64) -> BTreeSet<u32> {
        self.peers.look(flows, paths, now_ns)
    }

    /// Keeps one holder for each process of the threads, with an up-to-date list of its sockets.
    fn meet(&mut self, threads: &[ThreadSample], now_ns: u64) {
        let is_watched = |pid: u32| threads.binary_search_by_key(&pid, |thread| thread.id.pid).is_ok();
        self.holders.retain(|&pid, _| is_watched(pid));
        if self.entries.is_empty() {
            self.entries.resize(ENTRIES, MaybeUninit::uninit());
        }
        for threads in threads.chunk_by(|one, next| one.id.pid == next.id.pid) {
            let pid = threads[0].id.pid;
            let ran_ns = threads.iter().map(|thread| thread.cpu_ns).fold(0, u64::wrapping_add);
            let holder = match self.holders.remove(&pid) {
                Some(known) => known,
                None => match SocketHolder::open(&self.proc, pid, now_ns) {
                    Err(Errno::ACCESS | Errno::PERM) => {
                        self.unseen.report(&Blind::Descriptors(pid));
                        None
                    }
                    Ok(holder) if !holder.leaves_room() => {
                        self.unseen.report(&Blind::TooFewFiles);
                        continue;
                    }
                    // It is gone, or there is no descriptor left for us: the next tick tries again.
                    Err(_) => continue,
                    opened => opened.ok(),
                },
            };
            let look = |mut holder: SocketHolder| {
                holder.look(&self.proc, (pid, ran_ns), now_ns, &mut self.entries).ok().map(|()| holder)
            };
            match holder.map(look) {
                None => drop(self.holders.insert(pid, None)),
                Some(Some(holder)) => drop(self.holders.insert(pid, Some(holder))),
                // Another process has the number by now, or none.
                Some(None) => {}
            }
        }
    }

    /// Opens the namespaces of the holders.
    fn enter(&mut self) {
        for (&pid, holder) in &self.holders {
            let Some(holder) = holder else { continue };
            let netns = holder.netns;
            if self.spaces.contains_key(&netns) {
                continue;
            }
            if !holder.leaves_room() {
                self.unseen.report(&Blind::TooFewFiles);
                continue;
            }
            let is_own = self.own_netns == Some(netns);
            let opened = if is_own { netns::open_here() } else { netns::open_inside(&self.proc, pid) };
            let space = opened.map_err(|error| self.unseen.report(&blind(is_own, pid, &error))).ok();
            self.spaces.insert(netns, space.map(|netlink| NamespaceFlows::new(netns, netlink)));
        }
    }

    /// Follows the sockets of the holders that have become connections, and their UDP sockets.
    fn find(&mut self, now_ns: u64) {
        let mut followed: usize = self.spaces.values().flatten().map(NamespaceFlows::followed).sum();
        for (&netns, space) in &mut self.spaces {
            let Some(space) = space else { continue };
            let mut here: Vec<(u32, &mut SocketHolder)> = self
                .holders
                .iter_mut()
                .filter_map(|(&pid, holder)| Some((pid, holder.as_mut()?)))
                .filter(|(_, holder)| holder.netns == netns)
                .collect();
            for proto in [Proto::Tcp, Proto::Udp] {
                // What is no connection of TCP may be a socket of UDP; where nothing is left, none is asked for.
                let is_settled = here.iter().all(|(_, holder)| holder.unsettled(now_ns).next().is_none());
                if is_settled && !(proto == Proto::Tcp && space.may_have_more(now_ns)) {
                    break;
                }
                let mut found = Vec::new();
                let listed = space.list(proto, |reported| {
                    found.extend(claim(&mut here, proto, reported).map(|pid| (pid, *reported)));
                });
                found.retain(|(_, reported)| !space.follows(proto, reported));
                if let Err(error) = listed {
                    self.unseen.report(&match proto {
                        Proto::Tcp => Blind::Sockets(error.to_string()),
                        Proto::Udp => Blind::Datagrams(error.to_string()),
                    });
                }
                followed += found.len();
                if followed > MOST_FLOWS {
                    self.unseen.report(&Blind::TooMany);
                    found.truncate(MOST_FLOWS.saturating_sub(followed - found.len()));
                }
                for (pid, reported) in &found {
                    space.follow(proto, *pid, reported);
                }
            }
        }
    }
}

impl Unseen {
    fn report(&mut self, blind: &Blind) {
        let kind = std::mem::discriminant(blind);
        if !self.kinds.contains(&kind) {
            self.kinds.push(kind);
            self.problems.push(blind.problem());
        }
    }
}

/// The process that holds this socket and from now on follows it.
fn claim(here: &mut [(u32, &mut SocketHolder)], proto: Proto, reported: &SocketInfo) -> Option<u32> {
    let is_flow = proto == Proto::Udp || reported.is_established() || reported.is_connecting();
    here.iter_mut().find_map(|(pid, holder)| (is_flow && holder.follow(reported.inode)).then_some(*pid))
}

fn blind(is_own: bool, pid: u32, error: &io::Error) -> Blind {
    if is_own {
        let error =
            SourceError::Netlink { operation: "open a socket of sock_diag", error: io::Error::from(error.kind()) };
        return Blind::Sockets(error.to_string());
    }
    Blind::Namespace(pid, error.to_string(), way_out(error, "run vnettop in that namespace or as root"))
}

/// Why root may not list the files of a process: of another user's it takes both.
fn lacked_by_root() -> String {
    let held = capabilities(None).map_or(CapabilitySet::empty(), |own| own.effective);
    let reads = CapabilitySet::DAC_READ_SEARCH | CapabilitySet::DAC_OVERRIDE;
    let needed = [("CAP_SYS_PTRACE", CapabilitySet::SYS_PTRACE), ("CAP_DAC_READ_SEARCH", reads)];
    let lacking: Vec<&str> = needed.into_iter().filter(|(_, of)| !held.intersects(*of)).map(|(name, _)| name).collect();
    if lacking.is_empty() {
        return "vnettop is root, but a security profile (AppArmor, SELinux) denies it".to_owned();
    }
    format!("vnettop is root but lacks {}", lacking.join(" and "))
}

impl Blind {
    fn problem(&self) -> Problem {
        let text = match self {
            Self::Descriptors(pid) => {
                let why = if rustix::process::geteuid().is_root() {
                    lacked_by_root()
                } else {
                    "another user's process: run vnettop as that user or as root".to_owned()
                };
                format!("sockets of process {pid} cannot be read, so the busiest link's rate is used; {why}")
            }
            Self::Namespace(pid, error, mends) => format!(
                "cannot enter the network namespace of process {pid} ({error}); using the busiest link's rate; {mends}"
            ),
            Self::Sockets(error) => format!(
                "connections cannot be read ({error}), so the busiest link's rate is used; run modprobe tcp_diag, or boot a kernel with CONFIG_INET_TCP_DIAG"
            ),
            Self::Datagrams(error) => format!(
                "cannot read the queues and drops of UDP sockets ({error}); run modprobe udp_diag, or boot a kernel \
                 with CONFIG_INET_UDP_DIAG"
            ),
            Self::TooMany => format!(
                "the watched processes hold more than {MOST_FLOWS} sockets; only that many are followed; watch \
                 fewer processes"
            ),
            Self::TooFewFiles => format!(
                "connections of some watched processes are not followed: limit of {} open files; raise it (ulimit -n)",
                proc_file::descriptor_limit()
            ),
        };
        Problem { source: ProblemSource::Flows, text }
    }
}

/// What a fuzzer gives every parser here.
#[cfg(fuzzing)]
pub(crate) fn fuzz(message: &crate::netlink::message::Message<'_>) {
    if let Some(socket) = diag::parse(message) {
        let _ = (socket.id.local(), socket.id.remote(), socket.id.cookie(), socket.lives());
    }
}

#[cfg(test)]
mod tests;
