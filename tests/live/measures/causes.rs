//! Causes on the way that no counter and no route tells, made on real namespaces: each is named with its place and its remedy, and
//! after the remedy there is none.

use crate::ground::{Netns, needs};
use crate::measures::faults::flow::Flow;
use crate::measures::faults::{bridged, cable};
use serde_json::Value;

const TOOLS: [&str; 7] = ["ip", "bridge", "tc", "iperf3", "nsenter", "python3", "taskset"];
/// The programs that tests load, by Python.
const PROGRAM: &str = include_str!("causes/program.py");

/// Ten megabits of datagrams a second, of so many bytes each.
fn datagrams(from: &Netns, to: &Netns, address: &str, bytes: &str) -> Flow {
    let sends = ["iperf3", "-u", "-b", "10M", "-l", bytes, "-t", "120", "-c", address];
    Flow::of_programs((from, &sends), (to, &["iperf3", "-s"]))
}

/// Loads a program in a namespace and gives it to a command as `PIN`, on a file system for programs that goes with the command.
fn with_program(netns: &Netns, (kind, number): (&str, u32), script: &str) {
    let lines = format!(
        "unshare --mount sh -ec 'mount -t bpf bpf /sys/fs/bpf; PIN=/sys/fs/bpf/p; python3 - {kind} $PIN {number}; {script}' \
         <<'E'\n{PROGRAM}\nE"
    );
    netns.run(&lines);
}

/// What the flow's path ends with.
fn gap(flow: &Flow, object: &Value) -> String {
    flow.of(object).and_then(|flow| flow["path_gap"].as_str()).unwrap_or_default().to_owned()
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn frames_for_a_stale_neighbour_are_lost_at_the_link_that_discards_them() {
    needs(&TOOLS);
    let [_host, one, two] = bridged();
    let mut flow = datagrams(&one, &two, "198.18.0.2", "1200");
    flow.is_healthy_for_datagrams();
    one.run("ip neigh replace 198.18.0.2 lladdr 02:00:00:00:77:77 dev eth0 nud permanent");
    let words = ["a MAC address other than that of eth0", "as 02:00:00:00:77:77", "ip neigh del 198.18.0.2 dev eth0"];
    flow.finds("loss", &words);
    let object = flow.awaits("what is discarded is told as lost", 20, |_, object| {
        object["limit"]["sentence"].as_str().is_some_and(|text| text.contains("a MAC address other than"))
    });
    assert!(!object["limit"]["sentence"].to_string().contains("no counter"), "{}", object["limit"]);
    one.run("ip neigh del 198.18.0.2 dev eth0");
    flow.mended("loss");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn datagrams_longer_than_a_bridge_port_takes_name_its_mtu() {
    needs(&TOOLS);
    let [host, one, two] = bridged();
    let mut flow = datagrams(&one, &two, "198.18.0.2", "1448");
    flow.is_healthy_for_datagrams();
    host.run("ip link set vb mtu 1400");
    let text = flow.finds("loss", &["vb", "has MTU 1400", "1500", "ip link set eth0 mtu 1400"]);
    assert!(!text.contains("VLAN"), "no VLAN has to do with it: {text}");
    one.run("ip link set eth0 mtu 1400");
    two.run("ip link set eth0 mtu 1400");
    flow.mended("loss");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn isolated_ports_are_named_and_no_vlan() {
    needs(&TOOLS);
    let [host, one, two] = bridged();
    let mut flow = datagrams(&one, &two, "198.18.0.2", "1200");
    flow.is_healthy_for_datagrams();
    host.run("bridge link set dev va isolated on; bridge link set dev vb isolated on");
    let text = flow.finds("loss", &["va and vb are isolated ports of br0", "bridge link set dev va isolated off"]);
    assert!(!text.contains("VLAN"), "no VLAN has to do with it: {text}");
    host.run("bridge link set dev va isolated off");
    flow.mended("loss");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn an_xdp_program_that_drops_is_a_rule_of_its_link() {
    needs(&TOOLS);
    let [_host, one, two] = bridged();
    let mut flow = datagrams(&one, &two, "198.18.0.2", "1200");
    flow.is_healthy_for_datagrams();
    for mode in ["xdpdrv", "xdpgeneric"] {
        with_program(&two, ("xdp_drop", 3), &format!("ip link set eth0 {mode} pinned $PIN"));
        let word = if mode == "xdpdrv" { "xdp" } else { mode };
        flow.finds("loss", &["by the XDP program at eth0", &format!("ip link set eth0 {word} off")]);
        let object = flow.awaits("its place is a policy", 20, |_, object| {
            let losses = object["losses"].as_array().expect("a list");
            losses.iter().any(|loss| loss["place"] == "policy")
        });
        let kernel = object["losses"].as_array().expect("a list").iter().any(|loss| loss["place"] == "kernel");
        assert!(!kernel, "nothing of it is somewhere in the kernel: {}", object["losses"]);
        two.run(&format!("ip link set eth0 {mode} off"));
        flow.mended("loss");
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn small_packets_by_limits_and_by_a_program_are_named() {
    needs(&TOOLS);
    let (near, far) = (Netns::new(), Netns::new());
    cable((&near, "v0"), (&far, "v1"));
    near.run("ip addr add 198.18.0.1/24 dev v0");
    far.run("ip addr add 198.18.0.2/24 dev v1");
    let mut flow = Flow::between(&near, &far, "198.18.0.2");
    flow.is_healthy();
    near.run("ip link set v0 gso_max_size 1500 gso_max_segs 1");
    let words = ["v0", "allows 1 segment per packet", "ip link set v0 gso_max_size 65536 gso_max_segs 65535"];
    flow.finds("gso_limits", &words);
    near.run("ip link set v0 gso_max_size 65536 gso_max_segs 65535");
    flow.mended("gso_limits");
    with_program(&far, ("xdp_pass", 0), "ip link set v1 xdpdrv pinned $PIN");
    flow.finds("xdp", &["tso is off on v0", "at its other end v1", "ip link set v1 xdp off"]);
    far.run("ip link set v1 xdpdrv off");
    flow.mended("xdp");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_tc_program_that_redirects_ends_what_is_known_of_the_path() {
    needs(&TOOLS);
    let [host, one, two] = [Netns::new(), Netns::new(), Netns::new()];
    for (container, port, address) in [(&one, "va", "198.18.0.1"), (&two, "vb", "198.18.0.2")] {
        cable((&host, port), (container, "eth0"));
        container.run(&format!("ip addr add {address}/24 dev eth0"));
    }
    let mac = |netns: &Netns| netns.output("ip -o link show eth0 | sed 's/.*ether \\([^ ]*\\) .*/\\1/'");
    let index = |port: &str| host.output(&format!("ip -o link show {port} | cut -d: -f1"));
    one.run(&format!("ip neigh add 198.18.0.2 lladdr {} dev eth0", mac(&two).trim()));
    two.run(&format!("ip neigh add 198.18.0.1 lladdr {} dev eth0", mac(&one).trim()));
    for (port, other) in [("va", "vb"), ("vb", "va")] {
        let to = index(other).trim().parse().expect("a number");
        let filter =
            format!("tc qdisc add dev {port} clsact; tc filter add dev {port} ingress bpf da object-pinned $PIN");
        with_program(&host, ("redirect_peer", to), &filter);
    }
    let mut flow = Flow::between(&one, &two, "198.18.0.2");
    let is_told = |flow: &Flow, object: &Value| gap(flow, object).starts_with("a tc program at va takes over here");
    let object = flow.awaits("the program is named", 60, is_told);
    let path = flow.of(&object).expect("it is there")["path"].as_array().expect("a list");
    let names: Vec<&str> = path.iter().filter_map(|hop| hop["name"].as_str()).collect();
    assert_eq!(names, ["eth0", "va"], "as far as the program, and no further");
    // With a route that no packet takes.
    host.run(
        "ip link add d0 type veth peer name d1; ip link set d0 up; ip link set d1 up; ip addr add 198.18.0.254/32 dev d0
         ip route add 198.18.0.0/24 dev d0; sysctl -qw net.ipv4.ip_forward=1",
    );
    for _ in 0..16 {
        let object = flow.watching.next();
        let told = gap(&flow, &object);
        assert!(is_told(&flow, &object), "no false link, no loop: {told}");
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_tc_filter_that_redirects_ends_what_is_known_of_the_path() {
    needs(&TOOLS);
    let [host, one, two] = [Netns::new(), Netns::new(), Netns::new()];
    for (container, port, address) in [(&one, "va", "198.18.0.1"), (&two, "vb", "198.18.0.2")] {
        cable((&host, port), (container, "eth0"));
        container.run(&format!("ip addr add {address}/24 dev eth0"));
    }
    for (port, other) in [("va", "vb"), ("vb", "va")] {
        host.run(&format!(
            "tc qdisc add dev {port} clsact
             tc filter add dev {port} ingress protocol all u32 match u32 0 0 action mirred egress redirect dev {other}"
        ));
    }
    let mut flow = Flow::between(&one, &two, "198.18.0.2");
    flow.awaits("the filter is named", 60, |flow, object| {
        gap(flow, object).starts_with("a tc filter at va takes over here and redirects all packets to vb")
    });
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn of_two_next_hops_none_is_told_for_the_one_that_a_stream_takes() {
    needs(&TOOLS);
    for [one, two, other, bits] in
        [["198.18.1.1", "198.18.1.2", "198.18.2", "32"], ["fd00:1::1", "fd00:1::2", "fd00:2::", "128"]]
    {
        let (near, far) = (Netns::new(), Netns::new());
        let is_ipv6 = bits == "128";
        let nodad = if is_ipv6 { "nodad" } else { "" };
        for nth in 1..=2 {
            cable((&near, &format!("e{nth}")), (&far, &format!("f{nth}")));
            let dot = if is_ipv6 { "" } else { "." };
            for (netns, link, last) in [(&near, "e", 1), (&far, "f", 2)] {
                let length = if is_ipv6 { 126 } else { 30 };
                let address = format!("{other}{dot}{:x}", (nth - 1) * 4 + last);
                netns.run(&format!("ip addr add {address}/{length} dev {link}{nth} {nodad}"));
            }
        }
        for (netns, own, to, link, gateway) in [(&near, one, two, "e", 2), (&far, two, one, "f", 1)] {
            let dot = if is_ipv6 { "" } else { "." };
            let via = |nth: i32| format!("nexthop via {other}{dot}{:x} dev {link}{nth}", (nth - 1) * 4 + gateway);
            netns.run(&format!(
                "ip addr add {own}/{bits} dev lo {nodad}; ip route add {to}/{bits} src {own} {} {}",
                via(1),
                via(2)
            ));
        }
        let sends = ["iperf3", "-B", one, "-b", "10M", "-t", "120", "-c", two];
        let mut flow = Flow::of_programs((&near, &sends), (&far, &["iperf3", "-s"]));
        let object = flow.awaits("the next hops are named", 60, |_, object| {
            let flows = object["flows"].as_array().expect("a list");
            flows.iter().any(|flow| flow["path_gap"].as_str().is_some_and(|text| text.contains("one of 2 next hops")))
        });
        for flow in object["flows"].as_array().expect("a list") {
            let hops = flow["path"].as_array().map_or(0, Vec::len);
            assert_eq!(hops, 0, "no link is told for a guess: {}", flow["path"]);
        }
    }
}
