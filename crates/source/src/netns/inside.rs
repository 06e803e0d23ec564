//! Something that runs inside a network namespace.

use super::{Choice, Spaces};
use crate::sched;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

impl Spaces {
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
        let file = self.known.get(&netns).map(|known| Arc::clone(&known.file));
        let why = match self.choice {
            Choice::All => "it is gone or hidden",
            _ => "not selected: --netns all shows it",
        };
        let file = file.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, why))?;
        run_inside(file, work)
    }
}

/// Runs something inside the namespace that `file` is, on a thread of its own that ends with it.
pub(crate) fn run_inside<T: Send + 'static>(
    file: impl AsFd + Send + 'static,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let enter = move || {
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
        work()
    };
    let entered = sched::with_heirs(|| std::thread::Builder::new().name("netns".to_owned()).spawn(enter))?;
    entered.join().unwrap_or_else(|_| Err(io::Error::other("the thread entering it failed")))
}
