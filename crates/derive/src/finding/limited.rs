//! What LIMIT has found out, where a finding follows from it, and how the findings are ranked by it: what explains the limit leads, what
//! it contradicts comes last.

use super::remedy::{cost_of_waiting, remedy, sentence};
use super::{Diagnostic, Finding, FindingId, FindingParts, LintInput, loss};
use crate::figure::percent;
use crate::held_back::Limit;
use vnettop_sample::Proto;

/// What a finding counts that LIMIT contradicts, as a part of what it counts otherwise.
const CONTRADICTED: f64 = 0.01;
/// What a lack of CPU time counts, be it told as packets that wait for the thread.
pub(super) const LACKS: f64 = 0.9;
/// Lost segments that hold nothing back, where a thread lacks CPU time: less than that lack, more than all else.
const BESIDE: f64 = 0.8;

/// A thread of the test, or one that carries its packets, gets too little of a core.
pub(super) fn lacks_cpu(input: &LintInput<'_>) -> Option<Diagnostic> {
    let limit = input.limit.filter(|limit| limit.lacks_cpu())?;
    // What is lost because of that tells it, and so do packets that wait for that thread.
    if loss::is_explained(input) || waits_for(input, limit) {
        return None;
    }
    let because = limit.because.as_deref()?;
    let fix = remedy(input, limit);
    let why = limit.waits.clone().unwrap_or_default();
    let text = sentence(because, &fix);
    let wait = limit.numbers.iter().find(|(name, _)| *name == "wait").filter(|_| limit.waits.is_some());
    let time = wait.map(|(_, wait)| format!("it waits {} % of the time", percent(*wait)));
    let cost = cost_of_waiting(input, "if it need not wait", time);
    let parts = FindingParts { by_limit: true, why, cost, fix, ..FindingParts::default() };
    Some(Diagnostic::new(text, limit.numbers.clone()).in_parts(parts))
}

/// Latency was measured, and has the same core for its cause.
fn waits_for(input: &LintInput<'_>, limit: &Limit) -> bool {
    let cause = input.metrics.latency.as_deref().and_then(|latency| latency.cause.as_ref());
    let by = cause.and_then(|cause| cause.waited.as_ref()?.1.as_ref());
    by.is_some_and(|by| Some(by.core) == limit.core)
}

/// What a finding counts beside this limit.
pub(super) fn weight(input: &LintInput<'_>, id: FindingId, weight: f64) -> f64 {
    match (input.limit, id) {
        (Some(limit), _) if is_contradicted(input, limit, id) => weight * CONTRADICTED,
        (Some(limit), FindingId::Latency) if limit.lacks_cpu() && waits_for(input, limit) => LACKS,
        (Some(limit), FindingId::Loss) if limit.lacks_cpu() && !is_udp(input) && !loss::is_explained(input) => BESIDE,
        _ => weight,
    }
}

/// It would explain why the test is not faster, and the test is as fast as a ceiling lets it be.
pub(super) fn is_contradicted(input: &LintInput<'_>, limit: &Limit, id: FindingId) -> bool {
    limit.is_ceiling()
        && match id {
            // Datagrams are lost whatever was asked for.
            FindingId::Loss => !is_udp(input),
            FindingId::Reordered
            | FindingId::Jitter
            | FindingId::JitterUnexplained
            | FindingId::SameCore
            | FindingId::Iperf3Main
            | FindingId::Iperf3Single
            | FindingId::SpareCore
            | FindingId::OtherNode
            | FindingId::SmtSiblings
            | FindingId::OneCore
            | FindingId::SharedCore
            | FindingId::GsoLimits
            | FindingId::Offloads
            | FindingId::Steal
            | FindingId::Moves
            | FindingId::Squeeze
            | FindingId::Frequency
            | FindingId::Governor
            | FindingId::Retransmits
            | FindingId::Untraced => true,
            _ => false,
        }
}

/// Nothing is to be said before the limit: it is a ceiling, and explains why the test is as it is.
pub(super) fn leads(input: &LintInput<'_>, findings: &[Finding]) -> bool {
    let is_below = |limit: &Limit| findings.first().is_none_or(|first| is_contradicted(input, limit, first.id));
    input.limit.is_some_and(|limit| limit.is_ceiling() && is_below(limit))
}

fn is_udp(input: &LintInput<'_>) -> bool {
    input.metrics.flow.connections.iter().any(|one| one.carries && one.proto() == Proto::Udp)
}

#[cfg(test)]
mod tests {
    use super::super::all;
    use super::*;
    use crate::TestMetrics;
    use crate::diagnosis::RateDiagnosis;
    use crate::held_back::LimitKind;
    use crate::history::History;
    use crate::losses::{Loss, LossPlace, Losses};
    use crate::placement::tests::machine::Machine;
    use std::sync::Arc;
    use vnettop_sample::Runner;

    fn limit(kind: LimitKind, because: &str, loses: Option<LossPlace>) -> Limit {
        let because = Some(because.to_owned());
        let numbers = if kind == LimitKind::Application { vec![("asked_bits_per_s", 2e9)] } else { Vec::new() };
        let (core, name, pid, tid, key) = (Some(1), None, None, None, None);
        let (text, waits, lost) = (String::new(), None, String::new());
        Limit { kind, text, core, name, pid, tid, key, numbers, because, waits, lost, loses }
    }

    /// Packets of every flow are lost there, 66 of 100.
    fn losing(place: LossPlace) -> TestMetrics {
        let lost = Loss { place, packets: 66.0, share: Some(0.66), ..Loss::default() };
        let losses = Losses { seconds: 1.0, places: vec![lost], sent: Some(100.0), ..Losses::default() };
        TestMetrics { losses, ..Machine::small(2).pair(0, 1).metrics() }
    }

    /// The same on so many cores, rustc on core 1.
    fn beside_rustc(cores: u32) -> TestMetrics {
        let metrics = TestMetrics {
            losses: losing(LossPlace::ReceiveBuffer).losses,
            ..Machine::small(cores).pair(0, 1).metrics()
        };
        let name = "rustc".to_owned();
        let rustc = Runner { pid: 7, tid: 7, name, core: 1, cpu_ns: 84, over_ns: 100, kernel: None };
        let mut machine = (*metrics.machine).clone();
        let mut facts = (*machine.facts).clone();
        facts.runners = Arc::new(vec![rustc]);
        machine.facts = Arc::new(facts);
        TestMetrics { machine: Arc::new(machine), ..metrics }
    }

    fn first(metrics: &TestMetrics, limit: &Limit, may_help: bool) -> Finding {
        let (mut findings, _) = all(metrics, Some(limit), may_help, &History::default(), &RateDiagnosis::default());
        findings.remove(0)
    }

    #[test]
    fn a_loss_is_told_as_what_follows_from_the_limit() {
        let waits = "rustc (pid 7) takes 84 % of core 1, for which iperf3 server waits 80 % of the time";
        let starved = limit(LimitKind::Others, waits, Some(LossPlace::ReceiveBuffer));
        let finding = first(&losing(LossPlace::ReceiveBuffer), &starved, true);
        let text = format!("66 % of packets lost in the receiver's socket buffer: {waits}");
        assert_eq!((finding.id, finding.text.as_str(), finding.key), (FindingId::Loss, text.as_str(), Some('p')));
        let stuck = first(&losing(LossPlace::ReceiveBuffer), &starved, false);
        assert_eq!(
            (stuck.text, stuck.key),
            (format!("{text}; stop other programs on core 1"), None),
            "where no pin helps"
        );
        let named = Limit { name: Some("rustc".to_owned()), ..starved.clone() };
        let told = |cores: u32| first(&beside_rustc(cores), &named, false).text;
        assert!(told(2).ends_with("; stop rustc (pid 7) on core 1"), "the other core is the other end's: {}", told(2));
        let room = "; stop rustc (pid 7) on core 1, or give it core 3 (taskset -apc 3 7)";
        assert!(told(4).ends_with(room), "a core has room: {}", told(4));
        let quota = limit(LimitKind::Quota, "its quota is used up", Some(LossPlace::ReceiveBuffer));
        let text = first(&losing(LossPlace::ReceiveBuffer), &quota, false).text;
        assert!(text.ends_with(": its quota is used up; raise it (cpu.max of its cgroup)"), "{text}");
        let elsewhere = first(&losing(LossPlace::Firewall), &starved, true);
        assert!(
            elsewhere.id == FindingId::LacksCpu && elsewhere.text == waits,
            "TCP: what holds it back: {elsewhere:?}"
        );
        let full = limit(LimitKind::Loss, "", None);
        let text = first(&losing(LossPlace::ReceiveBuffer), &full, true).text;
        assert!(text.ends_with(": for bursts raise net.core.rmem_max and iperf3 -w"), "{text}");
    }

    #[test]
    fn nothing_is_said_before_a_ceiling_that_it_would_not_raise() {
        let history = History::default();
        let asked = limit(LimitKind::Application, "it was asked for no more", None);
        let mut metrics = losing(LossPlace::Qdisc);
        let (findings, leads) = all(&metrics, Some(&asked), true, &history, &RateDiagnosis::default());
        assert!(
            leads && findings[0].id == FindingId::Loss,
            "some segments are sent again, and all is there: {findings:?}"
        );
        assert_eq!(findings[0].key, None);
        metrics.losses = Losses::default();
        assert!(all(&metrics, Some(&asked), true, &history, &RateDiagnosis::default()).1, "nothing is found");
        let other = limit(LimitKind::Nothing, "", None);
        assert!(!all(&metrics, Some(&other), true, &history, &RateDiagnosis::default()).1);
    }
}
