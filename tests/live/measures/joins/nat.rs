//! NAT in a router between the two ends.

use super::observed::{Observed, observe};
use crate::ground::line::Line;
use crate::ground::{iperf3_server, needs};

const PROGRAMS: &[&str] = &["iperf3", "ip", "nsenter", "nft", "iptables"];

impl Observed {
    /// Both its ends are known as one flow, whatever addresses they have.
    fn is_one_flow(&self, what: &str) {
        self.is_one(what);
        let most = self.carrying().map(|flows| flows.len()).max();
        assert_eq!(most, Some(1), "{what}: one flow carries it");
        let mut flows = self.carrying().flatten();
        let whole = flows.all(|flow| flow["from"]["pid"] == self.client && flow["to"]["pid"] == self.server);
        assert!(whole, "{what}: it is told with both its ends");
    }
}

/// TCP and UDP through that router to that address.
fn both(line: &Line, what: &str, address: &str) {
    let server = iperf3_server(&line.far, &[]);
    observe(&line.near, &server, &format!("-c {address} -b 300M")).is_one_flow(&format!("{what}, TCP"));
    observe(&line.near, &server, &format!("-c {address} -u -b 40M -l 1000")).is_one_flow(&format!("{what}, UDP"));
}

fn nft(line: &Line, family: &str, rules: &[&str]) {
    line.router.run(&format!(
        "nft add table {family} n
         nft 'add chain {family} n pre {{ type nat hook prerouting priority -100; }}'
         nft 'add chain {family} n post {{ type nat hook postrouting priority 100; }}'"
    ));
    for rule in rules {
        line.router.run(&format!("nft 'add rule {family} n {rule}'"));
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_translated_source_is_one_flow() {
    needs(PROGRAMS);
    let line = Line::new();
    nft(&line, "ip", &["post oifname r1 snat to 198.18.2.254"]);
    both(&line, "SNAT", "198.18.2.1");
    let line = Line::new();
    line.router.run("iptables -t nat -A POSTROUTING -o r1 -j MASQUERADE");
    both(&line, "MASQUERADE", "198.18.2.1");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_translated_destination_is_one_flow_and_so_are_both() {
    needs(PROGRAMS);
    let line = Line::new();
    let dnat = "pre iifname r0 ip daddr 198.18.1.254 dnat to 198.18.2.1";
    nft(&line, "ip", &[dnat]);
    both(&line, "DNAT", "198.18.1.254");
    line.router.run("nft add rule ip n post oifname r1 masquerade");
    both(&line, "DNAT and SNAT", "198.18.1.254");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_hairpin_to_a_published_port_is_one_flow() {
    needs(PROGRAMS);
    let line = Line::bridged();
    line.router.run("ip addr add 198.18.1.254/24 dev br0; ip addr add 198.18.2.254/24 dev br0");
    nft(&line, "ip", &["pre ip daddr 198.18.1.254 dnat to 198.18.2.1", "post ip daddr 198.18.2.1 masquerade"]);
    both(&line, "hairpin", "198.18.1.254");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn nat_of_ipv6_is_one_flow() {
    needs(PROGRAMS);
    let line = Line::new();
    line.near.run("ip addr add fd00:1::1/64 dev a0 nodad; ip -6 route add default via fd00:1::fe");
    line.far.run("ip addr add fd00:2::1/64 dev b0 nodad; ip -6 route add default via fd00:2::fe");
    line.router.run("ip addr add fd00:1::fe/64 dev r0 nodad; ip addr add fd00:2::fe/64 dev r1 nodad");
    line.router.run("echo 1 > /proc/sys/net/ipv6/conf/all/forwarding");
    nft(&line, "ip6", &["post oifname r1 masquerade"]);
    both(&line, "IPv6 masquerade", "fd00:2::1");
    line.router.run("nft flush chain ip6 n post; nft add rule ip6 n post oifname r1 snat to fd00:2::fe");
    both(&line, "IPv6 SNAT", "fd00:2::1");
    line.router.run("nft flush chain ip6 n post; nft 'add rule ip6 n pre ip6 daddr fd00:1::fe dnat to fd00:2::1'");
    both(&line, "IPv6 DNAT", "fd00:1::fe");
}
