//! Rules that route by marks: a socket's own mark is used, and where another one is possible the way says whose it is.

use super::net::Net;
use crate::paths::lookups::{Marking, RouteResult};

/// Namespaces 1 and 2 with two wires between them; marked packets leave through the second one.
fn two_wires() -> Net {
    let mut net = Net::default();
    let wire = net.pair((1, "v0"), (2, "v1"));
    let [other, _] = net.pair((1, "w0"), (2, "w1"));
    net.address(wire[0], "198.18.0.1");
    net.address(wire[1], "198.18.0.2");
    let to = "198.18.0.2".parse().expect("an address");
    net.marked.insert((1, 7, to), RouteResult::Out { link: other.ifindex, gateway: None, source: None });
    net.markings.insert(1, Marking::BySockets);
    net
}

fn reported(net: &mut Net) -> String {
    net.walked_from(1, "198.18.0.1:40000", "198.18.0.2:5201")
}

#[test]
fn a_sockets_mark_says_which_way_it_goes() {
    let mut net = two_wires();
    net.mark = Some(0);
    assert_eq!(reported(&mut net), "1:v0 sent route, 2:v1 received peer", "it has none");
    net.mark = Some(7);
    assert_eq!(reported(&mut net), "1:w0 sent route, 2:w1 received peer", "by the rule about 7");
}

#[test]
fn a_mark_that_is_not_known_is_said_where_rules_look_at_marks() {
    let mut net = two_wires();
    let expected = "1:v0 sent route, 2:v1 received peer (path of packets without a mark: namespace 1 has \
                    rules that route by marks, and the mark of its socket is not known (needs CAP_NET_ADMIN))";
    assert_eq!(reported(&mut net), expected);
    net.markings.clear();
    assert_eq!(reported(&mut net), "1:v0 sent route, 2:v1 received peer", "no rule looks at marks");
    net.markings.insert(2, Marking::BySockets);
    assert_eq!(
        reported(&mut net),
        "1:v0 sent route, 2:v1 received peer",
        "a mark is lost on the way into another namespace"
    );
}

#[test]
fn marks_that_netfilter_sets_are_said() {
    let mut net = two_wires();
    net.mark = Some(7);
    net.markings.insert(1, Marking::Changed("nftables sets other marks there".into()));
    let expected = "1:w0 sent route, 2:w1 received peer (path of packets with mark 0x7: namespace 1 has \
                    rules that route by marks, and nftables sets other marks there)";
    assert_eq!(reported(&mut net), expected);
}
