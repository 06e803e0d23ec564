//! Which network namespaces are wanted.

use super::mounts::{self, Mount};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// So many names are listed to somebody who has written another one.
const MOST_LISTED: usize = 12;

/// What vnettop's own namespace is called in a choice.
pub const SELF: &str = "self";

/// Which namespaces are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// Every one of the machine.
    All,
    /// vnettop's own.
    Own,
    /// Namespaces of these names or inodes, or with these processes in them; `self` is vnettop's own.
    Named(Vec<String>),
}

impl Choice {
    /// All namespaces when vnettop runs in the machine's own, that of process 1 (or of the kernel's threads, 2, when process 1 is
    /// hidden); else vnettop's own alone: who enters another namespace wants to see that one.
    #[must_use]
    pub fn usual() -> Self {
        let inode = |path: &str| Path::new(path).metadata().ok().map(|file| file.ino());
        let first = inode("/proc/1/ns/net").or_else(|| inode("/proc/2/ns/net"));
        match (first, inode("/proc/thread-self/ns/net")) {
            (Some(first), Some(own)) if first != own => Self::Own,
            _ => Self::All,
        }
    }

    /// The sentence that a namespace of this choice is not there, with those that are; none where all are.
    #[must_use]
    pub fn missing(&self) -> Option<String> {
        let Self::Named(names) = self else { return None };
        let text = fs::read("/proc/thread-self/mountinfo").unwrap_or_default();
        let mounts = mounts::mounts(&text);
        let is_there = |name: &str| match name.parse::<u64>() {
            _ if name == SELF || mounts.iter().any(|mount| mount.name() == name) => true,
            Ok(number) => {
                Path::new(&format!("/proc/{number}/ns/net")).symlink_metadata().is_ok() || is_inode(number, &mounts)
            }
            Err(_) => false,
        };
        let missing = names.iter().find(|name| !is_there(name))?;
        let mut known: Vec<String> = mounts.iter().map(Mount::name).collect();
        known.sort_unstable();
        known.dedup();
        let unlisted = known.len().saturating_sub(MOST_LISTED);
        known.truncate(MOST_LISTED);
        let more = if unlisted > 0 { format!(" and {unlisted} more (lsns -t net)") } else { String::new() };
        let listed = if known.is_empty() { String::new() } else { format!(", {}{more}", known.join(", ")) };
        Some(format!(
            "there is no network namespace '{missing}': choose from all, self{listed}; or give an inode or a pid"
        ))
    }
}

/// Some process or mount has this namespace; processes that may not be looked at may have it too.
fn is_inode(number: u64, mounts: &[Mount]) -> bool {
    let mut processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let of = |process: fs::DirEntry| match process.path().join("ns/net").metadata() {
        Ok(file) => file.ino() == number,
        Err(error) => error.kind() == ErrorKind::PermissionDenied,
    };
    mounts.iter().any(|mount| mount.netns == number) || processes.any(of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_that_is_not_there_is_answered_with_those_that_are() {
        let missing = |name: &str| Choice::Named(vec![name.to_owned()]).missing();
        let sentence = missing("no-such-namespace").expect("nobody has called one so");
        assert!(sentence.contains("'no-such-namespace'") && sentence.contains("all, self"), "{sentence}");
        let own = Path::new("/proc/thread-self/ns/net").metadata().expect("it is there").ino();
        for there in [SELF.to_owned(), own.to_string(), std::process::id().to_string()] {
            assert_eq!(missing(&there), None, "{there} is there");
        }
        assert_eq!((Choice::All.missing(), Choice::Own.missing()), (None, None));
    }
}
