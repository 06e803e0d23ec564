//! Words that several parts of a report share.

use crate::derive::links::Basis;
use crate::derive::moves::MovesByClass;
use crate::derive::summary::ThreadSummary;
use crate::derive::summary::pinned_times;
use crate::derive::timeline::{Incident, IncidentKind};
use crate::derive::{FlowBasis, RecordingSummary, TestSummary};
use crate::report::document::{LegendEntry, legend};
use crate::report::figures::{digits, grouped, percent, rate, seconds};
use crate::report::plot::{PlotDone, PlotPhase};
use crate::report::timestamp;
use crate::sample::Word;

pub(super) const UNKNOWN: &str = "–";

/// Marks whose instants a legend lists.
const MARKS: usize = 12;

pub(super) const ANONYMISED: &str = "Anonymised: host, container and program names, interfaces, namespaces and command lines are \
    replaced by neutral labels, addresses by ones of 240.0.0.0/8 and 100::/64.";

/// A figure where it is known.
pub(super) fn known<T>(value: Option<T>, words: impl Fn(T) -> String) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), words)
}

pub(super) fn known_rate(bits_per_s: Option<f64>) -> String {
    known(bits_per_s, rate)
}

pub(super) fn known_percent(share: Option<f64>) -> String {
    known(share, percent)
}

/// `12`, `3,450`; with a digit behind the point where there are few.
pub(super) fn count(value: f64) -> String {
    if value < 99.95 && (value - value.round()).abs() > 0.05 {
        return digits(value);
    }
    grouped(value)
}

/// How long a test ran, seconds.
pub(super) fn ran_s(test: &TestSummary) -> f64 {
    test.to_ns.saturating_sub(test.from_ns) as f64 / 1e9
}

/// `60.1 s`, `12 min 5 s`, `3 h 4 min`.
#[must_use]
pub fn length(seconds: f64) -> String {
    let whole = seconds.round();
    match seconds {
        3600.0.. => format!("{:.0} h {:.0} min", (whole / 3600.0).floor(), (whole % 3600.0 / 60.0).floor()),
        120.0.. => format!("{:.0} min {:.0} s", (whole / 60.0).floor(), whole % 60.0),
        _ => format!("{} s", (seconds * 10.0).round() / 10.0),
    }
}

/// What figures of the machine are of: `the test`, `the time with tests`, `the whole recording`; with its length where that stands nowhere
/// else.
pub(super) fn in_tests(summary: &RecordingSummary) -> String {
    let tests_s = summary.tests_s;
    let is_most = tests_s <= 0.0 || tests_s >= ALL_OF_IT * summary.seconds();
    match &*summary.tests {
        [one] if !is_most && is_all(summary, tests_s, ran_s(one)) => "the test".to_owned(),
        [_] if !is_most => format!("{} of the test", length(tests_s)),
        [] | [_] => WHOLE.to_owned(),
        _ if is_most => WHOLE.to_owned(),
        _ => format!("the {} in which tests ran", length(tests_s)),
    }
}

/// What is counted from the first sample to the last one.
pub(super) const WHOLE: &str = "the whole recording";

/// Whole samples of a time are as long as it, but for one or two at each end: that is no other length.
pub(super) fn is_all(summary: &RecordingSummary, seconds: f64, whole_s: f64) -> bool {
    let sample_s = summary.interval_ns as f64 / 1e9;
    (whole_s - seconds).abs() <= (4.0 * sample_s).min(whole_s / 10.0)
}

/// `0.2 s, from samples every 0.5 s`: how long a column is, and how often it was looked.
pub(super) fn step(summary: &RecordingSummary) -> String {
    let interval = length(summary.interval_ns as f64 / 1e9);
    format!("{}, from samples every {interval}", length(summary.columns.seconds()))
}

/// `10 Gbit/s (constant of the driver)`: what a link says of itself, and what that is worth.
pub(super) fn nominal(mbps: Option<u32>, basis: Basis) -> String {
    let Some(mbps) = mbps.filter(|_| basis != Basis::None) else { return UNKNOWN.to_owned() };
    let worth = match basis {
        Basis::Real => "real",
        Basis::Constant => "constant of the driver",
        Basis::Inherited => "of the link below",
        Basis::MaxOfPorts => "largest of its ports",
        Basis::SumOfPorts => "sum of its ports",
        Basis::UserSet => "set by somebody",
        Basis::None => "",
    };
    format!("{} ({worth})", rate(f64::from(mbps) * 1e6))
}

/// What is done to threads, on the axis of a recording.
pub(super) fn done(summary: &RecordingSummary, incidents: &[Incident]) -> PlotDone {
    let at_s = |at_ns| summary.columns.at_s(at_ns);
    let is_mark = |incident: &&Incident| incident.kind == IncidentKind::Mark;
    let phase = |(from_ns, to_ns): (u64, Option<u64>)| PlotPhase {
        from_s: at_s(from_ns),
        to_s: to_ns.map_or(summary.seconds(), at_s),
    };
    PlotDone {
        pinned: pinned_times(incidents).into_iter().map(phase).collect(),
        saved: summary.saved.map(|saved| (at_s(saved.at_ns), saved.what())),
        marks_s: incidents.iter().filter(is_mark).map(|mark| at_s(mark.at_ns)).collect(),
    }
}

/// That of all tests, each incident once.
pub(super) fn all_done(summary: &RecordingSummary) -> PlotDone {
    let mut all: Vec<Incident> = summary.tests.iter().flat_map(|test| test.incidents.iter().copied()).collect();
    all.sort_by_key(|incident| incident.at_ns);
    all.dedup_by_key(|incident| (incident.at_ns, incident.kind.word()));
    done(summary, &all)
}

/// What a legend says of that, as far as it is on this plot.
pub(super) fn legend_of_done(done: &PlotDone, is_shaded: bool) -> Vec<LegendEntry> {
    let mut entries = Vec::new();
    if !done.pinned.is_empty() {
        let times = if done.pinned.len() > 1 { format!(", {} times", done.pinned.len()) } else { String::new() };
        let color = if is_shaded { "shade" } else { "edge" };
        entries.push(legend(color, format!("threads are pinned by vnettop{times}")));
    }
    if let Some((at_s, what)) = done.saved {
        entries.push(legend("teal", format!("saved because of {what}: at {}", seconds(at_s))));
    }
    if !done.marks_s.is_empty() {
        let list: Vec<String> = done.marks_s.iter().take(MARKS).map(|at_s| seconds(*at_s)).collect();
        let more = if done.marks_s.len() > MARKS { ", …" } else { "" };
        entries.push(legend("text", format!("marks, numbered from 1: at {}{more}", list.join(", "))));
    }
    entries
}

/// `test 1: iperf3 → 198.18.0.1:5201, TCP ×1`.
pub(super) fn test_title(test: &TestSummary) -> String {
    match &test.test {
        Some(test) => format!("Test {}: {}", test.number, test.words()),
        None => "Everything that was watched".to_owned(),
    }
}

/// `2026-01-02 03:04:05 UTC`.
pub(super) fn when(wall_ms: u64) -> String {
    let stamp = timestamp(wall_ms);
    stamp.get(..19).map_or_else(|| UNKNOWN.to_owned(), |stamp| format!("{} UTC", stamp.replace('T', " ")))
}

/// The machine in one line.
pub(super) fn machine(summary: &RecordingSummary) -> String {
    let (host, cores) = (&summary.facts.host, crate::derive::plural(summary.facts.topology.cores.len(), "core"));
    // A rebuilt recording has no kernel.
    let kernel = if host.kernel.as_str() == UNKNOWN { String::new() } else { format!("Linux {} ", host.kernel) };
    format!("{}, {kernel}{}, {cores}", host.name, host.arch)
}

/// `34 socket, 11 node, 2 only counted`: by class, the farthest first; empty of none.
pub(super) fn migrations(by_class: MovesByClass, only_counted: f64) -> String {
    let rest = (only_counted >= 0.5).then(|| format!("{} only counted", count(only_counted)));
    by_class.words().into_iter().chain(rest).collect::<Vec<_>>().join(", ")
}

/// A sentence by names alone: the processes and threads of a recording have ended, and their numbers may be others' now.
pub(super) fn of_names(text: &str) -> String {
    let mut words = text.to_owned();
    for begin in [" (pid ", " (pids ", " (tid ", " (taskset -cp "] {
        while let Some(at) = words.find(begin) {
            let Some(length) = words[at..].find(')') else { break };
            words.replace_range(at..=at + length, "");
        }
    }
    if let Some((said, tid)) = words.rsplit_once(": taskset -apc CORES ")
        && tid.parse::<u32>().is_ok()
    {
        words.truncate(said.len());
    }
    match words.strip_prefix("taskset -cp ").and_then(|rest| rest.split_once(' ')) {
        Some((core, tid)) if tid.parse::<u32>().is_ok() => format!("pin it to core {core}"),
        _ => words,
    }
}

/// `cores 0-1 (all)`, `core 1, pinned by vnettop`: where a thread could run at the end.
pub(super) fn allowed(summary: &RecordingSummary, thread: &ThreadSummary) -> String {
    let Some(allowed) = &thread.allowed else { return UNKNOWN.to_owned() };
    let is_all = summary.cores.iter().all(|core| allowed.contains(core.place.core));
    let word = if allowed.len() == 1 { "core" } else { "cores" };
    let by = match (thread.pinned, is_all) {
        (true, _) => ", pinned by vnettop",
        (false, true) => " (all)",
        (false, false) => "",
    };
    format!("{word} {allowed}{by}")
}

/// Whether its packets are datagrams: nothing of them is sent again.
pub(super) fn is_udp(test: &TestSummary) -> bool {
    match &test.rate.basis {
        Some(basis) => matches!(basis, FlowBasis::Datagrams(_)),
        None => test.test.as_ref().is_some_and(|test| test.words().contains("UDP")),
    }
}

/// What was so for this part of a test was so for all of it.
const ALL_OF_IT: f64 = 0.95;

/// How long something was so, where that was not all the time; samples reach beyond both ends of a test, and no part of it is longer
/// than the whole.
pub(super) fn for_so_long(seconds: f64, ran_s: f64) -> Option<String> {
    (seconds < ran_s * ALL_OF_IT).then(|| format!("for {} of {}", short(seconds.min(ran_s)), short(ran_s)))
}

/// A sentence with what stands in parentheses behind it; none without anything.
pub(super) fn with_aside(said: &str, aside: impl IntoIterator<Item = Option<String>>) -> String {
    let aside = aside.into_iter().flatten().collect::<Vec<_>>().join("; ");
    if aside.is_empty() { said.to_owned() } else { format!("{said} ({aside})") }
}

/// A length of which nothing is left in tenths is no 0.
fn short(seconds: f64) -> String {
    if seconds < 0.05 { "less than 0.1 s".to_owned() } else { length(seconds) }
}

/// The words that stand in this text of a report.
pub(super) fn used(text: &str) -> Vec<(&'static str, &'static str)> {
    let is_used = |words: &str| words.split(", ").any(|word| text.contains(word));
    // Of what passes it is another one, as its row says.
    let is_of_tests = |word: &str| word != "mean rate" || text.contains("both ends counted once");
    WORDS.into_iter().filter(|(words, _)| is_used(words) && is_of_tests(words)).collect()
}

/// What stands in a report and is not said there.
const WORDS: [(&str, &str); 11] = [
    ("mean rate", "payload of the test's connections over its time, both ends counted once"),
    ("CV", "coefficient of variation: the bins' standard deviation over their mean"),
    ("p5, p50, p95", "a twentieth of the bins is below p5, half below p50 (the median), a twentieth above p95"),
    (
        "99 % interval",
        "the range in which the true difference lies with 99 % confidence; with 0 in it, it may be chance",
    ),
    ("migration", "the kernel carries a thread from one core to another; far ones cross to another cache or NUMA node"),
    (
        "llc",
        "a migration within one last-level cache; node: to another one, or another NUMA node, of the socket; socket: to another",
    ),
    ("only counted", "the kernel reports the number of migrations, not from which core to which"),
    ("nominal speed", "what the driver of a link reports; for virtual links it limits nothing"),
    ("softirq", "deferred work of the kernel; many count it as time of the thread it interrupts"),
    ("backlog, squeeze", "a core's queue of received packets; its softirq used up its budget while packets waited"),
    ("–", "not known"),
];

#[cfg(test)]
mod tests {
    use super::{for_so_long, of_names};

    #[test]
    fn no_time_is_none() {
        assert_eq!(for_so_long(0.01, 0.02).as_deref(), Some("for less than 0.1 s of less than 0.1 s"));
        assert_eq!(for_so_long(0.5, 6.0).as_deref(), Some("for 0.5 s of 6 s"));
        assert_eq!(for_so_long(23.5, 24.5), None, "all the time");
    }

    #[test]
    fn a_report_names_programs_and_threads_and_gives_no_number_that_is_somebody_elses_now() {
        let is = |text: &str, words: &str| assert_eq!(of_names(text), words);
        is(
            "8 % rustc (pid 7), 2 % ld (2 processes), 1 % iperf3 client (tid 9)",
            "8 % rustc, 2 % ld (2 processes), 1 % iperf3 client",
        );
        is("core 2 is idle (taskset -cp 2 77)", "core 2 is idle");
        is("taskset -cp 2 77", "pin it to core 2");
        is("waits (iperf3 (pid 9) 11 %, others 23 %)", "waits (iperf3 11 %, others 23 %)");
        is("give iperf3 another core: taskset -apc CORES 77", "give iperf3 another core");
        is("stop sh (pids 7, 8) on core 1", "stop sh on core 1");
        is("CV 50 % (pid 7", "CV 50 % (pid 7");
        is("its queue is full (ip link set l2 up)", "its queue is full (ip link set l2 up)");
    }
}
