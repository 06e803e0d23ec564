//! `vnettop undo`: puts back what vnettops that no longer run left pinned. All their journals are judged together, a
//! thread at a time, so that the oldest old mask wins; what a running vnettop holds is left to it.

use super::journal::others::{Claimant, has_ended};
use super::journal::past::{self, Past};
use super::journal::{self, Entry};
use super::pin::{Identity, identity};
use super::put_back::{self, ActivePin};
use super::{Outcome, Pinner};
use crate::sample::{CoreSet, ThreadId};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

/// Puts back every mask that a vnettop which no longer runs left in force, by the journals in `dir`. Journals with
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
    let settled = put_back_all(pinner, &journals, &mut outcome);
    for journal in &journals.dead {
        tidy(journal, &settled, &mut outcome);
    }
    if outcome.lines.is_empty() {
        outcome.say("nothing to undo: no vnettop left a pin behind".to_owned());
    }
    outcome
}

/// How many threads that still run a vnettop has left pinned which no longer does; what cannot be read is not counted.
/// It changes nothing.
#[must_use]
pub fn left_behind(pinner: &mut dyn Pinner, dir: &Path) -> usize {
    let (found, boot) = (past::list(dir).unwrap_or_default(), pinner.boot_id().ok());
    let here = pinner.number_spaces();
    let mut threads = HashSet::new();
    for (path, owner) in found {
        let Ok(past) = past::read(path, owner) else { continue };
        let is_of_now = past.boot.is_none() || past.boot == boot;
        if is_of_now && here.differs_from(past.spaces).is_none() && has_ended(pinner, past.owner) {
            let held = past.held.iter().map(|(_, pin)| pin.thread);
            threads.extend(held.filter(|&thread| matches!(identity(pinner, thread), Identity::Same)));
        }
    }
    threads.len()
}

/// The journals of this boot.
struct Journals {
    /// Journals of vnettops that no longer run.
    dead: Vec<Past>,
    /// Threads of vnettops that run.
    running: HashMap<ThreadId, Claimant>,
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
    let mut journals = Journals { dead: Vec::new(), running: HashMap::new() };
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
        // None of its threads can have lived through the reboot.
        return remove(&past.path, outcome);
    }
    if let Some(space) = pinner.number_spaces().differs_from(past.spaces) {
        // Its numbers mean other threads here: neither its vnettop nor the pinned threads can be looked up.
        if !past.held.is_empty() {
            outcome.warn(elsewhere(&past, &space));
        }
        return;
    }
    if !has_ended(pinner, past.owner) {
        let runs = Claimant { pid: past.owner.pid, compares: past.compares };
        outcome.say(format!("vnettop {} still runs: {}", runs.pid, runs.way_out()));
        journals.running.extend(past.claims().into_iter().map(|(thread, _)| (thread, runs)));
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

/// The sentence about pins whose threads cannot be identified here.
fn elsewhere(past: &Past, space: &str) -> String {
    let (path, kind) =
        (past.path.display(), if space.starts_with("pid") { "a process number" } else { "a start time" });
    let count = past.held.len();
    let pins = if count == 1 { "1 pin".to_owned() } else { format!("{count} pins") };
    format!(
        "{pins} in {path} left alone: written in another namespace, {space}, where {kind} means another thread; \
         run vnettop undo there, or remove the file once its threads are over"
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
fn tidy(past: &Past, settled: &HashSet<ThreadId>, outcome: &mut Outcome) {
    let (done, left): (Vec<_>, Vec<_>) =
        past.held.iter().map(|(_, held)| held.thread).partition(|t| settled.contains(t));
    let path = past.path.display();
    if !left.is_empty() {
        let lines: Vec<Entry> = done.into_iter().map(|thread| Entry::Restored { thread }).collect();
        let noted = if lines.is_empty() { Ok(()) } else { journal::add_to(&past.path, &lines) };
        let trouble = noted.err().map_or_else(String::new, |error| format!(" (it cannot be written: {error})"));
        return outcome
            .warn(format!("{} still pinned: {path} is kept; run vnettop undo again{trouble}", threads(left.len())));
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

fn threads(count: usize) -> String {
    if count == 1 { "1 thread is".to_owned() } else { format!("{count} threads are") }
}

fn remove(path: &Path, outcome: &mut Outcome) {
    if let Err(error) = fs::remove_file(path) {
        outcome.warn(format!("cannot remove the journal {}: {error}; remove it by hand", path.display()));
    }
}
