//! The links of every wanted network namespace in one list, sorted by key: the own namespace as always, each other one by
//! sockets opened inside it once. One that cannot be entered is told and left out; one that goes takes its sockets with
//! it, because they would keep it alive.

use super::idle_links::same_counts;
use super::{LinkReader, LinkReading};
use crate::netns::Spaces;
use crate::{SourceError, readable_now, way_out};
use rustix::event::epoll;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use vnettop_sample::{LinkCounters, LinkFacts, Problem, ProblemSource};

/// Time without traffic on its links after which a namespace is read less often, when there are many, ns.
const STILL_NS: u64 = 3_000_000_000;
/// How often a namespace at rest is read, ns.
const ROUND_NS: u64 = 500_000_000;
/// Up to so many namespaces beside the own one are all read on every tick.
const FEW: usize = 8;

/// Reads the links of every wanted namespace.
#[derive(Debug)]
pub struct AllLinks {
    own: u64,
    /// By namespace; the own one is always among them.
    spaces: BTreeMap<u64, SpaceLinks>,
    /// Namespaces that could not be entered; they are not tried again while they last.
    refused: BTreeSet<u64>,
    /// Readable when a link in any namespace has changed.
    events: OwnedFd,
    /// Namespaces whose links stand still may be read less often.
    lets_rest: bool,
    /// The own links are wanted too.
    shows_own: bool,
    all: Arc<Vec<Arc<LinkFacts>>>,
    changed: bool,
    problems: Vec<Problem>,
    refusal: Option<Problem>,
}

/// The links of one namespace.
#[derive(Debug)]
struct SpaceLinks {
    reader: LinkReader,
    last: LinkReading,
    read_at_ns: u64,
    moved_at_ns: u64,
    rests: bool,
}

impl AllLinks {
    /// Over the own namespace, which is there in any case.
    ///
    /// # Errors
    /// No epoll.
    pub fn new(own: LinkReader, lets_rest: bool) -> Result<Self, SourceError> {
        let failed = |error| SourceError::Netlink { operation: "wait for link notifications", error };
        let events = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|error| failed(error.into()))?;
        let mut links = Self {
            own: own.netns(),
            spaces: BTreeMap::new(),
            refused: BTreeSet::new(),
            events,
            lets_rest,
            shows_own: true,
            all: Arc::default(),
            changed: true,
            problems: Vec::new(),
            refusal: None,
        };
        links.add(own).map_err(failed)?;
        Ok(links)
    }

    /// One tick of all of them.
    ///
    /// # Errors
    /// The own namespace's links cannot be read. Another namespace that fails has gone, or is told.
    pub fn read(&mut self, spaces: &mut Spaces, now_ns: u64) -> Result<LinkReading, SourceError> {
        self.follow(spaces);
        self.read_each(spaces, now_ns)?;
        if std::mem::take(&mut self.changed) {
            self.name_namespaces(spaces);
            self.gather();
        }
        self.note_problems();
        let (at_ns, counters) = (self.spaces[&self.own].last.at_ns, self.counters());
        Ok(LinkReading { at_ns, links: Arc::clone(&self.all), counters })
    }

    /// Readable when a link changed anywhere.
    #[must_use]
    pub fn notifications(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }

    /// Takes in pending notifications without sampling.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn drain(&mut self) -> Result<(), SourceError> {
        for netns in readable_now(&self.events) {
            let Some(space) = self.spaces.get_mut(&netns) else { continue };
            match space.reader.drain() {
                Ok(()) => {}
                Err(error) if netns == self.own => return Err(error),
                Err(_) => {
                    self.spaces.remove(&netns);
                    self.changed = true;
                }
            }
        }
        Ok(())
    }

    /// Opens the namespaces that came and lets go of those that went.
    pub fn follow(&mut self, spaces: &Spaces) {
        let own = self.own;
        self.refused.retain(|&netns| spaces.knows(netns));
        let before = (self.spaces.len(), self.shows_own);
        self.spaces.retain(|&netns, _| netns == own || spaces.knows(netns) && spaces.wants(netns));
        self.shows_own = spaces.wants(own);
        self.changed |= before != (self.spaces.len(), self.shows_own);
        for netns in spaces.all() {
            let is_new = !self.spaces.contains_key(&netns) && !self.refused.contains(&netns);
            if is_new && spaces.wants(netns) {
                self.open(spaces, netns);
            }
        }
    }

    fn open(&mut self, spaces: &Spaces, netns: u64) {
        let opened = spaces.inside(netns, || LinkReader::open_elsewhere().map_err(SourceError::into_io));
        let added = opened.and_then(|reader| if reader.netns() == netns { self.add(reader) } else { Ok(()) });
        if let Err(error) = added {
            self.refused.insert(netns);
            self.refusal.get_or_insert_with(|| no_entry(netns, &error));
        }
    }

    fn add(&mut self, reader: LinkReader) -> io::Result<()> {
        let netns = reader.netns();
        epoll::add(&self.events, reader.notifications(), epoll::EventData::new_u64(netns), epoll::EventFlags::IN)?;
        let last = LinkReading { at_ns: 0, links: Arc::default(), counters: Vec::new() };
        self.spaces.insert(netns, SpaceLinks { reader, last, read_at_ns: 0, moved_at_ns: 0, rests: false });
        self.changed = true;
        Ok(())
    }

    fn read_each(&mut self, spaces: &mut Spaces, now_ns: u64) -> Result<(), SourceError> {
        let may_rest = self.lets_rest && self.spaces.len() > 1 + FEW;
        let mut failed = None;
        self.spaces.retain(|&netns, space| {
            let (is_own, rested) = (netns == self.own, space.rests);
            match space.read(now_ns, may_rest && !is_own) {
                Ok(changed) => self.changed |= changed,
                Err(error) if is_own => failed = Some(error),
                Err(_) => {
                    self.changed = true;
                    return false;
                }
            }
            if space.rests != rested {
                spaces.set_resting(netns, space.rests);
            }
            true
        });
        failed.map_or(Ok(()), Err)
    }

    /// Has every namespace that a link names by the kernel's local number found among those known. Alone, the own one forgets the
    /// numbers of those that went: the kernel gives them, and the inodes, to the next ones.
    fn name_namespaces(&mut self, spaces: &Spaces) {
        let (own, alone) = (self.own, self.spaces.len() == 1);
        let others = spaces.all().filter(|&netns| netns != own && !alone);
        let known: Vec<u64> = std::iter::once(own).chain(others).collect();
        let descriptor = |netns| spaces.file(netns).map(|file| file.as_raw_fd());
        for (&netns, space) in &mut self.spaces {
            space.reader.find_namespaces(netns, &known, descriptor);
            space.last.links = space.reader.links();
        }
    }

    fn shown(&mut self) -> impl Iterator<Item = &mut LinkReading> {
        let hidden = Some(self.own).filter(|_| !self.shows_own);
        self.spaces.iter_mut().filter(move |(netns, _)| Some(**netns) != hidden).map(|(_, space)| &mut space.last)
    }

    /// The one list.
    fn gather(&mut self) {
        let links = self.shown().flat_map(|last| last.links.iter().cloned());
        self.all = Arc::new(links.collect());
    }

    fn counters(&mut self) -> Vec<LinkCounters> {
        let (alone, room) = (self.spaces.len() == 1, self.all.len());
        let mut shown = self.shown();
        if alone {
            return shown.next().map(|last| std::mem::take(&mut last.counters)).unwrap_or_default();
        }
        let mut all = Vec::with_capacity(room);
        shown.for_each(|last| all.extend_from_slice(&last.counters));
        all
    }

    fn note_problems(&mut self) {
        let now = || self.spaces[&self.own].reader.problems().iter().chain(&self.refusal);
        if !now().eq(&self.problems) {
            self.problems = now().cloned().collect();
        }
    }

    /// What cannot be read and why; empty is the normal case.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl SpaceLinks {
    /// Reads the links, but of a namespace that rests only now and then; whether the list of them is another.
    fn read(&mut self, now_ns: u64, may_rest: bool) -> Result<bool, SourceError> {
        if may_rest && self.rests && now_ns.saturating_sub(self.read_at_ns) < ROUND_NS {
            return Ok(false);
        }
        let before = std::mem::replace(&mut self.last, self.reader.read()?);
        let changed = !Arc::ptr_eq(&before.links, &self.last.links);
        let same = |(old, new)| same_counts(old, new);
        if !may_rest || changed || !before.counters.iter().zip(&self.last.counters).all(same) {
            self.moved_at_ns = now_ns;
        }
        self.read_at_ns = now_ns;
        self.rests = may_rest && now_ns.saturating_sub(self.moved_at_ns) >= STILL_NS;
        Ok(changed)
    }
}

fn no_entry(netns: u64, error: &io::Error) -> Problem {
    let mends = way_out(error, "run vnettop as root, or with CAP_SYS_ADMIN");
    let text = format!(
        "cannot enter network namespace {netns} ({error}): its links are missing, perhaps others too; \
         {mends}"
    );
    Problem { source: ProblemSource::Namespaces, text }
}
