//! Which network namespaces are wanted.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Which namespaces are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// Every one of the machine.
    All,
    /// vnettop's own.
    Own,
    /// Those of these names or inodes, or with these processes in them; `self` is vnettop's own.
    Named(Vec<String>),
}

impl Choice {
    /// All of them where vnettop runs in the machine's own namespace, that of process 1 (or of the kernel's threads, 2,
    /// where that one hides): who enters another one wants to see that one.
    #[must_use]
    pub fn usual() -> Self {
        let inode = |path: &str| Path::new(path).metadata().ok().map(|file| file.ino());
        let first = inode("/proc/1/ns/net").or_else(|| inode("/proc/2/ns/net"));
        match (first, inode("/proc/thread-self/ns/net")) {
            (Some(first), Some(own)) if first != own => Self::Own,
            _ => Self::All,
        }
    }
}

/// What vnettop's own namespace is called in a choice.
pub const SELF: &str = "self";
