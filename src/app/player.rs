//! A recording that can be shown from any place on. A thread of its own reads it once from start to end, for its length, its
//! highlights, and places to go on from: going back is deriving anew from the last such place before.

use super::AppError;
use super::signals::ring;
use crate::derive::saved::SavedFor;
use crate::derive::{Derivation, Highlight, Highlights, Metrics, SummaryRoom, SummaryTrack};
use crate::record::{Bookmark, RecordError, Recording, StoredIn};
use crate::sample::{Event, Item};
use crate::source::feed::ReplayCursor;
use crate::state::{Mode, Playback, ScreenMemory, Settings, State};
use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// Recorded time between two checkpoints, ns: what has to be derived anew after a seek. Each is a megabyte or a few, so when there are
/// [`CHECKPOINTS`] every other one goes and it doubles; an hour has 120 of them.
const APART_NS: u64 = 30_000_000_000;
const CHECKPOINTS: usize = 128;
/// How much recording is replayed before the place that is asked for where a test was chosen: the screen remembers the links on a
/// test's path for no longer.
const LOOKED_ON_NS: u64 = 20_000_000_000;
/// The first sample of a recording is looked for so long.
const FIRST_SAMPLE: Duration = Duration::from_millis(500);
/// The screen hears of what was read so often.
const NEWS_EVERY: Duration = Duration::from_millis(200);

/// Three seconds before the first dip of the recording that is part of the program.
pub const SHIPPED_STARTS_AT: Duration = Duration::from_secs(6);

/// A recording that is there to be read again.
pub struct Player {
    stored: StoredIn,
    first_ns: u64,
    saved: Option<SavedFor>,
    checkpoints: Vec<Checkpoint>,
    news: Receiver<ReadAhead>,
    ready: Arc<OwnedFd>,
}

/// What everything after a place is derived from.
struct Checkpoint {
    at_ns: u64,
    place: Bookmark,
    derivation: Derivation,
    seen: SummaryTrack,
    memory: ScreenMemory,
}

/// What was read since the news before.
#[derive(Default)]
struct ReadAhead {
    last_ns: u64,
    highlights: Vec<Highlight>,
    checkpoints: Vec<Checkpoint>,
    is_whole: bool,
    damage: Option<String>,
}

/// A recording at some place.
pub struct Start {
    /// Of everything before it.
    pub derivation: Derivation,
    /// Of everything up to it.
    pub seen: SummaryTrack,
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
        let (begin, mut saved) = (Instant::now(), None);
        let first_ns = loop {
            match recording.next_item() {
                Ok(Some(Item::Sample(sample))) => break sample.at_ns,
                // Nothing is drawn and no key heard before: one that has none for so long is played like a pipe.
                Ok(Some(Item::Event(_))) if begin.elapsed() > FIRST_SAMPLE => return Ok(None),
                Ok(Some(Item::Event(Event::Saved { at_ns, trigger }))) => saved = Some((trigger, at_ns)),
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
        let saved = saved.map(|(trigger, at_ns)| SavedFor::new(trigger, at_ns, first_ns));
        Ok(Some(Self { stored, first_ns, saved, checkpoints: Vec::new(), news, ready }))
    }

    /// What is known of it before anything was read.
    #[must_use]
    pub fn playback(&self, speed: Option<f64>) -> Playback {
        Playback { span_ns: Some((self.first_ns, self.first_ns)), speed, ..Playback::default() }
    }

    /// Where it is stored.
    #[must_use]
    pub fn stored(&self) -> &StoredIn {
        &self.stored
    }

    /// Why it was saved by itself; none where somebody asked for it.
    #[must_use]
    pub fn saved(&self) -> Option<SavedFor> {
        self.saved
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

    /// Takes over what was read meanwhile, and what is read within this time until this moment has been, recorded monotonic ns.
    pub fn receive(&mut self, playback: &mut Playback, until_ns: u64, within: Duration) {
        let since = Instant::now();
        if !playback.is_whole {
            let _ = rustix::io::read(&*self.ready, &mut [0; 8]);
        }
        while !playback.is_whole {
            let within = if playback.has_read(until_ns) { Duration::ZERO } else { within };
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
        (playback.is_whole, playback.damage) = (news.is_whole, news.damage);
        for checkpoint in news.checkpoints {
            self.checkpoints.push(checkpoint);
            if self.checkpoints.len() == CHECKPOINTS {
                let mut stays = true;
                self.checkpoints.retain(|_| {
                    stays = !stays;
                    stays
                });
            }
        }
    }

    /// The recording after its last sample that is not after this moment (the first one, where all are), as if everything before had been played;
    /// whoever looks on is given what he would have seen. A place that was not read ahead yet takes as long as reading up to it.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn start_at(&self, to_ns: u64, mut state: Option<&mut State>) -> Result<Start, RecordError> {
        let mut recording = Recording::open_stored(&self.stored)?;
        let looked_on_ns = if state.as_ref().is_some_and(|state| state.has_chosen_test()) { LOOKED_ON_NS } else { 0 };
        let usable = |checkpoint: &&Checkpoint| checkpoint.at_ns.saturating_add(looked_on_ns) < to_ns;
        let from = self.checkpoints.iter().rfind(usable);
        if let Some(from) = from {
            recording.skip_to(&from.place)?;
        }
        let mut derivation = from.map_or_else(Derivation::default, |from| from.derivation.clone());
        let mut seen = from.map_or_else(|| SummaryTrack::new(SummaryRoom::SCREEN), |from| from.seen.clone());
        if let Some(state) = &mut state {
            state.rewind(from.map_or_else(ScreenMemory::default, |from| from.memory.clone()));
        }
        let mut reel = ReplayCursor::from(recording);
        let mut last: Option<Metrics> = None;
        while let Some(next) = reel.peek()? {
            if last.is_some() && matches!(next, Item::Sample(sample) if sample.at_ns > to_ns) {
                break;
            }
            let metrics = reel.next_item()?.and_then(|item| derivation.advance(item));
            let Some(metrics) = metrics else { continue };
            seen.observe(&metrics);
            if let (Some(passed), Some(state)) = (last.replace(metrics), &mut state) {
                state.pass(passed);
            }
        }
        reel.since_ns = last.as_ref().map(|metrics| metrics.machine.at_ns);
        Ok(Start { derivation, seen, reel, metrics: last })
    }
}

/// Reads it from start to end; it ends early when nobody hears of it any more, and where it is damaged.
fn read_whole(stored: &StoredIn, news: &Sender<ReadAhead>, ready: &OwnedFd) {
    let Ok(mut recording) = Recording::open_stored(stored) else { return };
    let (mut derivation, mut track) = (Derivation::default(), Highlights::default());
    let mut seen = SummaryTrack::new(SummaryRoom::SCREEN);
    // It looks on as somebody does who has chosen nothing.
    let mut state = State::new(Settings { mode: Mode::Replay, ..Settings::default() });
    let (mut next, mut spacing, mut reported) = (ReadAhead::default(), Spacing::default(), Instant::now());
    next.damage = loop {
        let item = match recording.next_item() {
            Ok(Some(item)) => item,
            Ok(None) => break recording.truncated().map(str::to_owned),
            Err(error) => break Some(error.to_string()),
        };
        let Some(metrics) = derivation.advance(item) else { continue };
        let at_ns = metrics.machine.at_ns;
        next.last_ns = at_ns;
        next.highlights.extend(track.observe(&metrics));
        seen.observe(&metrics);
        state.pass(metrics);
        if spacing.is_due(at_ns) {
            let (place, memory) = (recording.bookmark(), state.memory());
            let (derivation, seen) = (derivation.clone(), seen.clone());
            next.checkpoints.push(Checkpoint { at_ns, place, derivation, seen, memory });
        }
        if reported.elapsed() >= NEWS_EVERY {
            reported = Instant::now();
            if news.send(std::mem::replace(&mut next, ReadAhead { last_ns: at_ns, ..ReadAhead::default() })).is_err() {
                return;
            }
            ring(ready);
        }
    };
    next.is_whole = true;
    let _nobody_left = news.send(next);
    ring(ready);
}

/// When the next checkpoint is due.
struct Spacing {
    apart_ns: u64,
    /// How many there are.
    kept: usize,
    last_ns: Option<u64>,
}

impl Default for Spacing {
    fn default() -> Self {
        Self { apart_ns: APART_NS, kept: 0, last_ns: None }
    }
}

impl Spacing {
    fn is_due(&mut self, at_ns: u64) -> bool {
        let is_due = at_ns.saturating_sub(*self.last_ns.get_or_insert(at_ns)) >= self.apart_ns;
        if is_due {
            (self.last_ns, self.kept) = (Some(at_ns), self.kept + 1);
            // As `Player::take` does with those that it is given.
            if self.kept == CHECKPOINTS {
                (self.kept, self.apart_ns) = (CHECKPOINTS / 2, self.apart_ns.saturating_mul(2));
            }
        }
        is_due
    }
}

#[cfg(test)]
mod tests;
