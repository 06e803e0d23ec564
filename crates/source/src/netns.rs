//! The network namespaces of the machine: finds them by their processes and mounts, holds each open, runs something
//! inside one. An open descriptor keeps a namespace alive, so one that nobody else keeps is let go at once.

mod by_inode;
mod choice;
mod cookie;
mod holders;
mod inside;
mod mounts;
mod problems;
mod processes;

use crate::sched;
use crate::{LEAST_TO_WATCH, Roots, netns_of, proc_file, publish, readable_now};
pub use by_inode::{FoundNetns, NetnsPlace, find_by_inode};
pub use choice::{Choice, SELF};
pub(super) use cookie::cookie;
use holders::NetnsHolders;
pub(super) use inside::run_inside;
use processes::NetnsProcesses;
use rustix::event::epoll;
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::ops::Bound;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use vnettop_sample::{Problem, Space};

/// Most inhabitants of vnettop's own namespace that are remembered: its owner is not asked for.
const MOST_OWN: usize = 4;
/// Descriptors that a namespace takes: its own, its inhabitant's pidfd, and the sockets for its links.
const DESCRIPTORS: usize = 5;
/// Namespaces that are asked in one tick whether their inhabitant is still there, when the kernel does not report its end.
const MOST_LOOKS: usize = 128;

/// Finds network namespaces and holds them open.
#[derive(Debug)]
pub struct Spaces {
    own: u64,
    choice: Choice,
    /// The processes that the choice may mean, and where each was seen last.
    asked: Vec<(u32, Option<u64>)>,
    events: Option<OwnedFd>,
    mountinfo: Option<File>,
    known: BTreeMap<u64, HeldSpace>,
    /// The namespace whose inhabitant was looked at last, when the kernel does not report its end.
    looked: u64,
    residents: NetnsProcesses,
    /// Most namespaces that are held open; the other descriptors are for watched threads and a command.
    most: usize,
    /// There are more namespaces than `most`.
    crowded: bool,
    /// Namespaces that had an inhabitant and got another one since they were last taken.
    joined: BTreeSet<u64>,
    published: Arc<Vec<Space>>,
    changed: bool,
    problems: Vec<Problem>,
}

/// A namespace held open.
#[derive(Debug)]
struct HeldSpace {
    file: Arc<OwnedFd>,
    name: Option<String>,
    mounted: bool,
    living: NetnsHolders,
    /// The inhabitant that is watched, by its pidfd, which is waited for; where the kernel gives none (before Linux 5.3) it is
    /// looked at on each tick.
    watch: Option<(u32, Option<OwnedFd>)>,
    rests: bool,
}

impl Spaces {
    /// Knows its own namespace only, until it is read.
    #[must_use]
    pub fn new(roots: &Roots, choice: Choice) -> Self {
        let own = netns_of(Path::new("/proc/thread-self")).unwrap_or(0);
        let looks = choice != Choice::Own;
        if looks {
            sched::raise_descriptor_limit();
        }
        let asked = match &choice {
            Choice::Named(names) => names.iter().filter_map(|name| Some((name.parse().ok()?, None))).collect(),
            Choice::All | Choice::Own => Vec::new(),
        };
        let mut spaces = Self {
            own,
            asked,
            events: looks.then(|| epoll::create(epoll::CreateFlags::CLOEXEC).ok()).flatten(),
            mountinfo: looks.then(|| File::open("/proc/thread-self/mountinfo").ok()).flatten(),
            choice,
            known: BTreeMap::new(),
            looked: 0,
            residents: NetnsProcesses::new(roots),
            most: proc_file::descriptor_room().saturating_sub(LEAST_TO_WATCH) / DESCRIPTORS,
            crowded: false,
            joined: BTreeSet::new(),
            published: Arc::default(),
            changed: true,
            problems: Vec::new(),
        };
        if let Ok(file) = open(Path::new("/proc/thread-self/ns/net")) {
            let mut held = HeldSpace::new(file, None);
            held.mounted = true;
            if !looks {
                held.living.take_in(std::process::id(), 0, |_| true);
            }
            spaces.known.insert(own, held);
        }
        if let (Some(events), Some(mountinfo)) = (&spaces.events, &spaces.mountinfo) {
            let _polled_in_turn_then =
                epoll::add(events, mountinfo, epoll::EventData::new_u64(0), epoll::EventFlags::PRI);
            spaces.read_mounts();
        }
        spaces
    }

    /// Inode of vnettop's own namespace.
    #[must_use]
    pub fn own(&self) -> u64 {
        self.own
    }

    /// The namespace is there and held open.
    #[must_use]
    pub fn knows(&self, netns: u64) -> bool {
        self.known.contains_key(&netns)
    }

    /// Every known one, in the order of inodes.
    pub fn all(&self) -> impl Iterator<Item = u64> {
        self.known.keys().copied()
    }

    /// Its links are wanted.
    #[must_use]
    pub fn wants(&self, netns: u64) -> bool {
        match &self.choice {
            Choice::All => true,
            Choice::Own => netns == self.own,
            Choice::Named(names) => names.iter().any(|name| self.is_called(netns, name)),
        }
    }

    fn is_called(&self, netns: u64, name: &str) -> bool {
        if name == SELF {
            return netns == self.own;
        }
        self.known.get(&netns).is_some_and(|known| {
            let number = name.parse::<u64>().ok();
            let lives = |&(pid, place): &(u32, Option<u64>)| place == Some(netns) && number == Some(u64::from(pid));
            known.name.as_deref() == Some(name) || number == Some(netns) || self.asked.iter().any(lives)
        })
    }

    /// Readable when a namespace may have gone or been mounted; then, and only then, [`Spaces::receive`].
    #[must_use]
    pub fn events(&self) -> Option<BorrowedFd<'_>> {
        self.events.as_ref().map(AsFd::as_fd)
    }

    /// Takes in who ended and what was mounted; lets go of what nobody else keeps.
    /// The mounts are read on every call: the kernel reports their change to the first poll alone, which was the one that led here.
    pub fn receive(&mut self) {
        let Some(events) = &self.events else { return };
        for netns in readable_now(events) {
            self.ended(netns);
        }
        self.read_mounts();
    }

    /// Lets go of all but the own one, as if they had gone.
    pub fn forget(&mut self) {
        let own = self.own;
        self.known.retain(|&netns, _| netns == own);
        self.joined.clear();
        self.residents.forget();
        self.changed = true;
    }

    /// Looks at inhabitants whose end nothing tells (before Linux 5.3), at some on each tick; true when a namespace has gone.
    pub fn look(&mut self) -> bool {
        let after = (Bound::Excluded(self.looked), Bound::Unbounded);
        let in_turn = self.known.range(after).chain(self.known.range(..=self.looked));
        let looked = in_turn.filter_map(|(&netns, known)| match known.watch {
            Some((pid, None)) => Some((netns, pid)),
            _ => None,
        });
        let looked: Vec<(u64, u32)> = looked.take(MOST_LOOKS).collect();
        let before = self.known.len();
        for (netns, pid) in looked {
            self.looked = netns;
            if self.residents.of(pid) != Some(netns) {
                self.ended(netns);
            }
        }
        self.known.len() < before
    }

    /// Looks for namespaces that came or went. `newest` is the process number that the kernel gave last.
    pub fn read(&mut self, newest: Option<u32>, now_ns: u64) -> Arc<Vec<Space>> {
        if self.events.is_some() {
            let mut met = Vec::new();
            self.residents.look(newest, now_ns, |pid, netns| met.push((pid, netns)));
            for (pid, netns) in met {
                self.settle(pid, netns);
            }
            self.report();
        }
        self.publish()
    }

    /// Marks a namespace as one that is read less often.
    pub fn set_resting(&mut self, netns: u64, rests: bool) {
        if let Some(known) = self.known.get_mut(&netns).filter(|known| known.rests != rests) {
            known.rests = rests;
            self.changed = true;
        }
    }

    /// What cannot be seen and why.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The namespace's descriptor.
    #[must_use]
    pub fn file(&self, netns: u64) -> Option<BorrowedFd<'_>> {
        self.known.get(&netns).map(|known| known.file.as_fd())
    }

    /// A process lives in that namespace.
    fn settle(&mut self, pid: u32, netns: u64) {
        if let Some((_, place)) = self.asked.iter_mut().find(|(asked, _)| *asked == pid) {
            *place = Some(netns);
        }
        let known = self.known.get(&netns).map(|known| &known.living);
        if known.is_some_and(|living| living.has(pid) || netns == self.own && living.len() >= MOST_OWN) {
            return;
        }
        if known.is_none() {
            if !self.has_room(netns, |choice| choice.parse() == Ok(pid)) {
                return;
            }
            let Ok(file) = open(&self.residents.file_of(pid)) else { return };
            self.hold(netns, file, None);
        }
        self.take_in(pid, netns);
        self.watch(netns);
        self.let_go(netns);
    }

    /// Remembers an inhabitant.
    fn take_in(&mut self, pid: u32, netns: u64) {
        let (Some(known), Some(started)) = (self.known.get_mut(&netns), self.residents.started(pid)) else { return };
        if !known.living.is_empty() {
            self.joined.insert(netns);
        }
        known.living.take_in(pid, started, |pid| self.residents.of(pid) == Some(netns));
        if known.living.oldest() == Some(pid) {
            (known.watch, self.changed) = (None, true);
        }
    }

    /// Who lives there, the oldest first; one or the other may have gone.
    #[must_use]
    pub fn inhabitants(&self, netns: u64) -> Vec<u32> {
        self.known.get(&netns).map(|known| known.living.by_age()).unwrap_or_default()
    }

    /// Namespaces that got a further inhabitant since the last call.
    pub fn joined(&mut self) -> BTreeSet<u64> {
        std::mem::take(&mut self.joined)
    }

    /// Whether one more may be held open: there are descriptors for it, or it is asked for.
    fn has_room(&mut self, netns: u64, is_it: impl Fn(&str) -> bool) -> bool {
        // The own namespace takes no descriptors beyond those that every vnettop has.
        let others = self.known.len().saturating_sub(1);
        let is_asked = || match &self.choice {
            Choice::Named(names) => names.iter().any(|name| is_it(name) || name.parse() == Ok(netns)),
            Choice::All | Choice::Own => false,
        };
        let has_room = others < self.most || is_asked();
        self.crowded |= !has_room;
        has_room
    }

    /// Keeps a namespace if the file is still the one that was meant.
    fn hold(&mut self, netns: u64, file: OwnedFd, name: Option<String>) {
        if rustix::fs::fstat(&file).is_ok_and(|stat| stat.st_ino == netns) {
            self.known.insert(netns, HeldSpace::new(file, name));
            self.changed = true;
        }
    }

    /// Has the oldest of the living watched; those that have gone meanwhile are forgotten.
    fn watch(&mut self, netns: u64) {
        let (Some(events), Some(known)) = (&self.events, self.known.get_mut(&netns)) else { return };
        if netns == self.own {
            return;
        }
        while known.watch.is_none()
            && let Some(oldest) = known.living.oldest()
        {
            let data = epoll::EventData::new_u64(netns);
            let reported = |pidfd: OwnedFd| epoll::add(events, &pidfd, data, epoll::EventFlags::IN).map(|()| pidfd);
            let pid = i32::try_from(oldest).ok().and_then(Pid::from_raw);
            // Without a flag: PIDFD_NONBLOCK, which only waiting for a child would heed, is unknown before Linux 5.10.
            let watch = pid.map(|pid| pidfd_open(pid, PidfdFlags::empty()).and_then(reported).ok());
            // Looked at after it was opened: from here on the number cannot be another process'.
            let watch = watch.filter(|_| self.residents.of(oldest) == Some(netns));
            if watch.is_none() {
                known.living.forget(oldest);
                self.changed = true;
            }
            known.watch = watch.map(|watch| (oldest, watch));
        }
    }

    /// The watched inhabitant of a namespace has ended.
    fn ended(&mut self, netns: u64) {
        let Some(known) = self.known.get_mut(&netns) else { return };
        if let Some((pid, _)) = known.watch.take() {
            known.living.forget(pid);
        }
        self.changed = true;
        self.watch(netns);
        self.let_go(netns);
    }

    /// Lets go of a namespace that neither a known process nor a mount keeps.
    fn let_go(&mut self, netns: u64) {
        let is_empty = |known: &HeldSpace| known.living.is_empty() && !known.mounted;
        if netns != self.own && self.known.get(&netns).is_some_and(is_empty) {
            self.known.remove(&netns);
            (self.changed, self.crowded) = (true, false);
            // It may have had more inhabitants than were remembered.
            self.residents.ask_soon();
        }
    }

    fn publish(&mut self) -> Arc<Vec<Space>> {
        if std::mem::take(&mut self.changed) {
            let space = |(&netns, known): (&u64, &HeldSpace)| Space {
                netns,
                name: known.name.clone(),
                pid: known.living.oldest(),
                rests: known.rests,
            };
            publish(&mut self.published, self.known.iter().map(space).collect());
        }
        Arc::clone(&self.published)
    }
}

impl HeldSpace {
    fn new(file: OwnedFd, name: Option<String>) -> Self {
        let (file, living, mounted) = (Arc::new(file), NetnsHolders::default(), name.is_some());
        Self { file, name, mounted, living, watch: None, rests: false }
    }
}

/// Something else may be in the place of a mount by now: a fifo is not waited for.
fn open(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY, Mode::empty())?)
}

/// What a fuzzer gives every parser here.
#[cfg(fuzzing)]
pub(crate) fn fuzz(text: &[u8]) {
    mounts::mounts(text).iter().for_each(|mount| drop(mount.name()));
}
