//! What a test lost and sent again over its whole time. Sentences of findings and limits have the figures of one moment: a report
//! has those of the whole test in their place.

use super::moment::carried_in_all;
use super::words::{count, length, ran_s};
use crate::derive::finding::FindingId;
use crate::derive::{Finding, Limit, LimitKind, RecordingSummary, TestSummary};
use crate::report::figures::{digits, percent, seconds};

/// A share that is written as more than 0.00 %.
pub(super) const LEAST: f64 = 0.000_05;
/// A place has most of what was lost from this part on.
const MOST: f64 = 0.5;
/// Of fewer packets nobody asks when they were lost.
const FEW: f64 = 100.0;
/// A test is so many times as long as a burst in it.
const MUCH_LONGER: f64 = 8.0;
/// From this part on it has all, but for what came in between two readings.
const ALL: f64 = 0.995;

/// `5.86 % (104,618)`; the count alone where it is not known how many were sent.
pub(super) fn share_and_count(test: &TestSummary) -> String {
    match test.lost_share.filter(|share| *share >= LEAST) {
        Some(share) => format!("{} ({})", percent(share), count(test.lost)),
        None => count(test.lost),
    }
}

/// `5.86 % of packets lost (104,618)`; `104,618 packets lost (9,097/s)` where it is not known how many were sent; none where none was.
pub(super) fn all_lost(test: &TestSummary) -> Option<String> {
    (test.lost > 0.0).then(|| lost_packets(test, test.lost))
}

fn lost_packets(test: &TestSummary, packets: f64) -> String {
    match test.lost_share.map(|share| share * packets / test.lost) {
        Some(share) if share >= LEAST => format!("{} of packets lost ({})", percent(share), count(packets)),
        Some(_) => format!("{} packets lost", count(packets)),
        None => format!("{} packets lost ({}/s)", count(packets), count(packets / ran_s(test).max(1.0))),
    }
}

/// `70 % of them were lost within 0.5 s, at 6.1 s`: where most were lost at once, in a test that is much longer. A queue that is too
/// small loses all the time; a receiver that stood still, or a link that was down, does not.
pub(super) fn burst(summary: &RecordingSummary, test: &TestSummary) -> Option<String> {
    let (column_s, sample_s) = (summary.columns.seconds(), summary.interval_ns as f64 / 1e9);
    // Within a sample nobody knows when it was.
    let within_s = column_s.max(sample_s);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few columns")]
    let as_long = (within_s / column_s).round().max(1.0) as usize;
    let all: f64 = test.lost_columns.iter().sum();
    let sums = test.lost_columns.windows(as_long).map(|window| window.iter().sum::<f64>());
    let (at, most) = sums.enumerate().max_by(|one, other| one.1.total_cmp(&other.1))?;
    let is_burst = most >= MOST * all && all >= FEW && ran_s(test) >= MUCH_LONGER * within_s;
    let (share, at_s) = (percent(most / all), at as f64 * column_s);
    is_burst.then(|| format!("{share} of them were lost within {}, at {}.", length(within_s), seconds(at_s)))
}

/// Beside a rate of its last moment; none where nothing was lost.
fn beside(test: &TestSummary) -> Option<String> {
    let share = test.lost_share.filter(|share| *share >= LEAST).map(percent);
    let much = share.unwrap_or_else(|| format!("{} packets", count(test.lost)));
    (test.lost > 0.0).then(|| format!("{much} lost over the whole test"))
}

/// A sentence that starts with what was lost in its last moment, with what was lost in all instead: `losses: 46 % of packets lost in
/// the receiver's socket buffer` → `losses: 5.86 % of packets lost (104,618) in the receiver's socket buffer`.
pub(super) fn with_all_lost(test: &TestSummary, sentence: &str) -> Option<String> {
    let (head, rest) = sentence.split_once(" lost ")?;
    let is_amount = ["packets", "packets/s", "datagrams"].iter().any(|word| head.ends_with(word));
    if !is_amount || test.lost <= 0.0 {
        return None;
    }
    let rest = rest.strip_prefix('(').and_then(|rest| Some(rest.split_once(") ")?.1)).unwrap_or(rest);
    let label = if head.starts_with("losses: ") { "losses: " } else { "" };
    let is_there =
        |place: &str| rest.strip_prefix(place).is_some_and(|after| !after.starts_with(|c: char| !" ,;:()".contains(c)));
    let here = test.losses.iter().filter(|loss| is_there(&loss.place_in_sentence()));
    let here: f64 = here.map(|loss| loss.packets).sum();
    // Those of a VPN are counted by themselves.
    if head.ends_with("datagrams") {
        return (here > 0.0).then(|| format!("{label}{} of a tunnel's datagrams lost {rest}", count(here)));
    }
    Some(match here / test.lost {
        ALL.. => format!("{label}{} {rest}", lost_packets(test, test.lost)),
        MOST.. => format!("{label}{}, most {rest}", lost_packets(test, test.lost)),
        _ if here > 0.0 => format!("{label}{} {rest}", lost_packets(test, here)),
        _ => format!("{label}{}, last {rest}", lost_packets(test, test.lost)),
    })
}

/// `losses: 8.1 % of datagrams do not arrive; …` → `losses: datagrams do not arrive; …`.
fn without_share(sentence: &str) -> Option<String> {
    let (share, rest) = sentence.strip_prefix("losses: ")?.split_once(" % of ")?;
    let is_figure = share.chars().all(|c| c.is_ascii_digit() || c == '.');
    (is_figure && !rest.starts_with("packets")).then(|| format!("losses: {rest}"))
}

/// A limit, and what was lost in all beside a rate that it has. What a full core loses stands in the figures of the test.
pub(super) fn limit_in_all(test: &TestSummary, limit: &Limit) -> (String, Option<String>) {
    let sentence = limit.text_alone();
    match limit.kind {
        LimitKind::Loss | LimitKind::Qdisc => match with_all_lost(test, sentence) {
            Some(words) => (words, None),
            None => (without_share(sentence).unwrap_or_else(|| sentence.to_owned()), beside(test)),
        },
        _ => (sentence.to_owned(), None),
    }
}

/// The same of a finding.
pub(super) fn finding_in_all(test: &TestSummary, finding: &Finding) -> (String, Option<String>) {
    match finding.id {
        FindingId::Loss => {
            // The shares of other places are of that moment too.
            let others = finding.parts.what.split_once("; ").map(|(_, others)| format!("; {others}"));
            let end = others.and_then(|others| finding.text.rfind(&others)).unwrap_or(finding.text.len());
            match with_all_lost(test, &finding.text[..end]) {
                Some(words) => (words, None),
                None => (finding.text.clone(), beside(test)),
            }
        }
        FindingId::Retransmits | FindingId::Reordered => (finding.text.clone(), again(test)),
        FindingId::Label => (carried_in_all(test, finding).unwrap_or_else(|| finding.text.clone()), None),
        _ => (finding.text.clone(), None),
    }
}

/// What a loss finding says first, over the whole test: `5.86 % of packets lost (104,618) in the receiver's socket buffer`.
pub(super) fn what_in_all(test: &TestSummary, what: &str) -> Option<String> {
    with_all_lost(test, what.split_once("; ").map_or(what, |(place, _)| place))
}

fn again(test: &TestSummary) -> Option<String> {
    let (all, whose) = match (test.own_retransmits, test.retransmits) {
        (Some(own), _) => (own, ""),
        (None, all) => (all?, " of all its namespaces"),
    };
    Some(format!("mean of the test: {} retransmits/s{whose}, {} in all", per_s(test, all), count(all)))
}

/// How many of so many a second, over the whole test.
pub(super) fn per_s(test: &TestSummary, all: f64) -> String {
    digits(all / ran_s(test).max(1.0))
}
