//! What holds the packets of the test longest, while that is measured ([`crate::latency`]).

use super::{Diagnostic, FindingParts, LintInput};
use crate::figure;
use crate::latency::LatencyCause;

/// How a remedy begins that a key is.
const BY_KEY: &str = "press p to pin the test, or ";

/// A thread waits for a core that others have, which a pin may mend.
pub(super) fn of_threads(input: &LintInput<'_>) -> Option<Diagnostic> {
    told(input, true)
}

/// Something else.
pub(super) fn of_packets(input: &LintInput<'_>) -> Option<Diagnostic> {
    told(input, false)
}

fn told(input: &LintInput<'_>, pin_may_help: bool) -> Option<Diagnostic> {
    let latency = input.metrics.latency.as_deref()?;
    let LatencyCause { text, numbers, remedy, .. } =
        latency.cause.as_ref().filter(|one| one.pin_may_help == pin_may_help)?;
    let ago =
        latency.measured_ago_s.map_or_else(String::new, |ago_s| format!(" (measured {} ago)", figure::time(ago_s)));
    let why = format!("{text}{ago}");
    // The key stands before it.
    let fix = remedy.as_deref().map(|fix| fix.strip_prefix(BY_KEY).unwrap_or(fix));
    let parts = FindingParts { why: why.clone(), fix: fix.unwrap_or_default().to_owned(), ..FindingParts::default() };
    Some(Diagnostic::new(why, numbers.clone()).in_parts(parts))
}
