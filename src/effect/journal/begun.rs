//! The first line of a journal: who writes it, in which boot, and where its numbers hold.

use super::{Entry, JournalError, PinOwner};
use crate::effect::Pinner;
use crate::sample::ThreadId;

/// The first line of this process's journal.
pub(in crate::effect) fn begun(pinner: &mut dyn Pinner, compares: bool) -> Result<Entry, JournalError> {
    let pid = std::process::id();
    let start = pinner.start_of(ThreadId { pid, tid: pid, start: 0 }).map_err(JournalError::OwnerUnknown)?;
    let boot = pinner.boot_id().map_err(JournalError::OwnerUnknown)?;
    Ok(Entry::Begun { owner: PinOwner { pid, start }, boot, spaces: pinner.number_spaces(), compares })
}
