//! The network namespaces of the machine.

use serde::{Deserialize, Serialize};

/// One network namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Space {
    /// Its inode, which is its name everywhere else.
    pub netns: u64,
    /// The file name it is kept under in `/run/netns` or `/run/docker/netns`; control characters replaced.
    #[serde(default)]
    pub name: Option<String>,
    /// A process that lives in it: the one that was started first; none where no process does.
    #[serde(default)]
    pub pid: Option<u32>,
    /// It stands still and is read less often than every tick.
    #[serde(default)]
    pub rests: bool,
}

impl Space {
    /// What to call it in a few letters: its name, a process in it, its inode.
    #[must_use]
    pub fn label(&self) -> String {
        match (&self.name, self.pid) {
            (Some(name), _) => name.clone(),
            (None, Some(pid)) => format!("pid {pid}"),
            (None, None) => self.netns.to_string(),
        }
    }
}
