//! The kernel: its version, and each feature that vnettop asks of it.

use super::{Check, ON_HOST, as_root, way_to};
use crate::derive::plural;
use crate::sample::{BpfAnswer, DoctorFacts, HeldRights, KnownFact, ModuleState, TracefsState, version_of};

/// The least version.
const LEAST: (u32, u32) = (4, 18);
/// Ethtool speaks netlink from here on.
const ETHTOOL: (u32, u32) = (5, 6);
/// A dropped packet has a reason from here on.
const REASONS: (u32, u32) = (5, 17);

const ADDS_TRACE: &str = "each migration with its time, from and to; without it migrations are counted";
const ADDS_DROPS: &str = "each lost packet with its reason and function; exact softirq time; the cores of each hop";
const MOUNT_SYS: &str = "mount -t sysfs sysfs /sys";
const MOUNT_PROC: &str = "mount -t proc proc /proc";

pub(super) fn checks(facts: &DoctorFacts) -> Vec<Check> {
    vec![
        release(facts),
        links(facts),
        ethtool(facts),
        diag(&TCP, &facts.kernel.tcp_diag, &facts.rights),
        diag(&UDP, &facts.kernel.udp_diag, &facts.rights),
        btf(facts),
        traced(facts),
        dropped(facts),
        tracefs(facts),
        pidfd(facts),
    ]
}

fn release(facts: &DoctorFacts) -> Check {
    let (name, source) = ("version", "uname");
    let host = &facts.host;
    let found = format!("Linux {} {} (needs 4.18 or newer)", host.kernel, host.arch);
    match version_of(&host.kernel) {
        Some(running) if running >= LEAST => Check::ok(name, source, found),
        Some(_) => Check::missing(name, source, found, "everything", "boot Linux 4.18 or newer"),
        None => Check::unknown(name, source, format!("'{}' is not a version (needs 4.18 or newer)", host.kernel)),
    }
    .needed()
}

fn links(facts: &DoctorFacts) -> Check {
    let (name, source) = ("link counters", "RTM_GETLINK, RTM_GETSTATS");
    let mends = match facts.sight.cores {
        Ok(_) => "allow AF_NETLINK in the sandbox".to_owned(),
        Err(_) => as_root(&facts.rights, MOUNT_PROC),
    };
    match &facts.kernel.links {
        Ok(links) => Check::ok(name, source, format!("{} in this namespace", plural(*links, "link"))),
        Err(why) => Check::missing(name, source, why, "links, their rates and drops", mends),
    }
    .needed()
}

fn ethtool(facts: &DoctorFacts) -> Check {
    let (name, source) = ("ethtool netlink", "list of generic netlink families");
    let adds = "speed changes are reported at once; without it drivers are polled by ioctl";
    match facts.kernel.ethtool {
        Ok(true) => Check::ok(name, source, "the family ethtool is listed"),
        Ok(false) if version_of(&facts.host.kernel).is_some_and(|running| running < ETHTOOL) => {
            Check::note(name, source, "it needs Linux 5.6; drivers are polled by ioctl").adding(adds)
        }
        Ok(false) => Check::missing(
            name,
            source,
            "the family ethtool is not listed",
            adds,
            "a kernel with CONFIG_ETHTOOL_NETLINK=y",
        ),
        Err(ref why) => Check::unknown(name, source, why).adding(adds),
    }
}

/// A kind of sockets that the kernel lists.
struct DiagKind {
    name: &'static str,
    module: &'static str,
    option: &'static str,
    adds: &'static str,
}

const TCP: DiagKind = DiagKind {
    name: "TCP sockets",
    module: "tcp_diag",
    option: "CONFIG_INET_TCP_DIAG",
    adds: "rate, retransmits and windows of each connection; without it the busiest link's rate is used",
};
const UDP: DiagKind = DiagKind {
    name: "UDP sockets",
    module: "udp_diag",
    option: "CONFIG_INET_UDP_DIAG",
    adds: "queues and drops of each UDP socket",
};

fn diag(kind: &DiagKind, state: &KnownFact<ModuleState>, rights: &HeldRights) -> Check {
    let DiagKind { name, module, option, adds } = *kind;
    let source = "/proc/modules, /lib/modules, /proc/kallsyms";
    let load = as_root(rights, &format!("modprobe {module}"));
    match state {
        Ok(ModuleState::Present) => Check::ok(name, source, format!("{module} is in the kernel")),
        Ok(ModuleState::Loadable) => {
            let found = format!("{module} is a module, which the kernel loads on first use");
            Check::note(name, source, found).adding(adds).mended_by(load)
        }
        Ok(ModuleState::Absent) => {
            let found = format!("this kernel has no {module}");
            Check::missing(name, source, found, adds, format!("a kernel with {option}"))
        }
        Ok(ModuleState::NotLoaded) => {
            let found = format!("{module} is not loaded, and the list of modules is not visible here");
            Check::unknown(name, source, found).adding(adds).mended_by(format!("{load}  (on the host)"))
        }
        Err(why) => Check::unknown(name, source, why).adding(adds).mended_by(load),
    }
}

fn btf(facts: &DoctorFacts) -> Check {
    let (name, source) = ("BTF", "/sys/kernel/btf/vmlinux");
    match (&facts.kernel.btf, &facts.sight.sysfs) {
        (Ok(true), _) => Check::ok(name, source, "the kernel describes its types"),
        (Ok(false), Ok(())) => Check::missing(
            name,
            source,
            "this kernel has none",
            ADDS_DROPS,
            "a kernel of Linux 5.5 or newer with CONFIG_DEBUG_INFO_BTF=y",
        ),
        (Ok(false), Err(_)) => Check::unknown(name, source, "/sys is not to be seen here")
            .adding(ADDS_DROPS)
            .mended_by(as_root(&facts.rights, MOUNT_SYS)),
        (Err(why), _) => Check::unknown(name, source, why).adding(ADDS_DROPS),
    }
}

fn traced(facts: &DoctorFacts) -> Check {
    let (name, source) = ("migrations", "BPF program, loaded and not attached");
    let by_tracefs = facts.kernel.btf != Ok(true);
    match (&facts.kernel.moves, &facts.kernel.tracefs) {
        (BpfAnswer::Loads, _) if !by_tracefs => Check::ok(name, source, "each one is traced"),
        (BpfAnswer::Loads, Ok(TracefsState::Readable)) => {
            Check::ok(name, source, "each one is traced, through tracefs")
        }
        (BpfAnswer::Loads, Ok(TracefsState::Known)) if facts.sight.sysfs.is_err() => {
            let found = "without BTF they are traced through tracefs, and /sys is not visible here";
            Check::unknown(name, source, found).adding(ADDS_TRACE).mended_by(as_root(&facts.rights, MOUNT_SYS))
        }
        (BpfAnswer::Loads, Ok(TracefsState::Known)) if facts.rights.sys_admin => {
            Check::ok(name, source, "each one is traced, through a tracefs mounted for a moment")
        }
        (BpfAnswer::Loads, Ok(TracefsState::Known)) => {
            Check::missing(name, source, "tracefs is not visible", ADDS_TRACE, way_to(&facts.rights, &["SYS_ADMIN"]))
        }
        (BpfAnswer::Loads, Ok(TracefsState::Absent)) => Check::missing(
            name,
            source,
            "this kernel has neither BTF nor tracefs",
            ADDS_TRACE,
            "a kernel with CONFIG_DEBUG_INFO_BTF=y (Linux 5.5) or CONFIG_FTRACE=y",
        ),
        (BpfAnswer::Loads, Err(why)) => Check::unknown(name, source, why).adding(ADDS_TRACE),
        (answer, _) => refused(facts, name, source, answer, ADDS_TRACE),
    }
}

fn dropped(facts: &DoctorFacts) -> Check {
    let (name, source) = ("lost packets", "BPF program, loaded and not attached");
    match &facts.kernel.drops {
        BpfAnswer::Loads if version_of(&facts.host.kernel).is_some_and(|running| running < REASONS) => {
            let found = "each one with its function; reasons need Linux 5.17";
            Check::note(name, source, found).adding(ADDS_DROPS)
        }
        BpfAnswer::Loads => Check::ok(name, source, "each one with its reason and function"),
        answer => refused(facts, name, source, answer, ADDS_DROPS),
    }
}

/// A program that the kernel does not take.
fn refused(
    facts: &DoctorFacts,
    name: &'static str,
    source: &'static str,
    answer: &BpfAnswer,
    adds: &'static str,
) -> Check {
    let rights = &facts.rights;
    match answer {
        BpfAnswer::Loads => Check::ok(name, source, "the kernel takes it"),
        BpfAnswer::NoRight if rights.bpf && rights.perfmon || rights.sys_admin => {
            let found = "the kernel refuses it although the capability is there";
            let remedy = if rights.user_namespace == Ok(true) {
                way_to(rights, &[])
            } else {
                "cat /sys/kernel/security/lockdown  (lockdown or a seccomp filter blocks it)".to_owned()
            };
            Check::missing(name, source, found, adds, remedy)
        }
        BpfAnswer::NoRight if rights.knows_bpf => {
            let remedy = way_to(rights, &["BPF", "PERFMON"]);
            Check::missing(name, source, "CAP_BPF and CAP_PERFMON are missing", adds, remedy)
        }
        BpfAnswer::NoRight => {
            Check::missing(name, source, "CAP_SYS_ADMIN is missing", adds, way_to(rights, &["SYS_ADMIN"]))
        }
        BpfAnswer::NoBtf if facts.sight.sysfs.is_err() => {
            Check::unknown(name, source, "it needs BTF, and /sys is not visible here")
                .adding(adds)
                .mended_by(as_root(&facts.rights, MOUNT_SYS))
        }
        BpfAnswer::NoBtf => Check::missing(
            name,
            source,
            "it needs BTF, which this kernel lacks",
            adds,
            "a kernel of Linux 5.5 or newer with CONFIG_DEBUG_INFO_BTF=y",
        ),
        BpfAnswer::Elsewhere if facts.sight.cores.is_err() => {
            Check::unknown(name, source, "not tried: /proc is not visible here")
                .adding(adds)
                .mended_by(as_root(&facts.rights, MOUNT_PROC))
        }
        BpfAnswer::Elsewhere => {
            let found = "not tried: /proc is not that of the machine's own PID namespace";
            Check::missing(name, source, found, adds, ON_HOST)
        }
        BpfAnswer::Refused(why) => Check::missing(
            name,
            source,
            format!("the kernel refuses it: {why}"),
            adds,
            "a kernel with CONFIG_BPF_SYSCALL=y and CONFIG_BPF_EVENTS=y",
        ),
    }
}

fn tracefs(facts: &DoctorFacts) -> Check {
    let (name, source) = ("tracefs", "/sys/kernel/tracing, /proc/filesystems");
    let has_btf = facts.kernel.btf == Ok(true);
    match &facts.kernel.tracefs {
        Ok(TracefsState::Readable) => Check::ok(name, source, "its event of migrations is readable"),
        Ok(_) if has_btf => Check::ok(name, source, "not readable, and not needed where there is BTF"),
        Ok(TracefsState::Known) if facts.sight.sysfs.is_err() => {
            Check::unknown(name, source, "/sys is not to be seen here")
                .adding(ADDS_TRACE)
                .mended_by(as_root(&facts.rights, MOUNT_SYS))
        }
        Ok(TracefsState::Known) if facts.rights.sys_admin => {
            Check::ok(name, source, "not readable; vnettop mounts it for itself for a moment")
        }
        Ok(TracefsState::Known) => {
            let found = "not readable; without BTF migrations are traced through it";
            Check::note(name, source, found).adding(ADDS_TRACE).mended_by(way_to(&facts.rights, &["SYS_ADMIN"]))
        }
        Ok(TracefsState::Absent) => {
            Check::missing(name, source, "this kernel has none", ADDS_TRACE, "a kernel with CONFIG_FTRACE=y")
        }
        Err(why) => Check::unknown(name, source, why).adding(ADDS_TRACE),
    }
}

fn pidfd(facts: &DoctorFacts) -> Check {
    let (name, source) = ("pidfd", "pidfd_open");
    match &facts.kernel.pidfd {
        Ok(true) => Check::ok(name, source, "a namespace is released when its last process exits"),
        Ok(false) => Check::note(name, source, "it needs Linux 5.3; processes are checked on each sample instead"),
        Err(why) => Check::unknown(name, source, why),
    }
}
