//! What happens to every item whatever the face: it is recorded as it is, then derived from.

use crate::derive::history::History;
use crate::derive::{Derivation, Metrics};
use crate::record::{RecordError, Recorder};
use crate::sample::Item;
use std::path::{Path, PathBuf};

/// The recording, if one runs, and the derivation.
#[derive(Default)]
pub struct Stream {
    derivation: Derivation,
    recorder: Option<Recorder>,
}

/// What the record key did.
pub enum Toggled {
    /// A recording was begun in this file.
    Begun(PathBuf),
    /// The recording in this file was closed.
    Ended(PathBuf),
}

impl Stream {
    /// A stream that is recorded from the first item on, if a recorder is given.
    #[must_use]
    pub fn new(recorder: Option<Recorder>) -> Self {
        Self { derivation: Derivation::default(), recorder }
    }

    /// One that goes on from what was derived before.
    pub fn go_on_from(&mut self, derivation: Derivation) {
        self.derivation = derivation;
    }

    /// Records the item; the recording is given up when it cannot be written.
    ///
    /// # Errors
    /// The reason.
    pub fn record(&mut self, item: &Item) -> Result<(), RecordError> {
        let Some(recorder) = &mut self.recorder else { return Ok(()) };
        recorder.write(item).inspect_err(|_| self.recorder = None)
    }

    /// A recording runs.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        self.recorder.is_some()
    }

    /// Derives from the item; a sample gives metrics.
    pub fn derive(&mut self, item: Item) -> Option<Metrics> {
        self.derivation.advance(item)
    }

    /// Strips and trails.
    #[must_use]
    pub fn history(&self) -> &History {
        self.derivation.history()
    }

    /// Begins a recording in this new file, or closes the one that runs. One that begins in the middle starts
    /// with the newest sample, so that its first interval is whole.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn toggle_recording(&mut self, path: &Path) -> Result<Toggled, RecordError> {
        if let Some(recorder) = self.recorder.take() {
            let path = recorder.path().to_owned();
            return recorder.finish().map(|()| Toggled::Ended(path));
        }
        let latest = self.derivation.latest().cloned();
        let mut recorder = Recorder::create_new(path)?;
        if let Some(sample) = latest {
            recorder.write(&Item::Sample(Box::new(sample)))?;
        }
        self.recorder = Some(recorder);
        Ok(Toggled::Begun(path.to_owned()))
    }

    /// Closes the recording.
    ///
    /// # Errors
    /// Its end cannot be written.
    pub fn finish(self) -> Result<(), RecordError> {
        self.recorder.map_or(Ok(()), Recorder::finish)
    }
}

/// A time as part of a file name, UTC: `20260102-030405`.
#[must_use]
pub fn file_stamp(wall_ms: u64) -> String {
    let text = crate::report::timestamp(wall_ms);
    text.chars().take(19).filter(|c| !matches!(c, '-' | ':')).map(|c| if c == 'T' { '-' } else { c }).collect()
}
