//! The network namespaces of the machine: finding them, keeping each open, running something inside one.

use crate::sample::{Problem, Space};
use crate::source::Roots;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

/// Finds network namespaces and holds them open.
#[derive(Debug)]
pub struct Spaces {
    own: u64,
    known: BTreeMap<u64, Arc<OwnedFd>>,
    published: Arc<Vec<Space>>,
    problems: Vec<Problem>,
}

impl Spaces {
    /// Knows its own namespace only.
    #[must_use]
    pub fn new(_roots: &Roots) -> Self {
        let own = Path::new("/proc/thread-self/ns/net").metadata().map_or(0, |file| file.ino());
        Self { own, known: BTreeMap::new(), published: Arc::default(), problems: Vec::new() }
    }

    /// Inode of vnettop's own namespace.
    #[must_use]
    pub fn own(&self) -> u64 {
        self.own
    }

    /// Looks for namespaces that came or went.
    pub fn read(&mut self) -> Arc<Vec<Space>> {
        Arc::clone(&self.published)
    }

    /// What cannot be seen and why.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Runs something inside a namespace, on a thread of its own that ends with it: whatever it opens stays bound to that
    /// namespace. In the own namespace it runs at once.
    ///
    /// # Errors
    /// The namespace is not known, may not be entered (`CAP_SYS_ADMIN`), or what ran failed.
    pub fn inside<T: Send + 'static>(
        &self,
        netns: u64,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        if netns == self.own {
            return work();
        }
        let file = self.known.get(&netns).cloned();
        let file = file.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the namespace is not known"))?;
        let enter = move || {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
            work()
        };
        let entered = std::thread::Builder::new().name("netns".to_owned()).spawn(enter)?;
        entered.join().unwrap_or_else(|_| Err(io::Error::other("the thread that enters it broke off")))
    }
}
