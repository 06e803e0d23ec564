//! `/proc/net/snmp`, `/proc/net/netstat` and `/proc/net/snmp6` → what the protocols of one namespace have counted. All are read by name, because
//! the kernel adds columns in the middle. IPv6 is added to IPv4: a lost packet is a lost packet.

use crate::scan;
use vnettop_sample::{IpCounters, ProtocolCounters};

/// Adds what `/proc/net/snmp` or `/proc/net/netstat` says: pairs of lines, the names and then the numbers of one protocol.
pub(super) fn parse_snmp(bytes: &[u8], into: &mut ProtocolCounters) {
    let mut lines = scan::lines(bytes);
    while let (Some(names), Some(numbers)) = (lines.next(), lines.next()) {
        let (mut names, mut numbers) = (scan::fields(names), scan::fields(numbers));
        let Some(protocol) = names.next().filter(|&protocol| numbers.next() == Some(protocol)) else { return };
        for (name, number) in names.zip(numbers) {
            add(into, protocol, name, number);
        }
    }
}

/// Adds what `/proc/net/snmp6` says: a name with its protocol in front (`Udp6InDatagrams`) and a number on each line.
pub(super) fn parse_snmp6(bytes: &[u8], into: &mut ProtocolCounters) {
    for line in scan::lines(bytes) {
        let mut fields = scan::fields(line);
        let (Some(name), Some(number)) = (fields.next(), fields.next()) else { continue };
        if let Some(name) = name.strip_prefix(b"Ip6") {
            add(into, b"Ip:", if name == b"OutForwDatagrams" { b"ForwDatagrams" } else { name }, number);
        } else if let Some(name) = name.strip_prefix(b"Udp6") {
            add(into, b"Udp:", name, number);
        }
    }
}

fn add(into: &mut ProtocolCounters, protocol: &[u8], name: &[u8], number: &[u8]) {
    let (Some(counter), Some(value)) = (counter(into, protocol, name), scan::number(number)) else { return };
    *counter = counter.saturating_add(value);
}

/// The counter of that name; IPv6 writes three of them differently.
fn counter<'a>(of: &'a mut ProtocolCounters, protocol: &[u8], name: &[u8]) -> Option<&'a mut u64> {
    Some(match (protocol, name) {
        (b"Ip:", b"InReceives") => &mut of.ip_in_receives,
        (b"Ip:", b"InDiscards") => &mut of.ip_in_discards,
        (b"Ip:", b"InHdrErrors") => &mut of.ip_in_hdr_errors,
        (b"Ip:", b"OutDiscards") => &mut of.ip_out_discards,
        (b"Ip:", b"OutNoRoutes") => &mut of.ip_out_no_routes,
        (b"Ip:", b"ForwDatagrams") => &mut of.ip_forwarded,
        (b"Ip:", b"FragFails") => &mut of.ip_frag_fails,
        (b"Ip:", b"ReasmFails") => &mut of.ip_reasm_fails,
        (b"Udp:", b"InDatagrams") => &mut of.udp_in_datagrams,
        (b"Udp:", b"OutDatagrams") => &mut of.udp_out_datagrams,
        (b"Udp:", b"NoPorts") => &mut of.udp_no_ports,
        (b"Udp:", b"InErrors") => &mut of.udp_in_errors,
        (b"Udp:", b"RcvbufErrors") => &mut of.udp_rcvbuf_errors,
        (b"Udp:", b"SndbufErrors") => &mut of.udp_sndbuf_errors,
        (b"Udp:", b"InCsumErrors") => &mut of.udp_in_csum_errors,
        (b"Tcp:", b"OutSegs") => &mut of.tcp_out_segs,
        (b"Tcp:", b"RetransSegs") => &mut of.tcp_retrans_segs,
        (b"Tcp:", b"InErrs") => &mut of.tcp_in_errs,
        _ => return ip_counter(of.ip.get_or_insert_default(), protocol, name),
    })
}

/// IP's counter of this name, of packets that it took, passed on or refused; `None` for any other.
fn ip_counter<'a>(of: &'a mut IpCounters, protocol: &[u8], name: &[u8]) -> Option<&'a mut u64> {
    Some(match (protocol, name) {
        (b"Ip:", b"InDelivers") => &mut of.in_delivers,
        (b"Ip:", b"InAddrErrors") => &mut of.in_addr_errors,
        (b"Ip:", b"InUnknownProtos") => &mut of.in_unknown_protos,
        (b"Ip:" | b"IpExt:", b"InNoRoutes") => &mut of.in_no_routes,
        (b"Ip:" | b"IpExt:", b"InTruncatedPkts") => &mut of.in_truncated_pkts,
        (b"TcpExt:", b"IPReversePathFilter") => &mut of.reverse_path_filter,
        (b"Ip:", b"OutRequests") => &mut of.out_requests,
        (b"Ip:", b"OutTransmits") => of.out_transmits.get_or_insert_default(),
        (b"Ip:", b"ReasmReqds") => &mut of.reasm_reqds,
        (b"Ip:", b"ReasmOKs") => &mut of.reasm_oks,
        (b"Ip:", b"FragOKs") => &mut of.frag_oks,
        (b"Ip:", b"FragCreates") => &mut of.frag_creates,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Linux 6.18, shortened to what is read and a few more.
    const SNMP: &str = "\
Ip: Forwarding DefaultTTL InReceives InHdrErrors InAddrErrors ForwDatagrams InUnknownProtos InDiscards InDelivers OutRequests OutDiscards OutNoRoutes ReasmTimeout ReasmReqds ReasmOKs ReasmFails FragOKs FragFails FragCreates OutTransmits
Ip: 2 64 6026721 1 0 2 0 3 6026721 4957097 36224 5 0 0 0 6 0 7 0 4957097
Icmp: InMsgs InErrors
Icmp: 3 0
Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens InSegs OutSegs RetransSegs InErrs OutRsts InCsumErrors
Tcp: 1 200 120000 -1 205 6026634 6019344 1065 8 60 0
Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors IgnoredMulti MemErrors
Udp: 196 9 61058 17327 61057 36224 1 0 0
UdpLite: InDatagrams NoPorts InErrors
UdpLite: 1000 1000 1000
";

    fn snmp(text: &str) -> ProtocolCounters {
        let mut counters = ProtocolCounters::default();
        parse_snmp(text.as_bytes(), &mut counters);
        counters
    }

    #[test]
    fn every_counter_is_found_by_its_name() {
        let reported = snmp(SNMP);
        let expected = ProtocolCounters {
            ip_in_receives: 6_026_721,
            ip_in_discards: 3,
            ip_in_hdr_errors: 1,
            ip_out_discards: 36_224,
            ip_out_no_routes: 5,
            ip_forwarded: 2,
            ip_frag_fails: 7,
            ip_reasm_fails: 6,
            udp_in_datagrams: 196,
            udp_out_datagrams: 17_327,
            udp_no_ports: 9,
            udp_in_errors: 61_058,
            udp_rcvbuf_errors: 61_057,
            udp_sndbuf_errors: 36_224,
            udp_in_csum_errors: 1,
            tcp_out_segs: 6_019_344,
            tcp_retrans_segs: 1_065,
            tcp_in_errs: 8,
            ip: Some(IpCounters {
                in_delivers: 6_026_721,
                out_requests: 4_957_097,
                out_transmits: Some(4_957_097),
                ..IpCounters::default()
            }),
            ..ProtocolCounters::default()
        };
        assert_eq!(reported, expected, "by name, UDP-Lite left out, a negative limit no obstacle");
    }

    #[test]
    fn what_ip_refused_is_found_in_both_files_and_both_versions() {
        let mut reported = ProtocolCounters::default();
        let netstat = "TcpExt: SyncookiesSent IPReversePathFilter TCPTimeouts\nTcpExt: 4 2977 9\nIpExt: InNoRoutes InTruncatedPkts InOctets\nIpExt: 3 2 77\n";
        parse_snmp(netstat.as_bytes(), &mut reported);
        parse_snmp6(b"Ip6InNoRoutes \t10\nIp6InDelivers \t5\nIp6FragCreates\t12\nIp6FragOKs\t2\n", &mut reported);
        let expected = IpCounters {
            reverse_path_filter: 2_977,
            in_no_routes: 13,
            in_truncated_pkts: 2,
            in_delivers: 5,
            frag_creates: 12,
            frag_oks: 2,
            ..IpCounters::default()
        };
        assert_eq!(reported.ip, Some(expected), "an older kernel does not count what it hands to links");
    }

    #[test]
    fn ipv6_is_added_to_ipv4() {
        let mut reported = snmp(SNMP);
        let text = "Ip6InReceives                   \t12\nIp6OutForwDatagrams \t4\nUdp6OutDatagrams\t73\nUdp6RcvbufErrors\t3\nUdpLite6InErrors\t9\n";
        parse_snmp6(text.as_bytes(), &mut reported);
        assert_eq!((reported.ip_in_receives, reported.ip_forwarded), (6_026_733, 6), "packets of both");
        assert_eq!((reported.udp_out_datagrams, reported.udp_rcvbuf_errors), (17_400, 61_060), "datagrams of both");
    }

    #[test]
    fn a_file_that_is_cut_or_mixed_up_gives_what_is_certain() {
        assert_eq!(
            snmp("Ip: InReceives\nUdp: 5\n"),
            ProtocolCounters::default(),
            "names and numbers must belong together"
        );
        assert_eq!(snmp("Udp: InDatagrams NoPorts\nUdp: 5\n").udp_in_datagrams, 5, "a missing number is none");
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>, text in "(Udp: [A-Za-z ]{0,20}\n){0,4}") {
            let mut counters = ProtocolCounters::default();
            parse_snmp(&bytes, &mut counters);
            parse_snmp(text.as_bytes(), &mut counters);
            parse_snmp6(&bytes, &mut counters);
        }
    }
}
