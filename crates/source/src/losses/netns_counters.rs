//! One namespace's descriptors: its protocol counters, its connection tracking, its qdiscs. They are opened once inside it and
//! keep showing it; while they are open they keep it alive, so they are closed as soon as no flow needs them.

use super::offloads::Asker;
use super::packet_sockets::PacketSockets;
use super::{conntrack, qdisc, segmentation, snmp};
use crate::links::facts;
use crate::netlink::client::NetlinkClient;
use crate::netlink::message::Request;
use crate::netlink::socket::{KernelSocket, protocols};
use crate::proc_file::KeptFile;
use crate::{SourceError, now_ns, scan};
use std::io;
use std::path::Path;
use vnettop_sample::{Ifindex, Offloads, PacketSocket, ProtocolCounters, QdiscCounters};

/// Most qdiscs that are read of a namespace in which no path is known. While no flow is there, a namespace with so many has none
/// of them read: with 2,000 links a dump takes 4 ms, a quarter of what a second costs.
pub(super) const MANY_QDISCS: usize = 512;

/// What is kept open of one namespace.
#[derive(Debug)]
pub(super) struct NetnsCounters {
    snmp: KeptFile,
    netstat: Option<KeptFile>,
    snmp6: Option<KeptFile>,
    conntrack: Option<KeptFile>,
    /// Entries that connection tracking may have.
    most_entries: u64,
    /// None where the namespace may not be entered.
    qdiscs: Option<NetlinkClient>,
    request: Request,
    /// Number of qdiscs in the last dump.
    pub(super) dumped: usize,
    /// None where the namespace may not be entered.
    offloads: Option<Asker>,
    /// None too once the kernel did not list them: each further request would look for a module.
    packet_sockets: Option<PacketSockets>,
}

impl NetnsCounters {
    /// Opens the namespace of the calling thread.
    pub fn here(proc: &Path) -> io::Result<Self> {
        let mut place = Self::of_files(&proc.join("thread-self/net"), proc)?;
        let socket = KernelSocket::open(protocols::NETLINK_ROUTE)?;
        socket.check_strictly();
        place.qdiscs = Some(NetlinkClient::new(socket));
        place.offloads = Asker::open().ok();
        place.packet_sockets = PacketSockets::open().ok();
        Ok(place)
    }

    /// Opens the namespace of a process from outside, which needs no right but shows no qdisc.
    pub fn of_process(proc: &Path, pid: u32) -> io::Result<Self> {
        Self::of_files(&proc.join(pid.to_string()).join("net"), proc)
    }

    fn of_files(net: &Path, proc: &Path) -> io::Result<Self> {
        let snmp = KeptFile::open(net.join("snmp")).map_err(SourceError::into_io)?;
        let most = std::fs::read(proc.join("sys/net/netfilter/nf_conntrack_max")).ok();
        Ok(Self {
            snmp,
            netstat: KeptFile::open(net.join("netstat")).ok(),
            snmp6: KeptFile::open(net.join("snmp6")).ok(),
            conntrack: KeptFile::open(net.join("stat/nf_conntrack")).ok(),
            most_entries: most.and_then(|text| scan::number(text.trim_ascii())).unwrap_or(0),
            qdiscs: None,
            request: qdisc::request(),
            dumped: 0,
            offloads: None,
            packet_sockets: None,
        })
    }

    /// What the protocols have counted; IPv6, whose file is the longest, only where a flow speaks it.
    pub fn protocols(&self, netns: u64, ipv6: bool, buffer: &mut Vec<u8>) -> Result<ProtocolCounters, SourceError> {
        let mut counters = ProtocolCounters { netns, at_ns: now_ns(), ..ProtocolCounters::default() };
        snmp::parse_snmp(self.snmp.read(buffer)?, &mut counters);
        if let Some(file) = &self.netstat {
            snmp::parse_snmp(file.read(buffer)?, &mut counters);
        }
        if let Some(file) = self.snmp6.as_ref().filter(|_| ipv6) {
            snmp::parse_snmp6(file.read(buffer)?, &mut counters);
        }
        if let Some(file) = &self.conntrack {
            counters.conntrack = conntrack::parse(file.read(buffer)?, self.most_entries);
        }
        Ok(counters)
    }

    /// Whether a dump of its qdiscs is dear.
    pub fn has_many_qdiscs(&self) -> bool {
        self.dumped >= MANY_QDISCS
    }

    /// The qdiscs of these links, or of all where there are none of them; sorted by link and handle, one each.
    pub fn qdiscs(&mut self, netns: u64, links: &[Ifindex], into: &mut Vec<QdiscCounters>) -> Result<(), SourceError> {
        let Some(netlink) = &mut self.qdiscs else { return Ok(()) };
        let first = into.len();
        let mut dumped = 0;
        let is_wanted = |ifindex| links.is_empty() || links.binary_search(&ifindex).is_ok();
        let received = netlink.dump(&mut self.request, "list qdiscs", |message, at_ns| {
            dumped += 1;
            let reported = qdisc::qdisc(message, netns, at_ns).filter(|reported| is_wanted(reported.link.ifindex));
            if into.len() - first < MANY_QDISCS {
                into.extend(reported);
            }
        });
        self.dumped = dumped;
        // Children of a `mq` without a handle share handle 0 with it: the root, which adds them up, stands for them.
        into[first..].sort_by_key(|reported| (reported.link, reported.handle, reported.parent != u32::MAX));
        let mut last = None;
        let mut at = 0;
        into.retain(|reported| {
            at += 1;
            at <= first || last.replace((reported.link, reported.handle)) != Some((reported.link, reported.handle))
        });
        received.map(drop)
    }

    /// The sockets that are given every frame of these links, or of each where there are none of them.
    pub fn packet_sockets(&mut self, netns: u64, links: &[Ifindex], into: &mut Vec<PacketSocket>) {
        let Some(sockets) = &mut self.packet_sockets else { return };
        if !sockets.list(netns, links, into) {
            self.packet_sockets = None;
        }
    }

    /// What these links leave to their device or do for others; a link that does not say is left out.
    pub fn offloads(&mut self, netns: u64, links: &[Ifindex]) -> Vec<Offloads> {
        let (Some(asker), Some(netlink)) = (&mut self.offloads, &mut self.qdiscs) else { return Vec::new() };
        let ask = |&ifindex: &Ifindex| {
            let reported = asker.ask(netns, ifindex)?;
            let link = netlink.get(&mut facts::request(Some(ifindex)), segmentation::parse);
            let (gso_limits, xdp) = link.ok().flatten().unwrap_or_default();
            Some(Offloads { gso_limits, xdp, ..reported })
        };
        links.iter().filter_map(ask).collect()
    }
}
