//! Sentences of advice with the numbers behind them, the dearest first. A finding says what made the rate swing only
//! where it was shown ([`super::cause`]), because on some machines moves cost nothing. It runs every tick, so a check
//! looks at each row once and computes nothing that the inquiry has not.

mod cores;
pub(in crate::derive) mod figure;
mod iperf;
mod jitter;
mod links;
pub(in crate::derive) mod loss;
mod masks;
mod own;
mod pairs;
mod path;
mod policy;
#[cfg(test)]
pub(in crate::derive) mod tests;
mod threads;

use super::Metrics;
use super::diagnosis::RateDiagnosis;
use super::history::History;

/// One sentence of advice.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Stable id, one of the lints': `jitter`, `softnet`, `same_core`, `moves`, …
    pub id: &'static str,
    /// The sentence, with its numbers and units.
    pub text: String,
    /// The numbers behind it, by name with unit.
    pub numbers: Vec<(&'static str, f64)>,
    /// The key that mends it, if there is one (`p`).
    pub key: Option<char>,
}

/// One thing to look for.
struct Lint {
    id: &'static str,
    /// The key that mends it.
    key: Option<char>,
    /// What it may cost, share of the throughput, where the check itself does not tell: for the order only.
    weight: f64,
    check: fn(&LintInput<'_>) -> Option<Diagnostic>,
}

/// What a lint may look at.
struct LintInput<'a> {
    metrics: &'a Metrics,
    history: &'a History,
    inquiry: &'a RateDiagnosis,
}

/// What a lint has to say: a sentence, its numbers, and the share of the throughput that it costs where that is known.
struct Diagnostic {
    text: String,
    cost: Option<f64>,
    numbers: Vec<(&'static str, f64)>,
}

impl Diagnostic {
    fn new(text: impl Into<String>, numbers: impl Into<Vec<(&'static str, f64)>>) -> Self {
        Self { text: text.into(), cost: None, numbers: numbers.into() }
    }
}

const fn lint(
    id: &'static str,
    key: Option<char>,
    weight: f64,
    check: fn(&LintInput<'_>) -> Option<Diagnostic>,
) -> Lint {
    Lint { id, key, weight, check }
}

/// Everything that is looked for: lost packets, then what slows threads down, then what may, then what misleads.
const LINTS: [Lint; 34] = [
    lint("loss", None, 2.0, loss::lost),
    lint("path_mtu", None, 1.5, path::mtu),
    lint("fragments", None, 1.45, loss::fragmented),
    lint("half_down", None, 1.4, path::half_down),
    lint("port_waits", None, 1.3, path::port_waits),
    lint("vxlan_headroom", None, 1.2, path::headroom),
    lint("wireguard_headroom", None, 1.19, path::wireguard_headroom),
    lint("softnet", None, 1.0, cores::dropped),
    lint("jitter", Some('p'), 0.5, jitter::by_moves),
    lint("same_core", Some('p'), 0.5, threads::on_the_same_core),
    lint("mask_changed", None, 0.35, masks::changed),
    lint("iperf3_main", Some('p'), 0.33, iperf::only_the_main_thread),
    lint("other_node", Some('p'), 0.3, pairs::other_node),
    lint("smt_siblings", Some('p'), 0.28, pairs::siblings),
    lint("iperf3_single", None, 0.25, iperf::one_thread_for_all),
    lint("proxy", None, 0.24, path::proxied),
    lint("through_lo", None, 0.23, path::through_lo),
    lint("offloads", None, 0.22, path::offloads),
    lint("steered", None, 0.215, path::steered),
    lint("one_core", None, 0.21, path::one_core),
    lint("steal", None, 0.2, cores::stolen),
    lint("shared_core", Some('p'), 0.2, threads::among_interrupts),
    lint("jitter_unexplained", None, 0.15, jitter::unexplained),
    lint("moves", Some('p'), 0.1, threads::moving),
    // Hardly ever is no reason to pin.
    lint("moves", None, 0.095, threads::moved_lately),
    lint("squeeze", None, 0.09, cores::squeezed),
    lint("frequency", None, 0.08, policy::capped),
    lint("governor", None, 0.07, policy::powersave),
    lint("numa_balancing", None, 0.06, policy::balancing),
    lint("retransmits", None, 0.055, loss::retransmitted),
    lint("label", None, 0.05, links::beyond_label),
    lint("irqbalance", None, 0.04, policy::irqbalance),
    lint("late", None, 0.03, own::late),
    lint("untraced", None, 0.02, jitter::untraced),
];

/// Every finding of this moment, the dearest first.
#[must_use]
pub fn all(metrics: &Metrics, history: &History, inquiry: &RateDiagnosis) -> Vec<Finding> {
    let scene = LintInput { metrics, history, inquiry };
    let found = |lint: &Lint| {
        let Diagnostic { text, cost, numbers } = (lint.check)(&scene)?;
        // Where a proposal doubts itself, or there is none, nobody is invited to it.
        let key = lint.key.filter(|&key| key != 'p' || metrics.placement_may_help);
        Some((cost.unwrap_or(lint.weight), Finding { id: lint.id, text, numbers, key }))
    };
    let mut found: Vec<(f64, Finding)> = LINTS.iter().filter_map(found).collect();
    found.sort_by(|one, other| other.0.total_cmp(&one.0));
    found.into_iter().map(|(_, finding)| finding).collect()
}
