//! The shapes of virtual networks, built from `ip` and `bridge` with names of the test's choice: two hosts with a wire
//! between them, a pod on each, and the way that a benchmark goes between the pods.

use super::machine::{HOST, Machine};
use super::traffic::{Seen, WalkedPath, observed, seconds, way};
use super::{Kept, listening};

/// What building and comparing needs.
pub const PROGRAMS: &[&str] = &["ip", "bridge", "ethtool", "iperf3", "nsenter", "unshare", "setpriv"];
/// And where programs hold devices.
pub const WITH_HOLDERS: &[&str] = &["ip", "bridge", "ethtool", "iperf3", "nsenter", "unshare", "setpriv", "python3"];

/// A built system.
pub struct System {
    /// What it runs in.
    pub machine: Machine,
    /// The namespace that a benchmark is sent from.
    pub from: String,
    /// The namespace that it is received in.
    pub to: String,
    /// The address that it is sent to.
    pub address: String,
    /// The links that it crosses, in order.
    pub way: WalkedPath,
    /// How many of them come before a program that carries the packets on.
    pub known: usize,
    /// The programs that are a part of it.
    pub keeps: Vec<Kept>,
}

const HOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/live/systems/holder.py");
const ONE: &str = "/run/netns/one";
const TWO: &str = "/run/netns/two";
const POD1: &str = "/run/netns/pod1";
const POD2: &str = "/run/netns/pod2";

/// Two hosts that forward, `one` 198.18.1.1 and `two` 198.18.1.2, joined by `nic0`.
fn hosts() -> Machine {
    let machine = Machine::new();
    for host in ["one", "two"] {
        let space = machine.space(host);
        machine.run_in(&space, "echo 1 > /proc/sys/net/ipv4/ip_forward");
    }
    machine.run(
        "ip link add nic0 netns one type veth peer name nic0 netns two
         ip -n one addr add 198.18.1.1/24 dev nic0; ip -n one link set nic0 up
         ip -n two addr add 198.18.1.2/24 dev nic0; ip -n two link set nic0 up",
    );
    machine
}

/// Runs lines once for each host: `$H` the host, `$O` the other, `$P` its pod, `$N` its number, `$M` the other's.
fn on_each(machine: &Machine, lines: &str) {
    machine.run(&format!("each() {{ H=$1 O=$2 N=$3 M=$4 P=pod$3\n{lines}\n}}; each one two 1 2; each two one 2 1"));
}

impl System {
    fn new(machine: Machine, from: &str, to: &str, address: &str, links: &[(&str, &str)]) -> Self {
        let (from, to, address) = (from.to_owned(), to.to_owned(), address.to_owned());
        Self { machine, from, to, address, way: way(links), known: links.len(), keeps: Vec::new() }
    }

    fn between_pods(machine: Machine, links: &[(&str, &str)]) -> Self {
        Self::new(machine, POD1, POD2, "198.19.2.2", links)
    }

    /// One namespace with an address of its own beside loopback; what goes to either goes through `lo`.
    pub fn host(address: &str) -> Self {
        let machine = Machine::new();
        machine.space("world");
        machine.run(
            "ip link add nic0 type veth peer name wire0 netns world
             ip addr add 198.18.1.1/24 dev nic0; ip link set nic0 up; ip -n world link set wire0 up",
        );
        Self::new(machine, HOST, HOST, address, &[(HOST, "lo")])
    }

    /// Pods that stand on their host's own link: `macvlan mode bridge`, `ipvlan mode l2`.
    pub fn on_the_wire(kind: &str) -> Self {
        let machine = hosts();
        on_each(
            &machine,
            &format!(
                "ip netns add $P; ip -n $P link set lo up
                 ip -n $H link add link nic0 name eth0 netns $P type {kind}
                 ip -n $P addr add 198.19.2.$((3 - N))/24 dev eth0; ip -n $P link set eth0 up"
            ),
        );
        // The receiver has 198.19.2.1.
        let links = [(POD1, "eth0"), (ONE, "nic0"), (TWO, "nic0"), (POD2, "eth0")];
        Self::new(machine, POD1, POD2, "198.19.2.1", &links)
    }

    /// Pods behind their host's bridge `cni0`; the hosts route.
    pub fn flannel_host_gw() -> Self {
        let machine = hosts();
        bridged_pods(&machine, 1500);
        on_each(&machine, "ip -n $H route add 198.19.$M.0/24 via 198.18.1.$M");
        let mut links = BRIDGED_HERE.to_vec();
        links.extend([(ONE, "nic0"), (TWO, "nic0")]);
        links.extend(BRIDGED_THERE);
        Self::between_pods(machine, &links)
    }

    /// The same over a vxlan whose forwarding table and neighbours are filled in by hand.
    pub fn flannel_vxlan() -> Self {
        let machine = hosts();
        bridged_pods(&machine, 1450);
        flannel_1(&machine);
        let links = [&BRIDGED_HERE[..], &OVER_VXLAN[..], &BRIDGED_THERE[..]].concat();
        Self::between_pods(machine, &links)
    }

    /// Pods with one veth to the host, proxy ARP and host routes; no bridge.
    pub fn calico() -> Self {
        let machine = hosts();
        routed_pods(&machine, 1500);
        on_each(&machine, "ip -n $H route add 198.19.$M.0/24 via 198.18.1.$M");
        let links = [(POD1, "eth0"), (ONE, "cali1"), (ONE, "nic0"), (TWO, "nic0"), (TWO, "cali2"), (POD2, "eth0")];
        Self::between_pods(machine, &links)
    }

    /// The same over flannel's vxlan.
    pub fn canal() -> Self {
        let machine = hosts();
        routed_pods(&machine, 1450);
        flannel_1(&machine);
        let (here, there) = ([(POD1, "eth0"), (ONE, "cali1")], [(TWO, "cali2"), (POD2, "eth0")]);
        Self::between_pods(machine, &[&here[..], &OVER_VXLAN[..], &there[..]].concat())
    }

    /// A tunnel `tun0` between the hosts, made by these words of `ip link add`, with `$N` and `$M` for the hosts.
    pub fn tunnel(words: &str) -> Self {
        let machine = hosts();
        on_each(&machine, &format!("ip -n $H link add tun0 {words}"));
        Self::tunnelled(machine)
    }

    /// A tun at each end, each held by a program that carries its packets in UDP.
    pub fn vpn() -> Self {
        let machine = hosts();
        let holds = |space: &str, own: &str, remote: &str| {
            holder(&machine, space, "python3", &[HOLDER, "tun", "tun0", own, remote])
        };
        let keeps = vec![holds(ONE, "198.18.1.1", "198.18.1.2"), holds(TWO, "198.18.1.2", "198.18.1.1")];
        on_each(&machine, "ip -n $H link set tun0 mtu 1400");
        Self { keeps, known: 1, ..Self::tunnelled(machine) }
    }

    /// A wireguard `tun0` between the hosts.
    pub fn wireguard() -> Self {
        let machine = hosts();
        wireguards(&machine, "ip -n $H link add tun0 type wireguard", "$H", "tun0", "198.19.0.$M");
        Self::tunnelled(machine)
    }

    /// Pods whose wireguard was made in their host and given to them: its packets go on in the host.
    pub fn wireguard_of_pods() -> Self {
        let machine = hosts();
        let given = "ip netns add $P; ip -n $P link set lo up
             ip -n $H link add wg0 type wireguard; ip -n $H link set wg0 netns $P";
        wireguards(&machine, given, "$P", "wg0", "198.19.2.$M");
        on_each(&machine, "ip -n $P addr add 198.19.2.$N/24 dev wg0; ip -n $P link set wg0 up");
        Self::between_pods(machine, &[(POD1, "wg0"), (ONE, "nic0"), (TWO, "nic0"), (POD2, "wg0")])
    }

    fn tunnelled(machine: Machine) -> Self {
        on_each(&machine, "ip -n $H addr add 198.19.0.$N/24 dev tun0; ip -n $H link set tun0 up");
        let links = [(ONE, "tun0"), (ONE, "nic0"), (TWO, "nic0"), (TWO, "tun0")];
        Self::new(machine, ONE, TWO, "198.19.0.2", &links)
    }

    /// A VLAN on the wire.
    pub fn vlan() -> Self {
        let machine = hosts();
        on_each(&machine, "ip -n $H link add link nic0 name tun0 type vlan id 7");
        Self::tunnelled(machine)
    }

    /// Pods on a macvlan that stands on a VLAN of the wire.
    pub fn macvlan_on_vlan() -> Self {
        let machine = hosts();
        on_each(
            &machine,
            "ip netns add $P; ip -n $P link set lo up
             ip -n $H link add link nic0 name vlan7 type vlan id 7; ip -n $H link set vlan7 up
             ip -n $H link add link vlan7 name eth0 netns $P type macvlan mode bridge
             ip -n $P addr add 198.19.2.$N/24 dev eth0; ip -n $P link set eth0 up",
        );
        let links = [(POD1, "eth0"), (ONE, "vlan7"), (ONE, "nic0"), (TWO, "nic0"), (TWO, "vlan7"), (POD2, "eth0")];
        Self::between_pods(machine, &links)
    }

    /// Pods whose hosts route them in a table of their own.
    pub fn vrf() -> Self {
        let machine = hosts();
        on_each(
            &machine,
            "ip netns add $P; ip -n $P link set lo up
             ip -n $H link add red type vrf table 10; ip -n $H link set red up; ip -n $H link set nic0 master red
             ip link add veth$N netns $H type veth peer name eth0 netns $P
             ip -n $H link set veth$N master red; ip -n $H link set veth$N up
             ip -n $H addr add 198.19.$N.1/24 dev veth$N
             ip -n $H route add 198.19.$M.0/24 via 198.18.1.$M table 10
             ip -n $P addr add 198.19.$N.2/24 dev eth0; ip -n $P link set eth0 up
             ip -n $P route add default via 198.19.$N.1",
        );
        let here = [(POD1, "eth0"), (ONE, "veth1"), (ONE, "red"), (ONE, "nic0")];
        let there = [(TWO, "nic0"), (TWO, "red"), (TWO, "veth2"), (POD2, "eth0")];
        Self::between_pods(machine, &[here, there].concat())
    }

    /// A bond of two wires at each end, of which one is in use.
    pub fn bond() -> Self {
        let machine = hosts();
        machine.run("ip link add nic1 netns one type veth peer name nic1 netns two");
        let port = |nic: &str| format!("ip -n $H link set {nic} down; ip -n $H link set {nic} master tun0");
        let made = "ip -n $H link add tun0 type bond mode active-backup miimon 100";
        on_each(&machine, &format!("{made}; ip -n $H addr flush dev nic0; {}; {}", port("nic0"), port("nic1")));
        Self::tunnelled(machine)
    }

    /// A guest: its tap is a port of the host's bridge and held by the program that is its hypervisor.
    pub fn guest_on_bridge() -> Self {
        let machine = Machine::new();
        let guest = machine.space("guest");
        let held = holder(&machine, HOST, "python3", &[HOLDER, "tap", "tap0", &guest]);
        machine.run(
            "ip link add br0 type bridge; ip addr add 198.18.2.1/24 dev br0; ip link set br0 up
             ip link set tap0 master br0; ip link set tap0 up
             ip -n guest addr add 198.18.2.2/24 dev eth0; ip -n guest link set eth0 up",
        );
        let links = [(HOST, "br0"), (HOST, "tap0"), (&*guest, "eth0")];
        let system = Self::new(machine, HOST, &guest, "198.18.2.2", &links);
        Self { keeps: vec![held], known: 2, ..system }
    }

    /// A guest whose card is a macvtap on the host's wire; it is spoken to from the other end of the wire.
    pub fn guest_on_macvtap() -> Self {
        let machine = hosts();
        let guest = machine.space("guest");
        machine.run_in(ONE, "ip link add link nic0 name vtap0 type macvtap mode bridge; ip link set vtap0 up");
        // Outside of the first namespace the kernel makes no device file: a /dev with one is made for the holder alone.
        let made = machine.folder().display();
        let script = format!(
            "mount -t sysfs sysfs /sys; mkdir {made}/dev; mount -t tmpfs tmpfs {made}/dev
             cp -a /dev/null /dev/urandom /dev/net {made}/dev
             cd /sys/class/net/vtap0; node=tap$(cat ifindex); number=$(cat $node/dev); mac=$(cat address)
             mknod {made}/dev/$node c ${{number%:*}} ${{number#*:}}; mount --move {made}/dev /dev
             exec python3 {HOLDER} macvtap /dev/$node {guest} $mac"
        );
        let held = holder(&machine, ONE, "unshare", &["--mount", "sh", "-ec", &script]);
        machine.run("ip -n guest addr add 198.18.1.9/24 dev eth0; ip -n guest link set eth0 up");
        let links = [(TWO, "nic0"), (ONE, "nic0"), (ONE, "vtap0"), (&*guest, "eth0")];
        let system = Self::new(machine, TWO, &guest, "198.18.1.9", &links);
        Self { keeps: vec![held], known: 3, ..system }
    }

    /// Whether this kernel can make a link of a kind.
    pub fn has_kind(kind: &str) -> bool {
        let machine = Machine::new();
        let made = format!(
            "ip link add wire0 type veth peer name wire1
             ip link add {kind}0 type {kind} 2>&1 | grep -qE 'Unknown device type|not supported' && exit 1; true"
        );
        machine.can(&made)
    }

    /// A benchmark through it: every link is told right, moves what it counts, and the way is drawn. Its recording has
    /// this name.
    pub fn holds(&self, name: &str) -> Seen {
        let _server = listening(self.machine.inside(&self.to, "iperf3"), &[]);
        let mut client = self.machine.inside(&self.from, "iperf3");
        client.args(["-J", "-t", seconds(), "-c", &self.address]);
        let seen = observed(&self.machine, name, &[], client);
        seen.holds_rates(&self.way);
        seen.holds_way_up_to(self.known, &self.way);
        seen.holds_screen(self.known, &self.way);
        seen
    }
}

const BRIDGED_HERE: [(&str, &str); 3] = [(POD1, "eth0"), (ONE, "veth1"), (ONE, "cni0")];
const BRIDGED_THERE: [(&str, &str); 3] = [(TWO, "cni0"), (TWO, "veth2"), (POD2, "eth0")];
const OVER_VXLAN: [(&str, &str); 4] = [(ONE, "flannel.1"), (ONE, "nic0"), (TWO, "nic0"), (TWO, "flannel.1")];

/// Pods 198.19.N.2 behind the bridge `cni0` of their host.
fn bridged_pods(machine: &Machine, mtu: u32) {
    on_each(
        machine,
        &format!(
            "ip netns add $P; ip -n $P link set lo up
             ip -n $H link add cni0 type bridge
             ip -n $H addr add 198.19.$N.1/24 dev cni0; ip -n $H link set cni0 up
             ip link add veth$N mtu {mtu} netns $H type veth peer name eth0 mtu {mtu} netns $P
             ip -n $H link set veth$N master cni0; ip -n $H link set veth$N up
             ip -n $P addr add 198.19.$N.2/24 dev eth0; ip -n $P link set eth0 up
             ip -n $P route add default via 198.19.$N.1"
        ),
    );
}

/// Pods 198.19.N.2 with a veth `caliN` that answers for every address which the host has a route for: it has a default one.
fn routed_pods(machine: &Machine, mtu: u32) {
    on_each(
        machine,
        &format!(
            "ip netns add $P; ip -n $P link set lo up
             ip link add cali$N mtu {mtu} netns $H type veth peer name eth0 mtu {mtu} netns $P
             ip netns exec $H sh -c \"echo 1 > /proc/sys/net/ipv4/conf/cali$N/proxy_arp
                                      echo 0 > /proc/sys/net/ipv4/neigh/cali$N/proxy_delay\"
             ip -n $H link set cali$N up; ip -n $P link set eth0 up
             ip -n $H route add 198.19.$N.2 dev cali$N; ip -n $H route add default via 198.18.1.$M
             ip -n $P addr add 198.19.$N.2/32 dev eth0
             ip -n $P route add 169.254.1.1 dev eth0 scope link
             ip -n $P route add default via 169.254.1.1 dev eth0"
        ),
    );
}

/// The vxlan of flannel on each host.
fn flannel_1(machine: &Machine) {
    on_each(
        machine,
        "ip -n $H link add flannel.1 address 0a:58:c6:13:0$N:00 mtu 1450 type vxlan id 1 local 198.18.1.$N dev nic0 \
                 dstport 8472 nolearning
         ip -n $H addr add 198.19.$N.0/32 dev flannel.1; ip -n $H link set flannel.1 up
         ip -n $H route add 198.19.$M.0/24 via 198.19.$M.0 dev flannel.1 onlink
         ip -n $H neigh add 198.19.$M.0 lladdr 0a:58:c6:13:0$M:00 dev flannel.1 nud permanent
         bridge -n $H fdb append 0a:58:c6:13:0$M:00 dev flannel.1 dst 198.18.1.$M",
    );
}

/// A wireguard of that name on each host, made by a line and set up in that namespace to allow the other one's address.
fn wireguards(machine: &Machine, made: &str, space: &str, name: &str, allowed: &str) {
    let keys = machine.folder().display().to_string();
    machine.run(&format!(
        "umask 077; for N in 1 2; do wg genkey > {keys}/key$N; wg pubkey < {keys}/key$N > {keys}/pub$N; done"
    ));
    on_each(
        machine,
        &format!(
            "{made}
             ip netns exec {space} wg set {name} private-key {keys}/key$N listen-port 5182$N \
                 peer $(cat {keys}/pub$M) allowed-ips {allowed}/32 endpoint 198.18.1.$M:5182$M"
        ),
    );
}

/// The program that holds a tun or tap, when it does.
fn holder(machine: &Machine, space: &str, program: &str, arguments: &[&str]) -> Kept {
    let mut command = machine.inside(space, program);
    command.args(arguments);
    let name = format!("holder{}", space.replace('/', "-"));
    let kept = machine.keep(&name, command);
    for _ in 0..1000 {
        if machine.said(&name).contains("holds") {
            return kept;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("the program holds its devices within 20 s; it said {}", machine.said(&name));
}
