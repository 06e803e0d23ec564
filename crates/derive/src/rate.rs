//! Two readings of a counter or a clock → what passed between them.

/// Seconds from one monotonic instant to a later one; none when they do not advance.
pub(crate) fn seconds(from_ns: u64, to_ns: u64) -> Option<f64> {
    to_ns.checked_sub(from_ns).filter(|&ns| ns > 0).map(|ns| ns as f64 / 1e9)
}

/// How much a counter rose a second; none when it went backwards (reset, wrap, another device under the same index).
pub(crate) fn per_second(from: u64, to: u64, seconds: f64) -> Option<f64> {
    to.checked_sub(from).map(|rise| rise as f64 / seconds)
}
