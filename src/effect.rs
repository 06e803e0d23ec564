//! The only room that changes the machine: pins, their journal, their undoing. (to be written)

use crate::sample::{CoreSet, Event, ThreadId};
use std::time::Duration;

/// What `update` asks the world to do. A value: nothing has happened yet.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Set these affinity masks, one thread after the other.
    Pin(Vec<PinRequest>),
    /// Put back every mask that this vnettop replaced.
    Restore,
    /// Sample at this interval from now on.
    SetInterval(Duration),
    /// Begin a recording, or end the one that runs.
    ToggleRecording,
    /// Write a report of this moment to a file.
    WriteReport,
    /// Put a mark into the recording and the history.
    Mark,
    /// Show the next sample of a frozen replay.
    Step,
}

/// One thread and the mask it should get.
#[derive(Debug, Clone, PartialEq)]
pub struct PinRequest {
    /// The thread; never another one that got its tid since.
    pub thread: ThreadId,
    /// Its name and role, for people.
    pub label: String,
    /// The mask asked for.
    pub cores: CoreSet,
}

/// What came of an effect.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// One sentence each, in order.
    pub lines: Vec<Line>,
    /// What to tell the recording and the derivation.
    pub events: Vec<Event>,
}

/// One sentence of an outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// It went otherwise than asked.
    pub warning: bool,
    /// The sentence.
    pub text: String,
}
