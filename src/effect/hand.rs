//! The pins now in force, and the two things that can be done about them: add some, put all back. It journals before it
//! sets, and it keeps for every thread the mask from before vnettop touched it first,
//! or the one that someone else has set since.

use super::journal::{Entry, Journal, Owner};
use super::pin::{self, Failure};
use super::put_back::{self, Held};
use super::{Outcome, PinRequest, Pinner, cores_of};
use crate::sample::{CoreSet, Event, ThreadId};
use std::fmt;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// What changes the machine on behalf of one vnettop.
pub struct Hand {
    pinner: Box<dyn Pinner>,
    journal: Journal,
    readonly: bool,
    /// In the order they were pinned first.
    held: Vec<Held>,
}

impl fmt::Debug for Hand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hand").field("readonly", &self.readonly).field("held", &self.held).finish_non_exhaustive()
    }
}

impl Hand {
    /// A hand that has touched nothing yet. A `journal_dir` that is an error (see [`super::journal_dir`]) matters only
    /// once something is to be pinned; `readonly` refuses everything.
    #[must_use]
    pub fn new(pinner: Box<dyn Pinner>, journal_dir: Result<PathBuf, String>, readonly: bool) -> Self {
        Self { pinner, journal: Journal::new(journal_dir), readonly, held: Vec::new() }
    }

    /// How many threads are pinned by this vnettop and not put back.
    #[must_use]
    pub fn pins(&self) -> usize {
        self.held.len()
    }

    /// Sets the masks, one thread after the other; what fails is told and does not undo what succeeded.
    pub fn pin(&mut self, requests: &[PinRequest]) -> Outcome {
        if self.readonly {
            return Outcome::readonly();
        }
        let mut outcome = Outcome::default();
        let mut ready = Vec::new();
        for request in requests {
            match pin::look(self.pinner.as_mut(), request) {
                Ok(before) => ready.push((request, before)),
                Err(sentence) => outcome.warn(sentence),
            }
        }
        if let Err(sentence) = self.intend(&ready) {
            outcome
                .warn(format!("nothing was pinned, because the journal that undoes it cannot be written: {sentence}"));
            return outcome;
        }
        let pinned = ready.iter().filter(|(request, before)| self.pin_one(request, before, &mut outcome)).count();
        self.sum_up(pinned, requests.len(), &mut outcome);
        self.close_if_done();
        outcome
    }

    /// Puts every mask back that this vnettop replaced, newest first.
    pub fn restore(&mut self) -> Outcome {
        if self.readonly {
            return Outcome::readonly();
        }
        let mut outcome = Outcome::default();
        if self.held.is_empty() {
            outcome.say("nothing to put back: this vnettop has pinned nothing".to_owned());
        }
        let mut kept = Vec::new();
        for held in std::mem::take(&mut self.held).into_iter().rev() {
            let verdict = put_back::put_back(self.pinner.as_mut(), &held, |mask| held.gave(mask));
            put_back::tell(&mut outcome, &held, &verdict);
            if verdict.is_final() {
                self.journal.note(Entry::Restored { thread: held.thread });
            } else {
                kept.insert(0, held);
            }
        }
        self.held = kept;
        self.close_if_done();
        outcome
    }

    /// Writes down every mask that is about to be set, all of them before the first one is.
    fn intend(&mut self, ready: &[(&PinRequest, CoreSet)]) -> Result<(), String> {
        if ready.is_empty() {
            return Ok(());
        }
        let (wall_ms, at_ns) = (wall_ms(), monotonic_ns());
        let line = |(request, before): &(&PinRequest, CoreSet)| Entry::Pin {
            thread: request.thread,
            label: request.label.clone(),
            old: self.replaced(request.thread, before),
            asked: request.cores.clone(),
            wall_ms,
            at_ns,
        };
        let lines: Vec<Entry> = ready.iter().map(line).collect();
        let pinner = self.pinner.as_mut();
        self.journal.intend(|| begun(pinner), &lines)
    }

    /// Pins one thread and says so; whether it is pinned now.
    fn pin_one(&mut self, request: &PinRequest, before: &CoreSet, outcome: &mut Outcome) -> bool {
        let (thread, who) = (request.thread, pin::who(&request.label, request.thread));
        match pin::set(self.pinner.as_mut(), request, before) {
            Ok(got) => {
                match pin::shortfall(&who, &request.cores, &got) {
                    None => outcome.say(format!("{who} is pinned to {} (before: {before})", cores_of(&got))),
                    Some(sentence) => outcome.warn(sentence),
                }
                self.journal.note(Entry::Pinned { thread, got: got.clone() });
                self.hold(request, before, Some(got.clone()));
                let (old, asked) = (before.clone(), request.cores.clone());
                outcome.events.push(Event::Pinned { thread, old, asked, got, at_ns: monotonic_ns() });
                true
            }
            Err(Failure::NotReadBack(sentence)) => {
                outcome.warn(sentence);
                self.hold(request, before, None);
                false
            }
            Err(Failure::NotSet(sentence)) => {
                outcome.warn(sentence);
                self.journal.note(Entry::Failed { thread });
                false
            }
        }
    }

    /// The mask to go back to: the one from before vnettop, or what someone else has set since.
    fn replaced(&self, thread: ThreadId, before: &CoreSet) -> CoreSet {
        self.held(thread).filter(|held| held.gave(before)).map_or(before, |held| &held.old).clone()
    }

    fn held(&self, thread: ThreadId) -> Option<&Held> {
        self.held.iter().find(|held| held.thread == thread)
    }

    /// Remembers a pin. `given` is none where the kernel did not show what it gave.
    fn hold(&mut self, request: &PinRequest, before: &CoreSet, given: Option<CoreSet>) {
        let asked = given.is_none().then(|| request.cores.clone());
        let old = self.replaced(request.thread, before);
        if let Some(held) = self.held.iter_mut().find(|held| held.thread == request.thread) {
            held.given = given.or(held.given.take());
            (held.asked, held.old) = (asked, old);
            return;
        }
        let label = request.label.clone();
        self.held.push(Held { thread: request.thread, label, old, given, asked });
    }

    fn sum_up(&self, pinned: usize, asked: usize, outcome: &mut Outcome) {
        let undo = if self.held.is_empty() { "" } else { "; U puts them back" };
        let text = format!("{pinned} of {asked} pinned{undo}");
        if pinned == asked { outcome.say(text) } else { outcome.warn(text) }
    }

    fn close_if_done(&mut self) {
        if self.held.is_empty() {
            self.journal.close();
        }
    }
}

/// The first line of this process's journal.
fn begun(pinner: &mut dyn Pinner) -> Result<Entry, String> {
    let unknown =
        |error: std::io::Error| format!("this vnettop cannot be told from others ({error}); is /proc mounted?");
    let pid = std::process::id();
    let start = pinner.start_of(ThreadId { pid, tid: pid, start: 0 }).map_err(unknown)?;
    Ok(Entry::Begun { owner: Owner { pid, start }, boot: pinner.boot_id().map_err(unknown)? })
}

fn wall_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

pub(super) fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}
