//! Recordings that were saved because something happened, by what it was.

use crate::triggers::TriggerKind;
use std::collections::BTreeMap;

/// How many were saved of each kind that is waited for.
#[derive(Debug, Clone, Default)]
pub struct SaveTotals(BTreeMap<TriggerKind, u64>);

impl SaveTotals {
    /// So many more of this kind; with 0 the kind is known from then on.
    pub fn count(&mut self, kind: TriggerKind, more: u64) {
        *self.0.entry(kind).or_default() += more;
    }

    /// How many of each.
    pub fn each(&self) -> impl Iterator<Item = (TriggerKind, u64)> {
        self.0.iter().map(|(kind, count)| (*kind, *count))
    }
}
