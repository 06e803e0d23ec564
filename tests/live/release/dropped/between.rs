//! What is lost on the way by something bigger: a core's backlog, connection tracking, a switch, a tunnel.

use super::counts::Counts;
use super::pair::{PLAIN, PORT, Pair, Sent};
use super::trial::{PROGRAMS, SIZES, Seen, alone, number, queued, rule, ruled, runs, spot, told};
use crate::ground::line::Line;
use crate::ground::ovs::{self, Switch};
use crate::ground::unseen::is_all;
use crate::ground::{Netns, await_that, needs};
use std::fs;
use std::process::{Child, Command, Stdio};

/// One datagram.
const PROBE: &str =
    "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('198.18.2.1', 7777))";
const FAR: &str = "198.18.2.1";

#[test]
#[ignore = "on the real kernel: tests/run"]
fn what_a_cores_backlog_has_no_room_for_is_its_own() {
    needs(PROGRAMS);
    let _alone = alone();
    let line = Line::new();
    line.quiet();
    let _server = line.serve();
    // Many streams, because what waits in a backlog still counts against a sender's own buffer.
    line.hold_up();
    let dropped = || {
        let text = fs::read_to_string("/proc/net/softnet_stat").expect("readable");
        let cores = text.lines().map(|line| line.split_whitespace().nth(1).expect("a second number"));
        cores.map(|dropped| u32::from_str_radix(dropped, 16).expect("hexadecimal")).fold(0, u32::wrapping_add)
    };
    // The sender on the other core, so that the router's really falls behind.
    for arguments in [
        ["-A", "0", "-u", "-l", "64", "-b", "400K", "-P", "32"],
        ["-A", "0", "-u", "-l", "1470", "-b", "9M", "-P", "32"],
    ] {
        for _ in 0..runs() {
            let before = dropped();
            let seen = Seen::of(&line, &arguments, |_| ());
            let counted = f64::from(dropped().wrapping_sub(before));
            let what = format!("backlog, {}", arguments.join(" "));
            let all = told(&seen.objects);
            let of_backlogs: f64 = all.iter().filter(|(spot, _)| spot.0 == "backlog").map(|(_, packets)| packets).sum();
            let (lost, unseen) = (seen.lost(&what), seen.unseen());
            eprintln!("{what}: softnet_stat counts {counted}, vnettop {of_backlogs}: {all:?}, {unseen} unseen");
            assert!(counted > 500.0, "{what}: the backlog overflows");
            assert!(all.keys().all(|spot| spot.0 == "backlog"), "{what}: nothing else is told");
            // softnet_stat has whatever else the machine was busy with; vnettop tells the segments of the connection that
            // controls iperf3.
            let (few, others) = (0.0..=5.0, 0.001 * counted);
            assert!(
                few.contains(&(of_backlogs + unseen - lost)),
                "{what}: {of_backlogs} of the {lost} that iperf3 misses"
            );
            assert!(
                is_all(of_backlogs, counted, unseen + others),
                "{what}: {of_backlogs} of the {counted} of softnet_stat"
            );
            let planted = all.get(&spot("backlog", &line.router, "r0", "CPU_BACKLOG"));
            assert!(planted.is_some_and(|packets| *packets > 0.3 * counted), "{what}: the router's: {all:?}");
        }
    }
}

/// How many entries connection tracking may have, of the whole machine. Somebody else puts it back, who outlives this test
/// whatever ends it: with so few, nothing that tracks connections works on this machine any more.
struct Most(Child);

const MOST: &str = "/proc/sys/net/netfilter/nf_conntrack_max";

impl Most {
    fn of(entries: u32) -> Self {
        let before = fs::read_to_string(MOST).expect("readable");
        let mut keeper = Command::new("setsid");
        keeper.args(["sh", "-c", "cat; echo \"$0\" >\"$1\"", before.trim(), MOST]).stdin(Stdio::piped());
        let keeper = keeper.spawn().expect("a shell");
        fs::write(MOST, entries.to_string()).expect("writable");
        Self(keeper)
    }
}

impl Drop for Most {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// The same from fifty sockets, of which connection tracking can know only some.
const FIFTY: &str = "
import socket, sys, time
host, port, count = sys.argv[1], *map(int, sys.argv[2:4])
outs = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(50)]
for out in outs:
    out.connect((host, port))
for number in range(count // 50):
    for out in outs:
        out.send(b'x' * 100)
    time.sleep(0.05)";

fn untracked(netns: &Netns) -> f64 {
    number(netns, "conntrack -S | sed -n 's/.* drop=\\([0-9]*\\) .*/\\1/p'")
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn what_connection_tracking_has_no_entry_for_is_its_own() {
    needs(&[PROGRAMS, &["conntrack"]].concat());
    let _alone = alone();
    let line = Line::new();
    line.router.run("nft add table ip track; nft 'add chain ip track seen { type filter hook forward priority 0; }'; nft add rule ip track seen ct state new accept");
    let pair = Pair::new(&line);
    for _ in 0..runs() {
        line.router.run("conntrack -F");
        let most = Most::of(10);
        let before = untracked(&line.router);
        let sent = pair.send(FIFTY, &[FAR, PORT, "2000"], || ());
        let counted = untracked(&line.router) - before;
        drop(most);
        assert_split("conntrack", &sent, &line, [counted, 0.0]);
    }
    // A rule beside it: each has its own.
    rule(&line.router, "ip", "forward priority 0", "ct state new,established udp length 108 numgen random mod 4 0");
    for _ in 0..runs() {
        line.router.run("conntrack -F");
        let most = Most::of(10);
        let before = [untracked(&line.router), ruled(&line.router)];
        let sent = pair.send(FIFTY, &[FAR, PORT, "2000"], || ());
        let counted = [untracked(&line.router) - before[0], ruled(&line.router) - before[1]];
        drop(most);
        assert_split("conntrack and a rule", &sent, &line, counted);
    }
}

/// Connection tracking and a rule have the same reason: a packet that a rule after it drops has been tracked.
fn assert_split(what: &str, sent: &Sent, line: &Line, [tracked, ruled]: [f64; 2]) {
    let of = |place, packets| (spot(place, &line.router, "r0", "NETFILTER_DROP"), packets);
    sent.holds(what, &[of("conntrack", tracked), of("firewall", ruled)]);
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn what_a_switch_outside_of_the_kernel_drops_is_claimed_nowhere() {
    let needed = [PROGRAMS, &ovs::PROGRAMS[..], &["ovs-ofctl", "ethtool"]].concat();
    needs(&needed);
    let _alone = alone();
    let line = Line::bridged();
    line.quiet();
    line.router.run("ip link del br0; ip link set r0 up; ip link set r1 up");
    // What leaves a veth has no checksum yet, and this switch makes none.
    line.near.run("ethtool -K a0 tx off");
    line.far.run("ethtool -K b0 tx off");
    let switch = Switch::start(&line.router);
    switch.vsctl("add-br sw0 -- set bridge sw0 datapath_type=netdev -- add-port sw0 r0 -- add-port sw0 r1");
    let pair = Pair::new(&line);
    let probe = format!("python3 -c \"{PROBE}\"");
    await_that("the switch passes on", 20, || {
        line.near.output(&probe);
        Counts::of(&line.far).get("UdpInDatagrams") > 0.0
    });
    let rule = |what: &str| {
        let socket = switch.directory().join("sw0.mgmt");
        let out =
            Command::new("ovs-ofctl").args(what.split(' ').next()).arg(&socket).args(what.split(' ').skip(1)).output();
        let out = out.expect("ovs-ofctl runs");
        assert!(out.status.success(), "{what}: {}", String::from_utf8_lossy(&out.stderr));
    };
    let sent = pair.send(PLAIN, &[FAR, PORT, "3000", "64"], || {
        std::thread::sleep(std::time::Duration::from_secs(1));
        rule("add-flow priority=9,udp,tp_dst=7777,actions=drop");
        std::thread::sleep(std::time::Duration::from_secs(1));
        rule("del-flows udp");
    });
    let (missing, told) = (sent.missing(), told(&sent.objects));
    eprintln!("Open vSwitch: {missing} arrive nowhere, {told:?} are told");
    assert!(missing > 500.0, "the rule drops");
    assert!(told.keys().all(|spot| spot.0.starts_with("ovs")), "only what the switch counts may be told: {told:?}");
    let all: f64 = told.values().sum();
    assert!(all < 1.05 * missing, "and no more than was lost: {told:?}");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn what_is_lost_below_a_tunnel_is_the_flows_inside() {
    needs(PROGRAMS);
    let _alone = alone();
    let line = Line::new();
    line.quiet();
    let over = |netns: &Netns, own: &str, other: &str, address: &str| {
        netns.run(&format!(
            "ip link add vx0 type vxlan id 7 dstport 9999 local {own} remote {other}; ip addr add {address}/24 dev vx0; \
             ip link set vx0 up"
        ));
    };
    over(&line.near, "198.18.1.1", FAR, "198.19.0.1");
    over(&line.far, FAR, "198.18.1.1", "198.19.0.2");
    let _server = line.serve();
    let inside = |size: &[&'static str]| [&["-c", "198.19.0.2"], size].concat();
    let small = inside(SIZES[0]);
    let large = inside(&["-u", "-l", "1400", "-b", "90M"]);
    for arguments in [small, large].iter().cycle().take(2 * runs()) {
        // Only what goes to the receiver, and is no empty segment: what the kernel answers to a closed socket is no flow's.
        rule(
            &line.router,
            "ip",
            "forward priority 0",
            "iifname r0 udp dport 9999 udp length '>=' 100 numgen random mod 10 0",
        );
        let before = ruled(&line.router);
        let seen = Seen::of(&line, arguments, |_| ());
        let firewall = (spot("firewall", &line.router, "r0", "NETFILTER_DROP"), ruled(&line.router) - before);
        seen.holds_inside(&format!("below a tunnel, a rule, {}", arguments.join(" ")), &line, "vx0", &[firewall]);
        line.router.run("nft flush ruleset; tc qdisc add dev r1 root tbf rate 3mbit burst 10k limit 10k");
        let before = queued(&line.router, "r1");
        let seen = Seen::of(&line, arguments, |_| ());
        let full = (spot("qdisc", &line.router, "r1", "QDISC_DROP"), queued(&line.router, "r1") - before);
        seen.holds_inside(&format!("below a tunnel, a queue, {}", arguments.join(" ")), &line, "vx0", &[full]);
        line.router.run("tc qdisc del dev r1 root");
    }
}
