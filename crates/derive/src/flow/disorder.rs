//! Packets that overtook each other, as TCP noticed them over the last seconds: reordering comes in bursts, and one tick alone
//! would show it now and then.

use crate::rate::seconds;
use std::collections::VecDeque;
use vnettop_sample::{Disorder, TcpState};

/// Time that the figures cover, ns.
const WINDOW_NS: u64 = 5_000_000_000;
/// Over less time nothing is said, s.
const LEAST_S: f64 = 0.9;
/// Readings are kept so far apart at least, ns.
const APART_NS: u64 = 250_000_000;

/// Packets of a connection that overtook each other, and what TCP did about it, over the last five seconds or less.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct DisorderRates {
    /// Time that they cover, s.
    pub over_s: f64,
    /// Segments that the sender sent again, a second.
    pub retransmits_per_s: f64,
    /// Segments that the receiver got twice, as it told the sender (DSACK), a second.
    pub dsack_dups_per_s: f64,
    /// How often the sender found that segments had overtaken others, a second.
    pub reord_seen_per_s: f64,
    /// Segments that the receiver got out of order, a second; none where its end is not watched or its kernel does not tell
    /// (before Linux 5.4).
    pub out_of_order_per_s: Option<f64>,
}

/// Segments sent again, and what is told of disorder, since the connection was made.
type Counts = (u32, Disorder);

/// The counters of one end over that time, oldest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct DisorderTrack(VecDeque<(u64, u32, Disorder)>);

impl DisorderTrack {
    /// Takes the counters of a tick.
    pub fn observe(&mut self, at_ns: u64, tcp: Option<&TcpState>) {
        let Some((tcp, disorder)) = tcp.and_then(|tcp| Some((tcp, tcp.disorder?))) else { return self.0.clear() };
        let now = (at_ns, tcp.retransmits, disorder);
        let before = self.0.len().checked_sub(2).and_then(|before| self.0.get(before));
        // The newest reading gives way to the next one until they are far enough apart.
        if before.is_some_and(|before| at_ns.saturating_sub(before.0) < APART_NS) {
            self.0.pop_back();
        }
        if self.0.back().is_none_or(|last| last.0 < at_ns) {
            self.0.push_back(now);
        }
        while self.0.get(1).is_some_and(|second| second.0 + WINDOW_NS <= at_ns) {
            self.0.pop_front();
        }
    }

    /// What the sender knows; none over too little time.
    pub fn sent(&self) -> Option<DisorderRates> {
        let (over_s, first, last) = self.ends()?;
        let rise = |of: fn(&Disorder) -> u32| per_second(of(&last.1), of(&first.1), over_s);
        Some(DisorderRates {
            over_s,
            retransmits_per_s: per_second(last.0, first.0, over_s),
            dsack_dups_per_s: rise(|disorder| disorder.dsack_dups),
            reord_seen_per_s: rise(|disorder| disorder.reord_seen),
            out_of_order_per_s: None,
        })
    }

    /// Segments that this end received out of order, a second.
    pub fn out_of_order_per_s(&self) -> Option<f64> {
        let (over_s, first, last) = self.ends()?;
        Some(per_second(last.1.rcv_ooopack?, first.1.rcv_ooopack?, over_s))
    }

    fn ends(&self) -> Option<(f64, Counts, Counts)> {
        let (first, last) = (self.0.front()?, self.0.back()?);
        let over_s = seconds(first.0, last.0).filter(|&over_s| over_s >= LEAST_S)?;
        Some((over_s, (first.1, first.2), (last.1, last.2)))
    }
}

fn per_second(now: u32, before: u32, over_s: f64) -> f64 {
    f64::from(now.wrapping_sub(before)) / over_s
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_seconds_are_covered_and_counters_wrap() {
        let mut track = DisorderTrack::default();
        let tick = |track: &mut DisorderTrack, nth: u64| {
            let count = |each: u32| each.wrapping_mul(u32::try_from(nth).expect("few")).wrapping_sub(50);
            let disorder = Disorder { dsack_dups: count(2), reord_seen: count(1), rcv_ooopack: Some(count(3)) };
            let tcp = TcpState { retransmits: count(10), disorder: Some(disorder), ..TcpState::default() };
            track.observe(nth * 100_000_000, Some(&tcp));
        };
        (0..5).for_each(|nth| tick(&mut track, nth));
        assert_eq!(track.sent(), None, "half a second says nothing");
        (5..200).for_each(|nth| tick(&mut track, nth));
        let sent = track.sent().expect("there is time enough");
        assert!((5.0..5.6).contains(&sent.over_s), "{sent:?}");
        assert!((sent.retransmits_per_s - 100.0).abs() < 0.01, "ten a tick of 100 ms: {sent:?}");
        assert!((sent.dsack_dups_per_s - 20.0).abs() < 0.01 && (sent.reord_seen_per_s - 10.0).abs() < 0.01, "{sent:?}");
        assert!((track.out_of_order_per_s().expect("told") - 30.0).abs() < 0.01);
        assert!(track.0.len() <= 28, "no more readings than are needed: {}", track.0.len());
        track.observe(1 << 40, Some(&TcpState::default()));
        assert_eq!(track.sent(), None, "a kernel that does not tell");
    }
}
