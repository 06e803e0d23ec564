//! What the datapaths that the flows cross have counted: the kernel's over netlink in the namespace of their ovs-vswitchd,
//! which needs no answer of that; a userspace one by asking its ovs-vswitchd. Without flows through a switch nothing is
//! asked and nothing is kept open.

use super::control::Control;
use super::kernel::DatapathSocket;
use crate::netns::Spaces;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use vnettop_sample::{FlowPath, LinkKey, OvsDatapath, OvsDatapathKind, OvsSwitch, Problem};

/// What is looked at, and by whom.
#[derive(Clone, Copy)]
pub(super) struct Around<'a> {
    pub spaces: &'a Spaces,
    pub paths: &'a Arc<Vec<FlowPath>>,
    pub switches: &'a Arc<Vec<OvsSwitch>>,
    /// The control socket of the ovs-vswitchd that belongs to a database's socket, and its process.
    pub control: &'a dyn Fn(&str) -> Option<(PathBuf, u32)>,
    pub now_ns: u64,
}

/// Which switches the flows cross.
#[derive(Debug, Default, PartialEq)]
struct WantedDatapaths {
    /// The kernel's: the database's socket by namespace, whose bridges share one datapath.
    kernels: BTreeMap<u64, String>,
    /// Userspace ones: the namespace by the database's socket.
    controls: BTreeMap<String, u64>,
}

/// Reads the datapaths on the way.
#[derive(Debug, Default)]
pub(super) struct DatapathReader {
    wanted: WantedDatapaths,
    /// What it was found with.
    paths: Arc<Vec<FlowPath>>,
    switches: Arc<Vec<OvsSwitch>>,
    /// By namespace; the reason where it cannot be read.
    kernels: BTreeMap<u64, Result<DatapathSocket, Problem>>,
    /// By the database's socket.
    controls: BTreeMap<String, Control>,
}

impl DatapathReader {
    /// The counters of the datapaths on the way, sorted by socket, namespace and name. What was lost since the last sample
    /// that had flows is read once more after they ended.
    pub fn read(&mut self, around: Around<'_>) -> Vec<OvsDatapath> {
        let ended = around.paths.is_empty();
        if ended && self.wanted == WantedDatapaths::default() {
            return Vec::new();
        }
        if !ended {
            self.want(around);
            self.enter(around.spaces);
            self.ask(around);
        }
        let mut reported = Vec::new();
        for (netns, socket) in &self.wanted.kernels {
            if let Some(Ok(kernel)) = self.kernels.get_mut(netns) {
                kernel.read(*netns, socket, &mut reported);
            }
        }
        reported.extend(self.controls.iter().filter_map(|(socket, control)| self.in_userspace(socket, control)));
        reported.sort_by(|one, other| one.key().cmp(&other.key()));
        reported.dedup_by(|one, other| one.key() == other.key());
        if ended {
            *self = Self::default();
        }
        reported
    }

    /// Takes in what has been answered.
    pub fn receive(&mut self, now_ns: u64) {
        for control in self.controls.values_mut() {
            control.receive(now_ns);
        }
    }

    /// Closes what is open in namespaces that have gone: an open socket keeps one alive.
    pub fn leave(&mut self, spaces: &Spaces) {
        self.kernels.retain(|&netns, _| spaces.knows(netns));
    }

    pub fn problems(&self) -> impl Iterator<Item = &Problem> {
        let kernels = self.kernels.values().filter_map(|kernel| kernel.as_ref().err());
        let all = kernels.chain(self.controls.values().filter_map(|control| control.problem.as_ref()));
        // Of the kernel's sentences each is told once, whatever the number of switches.
        let mut seen = BTreeSet::new();
        all.filter(move |problem| seen.insert(&*problem.text))
    }

    fn want(&mut self, around: Around<'_>) {
        if Arc::ptr_eq(&self.paths, around.paths) && Arc::ptr_eq(&self.switches, around.switches) {
            return;
        }
        (self.paths, self.switches) = (Arc::clone(around.paths), Arc::clone(around.switches));
        let crossed: BTreeSet<LinkKey> = around.paths.iter().flat_map(|path| &path.hops).map(|hop| hop.link).collect();
        let mut wanted = WantedDatapaths::default();
        for switch in around.switches.iter() {
            let is_crossed = |kind: &OvsDatapathKind| {
                let bridges = switch.bridges.iter().filter(|bridge| bridge.datapath == *kind);
                bridges
                    .flat_map(|bridge| &bridge.ports)
                    .any(|port| port.link.is_some_and(|link| crossed.contains(&link)))
            };
            if is_crossed(&OvsDatapathKind::System) {
                wanted.kernels.entry(switch.netns).or_insert_with(|| switch.socket.clone());
            }
            if is_crossed(&OvsDatapathKind::Netdev) {
                wanted.controls.insert(switch.socket.clone(), switch.netns);
            }
        }
        self.kernels.retain(|netns, _| wanted.kernels.contains_key(netns));
        self.controls.retain(|socket, _| wanted.controls.contains_key(socket));
        self.wanted = wanted;
    }

    fn enter(&mut self, spaces: &Spaces) {
        for &netns in self.wanted.kernels.keys() {
            let Entry::Vacant(empty) = self.kernels.entry(netns) else { continue };
            match spaces.inside(netns, DatapathSocket::open) {
                Ok(Some(kernel)) => drop(empty.insert(Ok(kernel))),
                Ok(None) => {
                    let why = "drops of Open vSwitch are not known: this kernel has no datapath (modprobe openvswitch)";
                    empty.insert(Err(super::problem(why.to_owned())));
                }
                // One that is not known yet, or that is gone.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => {
                    empty.insert(Err(super::problem(format!(
                        "cannot enter ovs-vswitchd's network namespace ({error}): its datapath's drops are not known; run vnettop as root"
                    ))));
                }
            }
        }
    }

    fn ask(&mut self, around: Around<'_>) {
        for socket in self.wanted.controls.keys() {
            // A switch whose database is away for a moment is asked where it was.
            if let Some((path, pid)) = (around.control)(socket)
                && self.controls.get(socket).is_none_or(|known| !known.is_at(&path))
            {
                self.controls.insert(socket.clone(), Control::new(path, pid));
            }
            let Some(control) = self.controls.get_mut(socket) else { continue };
            control.ask(around.now_ns);
        }
    }

    fn in_userspace(&self, socket: &str, control: &Control) -> Option<OvsDatapath> {
        let netns = *self.wanted.controls.get(socket)?;
        Some(OvsDatapath { socket: socket.to_owned(), netns, ..control.reported.clone()? })
    }
}
