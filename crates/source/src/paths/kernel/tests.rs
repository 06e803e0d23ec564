//! What the kernel's answers say, and that no bytes break the reading of them.

use super::neighbour::TableEntry;
use super::{conntrack, link, marks, neighbour, redirect, route, wireguard};
use crate::links::nsid;
use crate::netlink::client::NetlinkClient;
use crate::netlink::message::{Request, messages};
use crate::netlink::socket::protocols;
use crate::paths::lookups::{Bridged, Packet, PacketOrigin, RouteResult, Tunnel, Wireguard, WireguardPeer, any_port};
use crate::sandbox::{inside, ip};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;
use vnettop_sample::{Ifindex, Proto};

fn packet(from: &str, to: &str) -> Packet {
    let at = |text: &str| text.parse().expect("an address");
    Packet { proto: Proto::Tcp, from: at(from), to: at(to), mark: None }
}

/// `struct rtmsg` of that type.
fn routed(kind: u8) -> Request {
    let mut fixed = [0; 12];
    fixed[7] = kind;
    Request::new(libc::RTM_NEWROUTE, 0, &fixed)
}

fn route_of(mut request: Request) -> Option<Result<RouteResult, String>> {
    messages(request.numbered(1)).next().and_then(|message| route::route(&message))
}

#[test]
fn a_route_leads_here_or_out_through_a_link() {
    assert_eq!(route_of(routed(2)), Some(Ok(RouteResult::Here)), "RTN_LOCAL");
    let gateway = [198, 18, 0, 254];
    let out = routed(1).with(4, &7_u32.to_ne_bytes()).with(5, &gateway).with(7, &[198, 18, 0, 1]);
    let (gateway, source) = (Some(gateway.into()), Some([198, 18, 0, 1].into()));
    assert_eq!(route_of(out), Some(Ok(RouteResult::Out { link: Ifindex(7), gateway, source })), "RTN_UNICAST");
    assert!(route_of(routed(6)).is_some_and(|route| route.is_err()), "a blackhole leads nowhere");
    let via = routed(1).with(4, &7_u32.to_ne_bytes()).with(18, &[[10, 0].as_slice(), &[9; 16]].concat());
    let Some(Ok(RouteResult::Out { gateway: Some(via), .. })) = route_of(via) else { panic!("RTA_VIA is a gateway") };
    assert!(via.is_ipv6(), "of the other family");
}

#[test]
fn a_request_leaves_to_the_kernel_what_is_not_known() {
    let length = |mut request: Request| request.numbered(1).len();
    let whole = length(route::request(&packet("198.18.0.1:1", "198.18.0.2:2"), PacketOrigin::In(Ifindex(3))));
    let open = packet("0.0.0.0:0", "198.18.0.2:2");
    let less = length(route::request(&open, PacketOrigin::Own));
    assert_eq!(whole - less, 3 * 8, "no source, no source port, no link");
    let portless = Packet { to: any_port(open.to.ip()), ..open };
    assert_eq!(less - length(route::request(&portless, PacketOrigin::Own)), 8, "nor a port of the destination");
    let marked = |mark| length(route::request(&Packet { mark, ..open }, PacketOrigin::Own)) - less;
    assert_eq!((marked(Some(7)), marked(Some(0))), (8, 0), "a mark is given where the packet has one");
}

#[test]
fn a_bridges_own_address_is_told_from_a_learnt_one() {
    let reported = |state: u8| {
        let mut fixed = [0; 12];
        (fixed[4], fixed[8]) = (5, state);
        let mut answer = Request::new(libc::RTM_NEWNEIGH, 0, &fixed).with(2, &[2, 0, 0, 0, 0, 1]);
        messages(answer.numbered(1)).next().and_then(|message| neighbour::bridge_port(&message))
    };
    assert_eq!(reported(0x80), Some(Bridged::Here), "NUD_PERMANENT is the bridge's or a port's own");
    assert_eq!(reported(0x02), Some(Bridged::Port(Ifindex(5))), "what was learnt is behind its port");
    assert_eq!(reported(0x40), Some(Bridged::Port(Ifindex(5))), "and so is what someone wrote");
}

#[test]
fn an_entry_found_in_the_whole_table_is_the_one_that_is_asked_for() {
    inside("kn-fdb", || {
        for words in [
            "link add br0 type bridge",
            "link add veth0 type veth peer name veth1",
            "link add veth2 type veth peer name veth3",
            "link add vx0 type vxlan id 7 dev veth2 dstport 4789 remote 198.18.0.9",
            "link set veth0 master br0",
            "link set vx0 master br0",
        ] {
            assert!(ip(words), "{words}");
        }
        let bridge = |words: &str| Command::new("bridge").args(words.split(' ')).status().expect("it runs").success();
        for words in ["01 dev veth0 master static", "03 dev vx0 master static", "03 dev vx0 self dst 198.18.0.3"] {
            assert!(bridge(&format!("fdb add 02:00:00:00:00:{words}")), "{words}");
        }
        // Not every kernel's bridges know vlans.
        let has_vlans = bridge("fdb add 02:00:00:00:00:02 dev veth0 master static vlan 1");
        let index = |name: &str| {
            let reported = Command::new("ip").args(["-o", "link", "show", name]).output().expect("ip runs").stdout;
            let reported = String::from_utf8(reported).expect("text");
            Ifindex(reported.split(':').next().and_then(|index| index.parse().ok()).expect("it has an index"))
        };
        let (br0, veth0, vx0) = (index("br0"), index("veth0"), index("vx0"));
        let mut route = NetlinkClient::open(protocols::NETLINK_ROUTE).expect("a socket");
        let mac = |last| [2, 0, 0, 0, 0, last];
        for (last, vlan, wanted) in [
            (1, None, Some(Bridged::Port(veth0))),
            (2, Some(1), Some(Bridged::Port(veth0)).filter(|_| has_vlans)),
            (2, None, None),
            (3, None, Some(Bridged::Port(vx0))),
            (4, None, None),
        ] {
            let entry = TableEntry::of_bridge(br0, mac(last), vlan);
            assert_eq!(entry.find(&mut route, neighbour::bridge_port), wanted, "{last}, vlan {vlan:?}");
            assert_eq!(entry.ask(&mut route, neighbour::bridge_port), wanted, "{last}, vlan {vlan:?}");
        }
        let far = |ip: [u8; 4]| Some(IpAddr::from(ip));
        for (mac, wanted) in [(mac(3), far([198, 18, 0, 3])), ([0; 6], far([198, 18, 0, 9])), (mac(1), None)] {
            let entry = TableEntry::of_tunnel(vx0, mac);
            assert_eq!(entry.find(&mut route, neighbour::far_end), wanted, "{mac:?}");
            assert_eq!(entry.ask(&mut route, neighbour::far_end), wanted, "{mac:?}");
        }
    });
}

#[test]
fn translation_is_told_for_both_directions() {
    let ends = |text: [&str; 2]| (text[0].parse().expect("an address"), text[1].parse().expect("an address"));
    let original = ["198.18.7.5:40000", "198.18.7.254:8080"];
    let reply = ["198.18.0.2:80", "198.18.0.254:40000"];
    let reported = |from: &str, to: &str| conntrack::translated(&packet(from, to), (ends(original), ends(reply)));
    assert_eq!(
        reported("198.18.7.5:40000", "198.18.7.254:8080"),
        Some(packet("198.18.0.254:40000", "198.18.0.2:80")),
        "a published port with masquerading"
    );
    assert_eq!(
        reported("198.18.0.2:80", "198.18.0.254:40000"),
        Some(packet("198.18.7.254:8080", "198.18.7.5:40000")),
        "and its answers"
    );
    assert_eq!(reported("198.18.7.6:40000", "198.18.7.254:8080"), None, "another connection's entry is none");
    let plain = [["198.18.0.1:1", "198.18.0.2:2"], ["198.18.0.2:2", "198.18.0.1:1"]];
    let untouched = conntrack::translated(&packet("198.18.0.1:1", "198.18.0.2:2"), (ends(plain[0]), ends(plain[1])));
    assert_eq!(untouched, None, "what is only tracked stays as it is");
}

/// What `ip -d -j link` says of a tunnel's ends and key.
fn tunnel_by_ip(data: &serde_json::Value) -> Tunnel {
    let ip = |names: [&str; 2]| names.iter().find_map(|name| data[*name].as_str()?.parse::<IpAddr>().ok());
    let dotted = data["okey"].as_str().and_then(|key| key.parse::<Ipv4Addr>().ok()).map(u32::from);
    let number = |field: &str| data[field].as_u64().and_then(|number| u32::try_from(number).ok());
    Tunnel {
        key: dotted.or(number("id")).unwrap_or(0),
        remote: ip(["remote", "remote6"]),
        local: ip(["local", "local6"]),
        port: number("port").and_then(|port| u16::try_from(port).ok()).unwrap_or(0),
    }
}

#[cfg(target_endian = "little")]
#[test]
fn the_tunnels_of_linux_6_1_lead_where_ip_says() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/netlink/kinds");
    let mut kinds = std::collections::BTreeSet::new();
    for name in ["here", "away"] {
        let bytes = std::fs::read(format!("{folder}/{name}.bin")).expect("the fixture is there");
        let said = std::fs::read_to_string(format!("{folder}/{name}.json")).expect("the fixture is there");
        for (message, line) in messages(&bytes).zip(said.lines()) {
            let ip: serde_json::Value = serde_json::from_str(line).expect("a link");
            let (detail, number) = link::parse(&message).expect("a link");
            let (name, data) = (&ip["ifname"], &ip["linkinfo"]["info_data"]);
            assert_eq!(number.map(i64::from), ip["link_netnsid"].as_i64(), "the namespace below {name}");
            assert_eq!(
                detail.vlan.map(u64::from),
                data["id"].as_u64().filter(|_| data["protocol"].is_string()),
                "{name}"
            );
            let mac = detail.mac.map(|mac| mac.map(|byte| format!("{byte:02x}")).join(":"));
            let ether = ip["address"].as_str().filter(|text| text.len() == 17);
            assert_eq!(mac.as_deref(), ether, "the address of {name}");
            let active = ip["linkinfo"]["info_data"]["active_slave"].as_str();
            assert_eq!(detail.active_port.is_some(), active.is_some(), "the port in use of {name}");
            if let Some(tunnel) = detail.tunnel {
                assert_eq!(tunnel, tunnel_by_ip(data), "where {name} leads");
                kinds.insert(ip["linkinfo"]["info_kind"].as_str().expect("a kind").to_owned());
            }
        }
    }
    let all = ["erspan", "geneve", "gre", "gretap", "ip6gre", "ip6gretap", "ip6tnl", "ipip", "sit", "vti", "vxlan"];
    assert_eq!(kinds.iter().collect::<Vec<_>>(), all.iter().collect::<Vec<_>>(), "every kind of tunnel");
}

/// Where the answers of a kernel about `wg0` are.
const WIREGUARD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/netlink/wireguard");

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let four = |three: &[u8]| {
        let at = |index: usize| u32::from(three.get(index).copied().unwrap_or(0));
        let all = at(0) << 16 | at(1) << 8 | at(2);
        let letter = |index: usize| {
            let at = usize::try_from(all >> (18 - 6 * index) & 63).expect("small");
            if index > three.len() { '=' } else { char::from(LETTERS[at]) }
        };
        (0..4).map(letter).collect::<String>()
    };
    bytes.chunks(3).map(four).collect()
}

#[cfg(target_endian = "little")]
#[test]
fn a_wireguard_of_linux_6_1_is_what_wg_says() {
    let bytes = std::fs::read(format!("{WIREGUARD}/device.bin")).expect("the fixture is there");
    let said = std::fs::read_to_string(format!("{WIREGUARD}/device.txt")).expect("the fixture is there");
    let mut device = Wireguard::default();
    messages(&bytes).for_each(|message| wireguard::parse(&message, &mut device));
    let own = base64(&device.key.expect("it has one"));
    let endpoint = |peer: &WireguardPeer| format!("{}\t{}\n", base64(&peer.key), peer.endpoint.expect("it has one"));
    let allowed = |peer: &WireguardPeer| {
        let each: Vec<String> = peer.allowed.iter().map(|(ip, bits)| format!("{ip}/{bits}")).collect();
        format!("{}\t{}\n", base64(&peer.key), each.join(" "))
    };
    let peers = |of: &dyn Fn(&WireguardPeer) -> String| device.peers.iter().map(of).collect::<String>();
    let ours = format!("{own}\n{}\n{:#x}\n{}{}", device.port, device.mark, peers(&endpoint), peers(&allowed));
    assert_eq!(ours, said, "as wg show has it");
}

#[test]
fn what_a_peer_is_allowed_may_go_on_in_the_next_message() {
    let nested = |kind: u16, value: &[u8]| {
        let mut request = Request::new(0, 0, &[]).with(kind, value);
        request.numbered(0)[16..].to_vec()
    };
    let allowed = |last: u8| nested(0, &[nested(2, &[198, 19, 0, last]), nested(3, &[32])].concat());
    let peer = |key: u8, last: u8| nested(0, &[nested(1, &[key; 32]), nested(9, &allowed(last))].concat());
    let mut device = Wireguard::default();
    for peers in [[peer(1, 1), peer(2, 2)].concat(), [peer(2, 3), peer(3, 4)].concat()] {
        let mut answer = Request::new(30, 0, &[0, 1, 0, 0]).with(8, &peers);
        messages(answer.numbered(1)).for_each(|message| wireguard::parse(&message, &mut device));
    }
    let reported: Vec<(u8, usize)> = device.peers.iter().map(|peer| (peer.key[0], peer.allowed.len())).collect();
    assert_eq!(reported, [(1, 1), (2, 2), (3, 1)], "the second peer is one");
    assert_eq!(device.peer_of([198, 19, 0, 3].into()).map(|peer| peer.key[0]), Some(2));
}

#[cfg(target_endian = "little")]
#[test]
fn the_socket_of_a_wireguard_is_told_from_one_of_a_process() {
    let bytes = std::fs::read(format!("{WIREGUARD}/sockets.bin")).expect("the fixture is there");
    let is_its = |port| messages(&bytes).any(|message| wireguard::is_its_socket(&message, port));
    assert!(is_its(51820), "wg0 listens there");
    assert!(!is_its(51821), "a process listens there, with the largest buffer that it can have");
    assert!(messages(&bytes).filter(|message| message.kind == 20).count() >= 2, "both are in the answer");
}

/// A filter as `tc filter add dev LINK parent ffff: protocol PROTOCOL KIND … action mirred egress redirect dev 7` makes it.
fn filter(protocol: u16, kind: &str, (selector, actions): (&[u8], u16), what: u32) -> Request {
    let nested = |kind: u16, value: &[u8]| {
        let mut request = Request::new(0, 0, &[]).with(kind, value);
        request.numbered(0)[16..].to_vec()
    };
    let parms: Vec<u8> = [0_u32, 0, 4, 1, 1, what, 7].iter().flat_map(|word| word.to_ne_bytes()).collect();
    let action = nested(1, &[nested(1, b"mirred\0"), nested(2, &nested(2, &parms))].concat());
    let mut fixed = [0; 20];
    fixed[16..].copy_from_slice(&(49_152 << 16 | u32::from(protocol.to_be())).to_ne_bytes());
    let options = [nested(5, selector), nested(actions, &action)].concat();
    Request::new(libc::RTM_NEWTFILTER, 0, &fixed).with(1, format!("{kind}\0").as_bytes()).with(2, &options)
}

#[test]
fn a_filter_redirects_all_or_some_of_what_a_link_receives() {
    use crate::paths::lookups::Redirect;
    let of = |mut filter: Request, is_ipv6: bool| {
        messages(filter.numbered(1)).next().and_then(|message| redirect::parse(&message, is_ipv6))
    };
    let (all, to) = ([&[1_u8, 0, 1][..], &[0; 29]].concat(), Ifindex(7));
    let some = [&[1_u8, 0, 1][..], &[0; 13], &[255; 4], &[0; 12]].concat();
    let u32 = |protocol, selector: &[u8], what| filter(protocol, "u32", (selector, 7), what);
    assert_eq!(of(u32(3, &all, 1), false), Some(Redirect::All(to)), "as CNI's bandwidth plugin makes it");
    assert_eq!(of(u32(3, &some, 1), false), Some(Redirect::Some(to)), "a key with a mask");
    assert_eq!(of(filter(3, "matchall", (&[], 2), 1), true), Some(Redirect::All(to)));
    assert_eq!(of(filter(3, "flower", (&[], 3), 1), false), Some(Redirect::Some(to)));
    assert_eq!(of(u32(0x0800, &all, 1), false), Some(Redirect::All(to)), "that of IPv4");
    assert_eq!(of(u32(0x0800, &all, 1), true), None, "takes no IPv6");
    assert_eq!(of(u32(3, &all, 3), false), Some(Redirect::All(to)), "to be received by another link");
    assert_eq!(of(u32(3, &all, 2), false), None, "what is mirrored is received all the same");
}

#[test]
fn a_program_that_decides_itself_may_send_packets_anywhere() {
    use crate::paths::lookups::Redirect;
    let filter = |flags: u32| {
        let options = Request::new(0, 0, &[]).with(8, &flags.to_ne_bytes()).numbered(0)[16..].to_vec();
        let mut fixed = [0; 20];
        fixed[16..].copy_from_slice(&u32::from(3_u16.to_be()).to_ne_bytes());
        Request::new(libc::RTM_NEWTFILTER, 0, &fixed).with(1, b"bpf\0").with(2, &options)
    };
    let of = |flags| messages(filter(flags).numbered(1)).next().and_then(|message| redirect::parse(&message, false));
    assert_eq!(of(1), Some(Redirect::Program), "direct-action");
    assert_eq!(of(0), None, "a classifier without an action only gives a class");
}

#[test]
fn next_hops_of_a_multipath_route_are_those_in_use() {
    let hop = |flags: u8, link: u32, gateway: [u8; 4]| {
        let own = [&8_u16.to_ne_bytes()[..], &5_u16.to_ne_bytes(), &gateway].concat();
        let length = u16::try_from(8 + own.len()).expect("short");
        [&length.to_ne_bytes()[..], &[flags, 0], &link.to_ne_bytes(), &own].concat()
    };
    let hops = [hop(0, 7, [10, 0, 0, 1]), hop(1, 8, [10, 0, 0, 2]), hop(0, 9, [10, 0, 0, 3])].concat();
    let mut answer = routed(1).with(9, &hops);
    let reported = messages(answer.numbered(1)).next().and_then(|message| route::next_hops(&message));
    let via = |last| Some(IpAddr::from([10, 0, 0, last]));
    assert_eq!(reported, Some(vec![(Ifindex(7), via(1)), (Ifindex(9), via(3))]), "the dead one is left out");
    let plain = messages(routed(1).with(4, &7_u32.to_ne_bytes()).numbered(1))
        .next()
        .and_then(|message| route::next_hops(&message));
    assert_eq!(plain, None, "a route with one next hop has no list");
}

#[test]
fn an_address_is_a_link_s_own_end() {
    let fixed = [&[2, 32, 0, 0][..], &7_u32.to_ne_bytes()].concat();
    let told = |mut answer: Request| messages(answer.numbered(1)).next().and_then(|it| route::own_address(&it));
    let both = Request::new(libc::RTM_NEWADDR, 0, &fixed).with(1, &[198, 18, 0, 2]).with(2, &[198, 18, 0, 1]);
    assert_eq!(told(both), Some((Ifindex(7), IpAddr::from([198, 18, 0, 1]))), "not the other end's");
    let ipv6 = Request::new(libc::RTM_NEWADDR, 0, &fixed).with(1, &[9; 16]);
    assert_eq!(told(ipv6), Some((Ifindex(7), IpAddr::from([9; 16]))), "IPv6 has one only");
    assert_eq!(told(routed(1)), None, "a route is none");
}

/// Reads the bytes as every kind of answer.
fn read(bytes: &[u8]) {
    for message in messages(bytes) {
        let _ = (
            route::next_hops(&message),
            route::route(&message),
            link::parse(&message),
            nsid::number(&message),
            conntrack::tracked(&message),
            route::own_address(&message),
        );
        let _ = (neighbour::reported(&message), neighbour::bridge_port(&message), neighbour::far_end(&message));
        let _ = (redirect::parse(&message, false), redirect::parse(&message, true));
        let _ = (marks::looks_at_marks(&message), marks::sets_marks(&message), wireguard::is_its_socket(&message, 7));
        wireguard::parse(&message, &mut Wireguard::default());
    }
}

/// Messages of every kind that is read.
const KINDS: [u16; 10] = [
    libc::RTM_NEWROUTE,
    libc::RTM_NEWADDR,
    libc::RTM_NEWLINK,
    libc::RTM_NEWNEIGH,
    libc::RTM_NEWTFILTER,
    88,
    0x0100,
    32,
    0x0a06,
    20,
];

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes: Vec<u8>) {
        read(&bytes);
    }

    #[test]
    fn any_attributes_are_survived(
        kind in 0..KINDS.len(),
        fixed in prop::collection::vec(any::<u8>(), 0..20),
        list in prop::collection::vec((0_u16..32, prop::collection::vec(any::<u8>(), 0..40)), 0..6),
    ) {
        let request = Request::new(KINDS[kind], 0, &fixed);
        let mut request = list.iter().fold(request, |request, (kind, value)| request.with(*kind, value));
        read(request.numbered(1));
    }
}
