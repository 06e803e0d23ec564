//! What `vnettop doctor` has read of this machine: plain facts, each with the reason where it could not be read. Nothing here
//! judges; `derive/doctor` does.

use super::{Host, Topology};
use std::path::PathBuf;

/// A fact, or in a few words why it is not known.
pub type KnownFact<T> = Result<T, String>;

/// Everything that was looked at.
#[derive(Debug, Clone)]
pub struct DoctorFacts {
    /// Wall clock, ms since 1970.
    pub wall_ms: u64,
    /// The machine and its policy.
    pub host: Host,
    /// What the kernel answers.
    pub kernel: KernelFeatures,
    /// What vnettop may do.
    pub rights: HeldRights,
    /// What of the machine can be seen from here.
    pub sight: Sight,
    /// Programs that vnettop works with.
    pub programs: ProgramsFound,
    /// What would show the screen.
    pub terminal: TerminalFacts,
}

/// What the kernel answers.
#[derive(Debug, Clone)]
pub struct KernelFeatures {
    /// Links counted by `RTM_GETSTATS` in the own namespace.
    pub links: KnownFact<usize>,
    /// The generic netlink family `ethtool` is listed (Linux 5.6).
    pub ethtool: KnownFact<bool>,
    /// `tcp_diag`.
    pub tcp_diag: KnownFact<ModuleState>,
    /// `udp_diag`.
    pub udp_diag: KnownFact<ModuleState>,
    /// `/sys/kernel/btf/vmlinux` is there.
    pub btf: KnownFact<bool>,
    /// Whether the BPF programs for migrations can be loaded, and how they would be attached.
    pub moves: BpfAnswer,
    /// Whether the BPF program for dropped packets can be loaded, and how it would be attached.
    pub drops: BpfAnswer,
    /// Tracefs, by way of which migrations are traced without BTF.
    pub tracefs: KnownFact<TracefsState>,
    /// `pidfd_open` works (Linux 5.3).
    pub pidfd: KnownFact<bool>,
}

/// Where a part of the kernel is that may be a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModuleState {
    /// In the running kernel.
    Present,
    /// In a file, which the kernel loads at the first question.
    Loadable,
    /// Not in the running kernel; which modules there are could not be read.
    NotLoaded,
    /// Neither in the running kernel nor in a file that it would load.
    Absent,
}

/// What came of loading a BPF program without attaching it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BpfAnswer {
    /// The kernel takes it.
    Loads,
    /// The right is missing.
    NoRight,
    /// It needs BTF, which this kernel has not.
    NoBtf,
    /// It was not tried: /proc is not that of the machine's own process namespace.
    Elsewhere,
    /// Something else, in the kernel's words.
    Refused(String),
}

/// Where tracefs is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TracefsState {
    /// Its event of migrations can be read.
    Readable,
    /// It is mounted nowhere that can be read, and the kernel knows it.
    Known,
    /// The kernel does not know it.
    Absent,
}

/// What keeps vnettop apart from the machine that it runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Containment {
    /// Nothing.
    Nothing,
    /// A container that was started by `docker`, or by an engine that mounts the same files.
    Docker,
    /// A container that was started by `podman`.
    Podman,
    /// A process namespace of its own, which no engine is known to have made.
    PidNamespace,
}

/// What vnettop may do.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools, reason = "one for each capability, and where it would be had")]
pub struct HeldRights {
    /// Effective user.
    pub uid: u32,
    /// That user is one of a user namespace, not of the machine.
    pub user_namespace: KnownFact<bool>,
    /// What keeps vnettop apart from the machine.
    pub contained: Containment,
    /// There is a `sudo` in `PATH`.
    pub sudo: bool,
    /// `CAP_BPF`.
    pub bpf: bool,
    /// `CAP_PERFMON`.
    pub perfmon: bool,
    /// `CAP_SYS_ADMIN`.
    pub sys_admin: bool,
    /// `CAP_SYS_PTRACE`.
    pub sys_ptrace: bool,
    /// `CAP_SYS_NICE`.
    pub sys_nice: bool,
    /// `CAP_SYSLOG`.
    pub syslog: bool,
    /// This kernel has a `CAP_BPF` (Linux 5.8).
    pub knows_bpf: bool,
    /// The kernel gives addresses of functions to nobody (`kernel.kptr_restrict` is 2).
    pub hides_functions: bool,
    /// A thread may have real-time priority: tried on one that ended at once.
    pub realtime: KnownFact<()>,
    /// Bytes that may be locked in memory, which BPF's are before Linux 5.11; none where nothing limits them.
    pub locked_memory: Option<u64>,
    /// The directory of the journals of pins, where one can be written there; vnettop pins nothing without.
    pub journals: KnownFact<String>,
    /// Files that may be open at once, and the least that vnettop must have.
    pub open_files: (usize, usize),
}

/// What of the machine can be seen from here.
#[derive(Debug, Clone)]
pub struct Sight {
    /// Cores in `/proc/stat`.
    pub cores: KnownFact<usize>,
    /// /proc can be listed, and is one.
    pub processes: KnownFact<()>,
    /// /proc is that of another process namespace than vnettop's own.
    pub foreign_proc: bool,
    /// What keeps processes out of sight, a sentence each.
    pub hidden: Vec<String>,
    /// `/sys/devices/system/cpu` can be listed.
    pub sysfs: KnownFact<()>,
    /// What sets the clock of core 0 (`scaling_driver`); none where nothing does.
    pub clock_driver: Option<String>,
    /// Where the cores sit.
    pub topology: Topology,
    /// The virtual machine that this is, in the firmware's words; none where no hypervisor is visible.
    pub hypervisor: Option<String>,
    /// What the cores did for a moment; none where it could not be read.
    pub load: Option<MomentaryLoad>,
    /// Network namespaces that vnettop can look into.
    pub namespaces: usize,
    /// vnettop is in another network namespace than process 1.
    pub inside: bool,
    /// What of the namespaces cannot be seen, a sentence each.
    pub unseen: Vec<String>,
}

/// What all cores did between two looks, clock ticks (`/proc/stat`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MomentaryLoad {
    /// Programs, the kernel, interrupts.
    pub busy: u64,
    /// What a hypervisor gave to others.
    pub steal: u64,
    /// All of it, idle time too.
    pub all: u64,
}

/// Programs that vnettop works with.
#[derive(Debug, Clone)]
pub struct ProgramsFound {
    /// Docker's sockets.
    pub docker: Vec<SocketFound>,
    /// `DOCKER_HOST`, where it is no socket of this machine.
    pub docker_elsewhere: Option<String>,
    /// Database sockets of Open vSwitch.
    pub ovs: Vec<SocketFound>,
    /// The first `iperf3` of `PATH`; none where there is none.
    pub iperf3: KnownFact<Option<Iperf3Found>>,
    /// The package manager of `PATH`, as the command that installs a package.
    pub installer: Option<&'static str>,
}

/// A socket of another program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocketFound {
    /// Where.
    pub path: PathBuf,
    /// What is there.
    pub state: SocketState,
}

/// What is at a place where a socket may be. It is looked at, not connected to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SocketState {
    /// Nothing.
    Absent,
    /// A socket that may be opened.
    MayOpen,
    /// A socket, or a directory above it, that may not.
    Denied,
    /// Something else, or it could not be looked at.
    Unknown(String),
}

/// An iperf3.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Iperf3Found {
    /// The file.
    pub path: PathBuf,
    /// Major and minor version.
    pub version: (u32, u32),
    /// The version in its own words.
    pub words: String,
}

/// What would show the screen.
#[derive(Debug, Clone)]
pub struct TerminalFacts {
    /// Standard output is a terminal.
    pub is_output: bool,
    /// Columns and rows of the terminal; none where there is none.
    pub size: Option<(u16, u16)>,
    /// `TERM`.
    pub term: Option<String>,
    /// The locale has UTF-8, and only ASCII was not asked for.
    pub utf8: bool,
    /// Colour was not declined.
    pub color: bool,
}
