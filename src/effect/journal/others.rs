//! What other running vnettops have pinned and steered, by their journals. A mask that one of them set is not the thread's own:
//! a vnettop that took it for that would put it back for ever.

use super::{JournalError, PinOwner, past};
use crate::effect::Pinner;
use crate::effect::pin::{Identity, identity, who};
use crate::effect::steer::what;
use crate::sample::{LinkKey, SteerSetting, ThreadId};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;

/// One vnettop and what it does with a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::effect) struct Claimant {
    pub(in crate::effect) pid: u32,
    /// It pins and unpins in turn, until its command ends.
    pub(in crate::effect) compares: bool,
}

impl Claimant {
    /// What is to be done before its threads are free.
    pub(in crate::effect) fn way_out(self) -> &'static str {
        if self.compares { "wait until its comparison has ended" } else { "press U there" }
    }
}

/// The vnettop that wrote a journal does not run any more.
pub(in crate::effect) fn has_ended(pinner: &mut dyn Pinner, PinOwner { pid, start }: PinOwner) -> bool {
    matches!(identity(pinner, ThreadId { pid, tid: pid, start }), Identity::Ended | Identity::Reused)
}

/// What other vnettops that run have changed, each with what it is called.
#[derive(Debug, Default)]
pub(in crate::effect) struct ForeignClaims {
    threads: HashMap<ThreadId, (Claimant, String)>,
    settings: HashMap<(LinkKey, SteerSetting), (Claimant, String)>,
}

impl ForeignClaims {
    /// Reads the journals in `dir` except its own; an error when another vnettop's pins are not known.
    pub(in crate::effect) fn read(pinner: &mut dyn Pinner, dir: &Path) -> Result<Self, JournalError> {
        let found = past::list(dir).map_err(|error| JournalError::Unread(dir.to_owned(), error))?;
        let (mut claims, here) = (Self::default(), pinner.number_spaces());
        for (path, owner) in found.into_iter().filter(|(_, owner)| owner.pid != std::process::id()) {
            if has_ended(pinner, owner) {
                continue;
            }
            let past = match past::read(path.clone(), owner) {
                Ok(past) => past,
                // It put everything back in this moment.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(JournalError::OtherUnread(owner.pid, path, error)),
            };
            // In other PID or time namespaces the same numbers mean other threads.
            if here.differs_from(past.spaces).is_some() {
                continue;
            }
            // Another vnettop of another boot had the same pid at the same time after the start.
            if past.boot.is_some() && past.boot != pinner.boot_id().ok() {
                continue;
            }
            let claimant = Claimant { pid: owner.pid, compares: past.compares };
            let named = past.claims().into_iter().map(|(thread, label)| (thread, (claimant, label.to_owned())));
            claims.threads.extend(named);
            let named =
                past.steers.claims(past.compares).into_iter().map(|(setting, name)| (setting, (claimant, name)));
            claims.settings.extend(named);
        }
        Ok(claims)
    }

    /// Who has a thread.
    pub(in crate::effect) fn of(&self, thread: ThreadId) -> Option<Claimant> {
        self.threads.get(&thread).map(|(claimant, _)| *claimant)
    }

    /// One sentence for each vnettop that has some of these threads: which, and what to do.
    pub(in crate::effect) fn sentences(&self, threads: impl Iterator<Item = ThreadId>) -> Vec<String> {
        let claim = |thread: ThreadId| {
            let (claimant, label) = self.threads.get(&thread)?;
            Some((*claimant, who(label, thread)))
        };
        let has = |compares| if compares { "compares pins of" } else { "has pinned" };
        sentences(threads.filter_map(claim), has)
    }

    /// Whether another vnettop has this setting of a link.
    pub(in crate::effect) fn has(&self, link: LinkKey, setting: SteerSetting) -> bool {
        self.settings.contains_key(&(link, setting))
    }

    /// One sentence for each vnettop that has some of these settings of links: which, and what to do.
    pub(in crate::effect) fn sentences_on_settings(
        &self,
        settings: impl Iterator<Item = (LinkKey, SteerSetting)>,
    ) -> Vec<String> {
        let claim = |(link, setting): (LinkKey, SteerSetting)| {
            let (claimant, name) = self.settings.get(&(link, setting))?;
            Some((*claimant, what(setting, name, &[])))
        };
        let has = |compares| if compares { "compares steers of" } else { "has steered" };
        sentences(settings.filter_map(claim), has)
    }
}

/// One sentence for each vnettop with what it has.
fn sentences(taken: impl Iterator<Item = (Claimant, String)>, has: impl Fn(bool) -> &'static str) -> Vec<String> {
    let mut by_claimant = BTreeMap::<Claimant, Vec<String>>::new();
    for (claimant, name) in taken {
        by_claimant.entry(claimant).or_default().push(name);
    }
    let sentence = |(claimant, names): (Claimant, Vec<String>)| {
        let Claimant { pid, compares } = claimant;
        let (first, more) = (&names[0], names.len() - 1);
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        format!("another vnettop (pid {pid}) {} {first}{more}: {}, then try again", has(compares), claimant.way_out())
    };
    by_claimant.into_iter().map(sentence).collect()
}
