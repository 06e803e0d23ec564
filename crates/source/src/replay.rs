//! A recording as a source: the same items, at their own pace or as fast as they are taken.

use super::channel::{FeedCommand, Pace, Sender};
use super::{SourceError, now_ns};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::sync::Arc;
use std::time::Duration;
use vnettop_record::{RecordError, Recording};
use vnettop_sample::{Item, Problem, ProblemSource, Sample};

/// A recording from the place on where its replay begins, read one item ahead.
pub struct ReplayCursor {
    recording: Recording,
    /// The next item, read already, or why there is none.
    held: Option<Result<Item, RecordError>>,
    is_over: bool,
    /// When the sample before `held` was taken, recorded monotonic ns; `None` at the start.
    pub since_ns: Option<u64>,
}

impl From<Recording> for ReplayCursor {
    fn from(recording: Recording) -> Self {
        Self { recording, held: None, is_over: false, since_ns: None }
    }
}

impl ReplayCursor {
    /// The next item; `None` at the end. A torn end is a problem of the last sample, so each item is held back until the one after
    /// it shows whether it was the last.
    ///
    /// # Errors
    /// It cannot be read on.
    pub fn next_item(&mut self) -> Result<Option<Item>, RecordError> {
        let Some(mut item) = self.held.take().or_else(|| self.read()).transpose()? else { return Ok(None) };
        self.held = self.read();
        if self.held.is_none()
            && let (Item::Sample(sample), Some(text)) = (&mut item, self.recording.truncated())
        {
            report(sample, text);
        }
        Ok(Some(item))
    }

    /// What [`ReplayCursor::next_item`] will give.
    ///
    /// # Errors
    /// It cannot be read on.
    pub fn peek(&mut self) -> Result<Option<&Item>, RecordError> {
        self.held = self.held.take().or_else(|| self.read()).transpose()?.map(Ok);
        Ok(self.held.as_ref().and_then(|held| held.as_ref().ok()))
    }

    fn read(&mut self) -> Option<Result<Item, RecordError>> {
        if self.is_over {
            return None;
        }
        let item = self.recording.next_item().transpose();
        self.is_over = !matches!(item, Some(Ok(_)));
        item
    }
}

/// Hands over every item of the recording, then ends.
pub(super) fn run(mut reel: ReplayCursor, pace: Pace, feed: &Sender) {
    let mut clock = Clock { pace, last: reel.since_ns.map(|recorded_ns| (recorded_ns, now_ns())) };
    loop {
        match reel.next_item() {
            Ok(Some(item)) => {
                if !clock.wait(&item, feed) || !feed.send(Ok(item)) {
                    return;
                }
            }
            Ok(None) => return,
            Err(error) => {
                feed.send(Err(SourceError::from(error)));
                return;
            }
        }
    }
}

fn report(sample: &mut Sample, text: &str) {
    let problem = Problem { source: ProblemSource::Replay, text: text.to_owned() };
    Arc::make_mut(&mut sample.facts_mut().problems).push(problem);
}

/// The clock of a replay: keeps the recorded gap between two items.
struct Clock {
    pace: Pace,
    /// When the last sample was recorded and when it was handed over, ns.
    last: Option<(u64, u64)>,
}

impl Clock {
    /// Waits until the item is due; false when the feed asks for an end.
    fn wait(&mut self, item: &Item, feed: &Sender) -> bool {
        let Item::Sample(sample) = item else { return true };
        if !self.obey(feed) {
            return false;
        }
        while let Some(left_ns) = self.left_ns(sample) {
            sleep(left_ns, feed);
            if !self.obey(feed) {
                return false;
            }
        }
        self.last = Some((sample.at_ns, now_ns()));
        true
    }

    /// Time until the sample is due at the current pace, ns; `None` when it is due.
    fn left_ns(&self, sample: &Sample) -> Option<u64> {
        let (Pace::Times(times), Some((recorded_ns, handed_ns))) = (self.pace, self.last) else { return None };
        let apart = Duration::from_nanos(sample.at_ns.saturating_sub(recorded_ns)).div_f64(times.max(0.001));
        let due_ns = handed_ns.saturating_add(u64::try_from(apart.as_nanos()).unwrap_or(u64::MAX));
        due_ns.checked_sub(now_ns()).filter(|left_ns| *left_ns > 0)
    }

    /// Takes commands; false when one is a stop. Intervals are the recording's own.
    fn obey(&mut self, feed: &Sender) -> bool {
        while let Some(command) = feed.command() {
            match command {
                FeedCommand::Pace(pace) => self.pace = pace,
                FeedCommand::Stop => return false,
                _ => {}
            }
        }
        true
    }
}

/// Sleeps, until a command comes.
fn sleep(ns: u64, feed: &Sender) {
    let timeout = Timespec::try_from(Duration::from_nanos(ns)).ok();
    let _ = poll(&mut [PollFd::from_borrowed_fd(feed.commands(), PollFlags::IN)], timeout.as_ref());
}
