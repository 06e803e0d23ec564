//! What of the machine can be seen: /proc, /sys, processes, network namespaces.

use super::{Check, CheckSubject, MOUNT_PROC, MOUNT_SYS, ON_HOST, as_root, way_to};
use crate::derive::plural;
use crate::sample::{BpfAnswer, DoctorFacts};

pub(super) fn checks(facts: &DoctorFacts) -> Vec<Check> {
    vec![proc(facts), processes(facts), sys(facts), namespaces(facts)]
}

fn proc(facts: &DoctorFacts) -> Check {
    let about = CheckSubject("/proc", "/proc/stat, list of /proc");
    let mend = as_root(&facts.rights, MOUNT_PROC);
    match (&facts.sight.cores, &facts.sight.processes) {
        (Ok(cores), Ok(())) => about.ok(format!("{} online, processes listed", plural(*cores, "core"))),
        (Err(why), _) | (_, Err(why)) => about.missing(why, "cores, threads and everything about them", mend),
    }
    .needed()
}

fn processes(facts: &DoctorFacts) -> Check {
    let about = CheckSubject("processes", "/proc/self, options of its mount");
    let sight = &facts.sight;
    let adds = "threads of other users, and pins of them";
    match (&sight.processes, sight.hidden.as_slice()) {
        (Err(why), _) => about.unknown(why).adding(adds),
        (Ok(()), []) if is_contained(facts) => {
            about.note("only those of this PID namespace are visible").adding(adds).mended_by(ON_HOST)
        }
        (Ok(()), []) => about.ok("those of every user are visible"),
        (Ok(()), hidden) => {
            let way = if facts.rights.uid == 0 { MOUNT_PROC } else { "sudo vnettop" };
            about.missing(hidden.join("; "), adds, way)
        }
    }
}

/// Not in the machine's own PID namespace.
fn is_contained(facts: &DoctorFacts) -> bool {
    facts.kernel.moves == BpfAnswer::Elsewhere
}

fn sys(facts: &DoctorFacts) -> Check {
    let about = CheckSubject("/sys", "/sys/devices/system/cpu");
    let adds = "nodes, caches and clusters of the cores, queues of links, BTF";
    match &facts.sight.sysfs {
        Ok(()) => about.ok("it is mounted"),
        Err(why) => about.missing(why, adds, as_root(&facts.rights, MOUNT_SYS)),
    }
}

fn namespaces(facts: &DoctorFacts) -> Check {
    let about = CheckSubject("network namespaces", "/proc/PID/ns/net, mounts");
    let (sight, rights) = (&facts.sight, &facts.rights);
    let adds = "links in other network namespaces, connections of programs there";
    let found = plural(sight.namespaces, "namespace");
    if sight.inside {
        let found = "vnettop runs inside one: only this one is shown";
        return about.note(found).adding(adds).mended_by("vnettop --netns all");
    }
    let way = || way_to(rights, &["SYS_ADMIN", "SYS_PTRACE"]);
    match sight.unseen.as_slice() {
        [] if rights.user_namespace == Ok(true) => {
            let found = "root of a user namespace cannot enter those of the machine";
            about.missing(found, adds, way())
        }
        [] if rights.sys_admin && rights.sys_ptrace && is_contained(facts) => {
            let found = format!("{found}; those of other PID namespaces are not visible");
            about.note(found).adding(adds).mended_by(ON_HOST)
        }
        [] if rights.sys_admin && rights.sys_ptrace => about.ok(format!("{found} can be entered")),
        [] => about.missing(format!("{found}; CAP_SYS_ADMIN or CAP_SYS_PTRACE is missing"), adds, way()),
        unseen => about.missing(unseen.join("; "), adds, way()),
    }
}
