//! Who holds each tun, tap and macvtap: looks after the holders known, and through the descriptors of all processes. Whoever it
//! reads may make it wait, so it says at whom it is. When to look is decided elsewhere.

mod device;
mod fd_scan;
mod guest;

use super::Slow;
use crate::clock_ns;
use crate::{netns_of, untrusted_reader};
use fd_scan::{FdScan, HeldLink};
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
    /// The link is opened as `/dev/tapN`, N being its index, or by another node of its device.
    pub by_index: bool,
    /// MAC address of a macvtap; an ipvtap has that of the link below it, as others may.
    pub mac: Option<String>,
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
            let is_wanted = |link: &Holdable| link.by_index && link.free && !held.contains_key(&link.key);
            let wants_nodes = self.links.iter().any(is_wanted);
            let majors = if wants_nodes { fd_scan::tap_majors(&self.proc) } else { Vec::new() };
            let look_at = |pid| {
                at.store(pid, Ordering::Relaxed);
                !self.avoided.contains(&pid)
            };
            fd_scan::through(&self.proc, &majors, look_at, |seen| self.add(seen, &mut held))
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
        let matches = |link: &&Holdable| match &seen.link {
            HeldLink::Tun(name) => !link.by_index && link.name == *name,
            HeldLink::Index(index) => link.by_index && link.key.ifindex.0 == *index,
            HeldLink::Node { name, mac } => {
                link.by_index && link.name == *name && link.mac.as_ref().is_none_or(|own| own == mac)
            }
        };
        if !self.links.iter().any(|link| matches(&link)) {
            return;
        }
        // The namespace of the link as the kernel says it, or else, most likely, that of its holder.
        let process = self.proc.join(seen.pid.to_string());
        let is_tun = matches!(seen.link, HeldLink::Tun(_));
        let reported = if is_tun { device::netns(seen.pid, seen.fd) } else { None };
        let Some(netns) = reported.or_else(|| netns_of(&process)) else { return };
        let here = self.links.iter().filter(matches).find(|link| link.key.netns == netns);
        // The link may have been moved to another namespace since; with two of its name elsewhere it is unknown which one is meant,
        // and so it is when a link may be unseen.
        let is_by_mac = |link: &Holdable| matches!(seen.link, HeldLink::Node { .. }) && link.mac.is_some();
        let is_seen = self.seen_in.binary_search(&netns).is_ok();
        let mut elsewhere = self.links.iter().filter(matches).filter(|link| is_seen || is_by_mac(link));
        let only = elsewhere.next().filter(|_| reported.is_none() && elsewhere.next().is_none());
        let Some(key) = here.or(only).filter(|link| link.free).map(|link| link.key) else { return };
        let comm = std::fs::read(process.join("comm")).unwrap_or_default();
        let mut owner = guest::owner(&untrusted_reader::read_cmdline(&process), &comm, seen.pid);
        if !is_tun && owner.kind == OwnerKind::Process {
            owner.by = OwnerBy::Macvtap;
        }
        // Of several holders the virtual machine counts: the program that started it holds the link too for a moment.
        if held.get(&key).is_none_or(|held| held.owner.kind != OwnerKind::Vm && owner.kind == OwnerKind::Vm) {
            held.insert(key, Held { seen, owner });
        }
    }
}

/// What a fuzzer gives every parser here.
#[cfg(fuzzing)]
pub(super) fn fuzz(bytes: &[u8]) {
    fd_scan::fuzz(bytes);
    let _ = guest::owner(bytes, b"qemu", 1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use vnettop_sample::Ifindex;

    const OWN: &str = "02:00:00:00:00:03";

    /// Two links `mt0` in the namespaces 20 and 30, and which of them is held by who has a node of a link of that name, lives in
    /// `home` and whose link has the second's MAC address.
    fn held(macs: [Option<&str>; 2], home: u64) -> Vec<u64> {
        let proc = tempfile::tempdir().expect("writable");
        fs::create_dir_all(proc.path().join("70/ns")).expect("writable");
        symlink(format!("net:[{home}]"), proc.path().join("70/ns/net")).expect("writable");
        let link = |netns, mac: Option<&str>| Holdable {
            key: LinkKey { netns, ifindex: Ifindex(4) },
            name: "mt0".to_owned(),
            by_index: true,
            mac: mac.map(str::to_owned),
            free: true,
            likely: true,
        };
        let links = vec![link(20, macs[0]), link(30, macs[1])];
        let (held, avoided) = (BTreeMap::new(), Vec::new());
        let search =
            HolderSearch { proc: proc.path().to_owned(), links, seen_in: vec![20, 30], held, all: true, avoided };
        let link = HeldLink::Node { name: "mt0".to_owned(), mac: OWN.to_owned() };
        let mut found = BTreeMap::new();
        search.add(FdScan { pid: 70, fd: 5, link }, &mut found);
        found.into_keys().map(|key| key.netns).collect()
    }

    #[test]
    fn of_two_macvtaps_of_one_name_the_node_s_own_address_decides() {
        let macs = [Some("02:00:00:00:00:02"), Some(OWN)];
        assert_eq!(held(macs, 10), [30], "held from a namespace that is not seen");
        assert_eq!(held(macs, 20), [30], "and from the other one's");
        assert!(held([Some(OWN), Some(OWN)], 10).is_empty(), "two of one address: nobody can tell");
    }

    #[test]
    fn of_two_ipvtaps_the_holder_s_own_namespace_decides() {
        assert_eq!(held([None, None], 20), [20], "ipvtaps share the address of the link below");
        assert!(held([None, None], 10).is_empty(), "from elsewhere nobody can tell");
    }
}
