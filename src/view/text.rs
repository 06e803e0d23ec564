//! Sentences that have to be broken into lines.

use super::canvas::cells;
use crate::derive::Metrics;

pub(crate) use crate::derive::plural;

/// What a namespace is called.
pub(crate) fn namespace(metrics: &Metrics, netns: u64) -> String {
    if netns == metrics.machine.netns { "here".to_owned() } else { metrics.machine.space_label(netns) }
}

/// Breaks a text at spaces into lines of at most so many cells; a word longer than a line stays whole and is cut later.
pub(crate) fn wrap(text: &str, width: u16) -> Vec<String> {
    crate::text::wrap(text, usize::from(width), cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_break_at_spaces() {
        assert_eq!(
            wrap("moved from core to core", 10),
            ["moved from", "core to", "core"],
            "at the last space that fits"
        );
        assert_eq!(wrap("unbreakable", 4), ["unbreakable"], "a long word stays whole");
        assert_eq!(wrap("", 4), [""], "an empty text is one empty line");
    }
}
