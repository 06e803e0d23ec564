//! Figures of one moment, beside those of the whole test: sentences of findings and limits have the first, tables the second, and
//! whoever reads both must not take one for an error.

use super::thread_names::ReportedTest;
use super::words::{count, known_percent};
use crate::derive::finding::FindingId;
use crate::derive::summary::{CoreSummary, ThreadSummary};
use crate::derive::{Finding, RecordingSummary, TestSummary};
use crate::report::figures::{digits, rate, time};
use crate::report::plot::MINUTES_FROM_S;

/// A link that carries less than this times its nominal speed is no finding, as on the screen.
const CLEARLY: f64 = 1.1;
/// A mean that is as close as this to the moment's is no other figure, share of a core.
const CLOSE: f64 = 0.02;

/// `38 s`, as the axis of the plots has it, `12:05` where that has minutes: a moment of the recording, as `--at` of replay takes it.
fn moment(summary: &RecordingSummary, at_ns: u64) -> String {
    let (whole, minute) = (summary.columns.at_s(at_ns).floor(), 60.0);
    if summary.seconds() < MINUTES_FROM_S {
        return format!("{whole:.0} s");
    }
    format!("{:.0}:{:02.0}", (whole / minute).floor(), whole % minute)
}

/// `as at 38 s`, `at the end`; none of a sentence without a figure that may be another one a moment later.
pub(super) fn as_at(summary: &RecordingSummary, at_ns: u64, said: &str) -> Option<String> {
    const UNITS: [&str; 6] = [" %", "/s", " ms ", " us ", " cores", " times"];
    let is_timed = UNITS.iter().any(|unit| said.contains(unit));
    let is_last = summary.columns.at_s(at_ns) + 1.5 * summary.interval_ns as f64 / 1e9 > summary.seconds();
    is_timed.then(|| if is_last { "at the end".to_owned() } else { format!("as at {}", moment(summary, at_ns)) })
}

/// A sentence with figures of one moment.
#[derive(Clone, Copy)]
pub(super) struct Momentary<'a> {
    /// Names threads as the tables do.
    pub said: &'a str,
    /// When it was so, monotonic ns.
    pub at_ns: u64,
    /// Of the finding that says it; none of a limit.
    pub id: Option<FindingId>,
    /// What it says in figures.
    pub numbers: &'a [(&'static str, f64)],
}

impl Momentary<'_> {
    fn number(&self, wanted: &str) -> Option<f64> {
        self.numbers.iter().find(|(name, _)| *name == wanted).map(|(_, number)| *number)
    }

    fn core<'a>(&self, summary: &'a RecordingSummary) -> Option<&'a CoreSummary> {
        let number = self.number("core")?;
        summary.cores.iter().find(|one| (f64::from(one.place.core) - number).abs() < 0.5)
    }
}

/// `as at 24 s; mean of the test: iperf3 server waits 53.5 %`: of when the figures of a sentence are, and what tables of the whole test have
/// in their place.
pub(super) fn beside(of: ReportedTest<'_>, one: Momentary<'_>) -> Option<String> {
    let at = as_at(of.0, one.at_ns, one.said)?;
    let means = means(of, one);
    if means.is_empty() {
        return Some(at);
    }
    let mixed = if of.1.treated().is_some() { ", pinned or not" } else { "" };
    Some(format!("{at}; mean of the test{mixed}: {}", means.join(", ")))
}

/// The cause of a loss, whose own figures are of the whole test.
pub(super) fn beside_cause(of: ReportedTest<'_>, at_ns: u64, finding: &Finding) -> Option<String> {
    let why = of.2.sentence(&finding.parts.why);
    let cause = Momentary { said: &why, at_ns, id: Some(finding.id), numbers: &finding.numbers };
    beside(of, cause).map(|beside| format!("cause {beside}"))
}

fn means((summary, test, names): ReportedTest<'_>, one: Momentary<'_>) -> Vec<String> {
    match one.id {
        Some(FindingId::Latency) => return waited(test, one.said).into_iter().collect(),
        Some(FindingId::Moves) => {
            let per_s = test.rate.moves_per_s.map(|per_s| format!("{} migrations/s of all its threads", digits(per_s)));
            return per_s.into_iter().collect();
        }
        Some(FindingId::Squeeze) => return one.core(summary).map(|core| squeezes(summary, core)).into_iter().collect(),
        _ => {}
    }
    let busy = one.core(summary).zip(one.number("busy")).and_then(|(core, then)| {
        let mean = summary.of_core(core).busy.filter(|mean| (then - mean).abs() >= CLOSE)?;
        Some(format!("core {} {} busy", core.place.core, known_percent(Some(mean))))
    });
    if !one.said.contains("wait") {
        return busy.into_iter().collect();
    }
    let number = test.test.as_ref().map(|test| test.number);
    let is_named = |thread: &&ThreadSummary| thread.test == number && is_named(one.said, &names.of_thread(thread));
    let waits = |thread: &ThreadSummary| {
        Some(format!("{} waits {}", names.of_thread(thread), known_percent(Some(thread.figures().wait?))))
    };
    busy.into_iter().chain(summary.threads.iter().filter(is_named).filter_map(waits)).collect()
}

/// The name stands there, and is not that of another one with an ordinal.
fn is_named(said: &str, name: &str) -> bool {
    said.match_indices(name).any(|(at, _)| {
        let rest = &said[at + name.len()..];
        let number = rest.strip_prefix(' ').filter(|after| after.starts_with(|c: char| c.is_ascii_digit()));
        let after = number.map_or("", |number| number.trim_start_matches(|c: char| c.is_ascii_digit()));
        let is_share = after.starts_with(" %") || after.starts_with('.');
        (number.is_none() || is_share) && !rest.starts_with(|c: char| c.is_alphanumeric())
    })
}

/// Where the sentence says that packets wait.
fn waited(test: &TestSummary, said: &str) -> Option<String> {
    let stages = test.stages.iter().filter(|stage| said.contains(&stage.place));
    let stage = stages.max_by_key(|stage| stage.place.len())?;
    let spread = stage.times.spread()?;
    Some(format!("p99 {}, median {} there", time(spread.p99_s), time(spread.p50_s)))
}

/// How often a core ran out of its budget over all of the recording, as the table of cores counts it.
fn squeezes(summary: &RecordingSummary, core: &CoreSummary) -> String {
    let per_s = core.whole.squeezes / summary.seconds().max(1.0);
    format!("{}/s ({} in all)", digits(per_s), count(core.whole.squeezes))
}

/// What a link carried over the whole test instead of in its last moment: `a0 carries 13.8 Gbit/s, 1.4× its nominal 10 Gbit/s, …`; none where
/// the link is on none of its paths, or carried less.
pub(super) fn carried_in_all(test: &TestSummary, finding: &Finding) -> Option<String> {
    if test.treated().is_some() {
        return None;
    }
    let (name, rest) = finding.text.split_once(" carries ")?;
    let (_, rest) = rest.split_once("× its nominal ")?;
    let (_, claim) = finding.numbers.iter().find(|(name, _)| *name == "claim_mbps")?;
    let hops = test.paths.iter().flat_map(|path| &path.hops);
    let same = hops.filter(|hop| {
        hop.name.as_deref() == Some(name) && hop.claim_mbps.is_some_and(|mbps| (f64::from(mbps) - claim).abs() < 0.5)
    });
    let mean = same.filter_map(|hop| hop.bits_per_s).reduce(f64::max)?;
    let times = mean / (claim * 1e6);
    (times >= CLEARLY).then(|| format!("{name} carries {}, {times:.1}× its nominal {rest}", rate(mean)))
}

#[cfg(test)]
mod tests {
    use super::is_named;

    #[test]
    fn a_thread_is_told_from_another_one_with_an_ordinal() {
        assert!(is_named("for which iperf3 client waits 46 % of the time", "iperf3 client"));
        assert!(is_named("32 % iperf3 client, 9 % others", "iperf3 client"));
        assert!(is_named("waits (iperf3 client 11 %, others)", "iperf3 client"), "a share is no ordinal");
        assert!(!is_named("for which iperf3 client 2 waits", "iperf3 client"));
        assert!(!is_named("iperf3 clients", "iperf3 client"));
    }
}
