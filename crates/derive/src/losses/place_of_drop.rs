//! What a drop's reason means for the flow whose packet it was: lost at a place, refused there by a rule, or no loss at all.
//! Reasons go by the kernel's names (`enum skb_drop_reason`, Linux 5.17 to 6.18), because their numbers differ; where there
//! is none, or none was specified, the function stands for it. One that was unknown when this was written is a loss under
//! its own name.

use super::LossPlace;

/// What a drop is to the flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum DropVerdict {
    /// Its packet is lost there.
    Lost(LossPlace),
    /// A rule that somebody set refused it there.
    Refused(LossPlace),
    /// The kernel specified no reason, and its function is not named.
    #[strum(to_string = "unknown")]
    Unclear,
    /// It misses nothing: a duplicate, what a closed socket still had, another's copy of a frame.
    Harmless,
}

impl DropVerdict {
    /// Where it is missing from then on.
    #[must_use]
    pub fn place(self) -> Option<LossPlace> {
        match self {
            Self::Lost(place) | Self::Refused(place) => Some(place),
            Self::Unclear | Self::Harmless => None,
        }
    }
}

/// Judges a drop by its reason and the function that dropped it, as far as they are known.
#[must_use]
pub fn verdict_of(reason: Option<&str>, function: Option<&str>) -> DropVerdict {
    if reason == Some("NOT_SPECIFIED") && function.is_none() {
        return DropVerdict::Unclear;
    }
    if !function.is_none_or(is_packet) {
        return DropVerdict::Harmless;
    }
    // To a segment that finds no socket TCP answers with a reset: its connection is over, or never was.
    if reason == Some("NO_SOCKET") && function.is_some_and(|function| function.starts_with("tcp_")) {
        return DropVerdict::Harmless;
    }
    let tables: &[_] = if reason.is_none() { &[WITHOUT_REASONS, FUNCTIONS] } else { &[FUNCTIONS] };
    let by_function = || tables.iter().find_map(|rows| look_up(rows, function?));
    let specified = reason.filter(|&reason| reason != "NOT_SPECIFIED");
    specified
        .and_then(|reason| look_up(REASONS, reason))
        .or_else(by_function)
        .unwrap_or(DropVerdict::Lost(LossPlace::Kernel))
}

use DropVerdict::{Harmless, Lost, Refused};
use LossPlace as At;

/// By reason; one that ends in `*` stands for all that begin so, the first that fits counts.
const REASONS: &[(DropVerdict, &str)] = &[
    (Refused(At::Firewall), "NETFILTER_DROP"),
    (Refused(At::TrafficControl), "TC_INGRESS TC_EGRESS TC_COOKIE_ERROR TC_CHAIN_NOTFOUND TC_RECLASSIFY_LOOP"),
    (
        Refused(At::Policy),
        "XDP BPF_CGROUP_EGRESS SECURITY_HOOK SOCKET_FILTER XFRM_POLICY TAP_FILTER TAP_TXFILTER TCP_MINTTL \
         ARP_PVLAN_DISABLE",
    ),
    (Refused(At::ReversePath), "IP_RPFILTER IP_LOCAL_SOURCE IP_INVALID_SOURCE"),
    (Refused(At::Bridge), "BRIDGE_* MAC_INVALID_SOURCE VLAN_FILTER"),
    (Lost(At::Bridge), "NO_TX_TARGET"),
    (Refused(At::Ovs), "OVS_DROP_EXPLICIT* OVS_DROP_LAST_ACTION OVS_DROP_METER"),
    (Lost(At::Ovs), "OVS_DROP_*"),
    (Lost(At::Backlog), "CPU_BACKLOG"),
    (Lost(At::Qdisc), "QDISC_* CAKE_* FQ_* DUALPI2_STEP_DROP"),
    (Lost(At::ReceiveBuffer), "SOCKET_RCVBUFF SOCKET_BACKLOG PROTO_MEM"),
    (Lost(At::Checksum), "TCP_CSUM UDP_CSUM IP_CSUM ICMP_CSUM SKB_CSUM"),
    (Lost(At::Reassembly), "FRAG_REASM_TIMEOUT FRAG_TOO_FAR"),
    (Lost(At::Neighbour), "NEIGH_*"),
    (Lost(At::NoSocket), "NO_SOCKET"),
    (
        Lost(At::Ip),
        "IP_INHDR IP_NOPROTO IP_OUTNOROUTES IP_INADDRERRORS IP_INNOROUTES IP_LOCALNET IP_INVALID_DEST PKT_TOO_BIG \
         PKT_TOO_SMALL HDR_TRUNC IPV6DISABLED IPV6_BAD_EXTHDR IPV6_TOO_MANY_EXTHDRS UNICAST_IN_L2_MULTICAST INVALID_PROTO",
    ),
    (
        Lost(At::Link),
        "FULL_RING DEV_READY DEV_HDR NOMEM SKB_GSO_SEG SKB_UCOPY_FAULT TUNNEL_TXINFO VXLAN_* IP_TUNNEL_ECN \
         RECURSION_LIMIT PFMEMALLOC PSP_* SKB_BAD_GSO MACVLAN_* IPVLAN_*",
    ),
    (
        Lost(At::Tcp),
        "TCP_ZEROWINDOW TCP_OVERWINDOW TCP_OFO_QUEUE_PRUNE TCP_OFO_DROP TCP_LISTEN_OVERFLOW TCP_AUTH_HDR TCP_MD5* \
         TCP_AO* TCP_INVALID_END_SEQUENCE TCP_RFC7323_TSECR",
    ),
    // TCP_INVALID_SEQUENCE: Linux 5.18 to 6.5 name every segment outside the window so, most of them duplicates, which are
    // TCP_OLD_SEQUENCE from 6.6 on.
    (
        Harmless,
        "CONSUMED SOCKET_CLOSE QUEUE_PURGE OTHERHOST UNHANDLED_PROTO DUP_FRAG LOCAL_MAC MAC_IEEE_MAC_CONTROL \
         PACKET_SOCK_ERROR UNIX_* IPV6_NDISC_* TCP_FLAGS TCP_ABORT_ON_DATA TCP_OLD_* TCP_OFOMERGE TCP_RFC7323_* \
         TCP_INVALID_* TCP_RESET TCP_CLOSE TCP_FASTOPEN TCP_TOO_OLD_ACK TCP_ACK_UNSENT_DATA",
    ),
];

/// Functions that mean something else before Linux 5.17, which specified no reason anywhere.
const WITHOUT_REASONS: &[(DropVerdict, &str)] =
    &[(Lost(At::Ip), "ip_error"), (Refused(At::ReversePath), "ip_rcv_finish_core")];

/// By function alone: before Linux 5.17, and where the kernel's own authors specified no reason.
const FUNCTIONS: &[(DropVerdict, &str)] = &[
    // A closed socket still had packets; a sniffer has copies; multicast that nobody wants comes to everybody.
    (
        Harmless,
        "udp_destruct_common udp_destruct_sock udpv6_destruct_sock inet_sock_destruct sk_stream_kill_queues \
         tcp_write_queue_purge skb_rbtree_purge skb_queue_purge* __skb_queue_purge* packet_rcv* tpacket_rcv arp_rcv \
         arp_process ndisc_rcv icmpv6_rcv igmp_rcv ip6_mc_input",
    ),
    // TCP without a reason: what still comes when a connection has been closed, as the last segment of every one that ends
    // in TIME_WAIT; what it refuses of a living one is freed without a word before Linux 5.18, and has a reason from then
    // on.
    (Harmless, "tcp_v4_rcv tcp_v6_rcv tcp_v4_do_rcv tcp_v6_do_rcv"),
    (Refused(At::Policy), XDP),
    (Refused(At::Firewall), "nf_hook_slow* nft_do_chain ipt_do_table ip6t_do_table ebt_do_table"),
    (Refused(At::TrafficControl), "__netif_receive_skb_core* tcf_*"),
    (Refused(At::Bridge), "__allowed_ingress br_allowed_ingress br_handle_vlan"),
    // A blackhole, unreachable or prohibit route, or no route at all.
    (Refused(At::Ip), "dst_discard* ip_error"),
    // No memory for a fragment, while those of datagrams that miss one wait for it.
    (Lost(At::Reassembly), "ip_defrag ip_frag_queue ip_frag_reasm ipv6_frag_rcv"),
    // Whether a datagram is whole may be looked at only when it is read.
    (Lost(At::Checksum), "udp_recvmsg udpv6_recvmsg"),
    (Lost(At::Backlog), "enqueue_to_backlog"),
    // What a qdisc drops is freed as a list, after its lock has been let go.
    (
        Lost(At::Qdisc),
        "kfree_skb_list* __tcf_kfree_skb_list __dev_queue_xmit __dev_xmit_skb __qdisc_run *_enqueue *_dequeue",
    ),
    (
        Lost(At::ReceiveBuffer),
        "udp_queue_rcv_one_skb __udp_queue_rcv_skb udpv6_queue_rcv_one_skb __udp_enqueue_schedule_skb",
    ),
    (Lost(At::NoSocket), "__udp4_lib_rcv __udp6_lib_rcv udp_rcv udpv6_rcv"),
    (Lost(At::Bridge), "br_* __br_*"),
    (Lost(At::Neighbour), "neigh_* __neigh_* arp_error*"),
    (Lost(At::Ovs), "ovs_* do_execute_actions"),
    (Lost(At::Tcp), "tcp_*"),
    (Lost(At::Ip), "ip_* ip6_* ipv6_* __ip_* ip4_* inet_*"),
    (Lost(At::Link), "*_xmit *_rcv vxlan* geneve* wg_* tun_* __dev_forward_skb* dev_forward_skb*"),
];

/// Where a link runs its XDP program on what is a packet already: a veth its own, the kernel for every other link.
const XDP: &str = "veth_xdp_rcv* do_xdp_generic netif_receive_generic_xdp bpf_prog_run_generic_xdp";

/// Whether a link's XDP program dropped it.
#[must_use]
pub fn is_of_xdp(reason: Option<&str>, function: Option<&str>) -> bool {
    reason == Some("XDP") || function.is_some_and(|function| is_among(XDP, function))
}

/// Buffers that are no packets of their own: the pieces of one that was put together, which are freed after it and counted
/// with it; messages of netlink and of Unix sockets; what a question for a route is asked with, as vnettop asks one for
/// each hop.
const NO_PACKETS: &str = "skb_release_data netlink_* rtnl_* unix_* ovs_dp_cmd_* ovs_vport_cmd_* ovs_flow_cmd_* \
                          inet_rtm_getroute inet6_rtm_getroute";

/// Whether what a function of the kernel drops is a packet of its own.
#[must_use]
pub fn is_packet(function: &str) -> bool {
    !is_among(NO_PACKETS, function)
}

/// The verdict of the first row that has the word.
fn look_up(rows: &[(DropVerdict, &str)], word: &str) -> Option<DropVerdict> {
    rows.iter().find(|(_, patterns)| is_among(patterns, word)).map(|(verdict, _)| *verdict)
}

/// Whether one of these patterns is the word's.
fn is_among(patterns: &str, word: &str) -> bool {
    patterns.split(' ').any(|pattern| match (pattern.strip_suffix('*'), pattern.strip_prefix('*')) {
        (Some(begins), _) => word.starts_with(begins),
        (_, Some(ends)) => word.ends_with(ends),
        _ => word == pattern,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_what_it_is_and_an_unknown_one_keeps_its_name() {
        let of = |reason: &str, function: &str| verdict_of(Some(reason), Some(function));
        assert_eq!(of("NETFILTER_DROP", "nf_hook_slow"), DropVerdict::Refused(LossPlace::Firewall), "a rule");
        assert_eq!(of("TCP_OLD_DATA", "tcp_data_queue"), DropVerdict::Harmless, "a segment that came twice");
        assert_eq!(of("TCP_INVALID_SEQUENCE", "tcp_validate_incoming"), DropVerdict::Harmless, "the same in Linux 6.1");
        assert_eq!(of("QDISC_DROP", "__dev_queue_xmit"), DropVerdict::Lost(LossPlace::Qdisc), "a full queue");
        assert_eq!(of("WARP_CORE_BREACH", "warp"), DropVerdict::Lost(LossPlace::Kernel), "a reason of a later kernel");
        assert_eq!(of("NOT_SPECIFIED", "dst_discard"), DropVerdict::Refused(LossPlace::Ip), "a blackhole route");
        assert_eq!(of("NETFILTER_DROP", "skb_release_data"), DropVerdict::Harmless, "a piece counted with its packet");
        assert_eq!(of("NOT_SPECIFIED", "ip_error"), DropVerdict::Refused(LossPlace::Ip), "a prohibit route");
        assert_eq!(of("IP_INNOROUTES", "ip_error"), DropVerdict::Lost(LossPlace::Ip), "no route");
        assert_eq!(of("NOT_SPECIFIED", "veth_xdp_rcv_skb"), DropVerdict::Refused(LossPlace::Policy), "XDP of a veth");
        assert_eq!(of("NO_TX_TARGET", "br_flood"), DropVerdict::Lost(LossPlace::Bridge), "nobody forbade it");
    }

    #[test]
    fn without_reasons_the_function_tells() {
        let of = |function: &str| verdict_of(None, Some(function));
        assert_eq!(of("nf_hook_slow"), DropVerdict::Refused(LossPlace::Firewall), "Linux 5.10");
        assert_eq!(of("do_xdp_generic"), DropVerdict::Refused(LossPlace::Policy), "Linux 5.10");
        assert_eq!(of("kfree_skb_list"), DropVerdict::Lost(LossPlace::Qdisc), "Linux 5.10");
        assert_eq!(of("udp_queue_rcv_one_skb"), DropVerdict::Lost(LossPlace::ReceiveBuffer), "Linux 5.10");
        assert_eq!(of("tcp_conn_request"), DropVerdict::Lost(LossPlace::Tcp), "a protocol's own");
        assert_eq!(of("tcp_v4_rcv"), DropVerdict::Harmless, "the last segment of a connection that waits in TIME_WAIT");
        assert_eq!(of("ip_error"), DropVerdict::Lost(LossPlace::Ip), "no route, most often");
        assert_eq!(of("ip_rcv_finish_core"), DropVerdict::Refused(LossPlace::ReversePath), "Linux 5.10");
        assert_eq!(of("inet_rtm_getroute"), DropVerdict::Harmless, "a question of ours, not a packet");
        assert_eq!(of("__dev_forward_skb2"), DropVerdict::Lost(LossPlace::Link), "the other end of a veth is down");
        assert_eq!(verdict_of(None, None), DropVerdict::Lost(LossPlace::Kernel), "nothing known is a loss somewhere");
    }
}
