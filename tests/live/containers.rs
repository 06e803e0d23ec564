//! Docker Engines of this machine's package, each in namespaces of the test: what vnettop says of their bridges, veth
//! pairs, overlay and published ports is what `ip`, `ethtool` and the links' own counters say.

use crate::ground::docker::{Container, Docker, PROGRAMS, spaces_of, swarm};
use crate::ground::machine::{HOST, Machine, descriptors};
use crate::ground::traffic::{Seen, WalkedPath, observed, seconds, way};
use crate::ground::truth::{Truth, agrees_within};
use crate::ground::{await_that, needs};

/// The links between a container and its bridge: its own, and the one on the host.
fn legs(truth: &Truth, container: &Container, own: &str) -> WalkedPath {
    let own = truth.link(&container.space, own);
    way(&[(&container.space, &own.name), (HOST, &truth.peer(own).name)])
}

fn reversed(way: &WalkedPath) -> WalkedPath {
    way.iter().rev().cloned().collect()
}

/// Both links of a container belong to it by its id and, where the engine's socket is an ordinary one, by its name.
fn holds_owner(seen: &Seen, legs: &WalkedPath, container: &Container, field: &str) {
    let word = if field == "id" { &container.id[..12] } else { &container.name };
    for (space, name) in legs {
        seen.holds_owner((space, name), "container", field, word);
    }
}

/// Some benchmark's arguments: JSON, to that address.
fn to<'a>(address: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["-J", "-t", seconds(), "-c", address], more].concat()
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_docker_bridge_is_told_link_by_link_and_carries_what_its_links_count() {
    needs(PROGRAMS);
    let machine = Machine::new();
    let docker = Docker::start(&machine, HOST, "docker");
    let server = docker.server("server", &[]);
    let client = docker.idle("client", &[]);

    let ask = [&["exec", "client", "iperf3"], &*to(&server.address, &[])].concat();
    let seen = observed(&machine, "docker-containers", &[], docker.command(&ask));
    let (near, far) = (legs(&seen.before, &client, "eth0"), legs(&seen.before, &server, "eth0"));
    let between: WalkedPath = [near.clone(), reversed(&far)].concat();
    seen.holds_rates(&between);
    seen.holds_way(&between);
    seen.holds_screen(between.len(), &between);
    seen.holds_hops(&[
        (&near[0].0, &near[0].1, "sent"),
        (HOST, &near[1].1, "received"),
        (HOST, "docker0", "passed"),
        (HOST, &far[1].1, "sent"),
        (&far[0].0, &far[0].1, "received"),
    ]);
    for field in ["name", "id"] {
        holds_owner(&seen, &near, &client, field);
        holds_owner(&seen, &far, &server, field);
    }
    seen.holds_owner((HOST, "docker0"), "network", "name", "bridge");

    let mut ask = machine.inside(HOST, "iperf3");
    ask.args(to(&server.address, &[]));
    let seen = observed(&machine, "docker-from-host", &[], ask);
    let from_host: WalkedPath = [way(&[(HOST, "docker0")]), reversed(&far)].concat();
    seen.holds_rates(&from_host);
    seen.holds_way(&from_host);
    seen.holds_screen(from_host.len(), &from_host);
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_published_port_is_carried_by_the_proxy_on_loopback_and_by_nat_from_outside() {
    needs(PROGRAMS);
    let machine = Machine::new();
    let world = machine.space("world");
    machine.run(
        "ip link add nic0 type veth peer name wire0 netns world
         ip addr add 198.18.1.1/24 dev nic0; ip link set nic0 up
         ip -n world addr add 198.18.1.2/24 dev wire0; ip -n world link set wire0 up",
    );
    let docker = Docker::start(&machine, HOST, "docker");
    let server = docker.server("server", &["-p", "5301:5201"]);

    let mut ask = machine.inside(HOST, "iperf3");
    ask.args(to("127.0.0.1", &["-p", "5301"]));
    let seen = observed(&machine, "docker-proxy", &[], ask);
    let inside: WalkedPath = [way(&[(HOST, "docker0")]), reversed(&legs(&seen.before, &server, "eth0"))].concat();
    let by_proxy: WalkedPath = [way(&[(HOST, "lo")]), inside.clone()].concat();
    seen.holds_rates(&by_proxy);
    seen.holds_way(&by_proxy);
    seen.holds_screen(by_proxy.len(), &by_proxy);
    seen.holds_finding("proxy");
    let mean = |object: &serde_json::Value| object["jitter"]["mean_bits_per_s"].as_f64();
    let flow = seen.objects.iter().rev().find_map(mean).expect("the flow has a mean rate");
    let through_lo = seen.fastest(HOST, "lo");
    assert!(flow < 1.3 * through_lo, "the proxy's second connection is no second test: {flow} of {through_lo} bits/s");
    holds_owner(&seen, &legs(&seen.before, &server, "eth0"), &server, "name");

    let mut ask = machine.inside(&world, "iperf3");
    ask.args(to("198.18.1.1", &["-p", "5301"]));
    let seen = observed(&machine, "docker-nat", &[], ask);
    let by_nat: WalkedPath = [way(&[(&world, "wire0"), (HOST, "nic0")]), inside].concat();
    seen.holds_rates(&by_nat);
    seen.holds_way(&by_nat);
    seen.holds_screen(by_nat.len(), &by_nat);
    let lo = |truth: &Truth| truth.link(HOST, "lo").bytes.0;
    assert!(lo(&seen.after) - lo(&seen.before) < 1 << 20, "the proxy has no part in what comes from outside");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_swarm_overlay_is_told_with_its_hidden_namespaces_on_both_hosts() {
    needs(PROGRAMS);
    let machine = Machine::new();
    let (east, west) = (machine.space("east"), machine.space("west"));
    machine.run(
        "ip link add nic0 netns east type veth peer name nic0 netns west
         for host in east west; do ip -n $host link set nic0 up; done
         ip -n east addr add 198.18.1.1/24 dev nic0; ip -n east route add default via 198.18.1.2
         ip -n west addr add 198.18.1.2/24 dev nic0; ip -n west route add default via 198.18.1.1",
    );
    let (manager, worker) = (Docker::start(&machine, &east, "docker"), Docker::start(&machine, &west, "docker-west"));
    swarm(&manager, "198.18.1.1", &worker, "198.18.1.2");
    manager.cli(&["network", "create", "-d", "overlay", "--attachable", "over"]);
    let server = manager.server("server", &["--network", "over"]);
    let client = worker.idle("client", &["--network", "over"]);
    let id = |network: &str| manager.cli(&["network", "inspect", "-f", "{{.ID}}", network]);
    let kept = |engine: &str, name: &str| {
        let spaces = spaces_of(&machine, engine);
        let space = spaces.into_iter().find(|space| space.ends_with(&format!("/{name}")));
        space.unwrap_or_else(|| panic!("{engine} keeps a namespace {name}"))
    };
    let (over_id, ingress_id) = (id("over"), id("ingress"));
    let overlay = |id: &str| format!("1-{}", &id[..10]);
    let (there, here) = (kept("docker", &overlay(&over_id)), kept("docker-west", &overlay(&over_id)));

    let ask = [&["exec", "client", "iperf3"], &*to(&server.address, &[])].concat();
    let seen = observed(&machine, "docker-overlay", &[], worker.command(&ask));
    let leg = |container: &Container, hidden: &str| {
        let own = seen.before.link(&container.space, "eth0");
        way(&[(&container.space, "eth0"), (hidden, &seen.before.peer(own).name), (hidden, "vxlan0")])
    };
    for (hidden, container, field) in [(&*there, &server, "name"), (&here, &client, "id")] {
        let outer = &leg(container, hidden)[1];
        holds_owner(&seen, &vec![outer.clone()], container, field);
        for name in ["br0", "vxlan0"] {
            seen.holds_owner((hidden, name), "network", "name", "over");
        }
    }
    let wire = way(&[(&west, "nic0"), (&east, "nic0")]);
    let over: WalkedPath = [leg(&client, &here), wire, reversed(&leg(&server, &there))].concat();
    seen.holds_rates(&over);
    seen.holds_way(&over);
    seen.holds_screen(over.len(), &over);
    let [outer, inner] = [leg(&client, &here), leg(&server, &there)].map(|leg| leg[1].1.clone());
    seen.holds_hops(&[
        (&client.space, "eth0", "sent"),
        (&here, &outer, "received"),
        (&here, "br0", "passed"),
        (&here, "vxlan0", "sent"),
        (&west, "nic0", "sent"),
        (&east, "nic0", "received"),
        (&there, "vxlan0", "received"),
        (&there, "br0", "passed"),
        (&there, &inner, "sent"),
        (&server.space, "eth0", "received"),
    ]);
    holds_owner(&seen, &way(&[(&server.space, "eth0")]), &server, "name");
    holds_owner(&seen, &way(&[(&client.space, "eth0")]), &client, "id");

    // Each namespace by the name of its network, which Docker's own socket tells, or of its container.
    seen.holds_space(&there, "over overlay", Some("vxlan0"));
    seen.holds_space(&here, "over overlay", Some("vxlan0"));
    let balancer = format!("lb_{}", &over_id[..9]);
    seen.holds_space(&kept("docker", &balancer), "over lb", None);
    seen.holds_space(&kept("docker", &overlay(&ingress_id)), "ingress overlay", None);
    seen.holds_space(&kept("docker", "ingress_sbox"), "ingress lb", None);
    seen.holds_space(&server.space, &server.name, Some("eth0"));
    seen.holds_space(&client.space, &client.id[..12], Some("eth0"));
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn an_engine_that_stops_starts_and_is_killed_is_followed_and_leaks_nothing() {
    needs(PROGRAMS);
    let machine = Machine::new();
    let mut docker = Docker::start(&machine, HOST, "docker");
    let mut watching = machine.watch();
    let mut held = None;
    for round in 0..3 {
        let name = format!("round{round}");
        let container = docker.idle(&name, &[]);
        let truth = agrees_within(5, &machine, &mut watching);
        let netns = truth.spaces[&container.space];
        await_that("the container is named as its engine names it", 5, || {
            let object = watching.next();
            let mut links = object["links"].as_array().expect("links").iter();
            links.any(|link| link["netns"] == netns && link["name"] == "eth0" && link["owner"]["name"] == *name)
        });
        docker.stand_still();
        machine.pair(&format!("still{round}"));
        agrees_within(5, &machine, &mut watching);
        docker.go_on();
        docker.cli(&["rm", "-f", &name]);
        agrees_within(5, &machine, &mut watching);
        if round == 1 {
            docker.kill();
        } else {
            docker.down();
        }
        agrees_within(5, &machine, &mut watching);
        docker.up();
        agrees_within(5, &machine, &mut watching);
        let held = *held.get_or_insert_with(|| descriptors(&watching));
        await_that("no descriptor is left open", 5, || {
            watching.next();
            descriptors(&watching) <= held
        });
    }
    watching.was_never_held_up();
}
