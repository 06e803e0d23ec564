//! What namespaces are called in labels.

use crate::derive::Metrics;
use std::collections::{BTreeMap, BTreeSet};

/// What each namespace is called in a label: `own` is vnettop's. Two that people call the same have their inodes with them.
pub(super) struct SpaceNames(BTreeMap<u64, String>);

impl SpaceNames {
    pub fn of(metrics: &Metrics, spaces: impl Iterator<Item = u64>) -> Self {
        let spaces: BTreeSet<u64> = spaces.collect();
        let called = |netns: u64| match metrics.space_name(netns) {
            _ if netns == metrics.netns => "own".to_owned(),
            Some(name) => name.into_owned(),
            None => netns.to_string(),
        };
        let mut names: BTreeMap<u64, String> = spaces.into_iter().map(|netns| (netns, called(netns))).collect();
        let mut spaces_of: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for (netns, name) in &names {
            spaces_of.entry(name.clone()).or_default().push(*netns);
        }
        let ambiguous = spaces_of.iter().filter(|(_, spaces)| spaces.len() > 1);
        for (name, netns) in ambiguous.flat_map(|(name, spaces)| spaces.iter().map(move |netns| (name, netns))) {
            names.insert(*netns, format!("{name} {netns}"));
        }
        Self(names)
    }

    pub fn name(&self, netns: u64) -> &str {
        self.0.get(&netns).map_or("", String::as_str)
    }
}
