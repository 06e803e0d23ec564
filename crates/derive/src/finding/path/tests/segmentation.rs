//! Limits of segmentation and XDP programs on the way.

use super::{FAR, NEAR, findings, metrics, offloads, said, with_offloads};
use crate::TestMetrics;
use std::sync::Arc;
use vnettop_sample::{GsoLimits, HopWay, Offload, Offloads, Proto, XdpProgram};

fn limits(size: u32, segments: u32) -> GsoLimits {
    GsoLimits { size, ipv4_size: Some(size), segments, device_size: Some(524_280), device_segments: Some(65_535) }
}

/// The first link has these limits, as the two others have the usual ones.
fn limited(first: GsoLimits) -> TestMetrics {
    let of = |netns, ifindex, gso_limits| {
        let gro = [Offload::Gro];
        Offloads { gso_limits: Some(gso_limits), ..offloads(netns, ifindex, &gro, &gro) }
    };
    with_offloads([of(NEAR, 2, first), of(NEAR, 3, limits(65_536, 65_535)), of(FAR, 2, limits(65_536, 65_535))])
}

#[test]
fn a_link_that_takes_one_segment_in_a_packet_is_named_with_its_remedy() {
    let reported = said(&limited(limits(1500, 1)), "gso_limits");
    assert!(
        reported.starts_with("a0 (c1) allows 1 segment per packet (gso_max_size 1500, gso_max_segs 1)"),
        "{reported}"
    );
    assert!(reported.ends_with("(ip link set a0 gso_max_size 65536 gso_max_segs 65535)"), "{reported}");
    let reported = said(&limited(limits(65_536, 4)), "gso_limits");
    assert!(reported.starts_with("a0 (c1) allows 4 segments per packet"), "few segments are as bad: {reported}");
    let of_driver = GsoLimits { device_size: Some(4_096), ..limits(4_096, 65_535) };
    let reported = said(&limited(of_driver), "gso_limits");
    assert!(reported.ends_with("(its driver allows no more)"), "nothing can be set: {reported}");
    assert_eq!(findings(&limited(limits(65_536, 65_535))), [], "as links are born");
    assert_eq!(findings(&limited(limits(32_768, 65_535))), [], "hardware takes less, and that costs little");
    let of_ipv6 = GsoLimits { size: 1500, ..limits(65_536, 65_535) };
    assert_eq!(findings(&limited(of_ipv6)), [], "the flow is of IPv4, which has a limit of its own");
    let mut datagrams = limited(limits(1500, 1));
    Arc::make_mut(&mut datagrams.paths)[0].proto = Proto::Udp;
    assert_eq!(findings(&datagrams), [], "datagrams are not cut");
}

#[test]
fn a_program_that_takes_the_other_end_s_tso_is_named() {
    let gro = [Offload::Gro];
    let program = |native| {
        let sender = offloads(NEAR, 2, &[Offload::Tso, Offload::Gso, Offload::Gro], &gro);
        let at = Offloads { xdp: Some(XdpProgram { id: Some(7), native }), ..offloads(NEAR, 3, &gro, &gro) };
        let mut metrics = with_offloads([sender, at, offloads(FAR, 2, &gro, &gro)]);
        Arc::make_mut(&mut metrics.paths)[0].hops[1].way = HopWay::Received;
        metrics
    };
    let reported = said(&program(true), "xdp");
    assert!(
        reported.starts_with("tso is off on a0 (c1) because of XDP program 7 at its other end x0 (c1)"),
        "{reported}"
    );
    assert!(reported.ends_with("there: ip link set x0 xdp off, or xdpgeneric"), "{reported}");
    assert_eq!(findings(&program(false)), [], "behind the driver it takes nothing from the sender");
    assert_eq!(findings(&metrics(|_, _| ())), [], "without a program there is none");
}
