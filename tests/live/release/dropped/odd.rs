//! What IP, a bridge or a link refuses, of datagrams that only go one way.

use super::pair::{DAMAGED, PLAIN, PORT, Pair};
use super::trial::{PROGRAMS, alone, runs, spot};
use crate::ground::line::Line;
use crate::ground::{left_out, needs};
use std::time::Duration;

const FAR: &str = "198.18.2.1";

#[test]
#[ignore = "on the real kernel: tests/run"]
fn what_ip_refuses_is_its_own() {
    needs(PROGRAMS);
    let _alone = alone();
    let line = Line::new();
    let pair = Pair::new(&line);
    for _ in 0..runs() {
        let sent = pair.send(PLAIN, &[FAR, PORT, "500", "1"], || ());
        sent.holds("TTL 1", &[(spot("ip", &line.router, "r0", "IP_INHDR"), 500.0)]);
        line.router.run("ip route del 198.18.2.0/24 dev r1");
        let sent = pair.send(PLAIN, &[FAR, PORT, "500", "64"], || ());
        sent.holds("no route", &[(spot("ip", &line.router, "r0", "IP_INNOROUTES"), 500.0)]);
        for kind in ["blackhole", "unreachable", "prohibit"] {
            line.router.run(&format!("ip route add {kind} 198.18.2.0/24"));
            let sent = pair.send(PLAIN, &[FAR, PORT, "500", "64"], || ());
            // The kernel has no reason for it; the function tells it from a route that is missing.
            sent.holds(kind, &[(spot("ip", &line.router, "r0", "NOT_SPECIFIED"), 500.0)]);
            let losses = sent.objects.iter().flat_map(|object| object["losses"].as_array().expect("a list"));
            let mut losses = losses.map(|loss| loss["refused"] == true);
            assert!(losses.all(|refused| refused), "{kind}: somebody set it so");
            line.router.run(&format!("ip route del {kind} 198.18.2.0/24"));
        }
        line.router.run("ip route add 198.18.2.0/24 dev r1");
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn what_rp_filter_refuses_is_its_own() {
    needs(PROGRAMS);
    let _alone = alone();
    let line = Line::new();
    line.far.run("ip link add d0 type veth peer name d1; ip link set d0 up; ip link set d1 up; echo 1 > /proc/sys/net/ipv4/conf/all/rp_filter");
    let pair = Pair::new(&line);
    for _ in 0..runs() {
        let turned = || {
            std::thread::sleep(Duration::from_millis(500));
            line.far.run("ip route add 198.18.1.1/32 dev d0");
            std::thread::sleep(Duration::from_secs(1));
            line.far.run("ip route del 198.18.1.1/32 dev d0");
        };
        let sent = pair.send(PLAIN, &[FAR, PORT, "2000", "64"], turned);
        let counted = sent.far("TcpExtIPReversePathFilter");
        sent.holds("rp_filter", &[(spot("rp_filter", &line.far, "b0", "IP_RPFILTER"), counted)]);
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn what_comes_damaged_is_the_checksums() {
    needs(PROGRAMS);
    let _alone = alone();
    let line = Line::new();
    let pair = Pair::new(&line);
    for _ in 0..runs() {
        let sent = pair.send(DAMAGED, &[FAR, PORT, "2000", "64"], || ());
        assert!((sent.far("UdpInCsumErrors") - 500.0).abs() < 0.5, "one of four");
        sent.holds("damaged", &[(spot("checksum", &line.far, "b0", "UDP_CSUM"), 500.0)]);
    }
}

/// Something is done for the second of three seconds.
fn for_a_second(done: impl FnOnce() + Send, undone: impl FnOnce() + Send) -> impl FnOnce() + Send {
    || {
        std::thread::sleep(Duration::from_secs(1));
        done();
        std::thread::sleep(Duration::from_secs(1));
        undone();
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn what_is_sent_to_a_link_that_is_down_is_told_somewhere() {
    needs(PROGRAMS);
    let _alone = alone();
    let routed = Line::new();
    let bridged = Line::bridged();
    let cases = [
        // The neighbour is unknown with the link, and few packets may wait for it.
        (&routed, "the receiver's link", &routed.far, "b0", ("neighbour", "r1", "NEIGH_QUEUEFULL")),
        (&routed, "the router's link out", &routed.router, "r1", ("ip", "r0", "IP_INNOROUTES")),
        (&bridged, "the receiver's link behind a bridge", &bridged.far, "b0", ("bridge", "r0", "NO_TX_TARGET")),
        (&bridged, "the bridge's link out", &bridged.router, "r1", ("bridge", "r0", "NO_TX_TARGET")),
    ];
    for (line, what, netns, link, (place, at, reason)) in cases {
        let pair = Pair::new(line);
        for _ in 0..runs() {
            let down = || netns.run(&format!("ip link set {link} down"));
            let up = || {
                netns.run(&format!("ip link set {link} up"));
                // The routes through it went with it.
                line.far.output(
                    "ip route replace default via 198.18.2.254; ip route replace 198.18.1.0/24 via 198.18.2.254",
                );
            };
            let sent = pair.send(PLAIN, &[FAR, PORT, "3000", "64"], for_a_second(down, up));
            sent.holds_mostly(&format!("{what} is down"), &spot(place, &line.router, at, reason));
        }
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn what_a_bridge_does_not_pass_on_is_its_own() {
    needs(PROGRAMS);
    let _alone = alone();
    let line = Line::bridged();
    let pair = Pair::new(&line);
    let ways = [
        (
            "a VLAN that the port out has not",
            "bridge vlan del dev r1 vid 1",
            "bridge vlan add dev r1 vid 1 pvid untagged",
            "VLAN_FILTER",
        ),
        (
            "a VLAN that the port in has not",
            "bridge vlan del dev r0 vid 1",
            "bridge vlan add dev r0 vid 1 pvid untagged",
            "VLAN_FILTER",
        ),
        (
            "a port out that is disabled",
            "bridge link set dev r1 state 0",
            "bridge link set dev r1 state 3",
            "NOT_SPECIFIED",
        ),
        (
            "a port in that is disabled",
            "bridge link set dev r0 state 0",
            "bridge link set dev r0 state 3",
            "BRIDGE_INGRESS_STP_STATE",
        ),
        (
            "isolated ports",
            "bridge link set dev r0 isolated on; bridge link set dev r1 isolated on",
            "bridge link set dev r0 isolated off; bridge link set dev r1 isolated off",
            "NOT_SPECIFIED",
        ),
    ];
    let filters = line.router.output("ip link set br0 type bridge vlan_filtering 1 && echo done").contains("done");
    for (what, done, undone, reason) in ways {
        if what.starts_with("a VLAN") && !filters {
            left_out(&format!("what_a_bridge_does_not_pass_on_is_its_own: {what}"), "this kernel filters no VLANs");
            continue;
        }
        for _ in 0..runs() {
            let change = for_a_second(|| line.router.run(done), || line.router.run(undone));
            let sent = pair.send(PLAIN, &[FAR, PORT, "3000", "64"], change);
            sent.holds(what, &[(spot("bridge", &line.router, "r0", reason), sent.missing())]);
        }
    }
}
