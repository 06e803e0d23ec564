//! Capabilities. Rights that only a trial can show are checked where it is made: BPF in `kernel`, namespaces in `sight`.

use super::{Check, CheckSubject, way_to};
use crate::sample::{DoctorFacts, HeldRights};

pub(super) fn checks(facts: &DoctorFacts) -> Vec<Check> {
    let rights = &facts.rights;
    let is_contained = !facts.sight.hidden.is_empty();
    vec![user(rights, is_contained), names(rights), pins(rights), files(rights)]
}

fn user(rights: &HeldRights, is_contained: bool) -> Check {
    let about = CheckSubject("user", "geteuid, /proc/self/uid_map");
    let adds = "other namespaces, traced migrations, reasons of losses, pins of all threads";
    match (rights.uid, &rights.user_namespace) {
        (0, Ok(false)) => about.ok("root"),
        (0, Ok(true)) => {
            about.note("root of a user namespace, not of the machine").adding(adds).mended_by(way_to(rights, &[]))
        }
        (0, Err(why)) => about.unknown(format!("root; of the machine or not is not known: {why}")),
        (uid, _) => about
            .note(format!("user {uid}: pins of its own threads only"))
            .adding(adds)
            // An image seldom has sudo.
            .mended_by(if is_contained { "docker run --user 0 ..." } else { "sudo vnettop" }),
    }
}

/// A capability that is tried nowhere else.
fn capability(
    (name, held, capability): (&'static str, bool, &'static str),
    rights: &HeldRights,
    found: &str,
    adds: &'static str,
) -> Check {
    let about = CheckSubject(name, "capget");
    match (held, &rights.user_namespace) {
        (false, _) => {
            let remedy = way_to(rights, &[capability.trim_start_matches("CAP_")]);
            about.missing(format!("{capability} is missing"), adds, remedy)
        }
        (true, Ok(true)) => about
            .note(format!("{capability} holds in this user namespace only"))
            .adding(adds)
            .mended_by(way_to(rights, &[])),
        (true, _) => about.ok(format!("{capability}: {found}")),
    }
}

fn names(rights: &HeldRights) -> Check {
    let of = ("function names", rights.syslog, "CAP_SYSLOG");
    capability(of, rights, "functions of the kernel by name", "the name of the function that dropped a packet")
}

fn pins(rights: &HeldRights) -> Check {
    let of = ("pins, priority", rights.sys_nice, "CAP_SYS_NICE");
    let adds = "pins of other users' threads; real-time priority, so that samples are on time on a full machine";
    capability(of, rights, "pins of everybody's threads, real-time sampling", adds)
}

fn files(rights: &HeldRights) -> Check {
    let about = CheckSubject("open files", "RLIMIT_NOFILE");
    let (limit, least) = rights.open_files;
    let found = format!("{limit} files at once (needs {least})");
    if limit >= least {
        about.ok(found)
    } else {
        about.missing(found, "everything", format!("ulimit -n {least}  (LimitNOFILE={least} in a service)"))
    }
    .needed()
}
