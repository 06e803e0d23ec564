//! Packets that vanish between a counter that saw them and the next one, where no counter tells why: a firewall's rule, policing
//! or a program on the way in. What is missing behind a hop is told only as far as the flows themselves miss it: what a
//! firewall drops of others is no loss of theirs. What a tick measures is in `gaps`; here it is judged over several.

use super::{Loss, LossPlace};
use crate::sample::LinkKey;
use std::collections::{BTreeMap, VecDeque};

/// What is missing is held against what the flows miss over this time, ns: they are read one after another.
const WINDOW_NS: u64 = 2_000_000_000;
/// What rests on counters that are not read at one instant must stand for so long, ns, and in so many ticks: in one that is as
/// long as that reading may have been held up.
pub const STANDS_NS: u64 = 1_000_000_000;
const STANDS_TICKS: usize = 2;
/// Fewer packets, and a smaller share of those sent, are no loss.
const LEAST_PACKETS: f64 = 5.0;
const LEAST_SHARE: f64 = 0.001;
/// The same of what rests on counters that are not read at one instant.
const LEAST_SHARE_OF_LINKS: f64 = 0.01;
/// What the flows miss of a place's packets must be so much of them; else others are dropped there.
const LEAST_OWN: f64 = 0.2;
/// From this share on they are clearly the flows'; below, what is only read late must be told from it over a second.
const CLEARLY_OWN: f64 = 0.8;
/// From this share on, what is sent and neither arrives nor is lost on the way is somebody else's.
const OTHERS: f64 = 0.1;

/// Between which two counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Between {
    pub netns: u64,
    /// The link they came in through; none where they started.
    pub link: Option<LinkKey>,
    /// The link they should have left through; none where a socket should have had them.
    pub to: Option<LinkKey>,
}

/// A place, and how many packets are missing there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Gap {
    pub at: Between,
    /// Signed: what is early in one tick is late in the next.
    pub packets: f64,
    /// How many less leave than came, as the links count them; none where that does not compare.
    pub most: Option<f64>,
    /// What the flows that go through here miss; none where that is not known.
    pub missed: Option<f64>,
    /// Both sides were read at one instant.
    pub is_exact: bool,
}

impl Gap {
    fn is_same(&self, other: &Self) -> bool {
        (self.at, self.is_exact) == (other.at, other.is_exact)
    }
}

/// The last ticks.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Missing {
    ticks: VecDeque<Tick>,
    /// What the flows have missed since they are looked at and was not told, packets. Negative where more was told than is
    /// missing in the end: what comes late on a machine that is held up again and again is missed only once.
    balance: f64,
    /// Since when a place has been told without a pause.
    since: BTreeMap<Between, u64>,
}

#[derive(Debug, Clone, PartialEq)]
struct Tick {
    at_ns: u64,
    seconds: f64,
    /// What the flows miss that no other place has, packets.
    missed: f64,
    sent: f64,
    gaps: Vec<Gap>,
    /// What was told of it, packets.
    found: f64,
}

impl Missing {
    /// Takes the gaps of a tick; none of `missed` where it is not known what arrived.
    pub fn observe(
        &mut self,
        (at_ns, seconds): (u64, f64),
        missed: Option<f64>,
        sent: Option<f64>,
        gaps: Vec<Gap>,
    ) -> Vec<Loss> {
        let Some(missed) = missed else {
            *self = Self::default();
            return Vec::new();
        };
        self.ticks.push_back(Tick { at_ns, seconds, missed, sent: sent.unwrap_or(0.0), gaps, found: 0.0 });
        let is_old = |tick: &Tick| tick.at_ns.saturating_add(WINDOW_NS) <= at_ns;
        while self.ticks.len() > STANDS_TICKS && self.ticks.front().is_some_and(is_old) {
            self.ticks.pop_front();
        }
        self.balance += missed;
        // Not forever: what others send to the flows' receivers is no reason to overlook a loss that begins later.
        self.balance = self.balance.max(-self.sum(|tick| tick.sent));
        let told = self.told();
        self.since.retain(|at, _| told.iter().any(|(gap, _)| gap.at == *at));
        let mut places: BTreeMap<Between, f64> = BTreeMap::new();
        for (gap, packets) in told {
            if let Some(now) = self.ticks.back_mut() {
                now.found += packets;
            }
            self.balance -= packets;
            *places.entry(gap.at).or_default() += packets;
        }
        places.into_iter().map(|(at, packets)| self.loss(at, packets, at_ns)).collect()
    }

    /// Whether what a namespace sends is what the flows send: datagrams that neither arrive where the flows end nor are lost
    /// on their way are others'.
    pub fn is_theirs(&self) -> bool {
        self.sum(|tick| tick.missed - tick.found) <= OTHERS * self.sum(|tick| tick.sent)
    }

    fn loss(&mut self, at: Between, packets: f64, now_ns: u64) -> Loss {
        let since = *self.since.entry(at).or_insert(now_ns);
        Loss {
            link: at.link,
            to: at.to,
            stands: now_ns.saturating_sub(since) >= STANDS_NS,
            ..Loss::in_space(LossPlace::Between, at.netns, packets)
        }
    }

    /// The gaps of the newest tick that the flows' own packets are missing in, with what is missing of them, packets.
    fn told(&self) -> Vec<(Gap, f64)> {
        let Some(now) = self.ticks.back() else { return Vec::new() };
        let mut open = self.sum(|tick| tick.missed).min(self.balance + self.sum(|tick| tick.found));
        let mut told = Vec::new();
        for gap in &now.gaps {
            let whole = self.sum(|tick| tick.of(gap).map_or(0.0, |one| one.packets));
            let most = gap.most.map(|_| self.sum(|tick| tick.of(gap).and_then(|one| one.most).unwrap_or(0.0)));
            // What other flows miss is not missing here.
            let missed = self.sum(|tick| tick.of(gap).and_then(|one| one.missed).unwrap_or(0.0));
            let own = (open.min(missed).min(most.unwrap_or(open)) / whole).min(1.0);
            if own < LEAST_OWN || !self.is_enough(whole * own, gap.is_exact && own >= CLEARLY_OWN) {
                continue;
            }
            open -= whole * own;
            // Counters that are not read at one instant are right in the mean.
            let in_mean = || whole * now.seconds / self.sum(|tick| tick.seconds);
            let packets = if gap.is_exact { gap.packets.max(0.0) } else { in_mean() };
            told.push((*gap, packets * own));
        }
        told
    }

    /// So many packets missing are no accident of reading.
    fn is_enough(&self, whole: f64, is_exact: bool) -> bool {
        let share = if is_exact { LEAST_SHARE } else { LEAST_SHARE_OF_LINKS };
        let is_long =
            || self.ticks.len() >= STANDS_TICKS && self.sum(|tick| tick.seconds) * 1.05 >= STANDS_NS as f64 / 1e9;
        let has_lasted = is_exact || is_long();
        has_lasted && whole >= LEAST_PACKETS.max(share * self.sum(|tick| tick.sent))
    }

    /// Over the last ticks.
    fn sum(&self, of: impl Fn(&Tick) -> f64) -> f64 {
        self.ticks.iter().map(of).sum()
    }
}

impl Tick {
    fn of(&self, gap: &Gap) -> Option<&Gap> {
        self.gaps.iter().find(|one| one.is_same(gap))
    }
}
