//! `TCA_OPTIONS`: what a qdisc is set to. Each kind has its own layout (`linux/pkt_sched.h`); those are read whose bounds people
//! meet in tests: tbf, cake, netem, pfifo and bfifo. Rates of htb, hfsc and drr are those of their classes, which are not read.

use crate::netlink::message::{attribute, u32_at, u64_at};
use vnettop_sample::QdiscSetting;

/// `TCA_TBF_PARMS` is a `struct tc_tbf_qopt`: two `struct tc_ratespec` of 12 bytes, each with its rate at 8, then limit, buffer, MTU.
const TBF_PARMS: u16 = 1;
const TBF_RATE_64: u16 = 4;
/// `PSCHED_SHIFT`: the kernel tells of tbf's burst how long it takes at its rate, in ticks of 64 ns.
const TICK_SHIFT: u32 = 6;
const CAKE_BASE_RATE_64: u16 = 2;
/// `struct tc_netem_qopt`, bytes: limit at 4, loss at 8; attributes follow it.
const NETEM: usize = 24;
const NETEM_LOSS: u16 = 5;
const NETEM_RATE: u16 = 6;
const NETEM_RATE_64: u16 = 8;

/// What a qdisc of this kind is set to; `None` of other kinds and where nothing of it bounds anything.
pub(super) fn setting(kind: &[u8], options: &[u8]) -> Option<QdiscSetting> {
    let set = match kind {
        b"tbf" => tbf(options)?,
        // 0 is no bound.
        b"cake" => QdiscSetting {
            rate_bytes_per_s: attribute(options, CAKE_BASE_RATE_64)
                .and_then(|rate| u64_at(rate, 0))
                .filter(|rate| *rate > 0),
            ..QdiscSetting::default()
        },
        b"netem" => netem(options)?,
        // `struct tc_fifo_qopt`
        b"pfifo" | b"pfifo_head_drop" => QdiscSetting { limit_packets: u32_at(options, 0), ..QdiscSetting::default() },
        b"bfifo" => QdiscSetting { limit_bytes: u32_at(options, 0), ..QdiscSetting::default() },
        _ => return None,
    };
    (set != QdiscSetting::default()).then_some(set)
}

fn tbf(options: &[u8]) -> Option<QdiscSetting> {
    let parms = attribute(options, TBF_PARMS)?;
    let wide = attribute(options, TBF_RATE_64).and_then(|rate| u64_at(rate, 0));
    let rate = wide.or_else(|| u32_at(parms, 8).map(u64::from))?;
    let burst = u32_at(parms, 28).map(|ticks| u128::from(rate) * (u128::from(ticks) << TICK_SHIFT) / 1_000_000_000);
    Some(QdiscSetting {
        rate_bytes_per_s: Some(rate),
        burst_bytes: burst.and_then(|bytes| u64::try_from(bytes).ok()),
        limit_bytes: u32_at(parms, 24),
        ..QdiscSetting::default()
    })
}

fn netem(options: &[u8]) -> Option<QdiscSetting> {
    let attributes = options.get(NETEM..)?;
    let wide = attribute(attributes, NETEM_RATE_64).and_then(|rate| u64_at(rate, 0));
    let rate = wide.or_else(|| attribute(attributes, NETEM_RATE).and_then(|rate| u32_at(rate, 0)).map(u64::from));
    let follows_model = attribute(attributes, NETEM_LOSS).is_some();
    Some(QdiscSetting {
        rate_bytes_per_s: rate.filter(|rate| *rate > 0),
        limit_packets: u32_at(options, 4),
        random_loss: u32_at(options, 8).filter(|_| !follows_model),
        ..QdiscSetting::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::message::Request;
    use proptest::prelude::*;

    /// These attributes alone, as they follow a header.
    fn nested(attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut request = Request::new(0, 0, &[]);
        let empty = request.numbered(1).len();
        let mut request =
            attributes.iter().fold(Request::new(0, 0, &[]), |request, (kind, value)| request.with(*kind, value));
        request.numbered(1)[empty..].to_vec()
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn a_tbf_has_its_rate_burst_and_limit() {
        // tc qdisc add dev r1 root tbf rate 30mbit burst 20k limit 20k: 20 KiB at 3.75 MB/s take 5.46 ms, 85333 ticks.
        let parms = words(&[0, 0, 3_750_000, 0, 0, 0, 20_480, 85_333, 0]);
        let set = setting(b"tbf", &nested(&[(TBF_PARMS, &parms)])).expect("it is set");
        assert_eq!((set.rate_bytes_per_s, set.limit_bytes), (Some(3_750_000), Some(20_480)));
        assert_eq!(set.burst_bytes, Some(20_479), "as near as ticks tell");
        let wide = nested(&[(TBF_PARMS, &parms), (TBF_RATE_64, &5_000_000_000_u64.to_ne_bytes())]);
        assert_eq!(setting(b"tbf", &wide).and_then(|set| set.rate_bytes_per_s), Some(5_000_000_000), "40 Gbit/s");
    }

    #[test]
    fn a_netem_has_its_loss_and_its_queue() {
        let fixed = words(&[0, 1_000, 429_496_729, 0, 0, 0]);
        let set = setting(b"netem", &fixed).expect("it is set");
        assert_eq!((set.limit_packets, set.random_loss), (Some(1_000), Some(429_496_729)), "10 %");
        assert_eq!(set.rate_bytes_per_s, None);
        let modelled = [
            words(&[0, 1_000, 0, 0, 0, 0]),
            nested(&[(NETEM_LOSS, &[0; 4]), (NETEM_RATE, &words(&[125_000, 0, 0, 0]))]),
        ]
        .concat();
        let set = setting(b"netem", &modelled).expect("it is set");
        assert_eq!((set.random_loss, set.rate_bytes_per_s), (None, Some(125_000)), "a model, and 1 Mbit/s");
    }

    #[test]
    fn what_bounds_nothing_is_none() {
        assert_eq!(setting(b"cake", &nested(&[(CAKE_BASE_RATE_64, &[0; 8])])), None, "unlimited");
        assert_eq!(setting(b"fq_codel", &words(&[1_000])), None, "not read");
        let fifo = |kind: &[u8]| setting(kind, &words(&[1_000])).map(|set| (set.limit_packets, set.limit_bytes));
        assert_eq!((fifo(b"pfifo"), fifo(b"bfifo")), (Some((Some(1_000), None)), Some((None, Some(1_000)))));
    }

    proptest! {
        #[test]
        fn any_options_are_survived(bytes: Vec<u8>) {
            for kind in [&b"tbf"[..], b"cake", b"netem", b"pfifo", b"bfifo"] {
                setting(kind, &bytes);
            }
        }
    }
}
