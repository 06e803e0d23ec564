//! The recording that is replayed: how long it is, what is in it, how fast it runs.

use crate::derive::Highlight;

/// The recording behind a replay, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Playback {
    /// The first sample and the last one that was looked at so far, recorded monotonic ns; none before that is known.
    pub span_ns: Option<(u64, u64)>,
    /// All of it was looked at.
    pub is_whole: bool,
    /// What somebody may want to jump to, in order.
    pub highlights: Vec<Highlight>,
    /// Times its own speed; none is as fast as it goes.
    pub speed: Option<f64>,
    /// Its last sample is shown.
    pub is_over: bool,
}

impl Playback {
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
