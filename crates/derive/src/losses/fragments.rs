//! Datagrams larger than the MTU of their path: they are fragmented, and one lost fragment loses the whole datagram.

use super::ProtocolSpan;
use crate::links::LinkMetrics;
use vnettop_sample::{FlowPath, HopWay, LinkKey, row_of};

/// Fewer datagrams a second are no benchmark's.
const LEAST_PER_S: f64 = 1.0;
/// A link whose packets are fragments to this share at least tells their size.
const NEARLY_ALL: f64 = 0.9;
/// What the kernel's counter of a link has around a fragment: Ethernet's header. What UDP has, bytes.
const ETHERNET: f64 = 14.0;
const UDP: f64 = 8.0;

/// Where datagrams are taken apart, most of them first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fragments {
    /// The link that they leave through.
    pub link: LinkKey,
    /// Datagrams fragmented a second (`FragOKs`).
    pub datagrams_per_s: f64,
    /// Fragments made a second (`FragCreates`).
    pub fragments_per_s: f64,
    /// Payload of a datagram, bytes; unknown when other packets leave through the link too.
    pub bytes: Option<f64>,
    /// `IFLA_MTU` of the link, bytes.
    pub mtu: u32,
    /// The flow's sender fragments them itself, without a tunnel's header around them.
    pub is_at_sender: bool,
    /// What IP and UDP put in front of the payload, bytes.
    pub headers: u32,
}

impl Fragments {
    /// Fragmentation in the namespace on the path that makes most fragments.
    pub(super) fn of(paths: &[FlowPath], links: &[LinkMetrics], spans: &[ProtocolSpan<'_>]) -> Option<Self> {
        let all = spans.iter().filter_map(|span| {
            let datagrams = span.ip_per_s(|of| of.frag_oks).filter(|&rate| rate >= LEAST_PER_S)?;
            let fragments = span.ip_per_s(|of| of.frag_creates).filter(|&rate| rate > datagrams)?;
            Self::in_space(span.now.netns, (datagrams, fragments), paths, links)
        });
        all.max_by(|one, other| one.fragments_per_s.total_cmp(&other.fragments_per_s))
    }

    fn in_space(
        netns: u64,
        (datagrams, fragments): (f64, f64),
        paths: &[FlowPath],
        links: &[LinkMetrics],
    ) -> Option<Self> {
        let leaves = |path: &FlowPath| {
            let place = path.hops.iter().position(|hop| hop.link.netns == netns && hop.way == HopWay::Sent)?;
            let link = row_of(links, &path.hops[place].link, |link| link.facts.key())?;
            Some((link, path.from.is_ipv6(), place == 0))
        };
        let packets = |link: &LinkMetrics| link.rates.and_then(|rates| rates.tx_packets_per_s).unwrap_or(0.0);
        let ways = paths.iter().filter_map(leaves);
        let (link, ipv6, is_at_sender) = ways.max_by(|one, other| packets(one.0).total_cmp(&packets(other.0)))?;
        // IPv6 has a header of its own for fragments.
        let (ip, piece) = if ipv6 { (40, 48.0) } else { (20, 20.0) };
        let around = piece + if link.facts.kind.has_frames() { ETHERNET } else { 0.0 };
        let are_all = fragments > NEARLY_ALL * packets(link) && packets(link) > NEARLY_ALL * fragments;
        let sent = link.rates.and_then(|rates| Some(rates.tx_bits_per_s? / 8.0)).filter(|_| are_all);
        // Bytes by packet and pieces by datagram each come of one read; the two are not read at one instant.
        let bytes = sent.map(|sent| (sent / packets(link) - around) * fragments / datagrams - UDP);
        Some(Self {
            link: link.facts.key(),
            datagrams_per_s: datagrams,
            fragments_per_s: fragments,
            bytes: bytes.filter(|&bytes| bytes > 0.0),
            mtu: link.facts.mtu,
            is_at_sender,
            headers: ip + 8,
        })
    }
}
