//! The recording that is replayed: how long it is, what is in it, how fast it runs.

use crate::derive::Highlight;

/// The recording behind a replay, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Playback {
    /// The first sample and the last one that was looked at so far, recorded monotonic ns; none before that is known.
    pub span_ns: Option<(u64, u64)>,
    /// Whether all of the recording was looked at.
    pub is_whole: bool,
    /// What somebody may want to jump to, in order.
    pub highlights: Vec<Highlight>,
    /// Times its own speed; none is as fast as it goes.
    pub speed: Option<f64>,
    /// Why it could not be looked at to its end: a sentence.
    pub damage: Option<String>,
    /// Its last sample is shown.
    pub is_over: bool,
}

impl Playback {
    /// This moment, recorded monotonic ns, was looked at; what comes after the end is known with the end.
    #[must_use]
    pub fn has_read(&self, at_ns: u64) -> bool {
        self.is_whole || self.span_ns.is_some_and(|(_, last_ns)| last_ns >= at_ns)
    }

    /// The next highlight that is not shown yet at this moment.
    #[must_use]
    pub fn next(&self, at_ns: u64) -> Option<Highlight> {
        self.highlights.iter().find(|highlight| highlight.seen_ns > at_ns).copied()
    }

    /// The last one that was shown before this moment.
    #[must_use]
    pub fn previous(&self, at_ns: u64) -> Option<Highlight> {
        self.highlights.iter().rfind(|highlight| highlight.seen_ns < at_ns).copied()
    }
}
