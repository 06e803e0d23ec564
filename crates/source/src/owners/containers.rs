//! Which container, pod or machine each network namespace belongs to: that of its oldest inhabitant that belongs to one. Once
//! known it stays until the namespace goes, whatever its processes do. It names nothing beyond what a control group and
//! the process that watches over a container say.

use super::{cgroup, container_monitor};
use crate::{netns_of, proc_file};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use vnettop_sample::{Owner, OwnerBy, OwnerKind, Space};

/// Pause, ns, after which a namespace without a known owner is asked again; it doubles with each try.
const PAUSE_NS: u64 = 1_000_000_000;
const LONGEST_PAUSE_NS: u64 = 64_000_000_000;
/// Namespaces that are asked in one tick at most: about 15 µs for a process with a group of its own, 50 without.
const MOST: usize = 256;
/// A `cgroup` file is no longer than this, bytes.
const LONGEST: u64 = 16 * 1024;

/// Namespaces and their owners.
#[derive(Debug, Default)]
pub(super) struct Containers {
    proc: PathBuf,
    own: u64,
    known: BTreeMap<u64, KnownContainer>,
    /// When to look again, if nothing happens before.
    pub due_ns: u64,
}

#[derive(Debug, Clone)]
struct KnownContainer {
    pid: u32,
    owner: Option<Owner>,
    ask_ns: u64,
    pause_ns: u64,
}

impl Containers {
    /// `own` is vnettop's own namespace, which is no container's, whatever processes live in it.
    pub fn new(proc: &Path, own: u64) -> Self {
        Self { proc: proc.to_owned(), own, known: BTreeMap::new(), due_ns: u64::MAX }
    }

    /// The owner of a namespace; `None` when unknown.
    pub fn owner(&self, netns: u64) -> Option<&Owner> {
        self.known.get(&netns)?.owner.as_ref()
    }

    /// Asks soon for the owner of a namespace with a new inhabitant.
    pub fn ask_soon(&mut self, netns: u64, now_ns: u64) {
        if let Some(known) = self.known.get_mut(&netns).filter(|known| known.owner.is_none()) {
            (known.ask_ns, known.pause_ns) = (known.ask_ns.min(now_ns.saturating_add(PAUSE_NS)), PAUSE_NS);
            self.due_ns = self.due_ns.min(known.ask_ns);
        }
    }

    /// Follows the namespaces; true when an owner was found or lost. `living` gives the inhabitants of one, the oldest first.
    pub fn look(&mut self, spaces: &[Space], living: impl Fn(u64) -> Vec<u32>, now_ns: u64) -> bool {
        let mut known = std::mem::take(&mut self.known);
        let (before, mut kept, mut found, mut asked) = (known.values().filter(|k| k.owner.is_some()).count(), 0, 0, 0);
        self.due_ns = u64::MAX;
        for space in spaces {
            let Some(pid) = space.pid.filter(|&pid| pid != 1 && space.netns != self.own) else {
                // Its last process may have left: it stays whose it was.
                if let Some(was) = known.remove(&space.netns).filter(|was| was.owner.is_some()) {
                    kept += 1;
                    self.known.insert(space.netns, was);
                }
                continue;
            };
            let was = known.remove(&space.netns).filter(|was| was.owner.is_some() || was.pid == pid);
            let mut now = was.unwrap_or(KnownContainer { pid, owner: None, ask_ns: now_ns, pause_ns: PAUSE_NS });
            kept += usize::from(now.owner.is_some());
            if now.owner.is_none() && now.ask_ns <= now_ns && asked < MOST {
                asked += 1;
                now.owner = living(space.netns).iter().find_map(|&pid| of(&self.proc, pid, space.netns));
                now.ask_ns = now_ns.saturating_add(now.pause_ns);
                now.pause_ns = (now.pause_ns * 2).min(LONGEST_PAUSE_NS);
                found += usize::from(now.owner.is_some());
            }
            if now.owner.is_none() {
                self.due_ns = self.due_ns.min(now.ask_ns);
            }
            self.known.insert(space.netns, now);
        }
        found > 0 || kept != before
    }
}

/// Whose a process is; none also when it is no longer the one that lives there.
fn of(proc: &Path, pid: u32, netns: u64) -> Option<Owner> {
    let directory = proc.join(pid.to_string());
    let text = proc_file::beginning(&directory.join("cgroup"), LONGEST).ok()?;
    let mut owner = cgroup::owner(&text).or_else(|| container_monitor::owner(proc, pid))?;
    if let (OwnerKind::Container, OwnerBy::Podman | OwnerBy::Crio, Some(id)) = (owner.kind, &owner.by, &owner.id)
        && *id == owner.name
    {
        owner.name = container_monitor::name(proc, pid, id).unwrap_or(owner.name);
    }
    (netns_of(&directory) == Some(netns)).then_some(owner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    const ID: &str = "a51cac518006d1e5b7e2d64fbb2d2f0a1a8f7c1e0c9b8a7d6e5f4a3b2c1d0e9f";
    const SECOND: u64 = 1_000_000_000;

    fn process(proc: &Path, pid: u32, netns: u64, cgroup: &str) {
        let directory = proc.join(pid.to_string());
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(directory.join("ns")).expect("writable");
        fs::write(directory.join("cgroup"), format!("0::{cgroup}\n")).expect("writable");
        symlink(format!("net:[{netns}]"), directory.join("ns/net")).expect("writable");
    }

    /// In each namespace lives who is told of it.
    fn living(spaces: &[Space]) -> impl Fn(u64) -> Vec<u32> {
        |netns| spaces.iter().filter(|space| space.netns == netns).filter_map(|space| space.pid).collect()
    }

    fn space(netns: u64, pid: Option<u32>) -> Space {
        Space { netns, name: None, pid, rests: false }
    }

    #[test]
    fn a_namespace_belongs_to_the_container_of_its_process_until_it_goes() {
        let proc = tempfile::tempdir().expect("writable");
        process(proc.path(), 1, 10, "/docker/host");
        process(proc.path(), 7, 20, &format!("/docker/{ID}"));
        process(proc.path(), 8, 30, "/user.slice");
        let mut containers = Containers::new(proc.path(), 99);
        let spaces = [space(10, Some(1)), space(20, Some(7)), space(30, Some(8)), space(40, None)];
        assert!(containers.look(&spaces, living(&spaces), 0), "there is news");
        assert_eq!(containers.owner(20).expect("its container").name, "a51cac518006");
        assert_eq!([10, 30, 40].map(|netns| containers.owner(netns).is_some()), [false; 3], "nobody else's");
        assert_eq!(containers.due_ns, SECOND, "the one without an owner is asked again");
        process(proc.path(), 8, 30, "/lxc.payload.web");
        assert!(!containers.look(&spaces, living(&spaces), SECOND / 2), "not yet");
        assert!(containers.look(&spaces, living(&spaces), SECOND), "a process may enter its group late");
        assert_eq!(containers.owner(30).expect("a machine").name, "web");
        assert_eq!(containers.due_ns, u64::MAX, "nothing is left to ask");
        let others = [space(20, Some(9)), space(30, None)];
        assert!(!containers.look(&others, living(&others), 2 * SECOND), "it stays whoever lives there");
        assert_eq!(containers.owner(20).expect("its container").name, "a51cac518006", "also without its process");
        assert!(containers.look(&[space(30, None)], |_| Vec::new(), 3 * SECOND), "a namespace that is gone");
        assert!(containers.owner(20).is_none(), "belongs to nobody");
    }

    #[test]
    fn whoever_comes_from_the_host_takes_no_name_away_and_neither_does_a_sidecar() {
        let proc = tempfile::tempdir().expect("writable");
        process(proc.path(), 40, 20, "/user.slice");
        process(proc.path(), 32_000, 20, &format!("/docker/{ID}"));
        process(proc.path(), 41, 20, "/lxc.payload.sidecar");
        process(proc.path(), 42, 21, "/lxc.payload.web");
        let spaces = [space(20, Some(40)), space(21, Some(43))];
        // The first was there before the container, the second went elsewhere.
        let living = |netns| if netns == 20 { vec![40, 32_000, 41] } else { vec![44, 43] };
        let mut containers = Containers::new(proc.path(), 99);
        assert!(containers.look(&spaces, living, 0), "one of them has an owner");
        assert_eq!(containers.owner(20).expect("the container").name, "a51cac518006", "the oldest that has one");
        assert!(containers.owner(21).is_none(), "nobody is seen who could tell");
        for second in [1, 3, 7] {
            assert!(!containers.look(&spaces, living, second * SECOND), "nor later");
        }
        containers.ask_soon(21, 8 * SECOND);
        assert_eq!(containers.due_ns, 9 * SECOND, "somebody has come, and is asked soon");
        assert!(containers.look(&spaces, |_| vec![44, 43, 42], 9 * SECOND));
        assert_eq!(containers.owner(21).expect("a machine").name, "web");
    }

    #[test]
    fn a_number_that_another_process_has_by_now_tells_nothing() {
        let proc = tempfile::tempdir().expect("writable");
        process(proc.path(), 7, 21, &format!("/docker/{ID}"));
        let mut containers = Containers::new(proc.path(), 99);
        assert!(!containers.look(&[space(20, Some(7))], |_| vec![7], 0), "it lives elsewhere");
    }

    #[test]
    fn the_own_namespace_is_no_container_s() {
        let proc = tempfile::tempdir().expect("writable");
        process(proc.path(), 7, 20, &format!("/docker/{ID}"));
        let mut containers = Containers::new(proc.path(), 20);
        assert!(
            !containers.look(&[space(20, Some(7))], |_| vec![7], 0),
            "a container on the host's network has none of its own"
        );
    }
}
