//! Buffers and queues that overflow: why, as far as what they are tells, and what mends that.

use crate::flow::Connection;
use crate::losses::{Loss, QdiscLoad};
use crate::{TestMetrics, ThreadMetrics};
use vnettop_sample::{Kind, Proto, shell_word};

/// A thread that could run for less than this share of the time has time to spare.
const SPARE: f64 = 0.6;
/// From this part of what it would run on it waits for a core.
const WAITS: f64 = 0.1;
/// Who neither ran nor waited for a core for more than this share of a tick does not read.
const RESTS: f64 = 0.005;

/// Who runs and waits for a core for less than this part of what it usually does has paused.
const PAUSED: f64 = 0.5;
/// A sender that does this part of what it usually does sends as before.
const SENDS_ON: f64 = 0.7;
/// Less than that swings by itself, share of a core.
const LITTLE: f64 = 0.02;

/// How much the reader runs and waits for a core, now and in the last seconds, where it stood still for a part of this sample while
/// the sender went on.
pub(super) fn paused(metrics: &TestMetrics) -> Option<(f64, f64)> {
    let now_and_before = |pids: Vec<Option<u32>>| {
        let own = metrics.threads.iter().filter(|thread| pids.contains(&Some(thread.sample.id.pid)));
        let both = own.filter_map(|thread| {
            let before = metrics.recent.thread_need(thread.sample.id)?;
            Some((thread.cpu? + thread.wait?, before)).filter(|_| before >= LITTLE)
        });
        both.reduce(|one, other| (one.0 + other.0, one.1 + other.1))
    };
    let (now, before) = now_and_before(carries(metrics).map(|one| one.to.pid).collect())?;
    let (sends, sent) = now_and_before(carries(metrics).map(|one| one.from.pid).collect())?;
    (now <= PAUSED * before && sends >= SENDS_ON * sent).then_some((now, before))
}

/// The receiver is not seen to lack CPU time: what it cannot read at once is lost.
pub(super) fn receive_buffer(metrics: &TestMetrics) -> String {
    let is_reader = |pid| carries(metrics).any(|one| one.to.pid == Some(pid));
    let readers = || metrics.threads.iter().filter(|thread| is_reader(thread.sample.id.pid));
    let rests = |thread: &ThreadMetrics| Some(thread.cpu? + thread.wait? <= RESTS);
    if readers().next().is_some() && readers().all(|thread| rests(thread) == Some(true)) {
        return "its reader neither runs nor waits for a core: find what stops it (ps -o stat)".to_owned();
    }
    if let Some((now, before)) = paused(metrics) {
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        return format!(
            "its reader paused (ran or waited {} of the time, {} before): find what stops it",
            percent(now),
            percent(before)
        );
    }
    let recent = &metrics.recent;
    let need = readers().filter_map(|thread| {
        let (need, cpu) = (recent.thread_need(thread.sample.id)?, recent.thread_cpu(thread.sample.id)?);
        // One that waits for its core has none to spare.
        Some(if need - cpu >= WAITS * need { 1.0 } else { need })
    });
    let need = need.reduce(f64::max);
    let raise = "for bursts raise net.core.rmem_max and iperf3 -w";
    match need {
        Some(need) if need < SPARE => format!("its reader has CPU time to spare: {raise}"),
        _ => raise.to_owned(),
    }
}

/// By what kind of qdisc it is, and what that is set to.
pub(super) fn qdisc(loss: &Loss, metrics: &TestMetrics) -> String {
    let link = loss.link.and_then(|link| metrics.machine.link(link));
    let (Some(qdisc), Some(link)) = (&loss.qdisc, link) else {
        return "its queue is full, or it is set to drop: tc -s qdisc shows which".to_owned();
    };
    // What TCP would send is not known: it sends what arrives.
    let is_udp = carries(metrics).next().is_some() && carries(metrics).all(|one| one.proto() == Proto::Udp);
    let rate = qdisc.rate_bits_per_s().filter(|_| is_udp);
    let offered = rate.zip(loss.share.filter(|share| *share < 1.0)).map(|(rate, share)| rate / (1.0 - share));
    let load = QdiscLoad { offered_bits_per_s: offered, dropped: loss.share };
    let (fix, command) = qdisc.remedy(&link.facts.name, load);
    let command = metrics.machine.space_entry(link.facts.netns).command(&command);
    // A test may send less on average: that is not known of the qdisc.
    format!("{}: {fix} ({command})", qdisc.cause("at times more is sent", load))
}

fn carries(metrics: &TestMetrics) -> impl Iterator<Item = &Connection> {
    metrics.flow.connections.iter().filter(|one| one.carries)
}

/// By what the link is, and what is behind it.
pub(super) fn link(loss: &Loss, metrics: &TestMetrics) -> String {
    let unknown = || "its queue is full, or its other end accepts nothing: ip -s link and ethtool -S there show which";
    let link = loss.link.and_then(|link| metrics.machine.link(link));
    let Some(link) = link.filter(|link| matches!(link.facts.kind, Kind::Tun | Kind::Tap)) else {
        return unknown().to_owned();
    };
    // What is sent into it waits for the program that has it open.
    let carriers = metrics.paths.iter().flat_map(|path| &path.carriers).map(|carrier| &carrier.name);
    let who = carriers.min().cloned().unwrap_or_else(|| "the program behind it".to_owned());
    let (name, space) = (&link.facts.name, metrics.machine.space_entry(link.facts.netns));
    let longer = space.command(&format!("ip link set {} txqueuelen 10000", shell_word(name)));
    format!("{who} reads {name} more slowly than it fills: it needs more CPU, or for bursts a longer queue ({longer})")
}

#[cfg(test)]
mod tests {
    use super::receive_buffer;
    use crate::flow::{Connection, End};
    use crate::placement::tests::machine::Machine;
    use crate::{FlowMetrics, TestMetrics};

    #[test]
    fn a_reader_that_is_stopped_is_no_small_buffer() {
        let remedy = |cpu, wait| {
            let machine = Machine::small(2).pair(0, 1).each_thread(|thread| (thread.cpu, thread.wait) = (cpu, wait));
            let end = |pid| End { pid: Some(pid), ..End::default() };
            let connections = vec![Connection { carries: true, ..Connection::between(end(39082), end(39081)) }];
            receive_buffer(&TestMetrics {
                flow: FlowMetrics { connections, ..FlowMetrics::default() },
                ..machine.metrics()
            })
        };
        let stopped = remedy(Some(0.0), Some(0.001));
        assert!(stopped.starts_with("its reader neither runs nor waits for a core: "), "{stopped}");
        for (cpu, wait) in [(Some(0.0), Some(0.9)), (Some(0.4), Some(0.0)), (Some(0.0), None), (None, None)] {
            let reads = remedy(cpu, wait);
            assert!(!reads.contains("neither runs"), "it waits, runs, or nobody knows: {cpu:?} {wait:?}: {reads}");
        }
    }

    #[test]
    fn a_reader_that_stood_still_for_a_part_of_a_sample_is_no_small_buffer() {
        let machine = Machine::small(2).pair(0, 1).each_thread(|one| (one.cpu, one.wait) = (Some(0.2), Some(0.1)));
        let end = |pid| End { pid: Some(pid), ..End::default() };
        let connections = vec![Connection { carries: true, ..Connection::between(end(39082), end(39081)) }];
        let usual = TestMetrics { flow: FlowMetrics { connections, ..FlowMetrics::default() }, ..machine.metrics() };
        let remedy = |reader: f64, sender: f64| {
            let mut metrics = usual.clone();
            for one in std::sync::Arc::make_mut(&mut metrics.threads) {
                let cpu = if one.sample.id.pid == 39081 { reader } else { sender };
                (one.cpu, one.wait) = (Some(cpu), Some(0.0));
            }
            receive_buffer(&metrics)
        };
        let paused = remedy(0.08, 0.3);
        assert!(paused.starts_with("its reader paused (ran or waited 8 % of the time, 30 % before): "), "{paused}");
        for (reader, sender) in [(0.25, 0.3), (0.08, 0.1)] {
            let reads = remedy(reader, sender);
            assert!(!reads.contains("paused"), "it reads on, or nothing is sent: {reads}");
        }
    }
}
