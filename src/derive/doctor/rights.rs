//! What vnettop may do. What is found by trying stands where it was tried: BPF under the kernel, namespaces under what is seen.

use super::{Check, way_to};
use crate::sample::{DoctorFacts, HeldRights};

pub(super) fn checks(facts: &DoctorFacts) -> Vec<Check> {
    let rights = &facts.rights;
    let is_contained = !facts.sight.hidden.is_empty();
    vec![user(rights, is_contained), names(rights), pins(rights), files(rights)]
}

fn user(rights: &HeldRights, is_contained: bool) -> Check {
    let (name, source) = ("user", "geteuid, /proc/self/uid_map");
    let adds = "other namespaces, migrations traced, lost packets with their reason, pins of everybody's threads";
    match (rights.uid, &rights.user_namespace) {
        (0, Ok(false)) => Check::ok(name, source, "root"),
        (0, Ok(true)) => Check::note(name, source, "root of a user namespace, not of the machine")
            .adding(adds)
            .mended_by(way_to(rights, &[])),
        (0, Err(why)) => Check::unknown(name, source, format!("root; of the machine or not is not known: {why}")),
        (uid, _) => Check::note(name, source, format!("user {uid}: pins of its own threads only"))
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
    let source = "capget";
    match (held, &rights.user_namespace) {
        (false, _) => {
            let remedy = way_to(rights, &[capability.trim_start_matches("CAP_")]);
            Check::missing(name, source, format!("{capability} is missing"), adds, remedy)
        }
        (true, Ok(true)) => Check::note(name, source, format!("{capability} holds in this user namespace only"))
            .adding(adds)
            .mended_by(way_to(rights, &[])),
        (true, _) => Check::ok(name, source, format!("{capability}: {found}")),
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
    let (name, source) = ("open files", "RLIMIT_NOFILE");
    let (limit, least) = rights.open_files;
    let found = format!("{limit} files at once (needs {least})");
    if limit >= least {
        Check::ok(name, source, found)
    } else {
        let remedy = format!("ulimit -n {least}  (LimitNOFILE={least} in a service)");
        Check::missing(name, source, found, "everything", remedy)
    }
    .needed()
}
