//! How many rules the packets of the watched paths meet, beside the name of the stage that goes through them.

use std::sync::Arc;
use vnettop_sample::{Facts, FirewallRules, LinkFacts, row_of};

/// Namespaces that a sentence names.
const MOST_NAMED: usize = 2;

/// The rules that packets may meet in one network namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RulesOnLink {
    /// Name of the first link of a path there; none where it is not known.
    pub name: Option<String>,
    /// How many, as counted.
    pub counted: FirewallRules,
}

impl RulesOnLink {
    /// "1,004 rules on r0", "at least 12 rules on eth0", "rules on eth0: not known"; none where there are none.
    fn text(&self) -> Option<String> {
        let name = self.name.as_deref().unwrap_or("a link that has gone");
        match (self.counted.rules, &self.counted.gap) {
            (Some(0), None) => None,
            (Some(1), None) => Some(format!("1 rule on {name}")),
            (Some(rules), None) => Some(format!("{} rules on {name}", grouped(rules))),
            (Some(rules @ 1..), Some(_)) => Some(format!("at least {} rules on {name}", grouped(rules))),
            (Some(_) | None, _) => Some(format!("rules on {name}: not known")),
        }
    }
}

/// The rules that were counted as of a sample's facts.
pub(super) fn of_facts(facts: &Facts) -> Vec<RulesOnLink> {
    let row = |counted: &FirewallRules| {
        let link = row_of(&facts.links, &counted.link, |link: &Arc<LinkFacts>| link.key());
        RulesOnLink { name: link.map(|link| link.name.clone()), counted: counted.clone() }
    };
    facts.firewall.iter().map(row).collect()
}

/// Every namespace with rules: `1,000 rules on r0, 12 rules on e1`; none where nothing was counted.
#[must_use]
pub fn counted(facts: &Facts) -> Option<String> {
    let all = of_facts(facts);
    let words: Vec<String> = all.iter().filter_map(RulesOnLink::text).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// The namespaces with most rules, in brackets after the name of a stage; none where nothing was counted.
pub(super) fn text(all: &[RulesOnLink]) -> Option<String> {
    let mut all: Vec<&RulesOnLink> = all.iter().collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.counted.rules));
    let named: Vec<String> = all.into_iter().filter_map(RulesOnLink::text).take(MOST_NAMED).collect();
    (!named.is_empty()).then(|| format!(" ({})", named.join(", ")))
}

/// With commas between thousands.
fn grouped(count: u32) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use vnettop_sample::{Ifindex, LinkKey};

    fn row(name: &str, rules: Option<u32>, gap: Option<&str>) -> RulesOnLink {
        let link = LinkKey { netns: 1, ifindex: Ifindex(2) };
        RulesOnLink { name: Some(name.to_owned()), counted: FirewallRules { link, rules, gap: gap.map(str::to_owned) } }
    }

    #[test]
    fn the_most_rules_are_named_and_what_is_not_known_is_said() {
        let all = [row("e0", Some(0), None), row("e1", Some(12), Some("maps")), row("r0", Some(1_234_004), None)];
        assert_eq!(text(&all).as_deref(), Some(" (1,234,004 rules on r0, at least 12 rules on e1)"));
        assert_eq!(text(&all[..1]), None, "it has none, so the time is not theirs");
        assert_eq!(text(&[row("e0", None, Some("no right"))]).as_deref(), Some(" (rules on e0: not known)"));
        assert_eq!(text(&[row("e0", Some(0), Some("older"))]).as_deref(), Some(" (rules on e0: not known)"));
        assert_eq!(text(&[row("e0", Some(1), None)]).as_deref(), Some(" (1 rule on e0)"));
        assert_eq!([999, 1000, 100_000].map(grouped), ["999", "1,000", "100,000"]);
    }
}
