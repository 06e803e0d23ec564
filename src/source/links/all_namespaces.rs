//! The links of every wanted network namespace in one list, sorted by key: the own namespace as always, each other one by
//! sockets opened inside it once. One that cannot be entered is told and left out; one that goes takes its sockets with
//! it, because they would keep it alive.

use super::idle_links::same_counts;
use super::{LinkReader, LinkReading};
use crate::sample::{LinkCounters, LinkFacts, Problem, ProblemSource};
use crate::source::netns::Spaces;
use crate::source::{SourceError, way_out};
use rustix::event::{Timespec, epoll};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// A namespace none of whose links moved for so long rests, where there are many.
const STILL_NS: u64 = 3_000_000_000;
/// How often a resting one is read.
const ROUND_NS: u64 = 500_000_000;
/// Up to so many namespaces are all read on every tick.
const FEW: usize = 8;
const EVENTS: usize = 256;

/// Reads the links of every wanted namespace.
#[derive(Debug)]
pub struct AllLinks {
    home: LinkReader,
    elsewhere: BTreeMap<u64, Elsewhere>,
    /// Those that could not be entered; they are not tried again while they last.
    refused: BTreeSet<u64>,
    /// Readable when any of them has news.
    events: OwnedFd,
    /// Those that stand still may be read less often.
    lets_rest: bool,
    /// The own links are wanted too.
    shows_home: bool,
    home_links: Arc<Vec<Arc<LinkFacts>>>,
    all: Arc<Vec<Arc<LinkFacts>>>,
    changed: bool,
    problems: Vec<Problem>,
    refusal: Option<Problem>,
}

/// Another namespace.
#[derive(Debug)]
struct Elsewhere {
    reader: LinkReader,
    links: Arc<Vec<Arc<LinkFacts>>>,
    counters: Vec<LinkCounters>,
    read_at_ns: u64,
    moved_at_ns: u64,
    rests: bool,
}

impl AllLinks {
    /// Over the own namespace, which is there in any case.
    ///
    /// # Errors
    /// No epoll.
    pub fn new(home: LinkReader, lets_rest: bool) -> Result<Self, SourceError> {
        let failed = |error: rustix::io::Errno| SourceError::Netlink {
            operation: "wait for link notifications",
            error: error.into(),
        };
        let events = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(failed)?;
        let data = epoll::EventData::new_u64(home.netns());
        epoll::add(&events, home.notifications(), data, epoll::EventFlags::IN).map_err(failed)?;
        Ok(Self {
            home,
            elsewhere: BTreeMap::new(),
            refused: BTreeSet::new(),
            events,
            lets_rest,
            shows_home: true,
            home_links: Arc::default(),
            all: Arc::default(),
            changed: true,
            problems: Vec::new(),
            refusal: None,
        })
    }

    /// One tick of all of them.
    ///
    /// # Errors
    /// The own namespace's links cannot be read. Another namespace that fails has gone, or is told.
    pub fn read(&mut self, spaces: &mut Spaces, now_ns: u64) -> Result<LinkReading, SourceError> {
        self.follow(spaces);
        let home = self.home.read()?;
        self.changed |= !Arc::ptr_eq(&home.links, &self.home_links);
        self.home_links = Arc::clone(&home.links);
        if self.elsewhere.is_empty() && self.shows_home {
            self.note_problems();
            return Ok(home);
        }
        self.read_elsewhere(spaces, now_ns);
        if self.changed {
            self.name_namespaces(spaces);
            self.gather();
            self.changed = false;
        }
        self.note_problems();
        let counters = self.counters(home.counters);
        Ok(LinkReading { at_ns: home.at_ns, links: Arc::clone(&self.all), counters })
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
        let mut heard = Vec::with_capacity(EVENTS);
        let none = Timespec { tv_sec: 0, tv_nsec: 0 };
        let waited = epoll::wait(&self.events, rustix::buffer::spare_capacity(&mut heard), Some(&none));
        if waited.is_err() {
            return Ok(());
        }
        for event in heard {
            let netns = event.data.u64();
            if netns == self.home.netns() {
                self.home.drain()?;
            } else if let Some(elsewhere) = self.elsewhere.get_mut(&netns)
                && elsewhere.reader.drain().is_err()
            {
                self.elsewhere.remove(&netns);
                self.changed = true;
            }
        }
        Ok(())
    }

    /// Opens the namespaces that came and lets go of those that went.
    pub fn follow(&mut self, spaces: &Spaces) {
        let own = spaces.own();
        self.refused.retain(|&netns| spaces.knows(netns));
        let before = self.elsewhere.len();
        self.elsewhere.retain(|&netns, _| spaces.knows(netns) && spaces.wants(netns));
        self.changed |= before != self.elsewhere.len();
        let shows_home = spaces.wants(own);
        self.changed |= self.shows_home != shows_home;
        self.shows_home = shows_home;
        for netns in spaces.all() {
            let is_new = netns != own && !self.elsewhere.contains_key(&netns) && !self.refused.contains(&netns);
            if is_new && spaces.wants(netns) {
                self.open(spaces, netns);
            }
        }
    }

    fn open(&mut self, spaces: &Spaces, netns: u64) {
        let opened = spaces.inside(netns, || LinkReader::open_elsewhere().map_err(io::Error::other));
        let opened = opened.and_then(|reader| {
            let data = epoll::EventData::new_u64(netns);
            epoll::add(&self.events, reader.notifications(), data, epoll::EventFlags::IN)?;
            Ok(reader)
        });
        match opened {
            Ok(reader) if reader.netns() == netns => {
                let elsewhere = Elsewhere {
                    reader,
                    links: Arc::default(),
                    counters: Vec::new(),
                    read_at_ns: 0,
                    moved_at_ns: 0,
                    rests: false,
                };
                self.elsewhere.insert(netns, elsewhere);
                self.changed = true;
            }
            Ok(_) => {}
            Err(error) => {
                self.refused.insert(netns);
                self.refusal.get_or_insert_with(|| no_entry(netns, &error));
            }
        }
    }

    fn read_elsewhere(&mut self, spaces: &mut Spaces, now_ns: u64) {
        let may_rest = self.lets_rest && self.elsewhere.len() > FEW;
        let mut gone = Vec::new();
        for (&netns, elsewhere) in &mut self.elsewhere {
            if may_rest && elsewhere.rests && now_ns.saturating_sub(elsewhere.read_at_ns) < ROUND_NS {
                continue;
            }
            let Ok(changed) = elsewhere.read(now_ns) else {
                gone.push(netns);
                continue;
            };
            self.changed |= changed;
            let rests = may_rest && now_ns.saturating_sub(elsewhere.moved_at_ns) >= STILL_NS;
            if elsewhere.rests != rests {
                elsewhere.rests = rests;
                spaces.set_resting(netns, rests);
            }
        }
        for netns in gone {
            self.elsewhere.remove(&netns);
            self.changed = true;
        }
    }

    /// Has every namespace that a link names by the kernel's local number found among those known.
    fn name_namespaces(&mut self, spaces: &Spaces) {
        let own = spaces.own();
        let known: Vec<u64> = std::iter::once(own).chain(spaces.all().filter(|&netns| netns != own)).collect();
        let descriptor = |netns| spaces.file(netns).map(|file| file.as_raw_fd());
        self.home.find_namespaces(own, &known, descriptor);
        self.home_links = self.home.links();
        for (&netns, elsewhere) in &mut self.elsewhere {
            elsewhere.reader.find_namespaces(netns, &known, descriptor);
            elsewhere.links = elsewhere.reader.links();
        }
    }

    /// The one list.
    fn gather(&mut self) {
        let home = self.shows_home.then_some((self.home.netns(), &self.home_links));
        let elsewhere = self.elsewhere.iter().map(|(&netns, elsewhere)| (netns, &elsewhere.links));
        let mut lists: Vec<_> = elsewhere.chain(home).collect();
        lists.sort_unstable_by_key(|(netns, _)| *netns);
        self.all = Arc::new(lists.into_iter().flat_map(|(_, links)| links.iter().cloned()).collect());
    }

    fn counters(&self, home: Vec<LinkCounters>) -> Vec<LinkCounters> {
        let mut all = Vec::with_capacity(self.all.len());
        let own = self.home.netns();
        let mut home = self.shows_home.then_some(home);
        for (&netns, elsewhere) in &self.elsewhere {
            if netns > own {
                all.extend(home.take().into_iter().flatten());
            }
            all.extend_from_slice(&elsewhere.counters);
        }
        all.extend(home.into_iter().flatten());
        all
    }

    fn note_problems(&mut self) {
        let now = || self.home.problems().iter().chain(&self.refusal);
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

impl Elsewhere {
    /// Reads its links; whether the list of them is another.
    fn read(&mut self, now_ns: u64) -> Result<bool, SourceError> {
        let LinkReading { links, counters, .. } = self.reader.read()?;
        let changed = !Arc::ptr_eq(&links, &self.links);
        let moved = changed || !self.counters.iter().zip(&counters).all(|(old, new)| same_counts(old, new));
        if moved {
            self.moved_at_ns = now_ns;
        }
        (self.links, self.counters, self.read_at_ns) = (links, counters, now_ns);
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
