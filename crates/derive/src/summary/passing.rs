//! What passed the machine while no test ran: its rate over the whole recording, what was dropped of it, and what there is to say of it.

use super::columns::{MeanColumns, halve, spread};
use super::rate::{RateSummary, RateTrack};
use crate::busiest_link::LEAST_BITS_PER_S;
use crate::finding::FindingParts;
use crate::passing_traffic::{DropPlace, TrafficDrop};
use crate::{MachineMetrics, Mean, Metrics, PassingTraffic, TrafficState};
use std::sync::Arc;

/// Bins of its rate that are kept.
const MOST_BINS: usize = 600;
/// Places of drops that are kept: a machine has many links and cores.
const MOST_PLACES: usize = 64;
/// A mean share is known where it is for this part of the time.
const MOST_OF_IT: f64 = 0.9;

/// Traffic that no test is.
#[derive(Debug, Clone, PartialEq)]
pub struct PassingSummary {
    /// The links that it passes, as they were last: `ra → rb`.
    pub place: String,
    /// How it was last.
    pub state: TrafficState,
    /// What was to be said of it then.
    pub parts: FindingParts,
    /// When that was, monotonic ns.
    pub at_ns: u64,
    /// How long it was looked at, s: what a first sample shows is no rate yet.
    pub seconds: f64,
    /// Mean of the busier direction of its busier link, bits/s.
    pub bits_per_s: Option<f64>,
    /// The same in packets/s.
    pub packets_per_s: Option<f64>,
    /// It comes in there; else it goes out.
    pub comes_in: bool,
    /// Mean of what leaves by the other link, bits/s; none where there is none.
    pub other_bits_per_s: Option<f64>,
    /// The same by column of time.
    pub other_columns: Vec<Option<f64>>,
    /// Mean share that was dropped in the place that drops most; none where that is of packets that are not known.
    pub dropped_share: Option<f64>,
    /// Packets that were dropped in all places.
    pub dropped: f64,
    /// Packets dropped by column of time.
    pub dropped_columns: Vec<f64>,
    /// The places that dropped any, the one with most first; one that was set to another rate is another place.
    pub places: Vec<DroppingPlace>,
    /// Packets of places that there was no room for.
    pub dropped_elsewhere: f64,
    /// Its rate.
    pub rate: RateSummary,
}

/// A place that dropped packets.
#[derive(Debug, Clone, PartialEq)]
pub struct DroppingPlace {
    /// `tbf on rb`, `rb`, `the backlog of core 0`
    pub place: String,
    /// How many packets it dropped.
    pub packets: f64,
    /// The rate that it was set to meanwhile, bits/s; none of what has none, and where it is not known.
    pub rate_bits_per_s: Option<f64>,
    /// It is where the packets pass; else it may drop others.
    pub on_the_way: bool,
}

impl DroppingPlace {
    fn of(traffic: &PassingTraffic, drop: &TrafficDrop) -> Self {
        let rate_bits_per_s = match &drop.place {
            DropPlace::Qdisc(_, qdisc, _) => qdisc.rate_bits_per_s(),
            DropPlace::Link(..) | DropPlace::Backlog(_) => None,
        };
        Self { place: drop.place_word(), packets: 0.0, rate_bits_per_s, on_the_way: traffic.is_on_the_way(drop) }
    }
}

/// It comes or goes by another link, or the other way; or it is seen for the first time where it goes on, which the first readings of
/// qdiscs do not show: until then what they drop is not known.
fn is_elsewhere(last: &PassingTraffic, now: &PassingTraffic) -> bool {
    let other = |traffic: &PassingTraffic| traffic.other.as_ref().map(|other| other.link);
    let is_other = other(now).is_some_and(|now| other(last) != Some(now));
    is_other || (last.link, last.comes_in) != (now.link, now.comes_in)
}

/// What was seen of it at the same links.
#[derive(Debug, Clone)]
pub(crate) struct PassingTrack {
    /// The newest sample with any.
    last: Option<(Arc<PassingTraffic>, Arc<MachineMetrics>)>,
    rate: RateTrack,
    bits: Mean,
    packets: Mean,
    other: Mean,
    other_columns: MeanColumns,
    share: Mean,
    dropped: f64,
    columns: Vec<f64>,
    places: Vec<DroppingPlace>,
    elsewhere: f64,
    seconds: f64,
    /// Since when it passes there, monotonic ns: bins before it are of other traffic.
    since_ns: u64,
    until_ns: u64,
}

impl Default for PassingTrack {
    fn default() -> Self {
        Self {
            last: None,
            rate: RateTrack::new(MOST_BINS),
            bits: Mean::default(),
            packets: Mean::default(),
            other: Mean::default(),
            other_columns: MeanColumns::default(),
            share: Mean::default(),
            dropped: 0.0,
            columns: Vec::new(),
            places: Vec::new(),
            elsewhere: 0.0,
            seconds: 0.0,
            since_ns: 0,
            until_ns: 0,
        }
    }
}

impl PassingTrack {
    pub fn observe(&mut self, metrics: &Metrics, spans: &[(usize, f64)]) {
        let Some(traffic) = &metrics.traffic else { return };
        // It has stopped, and is shown for a while: that is no traffic to be summed up.
        if traffic.bits_per_s < LEAST_BITS_PER_S && self.last.is_some() {
            return;
        }
        if self.last.as_ref().is_some_and(|(last, _)| is_elsewhere(last, traffic)) {
            // Rates at other links are none of these.
            *self = Self { since_ns: self.until_ns, ..Self::default() };
        }
        self.until_ns = metrics.machine.at_ns;
        let elapsed_s = metrics.machine.elapsed_s.unwrap_or(0.0);
        self.seconds += elapsed_s;
        let bins = &traffic.timeline.bins;
        self.rate.follow(&bins[bins.partition_point(|bin| bin.from_ns < self.since_ns)..], None);
        self.bits.add(Some(traffic.bits_per_s), elapsed_s);
        self.packets.add(Some(traffic.packets_per_s), elapsed_s);
        let other = traffic.other.as_ref().and_then(|other| other.bits_per_s);
        self.other.add(other, elapsed_s);
        self.other_columns.add(other, spans);
        let share = match traffic.state() {
            TrafficState::Dropping(share) => share,
            _ => Some(traffic.dropped().unwrap_or(0.0)),
        };
        self.share.add(share, elapsed_s);
        let dropped = traffic.drops.iter().map(|drop| drop.packets_per_s).sum::<f64>() * elapsed_s;
        self.dropped += dropped;
        spread(&mut self.columns, dropped, spans);
        for drop in &traffic.drops {
            self.drops_at(DroppingPlace::of(traffic, drop), drop.packets_per_s * elapsed_s);
        }
        // Where it goes on is not seen in every sample: it is named as it was when it was.
        if traffic.other.is_some() || self.last.as_ref().is_none_or(|(last, _)| last.other.is_none()) {
            self.last = Some((Arc::clone(traffic), Arc::clone(&metrics.machine)));
        }
    }

    /// As it was last, with what it dropped in all.
    fn drops_at(&mut self, now: DroppingPlace, packets: f64) {
        let is_it = |one: &DroppingPlace| (&one.place, one.rate_bits_per_s) == (&now.place, now.rate_bits_per_s);
        match self.places.iter().position(is_it) {
            Some(at) => self.places[at] = DroppingPlace { packets: self.places[at].packets + packets, ..now },
            None => self.places.push(DroppingPlace { packets, ..now }),
        }
        if self.places.len() > MOST_PLACES {
            let least = (0..self.places.len() - 1)
                .min_by(|&one, &other| self.places[one].packets.total_cmp(&self.places[other].packets));
            self.elsewhere += least.map_or(0.0, |at| self.places.remove(at).packets);
        }
    }

    /// Two columns of time become one.
    pub fn halve(&mut self) {
        self.other_columns.halve();
        halve(&mut self.columns, |one, other| *one += other);
    }

    /// None where hardly anything passed.
    pub fn summary(&self) -> Option<PassingSummary> {
        let (traffic, machine) = self.last.as_ref()?;
        let mut places = self.places.clone();
        places.sort_by(|one, other| other.packets.total_cmp(&one.packets));
        Some(PassingSummary {
            place: traffic.place(machine),
            state: traffic.state(),
            parts: traffic.parts(machine),
            at_ns: machine.at_ns,
            seconds: self.seconds,
            bits_per_s: self.bits.value(),
            packets_per_s: self.packets.value(),
            comes_in: traffic.comes_in,
            other_bits_per_s: self.other.value(),
            other_columns: self.other_columns.values(),
            dropped_share: self.share.value().filter(|_| self.share.weight >= MOST_OF_IT * self.seconds),
            dropped: self.dropped,
            dropped_columns: self.columns.clone(),
            places,
            dropped_elsewhere: self.elsewhere,
            rate: self.rate.summary(),
        })
    }
}
