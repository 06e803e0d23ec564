//! Rows that hold more than one tick. Those of a flow that has just been found have what it lost before, for up to five seconds
//! (`bpf/drops.rs` of the source), and those of a function whose name is still looked up are held back until it is known
//! (`kernel/sites.rs`): what was sent in the tick in which they come is not what they are a share of.

use super::counted::{SampleStep, drops};
use super::same_ends::is_same;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use vnettop_sample::{DropCount, FlowSample, SocketKey};

/// The flows whose rows hold one tick each.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct EarlyRows {
    asked: BTreeSet<SocketKey>,
}

impl EarlyRows {
    /// Whether this tick has first rows of a flow that the programs did not look for all the time, or of a place in the kernel's
    /// code that was not met before.
    pub fn observe(&mut self, step: &SampleStep<'_>) -> bool {
        let SampleStep { previous, next, .. } = step;
        let before = || drops(previous).into_iter();
        let flows = || previous.flows.iter().chain(&next.flows);
        let new: Vec<SocketAddr> =
            flows().filter(|flow| !self.asked.contains(&flow.key())).map(|flow| flow.local).collect();
        let is_of_new = |row: &DropCount| {
            // A flow that has a row had been found.
            let is_first = before().flat_map(|known| &known.flows).all(|known| known.flow != row.flow);
            let is_end = |local| row.flow.is_some_and(|flow| is_same(local, flow.from) || is_same(local, flow.to));
            is_first && new.iter().any(|&local| is_end(local))
        };
        let is_first_there = |row: &DropCount| {
            let mut known = before().flat_map(|known| [&known.flows, &known.ended, &known.others]).flatten();
            known.all(|known| known.site != row.site)
        };
        let mut lost = drops(next).into_iter().flat_map(|now| &now.flows).filter(|row| row.packets > 0);
        let is_early = lost.any(|row| is_of_new(row) || is_first_there(row));
        // A sample has rows of the flows of the one before it.
        let asked = previous.flows.iter().filter(|_| drops(previous).is_some());
        self.asked = asked.map(FlowSample::key).collect();
        is_early
    }
}

#[cfg(test)]
mod tests {
    use super::super::LossPlace;
    use super::super::tests::{FAR, NEAR, ROUTER, SECOND, before, key};
    use crate::{Derivation, Metrics};
    use std::sync::Arc;
    use vnettop_sample::{DropFlow, Drops, Ifindex, Item, KernelCounts, Proto, Sample, UdpState};

    /// A sample a second: r1 refuses so many in all, by its counter and by the rows that the programs have, once they are there.
    fn sample(nth: u64, refused: u64, programs: Option<&[u64]>) -> Sample {
        let mut sample = before();
        sample.at_ns += nth * SECOND;
        sample.counters.iter_mut().for_each(|row| row.at_ns += nth * SECOND);
        sample.protocols.iter_mut().for_each(|row| row.at_ns += nth * SECOND);
        let near = sample.protocols.iter_mut().find(|row| row.netns == NEAR).expect("there is one");
        near.udp_out_datagrams = 1_000 * nth;
        let far = sample.protocols.iter_mut().find(|row| row.netns == FAR).expect("there is one");
        far.udp_in_datagrams = 1_000 * nth - refused;
        let link = sample.counters.iter_mut().find(|row| row.key() == key(ROUTER, 3)).expect("there is one");
        link.tx_dropped = refused;
        sample.flows.iter_mut().for_each(|flow| flow.udp = Some(UdpState::default()));
        let flow =
            |sample: &Sample| DropFlow { proto: Proto::Udp, from: sample.flows[0].local, to: sample.flows[0].remote };
        let row = |&packets: &u64| super::DropCount {
            site: 1,
            flow: Some(flow(&sample)),
            netns: Some(ROUTER),
            ifindex: Some(Ifindex(3)),
            reason: Some("FULL_RING".into()),
            function: Some("tun_net_xmit".into()),
            untracked: false,
            packets,
        };
        let drops = programs.map(|packets| Drops { flows: packets.iter().map(row).collect(), ..Drops::default() });
        let counts = KernelCounts { drops, ..KernelCounts::default() };
        sample.kernel = Some(Arc::new(counts));
        sample
    }

    /// What is lost at the link, and its share, from the second sample on.
    fn told(samples: impl IntoIterator<Item = Sample>) -> Vec<Option<(f64, Option<f64>)>> {
        let mut derivation = Derivation::default();
        let lost = |metrics: &Metrics| {
            let link = metrics.subject.losses.places.iter().find(|loss| loss.place == LossPlace::Link);
            link.map(|loss| (loss.packets, loss.share))
        };
        let all = samples.into_iter().filter_map(|one| derivation.advance(Item::Sample(Box::new(one))));
        all.map(|metrics| lost(&metrics)).skip(1).collect()
    }

    #[test]
    fn what_counters_told_before_the_programs_rows_is_lost_once() {
        // From the second on the programs are there; what the link refuses is in their rows from the third on.
        let samples = [
            sample(0, 0, None),
            sample(1, 500, Some(&[])),
            sample(2, 1_100, Some(&[1_050])),
            sample(3, 1_700, Some(&[1_650])),
        ];
        let expected = [(500.0, 0.5), (600.0, 0.6), (600.0, 0.6)];
        assert_eq!(told(samples), expected.map(|(packets, share)| Some((packets, Some(share)))));
    }

    #[test]
    fn no_share_is_told_of_what_was_lost_in_more_than_the_time_it_would_be_of() {
        let samples = [
            sample(0, 0, Some(&[])),
            sample(1, 0, Some(&[])),
            sample(2, 700, Some(&[])),
            sample(3, 1_400, Some(&[1_400])),
            sample(4, 2_100, Some(&[2_100])),
        ];
        let expected = [None, None, Some((1_400.0, None)), Some((700.0, Some(0.7)))];
        assert_eq!(told(samples), expected, "the first rows hold two seconds");
    }
}
