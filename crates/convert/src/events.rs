//! What vnettop or its user did, as instants of a trace: a sentence each, and when.

use vnettop_derive::saved::SavedFor;
use vnettop_derive::{MachineMetrics, OverriddenPin};
use vnettop_sample::{Event, LinkKey, SearchStep, SteeredFile, StretchSide, ThreadId, Word};

/// An event with its instant, monotonic ns, and its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToldEvent {
    /// When.
    pub at_ns: u64,
    /// The kind, as JSON and recordings call it.
    pub kind: &'static str,
    /// A sentence.
    pub text: String,
}

/// What was done since the sample before, in the order of time. One that does not tell its instant is told as of this sample.
pub fn told(machine: &MachineMetrics) -> Vec<ToldEvent> {
    let mut all = told_of(machine, &machine.events);
    all.extend(machine.undone.iter().map(|pin| undone(machine, pin)));
    all.sort_by_key(|one| one.at_ns);
    all
}

/// The same of these events, on a machine as it was last.
pub fn told_of(machine: &MachineMetrics, events: &[Event]) -> Vec<ToldEvent> {
    let mut all: Vec<ToldEvent> = events.iter().filter_map(|event| of(machine, event)).collect();
    all.sort_by_key(|one| one.at_ns);
    all
}

fn undone(machine: &MachineMetrics, pin: &OverriddenPin) -> ToldEvent {
    let text = format!("{}: pin to {} undone by something else, now {}", pin.label, pin.gave, pin.now);
    ToldEvent { at_ns: machine.at_ns, kind: "pin_undone", text }
}

fn of(machine: &MachineMetrics, event: &Event) -> Option<ToldEvent> {
    let thread = |id: &ThreadId| {
        let known = machine.threads.iter().find(|one| one.sample.id == *id);
        known.map_or_else(|| format!("thread {}", id.tid), |one| format!("{} {}", one.sample.name, id.tid))
    };
    let (at_ns, kind, text) = match event {
        Event::Pinned { thread: id, old, got, at_ns, .. } => {
            (*at_ns, "pinned", format!("{} pinned to {got} (was {old})", thread(id)))
        }
        Event::Restored { thread: id, got, at_ns } => (*at_ns, "restored", format!("{} restored to {got}", thread(id))),
        Event::Steered { file, old, got, at_ns, .. } => {
            (*at_ns, "steered", format!("{} set to {got} (was {old})", setting(machine, file)))
        }
        Event::Unsteered { file, got, at_ns } => {
            (*at_ns, "unsteered", format!("{} restored to {got}", setting(machine, file)))
        }
        Event::Mark { at_ns } => (*at_ns, "mark", "mark".to_owned()),
        Event::RunAsked(asked) => (0, "run_asked", format!("asked to run {}", asked.command.join(" "))),
        Event::RunStarted { at_ns, pid } => (*at_ns, "run_started", format!("command started, pid {pid}")),
        Event::Stretch { at_ns, side } => (*at_ns, "stretch", phase(*side).to_owned()),
        Event::Search { at_ns, step } => (*at_ns, "search", search(step)),
        Event::NotPinned { at_ns, why } => (*at_ns, "not_pinned", Event::nothing_was_pinned(why)),
        Event::RunEnded { at_ns, code } => (*at_ns, "run_ended", format!("command ended, exit code {code}")),
        Event::Saved { at_ns, trigger } => {
            (*at_ns, "saved", format!("saved because of {}", SavedFor::new(*trigger, *at_ns, *at_ns).what()))
        }
        // One a second: figures, which other tracks have, and stacks.
        Event::Reported { .. } | Event::Profiled(_) => return None,
    };
    Some(ToldEvent { at_ns: if at_ns == 0 { machine.at_ns } else { at_ns }, kind, text })
}

fn setting(machine: &MachineMetrics, file: &SteeredFile) -> String {
    let name = |link: LinkKey| machine.link(link).map_or_else(String::new, |link| format!("{} ", link.facts.name));
    format!("{}{}", name(file.link), file.path())
}

fn phase(side: Option<StretchSide>) -> &'static str {
    match side {
        Some(StretchSide::Pinned) => "pinned phase starts",
        Some(StretchSide::Unpinned) => "unpinned phase starts",
        None => "phases end",
    }
}

fn search(step: &SearchStep) -> String {
    let word: &'static str = step.into();
    format!("search: {}", word.replace('_', " "))
}

/// The kind of a finding, a limit or a place as words.
pub fn words(of: impl Word) -> String {
    of.word().replace(['_', '-'], " ")
}
