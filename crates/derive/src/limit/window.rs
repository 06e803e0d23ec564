//! The last second of a test, tick by tick, and the means of it: a judgement of one tick would flicker. A tick that is longer, or
//! reaches over the edge of that second, counts with its part within.

use super::scene::{Core, HoldingQdisc, QuotaUse, RealSpeed, Scene, Tcp, Thread, Unbegun, WorkerPlace, WorkerThread};
use super::segments::{self, Segments};
use super::tick::{HeldTick, Tick, carrying};
use crate::finding::nothing;
use crate::flow::{BusyShares, Connection, FlowTrack};
use crate::ledger::{Ledger, Ticked, TimeSpan};
use crate::losses::{Loss, LossPlace};
use crate::paths::{self, SoftirqBy};
use crate::{Mean, TestMetrics, ThreadMetrics, Worker, denial};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use vnettop_sample::{CoreId, CoreSet, Duty, LinkKey, Proto, Sample, row_of};

/// What is looked at, ns: `now`, and not one tick.
const WINDOW_NS: u64 = 1_000_000_000;
/// A lost segment keeps a congestion window small for longer than that, ns.
const LOST_KEPT_NS: u64 = segments::KEPT_NS;
/// From this share of softirq on it is asked whose packets a core handles.
const SOFTIRQ: f64 = 0.4;

/// A place of losses.
type Spot = (LossPlace, Option<u64>, Option<LinkKey>);

/// What a tick lost on the path.
#[derive(Debug, Clone)]
struct LostTick {
    span: TimeSpan,
    /// Packets that the senders' protocols were given to send.
    sent: Option<f64>,
    places: Vec<Loss>,
}

impl LostTick {
    fn lost_at(&self, at: Spot) -> f64 {
        self.places.iter().filter(|loss| spot(loss) == at).map(|loss| loss.packets).sum()
    }
}

impl Ticked for LostTick {
    fn span(&self) -> TimeSpan {
        self.span
    }
}

fn spot(loss: &Loss) -> Spot {
    (loss.place, loss.netns, loss.link)
}

/// The ticks of the last second, and what was lost in the last five.
#[derive(Debug, Clone, Default)]
pub(super) struct Window {
    ticks: Ledger<Tick>,
    lost: Ledger<LostTick>,
    segments: Segments,
    /// The first tick, ns.
    since_ns: Option<u64>,
}

impl Window {
    /// Takes a tick into account.
    pub fn observe(&mut self, previous: &Sample, next: &Sample, metrics: &TestMetrics) {
        let now_ns = metrics.machine.at_ns;
        let Some(tick) = Tick::of(previous, next, metrics) else { return };
        self.since_ns.get_or_insert(previous.at_ns);
        self.segments.observe(metrics);
        let losses = &metrics.losses;
        self.lost.add(LostTick { span: tick.span, sent: losses.sent, places: losses.places.clone() });
        self.lost.forget(now_ns.saturating_sub(LOST_KEPT_NS));
        self.ticks.add(tick);
        self.ticks.forget(now_ns.saturating_sub(WINDOW_NS));
    }

    /// The last second.
    fn span(&self) -> TimeSpan {
        TimeSpan::until(self.ticks.last().map_or(0, |tick| tick.span.to_ns), WINDOW_NS)
    }

    fn mean(&self, of: impl Fn(&Tick) -> Option<f64>) -> Option<f64> {
        self.span().mean(&self.ticks, of)
    }

    /// How much time there is to judge, ns.
    pub fn length_ns(&self) -> u64 {
        let now_ns = self.span().to_ns;
        now_ns.saturating_sub(self.since_ns.unwrap_or(now_ns)).min(WINDOW_NS)
    }

    /// The figures of now.
    pub fn scene(&self, next: &Sample, metrics: &TestMetrics, flow: &FlowTrack) -> Scene {
        let proto = carrying(metrics).map(Connection::proto).min();
        let cores = self.cores();
        let policy = &metrics.machine.facts.host.policy;
        let sent = self.mean(|tick| tick.sent).filter(|_| proto == Some(Proto::Udp));
        Scene {
            seconds: self.span().counted(&self.ticks, |_| Some(0.0)).weight,
            handling: handling(metrics, &cores),
            cores,
            threads: metrics.threads.iter().filter_map(|thread| self.thread(metrics, thread)).collect(),
            workers: metrics.workers.iter().filter_map(|worker| self.worker(metrics, worker)).collect(),
            unmeasured: metrics.workers.iter().filter(|one| self.is_new(one)).map(|one| place(metrics, one)).collect(),
            runners: next.facts.runners.to_vec(),
            proto,
            streams: carrying(metrics).count(),
            rate_bits_per_s: sent.or_else(|| flow.mean_of_last(WINDOW_NS)),
            asked_bits_per_s: metrics.asked_bits_per_s(),
            sender: sender(metrics).map(String::from),
            tcp: self.tcp(),
            losses_per_s: self.losses(metrics, proto),
            sent_again: self.segments.untold(),
            silent: silent(metrics),
            unread_bytes: most_of_receivers(metrics, |one| one.rx_queue_bytes),
            receive_buffer_bytes: most_of_receivers(metrics, |one| one.rx_buffer_bytes),
            waiting_bytes: waiting(metrics),
            last_lost: last_lost(metrics),
            unbegun: unbegun(metrics),
            missing: self.mean(|tick| tick.missing),
            waits: metrics.latency.as_ref().and_then(|one| one.cause.as_ref()).map(|cause| cause.text.clone()),
            looked_at: denial::looked_at(metrics, self.length_ns() as f64 / 1e9),
            held: self.held(metrics),
            quota: self.quota(),
            claim: self.claim(metrics),
            clock_khz: policy.limit_khz.zip(policy.most_khz).map(|(limit, most)| (limit as f64, most as f64)),
        }
    }

    fn cores(&self) -> Vec<Core> {
        let numbers: BTreeSet<CoreId> =
            self.ticks.iter().flat_map(|tick| &tick.cores).map(|core| core.number).collect();
        let core = |number| {
            let mean = |of: fn(&Core) -> f64| {
                self.mean(|tick| row_of(&tick.cores, &number, |core| core.number).map(of)).unwrap_or(0.0)
            };
            Core {
                number,
                process: mean(|core| core.process),
                softirq: mean(|core| core.softirq),
                steal: mean(|core| core.steal),
                idle: mean(|core| core.idle),
            }
        };
        numbers.into_iter().map(core).collect()
    }

    /// A thread of the test that still exists, with means over the window.
    fn thread(&self, metrics: &TestMetrics, thread: &ThreadMetrics) -> Option<Thread> {
        let id = thread.sample.id;
        let (mut cpu, mut wait) = (Mean::default(), Mean::default());
        let mut on: BTreeMap<CoreId, f64> = BTreeMap::new();
        for tick in &self.ticks {
            let Some(here) = tick.threads.iter().find(|one| one.id == id) else { continue };
            let seconds = self.span().common_s(tick.span);
            cpu.add(Some(here.cpu), seconds);
            wait.add(Some(here.wait), seconds);
            *on.entry(here.core).or_default() += here.cpu * seconds;
        }
        let works = thread.sample.duty == Duty::Worker;
        Some(Thread {
            pid: id.pid,
            tid: id.tid,
            label: format!("{} {}", thread.sample.name, thread.sample.role()),
            cores: on.into_iter().map(|(core, sum)| (core, sum / cpu.weight)).collect(),
            cpu: cpu.value()?,
            moved: thread.moved,
            wait: wait.value()?,
            sends: works && carrying(metrics).any(|one| one.from.pid == Some(id.pid)),
            receives: works && carrying(metrics).any(|one| one.to.pid == Some(id.pid)),
        })
    }

    /// A thread between the ends that is at none.
    fn worker(&self, metrics: &TestMetrics, worker: &Worker) -> Option<WorkerThread> {
        let is_end = metrics.threads.iter().any(|thread| thread.sample.id == worker.id());
        let thread = self.thread(metrics, &worker.thread).filter(|_| !is_end)?;
        let (noun, polls) = (worker.noun(), worker.polls());
        Some(WorkerThread { thread, noun, place: place(metrics, worker), polls, count: 1 })
    }

    /// No tick has told yet how busy it is.
    fn is_new(&self, worker: &Worker) -> bool {
        !self.ticks.iter().flat_map(|tick| &tick.threads).any(|thread| thread.id == worker.id())
    }

    fn tcp(&self) -> Option<Tcp> {
        let mean = |of: &dyn Fn(&Tcp) -> Option<f64>| self.mean(|tick| of(tick.tcp.as_ref()?));
        Some(Tcp {
            busy: BusyShares::each(|share| mean(&|tcp| tcp.busy.as_ref().map(share))),
            app_limited: mean(&|tcp| tcp.app_limited),
            under_way: mean(&|tcp| tcp.under_way),
            retransmits_per_s: mean(&|tcp| Some(tcp.retransmits_per_s)).unwrap_or(0.0),
            ..self.ticks.last()?.tcp?
        })
    }

    /// Losses by place, the worst first: datagrams of the last second, segments of the last five. Shares are of what was sent
    /// in the same time.
    fn losses(&self, metrics: &TestMetrics, proto: Option<Proto>) -> Vec<Loss> {
        let length_ns = if proto == Some(Proto::Udp) { WINDOW_NS } else { LOST_KEPT_NS };
        let span = TimeSpan::until(metrics.machine.at_ns, length_ns);
        let here = || self.lost.reaching_in(span);
        let places: BTreeMap<Spot, &Loss> =
            here().flat_map(|tick| &tick.places).map(|loss| (spot(loss), loss)).collect();
        let per_second = |(at, loss): (Spot, &Loss)| {
            let share = |tick: &LostTick| {
                let mut lost = tick.places.iter().filter(|loss| spot(loss) == at);
                let share = lost.try_fold(0.0, |sum, loss| Some(sum + loss.share?))?;
                Some((share, tick.sent?))
            };
            Loss {
                packets: span.counted(here(), |tick| Some(tick.lost_at(at))).value().unwrap_or(0.0),
                share: span.share(here(), share),
                ..loss.clone()
            }
        };
        let mut all: Vec<Loss> = places.into_iter().map(per_second).collect();
        all.sort_by(|one, other| other.packets.total_cmp(&one.packets));
        all
    }

    fn held(&self, metrics: &TestMetrics) -> Vec<HoldingQdisc> {
        let mut all: BTreeMap<(LinkKey, u32), Vec<&HeldTick>> = BTreeMap::new();
        for held in self.ticks.iter().flat_map(|tick| &tick.held) {
            all.entry((held.link, held.qdisc.handle)).or_default().push(held);
        }
        let reported = |((link, _), ticks): ((LinkKey, u32), Vec<&HeldTick>)| {
            let link = metrics.machine.link(link).map_or("a link", |link| link.facts.name.as_str());
            let counted = |of: fn(&HeldTick) -> f64| self.span().counted(ticks.iter().copied(), |tick| Some(of(tick)));
            HoldingQdisc {
                name: format!("{} on {link}", ticks[0].qdisc.kind),
                set_bits_per_s: ticks.last().and_then(|tick| tick.qdisc.rate_bits_per_s()),
                bits_per_s: counted(|tick| tick.bytes).value().unwrap_or(0.0) * 8.0,
                times: counted(|tick| tick.overlimits).sum / counted(|tick| tick.packets).sum.max(1.0),
                waits: ticks.iter().filter(|tick| tick.waits).count() as f64 / ticks.len() as f64,
            }
        };
        all.into_iter().map(reported).collect()
    }

    fn quota(&self) -> Option<QuotaUse> {
        let counted = |of: fn((f64, f64, f64)) -> f64| self.span().counted(&self.ticks, |tick| tick.quota.map(of)).sum;
        let (periods, throttled) = (counted(|quota| quota.1), counted(|quota| quota.2));
        let cores = self.ticks.iter().rev().find_map(|tick| tick.quota)?.0;
        (periods > 0.0).then(|| QuotaUse { cores, throttled: throttled / periods })
    }

    /// The link that comes nearest to its speed.
    fn claim(&self, metrics: &TestMetrics) -> Option<RealSpeed> {
        let here = self.ticks.last()?.claims.iter();
        let reported = here.filter_map(|&(key, sent, _)| {
            let link = metrics.machine.link(key)?;
            let of = |tick: &Tick| tick.claims.iter().find(|one| (one.0, one.1) == (key, sent)).map(|one| one.2);
            let speed = f64::from(link.facts.speed_mbps?) * 1e6;
            Some(RealSpeed { name: link.facts.name.clone(), bits_per_s: self.mean(of)?, speed_bits_per_s: speed })
        });
        reported.max_by(|one, other| {
            (one.bits_per_s / one.speed_bits_per_s).total_cmp(&(other.bits_per_s / other.speed_bits_per_s))
        })
    }
}

fn place(metrics: &TestMetrics, worker: &Worker) -> WorkerPlace {
    WorkerPlace { carrier: worker.carrier.clone(), pid: worker.id().pid, before: worker.link_before(&metrics.paths) }
}

/// What a test waits for that never sent anything.
fn unbegun(metrics: &TestMetrics) -> Option<Unbegun> {
    if let Some(waits) = nothing::waiting(metrics) {
        return Some(Unbegun::Word(waits.to.address));
    }
    let mut all = metrics.flow.connections.iter().filter(|one| one.is_connecting() || !one.controls());
    let first = all.next().filter(|one| one.is_connecting() && one.is_stuck())?;
    all.all(Connection::is_connecting).then_some(Unbegun::Answer(first.to.address))
}

/// What was lost last of a test that gets nothing.
fn last_lost(metrics: &TestMetrics) -> Option<Loss> {
    let stuck = metrics.flow.connections.iter().find(|one| one.is_stuck()).or_else(|| nothing::waiting(metrics))?;
    Some(nothing::last_loss(metrics, stuck)?.0.clone())
}

/// Cores that handle the test's packets on whichever core the sender runs; empty unless some core has much softirq work.
fn handling(metrics: &TestMetrics, cores: &[Core]) -> CoreSet {
    if !cores.iter().any(|core| core.softirq >= SOFTIRQ) {
        return CoreSet::new();
    }
    let paths = carrying(metrics).filter_map(|connection| paths::of(metrics, connection));
    let softirqs = paths.flat_map(|path| path.hops).filter_map(|hop| hop.softirq.ok());
    let elsewhere = softirqs.filter(|softirq| softirq.by != SoftirqBy::Sender);
    elsewhere.flat_map(|one| one.cores.iter().collect::<Vec<_>>()).collect()
}

/// The neighbour on a path of the test that does not answer: its link and address.
fn silent(metrics: &TestMetrics) -> Option<(String, IpAddr)> {
    let mut ways = carrying(metrics).filter_map(|connection| paths::found(&metrics.paths, connection));
    let silent = ways.find_map(|path| path.silent)?;
    Some((metrics.machine.link(silent.link)?.facts.name.clone(), silent.ip))
}

/// The largest of these figures among the receivers' TCP sockets, bytes.
fn most_of_receivers(metrics: &TestMetrics, of: fn(&Connection) -> Option<u64>) -> Option<f64> {
    let receivers = carrying(metrics).filter(|one| one.tcp().is_some());
    receivers.filter_map(of).map(|bytes| bytes as f64).reduce(f64::max)
}

/// Bytes that wait in the senders' UDP sockets.
fn waiting(metrics: &TestMetrics) -> Option<f64> {
    let senders = carrying(metrics).filter(|one| one.udp().is_some());
    senders.map(|one| Some(one.tx_queue_bytes? as f64)).reduce(|sum, one| Some(sum? + one?))?
}

/// The name of the program that sends.
fn sender(metrics: &TestMetrics) -> Option<&str> {
    let pid = carrying(metrics).find_map(|connection| connection.from.pid)?;
    let thread = metrics.threads.iter().find(|thread| thread.sample.id.pid == pid)?;
    Some(&thread.sample.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Losses;
    use crate::MachineMetrics;
    use std::sync::Arc;

    fn lost(packets: f64, share: f64) -> Loss {
        Loss { place: LossPlace::Firewall, netns: Some(2), packets, share: Some(share), ..Loss::default() }
    }

    /// What is told at each tick of a test that sends 10,000 datagrams/s and loses this share of them: packets/s and share. The
    /// ticks have these lengths one after the other, ms.
    fn reported(share: f64, lengths_ms: &[u64]) -> Vec<(f64, Option<f64>)> {
        let mut window = Window::default();
        let mut previous = Sample { at_ns: 50_000_000_000, ..Sample::default() };
        let tick = |&length_ms: &u64| {
            let next = Sample { at_ns: previous.at_ns + length_ms * 1_000_000, ..Sample::default() };
            let sent = length_ms as f64 * 10.0;
            let losses = Losses { places: vec![lost(sent * share, share)], sent: Some(sent), ..Losses::default() };
            let elapsed_s = Some(length_ms as f64 / 1e3);
            let machine = MachineMetrics { at_ns: next.at_ns, elapsed_s, ..MachineMetrics::default() };
            let metrics = TestMetrics { machine: Arc::new(machine), losses, ..TestMetrics::default() };
            window.observe(&previous, &next, &metrics);
            previous = next;
            let [lost] = &window.losses(&metrics, Some(Proto::Udp))[..] else { panic!("one place") };
            (lost.packets, lost.share)
        };
        lengths_ms.iter().map(tick).collect()
    }

    #[test]
    fn the_share_of_lost_datagrams_is_the_same_at_every_interval_and_in_every_tick() {
        for lengths in
            [&[100; 30][..], &[500, 501, 499, 620, 380], &[1000, 1001, 999, 1003, 1000], &[4000, 4001, 1, 90]]
        {
            for share in [0.02, 0.2, 0.8, 1.0] {
                for (tick, (per_s, reported)) in reported(share, lengths).into_iter().enumerate() {
                    let is_true = (per_s - share * 1e4).abs() < 1e-6
                        && reported.is_some_and(|reported| (reported - share).abs() < 1e-9);
                    assert!(is_true, "{share} of 10,000/s, tick {tick} of {lengths:?} ms: {per_s}/s, {reported:?}");
                }
            }
        }
    }

    #[test]
    fn a_tick_without_losses_counts_as_one() {
        let mut window = Window::default();
        let tick = |window: &mut Window, to_s: u64, count: f64| {
            let sample = |at_s| Sample { at_ns: at_s * 500_000_000, ..Sample::default() };
            let places = if count > 0.0 { vec![lost(count, count / 5000.0)] } else { Vec::new() };
            let losses = Losses { places, sent: Some(5000.0), ..Losses::default() };
            let machine =
                MachineMetrics { at_ns: to_s * 500_000_000, elapsed_s: Some(0.5), ..MachineMetrics::default() };
            let metrics = TestMetrics { machine: Arc::new(machine), losses, ..TestMetrics::default() };
            window.observe(&sample(to_s - 1), &sample(to_s), &metrics);
            metrics
        };
        tick(&mut window, 1, 1000.0);
        let metrics = tick(&mut window, 2, 0.0);
        let lost = window.losses(&metrics, Some(Proto::Udp));
        assert_eq!(lost.iter().map(|loss| (loss.packets, loss.share)).collect::<Vec<_>>(), [(1000.0, Some(0.1))]);
        let metrics = tick(&mut window, 3, 0.0);
        assert_eq!(window.losses(&metrics, Some(Proto::Udp)), [], "the second has none of it any more");
    }
}
