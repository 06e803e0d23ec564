//! What of the machine can be seen: /proc, /sys, processes, network namespaces.

use super::remedy::{engine, mount_proc, mount_sys, outside, own_proc, way_to};
use super::{Check, CheckSubject};
use crate::derive::plural;
use crate::sample::{BpfAnswer, DoctorFacts};

pub(super) fn checks(facts: &DoctorFacts) -> Vec<Check> {
    vec![proc(facts), processes(facts), sys(facts), namespaces(facts)]
}

fn proc(facts: &DoctorFacts) -> Check {
    let about = CheckSubject("/proc", "/proc/stat, list of /proc");
    match (&facts.sight.cores, &facts.sight.processes) {
        (Ok(cores), Ok(())) => about.ok(format!("{} online, processes listed", plural(*cores, "core"))),
        (Err(why), _) | (_, Err(why)) => {
            about.missing(why, "cores, threads and everything about them", mount_proc(facts))
        }
    }
    .needed()
}

fn processes(facts: &DoctorFacts) -> Check {
    let about = CheckSubject("processes", "/proc/self, options of its mount");
    let sight = &facts.sight;
    let adds = "threads of other users, and pins of them";
    match (&sight.processes, sight.hidden.as_slice()) {
        (Err(why), _) => about.without_proc(why, adds, facts),
        (Ok(()), []) if sight.foreign_proc => {
            about.note("/proc is that of another PID namespace").adding(adds).mended_by(own_proc(&facts.rights))
        }
        (Ok(()), []) if is_elsewhere(facts) => {
            about.note("only those of this PID namespace are visible").adding(adds).mended_by(outside(facts))
        }
        (Ok(()), []) => about.ok("those of every user are visible"),
        (Ok(()), hidden) => {
            let way = if sight.foreign_proc { own_proc(&facts.rights) } else { way_to(&facts.rights, &["SYS_PTRACE"]) };
            about.missing(hidden.join("; "), adds, way)
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

fn sys(facts: &DoctorFacts) -> Check {
    let about = CheckSubject("/sys", "/sys/devices/system/cpu");
    let adds = "nodes, caches and clusters of the cores, queues of links, BTF";
    match &facts.sight.sysfs {
        Ok(()) => about.ok("it is mounted"),
        Err(why) => about.missing(why, adds, mount_sys(facts)),
    }
}

fn namespaces(facts: &DoctorFacts) -> Check {
    let about = CheckSubject("network namespaces", "/proc/PID/ns/net, mounts");
    let (sight, rights) = (&facts.sight, &facts.rights);
    let adds = "links in other network namespaces, connections of programs there";
    let found = plural(sight.namespaces, "namespace");
    if let Err(why) = &sight.processes {
        return about.without_proc(why, adds, facts);
    }
    if rights.user_namespace == Ok(true) {
        let found = "those of the machine cannot be entered from a user namespace";
        return about.missing(found, adds, way_to(rights, &[]));
    }
    let lacking = match (rights.sys_admin, rights.sys_ptrace) {
        (true, true) => None,
        (true, false) => Some(("CAP_SYS_PTRACE is missing", &["SYS_PTRACE"][..])),
        (false, true) => Some(("CAP_SYS_ADMIN is missing", &["SYS_ADMIN"][..])),
        (false, false) => Some(("CAP_SYS_ADMIN and CAP_SYS_PTRACE are missing", &["SYS_ADMIN", "SYS_PTRACE"][..])),
    };
    if sight.inside && lacking.is_none() {
        let found = "vnettop runs inside one: only this one is shown";
        return about.note(found).adding(adds).mended_by("vnettop --netns all");
    }
    match (&lacking, sight.foreign_proc) {
        _ if !is_elsewhere(facts) => {}
        (Some((why, _)), _) => return about.missing(format!("{found}; {why}"), adds, outside(facts)),
        (None, foreign) => {
            let whose = if foreign {
                "/proc is that of another PID namespace"
            } else {
                "others whose processes are not visible may be missing"
            };
            return about.note(format!("{found}; {whose}")).adding(adds).mended_by(outside(facts));
        }
    }
    match (lacking, sight.unseen.as_slice()) {
        (Some((why, capabilities)), _) => about.missing(format!("{found}; {why}"), adds, way_to(rights, capabilities)),
        (None, []) => about.ok(format!("{found} can be entered")),
        (None, unseen) => about.missing(unseen.join("; "), adds, unbarred(facts)),
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
