//! The last second of a test, tick by tick, and the means of it: a judgement of one tick would flicker.

use super::scene::{Core, HoldingQdisc, QuotaUse, RealSpeed, Scene, Tcp, Thread};
use super::tick::{HeldTick, Tick, carrying};
use crate::derive::flow::{BusyShares, FlowTrack};
use crate::derive::losses::{Loss, LossPlace};
use crate::derive::paths::{self, SoftirqBy};
use crate::derive::threads::ThreadMetrics;
use crate::derive::{Mean, Metrics};
use crate::sample::{CoreId, CoreSet, Direction, Duty, LinkKey, Program, Proto, Sample, Side, row_of};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What is looked at, ns: `now`, and not one tick.
const WINDOW_NS: u64 = 1_000_000_000;
/// A lost segment keeps a congestion window small for longer than that, ns.
const LOST_KEPT_NS: u64 = 5_000_000_000;
/// From this share of softirq on it is asked whose packets a core handles.
const SOFTIRQ: f64 = 0.4;

/// A place of losses.
type Spot = (LossPlace, Option<u64>, Option<LinkKey>);

/// The ticks of the last second, and what was lost in the last five.
#[derive(Debug, Clone, Default)]
pub(super) struct Window {
    ticks: VecDeque<Tick>,
    lost: VecDeque<(u64, Loss)>,
    /// The first tick, ns.
    since_ns: Option<u64>,
}

impl Window {
    /// Takes a tick into account.
    pub fn observe(&mut self, previous: &Sample, next: &Sample, metrics: &Metrics) {
        let now_ns = metrics.at_ns;
        let Some(tick) = Tick::of(previous, next, metrics) else { return };
        self.since_ns.get_or_insert(previous.at_ns);
        self.lost.extend(metrics.losses.places.iter().map(|loss| (now_ns, loss.clone())));
        while self.lost.front().is_some_and(|(at_ns, _)| at_ns.saturating_add(LOST_KEPT_NS) <= now_ns) {
            self.lost.pop_front();
        }
        self.ticks.push_back(tick);
        // The tick that reaches back beyond the second is not a part of it.
        while self.ticks.len() > 1 && self.ticks[0].at_ns.saturating_add(WINDOW_NS) <= now_ns {
            self.ticks.pop_front();
        }
    }

    fn mean(&self, of: impl Fn(&Tick) -> Option<f64>) -> Option<f64> {
        let mut mean = Mean::default();
        self.ticks.iter().for_each(|tick| mean.add(of(tick), tick.seconds));
        mean.value()
    }

    /// How much time there is to judge, ns.
    pub fn length_ns(&self) -> u64 {
        let now_ns = self.ticks.back().map_or(0, |tick| tick.at_ns);
        now_ns.saturating_sub(self.since_ns.unwrap_or(now_ns)).min(WINDOW_NS)
    }

    /// The figures of now.
    pub fn scene(&self, next: &Sample, metrics: &Metrics, flow: &FlowTrack) -> Scene {
        let proto = carrying(metrics).map(|connection| connection.proto).min();
        let cores = self.cores();
        let mut bits = Mean::default();
        flow.last(WINDOW_NS).for_each(|bin| bits.add(bin.bits_per_s, 1.0));
        let policy = &metrics.facts.host.policy;
        let sent = self.mean(|tick| tick.sent).filter(|_| proto == Some(Proto::Udp));
        Scene {
            seconds: self.ticks.iter().map(|tick| tick.seconds).sum(),
            handling: handling(metrics, &cores),
            cores,
            threads: self.threads(metrics),
            runners: next.facts.runners.to_vec(),
            proto,
            rate_bits_per_s: sent.or(bits.value()),
            asked_bits_per_s: asked(metrics),
            sender: sender(metrics).map(String::from),
            tcp: self.tcp(),
            losses_per_s: self.losses(metrics, proto),
            missing: self.mean(|tick| tick.missing),
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

    /// Those that are there still.
    fn threads(&self, metrics: &Metrics) -> Vec<Thread> {
        let of = |thread: &ThreadMetrics| {
            let id = thread.sample.id;
            let (mut cpu, mut wait) = (Mean::default(), Mean::default());
            let mut on: BTreeMap<CoreId, f64> = BTreeMap::new();
            for tick in &self.ticks {
                let Some(here) = tick.threads.iter().find(|one| one.id == id) else { continue };
                cpu.add(Some(here.cpu), tick.seconds);
                wait.add(Some(here.wait), tick.seconds);
                *on.entry(here.core).or_default() += here.cpu * tick.seconds;
            }
            let works = thread.sample.duty == Duty::Worker;
            Some(Thread {
                pid: id.pid,
                tid: id.tid,
                label: format!("{} {}", thread.sample.name, thread.sample.role()),
                cores: on.into_iter().map(|(core, sum)| (core, sum / cpu.weight)).collect(),
                cpu: cpu.value()?,
                wait: wait.value()?,
                sends: works && carrying(metrics).any(|one| one.from.pid == Some(id.pid)),
                receives: works && carrying(metrics).any(|one| one.to.pid == Some(id.pid)),
            })
        };
        metrics.benchmark().filter_map(of).collect()
    }

    fn tcp(&self) -> Option<Tcp> {
        let mean = |of: &dyn Fn(&Tcp) -> Option<f64>| self.mean(|tick| of(tick.tcp.as_ref()?));
        Some(Tcp {
            busy: BusyShares::each(|share| mean(&|tcp| tcp.busy.as_ref().map(share))),
            app_limited: mean(&|tcp| tcp.app_limited),
            under_way: mean(&|tcp| tcp.under_way),
            retransmits_per_s: mean(&|tcp| Some(tcp.retransmits_per_s)).unwrap_or(0.0),
            ..self.ticks.back()?.tcp?
        })
    }

    /// What was lost where, the worst first: datagrams within the second, segments within five.
    fn losses(&self, metrics: &Metrics, proto: Option<Proto>) -> Vec<Loss> {
        let length_ns = if proto == Some(Proto::Udp) { WINDOW_NS } else { LOST_KEPT_NS };
        let begin_ns = metrics.at_ns.saturating_sub(length_ns);
        let since_ns = self.since_ns.unwrap_or(metrics.at_ns).max(begin_ns);
        let seconds = (metrics.at_ns.saturating_sub(since_ns) as f64 / 1e9).max(f64::EPSILON);
        let sent_per_s = self.mean(|tick| Some(tick.packets? / tick.seconds)).filter(|&sent| sent > 0.0);
        let mut places: BTreeMap<Spot, (&Loss, f64)> = BTreeMap::new();
        for (_, loss) in self.lost.iter().filter(|(at_ns, _)| *at_ns > begin_ns) {
            places.entry((loss.place, loss.netns, loss.link)).or_insert((loss, 0.0)).1 += loss.packets / seconds;
        }
        let per_second = |(loss, packets): (&Loss, f64)| {
            let share = sent_per_s.filter(|_| loss.share.is_some()).map(|sent| (packets / sent).min(1.0));
            Loss { packets, share, ..loss.clone() }
        };
        let mut all: Vec<Loss> = places.into_values().map(per_second).collect();
        all.sort_by(|one, other| other.packets.total_cmp(&one.packets));
        all
    }

    fn held(&self, metrics: &Metrics) -> Vec<HoldingQdisc> {
        let mut all: BTreeMap<(LinkKey, u32), Vec<&HeldTick>> = BTreeMap::new();
        for held in self.ticks.iter().flat_map(|tick| &tick.held) {
            all.entry((held.link, held.handle)).or_default().push(held);
        }
        let told = |((link, _), ticks): ((LinkKey, u32), Vec<&HeldTick>)| {
            let link = metrics.link(link).map_or("a link", |link| link.facts.name.as_str());
            let sum = |of: fn(&HeldTick) -> f64| ticks.iter().map(|tick| of(tick)).sum::<f64>();
            HoldingQdisc {
                name: format!("{} on {link}", ticks[0].kind),
                bits_per_s: sum(|tick| tick.bytes) * 8.0 / sum(|tick| tick.seconds),
                times: sum(|tick| tick.overlimits) / sum(|tick| tick.packets).max(1.0),
                waits: sum(|tick| f64::from(u8::from(tick.waits))) / ticks.len() as f64,
            }
        };
        all.into_iter().map(told).collect()
    }

    fn quota(&self) -> Option<QuotaUse> {
        let known: Vec<_> = self.ticks.iter().filter_map(|tick| tick.quota).collect();
        let (periods, throttled) =
            known.iter().fold((0.0, 0.0), |(all, of), (_, periods, throttled)| (all + periods, of + throttled));
        let cores = known.last()?.0;
        (periods > 0.0).then(|| QuotaUse { cores, throttled: (throttled / periods).min(1.0) })
    }

    /// The link that comes nearest to its speed.
    fn claim(&self, metrics: &Metrics) -> Option<RealSpeed> {
        let here = self.ticks.back()?.claims.iter();
        let told = here.filter_map(|&(key, sent, _)| {
            let link = metrics.link(key)?;
            let of = |tick: &Tick| tick.claims.iter().find(|one| (one.0, one.1) == (key, sent)).map(|one| one.2);
            let speed = f64::from(link.facts.speed_mbps?) * 1e6;
            Some(RealSpeed { name: link.facts.name.clone(), bits_per_s: self.mean(of)?, speed_bits_per_s: speed })
        });
        told.max_by(|one, other| {
            (one.bits_per_s / one.speed_bits_per_s).total_cmp(&(other.bits_per_s / other.speed_bits_per_s))
        })
    }
}

/// Cores that handle the test's packets whatever core the sender is on; asked only where some core has much softirq to do.
fn handling(metrics: &Metrics, cores: &[Core]) -> CoreSet {
    if !cores.iter().any(|core| core.softirq >= SOFTIRQ) {
        return CoreSet::new();
    }
    let paths = carrying(metrics).filter_map(|connection| paths::of(metrics, connection));
    let softirqs = paths.flat_map(|path| path.hops).filter_map(|hop| hop.softirq.ok());
    let elsewhere = softirqs.filter(|softirq| softirq.by != SoftirqBy::Sender);
    elsewhere.flat_map(|one| one.cores.iter().collect::<Vec<_>>()).collect()
}

/// What the clients were asked for, payload in bits/s; none where one of them sends as fast as it goes.
fn asked(metrics: &Metrics) -> Option<f64> {
    let clients = metrics.benchmarks.iter().filter(|one| one.side == Side::Client && one.runs());
    let mut all = clients.map(|client| {
        let unasked = match (client.proto?, client.program) {
            (Proto::Udp, Program::Iperf3 | Program::Iperf) => Some(1_000_000),
            (Proto::Tcp, _) => None,
        };
        let rate = client.asked_bits_per_s.or(unasked).filter(|&rate| rate > 0)?;
        let ways = if client.direction == Some(Direction::Both) { 2.0 } else { 1.0 };
        Some(rate as f64 * f64::from(client.streams?) * ways)
    });
    let first = all.next()??;
    all.try_fold(first, |sum, one| Some(sum + one?))
}

/// The name of the program that sends.
fn sender(metrics: &Metrics) -> Option<&str> {
    let pid = carrying(metrics).find_map(|connection| connection.from.pid)?;
    let thread = metrics.benchmark().find(|thread| thread.sample.id.pid == pid)?;
    Some(&thread.sample.name)
}
