//! A recording as a source: the same items, at their own pace or as fast as they are taken.

use super::channel::{Command, Pace, Sender};
use super::{SourceError, now_ns};
use crate::record::Recording;
use crate::sample::{Item, Problem, Sample};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

/// Hands over every item of the recording, then ends. A torn end is told in the problems of the last sample, so the
/// last sample is held back until the next item shows whether it was the last.
pub(super) fn run(mut recording: Recording, pace: Pace, feed: &Sender) {
    let mut clock = Clock { pace, last: None };
    let mut held: Option<Item> = None;
    loop {
        let next = recording.next_item();
        let ended = matches!(next, Ok(None) | Err(_));
        if let Some(mut item) = held.take() {
            if ended && let (Item::Sample(sample), Some(text)) = (&mut item, recording.truncated()) {
                tell(sample, text);
            }
            if !clock.wait(&item, feed) || !feed.send(Ok(item)) {
                return;
            }
        }
        match next {
            Ok(Some(item)) => held = Some(item),
            Ok(None) => return,
            Err(error) => {
                feed.send(Err(SourceError::from(error)));
                return;
            }
        }
    }
}

fn tell(sample: &mut Sample, text: &str) {
    let problem = Problem { source: "replay".to_owned(), text: text.to_owned() };
    Arc::make_mut(&mut sample.facts_mut().problems).push(problem);
}

/// When an item is due: as long after the one before as it was recorded after it.
struct Clock {
    pace: Pace,
    /// When the last sample was recorded and when it was handed over, ns.
    last: Option<(u64, u64)>,
}

impl Clock {
    /// Waits until the item is due; false when told to stop.
    fn wait(&mut self, item: &Item, feed: &Sender) -> bool {
        let (Pace::Times(times), Item::Sample(sample)) = (self.pace, item) else { return true };
        if let Some((recorded_ns, handed_ns)) = self.last {
            let apart = Duration::from_nanos(sample.at_ns.saturating_sub(recorded_ns)).div_f64(times.max(0.001));
            let due_ns = handed_ns.saturating_add(u64::try_from(apart.as_nanos()).unwrap_or(u64::MAX));
            while now_ns() < due_ns {
                if !sleep(due_ns.saturating_sub(now_ns()), feed) {
                    return false;
                }
            }
        }
        self.last = Some((sample.at_ns, now_ns()));
        true
    }
}

/// Sleeps, but for a command; false when it is a stop.
fn sleep(ns: u64, feed: &Sender) -> bool {
    let timeout = Timespec {
        tv_sec: i64::try_from(ns / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(ns % 1_000_000_000).unwrap_or(0),
    };
    let commands = feed.commands();
    let _ = poll(&mut [PollFd::from_borrowed_fd(commands.as_fd(), PollFlags::IN)], Some(&timeout));
    // An interval is the recording's own; only a stop concerns a replay.
    !std::iter::from_fn(|| feed.command()).any(|command| command == Command::Stop)
}
