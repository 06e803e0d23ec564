//! What a test lost over its time, place by place.

use crate::finding::loss::place_alone;
use crate::{Finding, Loss, LossPlace};
use std::sync::Arc;
use vnettop_sample::{CoreId, LinkKey, Word};

/// What was lost at one place.
#[derive(Debug, Clone, PartialEq)]
pub struct LossSummary {
    /// What kind of place.
    pub place: LossPlace,
    /// The link, where it is at one, and the namespace that it is in, by inode and by name.
    pub link: Option<LinkKey>,
    /// Inode of the namespace; none where that is not known.
    pub netns: Option<u64>,
    /// What that namespace is called, as in the paths.
    pub space: Option<String>,
    /// What it is called.
    pub name: Option<String>,
    /// The core, of a backlog.
    pub core: Option<CoreId>,
    /// The kernel's reason and function.
    pub reason: Option<Arc<str>>,
    /// The kernel's function that dropped it.
    pub function: Option<Arc<str>>,
    /// Packets.
    pub packets: f64,
}

impl LossSummary {
    /// `in the receiver's socket buffer`: as sentences of findings and limits have the place.
    #[must_use]
    pub fn place_in_sentence(&self) -> String {
        place_alone(&Loss {
            place: self.place,
            name: self.name.clone(),
            core: self.core,
            reason: self.reason.clone(),
            function: self.function.clone(),
            ..Loss::default()
        })
    }

    /// `qdisc fq veth0`, `backlog of core 3`, `receive buffer`.
    #[must_use]
    pub fn words(&self) -> String {
        let kind = self.place.word().replace('_', " ");
        match (&self.name, self.core) {
            (_, Some(core)) => format!("{kind} of core {core}"),
            (Some(name), None) => format!("{kind} {name}"),
            (None, None) => kind,
        }
    }
}

/// Causes of losses that are told apart.
const MOST_CAUSES: usize = 16;

/// A later moment that is nearly as bad as the worst stands for it: who fills a core is known a moment later than that it is full.
const NEARLY: f64 = 0.9;

/// Why packets were lost, moment by moment: a loss is told with the cause of most of it.
#[derive(Debug, Clone, Default)]
pub(super) struct LossCauses(Vec<LossCause>);

#[derive(Debug, Clone)]
struct LossCause {
    /// Its sentence without figures; of full cores all together, whoever fills them.
    words: String,
    packets: f64,
    /// The most packets a second, as it was when nearly so many were lost, and when that was, monotonic ns.
    worst: (f64, Finding, u64),
}

impl LossCauses {
    /// Takes the finding of a sample.
    pub fn observe(&mut self, finding: &Finding, elapsed_s: f64, at_ns: u64) {
        let per_s =
            finding.numbers.iter().find(|(name, _)| *name == "all_packets_per_s").map_or(0.0, |(_, per_s)| *per_s);
        let why = if finding.parts.by_limit { "" } else { &finding.parts.why };
        let words: String = why.chars().filter(|c| !c.is_ascii_digit()).collect();
        let is_full = self.0.len() >= MOST_CAUSES;
        match self.0.iter_mut().find(|known| known.words == words) {
            Some(known) => {
                known.packets += per_s * elapsed_s;
                if per_s >= NEARLY * known.worst.0 {
                    known.worst = (per_s.max(known.worst.0), finding.clone(), at_ns);
                }
            }
            None if !is_full => {
                self.0.push(LossCause { words, packets: per_s * elapsed_s, worst: (per_s, finding.clone(), at_ns) });
            }
            None => {}
        }
    }

    /// The finding with the cause of most, and when it was so.
    pub fn main(&self) -> Option<(Finding, u64)> {
        let main = self.0.iter().max_by(|one, other| one.packets.total_cmp(&other.packets))?;
        Some((main.worst.1.clone(), main.worst.2))
    }
}
