//! When to look for the process that holds a tun, tap or macvtap open, and what is known of it. All processes are looked
//! through only while there is such a link whose holder is not known, for a hundredth of a core at most. Another user's
//! need rights.

use crate::slow::Slow;
use crate::slow::device_holders::{Held, Holdable, HolderSearch, HoldersFound, search};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use vnettop_sample::{Kind, LinkFacts, LinkKey, LinkState, Owner, Problem, ProblemSource};

/// Pause between the first passages, ns: who makes a link opens it at once.
const PAUSE_NS: u64 = 1_000_000_000;
/// Number of such searches.
const HASTY: u32 = 5;
/// Longest pause later on, ns.
const LONGEST_PAUSE_NS: u64 = 32_000_000_000;
/// Time between two looks at the known holders, ns: usual, and while links change.
const CHECK_NS: u64 = 4_000_000_000;
const LEAST_CHECK_NS: u64 = 1_000_000_000;
/// Shortest time from one search to the next, as a multiple of the CPU time of the first: 1 % of a core at most.
const REST: u64 = 100;
/// Longest wait of a tick with new links for their holders; of the very first tick.
const PATIENCE: Duration = Duration::from_millis(10);
const FIRST_PATIENCE: Duration = Duration::from_millis(100);
/// Age at which a search counts as stuck at a process, ns (the largest machines take some seconds), and most stuck searches.
const STUCK_NS: u64 = 20_000_000_000;
const MOST_STUCK: usize = 4;

/// Holders known and wanted.
#[derive(Debug, Default)]
pub(super) struct Holders {
    proc: PathBuf,
    /// Every link that may have a holder, sorted.
    links: Vec<Holdable>,
    /// The namespaces whose links are seen, sorted.
    seen_in: Vec<u64>,
    held: BTreeMap<LinkKey, Held>,
    searching: Option<Slow<HoldersFound>>,
    /// Searches that hang at a process.
    stuck: Vec<Slow<HoldersFound>>,
    /// How long the next tick with new links waits.
    patience: Duration,
    /// Passages through all processes since the links wanted were others.
    passages: u32,
    due_ns: u64,
    check_ns: u64,
    began_ns: u64,
    rested_ns: u64,
    problem: Option<Problem>,
}

impl Holders {
    pub fn new(proc: &Path) -> Self {
        Self {
            proc: proc.to_owned(),
            patience: FIRST_PATIENCE,
            due_ns: u64::MAX,
            check_ns: u64::MAX,
            ..Self::default()
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
        let is_awaited = self.searching.is_some() || !self.stuck.is_empty();
        if is_awaited { 0 } else { self.due_ns.min(self.check_ns).max(self.rested_ns) }
    }

    /// What cannot be seen and why.
    pub fn problems(&self) -> impl Iterator<Item = Problem> {
        let stuck = self.stuck.iter().map(|search| Problem {
            source: ProblemSource::Processes,
            text: format!(
                "/proc of process {} does not respond (FUSE?): its tun and tap devices are unknown",
                search.at()
            ),
        });
        self.problem.iter().cloned().chain(stuck)
    }

    /// Follows the links that may have a holder; those that are not free belong to somebody anyhow.
    pub fn follow(&mut self, links: &[Arc<LinkFacts>], is_free: impl Fn(&LinkFacts) -> bool, now_ns: u64) {
        let held = links.iter().filter(|link| is_held(&link.kind));
        let all: Vec<Holdable> = held.map(|link| holdable(link, is_free(link))).collect();
        if all.is_empty() && self.links.is_empty() {
            return;
        }
        self.seen_in = links.iter().map(|link| link.netns).collect();
        self.seen_in.dedup();
        if all != self.links {
            (self.links, self.passages, self.due_ns) = (all, 0, now_ns);
        }
        self.held.retain(|key, _| self.links.iter().any(|link| link.key == *key));
        if !self.held.is_empty() {
            self.check_ns = self.check_ns.min(now_ns.max(self.began_ns.saturating_add(LEAST_CHECK_NS)));
        }
        if self.wanted().next().is_none() {
            (self.due_ns, self.problem) = (u64::MAX, None);
        }
    }

    /// Links whose holder is worth looking for.
    fn wanted(&self) -> impl Iterator<Item = &Holdable> {
        self.links.iter().filter(|link| link.free && !self.held.contains_key(&link.key))
    }

    /// Takes what was found, and begins to look again, if it is time; true when a holder is another one.
    pub fn look(&mut self, now_ns: u64) -> bool {
        self.stuck.retain(|search| !search.is_over());
        let is_news = self.take_within(Duration::ZERO, now_ns);
        let patience = self.begin(now_ns);
        self.take_within(patience, now_ns) || is_news
    }

    fn take_within(&mut self, patience: Duration, now_ns: u64) -> bool {
        let found = Slow::take_within(&mut self.searching, patience);
        if now_ns.saturating_sub(self.began_ns) >= STUCK_NS && self.stuck.len() < MOST_STUCK {
            self.stuck.extend(self.searching.take());
        }
        found.is_some_and(|found| self.learn(found, now_ns))
    }

    /// Begins, if it is time; how long the tick may wait for it.
    fn begin(&mut self, now_ns: u64) -> Duration {
        if self.searching.is_some() || now_ns < self.due_ns.min(self.check_ns).max(self.rested_ns) {
            return Duration::ZERO;
        }
        self.searching = search(HolderSearch {
            proc: self.proc.clone(),
            links: self.links.clone(),
            seen_in: self.seen_in.clone(),
            held: self.held.clone(),
            all: now_ns >= self.due_ns,
            avoided: self.stuck.iter().map(Slow::at).collect(),
        });
        // Where there is no thread one is tried for again.
        (self.began_ns, self.rested_ns) = (now_ns, now_ns.saturating_add(PAUSE_NS));
        if self.passages == 0 { std::mem::replace(&mut self.patience, PATIENCE) } else { Duration::ZERO }
    }

    /// Lets a search end that is underway.
    pub fn rest(&mut self) {
        let _begins_anew = Slow::take_within(&mut self.searching, FIRST_PATIENCE);
    }

    fn learn(&mut self, found: HoldersFound, now_ns: u64) -> bool {
        self.rested_ns = self.began_ns.saturating_add(found.cost_ns.saturating_mul(REST));
        let before = std::mem::replace(&mut self.held, found.held);
        self.check_ns = if self.held.is_empty() { u64::MAX } else { now_ns.saturating_add(CHECK_NS) };
        if found.lost {
            self.passages = 0;
        }
        // Where the links are others by now they are looked for next.
        if let Some(refused) = found.refused.filter(|_| found.links == self.links) {
            self.end_passage(refused, now_ns);
        }
        before != self.held
    }

    fn end_passage(&mut self, refused: usize, now_ns: u64) {
        self.passages = self.passages.saturating_add(1);
        let likely = self.wanted().find(|link| link.likely);
        let problem = likely.filter(|_| refused > 0).map(|link| Problem {
            source: ProblemSource::Owners,
            text: format!(
                "owner of {} unknown: descriptors of {refused} processes of other users are not readable; run as root",
                link.name
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

/// macvtap and ipvtap are opened as `/dev/tapN`, after their index, or by a node that somebody made.
fn is_by_index(kind: &Kind) -> bool {
    matches!(kind, Kind::Macvtap | Kind::Ipvtap)
}

fn holdable(link: &LinkFacts, free: bool) -> Holdable {
    let likely = matches!(link.state, LinkState::Up | LinkState::Unknown | LinkState::Dormant);
    let mac = link.mac.clone().filter(|_| link.kind == Kind::Macvtap);
    Holdable { key: link.key(), name: link.name.clone(), by_index: is_by_index(&link.kind), mac, free, likely }
}

#[cfg(test)]
impl Holders {
    pub fn is_searching(&self) -> bool {
        self.searching.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use std::fs;
    use std::os::unix::fs::symlink;
    use vnettop_sample::Ifindex;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn who_makes_its_reader_wait_is_told_of_and_keeps_nobody_else_unknown() {
        let proc = tempfile::tempdir().expect("writable");
        for pid in ["70", "71"] {
            for name in ["ns", "fd", "fdinfo"] {
                fs::create_dir_all(proc.path().join(pid).join(name)).expect("writable");
            }
            symlink("net:[10]", proc.path().join(pid).join("ns/net")).expect("writable");
            symlink("/dev/net/tun", proc.path().join(pid).join("fd/5")).expect("writable");
        }
        let waits = proc.path().join("70/fdinfo/5");
        mknodat(CWD, &waits, FileType::Fifo, Mode::RWXU, 0).expect("writable");
        fs::write(proc.path().join("71/fdinfo/5"), "iff:\ttun1\n").expect("writable");
        let key = |index| LinkKey { netns: 10, ifindex: Ifindex(index) };
        let tun = |index, name| Arc::new(LinkFacts::new(key(index), name, Kind::Tun));
        let mut holders = Holders::new(proc.path());
        holders.follow(&[tun(2, "tun0"), tun(3, "tun1")], |_| true, 0);
        assert!(!holders.look(0) && !holders.look(19 * SECOND), "one that makes it wait lets nothing be found");
        assert_eq!(holders.problems().count(), 0, "for a while that is nobody's fault");
        let mut now_ns = 20 * SECOND;
        let mut look = |holders: &mut Holders, pace_ns| {
            now_ns += pace_ns;
            assert!(now_ns < 60 * SECOND, "it comes to an end");
            std::thread::sleep(Duration::from_millis(1));
            holders.look(now_ns);
        };
        while holders.problems().next().is_none() {
            look(&mut holders, SECOND);
        }
        while holders.holder(key(3)).is_none() {
            look(&mut holders, SECOND / 1000);
        }
        assert_eq!(holders.holder(key(3)).map(|(pid, _)| pid), Some(71), "the other tun has its holder");
        let said = holders.problems().next().expect("it is told");
        assert!(said.text.contains("process 70"), "whose fault it is: {}", said.text);
        fs::write(waits, "iff:\ttun0\n").expect("its reader waits");
        while holders.problems().next().is_some() {
            look(&mut holders, SECOND / 1000);
        }
    }
}
