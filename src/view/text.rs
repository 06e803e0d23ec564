//! Sentences that have to be broken into lines.

use super::canvas::cells;
use crate::derive::Metrics;
use crate::text::around_command;

pub(crate) use crate::derive::plural;

/// What a namespace is called.
pub(crate) fn namespace(metrics: &Metrics, netns: u64) -> String {
    if netns == metrics.machine.netns { "here".to_owned() } else { metrics.machine.space_label(netns) }
}

/// Breaks a text at spaces into lines of at most so many cells; a word longer than a line stays whole and is cut later.
pub(crate) fn wrap(text: &str, width: u16) -> Vec<String> {
    crate::text::wrap(text, usize::from(width), cells)
}

/// The same, but a command in parentheses that does not fit into the rest of a line begins a new one; where it takes several, each but
/// the last ends as a shell reads on.
pub(crate) fn wrap_commands(text: &str, width: u16) -> Vec<String> {
    let plain = wrap(text, width);
    let Some((before, command, rest)) = around_command(text) else { return plain };
    if plain.iter().any(|line| line.contains(command)) {
        return plain;
    }
    let mut lines = wrap(before, width);
    let mut parts = wrap(command, width.saturating_sub(2));
    let last = parts.pop().unwrap_or_default();
    lines.extend(parts.into_iter().map(|part| format!("{part} \\")));
    lines.extend(wrap(&format!("{last}{rest}"), width));
    lines
}

/// A command in parentheses that has no room in one line of this width, without them; and the text without it.
pub(crate) fn without_command(text: &str, width: u16) -> Option<(String, &str)> {
    let (before, command, rest) = around_command(text)?;
    let is_whole = cells(command) <= usize::from(width);
    (!is_whole).then(|| (format!("{before}{rest}"), &command[1..command.len() - 1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_breaks_where_a_shell_reads_on() {
        let text = "one core keeps them in order (echo 2 | tee /sys/class/net/l2/queues/rx-*/rps_cpus) (+1 more: F)";
        let lines = wrap_commands(text, 60);
        let command = "(echo 2 | tee /sys/class/net/l2/queues/rx-*/rps_cpus) (+1";
        assert_eq!(lines, ["one core keeps them in order", command, "more: F)"]);
        let lines = wrap_commands(text, 40);
        let wanted = ["one core keeps them in order", "(echo 2 | tee \\", "/sys/class/net/l2/queues/rx-*/rps_cpus)"];
        assert_eq!(lines[..3], wanted, "no path is broken");
        assert_eq!(wrap_commands("(+1 more: F) and (see there)", 12), wrap("(+1 more: F) and (see there)", 12));
    }

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
