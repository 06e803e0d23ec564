//! The kernel: its version, and each feature that vnettop asks of it.

use super::remedy::{as_root, mount_proc, outside, own_proc, unlocked, way_to};
use super::{Check, CheckRow};
use crate::plural;
use vnettop_sample::{BpfAnswer, DoctorFacts, HeldRights, KnownFact, ModuleState, TracefsState, version_of};

/// The least version.
const LEAST: (u32, u32) = (4, 18);
/// Ethtool speaks netlink from here on.
const ETHTOOL: (u32, u32) = (5, 6);
/// What BPF takes is not charged as locked memory from here on.
const UNCHARGED: (u32, u32) = (5, 11);
/// A dropped packet has a reason from here on.
const REASONS: (u32, u32) = (5, 17);

const ADDS_ETHTOOL: &str = "speed changes are reported at once; without it drivers are polled by ioctl";
const ADDS_TCP: &str = "rate, retransmits and windows of each connection; without it the busiest link's rate is used";
const ADDS_TRACE: &str = "each migration with its time and both cores; else migrations are counted";
const ADDS_DROPS: &str = "each lost packet with its reason and function; exact softirq time; the cores of each hop";
const WITH_BTF: &str = "a kernel of Linux 5.5 or newer with CONFIG_DEBUG_INFO_BTF=y";

const MODULES: &str = "/proc/modules, /lib/modules, /proc/kallsyms";
const LOADED: &str = "BPF program, loaded and not attached";

pub(super) const CHECKS: &[CheckRow] = &[
    CheckRow::new("version", "uname", "everything", release).needed(),
    CheckRow::new("link counters", "RTM_GETLINK, RTM_GETSTATS", "links, their rates and drops", links).needed(),
    CheckRow::new("ethtool netlink", "list of generic netlink families", ADDS_ETHTOOL, ethtool),
    CheckRow::new("TCP sockets", MODULES, ADDS_TCP, |about, facts| {
        diag(about, "tcp_diag", &facts.kernel.tcp_diag, facts)
    }),
    CheckRow::new("UDP sockets", MODULES, "queues and drops of each UDP socket", |about, facts| {
        diag(about, "udp_diag", &facts.kernel.udp_diag, facts)
    }),
    CheckRow::new("BTF", "/sys/kernel/btf/vmlinux", ADDS_DROPS, btf),
    CheckRow::new("migrations", LOADED, ADDS_TRACE, traced),
    CheckRow::new("lost packets", LOADED, ADDS_DROPS, dropped),
    CheckRow::new("tracefs", "/sys/kernel/tracing, /proc/filesystems", ADDS_TRACE, tracefs),
    CheckRow::new("pidfd", "pidfd_open", "", pidfd),
];

fn release(about: &CheckRow, facts: &DoctorFacts) -> Check {
    let host = &facts.host;
    let found = format!("Linux {} {} (needs 4.18 or newer)", host.kernel, host.arch);
    match version_of(&host.kernel) {
        Some(running) if running >= LEAST => about.ok(found),
        Some(_) => about.missing(found, "boot Linux 4.18 or newer"),
        None => about.unknown(format!("'{}' is not a version (needs 4.18 or newer)", host.kernel)).adding_nothing(),
    }
}

fn links(about: &CheckRow, facts: &DoctorFacts) -> Check {
    let mends = match facts.sight.cores {
        Ok(_) if facts.sight.foreign_proc => own_proc(&facts.rights),
        Ok(_) => "allow AF_NETLINK in the sandbox".to_owned(),
        Err(_) => mount_proc(facts),
    };
    match &facts.kernel.links {
        Ok(links) => about.ok(format!("{} in this namespace", plural(*links, "link"))),
        Err(why) => about.missing(why, mends),
    }
}

fn ethtool(about: &CheckRow, facts: &DoctorFacts) -> Check {
    match facts.kernel.ethtool {
        Ok(true) => about.ok("the family ethtool is listed"),
        Ok(false) if version_of(&facts.host.kernel).is_some_and(|running| running < ETHTOOL) => {
            about.note("it needs Linux 5.6; drivers are polled by ioctl")
        }
        Ok(false) => about.missing("the family ethtool is not listed", "a kernel with CONFIG_ETHTOOL_NETLINK=y"),
        Err(ref why) => about.unknown(why),
    }
}

/// A kind of sockets that a module of the kernel lists.
fn diag(about: &CheckRow, module: &str, state: &KnownFact<ModuleState>, facts: &DoctorFacts) -> Check {
    let load = format!("modprobe {module}");
    match state {
        Ok(ModuleState::Present) => about.ok(format!("{module} is in the kernel")),
        Ok(ModuleState::Loadable) => about.ok(format!("{module} is a module, which the kernel loads on first use")),
        Ok(ModuleState::Absent) => {
            let found = format!("this kernel has no {module}");
            about.missing(found, format!("a kernel with CONFIG_INET_{}", module.to_uppercase()))
        }
        Ok(ModuleState::NotLoaded) => {
            let found = format!("{module} is not loaded, and the list of modules is not visible here");
            about.unknown(found).mended_by(format!("{load}  (on the host)"))
        }
        Err(why) if facts.sight.cores.is_err() => about.without_proc(why, facts),
        Err(why) => about.unknown(why).mended_by(as_root(&facts.rights, &load)),
    }
}

fn btf(about: &CheckRow, facts: &DoctorFacts) -> Check {
    match (&facts.kernel.btf, &facts.sight.sysfs) {
        (Ok(true), _) => about.ok("the kernel describes its types"),
        (Ok(false), Ok(())) => about.missing("this kernel has none", WITH_BTF),
        (Ok(false), Err(_)) => about.without_sys("/sys is not visible here", facts),
        (Err(why), _) => about.unknown(why),
    }
}

fn traced(about: &CheckRow, facts: &DoctorFacts) -> Check {
    let by_tracefs = facts.kernel.btf != Ok(true);
    match (&facts.kernel.moves, &facts.kernel.tracefs) {
        (BpfAnswer::Loads, _) if !by_tracefs => about.ok("each one is traced"),
        (BpfAnswer::Loads, Ok(TracefsState::Readable)) => about.ok("each one is traced, through tracefs"),
        (BpfAnswer::Loads, Ok(TracefsState::Known)) if facts.sight.sysfs.is_err() => {
            let found = "no BTF, so tracefs is needed, but /sys is not visible here";
            about.without_sys(found, facts)
        }
        (BpfAnswer::Loads, Ok(TracefsState::Known)) if facts.rights.sys_admin => {
            about.ok("each one is traced, through a tracefs mounted for a moment")
        }
        (BpfAnswer::Loads, Ok(TracefsState::Known)) => {
            about.missing("tracefs is not visible", way_to(&facts.rights, &["SYS_ADMIN"]))
        }
        (BpfAnswer::Loads, Ok(TracefsState::Absent)) => about.missing(
            "this kernel has neither BTF nor tracefs",
            "a kernel with CONFIG_DEBUG_INFO_BTF=y (Linux 5.5) or CONFIG_FTRACE=y",
        ),
        (BpfAnswer::Loads, Err(why)) => about.unknown(why),
        (answer, _) => refused(about, answer, facts),
    }
}

fn dropped(about: &CheckRow, facts: &DoctorFacts) -> Check {
    match &facts.kernel.drops {
        BpfAnswer::Loads if version_of(&facts.host.kernel).is_some_and(|running| running < REASONS) => {
            about.note("each one with its function; reasons need Linux 5.17")
        }
        BpfAnswer::Loads => about.ok("each one with its reason and function"),
        answer => refused(about, answer, facts),
    }
}

/// A program that the kernel does not take.
fn refused(about: &CheckRow, answer: &BpfAnswer, facts: &DoctorFacts) -> Check {
    let rights = &facts.rights;
    let lacking = lacking(rights);
    let also = lacking.map(|lacking| format!("; {lacking}")).unwrap_or_default();
    match (answer, lacking) {
        (BpfAnswer::Loads, _) => about.ok("the kernel takes it"),
        // Older versions of Docker know no CAP_BPF.
        (BpfAnswer::NoRight, Some(lacking)) => about.missing(lacking, way_to(rights, &["SYS_ADMIN"])),
        (BpfAnswer::NoRight, None) if rights.user_namespace == Ok(true) => {
            about.missing("the capability holds in this user namespace only", way_to(rights, &[]))
        }
        (BpfAnswer::NoRight, None) if is_locked_out(facts) => {
            let kib = rights.locked_memory.unwrap_or_default() / 1024;
            let found = format!("{kib} KiB may be locked in memory; before Linux 5.11 BPF needs more");
            about.missing(found, unlocked(rights))
        }
        (BpfAnswer::NoRight, None) => {
            let found = "BPF is refused although the capability is there";
            let remedy = "grep Seccomp /proc/self/status; cat /sys/kernel/security/lockdown";
            about.missing(found, format!("{remedy}  (one of them blocks it)"))
        }
        (BpfAnswer::NoBtf, _) if facts.sight.sysfs.is_err() => {
            about.without_sys(format!("it needs BTF, and /sys is not visible here{also}"), facts)
        }
        (BpfAnswer::NoBtf, _) if let Err(why) = &facts.kernel.btf => {
            about.unknown(format!("it needs BTF: {why}{also}"))
        }
        (BpfAnswer::NoBtf, _) => about.missing(format!("it needs BTF, which this kernel lacks{also}"), WITH_BTF),
        (BpfAnswer::Elsewhere, _) if facts.sight.cores.is_err() => {
            about.without_proc("not tried: /proc is not visible here", facts)
        }
        (BpfAnswer::Elsewhere, _) => {
            let found = if facts.sight.foreign_proc {
                "not tried: /proc is that of another PID namespace"
            } else {
                "not tried: vnettop is not in the machine's own PID namespace"
            };
            about.missing(found, outside(facts))
        }
        (BpfAnswer::Refused(why), _) => about.missing(
            format!("the kernel refuses it: {why}"),
            "a kernel with CONFIG_BPF_SYSCALL=y and CONFIG_BPF_EVENTS=y",
        ),
    }
}

/// Without `CAP_SYS_RESOURCE` vnettop cannot lift the limit itself.
fn is_locked_out(facts: &DoctorFacts) -> bool {
    let is_charged = version_of(&facts.host.kernel).is_some_and(|running| running < UNCHARGED);
    is_charged && facts.rights.locked_memory.is_some()
}

/// The rights to load a program, where they are missing.
fn lacking(rights: &HeldRights) -> Option<&'static str> {
    match rights {
        HeldRights { sys_admin: true, .. } | HeldRights { bpf: true, perfmon: true, .. } => None,
        HeldRights { knows_bpf: true, .. } => Some("CAP_BPF and CAP_PERFMON (or CAP_SYS_ADMIN) are missing"),
        _ => Some("CAP_SYS_ADMIN is missing"),
    }
}

fn tracefs(about: &CheckRow, facts: &DoctorFacts) -> Check {
    let has_btf = facts.kernel.btf == Ok(true);
    match &facts.kernel.tracefs {
        Ok(TracefsState::Readable) => about.ok("its event of migrations is readable"),
        Ok(_) if has_btf && facts.kernel.moves == BpfAnswer::Loads => {
            about.ok("not needed: BPF traces migrations here")
        }
        Ok(_) if has_btf => about.ok("not needed: with BTF migrations are traced without it"),
        Ok(TracefsState::Known) if facts.sight.sysfs.is_err() => about.without_sys("/sys is not visible here", facts),
        Ok(TracefsState::Known) if facts.rights.sys_admin => {
            about.ok("the kernel has it; vnettop mounts it for itself for a moment")
        }
        Ok(TracefsState::Known) => {
            let found = "not readable; without BTF migrations are traced through it";
            about.note(found).mended_by(way_to(&facts.rights, &["SYS_ADMIN"]))
        }
        Ok(TracefsState::Absent) => about.missing("this kernel has none", "a kernel with CONFIG_FTRACE=y"),
        Err(why) if facts.sight.cores.is_err() => about.without_proc(why, facts),
        Err(why) => about.unknown(why),
    }
}

fn pidfd(about: &CheckRow, facts: &DoctorFacts) -> Check {
    match &facts.kernel.pidfd {
        Ok(true) => about.ok("a namespace is released when its last process exits"),
        Ok(false) => about.note("it needs Linux 5.3; processes are checked on each sample instead"),
        Err(why) => about.unknown(why),
    }
}
