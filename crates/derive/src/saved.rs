//! Why a recording was saved by itself.

use vnettop_sample::TriggerKind;

/// What a recording was saved for, and when in it that began.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SavedFor {
    /// `CLOCK_MONOTONIC`, ns.
    pub at_ns: u64,
    /// The same since the first sample, s.
    pub after_s: f64,
    /// What was waited for; none where a limit of `vnettop run` was exceeded.
    pub trigger: Option<TriggerKind>,
}

impl SavedFor {
    /// In a recording whose first sample is of this moment, ns.
    #[must_use]
    pub fn new(trigger: Option<TriggerKind>, at_ns: u64, first_ns: u64) -> Self {
        Self { at_ns, after_s: at_ns.saturating_sub(first_ns) as f64 / 1e9, trigger }
    }

    /// `a dip`
    #[must_use]
    pub fn what(&self) -> &'static str {
        match self.trigger {
            Some(TriggerKind::Dip) => "a dip",
            Some(TriggerKind::Loss) => "lost packets",
            Some(TriggerKind::Latency) => "a long latency",
            Some(TriggerKind::LimitChange) => "another limit",
            Some(TriggerKind::MigrationBurst) => "a burst of migrations",
            None => "an exceeded limit of vnettop run",
        }
    }

    /// `saved because of a dip at 0:12.3`
    #[must_use]
    pub fn text(&self) -> String {
        let tenths = (self.after_s.max(0.0) * 10.0).round();
        let (minutes, tenths) = ((tenths / 600.0).floor(), tenths % 600.0);
        format!("saved because of {} at {minutes:.0}:{:04.1}", self.what(), tenths / 10.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_that_within_the_recording() {
        let saved = |after_ns: u64| SavedFor::new(Some(TriggerKind::Dip), 5_000_000_000 + after_ns, 5_000_000_000);
        assert_eq!(saved(12_340_000_000).text(), "saved because of a dip at 0:12.3");
        assert_eq!(saved(59_970_000_000).text(), "saved because of a dip at 1:00.0");
        assert_eq!(SavedFor::new(None, 0, 7).text(), "saved because of an exceeded limit of vnettop run at 0:00.0");
    }
}
