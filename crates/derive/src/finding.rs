//! Sentences of advice with the numbers behind them, the dearest first. A finding says what made the rate swing only
//! where it was shown ([`super::migration_cost`]), because on some machines moves cost nothing. It runs every tick, so a check
//! looks at each row once and computes nothing that the diagnosis has not.

mod jitter;
mod latency;
mod limited;
mod links;
pub(crate) mod loss;
mod machine;
pub(crate) mod nothing;
mod parts;
mod path;
mod remedy;
mod reordered;
mod same_core;
#[cfg(test)]
pub(crate) mod tests;
mod threads;

use super::TestMetrics;
use super::diagnosis::RateDiagnosis;
use super::experiment::Verdict;
use super::held_back::Limit;
use super::history::History;
use super::placement::{propose, steer, with_steers};

pub use parts::FindingParts;

/// What a finding is about, one of the lints'.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[allow(missing_docs, reason = "each is its word")]
pub enum FindingId {
    Loss,
    NothingArrives,
    SameMac,
    PathMtu,
    Fragments,
    HalfDown,
    PortWaits,
    LacksCpu,
    VxlanHeadroom,
    WireguardHeadroom,
    Softnet,
    Jitter,
    Latency,
    SameCore,
    MaskChanged,
    Iperf3Main,
    OtherNode,
    SmtSiblings,
    Iperf3Single,
    Proxy,
    ThroughLo,
    GsoLimits,
    Xdp,
    Offloads,
    Reordered,
    SpareCore,
    Steered,
    OneCore,
    Steal,
    SharedCore,
    JitterUnexplained,
    Moves,
    Squeeze,
    Frequency,
    Governor,
    NumaBalancing,
    Retransmits,
    Label,
    Irqbalance,
    Late,
    Untraced,
}

/// The figure of [`FindingId::Moves`] that the card of a run replaces by the mean of the run.
pub(crate) const MOVES_PER_S: &str = "moves_per_s";

/// One sentence of advice.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Its word is stable.
    pub id: FindingId,
    /// The sentence, with its numbers and units.
    pub text: String,
    /// The same in parts.
    pub parts: FindingParts,
    /// The numbers behind it, by name with unit.
    pub numbers: Vec<(&'static str, f64)>,
    /// The key that mends it, if there is one (`p`).
    pub key: Option<char>,
}

/// One thing to look for: the key that mends it; what it may cost, share of the throughput, where the check itself does not
/// tell (for the order only); the check.
type Lint = (FindingId, Option<char>, f64, fn(&LintInput<'_>) -> Option<Diagnostic>);

/// What a lint may look at.
struct LintInput<'a> {
    metrics: &'a TestMetrics,
    /// What holds the test back.
    limit: Option<&'a Limit>,
    pin_may_help: bool,
    history: &'a History,
    diagnosis: &'a RateDiagnosis,
}

/// What a lint has to say: a sentence, its numbers, and the share of the throughput that it costs where that is known.
struct Diagnostic {
    text: String,
    /// Where the sentence has more than one.
    parts: Option<FindingParts>,
    cost: Option<f64>,
    numbers: Vec<(&'static str, f64)>,
}

impl Diagnostic {
    fn in_parts(self, parts: FindingParts) -> Self {
        Self { parts: Some(parts), ..self }
    }

    fn new(text: impl Into<String>, numbers: impl Into<Vec<(&'static str, f64)>>) -> Self {
        Self { text: text.into(), parts: None, cost: None, numbers: numbers.into() }
    }
}

/// Everything that is looked for: lost packets, then what slows threads down, then what may, then what misleads.
const LINTS: [Lint; 43] = [
    (FindingId::Loss, Some('p'), 2.0, loss::lost),
    (FindingId::NothingArrives, None, 1.9, nothing::arrives),
    (FindingId::SameMac, None, 1.6, loss::same_mac),
    (FindingId::PathMtu, None, 1.5, path::mtu),
    (FindingId::Fragments, None, 1.45, loss::fragmented),
    (FindingId::HalfDown, None, 1.4, path::half_down),
    (FindingId::PortWaits, None, 1.3, path::port_waits),
    (FindingId::VxlanHeadroom, None, 1.2, path::headroom),
    (FindingId::WireguardHeadroom, None, 1.19, path::wireguard_headroom),
    (FindingId::Softnet, None, 1.0, machine::dropped),
    (FindingId::LacksCpu, Some('p'), limited::LACKS, limited::lacks_cpu),
    (FindingId::Reordered, Some('p'), 0.6, reordered::reordered),
    (FindingId::Jitter, Some('p'), 0.5, jitter::by_moves),
    (FindingId::Latency, Some('p'), 0.55, latency::of_threads),
    (FindingId::Latency, None, 0.54, latency::of_packets),
    (FindingId::SameCore, Some('p'), 0.5, same_core::taking_turns),
    (FindingId::MaskChanged, None, 0.35, machine::changed_masks),
    (FindingId::Iperf3Main, Some('p'), 0.33, threads::only_the_main_thread),
    (FindingId::SpareCore, Some('p'), 0.32, path::spare_core),
    (FindingId::OtherNode, Some('p'), 0.3, threads::other_node),
    (FindingId::SmtSiblings, Some('p'), 0.28, threads::siblings),
    (FindingId::Iperf3Single, None, 0.25, threads::one_thread_for_all),
    (FindingId::Proxy, None, 0.24, path::proxied),
    (FindingId::ThroughLo, None, 0.23, path::through_lo),
    (FindingId::GsoLimits, None, 0.227, path::limited),
    (FindingId::Xdp, None, 0.225, path::taken_by_xdp),
    (FindingId::Offloads, None, 0.22, path::offloads),
    (FindingId::Steered, None, 0.215, path::steered),
    (FindingId::OneCore, Some('p'), 0.21, path::one_core),
    (FindingId::Steal, None, 0.2, machine::stolen),
    (FindingId::SharedCore, Some('p'), 0.2, threads::among_interrupts),
    (FindingId::JitterUnexplained, None, 0.15, jitter::unexplained),
    (FindingId::Moves, Some('p'), 0.1, threads::moving),
    // Hardly ever is no reason to pin.
    (FindingId::Moves, None, 0.095, threads::moved_lately),
    (FindingId::Squeeze, None, 0.09, machine::squeezed),
    (FindingId::Frequency, None, 0.08, machine::capped),
    (FindingId::Governor, None, 0.07, machine::powersave),
    (FindingId::NumaBalancing, None, 0.06, machine::balancing),
    (FindingId::Retransmits, None, 0.055, loss::retransmitted),
    (FindingId::Label, None, 0.05, links::beyond_label),
    (FindingId::Irqbalance, None, 0.04, machine::irqbalance),
    (FindingId::Late, None, 0.03, machine::late),
    (FindingId::Untraced, None, 0.02, jitter::untraced),
];

/// Every finding of this moment, the dearest first, as `limit` has them; and whether that goes before all of them. With
/// `pin_may_help` a finding whose remedy is a pin has its key; one whose remedy is a steer has it where one is proposed.
#[must_use]
pub fn all(
    metrics: &TestMetrics,
    limit: Option<&Limit>,
    pin_may_help: bool,
    history: &History,
    diagnosis: &RateDiagnosis,
) -> (Vec<Finding>, bool) {
    let input = LintInput { metrics, limit, pin_may_help, history, diagnosis };
    let found = |&(id, key, weight, check): &Lint| {
        let Diagnostic { text, parts, cost, numbers } = check(&input)?;
        let parts = parts.unwrap_or_else(|| FindingParts::of_text(&text));
        // The key for a proposal is left out when there is none, or it will probably not help.
        let may_help = || match id {
            _ if limit.is_some_and(|limit| limited::is_contradicted(&input, limit, id)) => false,
            FindingId::Loss => pin_may_help && loss::is_explained(&input),
            FindingId::Reordered => steer(metrics).is_some(),
            FindingId::SpareCore | FindingId::OneCore => lists_steers(metrics),
            _ => pin_may_help,
        };
        let key = key.filter(|_| may_help());
        Some((limited::weight(&input, id, cost.unwrap_or(weight)), Finding { id, text, parts, numbers, key }))
    };
    let mut found: Vec<(f64, Finding)> = LINTS.iter().filter_map(found).collect();
    found.sort_by(|one, other| other.0.total_cmp(&one.0));
    let findings: Vec<Finding> = found.into_iter().map(|(_, finding)| finding).collect();
    let limit_leads = limited::leads(&input, &findings);
    (findings, limit_leads)
}

/// `p` lists a setting for the packets, be it off.
fn lists_steers(metrics: &TestMetrics) -> bool {
    // It says to undo first what a card found worse.
    let is_worse = metrics.card.as_ref().is_some_and(|card| card.verdict == Verdict::Worse);
    !is_worse && with_steers(metrics, propose(metrics)).is_ok_and(|proposal| !proposal.steers.is_empty())
}
