//! The `events` and the `trace` of an object: what happened since the object before, each with its kind. It computes nothing.

use super::{InJson, JsonObject};
use crate::derive::{MachineMetrics, MoveClass, OverriddenPin, TestMetrics, TracedMove};
use crate::sample::{Event, Report, SearchStep, SteeredFile, ThreadId, TraceSource, TriggerKind, Word};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};

/// Where the events of moves come from, and how many moves were lost since the trace began.
#[derive(Serialize)]
pub(super) struct Tracing {
    source: TraceSource,
    lost: u64,
}

impl Tracing {
    pub(super) fn of(machine: &MachineMetrics) -> Option<Self> {
        machine.trace.map(|(source, lost)| Self { source, lost })
    }
}

/// What the kernel, vnettop or its user did since the object before, the moves first.
pub(super) struct Events<'a>(pub &'a [TracedMove], pub &'a TestMetrics);

impl Serialize for Events<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(moves, metrics) = self;
        let MachineMetrics { events, undone, .. } = &*metrics.machine;
        let mut list = serializer.serialize_seq(Some(moves.len() + events.len() + undone.len()))?;
        moves.iter().try_for_each(|one| list.serialize_element(&InJson(one, metrics)))?;
        events.iter().try_for_each(|one| list.serialize_element(&InJson(one, metrics)))?;
        undone.iter().try_for_each(|one| list.serialize_element(&InJson(one, metrics)))?;
        list.end()
    }
}

impl JsonObject for TracedMove {
    fn fields<M: SerializeMap>(&self, _: &TestMetrics, object: &mut M) -> Result<(), M::Error> {
        object.serialize_entry("kind", "move")?;
        object.serialize_entry("t_ns", &self.at_ns)?;
        object.serialize_entry("pid", &self.thread.pid)?;
        object.serialize_entry("tid", &self.thread.tid)?;
        object.serialize_entry("from", &self.from)?;
        object.serialize_entry("to", &self.to)?;
        object.serialize_entry("class", &self.class.map(MoveClass::word))
    }
}

impl JsonObject for OverriddenPin {
    fn fields<M: SerializeMap>(&self, _: &TestMetrics, object: &mut M) -> Result<(), M::Error> {
        object.serialize_entry("kind", "pin_undone")?;
        object.serialize_entry("pid", &self.thread.pid)?;
        object.serialize_entry("tid", &self.thread.tid)?;
        object.serialize_entry("gave", &self.gave)?;
        object.serialize_entry("now", &self.now)
    }
}

impl JsonObject for Event {
    fn fields<M: SerializeMap>(&self, metrics: &TestMetrics, object: &mut M) -> Result<(), M::Error> {
        match self {
            Self::Mark { at_ns } => of_time(object, "mark", *at_ns),
            Self::Pinned { thread, old, asked, got, .. } => {
                of_thread(object, "pinned", *thread)?;
                object.serialize_entry("old", old)?;
                object.serialize_entry("asked", asked)?;
                object.serialize_entry("got", got)
            }
            Self::Restored { thread, got, .. } => {
                of_thread(object, "restored", *thread)?;
                object.serialize_entry("got", got)
            }
            Self::Steered { file, old, asked, got, .. } => {
                steered(object, "steered", *file)?;
                object.serialize_entry("old", old)?;
                object.serialize_entry("asked", asked)?;
                object.serialize_entry("got", got)
            }
            Self::Unsteered { file, got, .. } => {
                steered(object, "unsteered", *file)?;
                object.serialize_entry("got", got)
            }
            Self::RunAsked(asked) => {
                object.serialize_entry("kind", "run_asked")?;
                object.serialize_entry("command", &asked.command)?;
                object.serialize_entry("pin", asked.pin.word())
            }
            Self::RunStarted { at_ns, pid } => {
                object.serialize_entry("kind", "run_started")?;
                object.serialize_entry("t_ns", at_ns)?;
                object.serialize_entry("pid", pid)
            }
            Self::Stretch { at_ns, side } => {
                object.serialize_entry("kind", "stretch")?;
                object.serialize_entry("t_ns", at_ns)?;
                object.serialize_entry("side", side)
            }
            Self::Search { at_ns, step } => search(object, *at_ns, step),
            Self::NotPinned { at_ns, why } => {
                object.serialize_entry("kind", "not_pinned")?;
                object.serialize_entry("t_ns", at_ns)?;
                object.serialize_entry("why", why)
            }
            Self::Reported { at_ns, pid, side, report } => {
                object.serialize_entry("kind", "reported")?;
                object.serialize_entry("t_ns", at_ns)?;
                object.serialize_entry("pid", pid)?;
                object.serialize_entry("side", side)?;
                reported(object, report, metrics)
            }
            Self::Saved { at_ns, trigger } => saved(object, *at_ns, *trigger),
            Self::Profiled(profile) => super::profile::stacks(object, profile),
            Self::RunEnded { at_ns, code } => {
                object.serialize_entry("kind", "run_ended")?;
                object.serialize_entry("t_ns", at_ns)?;
                object.serialize_entry("code", code)
            }
        }
    }
}

fn of_time<M: SerializeMap>(object: &mut M, kind: &str, at_ns: u64) -> Result<(), M::Error> {
    object.serialize_entry("kind", kind)?;
    object.serialize_entry("t_ns", &at_ns)
}

fn saved<M: SerializeMap>(object: &mut M, at_ns: u64, trigger: Option<TriggerKind>) -> Result<(), M::Error> {
    of_time(object, "saved", at_ns)?;
    object.serialize_entry("trigger", &trigger.map(Word::word))
}

fn of_thread<M: SerializeMap>(object: &mut M, kind: &str, thread: ThreadId) -> Result<(), M::Error> {
    object.serialize_entry("kind", kind)?;
    object.serialize_entry("pid", &thread.pid)?;
    object.serialize_entry("tid", &thread.tid)
}

fn steered<M: SerializeMap>(object: &mut M, kind: &str, file: SteeredFile) -> Result<(), M::Error> {
    object.serialize_entry("kind", kind)?;
    object.serialize_entry("netns", &file.link.netns)?;
    object.serialize_entry("ifindex", &file.link.ifindex)?;
    object.serialize_entry("file", &file.path())
}

/// One of the three is there.
fn reported<M: SerializeMap>(object: &mut M, report: &Report, metrics: &TestMetrics) -> Result<(), M::Error> {
    let (interval, whole, gap) = match report {
        Report::Interval(last) => (Some(InJson(last, metrics)), None, None),
        Report::Whole(whole) => (None, Some(InJson(whole, metrics)), None),
        Report::Unread(why) => (None, None, Some(why.sentence())),
    };
    object.serialize_entry("interval", &interval)?;
    object.serialize_entry("whole", &whole)?;
    object.serialize_entry("gap", &gap)
}

fn search<M: SerializeMap>(object: &mut M, at_ns: u64, step: &SearchStep) -> Result<(), M::Error> {
    object.serialize_entry("kind", "search")?;
    object.serialize_entry("t_ns", &at_ns)?;
    object.serialize_entry("step", step.word())?;
    match step {
        SearchStep::Started { seed, placements, .. } => {
            object.serialize_entry("seed", seed)?;
            object.serialize_entry("classes", &placements.iter().map(|one| one.class.word()).collect::<Vec<_>>())
        }
        SearchStep::Phase { placement, round } => {
            object.serialize_entry("placement", placement)?;
            object.serialize_entry("round", round)
        }
        SearchStep::Dropped { placement, rounds } => {
            object.serialize_entry("placement", placement)?;
            object.serialize_entry("rounds", rounds)
        }
        SearchStep::Failed { placement, why } => {
            object.serialize_entry("placement", placement)?;
            object.serialize_entry("why", why)
        }
        SearchStep::Ended => Ok(()),
    }
}
