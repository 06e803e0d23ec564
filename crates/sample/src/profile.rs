//! What one core did for about a second: its stacks, sampled at a steady pace while that is asked for.

use super::CoreId;
use serde::{Deserialize, Serialize};

/// What the samples are taken by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ProfileClock {
    /// The core's cycles (`PERF_COUNT_HW_CPU_CYCLES`), which stand still while it is idle.
    Cycles,
    /// A timer (`PERF_COUNT_SW_CPU_CLOCK`), which waits where interrupts are off: such code is seen at its end.
    #[default]
    CpuClock,
}

/// The core whose stacks are sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProfileOf {
    /// The core of this number.
    Core(CoreId),
    /// The one that LIMIT names, which the face that shows it finds out.
    Limit,
}

/// The stacks of one core in a stretch of about a second; stretches follow each other.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreProfile {
    /// The core.
    pub core: CoreId,
    /// `CLOCK_MONOTONIC` at the start of the stretch, ns.
    pub from_ns: u64,
    /// `CLOCK_MONOTONIC` at its end, ns.
    pub to_ns: u64,
    /// What the samples were taken by.
    pub clock: ProfileClock,
    /// Samples asked for a second.
    pub hz: u32,
    /// Samples that the kernel took and had no room for.
    pub lost: u64,
    /// CPU time of the thread that reads and names them, ns.
    pub reader_ns: u64,
    /// Why functions have no names; none where they have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unnamed: Option<String>,
    /// Every function met, which `stacks` name by their place here.
    pub functions: Vec<ProfiledFunction>,
    /// The stacks, each with its samples, sorted by program and functions.
    pub stacks: Vec<ProfiledStack>,
}

/// A function of the kernel or of a program.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ProfiledFunction {
    /// Its name; none where it has none that can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The kernel's module, `bpf` for a BPF program, else the file of the program or library; none in the kernel itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// It is code of the kernel.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kernel: bool,
}

/// One stack of one process.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ProfiledStack {
    /// What the process is called; none where it ended before it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The process; 0 for the idle task.
    pub pid: u32,
    /// Places in the list of functions, from the innermost on.
    pub functions: Vec<u32>,
    /// Samples.
    pub samples: u32,
    /// What the samples stand for: ns of [`ProfileClock::CpuClock`], cycles of [`ProfileClock::Cycles`].
    pub weight: u64,
}

impl CoreProfile {
    /// Bytes that it takes in memory, about.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let stacks = self.stacks.iter().map(|stack| size_of::<ProfiledStack>() + 4 * stack.functions.len() + 16);
        stacks.sum::<usize>() + self.functions.len() * (size_of::<ProfiledFunction>() + 40)
    }
}
