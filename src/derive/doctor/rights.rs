//! Capabilities. Rights that only a trial can show are checked where it is made: BPF in `kernel`, namespaces in `sight`.

use super::remedy::{as_root, engine, way_to};
use super::{Check, CheckSubject};
use crate::sample::{DoctorFacts, HeldRights};

pub(super) fn checks(facts: &DoctorFacts) -> Vec<Check> {
    let rights = &facts.rights;
    vec![user(facts), names(facts), pins(rights), journals(rights), files(rights)]
}

fn user(facts: &DoctorFacts) -> Check {
    let rights = &facts.rights;
    let about = CheckSubject("user", "geteuid, /proc/self/uid_map");
    let adds = if facts.kernel.btf == Ok(true) {
        "other namespaces, traced migrations, each lost packet, pins of all threads"
    } else {
        "other namespaces, traced migrations, pins of all threads"
    };
    match (rights.uid, &rights.user_namespace) {
        (0, Ok(false)) => about.ok("root"),
        (uid, Ok(true)) => {
            let name = if uid == 0 { "root".to_owned() } else { format!("user {uid}") };
            let found = format!("{name} of a user namespace, not of the machine");
            about.note(found).adding(adds).mended_by(way_to(rights, &[]))
        }
        (0, Err(why)) => about.unknown(format!("root, perhaps of a user namespace only: {why}")),
        // Each of them has a line of its own.
        (uid, _) if has_any(rights) => about.note(format!("user {uid}, with some of root's capabilities")),
        (uid, _) => {
            let adds =
                if engine(rights).is_some() { "the container's capabilities, which only its root has" } else { adds };
            about.note(format!("user {uid}: pins of its own threads only")).adding(adds).mended_by(way_to(rights, &[]))
        }
    }
}

fn has_any(rights: &HeldRights) -> bool {
    let HeldRights { bpf, perfmon, sys_admin, sys_ptrace, sys_nice, syslog, .. } = *rights;
    bpf || perfmon || sys_admin || sys_ptrace || sys_nice || syslog
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

fn names(facts: &DoctorFacts) -> Check {
    let of = ("function names", facts.rights.syslog, "CAP_SYSLOG");
    if !facts.rights.syslog && facts.kernel.btf == Ok(false) && facts.sight.sysfs.is_ok() {
        return CheckSubject(of.0, "capget").note("no BTF, so lost packets have no function name");
    }
    let adds = "the name of the function that dropped a packet";
    if facts.rights.hides_functions && facts.rights.user_namespace != Ok(true) {
        let remedy = as_root(&facts.rights, "sysctl kernel.kptr_restrict=1");
        return CheckSubject(of.0, "/proc/sys/kernel/kptr_restrict").missing(
            "kernel.kptr_restrict=2 hides them from every user",
            adds,
            remedy,
        );
    }
    capability(of, &facts.rights, "functions of the kernel by name", adds)
}

fn pins(rights: &HeldRights) -> Check {
    let of = ("pins, priority", rights.sys_nice, "CAP_SYS_NICE");
    let on_time = "real-time priority, so that samples are on time on a full machine";
    let adds = "pins of other users' threads; real-time priority, so that samples are on time on a full machine";
    match &rights.realtime {
        Err(why) if rights.sys_nice && rights.user_namespace != Ok(true) => {
            let found = format!("CAP_SYS_NICE: pins of everybody's threads; real-time priority is refused: {why}");
            CheckSubject(of.0, "capget, sched_setscheduler").note(found).adding(on_time)
        }
        Ok(()) if !rights.sys_nice => capability(of, rights, "", "pins of other users' threads"),
        _ => capability(of, rights, "pins of everybody's threads, real-time sampling", adds),
    }
}

fn journals(rights: &HeldRights) -> Check {
    let about = CheckSubject("pin journal", "access(2)");
    match &rights.journals {
        Ok(directory) => about.ok(format!("{directory} is writable")),
        Err(why) => about.missing(
            format!("it cannot be written: {why}"),
            "pins, which are refused where nothing could undo them",
            "XDG_STATE_HOME=DIRECTORY vnettop",
        ),
    }
}

fn files(rights: &HeldRights) -> Check {
    let about = CheckSubject("open files", "RLIMIT_NOFILE");
    let (limit, least) = rights.open_files;
    let found = format!("{limit} files at once (needs {least})");
    if limit >= least {
        about.ok(found)
    } else {
        // The soft limit has been raised already; the hard one is root's.
        let remedy = match engine(rights) {
            Some(engine) => format!("{engine} run --ulimit nofile={least} ..."),
            None => format!("as root: ulimit -n {least}  (a service: LimitNOFILE={least})"),
        };
        about.missing(found, "everything", remedy)
    }
    .needed()
}
