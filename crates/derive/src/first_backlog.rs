//! Where the packets of a test first meet a backlog after their sender. What one core puts there stays in order; what comes from
//! two, as from a sender's `sendmsg` on its core and from acknowledgements that arrive on the receiver's, goes into a backlog
//! for each, and overtakes itself. It is the place where one `rps_cpus` puts it in order again.

use super::TestMetrics;
use super::flow::{Connection, DisorderRates};
use super::links::LinkMetrics;
use super::paths::{self, FlowAtHop, softirq};
use vnettop_sample::{CoreSet, FlowPath, HopWay, Kind, LinkKey, Proto, Steering};

/// Segments sent again are worth a word from so many a second on.
const LEAST_PER_S: f64 = 1.0;
/// Of segments sent again for nothing at least this share is noticed as such: by DSACKs, or as overtaken.
const NOTICED: f64 = 0.01;

/// The first link of a test's paths that receives, with the connections that go through it.
#[derive(Debug, Clone)]
pub(crate) struct FirstBacklog<'a> {
    pub link: &'a LinkMetrics,
    /// How its queues are set.
    pub steering: &'a Steering,
    /// The connections that carry data.
    pub connections: Vec<&'a Connection>,
    /// Cores that the connections' packets are handled on there, as counted; none where nothing was.
    pub cores: Option<CoreSet>,
    /// How often their packets change core there, a second, all connections together; none where that was not counted.
    pub switches_per_s: Option<f64>,
    /// What their senders noticed, all connections together; none where no kernel tells.
    pub disorder: Option<DisorderRates>,
}

impl FirstBacklog<'_> {
    /// Cores of the senders' threads and of the receivers'.
    pub fn ends(&self, metrics: &TestMetrics) -> [CoreSet; 2] {
        let of = |pid: fn(&Connection) -> Option<u32>| {
            let pids = self.connections.iter().filter_map(|one| pid(one));
            pids.flat_map(|pid| softirq::cores_of(metrics, pid).iter().collect::<Vec<_>>()).collect::<CoreSet>()
        };
        [of(|one| one.from.pid), of(|one| one.to.pid)]
    }

    /// All of them are TCP.
    pub fn is_tcp(&self) -> bool {
        self.connections.iter().all(|one| one.proto() == Proto::Tcp)
    }

    /// Where its packets go is set already: by RPS, RFS, or threads of NAPI.
    pub fn is_steered(&self) -> bool {
        let Steering { rps, rfs, threaded, napi, .. } = self.steering;
        rps.iter().any(|mask| !mask.is_empty()) || *rfs || *threaded || !napi.is_empty()
    }

    /// Nothing but masks of RPS can say where its packets go.
    pub fn is_by_masks(&self) -> bool {
        let Steering { rfs, threaded, napi, .. } = self.steering;
        !*rfs && !*threaded && napi.is_empty()
    }

    /// TCP sends again what was not lost, because packets overtook each other here: they were counted on changing cores, or the
    /// ends are on different ones where nothing could be counted.
    pub fn is_disordered(&self, metrics: &TestMetrics) -> bool {
        // Beyond this machine anything may have happened to its packets.
        let are_here = self.connections.iter().all(|one| one.to.pid.is_some());
        let Some(disorder) = self.disorder.filter(|_| self.is_tcp() && are_here) else { return false };
        let noticed = disorder.dsack_dups_per_s + disorder.reord_seen_per_s;
        let is_again = disorder.retransmits_per_s >= LEAST_PER_S && noticed >= NOTICED * disorder.retransmits_per_s;
        let changes = match self.switches_per_s {
            Some(switches_per_s) => switches_per_s >= LEAST_PER_S,
            None => self.meets_two_backlogs(metrics),
        };
        is_again && changes && !is_lossy(metrics)
    }

    /// Nothing puts its packets onto one core, and its ends are on different ones.
    pub fn meets_two_backlogs(&self, metrics: &TestMetrics) -> bool {
        let [senders, receivers] = self.ends(metrics);
        !self.is_steered() && !senders.is_empty() && !receivers.is_empty() && senders != receivers
    }
}

/// Nothing is sent again that was noticed as overtaken: no place has to be looked for.
pub(crate) fn is_quiet(metrics: &TestMetrics) -> bool {
    let disorders = metrics.flow.connections.iter().filter_map(|one| one.tcp()?.disorder);
    disorders.into_iter().all(|one| one.retransmits_per_s <= 0.0 || one.dsack_dups_per_s + one.reord_seen_per_s <= 0.0)
}

/// Packets of the test are lost, so that what is sent again needs no other cause.
fn is_lossy(metrics: &TestMetrics) -> bool {
    metrics.losses.per_second(metrics.losses.packets()) >= LEAST_PER_S
}

/// The first backlog of each path that carries data, each link once. A link that hardware or a program feeds has none: one core
/// interrupts, or one thread writes. No more is one where only the link below it chooses a core.
pub(crate) fn all(metrics: &TestMetrics) -> Vec<FirstBacklog<'_>> {
    let mut all: Vec<FirstBacklog<'_>> = Vec::new();
    for connection in metrics.flow.connections.iter().filter(|one| one.carries && !one.relayed) {
        let Some(path) = paths::found(&metrics.paths, connection) else { continue };
        let Some((key, at)) = first(metrics, path) else { continue };
        let (cores, switches_per_s) = (at.as_ref().map(FlowAtHop::cores), at.map(|at| at.switches_per_s));
        let disorder = connection.tcp().and_then(|tcp| tcp.disorder);
        if let Some(one) = all.iter_mut().find(|one| one.link.facts.key() == key) {
            one.connections.push(connection);
            one.disorder = sum(one.disorder, disorder);
            // Of several, those count that were counted.
            one.switches_per_s =
                [one.switches_per_s, switches_per_s].into_iter().flatten().reduce(|all, more| all + more);
            one.cores = [one.cores.take(), cores]
                .into_iter()
                .flatten()
                .reduce(|all, more| all.iter().chain(more.iter()).collect());
            continue;
        }
        let known = metrics.machine.link(key).zip(softirq::steering(metrics, key));
        let Some((link, steering)) = known.filter(|(_, steering)| !steering.rps.is_empty()) else { continue };
        all.push(FirstBacklog { link, steering, connections: vec![connection], cores, switches_per_s, disorder });
    }
    all
}

fn first(metrics: &TestMetrics, path: &FlowPath) -> Option<(LinkKey, Option<FlowAtHop>)> {
    let hop = path.hops.iter().find(|hop| hop.way == HopWay::Received)?;
    let kind = &metrics.machine.link(hop.link)?.facts.kind;
    let has_one = !matches!(
        kind,
        Kind::Physical
            | Kind::Virtio
            | Kind::Tun
            | Kind::Tap
            | Kind::Vlan
            | Kind::Macvlan
            | Kind::Macvtap
            | Kind::Ipvlan
    );
    has_one.then(|| (hop.link, paths::flow_at(metrics, path, hop)))
}

fn sum(one: Option<DisorderRates>, other: Option<DisorderRates>) -> Option<DisorderRates> {
    let (Some(one), Some(other)) = (one, other) else { return one.or(other) };
    Some(DisorderRates {
        over_s: one.over_s.min(other.over_s),
        retransmits_per_s: one.retransmits_per_s + other.retransmits_per_s,
        dsack_dups_per_s: one.dsack_dups_per_s + other.dsack_dups_per_s,
        reord_seen_per_s: one.reord_seen_per_s + other.reord_seen_per_s,
        out_of_order_per_s: one.out_of_order_per_s.zip(other.out_of_order_per_s).map(|(one, other)| one + other),
    })
}
