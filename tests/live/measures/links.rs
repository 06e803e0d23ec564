//! Links of real kernel namespaces, compared with what `ip` and `ethtool` say in the same namespace at the same time.
#![allow(clippy::unwrap_used, reason = "tests")]

mod capture;
mod kinds;
mod wireguard;

mod crowds;
use crate::ground::namespace::{ethtool_speed, in_namespace, ip, ip_batch, ip_links, live, run};
use std::collections::BTreeMap;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, mpsc};
use vnettop::derive::links::{Basis, basis};
use vnettop::sample::{Kind, LinkFacts, LinkState, Word};
use vnettop::source::links::{LinkReader, LinkReading};

/// Every kind this kernel has: two pairs, a bridge with two ports, and one of each.
fn zoo() {
    ip("link add pair0 type veth peer name pair1");
    ip("link add port0 type veth peer name inner0");
    ip("link add br0 type bridge");
    ip("link set port0 master br0");
    ip("tuntap add dev tap1 mode tap");
    ip("link set tap1 master br0");
    ip("tuntap add dev tun0 mode tun");
    ip("tuntap add dev tap0 mode tap");
    ip("link add mac0 link pair0 type macvlan mode bridge");
    ip("link add mtap0 link pair0 type macvtap mode bridge");
    ip("link add vx0 type vxlan id 7 dev pair0 dstport 4789");
    ip("link add vx1 type vxlan id 8 remote 198.18.0.1 dstport 4790");
    ip("link add fb0 type ifb");
    for name in ["pair0", "pair1", "port0", "inner0", "br0", "mac0", "fb0", "vx0"] {
        ip(&format!("link set {name} up"));
    }
}

fn named<'a>(reading: &'a LinkReading, name: &str) -> &'a Arc<LinkFacts> {
    reading.links.iter().find(|link| link.name == name).unwrap_or_else(|| panic!("the reading has a link {name}"))
}

fn has(reading: &LinkReading, name: &str) -> bool {
    reading.links.iter().any(|link| link.name == name)
}

fn has_row(reading: &LinkReading, link: &LinkFacts) -> bool {
    reading.counters.iter().any(|row| row.ifindex == link.ifindex)
}

fn release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// A link's kind as `ip -d -j link` shows it, in vnettop's words.
fn kind_by_ip(link: &serde_json::Value) -> String {
    match (link["linkinfo"]["info_kind"].as_str(), link["link_type"].as_str()) {
        (Some("tun"), _) => link["linkinfo"]["info_data"]["type"].as_str().unwrap().to_owned(),
        (Some(kind), _) => kind.to_owned(),
        (None, Some("loopback")) => "loopback".to_owned(),
        (None, other) => other.unwrap().to_owned(),
    }
}

fn assert_equals_ip(reading: &LinkReading) {
    let by_ip: BTreeMap<u64, serde_json::Value> =
        ip_links().into_iter().map(|link| (link["ifindex"].as_u64().unwrap(), link)).collect();
    let ours: Vec<u64> = reading.links.iter().map(|link| u64::from(link.ifindex.0)).collect();
    assert_eq!(ours, by_ip.keys().copied().collect::<Vec<_>>(), "the links are those `ip link` lists, sorted");
    let names: BTreeMap<u32, &str> = reading.links.iter().map(|link| (link.ifindex.0, link.name.as_str())).collect();
    for link in reading.links.iter() {
        let ip = &by_ip[&u64::from(link.ifindex.0)];
        let name = &link.name;
        assert_eq!(ip["ifname"], *name, "a name is as `ip` prints it");
        assert_eq!(link.kind.word(), kind_by_ip(ip), "the kind of {name} is what `ip -d link` says");
        assert_eq!(ip["mtu"], link.mtu, "the MTU of {name} is what `ip` says");
        let master = link.master.map(|master| names[&master.0]);
        assert_eq!(ip["master"].as_str(), master, "the master of {name} is what `ip` says");
        assert_eq!(
            ip["linkinfo"]["info_slave_kind"].as_str(),
            link.slave_kind.as_deref(),
            "so is what {name} is to it"
        );
        let linked = link.peer.or(link.lower).filter(|linked| linked.netnsid.is_none());
        // Of a tunnel that was moved here, ip takes the index of the link below for one of this namespace.
        let below = ip["linkinfo"]["info_data"]["link"].as_str().filter(|_| ip["link_netnsid"].is_null());
        let by_ip = ip["link"].as_str().or(below);
        assert_eq!(by_ip, linked.map(|linked| names[&linked.ifindex.0]), "so is the link behind {name}");
        assert_eq!(ip["operstate"].as_str().unwrap().to_lowercase(), link.state.word(), "so is the state of {name}");
    }
}

/// A reading whose states and claims are those of this moment: carriers that came up just now are announced up to a second
/// later.
fn settled(reader: &mut LinkReader) -> LinkReading {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(3);
    loop {
        let reading = reader.read().unwrap();
        let speeds = reading.links.iter().all(|link| link.speed_mbps == ethtool_speed(&link.name));
        let states: Vec<String> = ip_links().iter().map(|ip| ip["operstate"].to_string().to_lowercase()).collect();
        let same =
            reading.links.iter().zip(&states).all(|(link, state)| *state == format!("\"{}\"", link.state.word()));
        if speeds && same || std::time::Instant::now() > end {
            return reading;
        }
    }
}

fn assert_equals_ethtool(reading: &LinkReading) {
    for link in reading.links.iter() {
        assert_eq!(link.speed_mbps, ethtool_speed(&link.name), "{} claims what `ethtool` says", link.name);
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn kinds_claims_and_bases_are_what_ip_and_ethtool_say() {
    live(|| {
        zoo();
        let mut reader = LinkReader::open().unwrap();
        assert_eq!(reader.problems(), [], "nothing is missing here");
        let reading = settled(&mut reader);
        assert_equals_ip(&reading);
        assert_equals_ethtool(&reading);
        let expected = [
            ("lo", Kind::Loopback, Basis::None),
            ("pair0", Kind::Veth, Basis::Constant),
            ("br0", Kind::Bridge, Basis::MaxOfPorts),
            ("tun0", Kind::Tun, Basis::Constant),
            ("tap0", Kind::Tap, Basis::Constant),
            ("mac0", Kind::Macvlan, Basis::Inherited),
            ("mtap0", Kind::Macvtap, Basis::Inherited),
            ("vx0", Kind::Vxlan, Basis::Inherited),
            ("vx1", Kind::Vxlan, Basis::None),
            ("fb0", Kind::Ifb, Basis::None),
        ];
        for (name, kind, worth) in expected {
            let link = named(&reading, name);
            assert_eq!(link.kind, kind, "{name} is what it was made as");
            assert_eq!(basis(link, &release()), worth, "the basis of what {name} claims ({:?})", link.speed_mbps);
        }
        let pair = named(&reading, "pair0").peer.map(|peer| peer.ifindex);
        assert_eq!(pair, Some(named(&reading, "pair1").ifindex), "a veth knows its other end");
        assert_eq!(
            named(&reading, "mac0").lower.map(|l| l.ifindex),
            Some(named(&reading, "pair0").ifindex),
            "a macvlan knows its lower link"
        );
        assert_eq!(reading.counters.len(), reading.links.len(), "every link has its counters");
    });
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_speed_that_someone_sets_is_seen_and_known_to_be_set() {
    live(|| {
        zoo();
        ip("link set tap0 master br0");
        let mut reader = LinkReader::open().unwrap();
        let before = reader.read().unwrap();
        let constant = named(&before, "tap0").speed_mbps.unwrap();
        run("ethtool", "-s tap0 speed 25000");
        let set = reader.read().unwrap();
        assert_eq!(
            named(&set, "tap0").speed_mbps,
            Some(25000),
            "the speed set with ethtool is claimed in the next reading"
        );
        assert_eq!(basis(named(&set, "tap0"), &release()), Basis::UserSet, "and known to be set");
        assert_eq!(basis(named(&set, "tun0"), &release()), Basis::Constant, "only that link's");
        run("ethtool", &format!("-s tap0 speed {constant}"));
        let back = reader.read().unwrap();
        assert_eq!(named(&back, "tap0").speed_mbps, Some(constant), "set back to the constant");
        assert_eq!(basis(named(&back, "tap0"), &release()), Basis::UserSet, "it is still someone's word");
        assert!(!Arc::ptr_eq(&before.links, &back.links), "readings differ where something changed");
        assert!(
            Arc::ptr_eq(named(&before, "lo"), named(&back, "lo")),
            "a link that did not change stays the same object"
        );
        assert_equals_ethtool(&settled(&mut reader));
    });
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_port_that_comes_up_or_leaves_changes_what_its_bridge_claims() {
    live(|| {
        ip("link add br0 type bridge");
        ip("link add port0 type veth peer name inner0");
        let mut reader = LinkReader::open().unwrap();
        for change in
            ["br0 up", "port0 up", "inner0 up", "port0 master br0", "port0 nomaster", "port0 master br0", "port0 down"]
        {
            ip(&format!("link set {change}"));
            let reading = reader.read().unwrap();
            assert_equals_ip(&reading);
            assert_equals_ethtool(&reading);
            assert!(has_row(&reading, named(&reading, "port0")), "after `{change}` the port still has its counters");
        }
    });
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn what_becomes_of_a_link_is_right_in_the_next_reading() {
    live(|| {
        let mut reader = LinkReader::open().unwrap();
        let first = reader.read().unwrap();
        assert!(Arc::ptr_eq(&first.links, &reader.read().unwrap().links), "nothing happened, so it is the same list");

        ip("link add one index 77 type ifb");
        let created = reader.read().unwrap();
        let one = Arc::clone(named(&created, "one"));
        assert!(has_row(&created, &one), "a link made before the reading has counters in it");

        ip("link set one name uno");
        let renamed = reader.read().unwrap();
        assert!(!has(&renamed, "one"), "the old name is gone");
        assert_eq!(
            (named(&renamed, "uno").ifindex, named(&renamed, "uno").born),
            (one.ifindex, one.born),
            "it is the same link"
        );

        ip("link del uno");
        let deleted = reader.read().unwrap();
        assert!(!has(&deleted, "uno") && !has_row(&deleted, &one), "a deleted link leaves neither facts nor counters");
        assert_equals_ip(&deleted);

        ip("link add uno index 77 type bridge");
        let again = reader.read().unwrap();
        assert_eq!(named(&again, "uno").ifindex, one.ifindex, "the index is used again");
        assert!(named(&again, "uno").born > one.born, "for another link");
        assert_eq!(named(&again, "uno").kind, Kind::Bridge, "of another kind");

        ip("link del uno");
        ip("link add uno index 77 type bridge");
        let replaced = reader.read().unwrap();
        assert!(
            named(&replaced, "uno").born > named(&again, "uno").born,
            "replaced between two readings it is another link"
        );
        assert!(
            !has_row(&replaced, named(&replaced, "uno")),
            "whose counters are not told until they are surely its own"
        );
        assert!(has_row(&reader.read().unwrap(), named(&replaced, "uno")), "which is one reading later");
        assert_equals_ip(&reader.read().unwrap());
    });
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_link_that_moves_to_another_namespace_leaves_and_may_come_back() {
    live(|| {
        ip("link add host0 type veth peer name guest0");
        let mut reader = LinkReader::open().unwrap();
        let together = reader.read().unwrap();
        let home = rustix::thread::gettid().as_raw_nonzero();
        let guest = AtomicI32::new(0);
        std::thread::scope(|scope| {
            let (come, wait) = mpsc::channel::<()>();
            let (ready, is_ready) = mpsc::channel();
            let guest = &guest;
            let other = scope.spawn(move || {
                in_namespace(move || {
                    guest.store(rustix::thread::gettid().as_raw_nonzero().get(), Ordering::SeqCst);
                    ready.send(()).unwrap();
                    if wait.recv().is_err() {
                        return;
                    }
                    ip(&format!("link set guest0 netns {home}"));
                });
            });
            is_ready.recv().unwrap();
            ip(&format!("link set guest0 netns {}", guest.load(Ordering::SeqCst)));
            let apart = reader.read().unwrap();
            assert!(!has(&apart, "guest0"), "a link that moved away is gone");
            assert!(!has_row(&apart, named(&together, "guest0")), "with its counters");
            assert!(
                named(&apart, "host0").peer.unwrap().netnsid.is_some(),
                "its other end is now in a numbered namespace"
            );
            assert_equals_ip(&apart);
            come.send(()).unwrap();
            other.join().unwrap();
        });
        let back = reader.read().unwrap();
        assert_eq!(named(&back, "host0").peer.unwrap().netnsid, None, "back, both ends are here");
        assert!(named(&back, "guest0").born > named(&together, "guest0").born, "and it counts as a new link");
        assert_equals_ip(&back);
    });
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn names_and_aliases_that_would_steer_a_terminal_are_only_text() {
    live(|| {
        let mut reader = LinkReader::open().unwrap();
        ip("link add \x1b[2J\x07x type ifb");
        ip("link set \x1b[2J\x07x up");
        ip("link set \x1b[2J\x07x alias \x1b]0;owned\x07");
        let raw = std::ffi::OsStr::from_bytes(b"\xffraw\x9b");
        let made =
            std::process::Command::new("ip").args(["link", "add"]).arg(raw).args(["type", "ifb"]).status().unwrap();
        assert!(made.success(), "the kernel takes a name that is no UTF-8");
        let reading = reader.read().unwrap();
        assert_eq!(
            named(&reading, "?[2J?x").alias.as_deref(),
            Some("?]0;owned?"),
            "escape codes have lost their power"
        );
        assert!(has(&reading, "?raw?"), "a name that is no UTF-8 costs the name, not the link");
        assert_eq!(named(&reading, "?raw?").kind.word(), "ifb", "whose other facts are all there");
    });
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn states_are_as_ip_prints_them() {
    live(|| {
        ip("link add pair0 type veth peer name pair1");
        let mut reader = LinkReader::open().unwrap();
        assert_eq!(named(&reader.read().unwrap(), "lo").state, LinkState::Unknown, "lo does not say");
        assert_eq!(named(&reader.read().unwrap(), "pair0").state, LinkState::Down, "a new veth is down");
        ip("link set pair0 up");
        assert_eq!(named(&reader.read().unwrap(), "pair0").state, LinkState::LowerLayerDown, "its other end is down");
        ip("link set pair1 up");
        // A kernel worker sends the carrier's event up to a second later, and others may come before it: each is awaited.
        let end = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while named(&reader.read().unwrap(), "pair0").state != LinkState::Up {
            assert!(std::time::Instant::now() < end, "both ends are up within ten seconds");
            let news = rustix::event::PollFlags::IN;
            let mut poll = [rustix::event::PollFd::from_borrowed_fd(reader.notifications(), news)];
            let patience = rustix::event::Timespec { tv_sec: 1, tv_nsec: 0 };
            rustix::event::poll(&mut poll, Some(&patience)).unwrap();
        }
    });
}
