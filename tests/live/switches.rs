//! Open vSwitch with its userspace datapath between pods: alone, behind a Linux bridge, and as a vxlan between two hosts.
//! Its links in the kernel are what `ip` and `ethtool` say, and move what they count; what is a port of which bridge is
//! what its database says.

use crate::ground::machine::{HOST, Machine, descriptors};
use crate::ground::switch::{PROGRAMS, Switch, has_kernel_datapath, pod};
use crate::ground::traffic::{Seen, observed, seconds, way};
use crate::ground::truth::agrees_within;
use crate::ground::{await_that, listening, needs};
use serde_json::Value;

/// A benchmark from the first pod to 198.19.0.2; its recording has this name, and `more` are vnettop's arguments.
fn benchmark(machine: &Machine, name: &str, more: &[&str], pods: [&str; 2]) -> Seen {
    let _server = listening(machine.inside(pods[1], "iperf3"), &[]);
    let mut client = machine.inside(pods[0], "iperf3");
    client.args(["-J", "-t", seconds(), "-c", "198.19.0.2"]);
    observed(machine, name, more, client)
}

/// Each of these links is a port of that bridge, of that type, and belongs to it.
fn holds_ports(seen: &Seen, space: &str, ports: &[(&str, &str, &str)]) {
    holds_ports_of("netdev", seen, space, ports);
}

/// The same of bridges over that datapath.
fn holds_ports_of(datapath: &str, seen: &Seen, space: &str, ports: &[(&str, &str, &str)]) {
    let (object, netns) = (seen.objects.last().expect("objects"), seen.after.spaces[space]);
    let links = object["links"].as_array().expect("links");
    for (name, bridge, kind) in ports {
        let row = links.iter().find(|row| row["netns"] == netns && row["name"] == *name);
        let row = row.unwrap_or_else(|| panic!("{name} is listed"));
        assert_eq!(row["ovs"]["bridge"], *bridge, "{name} is a port of {bridge}");
        assert_eq!(row["ovs"]["type"], *kind, "the type of {name} is what the database says");
        assert_eq!(row["ovs"]["datapath"], datapath, "{name} is on that datapath");
        assert_eq!(row["owner"]["type"], "ovs", "{name} is Open vSwitch's: {}", row["owner"]);
        assert_eq!(row["owner"]["name"], *bridge, "{name} is its bridge's");
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn pods_on_open_vswitch_are_told() {
    needs(PROGRAMS);
    let machine = Machine::new();
    let switch = Switch::start(&machine, HOST, "openvswitch");
    switch.bridge("br0");
    let pods = [pod(&machine, 1, HOST), pod(&machine, 2, HOST)];
    switch.set("add-port br0 veth1 -- add-port br0 veth2");
    let seen = benchmark(&machine, "open-vswitch", &[], [&pods[0], &pods[1]]);
    let through = way(&[(&pods[0], "eth0"), (HOST, "veth1"), (HOST, "veth2"), (&pods[1], "eth0")]);
    seen.holds_rates(&through);
    seen.holds_way(&through);
    seen.holds_screen(through.len(), &through);
    seen.holds_hops(&[
        (&pods[0], "eth0", "sent"),
        (HOST, "veth1", "received"),
        (HOST, "br0", "passed"),
        (HOST, "veth2", "sent"),
        (&pods[1], "eth0", "received"),
    ]);
    let ports = [("br0", "br0", "internal"), ("veth1", "br0", "system"), ("veth2", "br0", "system")];
    holds_ports(&seen, HOST, &ports);
    seen.holds_owner((HOST, "ovs-netdev"), "process", "name", "ovs-vswitchd");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn pods_on_the_kernels_datapath_are_told() {
    let test = "pods_on_the_kernels_datapath_are_told";
    needs(PROGRAMS);
    let machine = Machine::new();
    if !has_kernel_datapath(test, &machine) {
        return;
    }
    let switch = Switch::start(&machine, HOST, "openvswitch");
    switch.kernel_bridge("br0");
    let pods = [pod(&machine, 1, HOST), pod(&machine, 2, HOST)];
    switch.set("add-port br0 veth1 -- add-port br0 veth2 -- add-port br0 int0 -- set interface int0 type=internal");
    let seen = benchmark(&machine, "open-vswitch-kernel", &[], [&pods[0], &pods[1]]);
    let through = way(&[(&pods[0], "eth0"), (HOST, "veth1"), (HOST, "veth2"), (&pods[1], "eth0")]);
    seen.holds_rates(&through);
    seen.holds_way(&through);
    let ports = [
        ("br0", "br0", "internal"),
        ("int0", "br0", "internal"),
        ("veth1", "br0", "system"),
        ("veth2", "br0", "system"),
    ];
    holds_ports_of("system", &seen, HOST, &ports);
    for name in ["br0", "int0", "ovs-system"] {
        assert_eq!(seen.after.link(HOST, name).kind, "openvswitch", "{name} is the kernel's own");
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_tunnel_between_two_kernel_datapaths_is_told() {
    let test = "a_tunnel_between_two_kernel_datapaths_is_told";
    needs(PROGRAMS);
    let machine = Machine::new();
    if !has_kernel_datapath(test, &machine) {
        return;
    }
    let hosts = [machine.space("one"), machine.space("two")];
    machine.run("ip link add nic0 netns one type veth peer name nic0 netns two");
    let names = ["openvswitch", "openvswitch-two"];
    let switches = [0, 1].map(|at| Switch::start(&machine, &hosts[at], names[at]));
    let pods = [0, 1].map(|at| pod(&machine, [1, 2][at], &hosts[at]));
    for (switch, (own, other)) in switches.iter().zip([(1, 2), (2, 1)]) {
        switch.run(&format!("ip addr add 198.18.1.{own}/24 dev nic0; ip link set nic0 up"));
        switch.kernel_bridge("br0");
        let tunnel =
            format!("over0 -- set interface over0 type=vxlan options:remote_ip=198.18.1.{other} options:key=7");
        switch.set(&format!("add-port br0 veth{own} -- add-port br0 {tunnel}"));
    }
    let sockets = switches.each_ref().map(Switch::socket);
    let told = ["--ovs-socket", &sockets[0], "--ovs-socket", &sockets[1]];
    let seen = benchmark(&machine, "open-vswitch-kernel-vxlan", &told, [&pods[0], &pods[1]]);
    let wire = [(&*hosts[0], "veth1"), (&hosts[0], "nic0"), (&hosts[1], "nic0"), (&hosts[1], "veth2")];
    seen.holds_rates(&way(&[&[(&*pods[0], "eth0")], &wire[..], &[(&*pods[1], "eth0")]].concat()));
    for (host, veth) in [(&hosts[0], "veth1"), (&hosts[1], "veth2")] {
        let ports = [(veth, "br0", "system"), ("over0", "br0", "vxlan")];
        holds_ports_of("system", &seen, host, &ports);
        assert_eq!(seen.after.link(host, "vxlan_sys_4789").kind, "vxlan", "the kernel's own side of it");
    }
    let drawn = |flow: &Value| {
        let hops = flow["path"].as_array().cloned().unwrap_or_default();
        let crossed = hops.iter().filter(|hop| hop["way"] != "passed");
        crossed.filter_map(|hop| hop["name"].as_str()).collect::<Vec<_>>().join(" ")
    };
    let ways: std::collections::BTreeSet<_> = seen.flows().map(drawn).collect();
    assert!(ways.contains("eth0 veth1 over0 nic0 nic0 over0 veth2 eth0"), "the way through the tunnel: {ways:?}");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_linux_bridge_before_open_vswitch_is_told() {
    needs(PROGRAMS);
    let machine = Machine::new();
    let switch = Switch::start(&machine, HOST, "openvswitch");
    switch.bridge("br0");
    let pods = [pod(&machine, 1, HOST), pod(&machine, 2, HOST)];
    machine.run(
        "ip link add linux0 type bridge; ip link set linux0 up
         ip link add up0 mtu 1450 type veth peer name up1 mtu 1450; ip link set up0 up; ip link set up1 up
         ip link set veth1 master linux0; ip link set up0 master linux0",
    );
    switch.set("add-port br0 up1 -- add-port br0 veth2");
    let seen = benchmark(&machine, "bridge-and-open-vswitch", &[], [&pods[0], &pods[1]]);
    let host = ["veth1", "up0", "up1", "veth2"].map(|name| (HOST, name));
    let through = way(&[&[(&*pods[0], "eth0")], &host[..], &[(&*pods[1], "eth0")]].concat());
    seen.holds_rates(&through);
    seen.holds_way(&through);
    seen.holds_screen(through.len(), &through);
    seen.holds_hops(&[
        (&pods[0], "eth0", "sent"),
        (HOST, "veth1", "received"),
        (HOST, "linux0", "passed"),
        (HOST, "up0", "sent"),
        (HOST, "up1", "received"),
        (HOST, "br0", "passed"),
        (HOST, "veth2", "sent"),
        (&pods[1], "eth0", "received"),
    ]);
    holds_ports(&seen, HOST, &[("up1", "br0", "system"), ("veth2", "br0", "system")]);
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_vxlan_between_two_open_vswitches_is_told() {
    needs(PROGRAMS);
    let machine = Machine::new();
    let hosts = [machine.space("one"), machine.space("two")];
    machine.run("ip link add nic0 netns one type veth peer name nic0 netns two");
    let names = ["openvswitch", "openvswitch-two"];
    let switches = [0, 1].map(|at| Switch::start(&machine, &hosts[at], names[at]));
    let pods = [0, 1].map(|at| pod(&machine, [1, 2][at], &hosts[at]));
    for (switch, (own, other)) in switches.iter().zip([(1, 2), (2, 1)]) {
        // The wire belongs to a bridge whose own port has the tunnel's address: so the userspace datapath carries it.
        switch.run("ip link set nic0 up");
        switch.bridge("phy0");
        switch.bridge("br0");
        switch.set("add-port phy0 nic0");
        switch.run(&format!("ip addr add 198.18.1.{own}/24 dev phy0; ip link set phy0 up"));
        let vxlan =
            format!("vxlan0 -- set interface vxlan0 type=vxlan options:remote_ip=198.18.1.{other} options:key=7");
        switch.set(&format!("add-port br0 veth{own} -- add-port br0 {vxlan}"));
    }
    // ovs-vswitchd asks for the other host by itself; the kernel need not know it.
    for switch in &switches {
        switch.run("ip neigh flush dev phy0");
    }
    let sockets = switches.each_ref().map(Switch::socket);
    let told = ["--ovs-socket", &sockets[0], "--ovs-socket", &sockets[1]];
    let seen = benchmark(&machine, "open-vswitch-vxlan", &told, [&pods[0], &pods[1]]);
    let wire = [(&*hosts[0], "veth1"), (&hosts[0], "nic0"), (&hosts[1], "nic0"), (&hosts[1], "veth2")];
    let links = way(&[&[(&*pods[0], "eth0")], &wire[..], &[(&*pods[1], "eth0")]].concat());
    seen.holds_rates(&links);
    seen.holds_screen(links.len(), &links);
    let [one, two] = [&*hosts[0], &*hosts[1]];
    seen.holds_hops(&[
        (&pods[0], "eth0", "sent"),
        (one, "veth1", "received"),
        (one, "br0", "passed"),
        (one, "vxlan0", "sent"),
        (one, "phy0", "passed"),
        (one, "nic0", "sent"),
        (two, "nic0", "received"),
        (two, "phy0", "passed"),
        (two, "vxlan0", "received"),
        (two, "br0", "passed"),
        (two, "veth2", "sent"),
        (&pods[1], "eth0", "received"),
    ]);
    for (host, veth) in [(&hosts[0], "veth1"), (&hosts[1], "veth2")] {
        let ports = [(veth, "br0", "system"), ("nic0", "phy0", "system"), ("vxlan0", "br0", "vxlan")];
        holds_ports(&seen, host, &ports);
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn an_open_vswitch_that_is_killed_and_comes_again_is_shown_and_leaks_nothing() {
    needs(PROGRAMS);
    let machine = Machine::new();
    let mut switch = Switch::start(&machine, HOST, "openvswitch");
    switch.bridge("br0");
    let mut watching = machine.watch();
    let has = |object: &Value, name: &str| {
        let bridges = object["ovs"][0]["bridges"].as_array();
        bridges.is_some_and(|bridges| bridges.iter().any(|bridge| bridge["name"] == name))
    };
    await_that("the switch is known", 5, || has(&watching.next(), "br0"));
    let held = descriptors(&watching);
    for round in 0..3 {
        switch.stand_still();
        machine.pair(&format!("still{round}"));
        agrees_within(5, &machine, &mut watching);
        switch.go_on();
        switch.kill();
        agrees_within(5, &machine, &mut watching);
        await_that("that the switch is gone is said", 5, || {
            let problems = watching.next()["problems"].clone();
            problems.as_array().is_some_and(|problems| problems.iter().any(|problem| problem["source"] == "ovs"))
        });
        switch.up();
        let more = format!("more{round}");
        switch.bridge(&more);
        agrees_within(5, &machine, &mut watching);
        await_that("the new bridge is shown", 5, || has(&watching.next(), &more));
        switch.set(&format!("del-br {more}"));
        await_that("the deleted bridge is gone", 5, || !has(&watching.next(), &more));
        await_that("no descriptor is left open", 5, || {
            watching.next();
            descriptors(&watching) <= held
        });
    }
    watching.was_never_held_up();
}
