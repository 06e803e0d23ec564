//! `RTM_GETQDISC`: the dump of a namespace's qdiscs, and what a message says of one. Every byte is treated as hostile: what
//! does not fit is no qdisc, nothing panics.

mod setting;

use crate::netlink::message::{DUMP, Message, Request, attribute, text, u32_at, u64_at};
use setting::setting;
use vnettop_sample::text::clean;
use vnettop_sample::{Ifindex, LinkKey, QdiscCounters};

/// `struct tcmsg`, bytes: the index at 4, the handle at 8, the parent at 12.
const FIXED: usize = 20;
/// `TCA_KIND`, `TCA_OPTIONS`, `TCA_STATS2`.
const KIND: u16 = 1;
const OPTIONS: u16 = 2;
const STATS2: u16 = 7;
/// Within `TCA_STATS2`: `TCA_STATS_BASIC` (what a card does itself is in it), `TCA_STATS_QUEUE`, `TCA_STATS_PKT64`
/// (Linux 5.5, only once the packets do not fit 32 bits).
const BASIC: u16 = 1;
const QUEUE: u16 = 3;
const PACKETS_64: u16 = 8;

/// The dump of every qdisc of the namespace; the kernel leaves out those that queue nothing (`noqueue`).
pub(super) fn request() -> Request {
    Request::new(libc::RTM_GETQDISC, DUMP, &[0; FIXED])
}

/// What the message says of a qdisc, read at that time.
pub(super) fn qdisc(message: &Message<'_>, netns: u64, at_ns: u64) -> Option<QdiscCounters> {
    let (body, attributes) = (message.body, message.body.get(FIXED..)?);
    let stats = attribute(attributes, STATS2).filter(|_| message.kind == libc::RTM_NEWQDISC)?;
    let (basic, queue) = (attribute(stats, BASIC)?, attribute(stats, QUEUE)?);
    let wide = attribute(stats, PACKETS_64).and_then(|value| u64_at(value, 0));
    Some(QdiscCounters {
        link: LinkKey { netns, ifindex: Ifindex(u32_at(body, 4)?) },
        kind: clean(text(attribute(attributes, KIND)?)).into(),
        handle: u32_at(body, 8)?,
        parent: u32_at(body, 12)?,
        at_ns,
        bytes: u64_at(basic, 0)?,
        packets: wide.or_else(|| Some(u64::from(u32_at(basic, 8)?)))?,
        drops: u64::from(u32_at(queue, 8)?),
        backlog_packets: u32_at(queue, 0)?,
        overlimits: u32_at(queue, 16),
        setting: attribute(attributes, KIND)
            .zip(attribute(attributes, OPTIONS))
            .and_then(|(kind, options)| setting(text(kind), options)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::message::messages;
    use proptest::prelude::*;

    /// `tc -s qdisc` said of it: tbf 8001: dev a0 root, Sent 24,600,000 bytes 17,341 pkt (dropped 36,224).
    fn answer() -> Vec<u8> {
        let mut fixed = vec![0; 4];
        fixed.extend([7_u32, 0x8001_0000, u32::MAX, 2].iter().flat_map(|word| word.to_ne_bytes()));
        let mut basic = 24_600_000_u64.to_ne_bytes().to_vec();
        basic.extend(17_341_u32.to_ne_bytes());
        basic.extend([0; 4]);
        let queue: Vec<u8> = [3_u32, 4_200, 36_224, 0, 9].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let mut nested = Vec::new();
        for (kind, value) in [(BASIC, &basic), (QUEUE, &queue)] {
            let length = u16::try_from(value.len() + 4).expect("short");
            nested.extend(length.to_ne_bytes());
            nested.extend(kind.to_ne_bytes());
            nested.extend(value);
        }
        let mut request = Request::new(libc::RTM_NEWQDISC, 0, &fixed).with(KIND, b"tbf\0").with(STATS2, &nested);
        request.numbered(1).to_vec()
    }

    fn parsed(bytes: &[u8]) -> Vec<QdiscCounters> {
        messages(bytes).filter_map(|message| qdisc(&message, 42, 5)).collect()
    }

    #[test]
    fn a_qdisc_is_told_with_its_link_its_place_and_its_drops() {
        let [reported] = &parsed(&answer())[..] else { panic!("one qdisc") };
        assert_eq!(reported.link, LinkKey { netns: 42, ifindex: Ifindex(7) }, "the link it is on");
        assert_eq!(
            (reported.kind.as_str(), reported.handle, reported.parent),
            ("tbf", 0x8001_0000, u32::MAX),
            "the root"
        );
        assert_eq!((reported.bytes, reported.packets, reported.drops), (24_600_000, 17_341, 36_224), "as tc prints it");
        assert_eq!(
            (reported.backlog_packets, reported.overlimits),
            (3, Some(9)),
            "what waits in it, and what it held back"
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>) {
            parsed(&bytes);
        }

        #[test]
        fn a_damaged_answer_is_survived(at in 0_usize..120, byte: u8, cut in 0_usize..120) {
            let mut bytes = answer();
            let length = bytes.len();
            bytes[at % length] = byte;
            parsed(&bytes[..cut % length]);
            parsed(&bytes);
        }
    }
}
