//! What happens to every item whatever the face: it is recorded as it is, then derived from.

use crate::derive::Derivation;
use crate::record::{RecordError, Recorder};
use crate::sample::Item;
use std::path::{Path, PathBuf};

/// The recording, if one runs, and the derivation.
#[derive(Default)]
pub struct Stream {
    /// What was derived so far.
    pub derivation: Derivation,
    recorder: Option<Recorder>,
    /// Why a recording that was asked for is not whole.
    broken: Option<RecordError>,
}

impl Stream {
    /// A stream that is recorded from the first item on, if a recorder is given.
    #[must_use]
    pub fn new(recorder: Option<Recorder>) -> Self {
        Self { recorder, ..Self::default() }
    }

    /// Records the item; the recording is given up when it cannot be written: why, told once.
    pub fn record(&mut self, item: &Item) -> Option<String> {
        let error = self.recorder.as_mut()?.write(item).err()?;
        let sentence = error.to_string();
        (self.recorder, self.broken) = (None, Some(error));
        Some(sentence)
    }

    /// Begins a recording in this new file. One that begins in the middle starts with the newest sample, so that its
    /// first interval is whole.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn begin_recording(&mut self, path: &Path) -> Result<(), RecordError> {
        let mut recorder = Recorder::create_new(path)?;
        if let Some(sample) = self.derivation.latest().cloned() {
            recorder.write(&Item::Sample(Box::new(sample)))?;
        }
        self.recorder = Some(recorder);
        Ok(())
    }

    /// Closes the recording that runs, if one does; its file.
    ///
    /// # Errors
    /// Its end cannot be written.
    pub fn end_recording(&mut self) -> Result<Option<PathBuf>, RecordError> {
        let Some(recorder) = self.recorder.take() else { return Ok(None) };
        let path = recorder.path().to_owned();
        recorder.finish().map(|()| Some(path))
    }

    /// Closes the recording.
    ///
    /// # Errors
    /// Its end cannot be written, or it was given up before.
    pub fn finish(mut self) -> Result<(), RecordError> {
        self.end_recording()?;
        self.broken.map_or(Ok(()), Err)
    }
}
