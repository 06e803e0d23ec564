//! A test that gets nothing: nobody answers its connection, or it is connected and no payload arrives; with the last place at
//! which something of it was lost.

use super::loss::{kernels_word, place};
use super::{Diagnostic, LintInput};
use crate::figure::{bytes, count, rate};
use crate::flow::{Connection, DatagramRate, DatagramTest};
use crate::losses::Loss;
use crate::{TestMetrics, denial, paths};
use vnettop_sample::{Proto, Side};

/// A shorter silence is one lost segment that is sent again, s.
const LEAST_S: f64 = 2.0;

/// Connections of a test that have something to send and move nothing; else a client to which its server sends nothing, or
/// datagrams of which none arrives.
pub(super) fn arrives(input: &LintInput<'_>) -> Option<Diagnostic> {
    let metrics = input.metrics;
    let is_data = |one: &&Connection| one.tcp().is_some() && !one.controls() && !is_beside_datagrams(metrics, one);
    let data = || metrics.flow.connections.iter().filter(is_data);
    let stuck = || data().filter(|one| one.is_stuck() && one.stuck_s() >= Some(LEAST_S));
    let longest = stuck().max_by(|one, other| one.stuck_s().unwrap_or(0.0).total_cmp(&other.stuck_s().unwrap_or(0.0)));
    if let Some(worst) = longest {
        let (all, of) = (data().count(), stuck().count());
        let share = if of < all { format!(" ({of} of {all} connections)") } else { String::new() };
        let text = format!("{}{share}{}", what(worst), why(metrics, worst));
        let mut numbers =
            vec![("seconds", worst.stuck_s()?), ("connections", count(of)), ("all_connections", count(all))];
        numbers.extend(worst.tx_queue_bytes.map(|waiting| ("tx_queue_bytes", waiting as f64)));
        return Some(Diagnostic::new(text, numbers));
    }
    if let Some(waits) = waiting(metrics) {
        let text = format!(
            "connected to {}, but neither end has sent payload for {:.0} s; both wait, or the server has not accepted the connection (ss -tnp){}",
            waits.to.address,
            waits.silent_s()?,
            last_words(metrics, waits)
        );
        return Some(Diagnostic::new(text, [("seconds", waits.silent_s()?)]));
    }
    let is_empty = |test: &&DatagramTest| {
        let arrives = test.received.map(|rate| rate.bits_per_s > 0.0);
        test.sent.and_then(|rate| rate.packets_per_s) >= Some(1.0) && arrives == Some(false)
    };
    let empty = metrics.flow.tests.iter().find(is_empty)?;
    let of = metrics.flow.connections.iter().find(|one| metrics.flow.test_of(one) == Some(empty))?;
    let per_s = empty.sent?.packets_per_s?;
    let text =
        format!("{} datagrams/s are sent to {}, and none arrives{}", rate(per_s), of.to.address, why(metrics, of));
    Some(Diagnostic::new(text, [("sent_per_s", per_s)]))
}

/// The connection that moved something last, when a benchmark's client is connected and neither end has sent more than control
/// messages.
pub(crate) fn waiting(metrics: &TestMetrics) -> Option<&Connection> {
    let is_client = |pid| metrics.benchmarks.iter().any(|one| one.pid == pid && one.side == Side::Client);
    let of_client = |one: &Connection| [one.from.pid, one.to.pid].into_iter().flatten().any(is_client);
    let is_nothing = |rate: Option<DatagramRate>| rate.is_none_or(|rate| rate.bits_per_s == 0.0);
    let is_quiet = |test: &DatagramTest| test.rate().is_some() && is_nothing(test.sent) && is_nothing(test.received);
    let flow = &metrics.flow;
    let connections = || flow.connections.iter().filter(|one| one.tcp().is_some());
    let waits = connections().all(|one| of_client(one) && one.controls()) && flow.tests.iter().all(is_quiet);
    let silent_s = |one: &Connection| one.silent_s().unwrap_or(0.0);
    let last = connections().min_by(|one, other| silent_s(one).total_cmp(&silent_s(other)))?;
    Some(last).filter(|one| waits && !flow.has_carried && silent_s(one) >= LEAST_S)
}

/// It is the control connection of a client whose datagrams have carried something: what waits in it is no payload.
fn is_beside_datagrams(metrics: &TestMetrics, one: &Connection) -> bool {
    let sends_datagrams = |pid| {
        let mut clients = metrics.benchmarks.iter().filter(|of| of.pid == pid && of.side == Side::Client);
        clients.any(|client| client.proto == Some(Proto::Udp))
    };
    metrics.flow.has_carried && !one.carries && [one.from.pid, one.to.pid].into_iter().flatten().any(sends_datagrams)
}

/// What of this connection's packets was lost last, while it has moved nothing, and how long ago, s.
pub(crate) fn last_loss<'a>(metrics: &'a TestMetrics, of: &Connection) -> Option<(&'a Loss, f64)> {
    let losses = &metrics.losses;
    let nothing_s = if of.is_stuck() { of.stuck_s() } else { of.silent_s() };
    let quiet_s = losses.quiet_s.filter(|quiet_s| nothing_s.is_none_or(|nothing_s| *quiet_s <= nothing_s + 1.0))?;
    Some((losses.last.as_ref()?, quiet_s))
}

fn what(worst: &Connection) -> String {
    let (to, seconds) = (worst.to.address, worst.stuck_s().unwrap_or(0.0));
    let again = match worst.tcp().and_then(|tcp| tcp.retransmits) {
        Some(0) | None => String::new(),
        Some(1) => ", sent again once".to_owned(),
        Some(times) => format!(", sent again {times} times"),
    };
    let waiting = |queue: Option<u64>| bytes(queue.unwrap_or(0) as f64);
    if worst.is_connecting() {
        return format!("{to} does not answer the request to connect, made {seconds:.0} s ago{again}");
    }
    if worst.rx_queue_bytes.is_some_and(|unread| unread > 0) {
        let (unread, behind) = (waiting(worst.rx_queue_bytes), waiting(worst.tx_queue_bytes));
        return format!(
            "{to} has read nothing for {seconds:.0} s: {unread} wait in its socket, {behind} at the sender"
        );
    }
    let behind = waiting(worst.tx_queue_bytes);
    format!("connected, but nothing has arrived at {to} for {seconds:.0} s: {behind} wait at the sender{again}")
}

/// Where something of it was lost last; else where its path ends.
fn why(metrics: &TestMetrics, worst: &Connection) -> String {
    if worst.rx_queue_bytes.is_some_and(|unread| unread > 0) {
        return String::new();
    }
    let lost = last_words(metrics, worst);
    if !lost.is_empty() {
        return lost;
    }
    match paths::found(&metrics.paths, worst).and_then(|path| path.gap.as_deref()) {
        Some(gap) => format!("; its path ends early: {gap}"),
        None => {
            format!("; where is not visible here, from {}", denial::looked_at(metrics, worst.stuck_s().unwrap_or(0.0)))
        }
    }
}

fn last_words(metrics: &TestMetrics, of: &Connection) -> String {
    let Some((last, quiet_s)) = last_loss(metrics, of) else { return String::new() };
    let when = if quiet_s < 1.0 { "now".to_owned() } else { format!("{quiet_s:.0} s ago") };
    format!("; last loss {when} {}{}", place(last, metrics), kernels_word(last))
}

#[cfg(test)]
mod tests {
    use super::super::FindingId;
    use super::super::tests::all;
    use crate::diagnosis::RateDiagnosis;
    use crate::flow::{Connection, End, Speaks, TcpFigures};
    use crate::history::History;
    use crate::placement::tests::machine::Machine;
    use vnettop_sample::{Benchmark, Proto, Side};

    #[test]
    fn what_waits_beside_datagrams_that_have_arrived_is_no_payload() {
        let end = |port: u16| End { netns: Some(1), address: ([10, 0, 0, 1], port).into(), pid: Some(7) };
        let figures = TcpFigures { silent_s: Some(118.0), ..TcpFigures::default() };
        let control = Connection {
            speaks: Speaks::Tcp(figures),
            tx_queue_bytes: Some(37),
            stuck_s: Some(3.0),
            ..Connection::between(end(1), end(2))
        };
        let said = |proto| {
            let mut metrics = Machine::small(2).metrics();
            metrics.flow.connections = vec![control];
            metrics.flow.has_carried = true;
            let client = Benchmark { pid: 7, side: Side::Client, proto: Some(proto), ..Benchmark::default() };
            metrics.benchmarks = vec![client];
            let findings = all(&metrics, &History::default(), &RateDiagnosis::default());
            findings.into_iter().find(|finding| finding.id == FindingId::NothingArrives).map(|finding| finding.text)
        };
        let text = said(Proto::Tcp).expect("data of a test of TCP");
        assert!(text.contains("for 3 s: "), "since it has something to send, not since it was silent: {text}");
        assert_eq!(said(Proto::Udp), None, "a word to the server");
    }
}
