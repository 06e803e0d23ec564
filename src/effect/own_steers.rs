//! The steers now in force: settings of links that this vnettop has changed. It journals before it writes, all or nothing for each
//! request, and keeps for every file the text from before vnettop touched it first, or the one that someone else has written
//! since. What another vnettop that runs has steered it leaves alone.

use super::journal::begun::begun;
use super::journal::others::ForeignClaims;
use super::journal::steer_lines::SteerIntent;
use super::journal::{Entry, Journal, JournalError};
use super::put_back_steer::{self, ActiveSteer, UnsteerResult, UnsteerVerdict};
use super::steer::{self, OpenedLinks, SteerError, what};
use super::{LinkSettings, Outcome, Pinner, SteerRequest};
use crate::clock::{now_ns, wall_ms};
use crate::sample::{CoreSet, Event, LinkKey, QDISC_KINDS, SteerSetting, SteeredFile, qdisc_kind};
use std::collections::{BTreeSet, HashSet};

/// With what steers are made and taken back.
pub(super) struct SteerTools<'a> {
    pub(super) pinner: &'a mut dyn Pinner,
    pub(super) journal: &'a mut Journal,
    /// It steers in turn: all requested settings or none.
    pub(super) compares: bool,
}

/// What this vnettop has steered and not put back.
#[derive(Debug, Default)]
pub(super) struct OwnSteers {
    /// In the order they were steered first.
    held: Vec<ActiveSteer>,
}

/// One request that can be done: what is written where.
struct SteerPlan<'a> {
    request: &'a SteerRequest,
    /// What the link is called now.
    name: String,
    asked: String,
    /// The files to write, each with the text it has now.
    changes: Vec<(SteeredFile, String)>,
    /// The same files as they are to be remembered and journalled; nothing is given yet.
    intended: Vec<ActiveSteer>,
    /// Files that are asked to be as before vnettop.
    back: Vec<ActiveSteer>,
}

impl OwnSteers {
    pub(super) fn files(&self) -> usize {
        self.held.len()
    }

    /// How many settings of links stay changed, without those of links that are gone.
    pub(super) fn staying(&self, pinner: &mut dyn Pinner) -> usize {
        count_there(pinner, &self.held)
    }

    /// Changes these settings, one after the other; what fails is told and does not undo what succeeded.
    pub(super) fn steer(&mut self, mut tools: SteerTools<'_>, requests: &[SteerRequest], outcome: &mut Outcome) {
        let Some(plans) = self.prepare(&mut tools, requests, outcome) else { return };
        let SteerTools { pinner, journal, .. } = tools;
        let mut links = OpenedLinks::new(pinner);
        let (mut changed, mut already) = (0, 0);
        for plan in plans {
            if !plan.back.is_empty() {
                self.release(&mut links, journal, &plan.back, outcome);
            }
            match plan.changes.is_empty() {
                true if plan.back.is_empty() => already += 1,
                true => changed += 1,
                false => changed += usize::from(self.carry_out(&mut links, journal, &plan, outcome)),
            }
        }
        let undo = if self.held.is_empty() { "" } else { "; U undoes it" };
        let there = if already == 0 { String::new() } else { format!(", {already} had that value already") };
        let text = format!("{changed} of {} settings of links changed{there}{undo}", requests.len());
        if changed + already == requests.len() { outcome.say(text) } else { outcome.warn(text) }
    }

    /// Finds out what each file has now, and writes down what is about to be written; none where nothing may be. No other
    /// vnettop steers meanwhile: its text would be taken for the link's own.
    fn prepare<'r>(
        &mut self,
        tools: &mut SteerTools<'_>,
        requests: &'r [SteerRequest],
        outcome: &mut Outcome,
    ) -> Option<Vec<SteerPlan<'r>>> {
        let unwritten = |error: JournalError| {
            format!("nothing was steered, because the journal that undoes it cannot be written: {error}")
        };
        let _lock = tools.journal.lock().map_err(|error| outcome.warn(unwritten(error))).ok()?;
        let read = tools.journal.dir().and_then(|dir| ForeignClaims::read(&mut *tools.pinner, dir));
        let claims = read.map_err(|error| outcome.warn(format!("nothing was steered: {error}"))).ok()?;
        let mut named = HashSet::new();
        let (requests, again): (Vec<_>, Vec<_>) =
            requests.iter().partition(|one| named.insert((one.link, one.setting)));
        for one in again {
            let what = what(one.setting, &one.name, &[]);
            outcome.warn(format!("{what} was named twice: only the first is done"));
        }
        let sentences = claims.sentences_on_settings(requests.iter().map(|one| (one.link, one.setting)));
        outcome.taken |= !sentences.is_empty();
        let stop = tools.compares && !sentences.is_empty();
        for sentence in sentences {
            outcome.warn(sentence);
        }
        if stop {
            return None;
        }
        let mut links = OpenedLinks::new(&mut *tools.pinner);
        let free = requests.into_iter().filter(|one| !claims.has(one.link, one.setting));
        let plans = free.filter_map(|one| match self.plan(&mut links, one, outcome) {
            Ok(plan) => Some(plan),
            Err(error) => {
                outcome.warn(error.to_string());
                None
            }
        });
        let plans: Vec<_> = plans.collect();
        intend(tools, &plans).map_err(|error| outcome.warn(unwritten(error))).ok()?;
        Some(plans)
    }

    /// What is to be done for one request. A file that has what is asked for is no steer.
    fn plan<'r>(
        &self,
        links: &mut OpenedLinks<'_>,
        request: &'r SteerRequest,
        outcome: &mut Outcome,
    ) -> Result<SteerPlan<'r>, SteerError> {
        let setting = request.setting;
        let now = steer::look(links, request)?;
        let (asked, name) = (request.value.to_text(), now.name);
        let mut plan = SteerPlan { request, name, asked, changes: Vec::new(), intended: Vec::new(), back: Vec::new() };
        for (file, before) in now.files {
            let held = self.held.iter().find(|held| held.file == file && held.cookie == now.cookie);
            let ours = held.filter(|held| held.gave(&before));
            match ours {
                Some(held) if steer::same(setting, &held.old, &plan.asked) => plan.back.push(held.clone()),
                _ if steer::same(setting, &before, &plan.asked) => {}
                None if setting == SteerSetting::Qdisc && before != QDISC_KINDS[0] => {
                    return Err(SteerError::Unrestorable { name: plan.name, kind: qdisc_kind(&before).to_owned() });
                }
                _ => {
                    plan.intended.push(ActiveSteer {
                        file,
                        name: plan.name.clone(),
                        cookie: now.cookie,
                        old: ours.map_or(&before, |held| &held.old).clone(),
                        given: None,
                        asked: Some(plan.asked.clone()),
                    });
                    plan.changes.push((file, before));
                }
            }
        }
        if plan.changes.is_empty() && plan.back.is_empty() {
            let what = what(setting, &plan.name, &[]);
            outcome.say(format!("{what} is {} already, nothing to steer", plan.asked));
        }
        Ok(plan)
    }

    /// Writes the files of one request and says so: all of them, or none. Whether they are written now.
    fn carry_out(
        &mut self,
        links: &mut OpenedLinks<'_>,
        journal: &mut Journal,
        plan: &SteerPlan<'_>,
        outcome: &mut Outcome,
    ) -> bool {
        let (mut written, mut elsewhere) = (Vec::new(), false);
        for (at, ((file, before), intended)) in plan.changes.iter().zip(&plan.intended).enumerate() {
            let done = match links.get(file.link) {
                Ok(link) => steer::set(link, *file, &plan.asked),
                Err(error) => Err(SteerError::NotFound { what: what(file.setting, &plan.name, &[]), error }),
            };
            let given = match done {
                Ok(got) => {
                    journal.note(Entry::Steered { file: *file, got: got.clone() });
                    let (file, old, asked, at_ns) = (*file, before.clone(), plan.asked.clone(), now_ns());
                    outcome.events.push(Event::Steered { file, old, asked, got: got.clone(), at_ns });
                    Ok(got)
                }
                Err(error) => Err(error),
            };
            let is_read_back = !matches!(given, Err(SteerError::NotReadBack { .. } | SteerError::NotInForce { .. }));
            if given.is_ok() || !is_read_back {
                let given = given.as_ref().ok().cloned();
                let asked = given.is_none().then(|| plan.asked.clone());
                self.hold(ActiveSteer { given, asked, ..intended.clone() });
            }
            match given {
                Ok(got) => {
                    elsewhere |= links.get(file.link).is_ok_and(|link| is_elsewhere(link, *file, &got));
                    written.push((*file, got));
                }
                Err(error) => {
                    let unwritten = &plan.changes[at + usize::from(!is_read_back)..];
                    for (file, _) in unwritten {
                        journal.note(Entry::SteerFailed { file: *file });
                    }
                    self.take_back(links, journal, plan, at + usize::from(!is_read_back), &error, outcome);
                    return false;
                }
            }
        }
        told(plan, &written, outcome);
        if elsewhere {
            let what = what(plan.request.setting, &plan.name, &[]);
            outcome.say(format!("{what}: it takes effect at the next interrupt, until then another core handles it"));
        }
        true
    }

    /// Puts the first files of a request back to what they had before it, because a later one was refused.
    fn take_back(
        &mut self,
        links: &mut OpenedLinks<'_>,
        journal: &mut Journal,
        plan: &SteerPlan<'_>,
        written: usize,
        error: &SteerError,
        outcome: &mut Outcome,
    ) {
        let mut stay = 0;
        for (file, before) in plan.changes[..written].iter().rev() {
            let Some(at) = self.held.iter().position(|held| held.file == *file) else { continue };
            let held = ActiveSteer { old: before.clone(), ..self.held[at].clone() };
            let result = match links.get(file.link) {
                Ok(link) => put_back_steer::write_back(link, &held, &[&held]),
                Err(_) => UnsteerResult::Gone("the link"),
            };
            let is_as_before_vnettop = steer::same(file.setting, before, &self.held[at].old);
            match &result {
                // It was steered before, and is still as it was then.
                UnsteerResult::Restored(got) | UnsteerResult::Already(got) if !is_as_before_vnettop => {
                    journal.note(Entry::Steered { file: *file, got: got.clone() });
                    (self.held[at].given, self.held[at].asked) = (Some(got.clone()), None);
                }
                result if result.is_final() => {
                    journal.note(Entry::Unsteered { file: *file });
                    self.held.remove(at);
                }
                _ => stay += 1,
            }
            let (file, at_ns) = (*file, now_ns());
            let event = |got: String| {
                if is_as_before_vnettop {
                    return Event::Unsteered { file, got, at_ns };
                }
                Event::Steered { file, old: plan.asked.clone(), asked: before.clone(), got, at_ns }
            };
            outcome.events.extend(result.text().map(str::to_owned).map(event));
        }
        outcome.warn(match (written, stay) {
            (0, _) => error.to_string(),
            (1, 0) if plan.request.setting.is_feature() => error.to_string(),
            (1, 0) => format!("{error}; the queue already changed is restored"),
            (more, 0) => format!("{error}; the {more} queues changed before it are restored"),
            (_, stay) => format!("{error}; {stay} of the queues changed before it cannot be restored: U tries again"),
        });
    }

    /// Remembers a steer.
    fn hold(&mut self, new: ActiveSteer) {
        match self.held.iter_mut().find(|held| held.file == new.file) {
            Some(held) if held.cookie == new.cookie => {
                let given = new.given.clone().or(held.given.take());
                *held = ActiveSteer { given, ..new };
            }
            Some(held) => *held = new,
            None => self.held.push(new),
        }
    }

    /// Puts every file back that this vnettop has steered, newest first.
    pub(super) fn restore(&mut self, tools: SteerTools<'_>, outcome: &mut Outcome) {
        let SteerTools { pinner, journal, .. } = tools;
        let newest_first: Vec<_> = self.held.iter().rev().cloned().collect();
        self.release(&mut OpenedLinks::new(pinner), journal, &newest_first, outcome);
    }

    /// Puts these files back; those that may be tried again stay held.
    fn release(
        &mut self,
        links: &mut OpenedLinks<'_>,
        journal: &mut Journal,
        files: &[ActiveSteer],
        outcome: &mut Outcome,
    ) {
        let mut verdicts: Vec<UnsteerVerdict> = Vec::new();
        for held in files {
            let verdict = put_back_steer::put_back(links, held, &[held]);
            if verdict.result.is_final() {
                journal.note(Entry::Unsteered { file: held.file });
                self.held.retain(|other| other.file != held.file);
            }
            verdicts.push(verdict);
        }
        put_back_steer::report(outcome, &verdicts);
    }
}

/// Writes down every text that is about to be written, all of them before the first one is.
fn intend(tools: &mut SteerTools<'_>, plans: &[SteerPlan<'_>]) -> Result<(), JournalError> {
    let (wall_ms, at_ns) = (wall_ms(), now_ns());
    let line = |steer: &ActiveSteer| {
        let ActiveSteer { file, name, cookie, old, asked, .. } = steer.clone();
        Entry::Steer(SteerIntent { file, name, cookie, old, asked: asked.unwrap_or_default(), wall_ms, at_ns })
    };
    let lines: Vec<Entry> = plans.iter().flat_map(|plan| &plan.intended).map(line).collect();
    if lines.is_empty() {
        return Ok(());
    }
    let SteerTools { pinner, journal, compares } = tools;
    journal.intend(|| begun(&mut **pinner, *compares), &lines)
}

/// An interrupt is taken by a core that was not asked for.
fn is_elsewhere(link: &mut dyn LinkSettings, file: SteeredFile, got: &str) -> bool {
    let asked = CoreSet::from_mask(got);
    link.effective(file).zip(asked).is_some_and(|(effective, asked)| !effective.is_subset(&asked))
}

/// Says what became of a request whose files are all written.
fn told(plan: &SteerPlan<'_>, written: &[(SteeredFile, String)], outcome: &mut Outcome) {
    let (setting, asked) = (plan.request.setting, plan.asked.as_str());
    let queues: Vec<u32> = written.iter().map(|(file, _)| file.queue).collect();
    let what = what(setting, &plan.name, &queues);
    let before = steer::texts(setting, plan.changes.iter().map(|(file, before)| (file.queue, before.as_str())));
    let otherwise = written.iter().find(|(_, got)| !steer::same(setting, asked, got));
    match otherwise {
        None => outcome.say(format!("{what} set to {asked} (before: {before})")),
        Some((_, got)) if setting == SteerSetting::Qdisc && steer::is_made_of(setting, got, asked) => {
            outcome.say(format!("{what} set to {asked} (before: {before})"));
        }
        Some((_, got)) if setting == SteerSetting::RpsFlowCnt && steer::is_made_of(setting, got, asked) => {
            outcome.say(format!("{what} set to {got}: the kernel rounds {asked} up (before: {before})"));
        }
        Some((_, got)) => outcome.warn(steer::shortfall(setting, &what, asked, got)),
    }
}

/// How many settings of links these files are of, without those of links that are gone.
pub(super) fn count_there(pinner: &mut dyn Pinner, steers: &[ActiveSteer]) -> usize {
    let mut links = OpenedLinks::new(pinner);
    let mut there = BTreeSet::<(LinkKey, Option<u64>, SteerSetting)>::new();
    for held in steers {
        use crate::source::steering::LinkFolderError::{NoLink, NoNamespace};
        let is_there = match links.get(held.file.link) {
            Ok(link) => link.cookie().zip(held.cookie).is_none_or(|(now, then)| now == then),
            Err(NoLink | NoNamespace) => false,
            // What may not be looked at may be there.
            Err(_) => true,
        };
        if is_there {
            there.insert((held.file.link, held.cookie, held.file.setting));
        }
    }
    there.len()
}
