//! Where packets can be lost besides links and backlogs: qdiscs, and the protocols of one namespace. Absolute counters.

use super::LinkKey;
use compact_str::CompactString;
use serde::{Deserialize, Serialize};

/// One qdisc (`RTM_GETQDISC`, `TCA_STATS2`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QdiscCounters {
    /// The link it is on.
    pub link: LinkKey,
    /// `TCA_KIND`: `noqueue`, `fq_codel`, `netem`, …
    pub kind: CompactString,
    /// `tcm_handle`.
    pub handle: u32,
    /// `tcm_parent`; `0xffff_ffff` is the root.
    pub parent: u32,
    /// `CLOCK_MONOTONIC`, ns.
    pub at_ns: u64,
    /// Bytes sent.
    pub bytes: u64,
    /// Packets sent.
    pub packets: u64,
    /// Packets dropped.
    pub drops: u64,
    /// Packets waiting.
    pub backlog_packets: u32,
    /// Times that it held a packet back because its rate was reached (`overlimits`), mod 2^32; none in recordings that do not
    /// tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlimits: Option<u32>,
    /// What it is set to; none of kinds whose options are not read, and in recordings that do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setting: Option<QdiscSetting>,
}

/// What bounds what passes a qdisc (`TCA_OPTIONS` of tbf, cake, netem, pfifo and bfifo); none where it has no such bound.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct QdiscSetting {
    /// The rate that it lets pass, bytes/s: of tbf, cake and netem.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_bytes_per_s: Option<u64>,
    /// What tbf lets pass at once, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst_bytes: Option<u64>,
    /// Packets that may wait: netem, pfifo.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_packets: Option<u32>,
    /// Bytes that may wait: tbf, bfifo.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_bytes: Option<u32>,
    /// What netem drops at random, in 2^32nds of the packets; none where it follows a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub random_loss: Option<u32>,
}

/// What the protocols of one network namespace count (`/proc/PID/net/snmp`, `netstat`, `snmp6`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the kernel's names, in packets unless said otherwise")]
pub struct ProtocolCounters {
    /// Inode of the namespace.
    pub netns: u64,
    /// `CLOCK_MONOTONIC`, ns.
    pub at_ns: u64,
    pub ip_in_receives: u64,
    pub ip_in_discards: u64,
    pub ip_in_hdr_errors: u64,
    pub ip_out_discards: u64,
    pub ip_out_no_routes: u64,
    pub ip_forwarded: u64,
    pub ip_frag_fails: u64,
    pub ip_reasm_fails: u64,
    pub udp_in_datagrams: u64,
    pub udp_out_datagrams: u64,
    pub udp_no_ports: u64,
    pub udp_in_errors: u64,
    pub udp_rcvbuf_errors: u64,
    pub udp_sndbuf_errors: u64,
    pub udp_in_csum_errors: u64,
    pub tcp_out_segs: u64,
    pub tcp_retrans_segs: u64,
    pub tcp_in_errs: u64,
    /// What comes in and goes out of IP; none in recordings that do not tell.
    #[serde(default)]
    pub ip: Option<IpCounters>,
    /// Connection tracking; none where the namespace does not track.
    pub conntrack: Option<Conntrack>,
    /// UDP sockets of this namespace other than those of watched processes, including those of the kernel's tunnels; `None`
    /// when each socket is asked itself, or they cannot be listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_udp: Option<OtherUdp>,
}

/// A socket that is given every frame of a link (`AF_PACKET`), of a switch in user space or of a capture (`sock_diag`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketSocket {
    /// The link.
    pub link: LinkKey,
    /// Inode of sockfs, as `/proc/PID/fd` names it.
    pub inode: u32,
    /// `SK_MEMINFO_DROPS` (Linux 4.7): frames for which it had no room since it was opened, mod 2^32.
    pub drops: u32,
    /// The process that holds it, looked for once it has dropped something; `None` when it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<SocketProcess>,
}

impl PacketSocket {
    /// What rows are sorted by.
    #[must_use]
    pub fn key(&self) -> (LinkKey, u32) {
        (self.link, self.inode)
    }
}

/// A process that holds a socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketProcess {
    /// Its number.
    pub pid: u32,
    /// `comm`.
    pub name: CompactString,
}

/// UDP sockets whose datagrams are in the counters of a namespace too (`sock_diag`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherUdp {
    /// How many.
    pub sockets: u32,
    /// The lowest of their ports; 0 when there is none.
    pub port: u16,
}

/// Packets that IP took, passed on and refused: missing ones were dropped between its hooks (`/proc/PID/net/snmp`, `netstat`,
/// `snmp6`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the kernel's names, in packets")]
pub struct IpCounters {
    pub in_delivers: u64,
    pub in_addr_errors: u64,
    pub in_unknown_protos: u64,
    /// `IpExt` of IPv4.
    pub in_no_routes: u64,
    /// `IpExt` of IPv4.
    pub in_truncated_pkts: u64,
    /// `TcpExt: IPReversePathFilter`; IPv6 has none.
    pub reverse_path_filter: u64,
    pub out_requests: u64,
    /// Packets handed to a link; only newer kernels count them (6.18 does, 6.1 does not).
    pub out_transmits: Option<u64>,
    pub reasm_reqds: u64,
    pub reasm_oks: u64,
    /// Packets that were taken apart, and what they became.
    pub frag_oks: u64,
    pub frag_creates: u64,
}

/// What a link of a path puts together, takes apart or checks instead of packet by packet (`ETHTOOL_MSG_FEATURES_GET`,
/// Linux 5.7).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct Offloads {
    /// The link.
    pub link: LinkKey,
    /// `tx-tcp-segmentation`.
    pub tso: bool,
    /// `tx-generic-segmentation`.
    pub gso: bool,
    /// `rx-gro`.
    pub gro: bool,
    /// `tx-checksum-ip-generic` or `tx-checksum-ipv4`.
    pub tx_checksum: bool,
    /// `rx-checksum`.
    pub rx_checksum: bool,
    /// Offloads that are off, could be on, and that nobody wants on: a driver starts without them, or someone turned them off.
    /// An offload that is wanted and yet off is off because of another link or switch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unwanted: Vec<Offload>,
    /// How much one packet may hold that is cut later; none where the kernel does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gso_limits: Option<GsoLimits>,
    /// The XDP program that sees what it receives; none where there is none, or that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xdp: Option<XdpProgram>,
}

/// How much a packet may hold that TCP gives to a link to be cut there or behind it (`RTM_GETLINK`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GsoLimits {
    /// `IFLA_GSO_MAX_SIZE`, bytes: of IPv6, and of IPv4 too where it has no limit of its own.
    pub size: u32,
    /// `IFLA_GSO_IPV4_MAX_SIZE`, bytes (Linux 6.3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipv4_size: Option<u32>,
    /// `IFLA_GSO_MAX_SEGS`.
    pub segments: u32,
    /// `IFLA_TSO_MAX_SIZE`, bytes (Linux 5.19): nobody can set more, because the device cuts no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_size: Option<u32>,
    /// `IFLA_TSO_MAX_SEGS`, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_segments: Option<u32>,
}

/// A BPF program that sees packets before the network stack does (`IFLA_XDP`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct XdpProgram {
    /// `IFLA_XDP_PROG_ID`; none where several are attached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u32>,
    /// It runs in the driver or in the device, else on what the driver has made of a packet.
    pub native: bool,
}

/// One of a link's switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "see the fields of Offloads")]
#[strum(serialize_all = "lowercase")]
pub enum Offload {
    Tso,
    Gso,
    Gro,
    #[strum(to_string = "tx")]
    TxChecksum,
    #[strum(to_string = "rx")]
    RxChecksum,
}

impl Offload {
    /// All of them.
    pub const EACH: [Self; 5] = [Self::Tso, Self::Gso, Self::Gro, Self::TxChecksum, Self::RxChecksum];
}

impl Offloads {
    /// Whether one is on.
    #[must_use]
    pub fn has(&self, offload: Offload) -> bool {
        match offload {
            Offload::Tso => self.tso,
            Offload::Gso => self.gso,
            Offload::Gro => self.gro,
            Offload::TxChecksum => self.tx_checksum,
            Offload::RxChecksum => self.rx_checksum,
        }
    }
}

/// Connection tracking of one namespace (`/proc/net/stat/nf_conntrack`, `nf_conntrack_count`, `nf_conntrack_max`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the kernel's names")]
pub struct Conntrack {
    pub count: u64,
    pub max: u64,
    pub drop: u64,
    pub early_drop: u64,
    pub insert_failed: u64,
    /// Packets that belong to no connection: a firewall's rule decides what becomes of them.
    #[serde(default)]
    pub invalid: u64,
}
