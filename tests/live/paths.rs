//! The path of a flow over real namespaces, bridges, macvlan, vxlan and routes: every link in the right order, and every
//! hop's rate that of the flow.

mod guest;
mod ifb;
mod shape;
mod vpn;

use crate::ground::{self, Netns, needs};
use shape::{Shape, cable};

const TOOLS: [&str; 4] = ["ip", "bridge", "nsenter", "python3"];

#[test]
#[ignore = "on the real kernel: tests/run"]
fn an_own_address_is_reached_through_lo() {
    needs(&TOOLS);
    let (near, far) = (Netns::new(), Netns::new());
    cable((&near, "v0"), (&far, "v1"));
    near.run("ip addr add 198.18.0.1/24 dev v0");
    let shape = Shape::new(&[("n", &near), ("f", &far)], "n", "n", "198.18.0.1");
    shape.is_walked("n:lo sent local");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_pair_is_two_hops() {
    needs(&TOOLS);
    let (near, far) = ground::veth_pair();
    let shape = Shape::new(&[("n", &near), ("f", &far)], "n", "f", "198.18.0.2");
    shape.is_walked("n:v0 sent route, f:v1 received peer");
}

/// Two containers on one bridge; the host may have an address on it.
fn bridged() -> (Netns, Netns, Netns) {
    let (host, one, two) = (Netns::new(), Netns::new(), Netns::new());
    host.run("ip link add br0 type bridge; ip link set br0 up; ip addr add 198.18.0.254/24 dev br0");
    for (container, port, address) in [(&one, "va", "198.18.0.1"), (&two, "vb", "198.18.0.2")] {
        cable((&host, port), (container, "eth0"));
        host.run(&format!("ip link set {port} master br0"));
        container.run(&format!("ip addr add {address}/24 dev eth0"));
    }
    (host, one, two)
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_bridge_is_passed_and_counts_nothing_of_it() {
    needs(&TOOLS);
    let (host, one, two) = bridged();
    let shape = Shape::new(&[("h", &host), ("a", &one), ("b", &two)], "a", "b", "198.18.0.2");
    shape.is_walked("a:eth0 sent route, h:va received peer, h:br0 passed bridge, h:vb sent fdb, b:eth0 received peer");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn the_host_sends_through_its_bridge_and_is_reached_through_it() {
    needs(&TOOLS);
    let (host, one, two) = bridged();
    let spaces = [("h", &host), ("a", &one), ("b", &two)];
    Shape::new(&spaces, "h", "b", "198.18.0.2").is_walked("h:br0 sent route, h:vb sent fdb, b:eth0 received peer");
    let inwards = "a:eth0 sent route, h:va received peer, h:br0 received bridge";
    Shape::new(&spaces, "a", "h", "198.18.0.254").is_walked(inwards);
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn macvlans_on_one_link_reach_each_other_without_it() {
    needs(&TOOLS);
    let (host, one, two) = (Netns::new(), Netns::new(), Netns::new());
    let outside = Netns::new();
    cable((&host, "up0"), (&outside, "up1"));
    for (container, address) in [(&one, "198.18.0.1"), (&two, "198.18.0.2")] {
        let pid = container.pid();
        host.run(&format!("ip link add link up0 name mv0 netns {pid} type macvlan mode bridge"));
        container.run(&format!("ip addr add {address}/24 dev mv0; ip link set mv0 up"));
    }
    outside.run("ip addr add 198.18.0.3/24 dev up1");
    let spaces = [("h", &host), ("a", &one), ("b", &two), ("o", &outside)];
    Shape::new(&spaces, "a", "b", "198.18.0.2").is_walked("a:mv0 sent route, b:mv0 received upper");
    let outwards = "a:mv0 sent route, h:up0 sent lower, o:up1 received peer";
    Shape::new(&spaces, "a", "o", "198.18.0.3").is_walked(outwards);
    let inwards = "o:up1 sent route, h:up0 received peer, b:mv0 received upper";
    Shape::new(&spaces, "o", "b", "198.18.0.2").is_walked(inwards);
}

/// Two hosts with an underlay between them and a container each: `eth0` of the container is `port` of its host.
struct Hosts {
    hosts: [Netns; 2],
    containers: [Netns; 2],
}

impl Hosts {
    fn new() -> Self {
        let it = Self { hosts: [Netns::new(), Netns::new()], containers: [Netns::new(), Netns::new()] };
        cable((&it.hosts[0], "u0"), (&it.hosts[1], "u1"));
        for (at, host) in it.hosts.iter().enumerate() {
            host.run(&format!("ip addr add 198.18.9.{}/24 dev u{at}; sysctl -qw net.ipv4.ip_forward=1", at + 1));
            cable((host, "port"), (&it.containers[at], "eth0"));
        }
        it
    }

    /// Each container on a bridge of its host that is its gateway.
    fn with_bridges() -> Self {
        let it = Self::new();
        for at in 0..2 {
            it.hosts[at].run(&format!(
                "ip link add cni0 type bridge; ip link set port master cni0; ip link set cni0 up; ip addr add 198.18.{at}.1/24 dev cni0"
            ));
            it.containers[at]
                .run(&format!("ip addr add 198.18.{at}.2/24 dev eth0; ip route add default via 198.18.{at}.1"));
        }
        it
    }

    /// Each container alone behind proxy ARP, as calico has it.
    fn with_proxy_arp() -> Self {
        let it = Self::new();
        for at in 0..2 {
            it.hosts[at].run(&format!(
                "sysctl -qw net.ipv4.conf.port.proxy_arp=1 net.ipv4.neigh.port.proxy_delay=0
                 ip route add 198.18.{at}.2/32 dev port; ip route add default via 198.18.9.{}",
                2 - at
            ));
            it.containers[at].run(&format!(
                "ip addr add 198.18.{at}.2/32 dev eth0; ip route add 169.254.1.1 dev eth0 scope link; ip route add default via 169.254.1.1"
            ));
        }
        it
    }

    /// A vxlan between the hosts with all that flannel writes itself.
    fn join_by_vxlan(&self) {
        for (at, host) in self.hosts.iter().enumerate() {
            host.run(&format!(
                "ip link add flannel.1 type vxlan id 1 local 198.18.9.{own} dev u{at} dstport 8472 nolearning
                 ip link set flannel.1 address 02:00:00:00:00:0{own} up
                 ip addr add 198.18.{at}.0/32 dev flannel.1",
                own = at + 1
            ));
        }
        for (at, host) in self.hosts.iter().enumerate() {
            let (other, far) = (1 - at, 2 - at);
            host.run(&format!(
                "ip route add 198.18.{other}.0/24 via 198.18.{other}.0 dev flannel.1 onlink
                 ip neigh add 198.18.{other}.0 lladdr 02:00:00:00:00:0{far} dev flannel.1 nud permanent
                 bridge fdb add 02:00:00:00:00:0{far} dev flannel.1 dst 198.18.9.{far}"
            ));
        }
    }

    /// Plain routes between the hosts.
    fn join_by_routes(&self) {
        for (at, host) in self.hosts.iter().enumerate() {
            host.run(&format!("ip route add 198.18.{}.0/24 via 198.18.9.{}", 1 - at, 2 - at));
        }
    }

    fn shape(&self) -> Shape<'_> {
        let [h, g] = &self.hosts;
        let [a, b] = &self.containers;
        Shape::new(&[("h", h), ("g", g), ("a", a), ("b", b)], "a", "b", "198.18.1.2")
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn flannel_host_gw_routes_between_two_bridges() {
    needs(&TOOLS);
    let hosts = Hosts::with_bridges();
    hosts.join_by_routes();
    hosts.shape().is_walked(
        "a:eth0 sent route, h:port received peer, h:cni0 received bridge, h:u0 sent route, g:u1 received peer, \
         g:cni0 sent route, g:port sent fdb, b:eth0 received peer",
    );
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn flannel_vxlan_goes_on_over_the_underlay() {
    needs(&TOOLS);
    let hosts = Hosts::with_bridges();
    hosts.join_by_vxlan();
    hosts.shape().is_walked(
        "a:eth0 sent route, h:port received peer, h:cni0 received bridge, h:flannel.1 sent route, h:u0 sent route, \
         g:u1 received peer, g:flannel.1 received tunnel, g:cni0 sent route, g:port sent fdb, b:eth0 received peer",
    );
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn calico_goes_by_proxy_arp_and_host_routes() {
    needs(&TOOLS);
    let hosts = Hosts::with_proxy_arp();
    hosts.join_by_routes();
    hosts.shape().is_walked(
        "a:eth0 sent route, h:port received peer, h:u0 sent route, g:u1 received peer, g:port sent route, \
         b:eth0 received peer",
    );
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn canal_is_calico_over_flannels_vxlan() {
    needs(&TOOLS);
    let hosts = Hosts::with_proxy_arp();
    hosts.join_by_vxlan();
    hosts.shape().is_walked(
        "a:eth0 sent route, h:port received peer, h:flannel.1 sent route, h:u0 sent route, g:u1 received peer, \
         g:flannel.1 received tunnel, g:port sent route, b:eth0 received peer",
    );
}

/// A vxlan that was made in the host's namespace and moved to another together with a bridge, as Docker's overlay has it.
#[test]
#[ignore = "on the real kernel: tests/run"]
fn an_overlays_namespace_sends_through_its_hosts() {
    needs(&TOOLS);
    let [hosts, overlays, containers] = [(); 3].map(|()| [Netns::new(), Netns::new()]);
    cable((&hosts[0], "u0"), (&hosts[1], "u1"));
    for at in 0..2 {
        let (own, far, overlay) = (at + 1, 2 - at, &overlays[at]);
        hosts[at].run(&format!(
            "ip addr add 198.18.9.{own}/24 dev u{at}
             ip link add vx0 type vxlan id 4097 dstport 4789 proxy l2miss l3miss; ip link set vx0 netns {}",
            overlay.pid()
        ));
        overlay.run("ip link add br0 type bridge; ip link set br0 up; ip link set vx0 master br0 up");
        cable((overlay, "port"), (&containers[at], "eth0"));
        overlay.run("ip link set port master br0");
        containers[at].run(&format!(
            "ip link set eth0 address 02:42:0a:00:00:0{own}; ip addr add 198.18.0.{own}/24 dev eth0
             ip neigh add 198.18.0.{far} lladdr 02:42:0a:00:00:0{far} dev eth0"
        ));
        overlay.run(&format!(
            "bridge fdb add 02:42:0a:00:00:0{far} dev vx0 dst 198.18.9.{far} self
             bridge fdb add 02:42:0a:00:00:0{far} dev vx0 master static"
        ));
    }
    let spaces = [("h", &hosts[0]), ("g", &hosts[1]), ("o", &overlays[0]), ("p", &overlays[1])];
    let [one, two] = &containers;
    Shape::new([&spaces[..], &[("a", one), ("b", two)]].concat().as_slice(), "a", "b", "198.18.0.2").is_walked(
        "a:eth0 sent route, o:port received peer, o:br0 passed bridge, o:vx0 sent fdb, h:u0 sent route, \
         g:u1 received peer, p:vx0 received tunnel, p:br0 passed bridge, p:port sent fdb, b:eth0 received peer",
    );
}

/// A client outside of the host with two containers: its own `eth0`, the host's `out0` at 198.18.7.254.
fn with_client(host: &Netns) -> Netns {
    let client = Netns::new();
    cable((host, "out0"), (&client, "eth0"));
    host.run("ip addr add 198.18.7.254/24 dev out0; sysctl -qw net.ipv4.ip_forward=1");
    client.run("ip addr add 198.18.7.5/24 dev eth0");
    client
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_published_port_leads_to_its_container() {
    needs(&["ip", "nsenter", "python3", "iptables"]);
    let (host, one, two) = bridged();
    let client = with_client(&host);
    two.run("ip route add default via 198.18.0.254");
    host.run("iptables -t nat -A PREROUTING -p tcp --dport 5201 -j DNAT --to-destination 198.18.0.2:5201");
    host.run("iptables -t nat -A POSTROUTING -o br0 -j MASQUERADE");
    let spaces = [("h", &host), ("a", &one), ("b", &two), ("c", &client)];
    Shape::new(&spaces, "c", "b", "198.18.7.254")
        .behind("198.18.0.2")
        .is_walked("c:eth0 sent route, h:out0 received peer, h:br0 sent route, h:vb sent fdb, b:eth0 received peer");
}

/// Python, called docker-proxy: copies from a port of its own to where its arguments say.
const PROXY: &str = "
import socket, sys
options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
listener = socket.create_server((options['-host-ip'], int(options['-host-port'])))
taken, _ = listener.accept()
onward = socket.create_connection((options['-container-ip'], int(options['-container-port'])))
while piece := taken.recv(65536):
    onward.sendall(piece)";

#[test]
#[ignore = "on the real kernel: tests/run"]
fn dockers_proxy_is_two_connections_and_one_way() {
    needs(&TOOLS);
    let (host, one, two) = bridged();
    let client = with_client(&host);
    let python = host.output("python3 -c 'import sys; print(sys.executable)'");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let proxy = directory.path().join("docker-proxy");
    std::os::unix::fs::symlink(python.trim(), &proxy).expect("writable");
    let to = ["-container-ip", "198.18.0.2", "-container-port", "5201"];
    let from = ["-c", PROXY, "-proto", "tcp", "-host-ip", "198.18.7.254", "-host-port", "5201"];
    let _proxy = host.keep(&proxy.display().to_string(), &[&from[..], &to[..]].concat());
    ground::await_that("the proxy listens", 20, || {
        host.output("cat /proc/net/tcp").contains("FE0712C6:1451 00000000:0000 0A")
    });
    let spaces = [("h", &host), ("a", &one), ("b", &two), ("c", &client)];
    Shape::new(&spaces, "c", "b", "198.18.7.254")
        .behind("198.18.0.2")
        .is_walked("c:eth0 sent route, h:out0 received peer, h:br0 sent proxy, h:vb sent fdb, b:eth0 received peer");
}

/// Two namespaces with two wires between them, `v` and `w`; what has mark 7 goes by the second.
fn two_wires() -> (Netns, Netns) {
    let (near, far) = (Netns::new(), Netns::new());
    for (name, peer, net) in [("v0", "v1", "198.18.0"), ("w0", "w1", "198.18.5")] {
        cable((&near, name), (&far, peer));
        near.run(&format!("ip addr add {net}.1/24 dev {name}"));
        far.run(&format!("ip addr add {net}.2/24 dev {peer}; sysctl -qw net.ipv4.conf.{peer}.rp_filter=0"));
    }
    far.run("sysctl -qw net.ipv4.conf.all.rp_filter=0");
    near.run("ip rule add fwmark 7 table 100; ip route add 198.18.0.2 via 198.18.5.2 dev w0 table 100");
    (near, far)
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_marked_socket_goes_the_way_of_its_rule() {
    needs(&TOOLS);
    let (near, far) = two_wires();
    let shape = || Shape::new(&[("n", &near), ("f", &far)], "n", "f", "198.18.0.2");
    shape().is_walked("n:v0 sent route, f:v1 received peer");
    let marked = shape().marked(7);
    marked.is_walked("n:w0 sent route, f:w1 received peer");
    let flow = marked.watched_with(&[]);
    assert!(flow["path_note"].is_null(), "nothing but the socket sets marks, so nothing is open: {flow}");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn where_a_mark_is_not_known_the_way_says_whose_it_is() {
    needs(&TOOLS);
    let (near, far) = two_wires();
    let shape = Shape::new(&[("n", &near), ("f", &far)], "n", "f", "198.18.0.2");
    let mut command = near.command("setpriv");
    command.args(["--bounding-set=-net_admin", ground::VNETTOP]);
    let note = |flow: &serde_json::Value| flow["path_note"].as_str().unwrap_or_default().to_owned();
    let told = note(&shape.watched_by(command, &[]));
    assert!(told.starts_with("path of packets without a mark"), "{told}");
    near.run("ip rule del fwmark 7");
    let mut command = near.command("setpriv");
    command.args(["--bounding-set=-net_admin", ground::VNETTOP]);
    let flow = shape.watched_by(command, &[]);
    assert!(flow["path_note"].is_null(), "where no rule looks at marks, they are no question: {flow}");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn marks_that_netfilter_sets_are_said() {
    needs(&["ip", "nsenter", "python3", "nft", "iptables"]);
    let rules = [
        "nft add table inet t
         nft add chain inet t c '{ type route hook output priority mangle; }'
         nft add rule inet t c tcp dport 5201 meta mark set 7",
        "iptables -t mangle -A OUTPUT -p tcp --dport 5201 -j MARK --set-mark 7",
        "iptables-legacy -t mangle -A OUTPUT -p tcp --dport 5201 -j MARK --set-mark 7",
    ];
    let (near, far) = two_wires();
    near.run("nft add table inet other; nft add chain inet other c '{ type filter hook output priority 0; }'");
    near.run("nft add rule inet other c meta mark 7 accept; nft add rule inet other c tcp dport 5201 accept");
    let flow = Shape::new(&[("n", &near), ("f", &far)], "n", "f", "198.18.0.2").watched_with(&[]);
    assert!(flow["path_note"].is_null(), "a rule that only looks at marks sets none: {flow}");
    for rule in rules {
        let (near, far) = two_wires();
        near.run(rule);
        let shape = Shape::new(&[("n", &near), ("f", &far)], "n", "f", "198.18.0.2");
        let flow = shape.watched_with(&[]);
        let note = flow["path_note"].as_str().unwrap_or_default();
        let whose = "path of packets without a mark: namespace ";
        assert!(note.starts_with(whose) && note.contains("tables"), "after {rule}: {flow}");
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn where_the_way_ends_a_sentence_says_why() {
    needs(&TOOLS);
    let (host, one, two) = bridged();
    let shape = Shape::new(&[("h", &host), ("a", &one), ("b", &two)], "a", "b", "198.18.0.2");
    let flow = shape.watched_with(&["--netns", "self"]);
    let gap = flow["path_gap"].as_str().unwrap_or_default();
    assert!(!gap.is_empty(), "vnettop that looks at its own namespace only says what it does not see: {flow}");
}
