//! A network under load, watched: one load after the other, its threads pinned and its packets steered where that is asked for, and what
//! the machine does meanwhile.

use super::ComparePlan;
use super::load_programs::RunningLoad;
use super::progress::Desk;
use super::round_trips::{Answerer, IDLE};
use super::treated::Treated;
use crate::app::signals::wait;
use crate::derive::comparison::{LoadFigures, LoadWindow};
use crate::derive::{Derivation, Metrics};
use crate::effect::{Kernel, PinController};
use crate::networks::PrivateNetwork;
use crate::sample::{ClaimedLink, Item, Load, Measurement, RoundTrips, Treatment, Word};
use crate::source::feed::{Feed, Next};
use crate::source::{SourceError, now_ns};
use std::time::{Duration, Instant};

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
    answerer: Option<Answerer>,
    /// What was tried in vain, because there is nothing to steer: another round would find the same.
    pub(super) unsteerable: Vec<(Load, Treatment)>,
}

impl<'a> RunningVisit<'a> {
    /// Begins to watch a network.
    pub(super) fn start(
        plan: &'a ComparePlan,
        network: &'a PrivateNetwork,
        open: &dyn Fn(&[u32]) -> Result<Feed, SourceError>,
    ) -> Result<Self, SourceError> {
        let changes = plan.pins || plan.steers;
        // Its journal goes with the network, and with the network go the threads that are pinned.
        let controller = PinController::new(Box::new(Kernel), Some(network.state_folder()), !changes);
        Ok(Self {
            plan,
            network,
            feed: open(&network.holders())?,
            derivation: Derivation::of_everything(),
            controller,
            answerer: Answerer::start(network),
            links: Vec::new(),
            size: (0, 0),
            iperf3: None,
            unsteerable: Vec::new(),
        })
    }

    /// Runs a load; none where an end was asked for before it was over.
    pub(super) fn measure(
        &mut self,
        (round, load, treatment): (u32, Load, Treatment),
        desk: &mut dyn Desk,
    ) -> Option<Measurement> {
        let begun = Measurement::begun(round, load, treatment);
        if let Some(why) = self.is_still_steered(treatment) {
            return Some(Measurement { missing: Some(why), ..begun });
        }
        let mut running = match RunningLoad::start(self.network, load, self.plan) {
            Ok(running) => running,
            Err(why) => return Some(Measurement { missing: Some(why), ..begun }),
        };
        // One that asks and waits for answers is that load already.
        let beside = self.answerer.as_ref().filter(|_| load != Load::Rr);
        let asking = beside.and_then(|one| one.ask(self.network, (self.plan.warm_up, self.plan.length)));
        let began_ns = now_ns();
        let warm_ns = began_ns + ns(self.plan.warm_up);
        let mut window = LoadWindow::default();
        let mut treated = Treated::new(treatment, warm_ns);
        let ended = self.follow(&mut running, (&mut window, began_ns), &mut treated, desk);
        if desk.is_over() {
            return None;
        }
        let result = match ended {
            Ok(()) => running.result(),
            Err(why) => Err(why),
        };
        let sender = running.sender.to_owned();
        let round_trips = asking.and_then(super::round_trips::Asking::answers);
        drop(running);
        // The threads are gone; what is left to be done is to forget them, and to put the links' settings back.
        let restored = self.controller.restore();
        restored.events.into_iter().for_each(|event| drop(self.derivation.advance(Item::Event(event))));
        if treated.is_unsteerable() {
            self.unsteerable.push((load, treatment));
        }
        let result = match result {
            Ok(result) => result,
            Err(why) => return Some(Measurement { missing: Some(why), sender, ..begun }),
        };
        self.iperf3 = self.iperf3.take().or(result.version);
        let missing = treated.failure();
        let length_ns = ns(self.plan.length);
        let figures = window.figures(warm_ns + EDGE_NS, warm_ns + length_ns.saturating_sub(EDGE_NS));
        let LoadFigures { bits_per_s, cv, moves_per_s, busy_cores, softirq_cores } = figures;
        let is_bulk = load.is_bulk();
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
            round_trips: round_trips.filter(|_| missing.is_none()),
            retransmits: window.retransmits(warm_ns, warm_ns + length_ns),
            pins: treated.pins,
            steers: treated.steers,
            missing,
            ..begun
        })
    }

    /// Why a measurement without steers would be worth nothing: those of the one before stand.
    fn is_still_steered(&self, treatment: Treatment) -> Option<String> {
        let stand = !treatment.steers() && self.controller.steers() > 0;
        stand.then(|| "a link's setting of the previous measurement could not be restored".to_owned())
    }

    /// What other programs use while nothing is sent, cores' worth; none where that is not known.
    pub(super) fn rest(&mut self, desk: &mut dyn Desk) -> Option<f64> {
        let mut window = LoadWindow::default();
        self.wait_for(REST, desk, |metrics| window.observe(metrics))?;
        window.figures(0, u64::MAX).busy_cores
    }

    /// Round trips while nothing else is sent; `None` where nothing answers.
    pub(super) fn idle_round_trips(&mut self, desk: &mut dyn Desk) -> Option<RoundTrips> {
        let asking = self.answerer.as_ref()?.ask(self.network, (Duration::ZERO, IDLE))?;
        self.wait_for(IDLE, desk, |_| {})?;
        asking.answers()
    }

    /// Takes samples for so long, or until an end is asked for; `None` where there are none any more.
    fn wait_for(&mut self, time: Duration, desk: &mut dyn Desk, mut each: impl FnMut(&Metrics)) -> Option<()> {
        let deadline = Instant::now() + time;
        loop {
            self.hear(desk, |_, metrics| each(metrics)).ok()?;
            let left = deadline.saturating_duration_since(Instant::now());
            if desk.is_over() || left.is_zero() {
                return Some(());
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
        treated: &mut Treated,
        desk: &mut dyn Desk,
    ) -> Result<(), String> {
        let deadline = Instant::now() + self.plan.warm_up + self.plan.length + PATIENCE;
        loop {
            self.hear(desk, |visit, metrics| {
                window.observe(metrics);
                if metrics.machine.at_ns >= began_ns {
                    let events = treated.next(metrics, &mut visit.controller);
                    for event in events {
                        drop(visit.derivation.advance(Item::Event(event)));
                    }
                }
            })?;
            if desk.is_over() {
                return Ok(());
            }
            if let Some(why) = treated.in_vain() {
                return Err(why);
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
}

fn ns(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}
