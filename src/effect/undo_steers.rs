//! The part of `vnettop undo` that is about settings of links: those that vnettops which no longer run left changed, judged a
//! file at a time, so that the oldest old text wins.

use super::Outcome;
use super::journal::others::Claimant;
use super::journal::past::Past;
use super::put_back_steer::{self, ActiveSteer, SteerId, UnsteerResult};
use super::steer::{OpenedLinks, same, what};
use crate::sample::{LinkKey, SteerSetting};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Settings of vnettops that run.
pub(super) type RunningSteers = BTreeMap<(LinkKey, SteerSetting), Claimant>;

/// Puts back every file that these journals name, newest first; returns those with nothing left to try.
pub(super) fn put_back_all(
    links: &mut OpenedLinks<'_>,
    dead: &[Past],
    running: &RunningSteers,
    outcome: &mut Outcome,
) -> HashSet<SteerId> {
    let mut rows: Vec<&(u64, ActiveSteer)> = dead.iter().flat_map(|past| &past.steers.held).collect();
    rows.sort_by_key(|(at_ns, _)| *at_ns);
    let mut by_file: BTreeMap<SteerId, Vec<&ActiveSteer>> = BTreeMap::new();
    for (_, held) in &rows {
        by_file.entry(held.id()).or_default().push(held);
    }
    let (mut settled, mut verdicts) = (HashSet::new(), Vec::new());
    let mut taken = BTreeMap::<(LinkKey, SteerSetting), String>::new();
    for (_, oldest) in rows.iter().rev() {
        let Some(same_file) = by_file.remove(&oldest.id()) else { continue };
        let setting = (oldest.file.link, oldest.file.setting);
        if running.contains_key(&setting) {
            taken.insert(setting, oldest.name.clone());
            continue;
        }
        let held = ActiveSteer { old: original(&same_file), ..same_file[0].clone() };
        let verdict = put_back_steer::put_back(links, &held, &same_file);
        // A text that someone else wrote is told once, with the line that mends it; only what the kernel refused is kept.
        if !matches!(verdict.result, UnsteerResult::Refused(_)) {
            settled.insert(oldest.id());
        }
        verdicts.push(verdict);
    }
    for ((link, setting), name) in taken {
        let runs = running[&(link, setting)];
        let (what, pid, way_out) = (what(setting, &name, &[]), runs.pid, runs.way_out());
        outcome.warn(format!("{what} is steered by running vnettop {pid}: {way_out}, then vnettop undo again"));
    }
    put_back_steer::report(outcome, &verdicts);
    settled
}

/// The text from before all vnettops that steered a file one after the other, or what someone else has written in between.
fn original(same_file: &[&ActiveSteer]) -> String {
    let is_old_or_given = |held: &ActiveSteer, old: &str| same(held.file.setting, &held.old, old) || held.gave(old);
    let set_by_others = (1..same_file.len()).rev().map(|nth| (&same_file[nth].old, &same_file[..nth]));
    let newest = set_by_others.into_iter().find(|(old, before)| !before.iter().any(|held| is_old_or_given(held, old)));
    newest.map_or(&same_file[0].old, |(old, _)| old).clone()
}

/// How many settings of links these steers are of.
pub(super) fn settings<'a>(steers: impl IntoIterator<Item = &'a ActiveSteer>) -> usize {
    let setting = |held: &ActiveSteer| (held.file.link, held.cookie, held.file.setting);
    steers.into_iter().map(setting).collect::<BTreeSet<_>>().len()
}
