//! Who belongs to the command that vnettop runs: its process, and whoever descends from it. A child stays one when its
//! parent ends, because it is remembered; one whose parent ended before it was seen has become vnettop's own child
//! (`app` asks the kernel for that), and is none of anybody else's.

use super::Process;
use crate::{Roots, untrusted_reader};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// The command's processes.
#[derive(Debug, Default)]
pub(super) struct Family {
    proc: PathBuf,
    /// vnettop's own number; `None` when this /proc is not of its own process namespace: then no member is known.
    vnettop: Option<u32>,
    /// A command was started.
    has_begun: bool,
    /// A process was born since the last look, or could not be judged.
    is_due: bool,
    /// Start of each member, by process number.
    members: BTreeMap<u32, u64>,
    reported: Option<Arc<Vec<u32>>>,
}

impl Family {
    pub(super) fn new(roots: &Roots, is_own: bool) -> Self {
        Self { proc: roots.proc.clone(), vnettop: is_own.then(std::process::id), ..Self::default() }
    }

    /// vnettop has started its command.
    pub(super) fn begin(&mut self) {
        (self.has_begun, self.is_due) = (true, true);
    }

    /// A process was born.
    pub(super) fn has_grown(&mut self) {
        self.is_due = true;
    }

    /// The members as of the last look, ascending; none before the first one.
    pub(super) fn pids(&self) -> Option<Arc<Vec<u32>>> {
        self.reported.clone()
    }

    /// Judges processes born since the last look, and forgets those that are gone; true when the members have changed.
    pub(super) fn look(&mut self, processes: &BTreeMap<u32, Process>) -> bool {
        let Some(vnettop) = self.vnettop.filter(|_| self.has_begun) else { return false };
        while std::mem::take(&mut self.is_due) {
            let (mut joined, mut undecided) = (Vec::new(), false);
            for (&pid, process) in processes.iter().filter(|(pid, _)| !self.members.contains_key(pid)) {
                // A process that has the parent's number now and began later is not the parent.
                let mut belongs = self.members.get(&process.parent).is_some_and(|start| *start <= process.start);
                if process.parent == vnettop {
                    let verdict = self.is_of_command(pid);
                    undecided |= verdict.is_none();
                    belongs = verdict == Some(true);
                }
                joined.extend(belongs.then_some((pid, process.start)));
            }
            let is_over = joined.is_empty();
            self.members.extend(joined);
            self.is_due = !is_over || undecided;
            if is_over {
                break;
            }
        }
        // Members are forgotten only now: a parent that ended in this tick still was one when its child was met.
        self.members.retain(|pid, start| processes.get(pid).is_some_and(|process| process.start == *start));
        if self.reported.as_ref().is_some_and(|reported| reported.iter().eq(self.members.keys())) {
            return false;
        }
        self.reported = Some(Arc::new(self.members.keys().copied().collect()));
        true
    }

    /// Whether a child of vnettop is the command or an orphan of the command, and not vnettop's own helper; `None` while it is
    /// still a copy of vnettop that is about to become something.
    fn is_of_command(&self, pid: u32) -> Option<bool> {
        let (theirs, ours) =
            (untrusted_reader::cmdline(&self.proc, pid)?, untrusted_reader::cmdline(&self.proc, "self")?);
        if theirs == ours && !ours.is_empty() {
            return None;
        }
        Some(true)
    }
}
