//! One thread gets back the mask it had before vnettop: only if it is still the same thread and still has what vnettop
//! gave it. A mask that someone else set since is never overwritten.

use super::pin::{Identity, PinError, are, gone, identity, shortfall, who};
use super::{Outcome, Pinner, cores_of};
use crate::clock::now_ns;
use crate::sample::{CoreSet, Event, ThreadId};
use std::io;

/// A pin in force: what is needed to take it back.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ActivePin {
    pub(super) thread: ThreadId,
    pub(super) label: String,
    /// The mask before vnettop touched the thread first, or what someone else has set since.
    pub(super) old: CoreSet,
    /// The mask the kernel gave last; none when vnettop was killed before it could note it.
    pub(super) given: Option<CoreSet>,
    /// A mask that was about to be set; it may or may not have been.
    pub(super) asked: Option<CoreSet>,
}

impl ActivePin {
    /// Whether the pin changes the mask: one that left it as it was is none.
    pub(super) fn changes(&self) -> bool {
        [&self.given, &self.asked].into_iter().flatten().any(|mask| *mask != self.old)
    }

    /// Whether the mask is one that vnettop gave the thread, as far as can be told.
    pub(super) fn gave(&self, mask: &CoreSet) -> bool {
        self.given.as_ref() == Some(mask)
            || self.asked.as_ref().is_some_and(|asked| !mask.is_empty() && mask.is_subset(asked))
    }

    /// Whether the mask is what the kernel shows of a pin while the cpuset allows only these cores: what of the pin lies
    /// within, or all of them where nothing does. Since Linux 6.2 it keeps the pin behind that (`user_cpus_ptr`), and the
    /// pin comes back when the cpuset becomes wider. Nobody can tell it from a mask of exactly the cpuset's cores that
    /// someone else set meanwhile.
    fn shows_as(&self, mask: &CoreSet, cpuset: &CoreSet) -> bool {
        [&self.given, &self.asked].into_iter().flatten().any(|pin| match pin.intersection(cpuset) {
            within if within.is_empty() => mask == cpuset,
            within => *mask == within,
        })
    }
}

/// What came of putting one mask back.
pub(super) enum RestoreResult {
    /// The kernel gave this.
    Restored(CoreSet),
    /// It has its old mask already.
    Already,
    /// The thread is gone.
    Ended,
    /// The thread is gone, and its tid belongs to another thread.
    Reused,
    /// The thread has this mask, which is neither the old one nor vnettop's.
    Changed(CoreSet),
    /// The tid changed hands in the very moment.
    TakenOver,
    /// The kernel said no.
    Refused(io::Error),
}

impl RestoreResult {
    /// There is nothing left to try on this thread.
    pub(super) fn is_final(&self) -> bool {
        !matches!(self, Self::Changed(_) | Self::Refused(_))
    }
}

/// Puts back `held.old`, where the thread has a mask of one of these `pins`, which are all its own.
pub(super) fn put_back(pinner: &mut dyn Pinner, held: &ActivePin, pins: &[&ActivePin]) -> RestoreResult {
    let tid = held.thread.tid;
    let refused = |error: io::Error| if gone(&error) { RestoreResult::Ended } else { RestoreResult::Refused(error) };
    match identity(pinner, held.thread) {
        Identity::Same => {}
        Identity::Ended => return RestoreResult::Ended,
        Identity::Reused => return RestoreResult::Reused,
        Identity::Unknown(error) => return refused(error),
    }
    let now = match pinner.mask_of(tid) {
        Ok(now) => now,
        Err(error) => return refused(error),
    };
    let gave = pins.iter().any(|pin| pin.gave(&now));
    let cpuset = if gave { None } else { pinner.cpuset_of(tid) };
    if !cpuset.is_some_and(|cpuset| pins.iter().any(|pin| pin.shows_as(&now, &cpuset))) {
        match now {
            now if now == held.old => return RestoreResult::Already,
            now if !gave => return RestoreResult::Changed(now),
            _ => {}
        }
    }
    if let Err(error) = pinner.set_mask(tid, &held.old) {
        return refused(error);
    }
    match (pinner.mask_of(tid), identity(pinner, held.thread)) {
        (_, Identity::Reused) => RestoreResult::TakenOver,
        (Ok(got), _) => RestoreResult::Restored(got),
        (Err(error), _) => refused(error),
    }
}

fn not_restored(who: &str, tid: u32, old: &CoreSet, error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EINVAL) => format!("{who} keeps its pin: its old {} offline or not allowed for it now", are(old)),
        Some(libc::EPERM) => format!(
            "{who} keeps its pin: it belongs to another user; taskset -cp {old} {tid} as root restores its old mask"
        ),
        _ => format!("{who} keeps its pin: its old mask {old} cannot be restored ({error})"),
    }
}

/// Adds what came of it to the outcome: one sentence, and an event where the old mask is in force again.
pub(super) fn report(outcome: &mut Outcome, held: &ActivePin, verdict: &RestoreResult) {
    let (thread, old, who) = (held.thread, &held.old, who(&held.label, held.thread));
    match verdict {
        RestoreResult::Restored(got) => {
            match shortfall(&who, old, got) {
                None => outcome.say(format!("{who} is back on {}", cores_of(got))),
                Some(sentence) => outcome.warn(sentence),
            }
            outcome.events.push(Event::Restored { thread, got: got.clone(), at_ns: now_ns() });
        }
        RestoreResult::Already => {
            outcome.say(format!("{who} is on {} already, as before vnettop", cores_of(old)));
            outcome.events.push(Event::Restored { thread, got: old.clone(), at_ns: now_ns() });
        }
        RestoreResult::Ended => outcome.say(format!("{who} has exited, nothing to undo")),
        RestoreResult::Reused => {
            outcome.say(format!("{who} has exited, nothing to undo; its number now belongs to another thread"));
        }
        RestoreResult::Changed(now) => outcome.warn(format!(
            "{who} is on {}, set by another program since, and is not changed; taskset -cp {old} {} restores the mask from before vnettop",
            cores_of(now),
            thread.tid
        )),
        RestoreResult::TakenOver => {
            outcome.warn(PinError::TakenOver { who, tid: thread.tid, asked: old.clone() }.to_string());
        }
        RestoreResult::Refused(error) => outcome.warn(not_restored(&who, thread.tid, old, error)),
    }
}
