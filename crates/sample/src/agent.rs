//! What a vnettop and its agent on another host say to each other beside the items of the stream: one JSON object a line, in the
//! stream from the agent, and on the agent's standard input to it.

use super::{CoreSet, OnRequest, SteerRequest, ThreadId};
use serde::{Deserialize, Serialize};

/// One thread and the mask it should get.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PinRequest {
    /// The thread; never another one that got its tid since.
    pub thread: ThreadId,
    /// Its name and role, for people.
    pub label: String,
    /// The mask asked for.
    pub cores: CoreSet,
}

/// One sentence of what came of a wish.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutcomeLine {
    /// It went otherwise than asked.
    pub warning: bool,
    /// The sentence.
    pub text: String,
}

/// What an agent is asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentCommand {
    /// Samples at this interval, ns.
    Interval(u64),
    /// This process watched too, instead of the one named so before.
    Watch {
        /// Its number on that host.
        pid: u32,
        /// Whether the processes that descend from it are watched too.
        with_descendants: bool,
    },
    /// More counted by the kernel, or no longer.
    Want(OnRequest),
    /// These masks set, each written down in the journal of that host before.
    Pin(Vec<PinRequest>),
    /// These settings of links changed, each written down in the journal of that host before.
    Steer(Vec<SteerRequest>),
    /// Every mask and setting restored that this agent has replaced.
    Restore,
    /// Every mask and setting restored that earlier agents have left behind, whose connections were lost.
    RestoreLeft,
}

/// What an agent answers to [`AgentCommand::Pin`] and [`AgentCommand::Restore`], after the events of what was done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentReply {
    /// One sentence each, in order.
    #[serde(default)]
    pub lines: Vec<OutcomeLine>,
    /// How many threads this agent has pinned and not restored.
    #[serde(default)]
    pub pins: usize,
    /// How many files of links' settings it has changed and not restored.
    #[serde(default)]
    pub steers: usize,
    /// Another vnettop that runs has some of the threads, or may have.
    #[serde(default)]
    pub taken: bool,
}

/// How a host that is reached over ssh stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostState {
    /// ssh was started; nothing came yet.
    Connecting,
    /// Samples come. The version of vnettop there.
    Live(String),
    /// Nothing came for longer than it should: what is shown is old.
    Silent,
    /// The connection is gone, or was never there: why, in one sentence, and after how many seconds the next one is tried.
    Lost {
        /// What failed and what to do about it.
        why: String,
        /// Seconds until it is tried again.
        again_s: u64,
    },
}
