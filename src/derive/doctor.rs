//! Facts of a machine → what works there, what is missing, what that would add and what to do about it. Pure: the same facts
//! always give the same checks. What is not known is said as unknown, with the reason.

mod kernel;
mod machine;
mod programs;
mod rights;
mod sight;
mod terminal;

use super::plural;
use crate::sample::{DoctorFacts, HeldRights};

/// How one thing stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum CheckState {
    /// It works.
    Ok,
    /// It works, and something about it is worth knowing.
    Note,
    /// It does not work.
    Missing,
    /// Whether it works could not be found out.
    Unknown,
}

/// What a check is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum CheckGroup {
    /// What the kernel can do.
    Kernel,
    /// What vnettop may do.
    Rights,
    /// What can be seen from here.
    Sight,
    /// Programs that vnettop works with.
    Programs,
    /// What would show the screen.
    Terminal,
    /// What the machine does behind a benchmark's back.
    Machine,
}

/// A group with its title in a text, and its checks.
type GroupRow = (CheckGroup, &'static str, fn(&DoctorFacts) -> Vec<Check>);

/// Every group, in their order.
const GROUPS: [GroupRow; 6] = [
    (CheckGroup::Kernel, "Kernel", kernel::checks),
    (CheckGroup::Rights, "Rights", rights::checks),
    (CheckGroup::Sight, "Visible from here", sight::checks),
    (CheckGroup::Programs, "Programs", programs::checks),
    (CheckGroup::Terminal, "Terminal", terminal::checks),
    (CheckGroup::Machine, "Machine under test", machine::checks),
];

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What it is called; no other check is.
    pub name: &'static str,
    /// How it stands.
    pub state: CheckState,
    /// Without it vnettop shows nothing.
    pub needed: bool,
    /// What was found, or why that is not known.
    pub found: String,
    /// What was looked at.
    pub source: &'static str,
    /// What it adds, or would add.
    pub adds: Option<&'static str>,
    /// The command or the setting that changes it.
    pub remedy: Option<String>,
}

/// What a check is called, and what it looks at.
#[derive(Clone, Copy)]
struct CheckSubject(&'static str, &'static str);

impl CheckSubject {
    fn stands(self, state: CheckState, found: impl Into<String>) -> Check {
        let Self(name, source) = self;
        Check { name, state, needed: false, found: found.into(), source, adds: None, remedy: None }
    }

    fn ok(self, found: impl Into<String>) -> Check {
        self.stands(CheckState::Ok, found)
    }

    fn note(self, found: impl Into<String>) -> Check {
        self.stands(CheckState::Note, found)
    }

    fn unknown(self, why: impl Into<String>) -> Check {
        self.stands(CheckState::Unknown, why)
    }

    /// What cannot be known where /sys is not mounted.
    fn without_sys(self, why: &str, adds: &'static str, facts: &DoctorFacts) -> Check {
        self.unknown(why).adding(adds).mended_by(mount_sys(facts))
    }

    /// What cannot be known where /proc is not mounted.
    fn without_proc(self, why: impl Into<String>, adds: &'static str, facts: &DoctorFacts) -> Check {
        self.unknown(why).adding(adds).mended_by(mount_proc(facts))
    }

    /// What is missing says what it would add and what to do.
    fn missing(self, found: impl Into<String>, adds: &'static str, remedy: impl Into<String>) -> Check {
        self.stands(CheckState::Missing, found).adding(adds).mended_by(remedy)
    }
}

impl Check {
    fn adding(self, adds: &'static str) -> Self {
        Self { adds: Some(adds), ..self }
    }

    fn mended_by(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }

    fn needed(self) -> Self {
        Self { needed: true, ..self }
    }
}

/// What follows from the facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    /// The groups, each with its title in a text and its checks.
    pub groups: [(CheckGroup, &'static str, Vec<Check>); 6],
    /// Nothing is missing that is needed.
    pub works: bool,
    /// The same as a sentence.
    pub verdict: String,
}

impl Diagnosis {
    /// Every check with its group.
    pub fn checks(&self) -> impl Iterator<Item = (CheckGroup, &Check)> {
        self.groups.iter().flat_map(|(group, _, checks)| checks.iter().map(|check| (*group, check)))
    }
}

/// Judges the facts.
#[must_use]
pub fn judge(facts: &DoctorFacts) -> Diagnosis {
    let groups = GROUPS.map(|(group, title, checks)| (group, title, checks(facts)));
    let all = || groups.iter().flat_map(|(_, _, checks)| checks);
    let lacking: Vec<&str> =
        all().filter(|check| check.needed && check.state == CheckState::Missing).map(|check| check.name).collect();
    let verdict = if lacking.is_empty() {
        let count = |state: CheckState| all().filter(|check| check.state == state).count();
        let [missing, unknown, notes] = [CheckState::Missing, CheckState::Unknown, CheckState::Note].map(count);
        let counts = [
            (missing, format!("{missing} missing")),
            (unknown, format!("{unknown} unknown")),
            (notes, plural(notes, "note")),
        ];
        let counts = counts.into_iter().filter_map(|(count, words)| (count > 0).then_some(words));
        match counts.collect::<Vec<_>>().join(", ") {
            none if none.is_empty() => "vnettop works here; nothing is missing.".to_owned(),
            counts => format!("vnettop works here: {counts}."),
        }
    } else {
        format!("vnettop cannot work here without: {}.", lacking.join(", "))
    };
    Diagnosis { works: lacking.is_empty(), groups, verdict }
}

/// Out of a container's process namespace; what else is missing there says so itself.
const ON_HOST: &str =
    "docker run --pid=host --net=host --cap-add SYS_ADMIN --cap-add SYS_PTRACE ...  (or run vnettop on the host)";

/// How to have these capabilities, as `--cap-add` names them.
fn way_to(rights: &HeldRights, capabilities: &[&str]) -> String {
    let each = |before: &str| capabilities.iter().map(|name| format!("{before}{name}")).collect::<Vec<_>>().join(" ");
    match (rights.uid, &rights.user_namespace) {
        (_, Ok(true)) => {
            let place = if rights.contained { "container" } else { "user namespace" };
            format!("run vnettop as root of the machine, outside of this {place}")
        }
        (0, _) if rights.contained => format!("docker run {} ...", each("--cap-add ")),
        (0, _) => format!("a service: add {} to its CapabilityBoundingSet=", each("CAP_")),
        _ if rights.contained && capabilities.is_empty() => "docker run --user 0 ...".to_owned(),
        _ if rights.contained => format!("docker run --user 0 {} ...", each("--cap-add ")),
        _ if rights.sudo => "sudo vnettop".to_owned(),
        _ => "run vnettop as root".to_owned(),
    }
}

/// A command that only root of the machine may run.
fn as_root(rights: &HeldRights, command: &str) -> String {
    match (rights.uid, &rights.user_namespace) {
        _ if rights.contained => format!("{command}  (on the host)"),
        (_, Ok(true)) => format!("{command}  (outside of this user namespace)"),
        (0, _) => command.to_owned(),
        _ if rights.sudo => format!("sudo {command}"),
        _ => format!("{command}  (as root)"),
    }
}

/// A kind of file system, `proc` or `sysfs`, at its place; a container is given it from outside.
fn mount(rights: &HeldRights, kind: &str, place: &str) -> String {
    if rights.contained {
        format!("start the container with {place} mounted")
    } else {
        as_root(rights, &format!("mount -t {kind} {kind} {place}"))
    }
}

fn mount_proc(facts: &DoctorFacts) -> String {
    mount(&facts.rights, "proc", "/proc")
}

fn mount_sys(facts: &DoctorFacts) -> String {
    mount(&facts.rights, "sysfs", "/sys")
}
