//! What happens to every item whatever the face: it is recorded as it is, then derived from.

mod profiled_limit;

use super::black_box::{BlackBox, SaveNews};
use crate::derive::{Derivation, Metrics};
use crate::record::{RecordError, Recorder};
use crate::sample::{Item, OnRequest};
use crate::source::feed::Feed;
use profiled_limit::ProfiledLimit;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// A recording that several hosts may be written to: this one's share of it.
#[derive(Clone)]
pub struct RecorderShare {
    recorder: Rc<RefCell<Recorder>>,
    host: usize,
}

impl RecorderShare {
    /// Of a recording of so many hosts, the share of each.
    #[must_use]
    pub fn of(recorder: Recorder, hosts: usize) -> Vec<Self> {
        let recorder = Rc::new(RefCell::new(recorder));
        (0..hosts).map(|host| Self { recorder: Rc::clone(&recorder), host }).collect()
    }

    fn write(&self, item: &Item) -> Result<(), RecordError> {
        self.recorder.borrow_mut().write_of(self.host, item)
    }
}

/// The recording, if one runs, and the derivation.
#[derive(Default)]
pub struct Stream {
    /// What was derived so far.
    pub derivation: Derivation,
    /// What keeps the last minutes; none in a replay and where nothing is to be kept.
    pub black_box: Option<BlackBox>,
    recorder: Option<RecorderShare>,
    /// Why a recording that was asked for is not whole.
    broken: Option<RecordError>,
    /// The core that LIMIT names is to be profiled.
    profiled: Option<ProfiledLimit>,
}

impl Stream {
    /// A stream that is recorded from the first item on, if a recorder is given.
    #[must_use]
    pub fn new(recorder: Option<Recorder>) -> Self {
        Self::sharing(recorder.map(|recorder| RecorderShare { recorder: Rc::new(RefCell::new(recorder)), host: 0 }))
    }

    /// A stream that is recorded from the first item on, in a recording that other streams may share; not recorded when `None`.
    #[must_use]
    pub fn sharing(recorder: Option<RecorderShare>) -> Self {
        Self { recorder, ..Self::default() }
    }

    /// The same, of a sampler that was asked for this: the core that LIMIT names, where that is to be profiled, is found out here.
    #[must_use]
    pub fn asking(self, asked: OnRequest) -> Self {
        Self { profiled: ProfiledLimit::of(asked), ..self }
    }

    /// Has the core profiled that LIMIT names, where that was asked for.
    pub fn profile_limit(&mut self, metrics: &Metrics, feed: &Feed) {
        if let Some(profiled) = &mut self.profiled {
            profiled.follow(metrics, feed);
        }
    }

    /// Records the item; the recording is given up when it cannot be written: why, told once.
    pub fn record(&mut self, item: &Item) -> Option<String> {
        if let Some(black_box) = &mut self.black_box {
            black_box.record(item);
        }
        let error = self.recorder.as_mut()?.write(item).err()?;
        let sentence = error.to_string();
        (self.recorder, self.broken) = (None, Some(error));
        Some(sentence)
    }

    /// Saves what was kept where something has happened; what came of a save.
    pub fn watch(&mut self, metrics: &Metrics) -> Option<SaveNews> {
        self.black_box.as_mut()?.observe(metrics)
    }

    /// Saves what still waits to be saved, and stops keeping; what came of it.
    pub fn end_saves(&mut self) -> Vec<SaveNews> {
        self.black_box.take().map(|mut black_box| black_box.finish()).unwrap_or_default()
    }

    /// Begins a recording in this new file. One that begins in the middle starts with the newest sample, so that its
    /// first interval is whole.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn begin_recording(&mut self, path: &Path) -> Result<(), RecordError> {
        let recorder = Rc::new(RefCell::new(Recorder::create_new(path)?));
        self.join_recording(RecorderShare { recorder, host: 0 })
    }

    /// Joins a recording that other streams share, beginning with the newest sample.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn join_recording(&mut self, share: RecorderShare) -> Result<(), RecordError> {
        if let Some(sample) = self.derivation.latest().cloned() {
            share.write(&Item::Sample(Box::new(sample)))?;
        }
        self.recorder = Some(share);
        Ok(())
    }

    /// Closes the recording that runs, if one does; its file.
    ///
    /// # Errors
    /// Its end cannot be written.
    pub fn end_recording(&mut self) -> Result<Option<PathBuf>, RecordError> {
        let Some(share) = self.recorder.take() else { return Ok(None) };
        let path = share.recorder.borrow().path().to_owned();
        // The last one that shares it ends it.
        let whole = Rc::into_inner(share.recorder).map(RefCell::into_inner);
        whole.map_or(Ok(()), Recorder::finish).map(|()| Some(path))
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
