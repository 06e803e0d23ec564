//! What namespaces are called in series: `own` is vnettop's.

use super::super::Metrics;
use std::collections::{BTreeMap, BTreeSet};
use vnettop_sample::{Ifindex, LinkKey, Owner};

const OWN: &str = "own";

/// The pod that a namespace is: Kubernetes namespace and name.
pub(super) fn pod_of(metrics: &Metrics, netns: u64) -> Option<(&str, &str)> {
    let lo = LinkKey { netns, ifindex: Ifindex(1) };
    metrics.machine.owner(lo).filter(|_| netns != metrics.machine.netns).and_then(Owner::pod)
}

/// The name that people know it by, of a pod with its namespace in Kubernetes, else its inode. One of another's that is called
/// `own` has its inode with it.
pub(super) fn label_of(metrics: &Metrics, netns: u64) -> String {
    if let Some((namespace, name)) = pod_of(metrics, netns) {
        return format!("{namespace}/{name}");
    }
    match metrics.machine.space_name(netns) {
        _ if netns == metrics.machine.netns => OWN.to_owned(),
        Some(name) if name == OWN => format!("{name} {netns}"),
        Some(name) => name.into_owned(),
        None => netns.to_string(),
    }
}

/// The labels of namespaces that are there at once: two that people call the same have their inodes with them.
#[derive(Debug, Clone, Default)]
pub struct SpaceLabels(BTreeMap<u64, String>);

impl SpaceLabels {
    /// The labels of the namespaces of all links.
    #[must_use]
    pub fn of(metrics: &Metrics) -> Self {
        let spaces: BTreeSet<u64> = metrics.machine.links.iter().map(|link| link.facts.netns).collect();
        let mut labels: BTreeMap<u64, String> =
            spaces.into_iter().map(|netns| (netns, label_of(metrics, netns))).collect();
        let mut spaces_of: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for (netns, label) in &labels {
            spaces_of.entry(label.clone()).or_default().push(*netns);
        }
        let ambiguous = spaces_of.iter().filter(|(_, spaces)| spaces.len() > 1);
        for (label, netns) in ambiguous.flat_map(|(label, spaces)| spaces.iter().map(move |netns| (label, netns))) {
            labels.insert(*netns, format!("{label} {netns}"));
        }
        Self(labels)
    }

    /// The label of this namespace; empty where it has no links.
    #[must_use]
    pub fn label(&self, netns: u64) -> &str {
        self.0.get(&netns).map_or("", String::as_str)
    }
}
