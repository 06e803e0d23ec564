//! A network under load, watched: one load after the other, its threads pinned where that is asked for, and what the machine does meanwhile.

use super::ComparePlan;
use super::load_programs::RunningLoad;
use super::progress::Desk;
use crate::app::phase_schedule::{PhaseSchedule, Rule, Wish};
use crate::app::signals::wait;
use crate::derive::comparison::{LoadFigures, LoadWindow};
use crate::derive::{Derivation, Metrics};
use crate::effect::{Kernel, PinController};
use crate::networks::PrivateNetwork;
use crate::sample::{ClaimedLink, Item, Load, Measurement, ThreadOnCore, Word};
use crate::source::feed::{Feed, Next};
use crate::source::{SourceError, now_ns};
use std::time::{Duration, Instant};

/// How long the busy threads of a load are looked at before they are pinned, ns: all of them are busy by then.
const LOOK_NS: u64 = 400_000_000;
/// How long the machine is looked at before the loads of a visit.
const REST: Duration = Duration::from_millis(500);
/// How much longer than it should a load may take.
const PATIENCE: Duration = Duration::from_secs(15);
/// What a program needs from its start to its first byte, and what its clock may be off, ns: left out at both ends of what is added up.
const EDGE_NS: u64 = 150_000_000;

/// A network that is being measured.
pub(super) struct RunningVisit<'a> {
    plan: &'a ComparePlan,
    network: &'a PrivateNetwork,
    feed: Feed,
    derivation: Derivation,
    controller: PinController,
    /// The links that the traffic crosses, as far as they were seen.
    pub(super) links: Vec<ClaimedLink>,
    /// Cores online and NUMA nodes, as of the newest sample.
    pub(super) size: (usize, u32),
    /// How iperf3 calls itself.
    pub(super) iperf3: Option<String>,
}

/// What is to be pinned during a measurement, and what became of it.
struct Pinning {
    schedule: PhaseSchedule<'static>,
    /// When the masks were set.
    done_ns: Option<u64>,
    pins: Vec<ThreadOnCore>,
    /// Why nothing was pinned, as it was last.
    why: Option<String>,
}

impl<'a> RunningVisit<'a> {
    /// Begins to watch a network.
    pub(super) fn start(
        plan: &'a ComparePlan,
        network: &'a PrivateNetwork,
        open: &dyn Fn(&[u32]) -> Result<Feed, SourceError>,
    ) -> Result<Self, SourceError> {
        // Its journal goes with the network, and with the network go the threads that are pinned.
        let controller = PinController::new(Box::new(Kernel), Some(network.state_folder()), !plan.pins);
        Ok(Self {
            plan,
            network,
            feed: open(&network.holders())?,
            derivation: Derivation::of_everything(),
            controller,
            links: Vec::new(),
            size: (0, 0),
            iperf3: None,
        })
    }

    /// Runs a load; none where an end was asked for before it was over.
    pub(super) fn measure(&mut self, round: u32, load: Load, pinned: bool, desk: &mut dyn Desk) -> Option<Measurement> {
        let begun = Measurement::begun(round, load, pinned);
        let mut running = match RunningLoad::start(self.network, load, self.plan) {
            Ok(running) => running,
            Err(why) => return Some(Measurement { missing: Some(why), ..begun }),
        };
        let began_ns = now_ns();
        let mut window = LoadWindow::default();
        let mut pinning = Pinning::new(if pinned { Rule::Pinned(LOOK_NS) } else { Rule::Never });
        let ended = self.follow(&mut running, (&mut window, began_ns), &mut pinning, desk);
        if desk.is_over() {
            return None;
        }
        let result = match ended {
            Ok(()) => running.result(),
            Err(why) => Err(why),
        };
        let sender = running.sender.to_owned();
        drop(running);
        // The threads are gone; what is left to be done is to forget them.
        let restored = self.controller.restore();
        restored.events.into_iter().for_each(|event| drop(self.derivation.advance(Item::Event(event))));
        let result = match result {
            Ok(result) => result,
            Err(why) => return Some(Measurement { missing: Some(why), sender, ..begun }),
        };
        self.iperf3 = self.iperf3.take().or(result.version);
        let warm_ns = began_ns + u64::try_from(self.plan.warm_up.as_nanos()).unwrap_or(u64::MAX);
        let missing = pinned.then(|| pinning.failure(warm_ns)).flatten();
        let length_ns = u64::try_from(self.plan.length.as_nanos()).unwrap_or(u64::MAX);
        let figures = window.figures(warm_ns + EDGE_NS, warm_ns + length_ns.saturating_sub(EDGE_NS));
        let LoadFigures { bits_per_s, cv, moves_per_s, busy_cores, softirq_cores } = figures;
        let is_bulk = matches!(load, Load::Tcp | Load::Tcp4);
        Some(Measurement {
            sender,
            seconds: Some(result.seconds),
            rate: Some(result.rate).filter(|_| missing.is_none()),
            lost_share: result.lost_share,
            seen_bits_per_s: bits_per_s.filter(|_| is_bulk),
            cv: cv.filter(|_| is_bulk),
            moves_per_s,
            busy_cores,
            softirq_cores,
            pins: pinning.pins,
            missing,
            ..begun
        })
    }

    /// What other programs use while nothing is sent, cores' worth; none where that is not known.
    pub(super) fn rest(&mut self, desk: &mut dyn Desk) -> Option<f64> {
        let mut window = LoadWindow::default();
        let deadline = Instant::now() + REST;
        loop {
            self.hear(desk, |_, metrics| window.observe(metrics)).ok()?;
            let left = deadline.saturating_duration_since(Instant::now());
            if desk.is_over() || left.is_zero() {
                return window.figures(0, u64::MAX).busy_cores;
            }
            let mut fds = vec![self.feed.ready()];
            fds.extend(desk.fds());
            wait(&fds, Some(left));
        }
    }

    /// Takes what has come from the sampler, and hands each sample's figures on.
    fn hear(&mut self, desk: &mut dyn Desk, mut each: impl FnMut(&mut Self, &Metrics)) -> Result<(), String> {
        loop {
            let item = match self.feed.next().map_err(|error| error.to_string())? {
                Next::Item(item) => item,
                Next::Waiting => return Ok(()),
                Next::End => return Err("the sampler has stopped".to_owned()),
            };
            if let Some(metrics) = self.take(item) {
                each(self, &metrics);
                desk.sees(metrics, self.derivation.history());
            }
        }
    }

    /// Until the sender has reported, it takes too long, or an end is asked for.
    fn follow(
        &mut self,
        running: &mut RunningLoad,
        (window, began_ns): (&mut LoadWindow, u64),
        pinning: &mut Pinning,
        desk: &mut dyn Desk,
    ) -> Result<(), String> {
        let deadline = Instant::now() + self.plan.warm_up + self.plan.length + PATIENCE;
        loop {
            self.hear(desk, |visit, metrics| {
                window.observe(metrics);
                if metrics.machine.at_ns >= began_ns {
                    visit.pin(metrics, pinning);
                }
            })?;
            if desk.is_over() {
                return Ok(());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let late = PATIENCE.as_secs();
                return Err(format!("the sender has not reported {late} s after its end: does anything arrive?"));
            }
            let is_readable = {
                let mut fds = vec![running.fd(), self.feed.ready()];
                fds.extend(desk.fds());
                wait(&fds, Some(left))[0]
            };
            if is_readable && running.receive() {
                return Ok(());
            }
        }
    }

    fn take(&mut self, item: Item) -> Option<Metrics> {
        let metrics = self.derivation.advance(item)?;
        self.size = (metrics.machine.facts.topology.online().len(), metrics.machine.facts.topology.nodes);
        let longest = metrics.subject.paths.iter().max_by_key(|path| path.hops.len());
        if let Some(path) = longest.filter(|path| path.hops.len() > self.links.len()) {
            let link = |hop: &crate::sample::Hop| {
                let link = metrics.machine.link(hop.link)?;
                Some(ClaimedLink {
                    name: link.facts.name.clone(),
                    kind: link.facts.kind.word().to_owned(),
                    claim_mbps: link.facts.speed_mbps,
                    basis: link.basis.word().to_owned(),
                })
            };
            self.links = path.hops.iter().filter_map(link).collect();
        }
        Some(metrics)
    }

    fn pin(&mut self, metrics: &Metrics, pinning: &mut Pinning) {
        match pinning.schedule.next(metrics) {
            Some(Wish::Refuse(why)) => pinning.why = Some(why),
            Some(Wish::Pin(asked)) => {
                pinning.schedule.stop();
                let outcome = self.controller.pin(&asked);
                pinning.why = outcome.lines.iter().find(|line| line.warning).map(|line| line.text.clone());
                pinning.done_ns = Some(now_ns());
                outcome.events.into_iter().for_each(|event| drop(self.derivation.advance(Item::Event(event))));
                let on = |request: &crate::effect::PinRequest| {
                    Some(ThreadOnCore { thread: request.label.clone(), core: request.cores.first()? })
                };
                pinning.pins = asked.iter().filter_map(on).collect();
            }
            _ => {}
        }
    }
}

impl Pinning {
    fn new(rule: Rule) -> Self {
        Self { schedule: PhaseSchedule::new(rule, &[]), done_ns: None, pins: Vec::new(), why: None }
    }

    /// Why what was measured is not of pinned threads; none where it is.
    fn failure(&self, warm_ns: u64) -> Option<String> {
        match (self.done_ns, &self.why) {
            (_, Some(why)) => Some(format!("nothing was pinned: {why}")),
            (None, None) => Some("nothing was pinned: no thread of the load was busy".to_owned()),
            (Some(done_ns), None) if done_ns > warm_ns => {
                Some("the threads were pinned after the warm-up: use a longer --warm-up".to_owned())
            }
            _ => None,
        }
    }
}
