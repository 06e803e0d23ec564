//! The network namespaces of the machine.

use serde::{Deserialize, Serialize};

/// One network namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Space {
    /// Its inode, which is its name everywhere else.
    pub netns: u64,
    /// The file name it is kept under in `/run/netns` or `/run/docker/netns`; control characters replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A process that lives in it: the one with the lowest pid; none where no process does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// It stands still and is read less often than every tick.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rests: bool,
}
