//! The only room that changes the machine: pins, their journal, their undoing. Every mask is journalled before it is
//! set, read back after, and put back exactly. It decides nothing: which thread gets which core is told to it, and it
//! refuses to touch a thread whose start time is not the one it was told.

mod found_placements;
mod journal;
mod kernel;
mod link_settings;
mod own_pins;
mod own_steers;
mod pin;
mod put_back;
mod put_back_steer;
mod steer;
#[cfg(test)]
mod tests;
mod undo_left_behind;
mod undo_steers;

pub use found_placements::{FOUND_FILE, found_placements, remember_placement};
pub use journal::{Journal, JournalError, LockError, journal_dir};
pub use kernel::{Kernel, NumberSpaces, Pinner};
pub use link_settings::LinkSettings;
pub use own_pins::PinController;
pub use undo_left_behind::{LeftBehind, left_behind, undo};

pub use crate::sample::{OutcomeLine, PinRequest, SteerRequest};

use crate::sample::{CoreSet, Event};
use std::error::Error;
use std::time::Duration;

/// What `update` asks the world to do. A value: nothing has happened yet.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Set these affinity masks, one thread after the other.
    Pin(Vec<PinRequest>),
    /// Set these masks, and then change these settings of links.
    Place(Vec<PinRequest>, Vec<SteerRequest>),
    /// Put back every mask and every setting that this vnettop replaced.
    Restore,
    /// Sample at this interval from now on.
    SetInterval(Duration),
    /// Begin a recording, or end the one that runs.
    ToggleRecording,
    /// Save the last minutes, which are always kept, as a recording.
    SaveLast,
    /// Write a report of what was seen so far to a file.
    WriteReport,
    /// Write the card that is shown to files.
    WriteCard,
    /// Save what the screen is like to the configuration.
    SaveSettings,
    /// Put a mark into the recording and the history.
    Mark,
    /// Show the next sample of a frozen replay.
    Step,
    /// Show a replay as it was at the last sample not after this moment, recorded monotonic ns.
    Seek(u64),
    /// Play a recording at so many times its own speed from now on.
    Play(f64),
    /// Stop the program until somebody continues it.
    Suspend,
}

/// What came of an effect.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// One sentence each, in order.
    pub lines: Vec<OutcomeLine>,
    /// What to tell the recording and the derivation.
    pub events: Vec<Event>,
    /// Another vnettop that runs has some of the threads, or may have.
    pub taken: bool,
}

impl Outcome {
    /// What every request gets where vnettop was told to change nothing.
    #[must_use]
    pub fn readonly() -> Self {
        Self::line(true, "nothing was changed: start vnettop without --readonly to pin or restore")
    }

    /// What went as asked, or was not to be done: one sentence.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self::line(false, text)
    }

    fn line(warning: bool, text: impl Into<String>) -> Self {
        Self { lines: vec![OutcomeLine { warning, text: text.into() }], ..Self::default() }
    }

    /// The sentence that tells most: the first of what went otherwise than asked, else the first.
    #[must_use]
    pub fn first(&self) -> Option<&str> {
        let warning = self.lines.iter().find(|line| line.warning);
        warning.or(self.lines.first()).map(|line| line.text.as_str())
    }

    fn say(&mut self, text: String) {
        self.lines.push(OutcomeLine { warning: false, text });
    }

    fn warn(&mut self, text: String) {
        self.lines.push(OutcomeLine { warning: true, text });
    }
}

/// What was done, or why it was not: one sentence.
impl<E: Error> From<Result<String, E>> for Outcome {
    fn from(done: Result<String, E>) -> Self {
        Self::line(done.is_err(), done.unwrap_or_else(|error| error.to_string()))
    }
}

/// `core 4`, `cores 0-3`: a mask inside a sentence.
fn cores_of(mask: &CoreSet) -> String {
    match mask.len() {
        0 => "no core".to_owned(),
        1 => format!("core {mask}"),
        _ => format!("cores {mask}"),
    }
}

/// What a fuzzer gives the reader of journals.
#[cfg(fuzzing)]
#[doc(hidden)]
pub fn fuzz_journal(bytes: &[u8]) {
    journal::past::fuzz(bytes);
}
