//! Each thing that can be wrong with a path, made on real namespaces: vnettop names the place, and is silent again a few
//! seconds after the command that it proposed. Healthy networks of the same kinds have no such finding.

pub mod flow;

use crate::ground::docker::{Docker, PROGRAMS};
use crate::ground::machine::{HOST, Machine};
use crate::ground::{Kept, Netns, VNETTOP, Watching, await_that, needs, pid};
use flow::Flow;
use serde_json::Value;
use std::process::Command;

const TOOLS: [&str; 9] = ["ip", "bridge", "ethtool", "iperf3", "iptables", "mount", "nsenter", "python3", "taskset"];

/// Findings about a path; a healthy network has none of them.
const ABOUT_PATHS: [&str; 9] = [
    "path_mtu",
    "half_down",
    "port_waits",
    "vxlan_headroom",
    "wireguard_headroom",
    "proxy",
    "through_lo",
    "offloads",
    "steered",
];

/// A veth pair between two namespaces, up at both ends.
pub fn cable((one, name): (&Netns, &str), (other, peer): (&Netns, &str)) {
    one.run(&format!("ip link add {name} type veth peer name {peer} netns {}; ip link set {name} up", other.pid()));
    other.run(&format!("ip link set {peer} up"));
}

/// Shell lines inside a namespace with a sysfs that shows its links.
fn tune(netns: &Netns, script: &str) {
    netns.run(&format!("unshare --mount sh -ec 'mount -t sysfs sysfs /sys; {script}'"));
}

pub fn finding(object: &Value, id: &str) -> Option<String> {
    let findings = object["findings"].as_array().expect("a list");
    Some(findings.iter().find(|finding| finding["id"] == id)?["text"].as_str()?.to_owned())
}

fn no_finding(object: &Value) {
    for id in ABOUT_PATHS {
        assert_eq!(finding(object, id), None, "a healthy network has no finding {id}");
    }
}

/// Two namespaces and a router between them: `a0` 198.18.1.1 – `r0`, `r1` – `b0` 198.18.2.1.
fn routed() -> [Netns; 3] {
    let [near, router, far] = [Netns::new(), Netns::new(), Netns::new()];
    cable((&router, "r0"), (&near, "a0"));
    cable((&router, "r1"), (&far, "b0"));
    near.run("ip addr add 198.18.1.1/24 dev a0; ip route add default via 198.18.1.254");
    far.run("ip addr add 198.18.2.1/24 dev b0; ip route add default via 198.18.2.254");
    router.run(
        "ip addr add 198.18.1.254/24 dev r0; ip addr add 198.18.2.254/24 dev r1; sysctl -qw net.ipv4.ip_forward=1",
    );
    [near, router, far]
}

/// Two containers on one bridge: `va`, `vb` on the host.
pub fn bridged() -> [Netns; 3] {
    let [host, one, two] = [Netns::new(), Netns::new(), Netns::new()];
    host.run("ip link add br0 type bridge; ip link set br0 up");
    for (container, port, address) in [(&one, "va", "198.18.0.1"), (&two, "vb", "198.18.0.2")] {
        cable((&host, port), (container, "eth0"));
        host.run(&format!("ip link set {port} master br0"));
        container.run(&format!("ip addr add {address}/24 dev eth0"));
    }
    [host, one, two]
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_narrow_link_whose_word_is_lost_is_named_and_one_whose_word_arrives_is_not() {
    needs(&TOOLS);
    let [near, router, far] = routed();
    router.run("ip link set r1 mtu 1400");
    far.run("ip link set b0 mtu 1500");
    let mut heard = Flow::between(&near, &far, "198.18.2.1");
    heard.is_healthy();
    drop(heard);
    // Nothing that the router says arrives any more, and what it said before is forgotten.
    near.run("ip route flush cache; sysctl -qw net.ipv4.tcp_mtu_probing=0");
    router.run("iptables -A OUTPUT -p icmp -j DROP");
    let mut lost = Flow::of_iperf3(&near, &far, "198.18.2.1");
    lost.finds("path_mtu", &["r1", "has MTU 1400", "send 1500"]);
    router.run("ip link set r1 mtu 1500");
    lost.mended("path_mtu");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn jumbo_ends_over_a_common_middle_are_healthy_where_the_sender_hears_of_it() {
    needs(&TOOLS);
    let [near, router, far] = routed();
    near.run("ip link set a0 mtu 9000");
    far.run("ip link set b0 mtu 9000");
    router.run("ip link set r0 mtu 9000");
    Flow::between(&near, &far, "198.18.2.1").is_healthy();
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn offloads_off_at_an_end_and_in_the_middle_are_named() {
    needs(&TOOLS);
    let [near, router, far] = routed();
    let mut flow = Flow::between(&near, &far, "198.18.2.1");
    flow.is_healthy();
    near.run("ethtool -K a0 tso off");
    flow.finds("offloads", &["tso is off on a0", "not on b0", "(ethtool -K a0 tso on)"]);
    near.run("ethtool -K a0 tso on");
    flow.mended("offloads");
    near.run("ethtool -K a0 gro on");
    flow.finds("offloads", &["gro is off on b0", "not on a0", "(ethtool -K b0 gro on)"]);
    far.run("ethtool -K b0 gro on");
    flow.mended("offloads");
    far.run("ethtool -K b0 rx off");
    flow.finds("offloads", &["rx is off on b0"]);
    far.run("ethtool -K b0 rx on");
    flow.mended("offloads");
    router.run("ethtool -K r1 tso off");
    flow.finds("offloads", &["tso is off on r1", "(ethtool -K r1 tso on)"]);
    let object = flow.awaits("r1's offloads are told", 12, |flow, object| flow.of(object).is_some());
    let path = flow.of(&object).expect("it is there")["path"].as_array().expect("a list").clone();
    let switches = path.iter().map(|hop| (hop["name"].as_str().expect("a name"), hop["offloads"]["tso"].clone()));
    let told: Vec<_> = switches.collect();
    assert_eq!(
        told,
        [("a0", true.into()), ("r0", true.into()), ("r1", false.into()), ("b0", true.into())],
        "what ethtool -k says of each hop"
    );
    router.run("ethtool -K r1 tso on");
    flow.mended("offloads");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn rps_onto_the_flows_own_core_is_named() {
    needs(&TOOLS);
    let [near, _router, far] = &routed();
    let mut flow = Flow::between(near, far, "198.18.2.1");
    flow.is_healthy();
    flow.cores("b0", "is handled on the sender's core", |hop| {
        // Packets that overtake each other are counted.
        let counted =
            hop["softirq_by"] == "measured" && hop["softirq_cores"].as_str().is_some_and(|it| it.contains('0'));
        hop["softirq_by"] == "sender" && hop["softirq_cores"] == "0" || counted
    });
    tune(far, "echo 2 > /sys/class/net/b0/queues/rx-0/rps_cpus");
    flow.cores("b0", "is handled on the core of its mask", |hop| {
        ["rps", "measured"].iter().any(|by| hop["softirq_by"] == *by) && hop["softirq_cores"] == "1"
    });
    flow.finds("steered", &["RPS puts packets from b0", "on core 1, which the flow's receiver needs"]);
    tune(far, "echo 0 > /sys/class/net/b0/queues/rx-0/rps_cpus");
    flow.mended("steered");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn rps_of_one_queue_of_several_is_told_whatever_queue_the_sender_chose() {
    needs(&TOOLS);
    let (near, far) = (Netns::new(), Netns::new());
    let queues = "numtxqueues 2 numrxqueues 2";
    near.run(&format!("ip link add a0 {queues} type veth peer name b0 {queues} netns {}", far.pid()));
    near.run("ip addr add 198.18.1.1/24 dev a0; ip link set a0 up");
    far.run("ip addr add 198.18.1.2/24 dev b0; ip link set b0 up");
    // The sender's core sends by the second queue, and only the first has RPS: of whom that is the kernel counts.
    tune(&near, "echo 2 > /sys/class/net/a0/queues/tx-0/xps_cpus; echo 1 > /sys/class/net/a0/queues/tx-1/xps_cpus");
    tune(&far, "echo 2 > /sys/class/net/b0/queues/rx-0/rps_cpus");
    let handed_to = || {
        let text = std::fs::read_to_string("/proc/net/softnet_stat").expect("readable");
        let rows =
            text.lines().map(|line| line.split_whitespace().map(|word| u64::from_str_radix(word, 16).unwrap_or(0)));
        let rows = rows.map(Iterator::collect::<Vec<u64>>);
        rows.filter(|row| row.get(12) == Some(&1)).map(|row| row[9]).sum::<u64>()
    };
    let mut flow = Flow::between(&near, &far, "198.18.1.2");
    flow.cores("b0", "has the core of RPS among those that handle it, if packets are handed to it", |hop| {
        let cores = hop["softirq_cores"].as_str().unwrap_or_default();
        hop["softirq_by"] == "rps" && cores == "0-1" || hop["softirq_by"] == "measured"
    });
    let before = handed_to();
    for _ in 0..8 {
        flow.watching.next();
    }
    eprintln!("the RPS of a queue that the sender did not choose had {} packets for core 1", handed_to() - before);
    // Both queues: the flow's own core for certain. The finding's own command mends both.
    tune(&far, "echo 2 | tee /sys/class/net/b0/queues/rx-*/rps_cpus");
    let words = ["RPS puts packets from b0", "on core 1, which the flow's receiver needs"];
    let text = flow.finds("steered", &words);
    let command = text.rsplit_once('(').map(|(_, command)| command.trim_end_matches(')').to_owned());
    let command = command.unwrap_or_else(|| panic!("the finding names a command: {text}"));
    assert!(command.contains("| tee "), "one for all queues: {command}");
    tune(&far, &command);
    flow.mended("steered");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_thread_of_napi_on_the_flows_own_core_is_named() {
    needs(&TOOLS);
    let [near, router, far] = &routed();
    near.run("ethtool -K a0 tso off gro on");
    far.run("ethtool -K b0 tso off gro on");
    router.run("ethtool -K r1 tso off");
    tune(far, "echo 1 > /sys/class/net/b0/threaded");
    let mut threads = Vec::new();
    await_that("the kernel's thread is there", 5, || {
        let listed = far.output("ps -eo pid,comm");
        let of =
            |line: &str| line.contains("napi/b0-").then(|| line.split_whitespace().next().expect("a pid").to_owned());
        threads = listed.lines().filter_map(of).collect();
        !threads.is_empty()
    });
    let pin = |core: &str| threads.iter().for_each(|pid| far.run(&format!("taskset -cp {core} {pid}")));
    pin("1");
    let mut flow = Flow::between(near, far, "198.18.2.1");
    flow.cores("b0", "is handled by its thread", |hop| {
        ["napi_thread", "measured"].iter().any(|by| hop["softirq_by"] == *by) && hop["softirq_cores"] == "1"
    });
    flow.finds("steered", &["the NAPI thread handles packets from b0", "on core 1, which the flow's receiver needs"]);
    tune(far, "echo 0 > /sys/class/net/b0/threaded");
    flow.mended("steered");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_pair_that_is_half_down_is_named() {
    needs(&TOOLS);
    let [near, router, far] = &routed();
    let mut flow = Flow::between(near, far, "198.18.2.1");
    flow.is_healthy();
    router.run("ip link set r1 down");
    flow.finds("half_down", &["b0", "carries nothing: r1", "is down (ip link set r1 up)"]);
    router.run("ip link set r1 up");
    flow.mended("half_down");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_bridge_whose_port_is_still_learning_is_named() {
    needs(&TOOLS);
    let [host, one, two] = &bridged();
    let mut flow = Flow::between(one, two, "198.18.0.2");
    flow.is_healthy();
    host.run("ip link set br0 type bridge stp_state 1 forward_delay 600; ip link set vb down; ip link set vb up");
    flow.finds("port_waits", &["br0", "forwards nothing through vb: its port is l"]);
    host.run("ip link set br0 type bridge stp_state 0; bridge link set dev vb state 3");
    flow.mended("port_waits");
}

/// Two hosts whose pods are joined by a vxlan over an underlay of 1,500 bytes, as flannel has it.
fn overlaid() -> ([Netns; 2], [Netns; 2]) {
    let hosts = [Netns::new(), Netns::new()];
    let pods = [Netns::new(), Netns::new()];
    cable((&hosts[0], "u0"), (&hosts[1], "u1"));
    for (at, host) in hosts.iter().enumerate() {
        let (own, far, other) = (at + 1, 2 - at, 1 - at);
        cable((host, "port"), (&pods[at], "eth0"));
        host.run(&format!(
            "ip addr add 198.18.9.{own}/24 dev u{at}; sysctl -qw net.ipv4.ip_forward=1
             ip link add cni0 type bridge; ip link set port mtu 1450 master cni0; ip link set cni0 mtu 1450 up
             ip addr add 198.18.{at}.1/24 dev cni0
             ip link add flannel.1 type vxlan id 1 local 198.18.9.{own} dev u{at} dstport 8472 nolearning
             ip link set flannel.1 address 02:00:00:00:00:0{own} up; ip addr add 198.18.{at}.0/32 dev flannel.1
             ip route add 198.18.{other}.0/24 via 198.18.{other}.0 dev flannel.1 onlink
             ip neigh add 198.18.{other}.0 lladdr 02:00:00:00:00:0{far} dev flannel.1 nud permanent
             bridge fdb add 02:00:00:00:00:0{far} dev flannel.1 dst 198.18.9.{far}"
        ));
        pods[at].run(&format!(
            "ip link set eth0 mtu 1450; ip addr add 198.18.{at}.2/24 dev eth0; ip route add default via 198.18.{at}.1"
        ));
    }
    (hosts, pods)
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_vxlan_without_headroom_is_named_and_flannels_is_healthy() {
    needs(&TOOLS);
    let (hosts, pods) = &overlaid();
    let mut flow = Flow::between(&pods[0], &pods[1], "198.18.1.2");
    flow.is_healthy();
    // The kernel sees to it when the vxlan is made, and not when what is below it changes.
    hosts[0].run("ip link set u0 mtu 1400");
    flow.finds(
        "vxlan_headroom",
        &["flannel.1", "has MTU 1450", "u0 below it 1400", "(ip link set flannel.1 mtu 1350)"],
    );
    hosts[0].run("ip link set flannel.1 mtu 1350");
    flow.mended("vxlan_headroom");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn an_own_address_goes_through_lo_and_another_does_not() {
    needs(&TOOLS);
    let [_host, one, two] = &bridged();
    let mut own = Flow::between(one, one, "198.18.0.1");
    own.finds("through_lo", &["198.18.0.1 is an address of the sender's own namespace"]);
    drop(own);
    Flow::between(one, two, "198.18.0.2").is_healthy();
}

/// Two hosts with a pod each behind proxy ARP and host routes, as calico has it.
#[test]
#[ignore = "on the real kernel: tests/run"]
fn calicos_shape_is_healthy() {
    needs(&TOOLS);
    let (hosts, pods) = ([Netns::new(), Netns::new()], [Netns::new(), Netns::new()]);
    cable((&hosts[0], "u0"), (&hosts[1], "u1"));
    for (at, host) in hosts.iter().enumerate() {
        cable((host, "port"), (&pods[at], "eth0"));
        host.run(&format!(
            "ip addr add 198.18.9.{}/24 dev u{at}; sysctl -qw net.ipv4.ip_forward=1
             sysctl -qw net.ipv4.conf.port.proxy_arp=1 net.ipv4.neigh.port.proxy_delay=0
             ip route add 198.18.{at}.2/32 dev port; ip route add 198.18.{other}.0/24 via 198.18.9.{far}
             ip route add default via 198.18.9.{far}",
            at + 1,
            other = 1 - at,
            far = 2 - at
        ));
        pods[at].run(&format!(
            "ip addr add 198.18.{at}.2/32 dev eth0; ip route add 169.254.1.1 dev eth0 scope link; ip route add default via 169.254.1.1"
        ));
    }
    Flow::between(&pods[0], &pods[1], "198.18.1.2").is_healthy();
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn dockers_proxy_is_named_and_its_nat_is_healthy() {
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
    let mut watching = machine.watch();
    let asks = |space: &str, address: &str, port: &str| {
        let mut command = machine.inside(space, "iperf3");
        command.args(["-t", "60", "-p", port, "-c", address]);
        machine.keep("client", command)
    };
    let finds = |watching: &mut Watching| {
        let proxied = |object: Value| finding(&object, "proxy").filter(|text| text.contains("port 5301"));
        (0..80).find_map(|_| proxied(watching.next()))
    };
    // The test ends with its client, and the server takes the next one.
    let ended = |watching: &mut Watching, client: Kept| {
        drop(client);
        let over = (0..80).any(|_| watching.next()["flows"].as_array().is_some_and(Vec::is_empty));
        assert!(over, "the connections are gone");
    };
    let client = asks(HOST, "127.0.0.1", "5301");
    eprintln!("{}", finds(&mut watching).expect("over loopback the proxy copies, and is named"));
    ended(&mut watching, client);
    for (space, address, port) in [(&*world, "198.18.1.1", "5301"), (HOST, &*server.address, "5201")] {
        let client = asks(space, address, port);
        let mut ticks = 0;
        for _ in 0..80 {
            let object = watching.next();
            let moves = |flow: &Value| flow["bits_per_s"].as_f64().is_some_and(|bits| bits > 1e6);
            let is_moving = object["flows"].as_array().is_some_and(|flows| flows.iter().any(moves));
            if is_moving {
                no_finding(&object);
                ticks += 1;
            }
            if ticks == 16 {
                break;
            }
        }
        assert_eq!(ticks, 16, "NAT and the bridge carry it; the client said {}", machine.said("client"));
        ended(&mut watching, client);
    }
}
