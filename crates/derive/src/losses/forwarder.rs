//! What goes into a guest on the path and does not come out. No counter has these packets: they are what the link before it gave
//! minus what the link behind it was given, each to the packet. What may still be in the guest is no loss: it counts once more is
//! missing for a while than its queues can hold, or once the flows are gone. Only datagrams: TCP's segments are cut differently on both sides.

use super::counted::{SampleStep, rise};
use super::{Loss, LossPlace};
use crate::links::passed_packets;
use crate::share::share;
use crate::workers::sides;
use std::collections::{BTreeMap, VecDeque};
use vnettop_sample::{FlowPath, FlowSample, Hop, HopWay, LinkCounters, LinkKey, Proto, row_of};

/// How long a packet may be in a guest, ns.
const KEPT_NS: u64 = 300_000_000;
/// Packets a second that a guest takes for itself: ARP, multicast.
const OWN_PER_S: f64 = 3.0;
/// How many packets may stand in a guest's queues all the time: so many as come in this time, s, and no more and no fewer than these.
const STANDING_S: f64 = 0.1;
const STANDING: (f64, f64) = (32.0, 2048.0);
/// More than so much beside the flows' own packets makes what is missing nobody's: share of them, and packets.
const OTHERS: f64 = 0.1;
const OTHERS_LEAST: f64 = 100.0;
/// As much as packets may grow or shrink on their way and still be the same ones, share of their length.
const SAME_LENGTH: f64 = 0.2;

/// What went into each guest and came out, by its two links.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Forwarders(BTreeMap<(LinkKey, LinkKey), Balance>);

#[derive(Debug, Clone, PartialEq)]
struct Balance {
    name: String,
    hops: [Hop; 2],
    /// When a path last went through it.
    seen_at_ns: u64,
    /// Packets that went in and have not come out, as of the last moments.
    missing: VecDeque<(u64, f64)>,
    now: f64,
    /// The most that went in, packets/s.
    quickest: f64,
    reported: f64,
    reported_at_ns: u64,
}

impl Forwarders {
    /// Adds these losses, named after the guest, with their share of what went in.
    pub fn add(&mut self, step: &SampleStep<'_>, paths: &[FlowPath], into: &mut Vec<Loss>) {
        let now_ns = step.next.at_ns;
        for path in paths.iter().filter(|path| path.proto == Proto::Udp && !step.next.flows.is_empty()) {
            for carrier in &path.carriers {
                let Some(links) = sides(path, carrier) else { continue };
                let fresh = || Balance::new(&carrier.name, [&path.hops[carrier.at - 1], &path.hops[carrier.at]], step);
                self.0.entry(links).or_insert_with(fresh).seen_at_ns = now_ns;
            }
        }
        self.0.retain(|links, balance| {
            // What is still in the guest when the flows are gone comes out soon, or never.
            let ends = now_ns.saturating_sub(balance.seen_at_ns) >= KEPT_NS;
            let own = own_packets(step, paths, *links);
            let Some([went_in, came_out]) = passed(step, &balance.hops) else { return !ends };
            // Others' packets may be the guest's own: what is missing is no loss of these flows then.
            if own.is_some_and(|own| went_in > own * (1.0 + OTHERS) + OTHERS_LEAST) {
                return !ends;
            }
            balance.quickest = balance.quickest.max(went_in / step.seconds);
            let packets = balance.lost(now_ns, went_in - came_out, ends);
            if packets > 0.0 {
                let loss = Loss::on_link(LossPlace::Forwarder, links.0, balance.name.clone(), packets);
                into.push(Loss { share: share(packets, went_in), ..loss });
            }
            !ends
        });
    }
}

impl Balance {
    fn new(name: &str, hops: [&Hop; 2], step: &SampleStep<'_>) -> Self {
        let (name, hops, reported_at_ns) = (name.to_owned(), hops.map(Hop::clone), step.previous.at_ns);
        let missing = VecDeque::from([(reported_at_ns, 0.0)]);
        Self { name, hops, seen_at_ns: 0, missing, now: 0.0, quickest: 0.0, reported: 0.0, reported_at_ns }
    }

    /// What has been lost since this was asked last.
    fn lost(&mut self, at_ns: u64, missing: f64, ends: bool) -> f64 {
        // What was in it before it was looked at comes out too.
        self.now = (self.now + missing).max(0.0);
        self.missing.push_back((at_ns, self.now));
        self.missing.retain(|(then_ns, _)| then_ns + KEPT_NS > at_ns);
        let least = self.missing.iter().map(|(_, missing)| *missing).fold(f64::INFINITY, f64::min);
        let standing = (self.quickest * STANDING_S).clamp(STANDING.0, STANDING.1);
        let stays = if ends { self.now } else { least - standing };
        let new = stays - self.reported;
        let own = OWN_PER_S * at_ns.saturating_sub(self.reported_at_ns) as f64 / 1e9;
        if new < own.max(1.0) {
            return 0.0;
        }
        (self.reported, self.reported_at_ns) = (stays, at_ns);
        new
    }
}

/// Datagrams that the flows through this guest have sent between the samples; `None` where that is not known of each.
fn own_packets(step: &SampleStep<'_>, paths: &[FlowPath], links: (LinkKey, LinkKey)) -> Option<f64> {
    let through = |path: &&FlowPath| path.carriers.iter().any(|one| sides(path, one) == Some(links));
    let mut sum = 0.0;
    for path in paths.iter().filter(|path| path.proto == Proto::Udp).filter(through) {
        let is_its =
            |flow: &&FlowSample| flow.proto == Proto::Udp && flow.netns == path.netns && flow.local == path.from;
        let flow = step.next.flows.iter().find(is_its)?;
        let before = row_of(&step.previous.flows, &flow.key(), FlowSample::key)?;
        sum += rise(before.udp?.counts?.sent, flow.udp?.counts?.sent)?;
    }
    (sum > 0.0).then_some(sum)
}

/// Packets that went in and came out between the samples; `None` where that is not known, or they were put together or cut.
fn passed(step: &SampleStep<'_>, hops: &[Hop; 2]) -> Option<[f64; 2]> {
    let [went_in, came_out] = hops.each_ref().map(|hop| {
        let kind = &step.link(hop.link)?.facts.kind;
        let row = |counters| row_of(counters, &hop.link, LinkCounters::key);
        let (before, now) = (row(&step.previous.counters)?, row(&step.next.counters)?);
        let packets = |row| passed_packets(kind, row, hop.way);
        Some((rise(packets(before)?, packets(now)?)?, mean_length(before, now, hop.way)))
    });
    let ((packets_in, length_in), (packets_out, length_out)) = (went_in?, came_out?);
    let is_same = |one: f64, other: f64| (other / one - 1.0).abs() <= SAME_LENGTH;
    let is_uncut = length_in.zip(length_out).is_none_or(|(one, other)| is_same(one, other));
    is_uncut.then_some([packets_in, packets_out])
}

/// Mean bytes of the packets that a link counted; `None` where there were none.
fn mean_length(before: &LinkCounters, now: &LinkCounters, way: HopWay) -> Option<f64> {
    let (packets, bytes) = match way {
        HopWay::Sent => (rise(before.tx_packets, now.tx_packets)?, rise(before.tx_bytes, now.tx_bytes)?),
        _ => (rise(before.rx_packets, now.rx_packets)?, rise(before.rx_bytes, now.rx_bytes)?),
    };
    (packets > 0.0).then(|| bytes / packets)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ROUTER, after, before, key, link, lost, metrics, said};
    use super::*;
    use crate::Metrics;
    use std::sync::Arc;
    use vnettop_sample::{Carrier, CarrierKind, Kind, LinkFacts, Sample};

    /// A guest holds r0 and r1: so many packets went in and came out in a second.
    fn through(went_in: u64, came_out: u64, change: impl Fn(&mut Sample)) -> Metrics {
        let guest = |sample: &mut Sample| {
            let links = sample.facts.links.iter().map(|link| match link.netns {
                ROUTER => Arc::new(LinkFacts { peer: None, kind: Kind::Tap, ..(**link).clone() }),
                _ => Arc::clone(link),
            });
            sample.facts_mut().links = Arc::new(links.collect());
            let path = &mut Arc::make_mut(&mut sample.facts_mut().paths)[0];
            (path.hops[1].way, path.hops[2].way) = (HopWay::Sent, HopWay::Received);
            path.carriers =
                vec![Carrier { pid: 7, name: "the guest web1".to_owned(), kind: CarrierKind::Guest, at: 2 }];
            change(sample);
        };
        let mut first = before();
        guest(&mut first);
        let then = after(|sample| {
            let into = link(sample, key(ROUTER, 2));
            (into.tx_packets, into.tx_bytes) = (went_in, went_in * 100);
            let out = link(sample, key(ROUTER, 3));
            (out.rx_packets, out.rx_bytes) = (came_out, came_out * 100);
            guest(sample);
        });
        metrics(first, then)
    }

    #[test]
    fn what_goes_into_a_guest_and_does_not_come_out_is_lost_there() {
        let reported = through(1000, 600, |_| {});
        assert_eq!(
            lost(&reported),
            [("forwarder", Some("the guest web1".to_owned()), 300.0)],
            "a hundred may be in it"
        );
        let text = said(&reported);
        assert!(text.contains("300 packets/s lost in the guest web1"), "{text}");
    }

    #[test]
    fn what_the_guest_takes_for_itself_or_cuts_differently_is_none() {
        assert_eq!(lost(&through(1000, 998, |_| {})), [], "ARP");
        let cut = |sample: &mut Sample| link(sample, key(ROUTER, 3)).rx_bytes = 1_000_000;
        assert_eq!(lost(&through(1000, 600, cut)), [], "the guest puts them together");
        let tcp = |sample: &mut Sample| Arc::make_mut(&mut sample.facts_mut().paths)[0].proto = Proto::Tcp;
        assert_eq!(lost(&through(1000, 600, tcp)), [], "segments are no datagrams");
    }

    #[test]
    fn what_is_still_in_the_guest_is_late_and_not_lost() {
        let (sample, tick) = (before(), 100_000_000);
        let step = SampleStep { previous: &sample, next: &sample, links: &[], seconds: 0.1 };
        let hop = &sample.facts.paths[0].hops[0];
        let begun = || Balance {
            reported_at_ns: 0,
            missing: VecDeque::from([(0, 0.0)]),
            ..Balance::new("x", [hop, hop], &step)
        };
        assert!(begun().lost(tick, 500.0, false) < 0.5, "one look tells nothing");
        let mut balance = begun();
        let missing = [0.0, 500.0, -500.0, 0.0, 332.0, 0.0, 0.0, 0.0, 0.0];
        let lost: Vec<f64> =
            missing.iter().zip(1..).map(|(missing, at)| balance.lost(at * tick, *missing, false)).collect();
        assert!((lost.iter().sum::<f64>() - 300.0).abs() < 0.5, "only what stays away: {lost:?}");
        assert!((balance.lost(10 * tick, 50.0, true) - 82.0).abs() < 0.5, "at the end nothing is under way");
    }
}
