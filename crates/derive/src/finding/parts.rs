//! What a finding says, part by part, for whoever tells it line by line.

/// Words that a command to be run begins with.
const COMMANDS: [&str; 10] =
    ["ip ", "bridge ", "tc ", "ethtool ", "sysctl ", "taskset ", "raise ", "nft ", "iperf3 ", "nsenter "];
/// A remedy that stands for itself begins so.
const REMEDIES: [&str; 3] = ["raise ", "for bursts ", "lower "];

/// What a finding says in parts; each is empty where it has no such part.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FindingParts {
    /// What is wrong, where that is more than the state of the test.
    pub what: String,
    /// Why.
    pub why: String,
    /// LIMIT says why.
    pub by_limit: bool,
    /// What it costs.
    pub cost: String,
    /// What to do about it, where that is more than a key.
    pub fix: String,
}

impl FindingParts {
    /// Of a sentence that tells why and, behind a colon or as a command in parentheses at its end, what to do.
    pub(super) fn of_remedy(text: &str) -> Self {
        if REMEDIES.iter().chain(&COMMANDS).any(|word| text.starts_with(word)) {
            return Self { fix: text.to_owned(), ..Self::default() };
        }
        match text.split_once(": ").filter(|(why, _)| !why.contains('(')) {
            Some((why, fix)) => Self { why: why.to_owned(), fix: fix.to_owned(), ..Self::default() },
            None => Self::of_text(text),
        }
    }

    /// Of a whole sentence, in which only a command in parentheses at its end is told apart.
    pub(super) fn of_text(text: &str) -> Self {
        let command = text.strip_suffix(')').and_then(|text| text.rsplit_once(" ("));
        let command = command.filter(|(_, inside)| COMMANDS.iter().any(|word| inside.starts_with(word)));
        let (why, fix) = command.unwrap_or((text, ""));
        Self { why: why.to_owned(), fix: fix.to_owned(), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remedy_is_told_apart_from_its_cause() {
        let parts = |text: &str| {
            let FindingParts { why, fix, .. } = FindingParts::of_remedy(text);
            (why, fix)
        };
        let is = |text: &str, why: &str, fix: &str| assert_eq!(parts(text), (why.to_owned(), fix.to_owned()), "{text}");
        is("its queue is full: raise its limit (tc -s qdisc)", "its queue is full", "raise its limit (tc -s qdisc)");
        is("nft list ruleset there shows the rule", "", "nft list ruleset there shows the rule");
        is("for bursts raise net.core.rmem_max", "", "for bursts raise net.core.rmem_max");
        is("l2 (lb) is down (ip link set l2 up there)", "l2 (lb) is down", "ip link set l2 up there");
        is("a filter drops them (bpftool net: all of it)", "a filter drops them (bpftool net: all of it)", "");
    }
}
