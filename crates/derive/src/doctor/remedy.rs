//! The command or the setting that changes something, for whoever looks from where he is: in a container or not, root or not,
//! with `sudo` or without.

use vnettop_sample::{Containment, DoctorFacts, HeldRights};

/// The program that starts the container that vnettop is in.
pub(super) fn engine(rights: &HeldRights) -> Option<&'static str> {
    match rights.contained {
        Containment::Docker => Some("docker"),
        Containment::Podman => Some("podman"),
        Containment::Nothing | Containment::PidNamespace => None,
    }
}

/// Out of this process namespace; what else is missing there says so itself.
pub(super) fn outside(facts: &DoctorFacts) -> String {
    let rights = &facts.rights;
    match (engine(rights), rights.uid) {
        _ if rights.user_namespace == Ok(true) => way_to(rights, &[]),
        (Some(engine), 0) => format!(
            "{engine} run --pid=host --net=host --cap-add SYS_ADMIN --cap-add SYS_PTRACE ...  (or run vnettop on the host)"
        ),
        (Some(engine), _) => {
            format!("{engine} run --user 0 --pid=host --net=host --cap-add SYS_ADMIN ...  (or run vnettop on the host)")
        }
        (None, _) if rights.contained == Containment::Nothing => own_proc(rights),
        (None, _) => "run vnettop outside of this PID namespace".to_owned(),
    }
}

/// With the /proc of vnettop's own process namespace, which nobody else sees.
pub(super) fn own_proc(rights: &HeldRights) -> String {
    by_root(rights, "unshare --mount-proc vnettop")
}

/// How to have these capabilities, as `--cap-add` names them.
pub(super) fn way_to(rights: &HeldRights, capabilities: &[&str]) -> String {
    let each = |before: &str| capabilities.iter().map(|name| format!("{before}{name}")).collect::<Vec<_>>().join(" ");
    match (rights.uid, &rights.user_namespace, engine(rights)) {
        (_, Ok(true), engine) => {
            let place = if engine.is_some() { "container" } else { "user namespace" };
            format!("run vnettop as root of the machine, outside of this {place}")
        }
        (0, _, Some(engine)) => format!("{engine} run {} ...", each("--cap-add ")),
        (_, _, Some(engine)) if capabilities.is_empty() => format!("{engine} run --user 0 ..."),
        (_, _, Some(engine)) => format!("{engine} run --user 0 {} ...", each("--cap-add ")),
        (0, _, None) if rights.contained == Containment::PidNamespace => {
            "run vnettop as root outside of this PID namespace".to_owned()
        }
        (0, _, None) => format!("a service: add {} to its CapabilityBoundingSet=", each("CAP_")),
        _ if rights.sudo => "sudo vnettop".to_owned(),
        _ => "run vnettop as root".to_owned(),
    }
}

/// Without a limit of locked memory.
pub(super) fn unlocked(rights: &HeldRights) -> String {
    match engine(rights) {
        Some(engine) => format!("{engine} run --ulimit memlock=-1 ..."),
        None => "as root: ulimit -l unlimited  (a service: LimitMEMLOCK=infinity)".to_owned(),
    }
}

/// A command that only root of the machine may run.
pub(super) fn as_root(rights: &HeldRights, command: &str) -> String {
    match &rights.user_namespace {
        _ if engine(rights).is_some() => format!("{command}  (on the host)"),
        Ok(true) => format!("{command}  (outside of this user namespace)"),
        _ if rights.contained == Containment::PidNamespace => format!("{command}  (as root of the machine)"),
        _ => by_root(rights, command),
    }
}

/// A command that root of this place runs here.
pub(super) fn by_root(rights: &HeldRights, command: &str) -> String {
    match rights.uid {
        0 => command.to_owned(),
        _ if rights.sudo => format!("sudo {command}"),
        _ => format!("{command}  (as root)"),
    }
}

/// A kind of file system, `proc` or `sysfs`, at its place; a container is given it from outside.
fn mount(rights: &HeldRights, kind: &str, place: &str) -> String {
    if engine(rights).is_some() {
        format!("start the container with {place} mounted")
    } else {
        by_root(rights, &format!("mount -t {kind} {kind} {place}"))
    }
}

pub(super) fn mount_proc(facts: &DoctorFacts) -> String {
    mount(&facts.rights, "proc", "/proc")
}

pub(super) fn mount_sys(facts: &DoctorFacts) -> String {
    mount(&facts.rights, "sysfs", "/sys")
}
