//! A recording that can be shown from any place on. A thread of its own reads it once from start to end, for its length, its
//! highlights, and places to go on from: going back is deriving anew from the last such place before.

use super::AppError;
use super::signals::ring;
use crate::derive::{Derivation, Highlight, Highlights, Metrics};
use crate::record::{Bookmark, RecordError, Recording, StoredIn};
use crate::sample::Item;
use crate::source::feed::ReplayCursor;
use crate::state::{Playback, State, pinned_at_ns};
use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// Recorded time between two checkpoints, ns; it doubles after each [`CHECKPOINTS`], so that an hour has 70 of them and a day 200.
const APART_NS: u64 = 30_000_000_000;
const CHECKPOINTS: u32 = 32;
/// So long before what is shown the screen must have looked on: notices and links that stand still last no longer.
const LOOKED_ON_NS: u64 = 30_000_000_000;
/// The screen hears of what was read so often.
const NEWS_EVERY: Duration = Duration::from_millis(200);

/// Three seconds before the first dip of the recording that is part of the program.
pub const SHIPPED_STARTS_AT: Duration = Duration::from_secs(6);

/// A recording that is there to be read again.
pub struct Player {
    stored: StoredIn,
    first_ns: u64,
    checkpoints: Vec<Checkpoint>,
    news: Receiver<ReadAhead>,
    ready: Arc<OwnedFd>,
}

/// What everything after a place is derived from.
struct Checkpoint {
    at_ns: u64,
    place: Bookmark,
    derivation: Derivation,
    pinned_at_ns: Option<u64>,
}

/// What was read since the news before.
#[derive(Default)]
struct ReadAhead {
    last_ns: u64,
    highlights: Vec<Highlight>,
    checkpoints: Vec<Checkpoint>,
    is_whole: bool,
}

/// A recording at some place.
pub struct Start {
    /// Of everything before it.
    pub derivation: Derivation,
    /// What comes after it.
    pub reel: ReplayCursor,
    /// Of the last sample before it; none where there is none.
    pub metrics: Option<Metrics>,
}

impl Player {
    /// Begins to read it; none where it holds no sample.
    ///
    /// # Errors
    /// It cannot be read, or the kernel gives no descriptor or thread.
    pub fn open(stored: StoredIn) -> Result<Option<Self>, AppError> {
        let mut recording = Recording::open_stored(&stored).map_err(AppError::Record)?;
        let first_ns = loop {
            match recording.next_item() {
                Ok(Some(Item::Sample(sample))) => break sample.at_ns,
                Ok(Some(Item::Event(_))) => {}
                // Whoever replays it says why.
                Ok(None) | Err(_) => return Ok(None),
            }
        };
        let ready = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let ready = Arc::new(ready.map_err(|error| AppError::Index(error.into()))?);
        let (sender, news) = mpsc::channel();
        let (read_again, bell) = (stored.clone(), Arc::clone(&ready));
        let work = move || read_whole(&read_again, &sender, &bell);
        std::thread::Builder::new().name("index".to_owned()).spawn(work).map_err(AppError::Index)?;
        Ok(Some(Self { stored, first_ns, checkpoints: Vec::new(), news, ready }))
    }

    /// What is known of it before anything was read.
    #[must_use]
    pub fn playback(&self, speed: Option<f64>) -> Playback {
        Playback { span_ns: Some((self.first_ns, self.first_ns)), speed, ..Playback::default() }
    }

    /// When its first sample was taken, monotonic ns.
    #[must_use]
    pub fn first_ns(&self) -> u64 {
        self.first_ns
    }

    /// Readable when more of it was read; none once all of it was.
    #[must_use]
    pub fn ready(&self, playback: Option<&Playback>) -> Option<BorrowedFd<'_>> {
        playback.is_some_and(|playback| !playback.is_whole).then(|| self.ready.as_fd())
    }

    /// Takes over what was read meanwhile, and what is read within this time.
    pub fn receive(&mut self, playback: &mut Playback, within: Duration) {
        let since = Instant::now();
        if !playback.is_whole {
            let _ = rustix::io::read(&*self.ready, &mut [0; 8]);
        }
        while !playback.is_whole {
            match self.news.recv_timeout(within.saturating_sub(since.elapsed())) {
                Ok(news) => self.take(news, playback),
                Err(RecvTimeoutError::Timeout) => return,
                // It could not be read to its end.
                Err(RecvTimeoutError::Disconnected) => playback.is_whole = true,
            }
        }
    }

    fn take(&mut self, news: ReadAhead, playback: &mut Playback) {
        playback.span_ns = Some((self.first_ns, news.last_ns.max(self.first_ns)));
        playback.highlights.extend(news.highlights);
        playback.is_whole = news.is_whole;
        self.checkpoints.extend(news.checkpoints);
    }

    /// The recording after its last sample that is not after this moment (the first one, where all are), as if everything before had been played;
    /// whoever looks on is given what he would have seen.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn start_at(&self, to_ns: u64, state: Option<&mut State>) -> Result<Start, RecordError> {
        let mut recording = Recording::open_stored(&self.stored)?;
        let usable = |checkpoint: &&Checkpoint| checkpoint.at_ns.saturating_add(LOOKED_ON_NS) <= to_ns;
        let from = self.checkpoints.iter().rfind(usable);
        if let Some(from) = from {
            recording.skip_to(&from.place)?;
        }
        let mut derivation = from.map_or_else(Derivation::default, |from| from.derivation.clone());
        let mut state = state;
        if let Some(state) = &mut state {
            state.rewind(from.and_then(|from| from.pinned_at_ns));
        }
        let mut reel = ReplayCursor::from(recording);
        let mut last: Option<Metrics> = None;
        while let Some(next) = reel.peek()? {
            if last.is_some() && matches!(next, Item::Sample(sample) if sample.at_ns > to_ns) {
                break;
            }
            let metrics = reel.next_item()?.and_then(|item| derivation.advance(item));
            if let Some(metrics) = metrics
                && let Some(passed) = last.replace(metrics)
                && let Some(state) = &mut state
            {
                state.pass(&passed);
            }
        }
        reel.since_ns = last.as_ref().map(|metrics| metrics.at_ns);
        Ok(Start { derivation, reel, metrics: last })
    }
}

/// Reads it from start to end; it ends early when nobody hears of it any more, and where it is damaged.
fn read_whole(stored: &StoredIn, news: &Sender<ReadAhead>, ready: &OwnedFd) {
    let Ok(mut recording) = Recording::open_stored(stored) else { return };
    let (mut derivation, mut track) = (Derivation::default(), Highlights::default());
    let (mut next, mut pinned, mut made, mut checkpoint_ns) = (ReadAhead::default(), None, 0_u32, None);
    let mut told = Instant::now();
    while let Ok(Some(item)) = recording.next_item() {
        let Some(metrics) = derivation.advance(item) else { continue };
        pinned = pinned_at_ns(pinned, &metrics);
        next.last_ns = metrics.at_ns;
        next.highlights.extend(track.observe(&metrics));
        let since_ns = metrics.at_ns.saturating_sub(*checkpoint_ns.get_or_insert(metrics.at_ns));
        if since_ns >= APART_NS << (made / CHECKPOINTS).min(16) {
            (made, checkpoint_ns) = (made + 1, Some(metrics.at_ns));
            let (at_ns, place) = (metrics.at_ns, recording.bookmark());
            next.checkpoints.push(Checkpoint { at_ns, place, derivation: derivation.clone(), pinned_at_ns: pinned });
        }
        if told.elapsed() >= NEWS_EVERY {
            told = Instant::now();
            let last_ns = next.last_ns;
            if news.send(std::mem::replace(&mut next, ReadAhead { last_ns, ..ReadAhead::default() })).is_err() {
                return;
            }
            ring(ready);
        }
    }
    next.is_whole = true;
    let _nobody_left = news.send(next);
    ring(ready);
}

#[cfg(test)]
mod tests;
