//! What keeps TCP's packets small where its offloads are on or would be: limits of how much one packet may hold, and XDP programs,
//! which see one packet at a time.

use super::{Diagnostic, LintInput, named};
use crate::TestMetrics;
use crate::links::LinkMetrics;
use crate::paths;
use vnettop_sample::{FlowPath, GsoLimits, Hop, HopBy, HopWay, Offload, Proto, shell_word};

/// A packet that may hold less costs its own; by itself a link takes 65,536 bytes, hardware not always as many.
const LEAST_BYTES: u32 = 16_384;
/// What a link takes by itself.
const USUAL_BYTES: u32 = 65_536;
const USUAL_SEGMENTS: u32 = 65_535;

fn of_tcp<'a>(input: &LintInput<'a>) -> impl Iterator<Item = &'a FlowPath> {
    input.metrics.paths.iter().filter(|path| path.proto == Proto::Tcp)
}

/// A link that TCP's packets leave through and that takes little more than a segment in each.
pub(in crate::finding) fn limited(input: &LintInput<'_>) -> Option<Diagnostic> {
    let metrics = input.metrics;
    let find = |path: &FlowPath| {
        let hops = path.hops.iter().filter(|hop| hop.way == HopWay::Sent);
        hops.filter_map(|hop| small(metrics, hop, path.to.is_ipv6())).min_by_key(|small| small.bytes)
    };
    let small = of_tcp(input).filter_map(find).min_by_key(|small| small.bytes)?;
    let (link, limits) = (&small.link.facts.name, small.limits);
    let each = match small.segments {
        1 => "1 segment".to_owned(),
        more => format!("{more} segments"),
    };
    let mends = match (limits.device_size, limits.device_segments) {
        (Some(size), Some(segments)) if size.min(segments.saturating_mul(small.link.facts.mtu)) < LEAST_BYTES => {
            "its driver allows no more".to_owned()
        }
        (size, segments) => {
            let size = size.unwrap_or(USUAL_BYTES).min(USUAL_BYTES);
            let segments = segments.unwrap_or(USUAL_SEGMENTS).min(USUAL_SEGMENTS);
            format!("ip link set {} gso_max_size {size} gso_max_segs {segments}", shell_word(link))
        }
    };
    let text = format!(
        "{} allows {each} per packet (gso_max_size {}, gso_max_segs {}); TSO and GSO build no larger ones, and each is processed alone ({mends})",
        named(metrics, small.link),
        small.size,
        limits.segments,
    );
    let numbers = [
        ("gso_max_size", f64::from(small.size)),
        ("gso_max_segs", f64::from(limits.segments)),
        ("segments", f64::from(small.segments)),
    ];
    Some(Diagnostic::new(text, numbers))
}

/// A link that takes little in one packet.
struct SmallPackets<'a> {
    link: &'a LinkMetrics,
    limits: GsoLimits,
    /// Its limit for the flow's version of IP, bytes.
    size: u32,
    bytes: u32,
    segments: u32,
}

fn small<'a>(metrics: &'a TestMetrics, hop: &Hop, ipv6: bool) -> Option<SmallPackets<'a>> {
    let (limits, link) = (paths::offloads(metrics, hop.link)?.gso_limits?, metrics.machine.link(hop.link)?);
    let mtu = Some(link.facts.mtu).filter(|&mtu| mtu > 0)?;
    let size = if ipv6 { limits.size } else { limits.ipv4_size.unwrap_or(limits.size) };
    let segments = (size / mtu).min(limits.segments).max(1);
    let bytes = size.min(limits.segments.saturating_mul(mtu));
    (bytes < LEAST_BYTES && mtu < LEAST_BYTES).then_some(SmallPackets { link, limits, size, bytes, segments })
}

/// An XDP program at the other end of a pair, because of which the sender's end has no TSO.
pub(in crate::finding) fn taken_by_xdp(input: &LintInput<'_>) -> Option<Diagnostic> {
    let metrics = input.metrics;
    let taken = |two: &[Hop]| {
        let [from, to] = two else { return None };
        let crosses = from.way == HopWay::Sent && to.way == HopWay::Received && to.by == HopBy::Peer;
        let program = paths::offloads(metrics, to.link)?.xdp.filter(|program| crosses && program.native)?;
        let off =
            paths::offloads(metrics, from.link).filter(|off| !off.tso && !off.unwanted.contains(&Offload::Tso))?;
        Some((program, metrics.machine.link(off.link)?, metrics.machine.link(to.link)?))
    };
    let (program, off, at) = of_tcp(input).find_map(|path| path.hops.windows(2).find_map(taken))?;
    let number = program.id.map_or_else(String::new, |id| format!(" {id}"));
    let text = format!(
        "tso is off on {} because of XDP program{number} at its other end {}; the CPU segments what it sends, and each packet is processed alone; there: ip link set {} xdp off, or xdpgeneric",
        named(metrics, off),
        named(metrics, at),
        shell_word(&at.facts.name),
    );
    Some(Diagnostic::new(text, program.id.map_or_else(Vec::new, |id| vec![("program", f64::from(id))])))
}
