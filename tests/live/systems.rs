//! The virtual networks that people benchmark, in the shapes that `ip` can build: every link of every namespace is what
//! `ip` and `ethtool` say there, every link on the way moves what it counts, and the way is the one that was built.

use crate::ground::machine::{HOST, Machine, descriptors};
use crate::ground::shapes::{PROGRAMS, System, WITH_HOLDERS};
use crate::ground::traffic::Seen;
use crate::ground::truth::{agrees, agrees_within};
use crate::ground::{left_out, needs};

/// A system and what is seen of a benchmark through it.
fn held(name: &str, build: impl FnOnce() -> System) -> (System, Seen) {
    held_with(PROGRAMS, name, build)
}

/// The same of one that needs these programs.
fn held_with(programs: &[&str], name: &str, build: impl FnOnce() -> System) -> (System, Seen) {
    needs(programs);
    let system = build();
    let seen = system.holds(name);
    (system, seen)
}

/// These links belong to the network of that name, by the names that its program gives them.
fn holds_networks(seen: &Seen, links: &[(&str, &str, &str)]) {
    for (space, name, network) in links {
        seen.holds_owner((&format!("/run/netns/{space}"), name), "network", "name", network);
    }
}

/// Links whose names tell the network that they are made for.
const BRIDGES: [(&str, &str, &str); 4] =
    [("one", "cni0", "cni"), ("one", "veth1", "cni"), ("two", "cni0", "cni"), ("two", "veth2", "cni")];
const CALIS: [(&str, &str, &str); 2] = [("one", "cali1", "calico"), ("two", "cali2", "calico")];
const VXLANS: [(&str, &str, &str); 2] = [("one", "flannel.1", "flannel"), ("two", "flannel.1", "flannel")];

#[test]
#[ignore = "on the real kernel: tests/run"]
fn loopback_is_told() {
    held("loopback", || System::host("127.0.0.1"));
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn an_own_address_is_carried_by_lo() {
    let (_system, seen) = held("own-address", || System::host("198.18.1.1"));
    seen.holds_finding("through_lo");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn macvlans_on_two_hosts_are_told() {
    held("macvlan", || System::on_the_wire("macvlan mode bridge"));
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn flannel_host_gw_is_told() {
    let (_system, seen) = held("flannel-host-gw", System::flannel_host_gw);
    holds_networks(&seen, &BRIDGES);
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn flannel_vxlan_is_told() {
    let (_system, seen) = held("flannel-vxlan", System::flannel_vxlan);
    holds_networks(&seen, &[&BRIDGES[..], &VXLANS].concat());
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn calico_is_told() {
    let (_system, seen) = held("calico", System::calico);
    holds_networks(&seen, &CALIS);
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn canal_is_told() {
    let (_system, seen) = held("canal", System::canal);
    holds_networks(&seen, &[CALIS, VXLANS].concat());
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_vpn_on_tuns_is_told() {
    let (system, seen) = held_with(WITH_HOLDERS, "vpn", System::vpn);
    seen.holds_owner((&*system.from, "tun0"), "process", "name", "python3");
    seen.holds_owner((&*system.to, "tun0"), "process", "name", "python3");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_guest_on_a_bridge_is_told() {
    let (system, seen) = held_with(WITH_HOLDERS, "guest-on-bridge", System::guest_on_bridge);
    seen.holds_owner((HOST, "tap0"), "process", "name", "python3");
    seen.holds_owner((&*system.to, "eth0"), "process", "name", "python3");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_guest_on_a_macvtap_is_told() {
    let (system, seen) = held_with(WITH_HOLDERS, "guest-on-macvtap", System::guest_on_macvtap);
    seen.holds_owner(("/run/netns/one", "vtap0"), "process", "name", "python3");
    seen.holds_owner((&*system.to, "eth0"), "process", "name", "python3");
}

/// Systems of a kind that not every kernel has; the readers of those kinds are tested with captured bytes everywhere.
fn holds_where_there_is(kind: &str, build: impl FnOnce() -> System) {
    holds_where_there_is_with(&[], kind, kind, build);
}

/// The same, recorded by that name, of one that needs more programs where the kernel has the kind.
fn holds_where_there_is_with(programs: &[&str], kind: &str, name: &str, build: impl FnOnce() -> System) {
    needs(PROGRAMS);
    if System::has_kind(kind) {
        needs(programs);
        build().holds(name);
    } else {
        left_out(&format!("a system of {kind}"), "this kernel has none");
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_wireguard_is_told_where_the_kernel_has_it() {
    holds_where_there_is_with(&["wg"], "wireguard", "wireguard", System::wireguard);
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_wireguard_made_in_the_host_is_told_where_the_kernel_has_it() {
    holds_where_there_is_with(&["wg"], "wireguard", "wireguard-of-pods", System::wireguard_of_pods);
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn ipvlan_is_told_where_the_kernel_has_it() {
    holds_where_there_is("ipvlan", || System::on_the_wire("ipvlan mode l2"));
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_vlan_is_told_where_the_kernel_has_it() {
    holds_where_there_is("vlan", System::vlan);
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_bond_is_told_where_the_kernel_has_it() {
    holds_where_there_is("bond", System::bond);
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn geneve_is_told_where_the_kernel_has_it() {
    holds_where_there_is("geneve", || System::tunnel("type geneve id 7 remote 198.18.1.$M"));
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn gre_is_told_where_the_kernel_has_it() {
    holds_where_there_is("gre", || System::tunnel("type gre local 198.18.1.$N remote 198.18.1.$M"));
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn gretap_is_told_where_the_kernel_has_it() {
    holds_where_there_is("gretap", || System::tunnel("type gretap local 198.18.1.$N remote 198.18.1.$M dev nic0"));
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn ipip_is_told_where_the_kernel_has_it() {
    holds_where_there_is("ipip", || System::tunnel("type ipip local 198.18.1.$N remote 198.18.1.$M"));
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_macvlan_on_a_vlan_is_told_where_the_kernel_has_it() {
    holds_where_there_is("vlan", System::macvlan_on_vlan);
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_vrf_is_told_where_the_kernel_has_it() {
    holds_where_there_is("vrf", System::vrf);
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn namespaces_that_come_and_go_are_shown_and_leak_nothing() {
    needs(PROGRAMS);
    let machine = Machine::new();
    let mut watching = machine.watch();
    agrees(&machine, &mut watching);
    let held = descriptors(&watching);
    for _ in 0..3 {
        machine.run(
            "for n in $(seq 12); do
               ip netns add come$n; ip link add veth$n type veth peer name eth0 netns come$n; ip link set veth$n up
             done",
        );
        agrees_within(5, &machine, &mut watching);
        assert!(descriptors(&watching) > held, "their namespaces are held open meanwhile");
        machine.run("for n in $(seq 12); do ip netns del come$n; done");
        agrees_within(5, &machine, &mut watching);
        assert_eq!(descriptors(&watching), held, "nothing is held of what is gone");
    }
    watching.was_never_held_up();
}

/// The kernel gives an inode and a local number to the next namespace: here the same inodes with other numbers.
#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_peer_is_in_the_namespace_of_now_though_its_number_was_anothers() {
    needs(PROGRAMS);
    let machine = Machine::new();
    let mut watching = machine.watch();
    agrees(&machine, &mut watching);
    let pair = |n: u32| format!("ip link add veth{n} type veth peer name eth0 netns come{n}; ip link set veth{n} up; ");
    for order in [[1, 2, 3], [3, 2, 1], [2, 3, 1]] {
        machine.run(&(1..=3).map(|n| format!("ip netns add come{n}; ")).chain(order.map(pair)).collect::<String>());
        agrees_within(5, &machine, &mut watching);
        machine.run("for n in 1 2 3; do ip netns del come$n; done");
        agrees_within(5, &machine, &mut watching);
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_vpn_whose_program_ends_loses_its_tun_and_a_name_that_comes_again_is_another_namespace() {
    needs(WITH_HOLDERS);
    let mut vpn = System::vpn();
    let mut watching = vpn.machine.watch();
    let before = agrees(&vpn.machine, &mut watching);
    vpn.keeps.clear();
    let without = agrees_within(5, &vpn.machine, &mut watching);
    assert_eq!(without.links.len() + 2, before.links.len(), "both tuns are gone");
    vpn.machine.run("ip netns del two");
    vpn.machine.space("two");
    let again = agrees_within(5, &vpn.machine, &mut watching);
    // Some kernels give the number of a namespace that is gone to the next one.
    let two = again.spaces["/run/netns/two"];
    let old = again.links.iter().find(|link| link.netns == two && link.name == "nic0");
    assert!(old.is_none(), "what was in the old one is gone with it: {old:?}");
}
