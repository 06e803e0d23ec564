//! Links that move more than they claim.

use super::{Diagnostic, LintInput};
use crate::figure::{count, speed};
use crate::links::Basis;
use crate::links::LinkMetrics;

/// A link that moves about what it claims is no finding.
const CLEARLY: f64 = 1.1;

/// The link that passes its claim the most, where the claim is no limit.
pub(super) fn beyond_label(input: &LintInput<'_>) -> Option<Diagnostic> {
    let (mut links, mut most): (usize, Option<(f64, &LinkMetrics)>) = (0, None);
    for link in input.metrics.machine.links.iter() {
        let Some(times) = link.times_label().filter(|&times| times >= CLEARLY) else { continue };
        links += 1;
        if most.is_none_or(|(so_far, _)| times > so_far) {
            most = Some((times, link));
        }
    }
    let (times, link) = most?;
    let bits = link.rates?.peak_bits_per_s()?;
    let claim = f64::from(link.facts.speed_mbps?);
    let others = match links - 1 {
        0 => String::new(),
        1 => "; 1 more link exceeds its nominal speed".to_owned(),
        more => format!("; {more} more links exceed their nominal speed"),
    };
    let text = format!(
        "{} carries {}, {times:.1}× its nominal {}, {}{others}",
        link.facts.name,
        speed(bits),
        speed(claim * 1e6),
        meaning(link.basis)
    );
    Some(Diagnostic::new(
        text,
        [("times", times), ("bits_per_s", bits), ("claim_mbps", claim), ("links", count(links))],
    ))
}

/// What the claim is, in words.
fn meaning(basis: Basis) -> &'static str {
    match basis {
        Basis::Real => "as the hardware reports it",
        Basis::Constant => "which the driver hard-codes and does not enforce",
        Basis::Inherited => "which it inherits from the link below and does not enforce",
        Basis::MaxOfPorts => "which is that of its fastest port and not enforced",
        Basis::SumOfPorts => "which is the sum of its ports and not enforced",
        Basis::UserSet => "which ethtool set and nothing enforces",
        Basis::None => "unknown",
    }
}
