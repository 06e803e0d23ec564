//! What puts the packets of the links on a path onto cores: RPS and RFS of each queue, threads of NAPI, interrupts. Without
//! paths it reads nothing and keeps nothing open; with them when one changes, and every three seconds besides. Only where
//! a thread of NAPI last ran is read on every tick, because it moves like any thread.

mod interrupts;
mod link_controls;
mod link_folder;
mod napi;
mod queues;

use super::netns::Spaces;
use super::threads::napi_thread;
use super::{Roots, publish};
pub use link_controls::LinkControls;
pub use link_folder::{LinkFolder, LinkFolderError, open_link_folder};
use napi::NetdevSocket;
use queues::SysfsTree;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use vnettop_sample::{FlowPath, HopWay, LinkFacts, LinkKey, Steering, row_of};

/// How often the settings are read again, ns: the kernel does not announce their changes.
const AGAIN_NS: u64 = 3_000_000_000;
/// Namespaces that are looked into at most.
const MOST_PLACES: usize = 64;

/// One namespace's view of sysfs, and its socket of the `netdev` family.
#[derive(Debug)]
struct SteeringSpace {
    tree: SysfsTree,
    /// None before Linux 6.7.
    napi: Option<NetdevSocket>,
}

/// Reads and keeps the settings.
#[derive(Debug)]
pub struct SteeringReader {
    proc: PathBuf,
    published: Arc<Vec<Steering>>,
    paths: Arc<Vec<FlowPath>>,
    /// By namespace; `None` when it cannot be looked into.
    places: BTreeMap<u64, Option<SteeringSpace>>,
    read_at_ns: u64,
    buffer: Vec<u8>,
}

impl SteeringSpace {
    fn here() -> io::Result<Self> {
        Ok(Self { tree: SysfsTree::open()?, napi: NetdevSocket::open().ok() })
    }
}

impl SteeringReader {
    /// Nothing is opened yet.
    #[must_use]
    pub fn new(roots: &Roots) -> Self {
        Self {
            proc: roots.proc.clone(),
            published: Arc::default(),
            paths: Arc::default(),
            places: BTreeMap::new(),
            read_at_ns: 0,
            buffer: Vec::new(),
        }
    }

    /// The settings of the links on these paths; the same `Arc` until one changes. `links` are all links, sorted by key.
    pub fn read(
        &mut self,
        spaces: &Spaces,
        links: &[Arc<LinkFacts>],
        paths: &Arc<Vec<FlowPath>>,
        now_ns: u64,
    ) -> Arc<Vec<Steering>> {
        if paths.is_empty() {
            if !self.paths.is_empty() {
                self.places.clear();
                (self.published, self.paths, self.buffer) = (Arc::default(), Arc::default(), Vec::new());
            }
            return Arc::clone(&self.published);
        }
        let is_new = !Arc::ptr_eq(&self.paths, paths);
        if is_new || now_ns.saturating_sub(self.read_at_ns) >= AGAIN_NS {
            (self.paths, self.read_at_ns) = (Arc::clone(paths), now_ns);
            let now = self.settings(spaces, links);
            publish(&mut self.published, now);
        } else if self.published.iter().any(|reported| !reported.napi.is_empty()) {
            let mut now = Vec::clone(&self.published);
            let threads = now.iter_mut().flat_map(|reported| &mut reported.napi);
            threads.for_each(|thread| *thread = napi_thread(&self.proc, thread.pid).unwrap_or_else(|| thread.clone()));
            publish(&mut self.published, now);
        }
        Arc::clone(&self.published)
    }

    /// Closes what is open in namespaces that have gone.
    pub fn leave(&mut self, spaces: &Spaces) {
        self.places.retain(|&netns, _| spaces.knows(netns));
    }

    /// Reads every link that a path crosses, namespace by namespace.
    fn settings(&mut self, spaces: &Spaces, links: &[Arc<LinkFacts>]) -> Vec<Steering> {
        let hops = self.paths.iter().flat_map(|path| &path.hops).filter(|hop| hop.way != HopWay::Passed);
        let mut keys: Vec<LinkKey> = hops.map(|hop| hop.link).filter(|key| key.ifindex.kernel().is_some()).collect();
        keys.sort_unstable();
        keys.dedup();
        let is_crossed = |netns: u64| keys.iter().any(|key| key.netns == netns);
        self.places.retain(|&netns, place| place.is_some() && is_crossed(netns));
        let mut settings = Vec::with_capacity(keys.len());
        for key in keys {
            let Some(link) = row_of(links, &key, |link| link.key()) else { continue };
            if self.places.len() >= MOST_PLACES && !self.places.contains_key(&key.netns) {
                continue;
            }
            // A namespace that may not be entered has unknown settings; the reason is reported with its routes.
            let place = self.places.entry(key.netns);
            let place = place.or_insert_with(|| spaces.inside(key.netns, SteeringSpace::here).ok());
            let Some(SteeringSpace { tree, napi }) = place else { continue };
            let Some(mut reported) = tree.read(link, &mut self.buffer) else { continue };
            let threads = napi.as_mut().map(|napi| napi.threads(key.ifindex)).unwrap_or_default();
            reported.napi = threads.into_iter().filter_map(|pid| napi_thread(&self.proc, pid)).collect();
            (reported.interrupts, reported.irqs) = interrupts::read(tree, &self.proc, link, &mut self.buffer);
            settings.push(reported);
        }
        settings
    }
}

/// What a fuzzer gives every parser here.
#[cfg(fuzzing)]
pub(crate) fn fuzz(message: &crate::netlink::message::Message<'_>) {
    napi::thread(message);
}

/// What a fuzzer gives the parsers of text here.
#[cfg(fuzzing)]
pub(crate) fn fuzz_text(text: &str) {
    interrupts::receives(text, text.split('-').next().unwrap_or_default());
}
