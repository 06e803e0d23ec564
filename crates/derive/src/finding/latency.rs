//! What holds the packets of the test longest, while that is measured ([`crate::latency`]).

use super::{Diagnostic, LintInput};
use crate::latency::{LatencyCause, Stage};

/// A thread waits for a core, which a pin may mend.
pub(super) fn of_threads(input: &LintInput<'_>) -> Option<Diagnostic> {
    cause(input).filter(|cause| is_of_thread(cause)).map(told)
}

/// Something else.
pub(super) fn of_packets(input: &LintInput<'_>) -> Option<Diagnostic> {
    cause(input).filter(|cause| !is_of_thread(cause)).map(told)
}

fn cause<'a>(input: &LintInput<'a>) -> Option<&'a LatencyCause> {
    input.metrics.latency.as_deref()?.cause.as_ref()
}

fn is_of_thread(cause: &LatencyCause) -> bool {
    matches!(cause.by.unwrap_or(cause.key).stage, Stage::Wakeup(_))
}

fn told(cause: &LatencyCause) -> Diagnostic {
    Diagnostic::new(cause.text.clone(), cause.numbers.clone())
}
