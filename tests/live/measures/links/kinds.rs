//! Every kind of virtual link that this kernel has, compared with `ip` and `ethtool` where it is; and the capture of all
//! of them, on a kernel that has them all. `cargo test --test live -- --ignored capture_kinds` as root.

use super::capture::{DUMP, FOLDER, LINKS as REQUEST, ask, claims, family, keep, split};
use super::{assert_equals_ethtool, assert_equals_ip, settled};
use crate::ground::namespace::{ethtool_speed, in_namespace, ip_links, live};
use netlink_sys::Socket;
use netlink_sys::protocols::{NETLINK_GENERIC, NETLINK_ROUTE};
use std::process::Command;
use std::sync::mpsc;
use vnettop::source::links::LinkReader;

/// The words of `ip link`, and what is below or beside them: pairs whose first end is stood upon, and their far ends.
const PAIRS: [&str; 14] =
    ["low", "mac", "ipv", "ipt", "rr1", "rr2", "ab1", "ab2", "bc1", "bc2", "lac", "tm1", "tm2", "vrf"];

/// One line each: a kernel that has no such kind refuses it.
const LINKS: &[&str] = &[
    "add link low0 name vlan10 type vlan id 10",
    "add link low0 name svlan20 type vlan protocol 802.1ad id 20",
    "add link svlan20 name cvlan30 type vlan id 30",
    "add link mac0 name macvlan0 type macvlan mode bridge",
    "add link mac0 name macvtap0 type macvtap mode vepa",
    "add link vlan10 name macvlan1 type macvlan mode private",
    "add link ipv0 name ipvlan0 type ipvlan mode l2",
    "add link ipt0 name ipvtap0 type ipvtap mode l3",
    "add bond-rr type bond mode balance-rr miimon 100",
    "set rr10 master bond-rr",
    "set rr20 master bond-rr",
    "add bond-ab type bond mode active-backup miimon 100",
    "set ab10 master bond-ab",
    "set ab20 master bond-ab",
    "add bond-bc type bond mode broadcast miimon 100",
    "set bc10 master bond-bc",
    "set bc20 master bond-bc",
    "add bond-lacp type bond mode 802.3ad miimon 100",
    "set lac0 master bond-lacp",
    "add bond-xor type bond mode balance-xor miimon 100",
    "add link bond-ab name bond-ab.7 type vlan id 7",
    "add team0 type team",
    "set tm10 master team0",
    "set tm20 master team0",
    "add geneve0 type geneve id 7 remote 198.18.1.2",
    "add geneve6 type geneve id 8 remote fd00::2 dstport 6999",
    "add gre1 type gre local 198.18.1.1 remote 198.18.1.2 key 3 dev low0",
    "add gretap1 type gretap local 198.18.1.1 remote 198.18.1.3",
    "add erspan1 type erspan local 198.18.1.1 remote 198.18.1.4 seq key 5 erspan_ver 1 erspan 9",
    "add ip6gre1 type ip6gre local fd00::1 remote fd00::2 key 4",
    "add ip6gretap1 type ip6gretap local fd00::1 remote fd00::3",
    "add ipip1 type ipip local 198.18.1.1 remote 198.18.1.2",
    "add sit1 type sit local 198.18.1.1 remote 198.18.1.3",
    "add ip6tnl1 type ip6tnl local fd00::1 remote fd00::2",
    "add vti1 type vti local 198.18.1.1 remote 198.18.1.2 key 6",
    "add xfrm1 type xfrm dev low0 if_id 11",
    "add wg0 type wireguard",
    "add link low0 name macsec0 type macsec encrypt on",
    "add vrf10 type vrf table 10",
    "set vrf0 master vrf10",
    "add vxlan0 type vxlan id 42 dstport 4789 remote 198.18.1.2 dev low0",
    "add vxlan6 type vxlan id 43 dstport 4789 local fd00::1 remote fd00::2",
    "add ifb7 type ifb",
    "add nlmon0 type nlmon",
    "add dummy7 type dummy",
    "add bridge0 type bridge",
    "add netdevsim0 type netdevsim",
];

/// What goes to another namespace once it is made: of these the kernel tells the lower side by number, or not at all.
const AWAY: &[&str] = &[
    "add link low0 name vlan11 type vlan id 11",
    "add link mac0 name macvlan2 type macvlan mode bridge",
    "add link ipv0 name ipvlan2 type ipvlan mode l2",
    "add geneve2 type geneve id 9 remote 198.18.1.2",
    "add gre2 type gre local 198.18.1.1 remote 198.18.1.5 key 9 dev low0",
    "add gretap2 type gretap local 198.18.1.1 remote 198.18.1.6",
    "add ip6gre2 type ip6gre local fd00::1 remote fd00::5",
    "add ipip2 type ipip local 198.18.1.1 remote 198.18.1.5",
    "add sit2 type sit local 198.18.1.1 remote 198.18.1.6",
    "add wg2 type wireguard",
    "add vxlan2 type vxlan id 44 dstport 4789 remote 198.18.1.2 dev low0",
    "add vxlan3 type vxlan id 45 dstport 4789 remote 198.18.1.2",
    "add xfrm2 type xfrm dev low0 if_id 12",
];

/// Whether `ip link` did it.
fn made(words: &str) -> bool {
    let mut ip = Command::new("ip");
    ip.arg("link").args(words.split(' ')).output().expect("ip runs").status.success()
}

/// Every kind that the kernel has; what is made for the other namespace goes to that of the thread.
fn zoo(away: i32) {
    for pair in PAIRS {
        assert!(made(&format!("add {pair}0 type veth peer name {pair}-far")), "a pair is made");
        assert!(made(&format!("set {pair}0 up")) && made(&format!("set {pair}-far up")), "both ends are up");
    }
    for line in LINKS {
        // A bond and a team take a port only while it is down.
        let port = line.strip_prefix("set ").and_then(|rest| rest.split(' ').next());
        let _ = port.is_some_and(|port| made(&format!("set {port} down")));
        made(line);
        let _ = port.is_some_and(|port| made(&format!("set {port} up")));
    }
    for line in AWAY {
        made(line);
        made(&format!("set {} netns {away}", name(line)));
    }
    for line in LINKS.iter().filter(|line| line.starts_with("add") && !line.contains("macsec")) {
        made(&format!("set {} up", name(line)));
    }
}

/// The name that a line gives.
fn name(line: &str) -> &str {
    let words: Vec<&str> = line.split(' ').collect();
    words.iter().position(|word| *word == "name").map_or(words[1], |at| words[at + 1])
}

/// Runs something in a namespace that holds the zoo, and the other in the one it stretches to.
fn in_the_zoo<T: Send>(here: impl FnOnce() -> T + Send, away: impl FnOnce() + Send) -> T {
    std::thread::scope(|scope| {
        let (ready, is_ready) = mpsc::channel();
        let (come, wait) = mpsc::channel::<()>();
        let other = scope.spawn(move || {
            in_namespace(move || {
                ready.send(rustix::thread::gettid().as_raw_nonzero().get()).expect("it is waited for");
                if wait.recv().is_ok() {
                    away();
                }
            });
        });
        zoo(is_ready.recv().expect("the other namespace is there"));
        let told = here();
        come.send(()).expect("it waits");
        other.join().expect("the other namespace holds");
        told
    })
}

fn agrees() {
    let mut reader = LinkReader::open().expect("the kernel is asked");
    let reading = settled(&mut reader);
    assert_equals_ip(&reading);
    assert_equals_ethtool(&reading);
    let kinds: std::collections::BTreeSet<&str> = reading.links.iter().map(|link| link.kind.word()).collect();
    eprintln!("{} links of these kinds: {kinds:?}", reading.links.len());
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn every_kind_of_this_kernel_is_what_ip_and_ethtool_say() {
    live(|| in_the_zoo(agrees, agrees));
}

#[test]
#[ignore = "it rewrites the fixtures"]
fn capture_kinds() {
    live(|| {
        let speeds = || {
            settled(&mut LinkReader::open().expect("the kernel is asked"));
            keep_links("kinds/here");
            let generic = Socket::new(NETLINK_GENERIC).expect("a socket");
            keep("kinds/linkmodes", &claims(&generic, family(&generic).0));
        };
        in_the_zoo(speeds, || keep_links("kinds/away"));
    });
}

/// The dump of this namespace, and what `ip` and `ethtool` say of the same links, one a line.
fn keep_links(name: &str) {
    let route = Socket::new(NETLINK_ROUTE).expect("a socket");
    let links = ask(&route, 18, DUMP, &REQUEST.concat());
    let messages: Vec<&[u8]> = links.iter().flat_map(|datagram| split(datagram)).filter(|one| one[4] == 16).collect();
    keep(name, &messages.concat());
    let line = |mut link: serde_json::Value| {
        let fields = link.as_object_mut().expect("an object");
        fields.retain(|field, _| FIELDS.contains(&field.as_str()));
        let name = fields["ifname"].as_str().expect("a name").to_owned();
        fields.insert("speed".to_owned(), ethtool_speed(&name).into());
        link.to_string()
    };
    let told: Vec<String> = ip_links().into_iter().map(line).collect();
    let path = format!("{FOLDER}/{name}.json");
    std::fs::write(path, told.join("\n") + "\n").expect("the fixture is written");
}

/// What of `ip -d -j link` is compared.
const FIELDS: [&str; 12] = [
    "ifindex",
    "ifname",
    "link",
    "link_index",
    "link_netnsid",
    "mtu",
    "master",
    "operstate",
    "flags",
    "link_type",
    "address",
    "linkinfo",
];
