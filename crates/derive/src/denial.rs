//! Sentences that deny something, and what must have been looked at before each may be said. A loss that nobody looked for is no
//! loss that is not there: where less was looked at, the sentence says what, and for how long.

use super::TestMetrics;
use super::flow::Connection;
use super::{paths, plural};
use std::collections::BTreeSet;
use vnettop_sample::{FlowPath, HopBy, Kind, TracerStage};

/// What a sentence rests on that denies something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Drops as the kernel reports them, since before the time of the figure, and no program on the path that drops unseen.
    DropsThroughout,
    /// It says itself what was looked at, and for how long.
    SaysWhat,
    /// The kernel's own lookup of that hop (`RTM_GETROUTE`, `RTM_GETNEIGH`, Open vSwitch's answer), made just now.
    Lookup,
    /// vnettop has tried, and was refused for want of rights; not before it has tried, and not to a user who has the rights.
    Refused,
    /// What was asked for and what was sent over the same time; of UDP also what arrives, else it says that this is not known.
    Figures,
    /// Nothing is denied: it says what to do, or what an option does.
    Advice,
}

/// A sentence that denies something, by words that stand in it and in no other one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Denial {
    /// The words.
    pub words: &'static str,
    /// What it needs.
    pub needs: Needs,
}

const fn denial(words: &'static str, needs: Needs) -> Denial {
    Denial { words, needs }
}

/// Words that make a sentence deny something; one with such a word has a row in [`DENIALS`].
pub const DENYING: &[&str] = &[
    "drops none",
    "dropped none",
    "nowhere",
    "no counter",
    "not reachable",
    "a loop",
    "was asked for",
    "as root",
    "none so far",
    "where is not visible",
];

/// Every sentence that denies.
pub const DENIALS: &[Denial] = &[
    denial("this kernel drops none", Needs::DropsThroughout),
    denial("dropped where no counter shows it", Needs::SaysWhat),
    denial("do not arrive; where is not known from", Needs::SaysWhat),
    denial("; where is not visible here", Needs::SaysWhat),
    denial("none so far", Needs::SaysWhat),
    denial("it was asked for", Needs::Figures),
    denial("which leads nowhere", Needs::Lookup),
    denial("is not reachable from here: unreachable by a route", Needs::Lookup),
    denial("the routes or bridges form a loop", Needs::Lookup),
    denial("their TTL expired (a loop: traceroute shows it)", Needs::Advice),
    denial("run vnettop as root", Needs::Refused),
    denial("run it as root", Needs::Refused),
    denial("run as root", Needs::Refused),
    denial("try as root", Needs::Refused),
    denial("(as root", Needs::Advice),
    denial("as root: ulimit", Needs::Advice),
    denial("as root restores its old mask", Needs::Refused),
    denial("that user or as root", Needs::Refused),
    denial("as its user or as root", Needs::Refused),
    denial("namespace or as root", Needs::Refused),
    denial("; as root or with CAP_SYS_NICE", Needs::Refused),
];

/// How far the drops of a connection were looked at over a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DropsSeen {
    /// All of that time, along the whole path.
    Throughout,
    /// The programs that tell drops are being attached.
    BeingAttached,
    /// For so many seconds only.
    For(u64),
    /// A program on the path takes packets that the kernel then knows nothing of, or a part of the path is not known.
    Beyond(String),
    /// The kernel is not asked.
    Not,
}

/// How far the drops of these connections were looked at over the last `seconds`.
pub(crate) fn drops<'a>(
    metrics: &TestMetrics,
    connections: impl IntoIterator<Item = &'a Connection>,
    seconds: f64,
) -> DropsSeen {
    if metrics.machine.tracer.is_some_and(|tracer| tracer.state == TracerStage::BeingAttached) {
        return DropsSeen::BeingAttached;
    }
    if !metrics.machine.asks_kernel() {
        return DropsSeen::Not;
    }
    // An older recording does not tell since when.
    let since_ns = metrics.machine.tracer.and_then(|tracer| tracer.since_ns).unwrap_or(0);
    let for_ns = metrics.machine.at_ns.saturating_sub(since_ns);
    if (for_ns as f64) < seconds * 1e9 {
        return DropsSeen::For(for_ns / 1_000_000_000);
    }
    let beyond = |connection: &Connection| match paths::found(&metrics.paths, connection) {
        Some(path) => beyond(metrics, path),
        None => Some("a path that is not known".to_owned()),
    };
    connections.into_iter().find_map(beyond).map_or(DropsSeen::Throughout, DropsSeen::Beyond)
}

/// What on a path may drop packets without the kernel's knowledge.
fn beyond(metrics: &TestMetrics, path: &FlowPath) -> Option<String> {
    if path.gap.is_some() {
        return Some("a path that is known in part only".to_owned());
    }
    if path.hops.iter().any(|hop| hop.by == HopBy::Proxy) {
        return Some("the program that copies on the path".to_owned());
    }
    let links = path.hops.iter().filter_map(|hop| metrics.machine.link(hop.link));
    let tun = links.into_iter().find(|link| matches!(link.facts.kind, Kind::Tun | Kind::Tap))?;
    Some(format!("the program behind {}", tun.facts.name))
}

/// What was looked at where packets do not arrive and no place is seen: `this kernel's drops of the last 12 s, 3 namespaces`.
pub(crate) fn looked_at(metrics: &TestMetrics, seconds: f64) -> String {
    let crossed = metrics.paths.iter().flat_map(|path| &path.hops).map(|hop| hop.link.netns);
    let ends = metrics.flow.connections.iter().flat_map(|one| [one.from.netns, one.to.netns]).flatten();
    let spaces = plural(crossed.chain(ends).collect::<BTreeSet<u64>>().len() as u64, "namespace");
    match drops(metrics, [], seconds) {
        DropsSeen::BeingAttached => format!("the counters of {spaces}; what counts drops is being attached"),
        DropsSeen::Not => format!("the counters of {spaces}"),
        DropsSeen::For(for_s) => format!("the counters of {spaces} and {for_s} s of this kernel's drops"),
        DropsSeen::Throughout | DropsSeen::Beyond(_) => format!("the counters of {spaces} and this kernel's drops"),
    }
}

#[cfg(test)]
mod tests;
