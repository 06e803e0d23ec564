//! The pins now in force, and the two things that can be done about them: add some, put all back; steers are told to
//! `own_steers`. It journals before it sets, and it keeps for every thread the mask from before vnettop touched it first,
//! or the one that someone else has set since. What another vnettop that runs has pinned it leaves alone.

use super::journal::begun::begun;
use super::journal::others::ForeignClaims;
use super::journal::{Entry, Journal, JournalError};
use super::own_steers::{OwnSteers, SteerTools};
use super::pin::{self, PinError};
use super::put_back::{self, ActivePin};
use super::{Outcome, PinRequest, Pinner, SteerRequest, cores_of};
use crate::clock::{now_ns, wall_ms};
use crate::sample::{CoreSet, Event, ThreadId};
use std::collections::HashSet;
use std::path::PathBuf;

/// What changes the machine on behalf of one vnettop.
pub struct PinController {
    pinner: Box<dyn Pinner>,
    journal: Journal,
    readonly: bool,
    /// It pins and unpins in turn: between turns no other vnettop may pin its threads, and it pins all requested threads or none.
    compares: bool,
    /// In the order they were pinned first.
    held: Vec<ActivePin>,
    steers: OwnSteers,
}

impl PinController {
    /// A controller that has touched nothing yet. That there is no `journal_dir` (see [`super::journal_dir`]) matters only
    /// once something is to be pinned; `readonly` refuses everything.
    #[must_use]
    pub fn new(pinner: Box<dyn Pinner>, journal_dir: Option<PathBuf>, readonly: bool) -> Self {
        let (held, steers) = (Vec::new(), OwnSteers::default());
        Self { pinner, journal: Journal::new(journal_dir), readonly, compares: false, held, steers }
    }

    /// One that pins and unpins in turn until [`PinController::finish`]: no other vnettop pins its threads in between, and it pins
    /// none at all where another has some of them, because what it measures would be worth nothing.
    #[must_use]
    pub fn comparing(self) -> Self {
        Self { compares: true, ..self }
    }

    /// Why these threads cannot be pinned and unpinned in turn, in one sentence: another running vnettop has some of them.
    /// `None` when they can be.
    pub fn taken(&mut self, threads: impl Iterator<Item = ThreadId>) -> Option<String> {
        let dir = self.journal.dir().ok()?;
        match ForeignClaims::read(self.pinner.as_mut(), dir) {
            Ok(claims) => claims.sentences(threads).into_iter().next(),
            Err(error) => Some(error.to_string()),
        }
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
        let mut named = HashSet::new();
        let (requests, again): (Vec<_>, Vec<_>) = requests.iter().cloned().partition(|one| named.insert(one.thread));
        if let Some(one) = again.first() {
            outcome.warn(format!("{} was named twice: only the first is done", pin::who(&one.label, one.thread)));
        }
        let requests = &requests[..];
        let Some(ready) = self.prepare(requests, &mut outcome) else { return outcome };
        let already = requests.len() - ready.left - ready.pins.len();
        let pinned = ready.pins.iter().filter(|(request, before)| self.pin_one(request, before, &mut outcome)).count();
        self.sum_up(pinned, already, requests.len(), &mut outcome);
        self.close_if_done();
        outcome
    }

    /// Sets these masks, and then changes these settings of links.
    pub fn place(&mut self, pins: &[PinRequest], steers: &[SteerRequest]) -> Outcome {
        if self.readonly {
            return Outcome::readonly();
        }
        let mut outcome = if pins.is_empty() { Outcome::default() } else { self.pin(pins) };
        let is_pinned = outcome.events.iter().any(|event| matches!(event, Event::Pinned { .. }));
        if !is_pinned && outcome.lines.iter().any(|line| line.warning) {
            // The cores that the packets would go to are those of pins.
            if !steers.is_empty() {
                outcome.warn("no packets were steered, because nothing was pinned".to_owned());
            }
            return outcome;
        }
        let steered = self.steer(steers);
        outcome.lines.extend(steered.lines);
        outcome.events.extend(steered.events);
        outcome.taken |= steered.taken;
        outcome
    }

    /// Changes these settings of links, one after the other, each for all queues of its link or for none. What fails is told and
    /// does not undo what succeeded. A text that is there already is no steer; that from before vnettop is put back.
    pub fn steer(&mut self, requests: &[SteerRequest]) -> Outcome {
        let mut outcome = Outcome::default();
        if requests.is_empty() {
            return outcome;
        }
        if self.readonly {
            return Outcome::readonly();
        }
        let (pinner, journal, compares) = (self.pinner.as_mut(), &mut self.journal, self.compares);
        self.steers.steer(SteerTools { pinner, journal, compares }, requests, &mut outcome);
        self.close_if_done();
        outcome
    }

    /// How many files of links' settings are changed by this vnettop and not put back; one for each queue.
    #[must_use]
    pub fn steers(&self) -> usize {
        self.steers.files()
    }

    /// Finds out what each thread has now, and writes down what is about to be set; none where nothing may be. No other
    /// vnettop pins meanwhile: its mask would be taken for the thread's own.
    fn prepare<'a>(&mut self, requests: &'a [PinRequest], outcome: &mut Outcome) -> Option<Ready<'a>> {
        let unwritten = |error: JournalError| {
            format!("nothing was pinned, because the journal that undoes it cannot be written: {error}")
        };
        let _lock = self.journal.lock().map_err(|error| outcome.warn(unwritten(error))).ok()?;
        let claims = self.claims(requests, outcome)?;
        let ready = self.look(requests, &claims, outcome);
        self.intend(&ready.pins).map_err(|error| outcome.warn(unwritten(error))).ok()?;
        Some(ready)
    }

    /// Pins of other vnettops; `None` when they forbid to pin anything.
    fn claims(&mut self, requests: &[PinRequest], outcome: &mut Outcome) -> Option<ForeignClaims> {
        outcome.taken = true;
        let read = self.journal.dir().and_then(|dir| ForeignClaims::read(self.pinner.as_mut(), dir));
        let claims = read.map_err(|error| outcome.warn(format!("nothing was pinned: {error}"))).ok()?;
        let sentences = claims.sentences(requests.iter().map(|request| request.thread));
        outcome.taken = !sentences.is_empty();
        match sentences.into_iter().next() {
            Some(sentence) if self.compares => {
                outcome.warn(sentence);
                None
            }
            _ => Some(claims),
        }
    }

    /// What is to be pinned, each with the mask it has now. What has the mask asked for already is no pin.
    fn look<'a>(&mut self, requests: &'a [PinRequest], claims: &ForeignClaims, outcome: &mut Outcome) -> Ready<'a> {
        let mut ready = Ready::default();
        let (free, taken): (Vec<_>, Vec<_>) = requests.iter().partition(|one| claims.of(one.thread).is_none());
        ready.left += taken.len();
        for sentence in claims.sentences(taken.iter().map(|request| request.thread)) {
            outcome.warn(sentence);
        }
        for request in free {
            match pin::look(self.pinner.as_mut(), request) {
                Ok(before) if self.replaced(request.thread, &before) != request.cores => {
                    ready.pins.push((request, before));
                }
                Ok(before) => self.as_before(request, &before, outcome),
                Err(error) => {
                    outcome.warn(error.to_string());
                    ready.left += 1;
                }
            }
        }
        ready
    }

    /// A thread is to have the mask that it had before vnettop: it gets that back, or has it.
    fn as_before(&mut self, request: &PinRequest, before: &CoreSet, outcome: &mut Outcome) {
        let Some(at) = self.held.iter().position(|held| held.thread == request.thread) else {
            let who = pin::who(&request.label, request.thread);
            return outcome.say(format!("{who} is on {} already, nothing to pin", cores_of(before)));
        };
        let held = self.held.remove(at);
        if !self.release(&held, outcome) {
            self.held.insert(at, held);
        }
    }

    /// Ends pinning and unpinning in turn: unpinned threads are free for other vnettops again.
    pub fn finish(&mut self) {
        self.compares = false;
        self.close_if_done();
    }

    /// Puts every setting and every mask back that this vnettop replaced, newest first.
    pub fn restore(&mut self) -> Outcome {
        if self.readonly {
            return Outcome::readonly();
        }
        let mut outcome = Outcome::default();
        if self.held.is_empty() && self.steers.files() == 0 {
            outcome.say("nothing to undo: this vnettop has pinned nothing".to_owned());
        }
        let (pinner, journal, compares) = (self.pinner.as_mut(), &mut self.journal, self.compares);
        self.steers.restore(SteerTools { pinner, journal, compares }, &mut outcome);
        let mut kept = Vec::new();
        for held in std::mem::take(&mut self.held).into_iter().rev() {
            if !self.release(&held, &mut outcome) {
                kept.insert(0, held);
            }
        }
        self.held = kept;
        self.close_if_done();
        outcome
    }

    /// What is to be said at the end where nothing was put back: how many threads stay pinned and how many settings
    /// of links stay changed, and what undoes that.
    pub fn staying(&mut self) -> Outcome {
        let mut outcome = Outcome::default();
        let pinner = self.pinner.as_mut();
        let is_there = |held: &&ActivePin| pinner.start_of(held.thread).is_ok_and(|start| start == held.thread.start);
        match self.held.iter().filter(is_there).count() {
            0 => {}
            1 => outcome.say("1 thread stays pinned: vnettop undo restores its affinity".to_owned()),
            more => outcome.say(format!("{more} threads stay pinned: vnettop undo restores their affinities")),
        }
        match self.steers.staying(self.pinner.as_mut()) {
            0 => {}
            1 => outcome.say("1 setting of a link stays changed: vnettop undo restores it".to_owned()),
            more => outcome.say(format!("{more} settings of links stay changed: vnettop undo restores them")),
        }
        outcome
    }

    /// Puts one mask back; false where it may be tried again.
    fn release(&mut self, held: &ActivePin, outcome: &mut Outcome) -> bool {
        let verdict = put_back::put_back(self.pinner.as_mut(), held, &[held]);
        put_back::report(outcome, held, &verdict);
        if verdict.is_final() {
            self.journal.note(Entry::Restored { thread: held.thread });
        }
        verdict.is_final()
    }

    /// Writes down every mask that is about to be set, all of them before the first one is.
    fn intend(&mut self, ready: &[(&PinRequest, CoreSet)]) -> Result<(), JournalError> {
        if ready.is_empty() {
            return Ok(());
        }
        let (wall_ms, at_ns) = (wall_ms(), now_ns());
        let line = |(request, before): &(&PinRequest, CoreSet)| Entry::Pin {
            thread: request.thread,
            label: request.label.clone(),
            old: self.replaced(request.thread, before),
            asked: request.cores.clone(),
            wall_ms,
            at_ns,
        };
        let lines: Vec<Entry> = ready.iter().map(line).collect();
        let (pinner, compares) = (self.pinner.as_mut(), self.compares);
        self.journal.intend(|| begun(pinner, compares), &lines)
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
                outcome.events.push(Event::Pinned { thread, old, asked, got, at_ns: now_ns() });
                true
            }
            Err(error) => {
                outcome.warn(error.to_string());
                if let PinError::NotReadBack { .. } = error {
                    self.hold(request, before, None);
                } else {
                    self.journal.note(Entry::Failed { thread });
                }
                false
            }
        }
    }

    /// The mask to go back to: the one from before vnettop, or what someone else has set since.
    fn replaced(&self, thread: ThreadId, before: &CoreSet) -> CoreSet {
        let held = self.held.iter().find(|held| held.thread == thread && held.gave(before));
        held.map_or(before, |held| &held.old).clone()
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
        self.held.push(ActivePin { thread: request.thread, label, old, given, asked });
    }

    fn sum_up(&self, pinned: usize, already: usize, asked: usize, outcome: &mut Outcome) {
        let undo = if self.held.is_empty() { "" } else { "; U undoes it" };
        let there = if already == 0 { String::new() } else { format!(", {already} as before vnettop") };
        let text = format!("{pinned} of {asked} pinned{there}{undo}");
        if pinned + already == asked { outcome.say(text) } else { outcome.warn(text) }
    }

    fn close_if_done(&mut self) {
        if self.held.is_empty() && self.steers.files() == 0 && !self.compares {
            self.journal.close();
        }
    }
}

/// What came of looking at requests.
#[derive(Default)]
struct Ready<'a> {
    /// To be pinned, with the mask that each thread has now.
    pins: Vec<(&'a PinRequest, CoreSet)>,
    /// How many cannot be pinned.
    left: usize,
}
