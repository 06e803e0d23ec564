//! Capabilities. Rights that only a trial can show are checked where it is made: BPF in `kernel`, namespaces in `sight`.

use super::remedy::{as_root, engine, way_to};
use super::{Check, CheckRow};
use vnettop_sample::{DoctorFacts, HeldRights};

const ADDS_USER: &str = "other namespaces, traced migrations, pins of all threads";
const ADDS_USER_BTF: &str = "other namespaces, traced migrations, each lost packet, pins of all threads";
const ADDS_NAMES: &str = "the name of the function that dropped a packet";
const ADDS_PINS: &str = "pins of other users' threads";
const ADDS_NICE: &str =
    "pins of other users' threads; real-time priority, so that samples are on time on a full machine";
const ADDS_TIME: &str = "real-time priority, so that samples are on time on a full machine";
const ADDS_JOURNALS: &str = "pins, which are refused where nothing could undo them";

pub(super) const CHECKS: &[CheckRow] = &[
    CheckRow::new("user", "geteuid, /proc/self/uid_map", ADDS_USER, user),
    CheckRow::new("function names", "capget", ADDS_NAMES, names),
    CheckRow::new("pins, priority", "capget", ADDS_NICE, pins),
    CheckRow::new("pin journal", "access(2)", ADDS_JOURNALS, journals),
    CheckRow::new("open files", "RLIMIT_NOFILE", "everything", files).needed(),
];

fn user(about: &CheckRow, facts: &DoctorFacts) -> Check {
    let rights = &facts.rights;
    let adds = if facts.kernel.btf == Ok(true) { ADDS_USER_BTF } else { ADDS_USER };
    match (rights.uid, &rights.user_namespace) {
        (0, Ok(false)) => about.ok("root"),
        (uid, Ok(true)) => {
            let name = if uid == 0 { "root".to_owned() } else { format!("user {uid}") };
            let found = format!("{name} of a user namespace, not of the machine");
            about.note(found).adding(adds).mended_by(way_to(rights, &[]))
        }
        (0, Err(why)) => about.unknown(format!("root, perhaps of a user namespace only: {why}")).adding_nothing(),
        // Each of them has a line of its own.
        (uid, _) if has_any(rights) => {
            about.note(format!("user {uid}, with some of root's capabilities")).adding_nothing()
        }
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
fn capability(about: &CheckRow, held: bool, capability: &str, rights: &HeldRights, found: &str) -> Check {
    match (held, &rights.user_namespace) {
        (false, _) => {
            let remedy = way_to(rights, &[capability.trim_start_matches("CAP_")]);
            about.missing(format!("{capability} is missing"), remedy)
        }
        (true, Ok(true)) => {
            about.note(format!("{capability} holds in this user namespace only")).mended_by(way_to(rights, &[]))
        }
        (true, _) => about.ok(format!("{capability}: {found}")),
    }
}

fn names(about: &CheckRow, facts: &DoctorFacts) -> Check {
    if !facts.rights.syslog && facts.kernel.btf == Ok(false) && facts.sight.sysfs.is_ok() {
        return about.note("no BTF, so lost packets have no function name").adding_nothing();
    }
    if facts.rights.hides_functions && facts.rights.user_namespace != Ok(true) {
        let remedy = as_root(&facts.rights, "sysctl kernel.kptr_restrict=1");
        let found = "kernel.kptr_restrict=2 hides them from every user";
        return about.missing(found, remedy).read_from("/proc/sys/kernel/kptr_restrict");
    }
    capability(about, facts.rights.syslog, "CAP_SYSLOG", &facts.rights, "functions of the kernel by name")
}

fn pins(about: &CheckRow, facts: &DoctorFacts) -> Check {
    let rights = &facts.rights;
    let capability =
        capability(about, rights.sys_nice, "CAP_SYS_NICE", rights, "pins of everybody's threads, real-time sampling");
    match &rights.realtime {
        Err(why) if rights.sys_nice && rights.user_namespace != Ok(true) => {
            let found = format!("CAP_SYS_NICE: pins of everybody's threads; real-time priority is refused: {why}");
            about.note(found).adding(ADDS_TIME).read_from("capget, sched_setscheduler")
        }
        Ok(()) if !rights.sys_nice => capability.adding(ADDS_PINS),
        _ => capability,
    }
}

fn journals(about: &CheckRow, facts: &DoctorFacts) -> Check {
    match &facts.rights.journals {
        Ok(directory) => about.ok(format!("{directory} is writable")),
        Err(why) => about.missing(format!("it cannot be written: {why}"), "XDG_STATE_HOME=DIRECTORY vnettop"),
    }
}

fn files(about: &CheckRow, facts: &DoctorFacts) -> Check {
    let (limit, least) = facts.rights.open_files;
    let found = format!("{limit} files at once (needs {least})");
    if limit >= least {
        return about.ok(found);
    }
    // The soft limit has been raised already; the hard one is root's.
    let remedy = match engine(&facts.rights) {
        Some(engine) => format!("{engine} run --ulimit nofile={least} ..."),
        None => format!("as root: ulimit -n {least}  (a service: LimitNOFILE={least})"),
    };
    about.missing(found, remedy)
}
