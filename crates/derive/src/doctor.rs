//! Facts of a machine → what works there, what is missing, what that would add and what to do about it. Pure: the same facts
//! always give the same checks. What is not known is said as unknown, with the reason.

mod kernel;
mod machine;
mod programs;
mod remedy;
mod rights;
mod sight;
mod terminal;

use super::plural;
use remedy::{mount_proc, mount_sys};
use vnettop_sample::DoctorFacts;

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

/// A group with its title in a text, and what is looked at in it.
type GroupRow = (CheckGroup, &'static str, &'static [CheckRow]);

/// Every group, in their order.
const GROUPS: [GroupRow; 6] = [
    (CheckGroup::Kernel, "Kernel", kernel::CHECKS),
    (CheckGroup::Rights, "Rights", rights::CHECKS),
    (CheckGroup::Sight, "Visible from here", sight::CHECKS),
    (CheckGroup::Programs, "Programs", programs::CHECKS),
    (CheckGroup::Terminal, "Terminal", terminal::CHECKS),
    (CheckGroup::Machine, "Machine under test", machine::CHECKS),
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

/// What a check is called, what it looks at and adds, and how it judges the facts.
struct CheckRow {
    name: &'static str,
    source: &'static str,
    adds: &'static str,
    needed: bool,
    judge: fn(&CheckRow, &DoctorFacts) -> Check,
    /// Whether a machine has such a thing.
    applies: fn(&DoctorFacts) -> bool,
}

impl CheckRow {
    /// What it adds, and how it is judged; it adds nothing where that is empty.
    const fn new(
        name: &'static str,
        source: &'static str,
        adds: &'static str,
        judge: fn(&CheckRow, &DoctorFacts) -> Check,
    ) -> Self {
        Self { name, source, adds, needed: false, judge, applies: |_| true }
    }

    const fn needed(self) -> Self {
        Self { needed: true, ..self }
    }

    const fn only(self, applies: fn(&DoctorFacts) -> bool) -> Self {
        Self { applies, ..self }
    }

    fn stands(&self, state: CheckState, found: impl Into<String>) -> Check {
        let adds = (!self.adds.is_empty()).then_some(self.adds);
        let Self { name, source, needed, .. } = *self;
        Check { name, state, needed, found: found.into(), source, adds, remedy: None }
    }

    /// What works need not be told what it adds.
    fn ok(&self, found: impl Into<String>) -> Check {
        self.stands(CheckState::Ok, found).adding_nothing()
    }

    fn note(&self, found: impl Into<String>) -> Check {
        self.stands(CheckState::Note, found)
    }

    fn unknown(&self, why: impl Into<String>) -> Check {
        self.stands(CheckState::Unknown, why)
    }

    /// What cannot be known where /sys is not mounted.
    fn without_sys(&self, why: impl Into<String>, facts: &DoctorFacts) -> Check {
        self.unknown(why).mended_by(mount_sys(facts))
    }

    /// What cannot be known where /proc is not mounted.
    fn without_proc(&self, why: impl Into<String>, facts: &DoctorFacts) -> Check {
        self.unknown(why).mended_by(mount_proc(facts))
    }

    /// What is missing says what to do.
    fn missing(&self, found: impl Into<String>, remedy: impl Into<String>) -> Check {
        self.stands(CheckState::Missing, found).mended_by(remedy)
    }
}

impl Check {
    fn adding(self, adds: &'static str) -> Self {
        Self { adds: Some(adds), ..self }
    }

    fn adding_nothing(self) -> Self {
        Self { adds: None, ..self }
    }

    fn read_from(self, source: &'static str) -> Self {
        Self { source, ..self }
    }

    fn mended_by(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }
}

/// What follows from the facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    /// The groups, each with its title in a text and its checks.
    pub groups: [(CheckGroup, &'static str, Vec<Check>); 6],
    /// Nothing is missing that is needed.
    pub works: bool,
    /// `works` as a sentence.
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
    let groups = GROUPS.map(|(group, title, rows)| {
        let applying = rows.iter().filter(|row| (row.applies)(facts));
        (group, title, applying.map(|row| (row.judge)(row, facts)).collect::<Vec<_>>())
    });
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
