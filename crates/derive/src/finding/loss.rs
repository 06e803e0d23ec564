//! Where packets go missing, and what is done about that place.

mod bridge;
mod doubled;
mod mac;
mod queues;

pub(super) use doubled::same_mac;

use super::reordered::reordered;
use super::{Diagnostic, FindingParts, LintInput};
use crate::denial::{self, DropsSeen};
use crate::figure::{decimal, large_part, large_rate, percent, rate, speed};
use crate::held_back::Limit;
use crate::losses::{Loss, LossPlace, Losses, place_of_drop};
use crate::{TestMetrics, paths, share};
use vnettop_sample::{OvsDatapathKind, Proto, SpaceEntry, shell_word};

/// Less than one packet a second is nothing that a test would notice.
const LEAST_PER_S: f64 = 1.0;
/// A lost segment is sent again within this time, s, unless it is lost several times.
const SENT_AGAIN_WITHIN_S: f64 = 3.0;
/// From this share on, segments sent again are worth a sentence of their own.
const RETRANSMITTED: f64 = 0.001;

/// The place where most is lost.
pub(super) fn lost(input: &LintInput<'_>) -> Option<Diagnostic> {
    let losses = &input.metrics.losses;
    let (worst, here) = worst(losses)?;
    let [here, whole] = [here, losses.packets()].map(|packets| losses.per_second(packets));
    if whole < LEAST_PER_S {
        return None;
    }
    // The packets sent are known for every loss place or for none, so checking the worst place is enough.
    let sent = losses.sent.filter(|&sent| sent > 0.0 && worst.share.is_some()).map(|sent| losses.per_second(sent));
    let share = |packets: f64| share::share(packets, sent?);
    let how_many = match (share(here), share(whole)) {
        (Some(here), Some(all)) if percent(here) == percent(all) => {
            format!("{} % of packets lost", percent(all))
        }
        (Some(here), Some(all)) => format!("{} % of packets lost ({} % in total)", percent(here), percent(all)),
        _ if here < whole => format!("{} packets/s lost ({} in total)", rate(here), rate(whole)),
        _ => format!("{} packets/s lost", rate(whole)),
    };
    // The datagrams of a VPN are counted by themselves.
    let how_many = match worst.share.filter(|_| worst.is_of_vpn()) {
        Some(share) => format!("{} % of a tunnel's datagrams lost", percent(share)),
        None => how_many,
    };
    let others = losses.places.iter().find(|loss| !same(loss, worst));
    let beside =
        others.map(|loss| (loss, losses.per_second(loss.packets))).filter(|(_, packets)| *packets >= LEAST_PER_S);
    let beside = beside.map_or_else(String::new, |(loss, packets)| {
        let much = share(packets)
            .map_or_else(|| format!("{} packets/s", rate(packets)), |share| format!("{} %", percent(share)));
        format!("; {much} {}{}", place(loss, input.metrics), kernels_word(loss))
    });
    let at = place(worst, input.metrics);
    let (why, parts) = why(worst, input);
    let text = format!("{how_many} {at}{}: {why}{beside}", kernels_word(worst));
    let is_again = input.metrics.flow.connections.iter().any(|one| one.carries && one.proto() == Proto::Tcp);
    let then = if is_again { "are sent again" } else { "do not arrive" };
    let lost = sent.map_or_else(|| large_rate(whole), |sent| large_part(whole, sent));
    // What is lost of TCP is sent again: what that costs its rate is not measured.
    let bits = sent.filter(|_| !is_again).and_then(|sent| missing_bits(input.metrics, whole, whole / sent));
    let bits = bits.map_or_else(String::new, |bits| format!("{}: ", speed(bits)));
    let cost = if worst.is_of_vpn() { String::new() } else { format!("{bits}{lost} packets/s {then}") };
    let parts = FindingParts { what: format!("{how_many} {at}{beside}"), cost, ..parts };
    let mut numbers = vec![("packets_per_s", here), ("all_packets_per_s", whole)];
    numbers.extend(sent.map(|sent| ("sent_per_s", sent)));
    numbers.extend(worst.share.filter(|_| worst.is_of_vpn()).or(share(here)).map(|share| ("share", share)));
    numbers.extend(share(whole).map(|share| ("all_share", share)));
    numbers.extend(worst.core.map(|core| ("core", f64::from(core))));
    Some(Diagnostic::new(text, numbers).in_parts(parts))
}

/// What would arrive besides if so many packets a second, and this share of what is sent, were not lost, bits/s of payload: as many
/// bits as the test's datagrams have; where that is not known, of the mean rate that stands on the screen. `None` without either.
fn missing_bits(metrics: &TestMetrics, packets_per_s: f64, lost: f64) -> Option<f64> {
    let rates = || metrics.flow.tests.iter().filter_map(|test| test.sent.or(test.received));
    let (bits, packets) = rates().fold((0.0, 0.0), |(bits, packets), rate| {
        (bits + rate.bits_per_s, packets + rate.packets_per_s.unwrap_or(f64::NAN))
    });
    if packets > 0.0 {
        return Some(packets_per_s * bits / packets);
    }
    let mean = metrics.jitter.map(|jitter| jitter.mean).filter(|mean| *mean > 0.0 && lost < 1.0)?;
    Some(mean * lost / (1.0 - lost))
}

/// The worst place loses because of what LIMIT names.
pub(super) fn is_explained(input: &LintInput<'_>) -> bool {
    let explains = |limit: &Limit| Some(limit.explains(worst(&input.metrics.losses)?.0.place)?.len());
    input.limit.and_then(explains).is_some()
}

/// Why they are lost there, as far as LIMIT knows that; else what is done about that place. In one sentence, and in parts.
fn why(loss: &Loss, input: &LintInput<'_>) -> (String, FindingParts) {
    // Who does not answer upcalls in time is in their own remedy.
    let is_paused = || loss.place == LossPlace::ReceiveBuffer && queues::paused(input.metrics).is_some();
    let limit = input.limit.filter(|_| loss.place != LossPlace::Upcall && !is_paused());
    let Some((limit, because)) = limit.and_then(|limit| Some((limit, limit.explains(loss.place)?))) else {
        let text = remedy(loss, input.metrics);
        let parts = FindingParts::of_remedy(&text);
        return (text, parts);
    };
    let fix = super::remedy::remedy(input, limit);
    let why = limit.waits.clone().unwrap_or_default();
    let text = super::remedy::sentence(because, &fix);
    (text, FindingParts { why, by_limit: true, fix, ..FindingParts::default() })
}

/// The first loss of the worst place, and how many packets are lost there over all cores.
fn worst(losses: &Losses) -> Option<(&Loss, f64)> {
    let sum = |one: &Loss| losses.places.iter().filter(|other| same(one, other)).map(|other| other.packets).sum();
    let all = losses.places.iter().map(|loss| (loss, sum(loss)));
    // Of several reasons at one place the first is the one for which most is lost.
    all.rev().max_by(|one: &(_, f64), other| one.1.total_cmp(&other.1))
}

/// Whether two losses have the same place; reasons may differ.
fn same(one: &Loss, other: &Loss) -> bool {
    let place = |loss: &Loss| (loss.place, loss.netns, loss.link, loss.is_of_vpn());
    place(one) == place(other)
}

/// The place in words, with its namespace where there is more than one.
pub(super) fn place(loss: &Loss, metrics: &TestMetrics) -> String {
    format!("{}{}", place_alone(loss), space(loss, metrics))
}

/// The place in words.
pub(crate) fn place_alone(loss: &Loss) -> String {
    let named = |what: &str, unnamed: &str| {
        loss.name.as_deref().map_or_else(|| unnamed.to_owned(), |name| format!("{what} {name}"))
    };
    let at = loss.name.as_deref().map_or_else(String::new, |name| format!(" at {name}"));
    match loss.place {
        LossPlace::Qdisc => named("in the qdisc", "in a qdisc"),
        LossPlace::Link => named("by link", "by a link"),
        // What the kernel's datapath drops is at the port it came in through.
        LossPlace::Ovs if loss.function.is_some() => format!("by Open vSwitch{at}"),
        LossPlace::Ovs => named("by Open vSwitch's port", "by Open vSwitch"),
        LossPlace::Upcall => named("in upcalls of Open vSwitch's datapath", "in upcalls of an Open vSwitch datapath"),
        LossPlace::Backlog => {
            let core = loss.core.map_or_else(String::new, |core| format!(" of core {core}"));
            let through = loss.name.as_deref().map_or_else(String::new, |name| format!(", incoming through {name}"));
            format!("in the full backlog{core}{through}")
        }
        LossPlace::Ip => format!("by IP{at}"),
        LossPlace::Reassembly => "in fragment reassembly".to_owned(),
        LossPlace::ReversePath => format!("by rp_filter{at}"),
        LossPlace::Firewall => format!("by a firewall rule{at}"),
        LossPlace::TrafficControl => format!("by a traffic control filter{at}"),
        LossPlace::Policy if is_of_xdp(loss) => format!("by the XDP program{at}"),
        LossPlace::Policy => format!("by a rule{at}"),
        LossPlace::Bridge => format!("by the bridge{at}"),
        LossPlace::Neighbour => format!("waiting for a neighbour's MAC address{at}"),
        LossPlace::MacAddress => {
            named("because they are for a MAC address other than that of", "because they are for another MAC address")
        }
        LossPlace::NoSocket => format!("because no socket accepts them{at}"),
        LossPlace::Tcp => format!("by TCP{at}"),
        LossPlace::Kernel => format!("in the kernel{at}"),
        LossPlace::Checksum => "because their checksum is wrong".to_owned(),
        LossPlace::ReceiveBuffer if loss.is_of_vpn() => named("in the socket of", ""),
        LossPlace::ReceiveBuffer => "in the receiver's socket buffer".to_owned(),
        LossPlace::SendBuffer => "in the sender's socket buffer".to_owned(),
        LossPlace::PacketSocket => named("in the packet socket of", "in a packet socket (AF_PACKET)"),
        LossPlace::Forwarder => named("in", "in a program that forwards"),
        LossPlace::Conntrack => "by connection tracking".to_owned(),
    }
}

/// ` (NETFILTER_DROP in nf_hook_slow)`: what the kernel itself says.
pub(super) fn kernels_word(loss: &Loss) -> String {
    match (&loss.reason, &loss.function) {
        (Some(reason), Some(function)) => format!(" ({reason} in {function})"),
        (Some(word), None) => format!(" ({word})"),
        (None, Some(function)) => format!(" (in {function})"),
        (None, None) => String::new(),
    }
}

/// The namespace as people know it.
fn space(loss: &Loss, metrics: &TestMetrics) -> String {
    let Some(netns) = loss.netns.filter(|_| metrics.machine.facts.spaces.len() > 1) else { return String::new() };
    match (metrics.machine.space_name(netns), metrics.machine.space(netns).and_then(|space| space.pid)) {
        _ if netns == metrics.machine.netns => " in vnettop's own namespace".to_owned(),
        (Some(name), _) => format!(" in netns {name}"),
        (None, Some(pid)) => format!(" in the namespace of process {pid}"),
        (None, None) => format!(" in namespace {netns}"),
    }
}

fn remedy(loss: &Loss, metrics: &TestMetrics) -> String {
    match loss.place {
        LossPlace::Qdisc => return queues::qdisc(loss, metrics),
        LossPlace::Link if let Some(pair) = bridge::of_pair(loss, metrics) => return pair,
        LossPlace::Link => return queues::link(loss, metrics),
        LossPlace::Ovs if loss.function.is_some() => {
            "a flow or a meter drops them (ovs-dpctl dump-flows, ovs-ofctl meter-stats BRIDGE); or they exceed the output port's MTU (ip link)"
        }
        LossPlace::Ovs => "ovs-appctl dpctl/show and dpif-netdev/pmd-perf-show show why",
        LossPlace::Backlog => "for bursts raise net.core.netdev_max_backlog",
        LossPlace::Ip | LossPlace::NoSocket
            if let Some(twin) = loss.link.and_then(|link| doubled::sentence(metrics, link)) =>
        {
            return twin;
        }
        LossPlace::Ip
            if loss.reason.is_none()
                && let Some(narrow) = bridge::narrow_in(metrics, loss.netns) =>
        {
            return narrow;
        }
        LossPlace::Ip => ip(loss),
        LossPlace::Checksum => {
            "something on the path damages them (netem corrupt, a rule that rewrites them); or a link omits the \
             checksum (fix: ethtool -K LINK tx off)"
        }
        LossPlace::ReceiveBuffer if loss.is_of_vpn() => return vpn(loss),
        LossPlace::ReceiveBuffer => return queues::receive_buffer(metrics),
        LossPlace::SendBuffer => "raise net.core.wmem_max and iperf3 -w",
        LossPlace::Reassembly => {
            "a fragment is missing; or net.ipv4.ipfrag_high_thresh is reached (nstat -az IpReasmFails); send smaller \
             datagrams"
        }
        LossPlace::ReversePath => {
            "their return path uses another link; to accept them in that netns: sysctl net.ipv4.conf.LINK.rp_filter=2"
        }
        LossPlace::Firewall => return firewall(loss, metrics),
        LossPlace::TrafficControl => "tc -s filter show dev LINK ingress (or egress) there shows the filter",
        LossPlace::Policy if is_of_xdp(loss) => return xdp(loss, metrics),
        LossPlace::Policy => {
            "a cgroup, socket or IPsec filter drops them (bpftool net, bpftool cgroup tree)"
        }
        LossPlace::Bridge => return bridge::remedy(loss, metrics),
        LossPlace::MacAddress => return mac::remedy(loss, metrics),
        LossPlace::Neighbour => "the neighbour does not answer ARP or ND (ip neighbour); or its link is down (ip link)",
        LossPlace::NoSocket => "the receiver has closed its socket, or listens elsewhere (ss -uanp there)",
        LossPlace::Tcp => "the receiver's TCP rejects invalid segments (nstat -az there shows which)",
        LossPlace::Kernel => "only the kernel's reason and function are known: look that function up",
        LossPlace::Conntrack => return conntrack(metrics),
        LossPlace::Upcall => return upcall(loss, metrics),
        LossPlace::Forwarder => "it does not give them to its next link (its own drop counters tell why)",
        LossPlace::PacketSocket => {
            "a switch in user space takes frames more slowly than they come (ss -0mp there shows it): give it a core, \
             or the kernel's datapath"
        }
    }
    .to_owned()
}

/// What IP refuses, by the kernel's reason for it.
fn ip(loss: &Loss) -> &'static str {
    match loss.reason.as_deref() {
        Some("IP_INNOROUTES" | "IP_OUTNOROUTES") => {
            "there is no route to their destination (ip route get ADDRESS there)"
        }
        _ if loss.refused => "a blackhole, unreachable or prohibit route refuses them (ip route there)",
        Some("IP_INHDR") => "their TTL expired (a loop: traceroute shows it), or their header is invalid",
        Some("PKT_TOO_BIG") => "they exceed the path's MTU and must not be fragmented (ip route get ADDRESS)",
        _ => "no route or memory, an invalid header, or above the MTU (nstat -az shows which)",
    }
}

fn firewall(loss: &Loss, metrics: &TestMetrics) -> String {
    let losses = &metrics.losses;
    let invalid = losses.per_second(losses.invalid);
    let tracked =
        (invalid >= LEAST_PER_S).then(|| format!("; connection tracking marks {} packets/s as invalid", rate(invalid)));
    let command = match loss.netns.map(|netns| metrics.machine.space_entry(netns)) {
        None | Some(SpaceEntry::Unknown) => "nft list ruleset there".to_owned(),
        Some(entry) => entry.command("nft list ruleset"),
    };
    format!("{command} shows the rule (or iptables -vL there){}", tracked.unwrap_or_default())
}

/// A link's XDP program dropped it.
fn is_of_xdp(loss: &Loss) -> bool {
    place_of_drop::is_of_xdp(loss.reason.as_deref(), loss.function.as_deref())
}

/// The program, as far as it is known.
fn xdp(loss: &Loss, metrics: &TestMetrics) -> String {
    let program = loss.link.and_then(|link| paths::offloads(metrics, link)?.xdp);
    let id = program.and_then(|program| program.id);
    let shows = id.map_or_else(String::new, |id| format!("; bpftool prog show id {id} names it"));
    let word = if program.is_some_and(|program| !program.native) { "xdpgeneric" } else { "xdp" };
    let link = loss.name.as_deref().map_or_else(|| "LINK".to_owned(), shell_word);
    format!("it is there to drop some (ip -d link show {link} there{shows}); ip link set {link} {word} off removes it")
}

/// What is lost there was to be asked about; how to have it asked less often, or answered sooner.
fn upcall(loss: &Loss, metrics: &TestMetrics) -> String {
    let full_name = loss.name.as_deref().unwrap_or_default();
    let in_userspace = full_name.starts_with(OvsDatapathKind::Netdev.as_ref());
    let mends = if in_userspace {
        "ovs-appctl dpif-netdev/pmd-perf-show shows the busy core; other_config:pmd-cpu-mask adds more"
    } else {
        "it hangs, gets no CPU or handles too many flows (ovs-appctl upcall/show); tune \
         other_config:n-handler-threads, flow-limit and max-idle"
    };
    // Upcalls of all flows of the datapath, not only the watched ones.
    let losses = &metrics.losses;
    let all = loss.link.and_then(|link| losses.of_upcalls(link)).unwrap_or(losses.per_second(loss.packets));
    format!("{} upcalls/s dropped, because ovs-vswitchd is too slow: {mends}", rate(all))
}

/// How a VPN has a larger buffer.
fn vpn(loss: &Loss) -> String {
    let name = loss.name.as_deref().unwrap_or_default();
    let option = match name.split(' ').next() {
        Some("openvpn") => "for bursts raise net.core.rmem_max and openvpn's --rcvbuf",
        Some("tincd") => "for bursts raise net.core.rmem_max and its UDPRcvBuf",
        _ => "for bursts raise net.core.rmem_default and restart it",
    };
    format!("{option}; if it goes on, {name} gets too little of a core (ss -uamp there)")
}

fn conntrack(metrics: &TestMetrics) -> String {
    let full = metrics.losses.conntrack.filter(|(count, max)| *max > 0 && count * 10 >= max * 9);
    match full {
        Some((count, max)) => format!("its table has {count} of {max} entries (raise net.netfilter.nf_conntrack_max)"),
        None => "its table refuses entries (conntrack -S there shows why)".to_owned(),
    }
}

/// TCP sends again, and no place is seen where packets are lost.
pub(super) fn retransmitted(input: &LintInput<'_>) -> Option<Diagnostic> {
    let losses = &input.metrics.losses;
    let share = losses.retransmits? / losses.sent?;
    let again = losses.per_second(losses.retransmits?);
    if !share.is_finite() {
        return None;
    }
    // What was lost a moment ago is sent again now.
    let is_quiet = losses.quiet_s.is_none_or(|quiet_s| quiet_s > SENT_AGAIN_WITHIN_S);
    (share >= RETRANSMITTED && again >= LEAST_PER_S && is_quiet && reordered(input).is_none()).then(|| {
        let why = late_or_lost(input.metrics);
        let (much, part) = (rate(again), percent(share));
        let text = format!("TCP retransmits {much} segments/s ({part} %){why}");
        Diagnostic::new(text, [("retransmits_per_s", again), ("share", share)])
    })
}

/// What becomes of first copies whose loss is seen nowhere, as far as that was looked at.
fn late_or_lost(metrics: &TestMetrics) -> String {
    let connections = || metrics.flow.connections.iter().filter(|one| one.carries);
    let is_here = connections().all(|one| one.from.pid.is_some() && one.to.pid.is_some());
    let seconds = metrics.machine.elapsed_s.unwrap_or(0.0) + SENT_AGAIN_WITHIN_S;
    match denial::drops(metrics, connections(), seconds) {
        DropsSeen::Throughout if is_here => ": the first copies are late, this kernel drops none".to_owned(),
        DropsSeen::Throughout => ": the first copies are late, or lost outside this kernel".to_owned(),
        DropsSeen::BeingAttached => ": late or dropped; what counts drops is being attached".to_owned(),
        DropsSeen::For(for_s) => format!(": late or dropped; drops are counted for {for_s} s only"),
        DropsSeen::Beyond(what) => format!(": the first copies are late, or lost beyond this kernel's view: {what}"),
        DropsSeen::Not => ": delayed, or dropped where no counter shows it".to_owned(),
    }
}

/// Datagrams that leave in pieces.
pub(super) fn fragmented(input: &LintInput<'_>) -> Option<Diagnostic> {
    let reported = input.metrics.losses.fragments?;
    let pieces = reported.fragments_per_s / reported.datagrams_per_s;
    let name = input.metrics.machine.link(reported.link).map_or("a link", |link| link.facts.name.as_str());
    let size = reported.bytes.map_or_else(String::new, |bytes| format!(" of {bytes:.0} bytes"));
    let most = reported.mtu.saturating_sub(reported.headers);
    let mends = match reported.bytes {
        // The datagrams fit into this link, so the kernel knows of a smaller MTU further on.
        Some(bytes) if bytes <= f64::from(most) => {
            "the path's MTU is smaller: ip route get ADDRESS shows it".to_owned()
        }
        _ if !reported.is_at_sender => "smaller datagrams stay whole; tunnel headers count too".to_owned(),
        _ => format!("iperf3 -l {most} keeps them whole"),
    };
    let text = format!(
        "{} datagrams/s{size} are sent as {} fragments each (MTU {} on {name}); one lost fragment loses the whole \
         datagram ({mends})",
        rate(reported.datagrams_per_s),
        decimal(pieces),
        reported.mtu,
    );
    let mut numbers = vec![
        ("datagrams_per_s", reported.datagrams_per_s),
        ("fragments_per_s", reported.fragments_per_s),
        ("mtu", f64::from(reported.mtu)),
        ("largest_bytes", f64::from(most)),
    ];
    numbers.extend(reported.bytes.map(|bytes| ("datagram_bytes", bytes)));
    Some(Diagnostic::new(text, numbers))
}
