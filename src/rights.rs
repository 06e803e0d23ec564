//! The capabilities that vnettop keeps of those it was started with. Root has forty; watching and pinning need these, and a
//! recording that is played needs files alone. They are given up before any thread is started, so that none has more.

use rustix::io;
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs};

/// Files wherever the user may write: recordings, journals, settings.
const FILES: CapabilitySet = CapabilitySet::DAC_OVERRIDE.union(CapabilitySet::DAC_READ_SEARCH);
/// Namespaces and BPF; processes of others; masks and real-time priority; functions of the kernel by name. What the kernel
/// counts for a link on request and a link's settings, and locked memory for BPF before Linux 5.11.
const WATCHING: CapabilitySet = FILES
    .union(CapabilitySet::SYS_ADMIN)
    .union(CapabilitySet::BPF)
    .union(CapabilitySet::PERFMON)
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::SYS_NICE)
    .union(CapabilitySet::SYSLOG)
    .union(CapabilitySet::NET_ADMIN)
    .union(CapabilitySet::SYS_RESOURCE);

/// What a vnettop does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Watches this machine, and perhaps pins.
    Watching,
    /// Watches it and pins nothing, for months.
    Exporting,
    /// Plays a recording, or asks a Prometheus: files are all that it needs.
    Replaying,
}

/// Gives up what this work does not need, for this thread and those that it starts. What is inherited is left alone. A recording and an
/// exporter need no program of others: none that is run all the same has more rights again, though its user is root.
///
/// # Errors
///
/// `capget`, `capset` or `prctl`, which a seccomp filter may forbid: then nothing is given up.
pub fn keep_needed(work: Work) -> io::Result<()> {
    let needed = match work {
        Work::Watching => WATCHING,
        Work::Exporting => WATCHING.difference(CapabilitySet::SYS_NICE),
        Work::Replaying => FILES,
    };
    let CapabilitySets { effective, permitted, inheritable } = capabilities(None)?;
    let kept = CapabilitySets { effective: effective & needed, permitted: permitted & needed, inheritable };
    set_capabilities(None, kept)?;
    if work == Work::Watching { Ok(()) } else { set_no_new_privs(true) }
}
