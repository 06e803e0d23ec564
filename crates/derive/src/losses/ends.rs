//! What the protocols lose in the sender's namespace, in the receiver's, and in those between.

use super::counted::SampleStep;
use super::{Loss, LossPlace, ProtocolSpan, left, total};
use vnettop_sample::{FlowSample, IpCounters, Proto, ProtocolCounters, row_of};

/// What the sender's socket and its IP refused, less what qdiscs and links there `refused`.
pub(super) fn sender(span: &ProtocolSpan<'_>, refused: f64, into: &mut Vec<Loss>) {
    let (netns, local) = (span.now.netns, refused + conntrack(span));
    let no_room = span.rise_or_zero(|of| of.udp_sndbuf_errors);
    let discarded = span.rise_or_zero(|of| of.ip_out_discards);
    into.push(Loss::in_space(LossPlace::SendBuffer, netns, left(no_room, local)));
    into.push(Loss::in_space(LossPlace::Ip, netns, left(discarded, local.max(no_room))));
}

/// What the sockets of a namespace and the namespace itself have counted and the other one has not: they are read one after
/// the other. Packets.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct CounterSkew {
    sockets: f64,
    namespace: f64,
}

impl CounterSkew {
    /// What both have counted of a tick, each packet once. A difference that the next tick
    /// does not settle belongs to other sockets.
    pub fn agree(&mut self, sockets: f64, namespace: f64) -> f64 {
        let (own, whole) = (sockets + self.sockets, namespace + self.namespace);
        let both = own.min(whole).max(0.0);
        let open = (own - both).clamp(sockets.min(0.0), sockets.max(0.0));
        *self = Self { sockets: open, namespace: (whole - both).min(namespace) };
        both
    }
}

/// Packets that arrived damaged at the sockets of one namespace, and packets that the sockets had no room for: by the sockets'
/// own drops when they are read, else by the namespace's, which has other sockets too.
pub(super) fn receiver(
    SampleStep { previous, next, .. }: &SampleStep<'_>,
    span: &ProtocolSpan<'_>,
    ahead: &mut CounterSkew,
    into: &mut Vec<Loss>,
) {
    let netns = span.now.netns;
    // A segment of TCP with another fault than its checksum is as damaged.
    into.push(Loss::in_space(
        LossPlace::Checksum,
        netns,
        span.rise_or_zero(|of| total([of.udp_in_csum_errors, of.tcp_in_errs])),
    ));
    let (whole, damaged) =
        (span.rise_or_zero(|of| of.udp_rcvbuf_errors), span.rise_or_zero(|of| of.udp_in_csum_errors));
    let (mut known, mut new, mut sockets) = (0.0, 0.0, 0);
    for flow in next.flows.iter().filter(|flow| flow.netns == netns && flow.proto == Proto::Udp) {
        let Some(now) = flow.udp.map(|udp| udp.drops) else { continue };
        sockets += 1;
        match row_of(&previous.flows, &flow.key(), FlowSample::key).and_then(|before| before.udp) {
            Some(before) => known += f64::from(now.wrapping_sub(before.drops)),
            None => new += f64::from(now),
        }
    }
    // A socket that is seen for the first time may have dropped long before.
    let own = known + new.min(left(whole + damaged, known));
    let packets = if sockets == 0 { whole } else { ahead.agree(own - damaged, whole) };
    into.push(Loss::in_space(LossPlace::ReceiveBuffer, netns, packets));
}

/// What IP and connection tracking lose anywhere on the path. A datagram with a fragment that a qdisc or a link there `refused`
/// is also a `FragFails`.
pub(super) fn between(span: &ProtocolSpan<'_>, refused: f64, into: &mut Vec<Loss>) {
    let ip = |of: &ProtocolCounters| total([of.ip_in_discards, of.ip_in_hdr_errors, of.ip_out_no_routes]);
    let netns = span.now.netns;
    let not_taken_apart = left(span.rise_or_zero(|of| of.ip_frag_fails), refused);
    let packets = span.rise_or_zero(ip) + not_taken_apart + span.ip(refused_in).unwrap_or(0.0);
    Loss::in_space(LossPlace::Ip, netns, packets).add_to(into);
    into.push(Loss::in_space(LossPlace::Conntrack, netns, conntrack(span)));
    let filtered = span.ip(|of| of.reverse_path_filter).unwrap_or(0.0);
    into.push(Loss::in_space(LossPlace::ReversePath, netns, filtered));
}

/// Packets that IP refused on the way in and that the protocols' older counters do not have.
pub(super) fn refused_in(of: &IpCounters) -> u64 {
    total([of.in_addr_errors, of.in_unknown_protos, of.in_no_routes, of.in_truncated_pkts])
}

/// Datagrams that could not be reassembled, less the lost fragments that are attributed already (`reported`).
pub(super) fn not_put_together(span: &ProtocolSpan<'_>, reported: f64, into: &mut Vec<Loss>) {
    let failed = left(span.rise_or_zero(|of| of.ip_reasm_fails), reported);
    into.push(Loss::in_space(LossPlace::Reassembly, span.now.netns, failed));
}

/// Packets that connection tracking refused; those of `early_drop` are entries, not packets. A table without counters has
/// refused none yet.
fn conntrack(span: &ProtocolSpan<'_>) -> f64 {
    span.rise_or_zero(|of| of.conntrack.map_or(0, |conntrack| total([conntrack.drop, conntrack.insert_failed])))
}
