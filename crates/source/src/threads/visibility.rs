//! What keeps other people's processes out of sight, told in a sentence: `hidepid`, and a /proc that belongs to another
//! process namespace.

use crate::Roots;
use procfs::FromRead;
use procfs::process::MountInfos;
use std::path::Path;
use vnettop_sample::{Problem, ProblemSource};

/// Whether the numbers in this /proc are the numbers of our own system calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Namespace {
    /// They are.
    Own,
    /// They mean other processes here.
    Other,
    /// Nobody's live /proc: a captured tree.
    Captured,
}

/// `/proc/self` names this process by the number it has in the namespace that the mount belongs to.
pub(super) fn namespace(proc: &Path) -> Namespace {
    match std::fs::read_link(proc.join("self")) {
        Ok(own) if own.to_str() == Some(std::process::id().to_string().as_str()) => Namespace::Own,
        Ok(_) => Namespace::Other,
        Err(_) => Namespace::Captured,
    }
}

/// The sentences, if any.
pub(super) fn problems(roots: &Roots, namespace: Namespace) -> Vec<Problem> {
    let proc = roots.proc.display();
    let mut problems = Vec::new();
    if namespace == Namespace::Other {
        problems.push(format!(
            "{proc} belongs to another PID namespace: its threads cannot be pinned from here; run vnettop in that namespace or mount a /proc of this one"
        ));
    }
    if !rustix::process::geteuid().is_root() && is_hidden(&roots.proc) {
        problems.push(format!(
            "{proc} is mounted with hidepid, so only your own processes are visible; run vnettop as root, or as a \
             member \
             of the group that the mount's gid= names"
        ));
    }
    problems.into_iter().map(|text| Problem { source: ProblemSource::Threads, text }).collect()
}

/// The mount hides processes, and really does so from us: the first process cannot be read.
fn is_hidden(proc: &Path) -> bool {
    let mounts = MountInfos::from_file(proc.join("self/mountinfo"));
    mounts.is_ok_and(|mounts| hides(&mounts, proc)) && std::fs::read(proc.join("1/stat")).is_err()
}

fn hides(mounts: &MountInfos, proc: &Path) -> bool {
    let mount = mounts.iter().rfind(|mount| mount.mount_point == proc && mount.fs_type == "proc");
    let option = mount.and_then(|mount| mount.super_options.get("hidepid").or(mount.mount_options.get("hidepid")));
    option.is_some_and(|value| !matches!(value.as_deref(), None | Some("0" | "off")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidepid_is_seen_in_the_mount_options_of_proc_alone() {
        let hides = |lines: &str| {
            let mounts = MountInfos::from_read(lines.as_bytes()).expect("mountinfo parses");
            super::hides(&mounts, Path::new("/proc"))
        };
        let line = |point: &str, options: &str| format!("22 27 0:21 / {point} rw,relatime - proc proc {options}\n");
        assert!(hides(&line("/proc", "rw,hidepid=invisible")), "a word since Linux 5.8");
        assert!(hides(&line("/proc", "rw,gid=5,hidepid=2")), "a number before");
        assert!(
            !hides(&line("/proc", "rw")) && !hides(&line("/proc", "rw,hidepid=off")),
            "an open /proc hides nothing"
        );
        assert!(!hides(&(line("/x/proc", "rw,hidepid=2") + &line("/proc", "rw"))), "another mount is not ours");
        assert!(!hides(&(line("/proc", "rw,hidepid=2") + &line("/proc", "rw"))), "the upper mount counts");
    }

    #[test]
    fn the_namespace_is_told_by_what_proc_calls_us() {
        assert_eq!(namespace(Path::new("/proc")), Namespace::Own, "the real /proc knows this process");
        let tree = tempfile::tempdir().expect("a temporary directory");
        assert_eq!(namespace(tree.path()), Namespace::Captured, "a tree without self is a capture");
        std::os::unix::fs::symlink("4", tree.path().join("self")).expect("writable");
        let expected = if std::process::id() == 4 { Namespace::Own } else { Namespace::Other };
        assert_eq!(namespace(tree.path()), expected, "another number is another namespace");
    }
}
