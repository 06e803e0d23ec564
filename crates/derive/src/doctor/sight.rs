//! What of the machine can be seen: /proc, /sys, processes, network namespaces.

use super::remedy::{engine, mount_proc, mount_sys, outside, own_proc, way_to};
use super::{Check, CheckRow};
use crate::plural;
use vnettop_sample::{BpfAnswer, DoctorFacts};

const ADDS_PROC: &str = "cores, threads and everything about them";
const ADDS_PROCESSES: &str = "threads of other users, and pins of them";
const ADDS_SYS: &str = "nodes, caches and clusters of the cores, queues of links, BTF";
const ADDS_SPACES: &str = "links in other network namespaces, connections of programs there";

pub(super) const CHECKS: &[CheckRow] = &[
    CheckRow::new("/proc", "/proc/stat, list of /proc", ADDS_PROC, proc).needed(),
    CheckRow::new("processes", "/proc/self, options of its mount", ADDS_PROCESSES, processes),
    CheckRow::new("/sys", "/sys/devices/system/cpu", ADDS_SYS, sys),
    CheckRow::new("network namespaces", "/proc/PID/ns/net, mounts", ADDS_SPACES, namespaces),
];

fn proc(about: &CheckRow, facts: &DoctorFacts) -> Check {
    match (&facts.sight.cores, &facts.sight.processes) {
        (Ok(cores), Ok(())) => about.ok(format!("{} online, processes listed", plural(*cores, "core"))),
        (Err(why), _) | (_, Err(why)) => about.missing(why, mount_proc(facts)),
    }
}

fn processes(about: &CheckRow, facts: &DoctorFacts) -> Check {
    let sight = &facts.sight;
    match (&sight.processes, sight.hidden.as_slice()) {
        (Err(why), _) => about.without_proc(why, facts),
        (Ok(()), []) if sight.foreign_proc => {
            about.note("/proc is that of another PID namespace").mended_by(own_proc(&facts.rights))
        }
        (Ok(()), []) if is_elsewhere(facts) => {
            about.note("only those of this PID namespace are visible").mended_by(outside(facts))
        }
        (Ok(()), []) => about.ok("those of every user are visible"),
        (Ok(()), hidden) => {
            let way = if sight.foreign_proc { own_proc(&facts.rights) } else { way_to(&facts.rights, &["SYS_PTRACE"]) };
            about.missing(hidden.join("; "), way)
        }
    }
}

/// Not in the machine's own PID namespace.
fn is_elsewhere(facts: &DoctorFacts) -> bool {
    facts.kernel.moves == BpfAnswer::Elsewhere && facts.sight.processes.is_ok()
}

/// Some processes cannot be seen.
pub(super) fn is_partial(facts: &DoctorFacts) -> bool {
    is_elsewhere(facts) || !facts.sight.hidden.is_empty()
}

fn sys(about: &CheckRow, facts: &DoctorFacts) -> Check {
    match &facts.sight.sysfs {
        Ok(()) => about.ok("it is mounted"),
        Err(why) => about.missing(why, mount_sys(facts)),
    }
}

fn namespaces(about: &CheckRow, facts: &DoctorFacts) -> Check {
    let (sight, rights) = (&facts.sight, &facts.rights);
    let found = plural(sight.namespaces, "namespace");
    if let Err(why) = &sight.processes {
        return about.without_proc(why, facts);
    }
    if rights.user_namespace == Ok(true) {
        let found = "those of the machine cannot be entered from a user namespace";
        return about.missing(found, way_to(rights, &[]));
    }
    let lacking = match (rights.sys_admin, rights.sys_ptrace) {
        (true, true) => None,
        (true, false) => Some(("CAP_SYS_PTRACE is missing", &["SYS_PTRACE"][..])),
        (false, true) => Some(("CAP_SYS_ADMIN is missing", &["SYS_ADMIN"][..])),
        (false, false) => Some(("CAP_SYS_ADMIN and CAP_SYS_PTRACE are missing", &["SYS_ADMIN", "SYS_PTRACE"][..])),
    };
    if sight.inside && lacking.is_none() {
        let found = "vnettop runs inside one: only this one is shown";
        return about.note(found).mended_by("vnettop --netns all");
    }
    match (&lacking, sight.foreign_proc) {
        _ if !is_elsewhere(facts) => {}
        (Some((why, _)), _) => return about.missing(format!("{found}; {why}"), outside(facts)),
        (None, foreign) => {
            let whose = if foreign {
                "/proc is that of another PID namespace"
            } else {
                "others whose processes are not visible may be missing"
            };
            return about.note(format!("{found}; {whose}")).mended_by(outside(facts));
        }
    }
    match (lacking, sight.unseen.as_slice()) {
        (Some((why, capabilities)), _) => about.missing(format!("{found}; {why}"), way_to(rights, capabilities)),
        (None, []) => about.ok(format!("{found} can be entered")),
        (None, unseen) => about.missing(unseen.join("; "), unbarred(facts)),
    }
}

/// With both capabilities it is the limit of open files that keeps vnettop out of one, or a security module.
fn unbarred(facts: &DoctorFacts) -> String {
    match engine(&facts.rights) {
        _ if facts.sight.unseen.iter().any(|unseen| unseen.contains("open files")) => "ulimit -n 65536".to_owned(),
        Some(engine) => format!("{engine} run --security-opt apparmor=unconfined ..."),
        None => "cat /proc/self/attr/current  (the security module's profile denies it)".to_owned(),
    }
}
