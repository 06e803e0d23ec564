//! What one tick tells of a test.

use super::scene::{Core, Tcp};
use crate::cores::CoreMetrics;
use crate::flow::{BusyShares, Connection, DatagramTest, TcpFigures};
use crate::ledger::{Ticked, TimeSpan};
use crate::losses::{KnownQdisc, qdiscs};
use crate::threads::ThreadMetrics;
use crate::{Basis, Mean, TestMetrics};
use std::collections::BTreeSet;
use vnettop_sample::{CoreId, HopWay, LinkKey, QdiscCounters, Quota, Sample, ThreadId, ThreadSample};

#[derive(Debug, Clone)]
pub(super) struct Tick {
    pub span: TimeSpan,
    pub cores: Vec<Core>,
    pub threads: Vec<ThreadTick>,
    /// Of this tick alone; none where no sender's TCP is seen.
    pub tcp: Option<Tcp>,
    /// Datagrams: payload that was sent, bits/s, and the share of them that did not arrive.
    pub sent: Option<f64>,
    pub missing: Option<f64>,
    pub held: Vec<HeldTick>,
    /// How many cores' time the narrowest quota allows, its periods and those in which it was used up.
    pub quota: Option<(f64, f64, f64)>,
    pub claims: Vec<(LinkKey, bool, f64)>,
}

#[derive(Debug, Clone)]
pub(super) struct ThreadTick {
    pub id: ThreadId,
    pub core: CoreId,
    pub cpu: f64,
    pub wait: f64,
}

impl Tick {
    /// What one tick shows; `None` without an elapsed time.
    pub fn of(previous: &Sample, next: &Sample, metrics: &TestMetrics) -> Option<Self> {
        metrics.machine.elapsed_s?;
        let span = TimeSpan { from_ns: previous.at_ns, to_ns: metrics.machine.at_ns };
        let tests = &metrics.flow.tests;
        let sent = tests.iter().map(|test| Some(test.sent?.bits_per_s)).sum::<Option<f64>>();
        Some(Self {
            span,
            cores: metrics.machine.cores.iter().filter_map(core).collect(),
            threads: metrics
                .threads
                .iter()
                .chain(metrics.workers.iter().map(|one| &one.thread))
                .filter_map(thread)
                .collect(),
            tcp: tcp(metrics),
            sent: sent.filter(|_| !tests.is_empty()),
            missing: tests.iter().filter_map(DatagramTest::lost).reduce(f64::max),
            held: held(previous, next, span),
            quota: quota(previous, next),
            claims: claims(metrics),
        })
    }
}

impl Ticked for Tick {
    fn span(&self) -> TimeSpan {
        self.span
    }
}

impl Ticked for HeldTick {
    fn span(&self) -> TimeSpan {
        self.span
    }
}

/// What a qdisc did in a tick.
#[derive(Debug, Clone)]
pub(super) struct HeldTick {
    pub link: LinkKey,
    pub qdisc: KnownQdisc,
    pub bytes: f64,
    pub packets: f64,
    pub overlimits: f64,
    /// Packets waited in it at the end.
    pub waits: bool,
    pub span: TimeSpan,
}

/// The connections that carry the test.
pub(super) fn carrying(metrics: &TestMetrics) -> impl Iterator<Item = &Connection> + Clone {
    metrics.flow.connections.iter().filter(|one| !one.controls() && !one.relayed)
}

/// Sums and means over these connections.
fn tcp(metrics: &TestMetrics) -> Option<Tcp> {
    let carrying = carrying(metrics);
    let senders = carrying.clone().filter_map(Connection::tcp).filter(|tcp| tcp.cwnd_bytes.is_some());
    senders.clone().next()?;
    let mean = |of: &dyn Fn(&TcpFigures) -> Option<f64>| {
        let mut mean = Mean::default();
        senders.clone().for_each(|one| mean.add(of(one), 1.0));
        mean.value()
    };
    let sum = |field: fn(&TcpFigures) -> Option<f64>| {
        carrying.clone().map(|one| one.tcp().and_then(field)).sum::<Option<f64>>()
    };
    let first = carrying.clone().next()?.tcp();
    Some(Tcp {
        busy: BusyShares::each(|share| mean(&|one| one.busy.as_ref().map(share))),
        app_limited: mean(&|one| one.app_limited.map(|limited| f64::from(u8::from(limited)))),
        under_way: mean(&|one| one.under_way),
        retransmits_per_s: senders.clone().map(|one| one.retransmits_per_s.unwrap_or(0.0)).sum(),
        cwnd_bytes: sum(|one| one.cwnd_bytes.map(|bytes| bytes as f64)),
        rtt_us: first.and_then(|first| first.rtt_us).map(f64::from),
        mss_bytes: first.and_then(|first| first.mss_bytes).map(f64::from),
        paced_bits_per_s: sum(|one| one.pacing_bits_per_s),
        allowed_bits_per_s: sum(|one| one.allowed_bits_per_s),
        congestion: first.and_then(|first| first.congestion),
        segments_per_s: first.and_then(|first| first.segments_per_s),
    })
}

fn core(core: &CoreMetrics) -> Option<Core> {
    let shares = core.shares()?;
    let (process, softirq) = (shares.user + shares.system, shares.softirq + shares.irq);
    Some(Core { number: core.place.core, process, softirq, steal: shares.steal, idle: shares.idle })
}

fn thread(thread: &ThreadMetrics) -> Option<ThreadTick> {
    let wait = thread.wait.unwrap_or(0.0);
    Some(ThreadTick { id: thread.sample.id, core: thread.sample.core, cpu: thread.cpu?, wait })
}

/// What the qdiscs do that the flows leave through; of one of several queues on a link each by itself.
fn held(previous: &Sample, next: &Sample, span: TimeSpan) -> Vec<HeldTick> {
    let hops = next.facts.paths.iter().flat_map(|path| &path.hops).filter(|hop| hop.way == HopWay::Sent);
    let links: BTreeSet<LinkKey> = hops.map(|hop| hop.link).collect();
    let of = |now: &QdiscCounters| {
        let before = qdiscs::before(&previous.qdiscs, now)?;
        Some(HeldTick {
            link: now.link,
            qdisc: KnownQdisc::from(now),
            bytes: now.bytes.checked_sub(before.bytes)? as f64,
            packets: now.packets.checked_sub(before.packets)? as f64,
            overlimits: f64::from(now.overlimits?.wrapping_sub(before.overlimits?)),
            waits: now.backlog_packets > 0,
            span,
        })
    };
    next.qdiscs.iter().filter(|now| links.contains(&now.link)).filter_map(of).collect()
}

/// The narrowest quota that threads of the test are under.
fn quota(previous: &Sample, next: &Sample) -> Option<(f64, f64, f64)> {
    let cores = |quota: &Quota| quota.quota_us as f64 / quota.period_us.max(1) as f64;
    let rise = |thread: &ThreadSample| {
        let now = thread.quota?;
        let before = previous.threads.iter().find(|before| before.id == thread.id)?.quota?;
        let risen = |of: fn(&Quota) -> u64| of(&now).checked_sub(of(&before)).map(|rise| rise as f64);
        let throttled = risen(|quota| quota.throttled)?;
        // Each throttled period is also a period.
        Some((cores(&now), risen(|quota| quota.periods)?.max(throttled), throttled))
    };
    let threads = next.watched().filter(|thread| thread.quota.is_some());
    threads.filter_map(rise).min_by(|one, other| one.0.total_cmp(&other.0))
}

/// The links on the path with a real speed: what each moves in the flow's direction.
fn claims(metrics: &TestMetrics) -> Vec<(LinkKey, bool, f64)> {
    let hops = metrics.paths.iter().flat_map(|path| &path.hops);
    let of = hops.filter_map(|hop| {
        let link = metrics.machine.link(hop.link).filter(|link| link.basis == Basis::Real)?;
        let rates = link.rates?;
        let (sent, rate) = match hop.way {
            HopWay::Sent => (true, rates.tx_bits_per_s?),
            HopWay::Received => (false, rates.rx_bits_per_s?),
            HopWay::Passed => return None,
        };
        Some((hop.link, sent, rate))
    });
    of.collect()
}
