//! The `events` and the `trace` of an object: what happened since the object before, each with its kind. It computes nothing.

use super::benchmark::{IntervalObject, WholeTest};
use crate::derive::{Metrics, OverriddenPin, TracedMove};
use crate::sample::{CoreSet, Event, Report, Side, StretchSide, TraceSource, Word};
use serde::Serialize;

/// Where the events of moves come from, and how many moves were lost since the trace began.
#[derive(Serialize)]
pub(super) struct Tracing {
    source: TraceSource,
    lost: u64,
}

impl Tracing {
    pub(super) fn of(metrics: &Metrics) -> Option<Self> {
        metrics.trace.map(|(source, lost)| Self { source, lost })
    }
}

/// What the kernel, vnettop or its user did since the object before.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Happened<'a> {
    Move {
        t_ns: u64,
        tid: u32,
        from: u32,
        to: u32,
        class: Option<&'static str>,
    },
    Mark {
        t_ns: u64,
    },
    Pinned {
        pid: u32,
        tid: u32,
        old: &'a CoreSet,
        asked: &'a CoreSet,
        got: &'a CoreSet,
    },
    Restored {
        pid: u32,
        tid: u32,
        got: &'a CoreSet,
    },
    PinUndone {
        pid: u32,
        tid: u32,
        gave: &'a CoreSet,
        now: &'a CoreSet,
    },
    RunAsked {
        command: &'a [String],
        pin: &'a str,
    },
    RunStarted {
        t_ns: u64,
        pid: u32,
    },
    Stretch {
        t_ns: u64,
        side: Option<StretchSide>,
    },
    NotPinned {
        t_ns: u64,
        why: &'a str,
    },
    Reported {
        t_ns: u64,
        pid: u32,
        side: Option<Side>,
        interval: Option<IntervalObject>,
        whole: Option<WholeTest>,
        gap: Option<&'static str>,
    },
    RunEnded {
        t_ns: u64,
        code: i32,
    },
}

impl<'a> Happened<'a> {
    /// Everything, the moves first.
    pub(super) fn all(metrics: &'a Metrics) -> Vec<Self> {
        let moves = metrics.moves.iter().map(Self::moved);
        let done = metrics.events.iter().map(Self::of);
        moves.chain(done).chain(metrics.undone.iter().map(Self::undone)).collect()
    }

    fn undone(OverriddenPin { thread, gave, now, .. }: &'a OverriddenPin) -> Self {
        Self::PinUndone { pid: thread.pid, tid: thread.tid, gave, now }
    }

    fn moved(one: &TracedMove) -> Self {
        let class = one.class.map(Into::into);
        Self::Move { t_ns: one.at_ns, tid: one.thread.tid, from: one.from, to: one.to, class }
    }

    fn of(event: &'a Event) -> Self {
        match event {
            Event::Mark { at_ns } => Self::Mark { t_ns: *at_ns },
            Event::Pinned { thread, old, asked, got, .. } => {
                Self::Pinned { pid: thread.pid, tid: thread.tid, old, asked, got }
            }
            Event::Restored { thread, got, .. } => Self::Restored { pid: thread.pid, tid: thread.tid, got },
            Event::RunAsked(asked) => Self::RunAsked { command: &asked.command, pin: asked.pin.word() },
            Event::RunStarted { at_ns, pid } => Self::RunStarted { t_ns: *at_ns, pid: *pid },
            Event::Stretch { at_ns, side } => Self::Stretch { t_ns: *at_ns, side: *side },
            Event::NotPinned { at_ns, why } => Self::NotPinned { t_ns: *at_ns, why },
            Event::Reported { at_ns, pid, side, report } => Self::reported((*at_ns, *pid, *side), *report),
            Event::RunEnded { at_ns, code } => Self::RunEnded { t_ns: *at_ns, code: *code },
        }
    }

    fn reported((t_ns, pid, side): (u64, u32, Option<Side>), report: Report) -> Self {
        let (interval, whole, gap) = match report {
            Report::Interval(last) => (Some(IntervalObject::of(last)), None, None),
            Report::Whole(whole) => (None, Some(WholeTest::of(whole)), None),
            Report::Unread(why) => (None, None, Some(why.sentence())),
        };
        Self::Reported { t_ns, pid, side, interval, whole, gap }
    }
}
