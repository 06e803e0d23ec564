//! Which process holds a tun, tap or macvtap open. All processes are looked through only while there is such a link whose
//! holder is not known, and never all of them in one tick. Another user's need rights.

use super::passage::{Passage, Seen};
use super::{device, guest};
use crate::sample::{Kind, LinkFacts, LinkKey, LinkState, Owner, OwnerKind, Problem};
use crate::source::strangers;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Pause between the first passages, ns: who makes a link opens it at once.
const PAUSE_NS: u64 = 1_000_000_000;
/// So many of them.
const HASTY: u32 = 5;
/// The longest pause later on, ns.
const LONGEST_PAUSE_NS: u64 = 32_000_000_000;
/// Holders are looked after so often, ns, and when links change no more often than that.
const CHECK_NS: u64 = 4_000_000_000;
const LEAST_CHECK_NS: u64 = 1_000_000_000;

/// Holders known and wanted.
#[derive(Debug)]
pub(super) struct Holders {
    proc: PathBuf,
    /// Every link that may have a holder, sorted.
    links: Vec<Holdable>,
    /// The namespaces whose links are seen, sorted.
    seen_in: Vec<u64>,
    held: BTreeMap<LinkKey, Held>,
    passage: Option<Passage>,
    /// Passages since the links wanted were others.
    passages: u32,
    due_ns: u64,
    check_ns: u64,
    checked_ns: u64,
    problem: Option<Problem>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Holdable {
    key: LinkKey,
    name: String,
    by_index: bool,
    /// It belongs to nobody else.
    free: bool,
    /// Nothing says that nobody holds it: a tap that nobody holds has no carrier.
    likely: bool,
}

#[derive(Debug)]
struct Held {
    seen: Seen,
    owner: Owner,
}

impl Holders {
    pub fn new(proc: &Path) -> Self {
        Self {
            proc: proc.to_owned(),
            links: Vec::new(),
            seen_in: Vec::new(),
            held: BTreeMap::new(),
            passage: None,
            passages: 0,
            due_ns: u64::MAX,
            check_ns: u64::MAX,
            checked_ns: 0,
            problem: None,
        }
    }

    /// Who holds a link: the process, and whose that is.
    pub fn holder(&self, link: LinkKey) -> Option<(u32, &Owner)> {
        self.held.get(&link).map(|held| (held.seen.pid, &held.owner))
    }

    /// Every link that somebody holds, with the process.
    pub fn all(&self) -> impl Iterator<Item = (LinkKey, u32)> {
        self.held.iter().map(|(&link, held)| (link, held.seen.pid))
    }

    /// When to look again, if nothing happens before.
    pub fn due_ns(&self) -> u64 {
        if self.passage.is_some() { 0 } else { self.due_ns.min(self.check_ns) }
    }

    /// What cannot be seen and why.
    pub fn problem(&self) -> Option<&Problem> {
        self.problem.as_ref()
    }

    /// Follows the links that may have a holder; those that are not free belong to somebody anyhow.
    pub fn follow(&mut self, links: &[Arc<LinkFacts>], is_free: impl Fn(&LinkFacts) -> bool, now_ns: u64) {
        let holdable = links.iter().filter(|link| is_held(&link.kind));
        let all: Vec<Holdable> = holdable.map(|link| Holdable::of(link, is_free(link))).collect();
        if all.is_empty() && self.links.is_empty() {
            return;
        }
        self.seen_in = links.iter().map(|link| link.netns).collect();
        self.seen_in.dedup();
        let lost = self.check(&all, now_ns);
        if lost || all != self.links {
            (self.links, self.passages, self.passage, self.due_ns) = (all, 0, None, now_ns);
        }
        if self.wanted().next().is_none() {
            (self.passage, self.due_ns, self.problem) = (None, u64::MAX, None);
        }
    }

    /// Forgets the holders that have let go or whose link has gone; true when there were some.
    fn check(&mut self, all: &[Holdable], now_ns: u64) -> bool {
        let names: BTreeMap<LinkKey, &str> = all.iter().map(|link| (link.key, &*link.name)).collect();
        let known = self.held.len();
        let can_check = now_ns.saturating_sub(self.checked_ns) >= LEAST_CHECK_NS;
        self.held.retain(|key, _| names.contains_key(key));
        if can_check && !self.held.is_empty() {
            let asked = self.held.iter().map(|(key, held)| (*key, held.seen.clone(), names[key].to_owned()));
            let (proc, asked) = (self.proc.clone(), asked.collect::<Vec<_>>());
            let lost = strangers::ask("a process that holds a tun or tap", move || {
                let lost = asked.into_iter().filter(|(_, seen, name)| !seen.still_holds(&proc, name));
                lost.map(|(key, ..)| key).collect::<Vec<_>>()
            });
            // Who cannot be asked holds what he held.
            lost.into_iter().flatten().for_each(|key| drop(self.held.remove(&key)));
        }
        let pause_ns = if can_check { CHECK_NS } else { LEAST_CHECK_NS };
        if can_check {
            self.checked_ns = now_ns;
        }
        self.check_ns = if self.held.is_empty() { u64::MAX } else { self.checked_ns.saturating_add(pause_ns) };
        self.held.len() != known
    }

    /// Links whose holder is worth looking for.
    fn wanted(&self) -> impl Iterator<Item = &Holdable> {
        self.links.iter().filter(|link| link.free && !self.held.contains_key(&link.key))
    }

    /// The holders that are known are to be looked after again.
    pub fn must_check(&self, now_ns: u64) -> bool {
        now_ns >= self.check_ns
    }

    /// Goes on looking through the processes, if it is time; true when a holder was found.
    pub fn look(&mut self, now_ns: u64) -> bool {
        if self.passage.is_none() && now_ns >= self.due_ns {
            self.passage = Passage::begin(&self.proc, self.passages == 0);
        }
        let Some(passage) = &mut self.passage else { return false };
        let mut found = false;
        for seen in passage.go_on() {
            found |= self.found(seen);
        }
        if found {
            self.check_ns = self.check_ns.min(now_ns.saturating_add(CHECK_NS));
        }
        if self.passage.as_ref().is_some_and(Passage::is_over) {
            self.end_passage(now_ns);
        }
        found
    }

    /// Which link a process was seen to hold, and takes note of it.
    fn found(&mut self, seen: Seen) -> bool {
        let matches = |link: &&Holdable| match (&seen.name, seen.ifindex) {
            (Some(name), _) => !link.by_index && link.name == *name,
            (None, index) => link.by_index && Some(link.key.ifindex.0) == index,
        };
        // The kernel tells where it is; else it is beside its holder, most likely.
        let (pid, fd) = (seen.pid, seen.fd);
        let ask = |_| strangers::ask(format_args!("process {pid}"), move || device::netns(pid, fd)).flatten();
        let told = seen.name.as_ref().and_then(ask);
        let netns = told.or_else(|| super::netns_of(&self.proc.join(seen.pid.to_string())));
        let Some(netns) = netns else { return false };
        let here = self.links.iter().filter(matches).find(|link| link.key.netns == netns);
        // Its link may have been moved elsewhere since; of two so named elsewhere nobody can tell which, nor whether one
        // is meant that is not seen.
        let mut elsewhere = self.links.iter().filter(matches).filter(|_| self.seen_in.binary_search(&netns).is_ok());
        let only = elsewhere.next().filter(|_| told.is_none() && elsewhere.next().is_none());
        let Some(key) = here.or(only).filter(|link| link.free).map(|link| link.key) else { return false };
        let owner = self.who(seen.pid, seen.ifindex.is_some());
        // Of several that hold it, the machine counts: the program that started it holds it too for a moment.
        let is_better =
            self.held.get(&key).is_none_or(|held| held.owner.kind != OwnerKind::Vm && owner.kind == OwnerKind::Vm);
        if is_better {
            self.held.insert(key, Held { seen, owner });
        }
        is_better
    }

    fn who(&self, pid: u32, is_tap: bool) -> Owner {
        let comm = std::fs::read(self.proc.join(pid.to_string()).join("comm")).unwrap_or_default();
        let mut owner = guest::owner(&strangers::cmdline(&self.proc, pid).unwrap_or_default(), &comm, pid);
        if is_tap && owner.kind == OwnerKind::Process {
            "macvtap".clone_into(&mut owner.by);
        }
        owner
    }

    fn end_passage(&mut self, now_ns: u64) {
        let Some(passage) = self.passage.take() else { return };
        self.passages = self.passages.saturating_add(1);
        let likely = self.wanted().find(|link| link.likely);
        let problem = likely.filter(|_| passage.refused > 0).map(|link| Problem {
            source: "owners".to_owned(),
            text: format!(
                "cannot see who holds {}: the descriptors of {} processes of other users may not be listed; run as root to see",
                link.name, passage.refused
            ),
        });
        let later = self.passages.saturating_sub(HASTY).min(5);
        let pause_ns = match likely {
            Some(_) => (PAUSE_NS << later).min(LONGEST_PAUSE_NS),
            None if self.passages < HASTY => PAUSE_NS * 2,
            None => LONGEST_PAUSE_NS,
        };
        let is_done = self.wanted().next().is_none();
        self.due_ns = if is_done { u64::MAX } else { now_ns.saturating_add(pause_ns) };
        self.problem = problem;
    }
}

fn is_held(kind: &Kind) -> bool {
    matches!(kind, Kind::Tun | Kind::Tap) || is_by_index(kind)
}

/// macvtap and ipvtap are opened as `/dev/tapN`, after their index.
fn is_by_index(kind: &Kind) -> bool {
    matches!(kind, Kind::Macvtap) || kind.word() == "ipvtap"
}

impl Holdable {
    fn of(link: &LinkFacts, free: bool) -> Self {
        let likely = matches!(link.state, LinkState::Up | LinkState::Unknown | LinkState::Dormant);
        Self { key: link.key(), name: link.name.clone(), by_index: is_by_index(&link.kind), free, likely }
    }
}
