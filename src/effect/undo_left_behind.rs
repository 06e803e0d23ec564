//! `vnettop undo`: puts back what vnettops that no longer run left pinned or steered. All their journals are judged together,
//! a thread or a file at a time, so that the oldest old mask wins; what a running vnettop holds is left to it.

use super::journal::others::{Claimant, has_ended};
use super::journal::past::{self, Past};
use super::journal::{self, Entry};
use super::pin::{Identity, identity};
use super::put_back::{self, ActivePin};
use super::put_back_steer::{ActiveSteer, SteerId};
use super::steer::OpenedLinks;
use super::undo_steers::{self, RunningSteers};
use super::{Outcome, Pinner, own_steers};
use crate::sample::{CoreSet, ThreadId};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

/// Puts back every mask and every setting of a link that a vnettop which no longer runs left in force, by the journals in `dir`. Journals with
/// nothing left to do are removed.
pub fn undo(pinner: &mut dyn Pinner, dir: &Path) -> Outcome {
    let mut outcome = Outcome::default();
    // A vnettop that pins meanwhile would take a pin being undone for the thread's own mask.
    let _lock = match journal::lock(dir) {
        Ok(lock) => lock,
        Err(error) => {
            outcome.warn(format!("{error}; nothing was restored"));
            return outcome;
        }
    };
    let Some(journals) = journals(pinner, dir, &mut outcome) else { return outcome };
    // A placement pins first and steers then: it is undone the other way round.
    let mut links = OpenedLinks::new(pinner);
    let steers = undo_steers::put_back_all(&mut links, &journals.dead, &journals.steering, &mut outcome);
    let threads = put_back_all(pinner, &journals, &mut outcome);
    for journal in &journals.dead {
        tidy(journal, &threads, &steers, &mut outcome);
    }
    if outcome.lines.is_empty() {
        outcome.say("nothing to undo: no vnettop left a pin behind".to_owned());
    }
    outcome
}

/// What vnettops that no longer run have left in force.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct LeftBehind {
    /// Threads that still run and are pinned.
    pub threads: usize,
    /// Settings of links that are still there; all queues of a link are one.
    pub settings: usize,
}

impl LeftBehind {
    /// What is to be said of it, with what to do; `None` where nothing is left.
    #[must_use]
    pub fn sentence(self) -> Option<String> {
        let Self { threads, settings } = self;
        let pinned = still(threads, 0);
        match (threads, settings) {
            (0, 0) => None,
            (_, 0) => Some(format!("{pinned} by a stopped vnettop: run vnettop undo to unpin")),
            _ => Some(format!("{} by a stopped vnettop: run vnettop undo", still(threads, settings))),
        }
    }
}

/// What a vnettop has left in force which no longer does; what cannot be read is not counted. It changes nothing.
#[must_use]
pub fn left_behind(pinner: &mut dyn Pinner, dir: &Path) -> LeftBehind {
    let (found, boot) = (past::list(dir).unwrap_or_default(), pinner.boot_id().ok());
    let here = pinner.number_spaces();
    let (mut threads, mut steers) = (HashSet::new(), Vec::<ActiveSteer>::new());
    for (path, owner) in found {
        let Ok(past) = past::read(path, owner) else { continue };
        let is_of_now = past.boot.is_none() || past.boot == boot;
        if is_of_now && here.differs_from(past.spaces).is_none() && has_ended(pinner, past.owner) {
            let held = past.held.iter().map(|(_, pin)| pin.thread);
            threads.extend(held.filter(|&thread| matches!(identity(pinner, thread), Identity::Same)));
            steers.extend(past.steers.held.into_iter().map(|(_, steer)| steer));
        }
    }
    LeftBehind { threads: threads.len(), settings: own_steers::count_there(pinner, &steers) }
}

/// The journals of this boot.
struct Journals {
    /// Journals of vnettops that no longer run.
    dead: Vec<Past>,
    /// Threads of vnettops that run.
    running: HashMap<ThreadId, Claimant>,
    /// Settings of links of vnettops that run.
    steering: RunningSteers,
}

/// Reads all journals and sorts them; none where the directory or the boot id cannot be read.
fn journals(pinner: &mut dyn Pinner, dir: &Path, outcome: &mut Outcome) -> Option<Journals> {
    let found = past::list(dir).map_err(|error| {
        outcome.warn(format!("cannot read the journals in {}: {error}; nothing was restored", dir.display()));
    });
    let boot = pinner.boot_id().map_err(|error| {
        outcome.warn(format!("nothing was restored: no boot id ({error}); is /proc mounted?"));
    });
    let (found, boot) = (found.ok()?, boot.ok()?);
    let mut journals = Journals { dead: Vec::new(), running: HashMap::new(), steering: RunningSteers::new() };
    for (path, named) in found {
        match past::read(path.clone(), named) {
            Ok(past) => sort(pinner, past, &boot, &mut journals, outcome),
            Err(error) => outcome.warn(format!("cannot read the journal {}: {error}; it was skipped", path.display())),
        }
    }
    Some(journals)
}

fn sort(pinner: &mut dyn Pinner, past: Past, boot: &str, journals: &mut Journals, outcome: &mut Outcome) {
    if past.boot.as_ref().is_some_and(|written_in| written_in != boot) {
        // None of its threads and links can have lived through the reboot.
        return remove(&past.path, outcome);
    }
    if let Some(space) = pinner.number_spaces().differs_from(past.spaces) {
        // Its numbers mean other threads here: neither its vnettop nor the pinned threads can be looked up. Links could be, but
        // whether its vnettop still has them cannot be told.
        if !past.held.is_empty() || !past.steers.held.is_empty() {
            outcome.warn(elsewhere(&past, &space));
        }
        return;
    }
    if !has_ended(pinner, past.owner) {
        let runs = Claimant { pid: past.owner.pid, compares: past.compares };
        outcome.say(format!("vnettop {} still runs: {}", runs.pid, runs.way_out()));
        journals.running.extend(past.claims().into_iter().map(|(thread, _)| (thread, runs)));
        let settings = past.steers.claims(past.compares);
        journals.steering.extend(settings.into_keys().map(|setting| (setting, runs)));
        return;
    }
    let path = past.path.display();
    match past.damaged.as_slice() {
        [] => {}
        [line] => outcome.warn(format!("line {line} of {path} is not a journal line and was skipped")),
        [first, .., last] => outcome.warn(format!(
            "{} lines of {path} (line {first} to {last}) are not journal lines and were skipped",
            past.damaged.len()
        )),
    }
    journals.dead.push(past);
}

/// The sentence about pins and steers whose threads and vnettop cannot be identified here.
fn elsewhere(past: &Past, space: &str) -> String {
    let (path, kind) =
        (past.path.display(), if space.starts_with("pid") { "a process number" } else { "a start time" });
    let settings = undo_steers::settings(past.steers.held.iter().map(|(_, held)| held));
    let pins = match past.held.len() {
        0 => String::new(),
        1 => "1 pin".to_owned(),
        more => format!("{more} pins"),
    };
    let steers = match settings {
        0 => String::new(),
        1 => "1 setting of a link".to_owned(),
        more => format!("{more} settings of links"),
    };
    let and = if pins.is_empty() || steers.is_empty() { "" } else { " and " };
    format!(
        "{pins}{and}{steers} in {path} left alone: written in another namespace, {space}, where {kind} means another thread; \
         run vnettop undo there, or remove the file once its threads have ended"
    )
}

/// Judges every thread once; returns those with nothing left to try.
fn put_back_all(pinner: &mut dyn Pinner, journals: &Journals, outcome: &mut Outcome) -> HashSet<ThreadId> {
    let mut rows: Vec<&(u64, ActivePin)> = journals.dead.iter().flat_map(|past| &past.held).collect();
    rows.sort_by_key(|(at_ns, _)| *at_ns);
    let mut by_thread: HashMap<ThreadId, Vec<&ActivePin>> = HashMap::new();
    for (_, held) in &rows {
        by_thread.entry(held.thread).or_default().push(held);
    }
    let mut settled = HashSet::new();
    for (_, oldest) in rows.iter().rev() {
        let Some(same_thread) = by_thread.remove(&oldest.thread) else { continue };
        if let Some(runs) = journals.running.get(&oldest.thread) {
            let who = super::pin::who(&oldest.label, oldest.thread);
            let (pid, way_out) = (runs.pid, runs.way_out());
            outcome.warn(format!("{who} is pinned by running vnettop {pid}: {way_out}, then vnettop undo again"));
            continue;
        }
        let held = ActivePin { old: original(&same_thread), ..same_thread[0].clone() };
        let verdict = put_back::put_back(pinner, &held, &same_thread);
        put_back::report(outcome, &held, &verdict);
        // A mask that someone else set is told once, with the line that mends it; only what the kernel refused is kept.
        if !matches!(verdict, put_back::RestoreResult::Refused(_)) {
            settled.insert(oldest.thread);
        }
    }
    settled
}

/// The mask from before all vnettops that pinned a thread one after the other, or what someone else has set in between.
fn original(same_thread: &[&ActivePin]) -> CoreSet {
    let set_by_others = (1..same_thread.len()).rev().map(|nth| (&same_thread[nth].old, &same_thread[..nth]));
    let newest =
        set_by_others.into_iter().find(|(old, before)| !before.iter().any(|held| held.old == **old || held.gave(old)));
    newest.map_or(&same_thread[0].old, |(old, _)| old).clone()
}

/// Removes a journal with nothing left to do, or writes into it what was done.
fn tidy(past: &Past, threads: &HashSet<ThreadId>, steers: &HashSet<SteerId>, outcome: &mut Outcome) {
    let (done, left): (Vec<_>, Vec<_>) =
        past.held.iter().map(|(_, held)| held.thread).partition(|t| threads.contains(t));
    let (unsteered, steered): (Vec<_>, Vec<_>) =
        past.steers.held.iter().map(|(_, held)| held).partition(|held| steers.contains(&held.id()));
    let path = past.path.display();
    if !left.is_empty() || !steered.is_empty() {
        let mut lines: Vec<Entry> = done.into_iter().map(|thread| Entry::Restored { thread }).collect();
        lines.extend(unsteered.into_iter().map(|held| Entry::Unsteered { file: held.file }));
        let noted = if lines.is_empty() { Ok(()) } else { journal::add_to(&past.path, &lines) };
        let trouble = noted.err().map_or_else(String::new, |error| format!(" (it cannot be written: {error})"));
        let what = still(left.len(), undo_steers::settings(steered));
        return outcome.warn(format!("{what}: {path} is kept; run vnettop undo again{trouble}"));
    }
    if past.damaged.is_empty() {
        return remove(&past.path, outcome);
    }
    let kept = past.path.with_extension("jsonl.damaged");
    match fs::rename(&past.path, &kept) {
        Ok(()) => outcome.say(format!("the damaged journal is kept as {}", kept.display())),
        Err(error) => outcome.warn(format!("cannot rename {path}: {error}")),
    }
}

/// What a journal leaves in force.
fn still(threads: usize, settings: usize) -> String {
    let threads = match threads {
        0 => None,
        1 => Some("1 thread is still pinned".to_owned()),
        more => Some(format!("{more} threads are still pinned")),
    };
    let settings = match settings {
        0 => None,
        1 => Some("1 setting of a link is still changed".to_owned()),
        more => Some(format!("{more} settings of links are still changed")),
    };
    threads.into_iter().chain(settings).collect::<Vec<_>>().join(", ")
}

fn remove(path: &Path, outcome: &mut Outcome) {
    if let Err(error) = fs::remove_file(path) {
        outcome.warn(format!("cannot remove the journal {}: {error}; remove it by hand", path.display()));
    }
}
