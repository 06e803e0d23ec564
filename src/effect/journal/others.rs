//! What other running vnettops have pinned, by their journals. A mask that one of them set is not the thread's own: a vnettop
//! that took it for that would put it back for ever.

use super::{JournalError, PinOwner, past};
use crate::effect::Pinner;
use crate::effect::pin::{Identity, identity, who};
use crate::sample::ThreadId;
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
        if self.compares { "wait until its comparison is over" } else { "press U there" }
    }
}

/// The vnettop that wrote a journal does not run any more.
pub(in crate::effect) fn has_ended(pinner: &mut dyn Pinner, PinOwner { pid, start }: PinOwner) -> bool {
    matches!(identity(pinner, ThreadId { pid, tid: pid, start }), Identity::Ended | Identity::Reused)
}

/// The threads of other vnettops that run.
#[derive(Debug, Default)]
pub(in crate::effect) struct ForeignPins(HashMap<ThreadId, (Claimant, String)>);

impl ForeignPins {
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
            claims.0.extend(named);
        }
        Ok(claims)
    }

    /// Who has a thread.
    pub(in crate::effect) fn of(&self, thread: ThreadId) -> Option<Claimant> {
        self.0.get(&thread).map(|(claimant, _)| *claimant)
    }

    /// One sentence for each vnettop that has some of these threads: which, and what to do.
    pub(in crate::effect) fn sentences(&self, threads: impl Iterator<Item = ThreadId>) -> Vec<String> {
        let mut taken = BTreeMap::<Claimant, Vec<String>>::new();
        for (thread, (claimant, label)) in threads.filter_map(|thread| Some((thread, self.0.get(&thread)?))) {
            taken.entry(*claimant).or_default().push(who(label, thread));
        }
        let sentence = |(claimant, names): (Claimant, Vec<String>)| {
            let Claimant { pid, compares } = claimant;
            let (first, more) = (&names[0], names.len() - 1);
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            let has = if compares { "compares pins of" } else { "has pinned" };
            format!("another vnettop (pid {pid}) {has} {first}{more}: {}, then try again", claimant.way_out())
        };
        taken.into_iter().map(sentence).collect()
    }
}
