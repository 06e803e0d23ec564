//! Who holds each tun, tap and macvtap: looks after the holders known, and through the descriptors of all processes. Whoever it
//! reads may make it wait, so it says at whom it is. When to look is decided elsewhere.

mod device;
mod fd_scan;
mod guest;

use super::Slow;
use crate::clock_ns;
use crate::{netns_of, untrusted_reader};
use fd_scan::FdScan;
use rustix::time::ClockId;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use vnettop_sample::{LinkKey, Owner, OwnerBy, OwnerKind};

/// A link that may have a holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Holdable {
    pub key: LinkKey,
    pub name: String,
    /// The link is opened as `/dev/tapN`, N being its index.
    pub by_index: bool,
    /// The link has no other owner.
    pub free: bool,
    /// The link has a carrier, so a process may hold it: a tap without a holder has none.
    pub likely: bool,
}

/// Who holds a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Held {
    pub seen: FdScan,
    /// Owner of the process.
    pub owner: Owner,
}

/// What is to be looked for.
#[derive(Debug)]
pub(crate) struct HolderSearch {
    pub proc: PathBuf,
    /// Every link that may have a holder, sorted.
    pub links: Vec<Holdable>,
    /// The namespaces whose links are seen, sorted.
    pub seen_in: Vec<u64>,
    /// The holders known.
    pub held: BTreeMap<LinkKey, Held>,
    /// All processes are looked through; else only when a known holder has let go.
    pub all: bool,
    /// Processes to avoid, because they made an earlier search wait.
    pub avoided: Vec<u32>,
}

/// What was found.
#[derive(Debug)]
pub(crate) struct HoldersFound {
    /// The links that were looked for.
    pub links: Vec<Holdable>,
    pub held: BTreeMap<LinkKey, Held>,
    /// A known holder has let go.
    pub lost: bool,
    /// Number of processes whose descriptors may not be listed; `None` if no process was looked through.
    pub refused: Option<usize>,
    /// CPU time of the search, ns.
    pub cost_ns: u64,
}

/// Begins to look.
pub(crate) fn search(search: HolderSearch) -> Option<Slow<HoldersFound>> {
    Slow::start("holders", move |at| search.run(at))
}

impl HolderSearch {
    fn run(mut self, at: &AtomicU32) -> HoldersFound {
        let mut held = std::mem::take(&mut self.held);
        let known = held.len();
        held.retain(|key, held| self.still_holds(*key, held, at));
        let lost = held.len() != known;
        let refused = (self.all || lost).then(|| {
            let look_at = |pid| {
                at.store(pid, Ordering::Relaxed);
                !self.avoided.contains(&pid)
            };
            fd_scan::through(&self.proc, look_at, |seen| self.add(seen, &mut held))
        });
        HoldersFound { links: self.links, held, lost, refused, cost_ns: clock_ns(ClockId::ThreadCPUTime) }
    }

    /// Whether the holder is the same; an avoided process counts as the holder that it was.
    fn still_holds(&self, key: LinkKey, held: &Held, at: &AtomicU32) -> bool {
        let Some(link) = self.links.iter().find(|link| link.key == key) else { return false };
        at.store(held.seen.pid, Ordering::Relaxed);
        self.avoided.contains(&held.seen.pid) || held.seen.still_holds(&self.proc, &link.name)
    }

    /// Notes which link a process was seen to hold.
    fn add(&self, seen: FdScan, held: &mut BTreeMap<LinkKey, Held>) {
        let matches = |link: &&Holdable| match (&seen.name, seen.ifindex) {
            (Some(name), _) => !link.by_index && link.name == *name,
            (None, index) => link.by_index && Some(link.key.ifindex.0) == index,
        };
        if !self.links.iter().any(|link| matches(&link)) {
            return;
        }
        // The namespace of the link as the kernel says it, or else, most likely, that of its holder.
        let process = self.proc.join(seen.pid.to_string());
        let reported = seen.name.as_ref().and_then(|_| device::netns(seen.pid, seen.fd));
        let Some(netns) = reported.or_else(|| netns_of(&process)) else { return };
        let here = self.links.iter().filter(matches).find(|link| link.key.netns == netns);
        // The link may have been moved to another namespace since; with two of its name elsewhere it is unknown which one is meant,
        // and so it is when a link may be unseen.
        let mut elsewhere = self.links.iter().filter(matches).filter(|_| self.seen_in.binary_search(&netns).is_ok());
        let only = elsewhere.next().filter(|_| reported.is_none() && elsewhere.next().is_none());
        let Some(key) = here.or(only).filter(|link| link.free).map(|link| link.key) else { return };
        let comm = std::fs::read(process.join("comm")).unwrap_or_default();
        let mut owner = guest::owner(&untrusted_reader::read_cmdline(&process), &comm, seen.pid);
        if seen.ifindex.is_some() && owner.kind == OwnerKind::Process {
            owner.by = OwnerBy::Macvtap;
        }
        // Of several holders the virtual machine counts: the program that started it holds the link too for a moment.
        if held.get(&key).is_none_or(|held| held.owner.kind != OwnerKind::Vm && owner.kind == OwnerKind::Vm) {
            held.insert(key, Held { seen, owner });
        }
    }
}
