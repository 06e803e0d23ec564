//! Losses planted with real tools: what vnettop says of each equals the tool's own counter to the packet, and all of them
//! together are what iperf3 misses. `VNETTOP_LOSS_RUNS=10` repeats each.

mod between;
mod counts;
mod odd;
mod pair;
pub mod trial;

use crate::ground::line::Line;
use crate::ground::{needs, pid};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use trial::{PROGRAMS, SIZES, alone, assert_exact, assert_exact_with, queued, rule, ruled, spot};

/// One of ten datagrams of a test; those of iperf3 that open it are smaller.
const A_TENTH: &str = "udp length '>=' 40 numgen random mod 10 0";

#[test]
#[ignore = "on the real kernel: tests/run"]
fn what_a_rule_drops_is_the_firewalls_at_the_link_it_came_in_by() {
    needs(PROGRAMS);
    let _alone = alone();
    let line = Line::new();
    let _server = line.serve();
    let hooks = [
        (&line.router, "ip", "forward priority 0", "r0"),
        (&line.router, "inet", "prerouting priority -300", "r0"),
        // On its way out a packet is at the link it leaves by.
        (&line.router, "ip", "postrouting priority 0", "r1"),
        (&line.router, "netdev", "ingress device r0 priority 0", "r0"),
        (&line.router, "netdev", "egress device r1 priority 0", "r1"),
        (&line.far, "ip", "input priority 0", "b0"),
    ];
    for (netns, family, hook, link) in hooks {
        rule(netns, family, hook, A_TENTH);
        let firewall = spot("firewall", netns, link, "NETFILTER_DROP");
        assert_exact(&format!("{family} {hook}"), &line, &[(firewall, &|| ruled(netns))]);
        netns.run("nft flush ruleset");
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn what_a_bridges_rule_drops_is_the_firewalls() {
    needs(PROGRAMS);
    let _alone = alone();
    let line = Line::bridged();
    let _server = line.serve();
    for (hook, link) in
        [("prerouting priority 0", "r0"), ("forward priority 0", "r1"), ("postrouting priority 0", "r1")]
    {
        rule(&line.router, "bridge", hook, A_TENTH);
        let firewall = spot("firewall", &line.router, link, "NETFILTER_DROP");
        assert_exact_with(
            &format!("bridge {hook}"),
            &line,
            &SIZES[..1],
            &[(firewall, &|| ruled(&line.router))],
            |_| (),
        );
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn what_a_queue_has_no_room_for_is_its_qdiscs() {
    needs(PROGRAMS);
    let _alone = alone();
    let line = Line::new();
    line.quiet();
    let _server = line.serve();
    let queues = [
        ("root tbf rate 3mbit burst 10k limit 10k", "QDISC_DROP"),
        (
            "root handle 1: htb default 1 && tc class add dev LINK parent 1: classid 1:1 htb rate 3mbit && \
          tc qdisc add dev LINK parent 1:1 pfifo limit 20",
            "QDISC_DROP",
        ),
    ];
    for (netns, link) in [(&line.router, "r1"), (&line.near, "a0")] {
        for (queue, reason) in queues {
            netns.run(&format!("tc qdisc add dev {link} {}", queue.replace("LINK", link)));
            let full = spot("qdisc", netns, link, reason);
            assert_exact(&format!("{queue} on {link}"), &line, &[(full, &|| queued(netns, link))]);
            netns.run(&format!("tc qdisc del dev {link} root"));
        }
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn what_a_filter_drops_is_traffic_controls() {
    needs(PROGRAMS);
    let _alone = alone();
    let line = Line::new();
    let _server = line.serve();
    // UDP (behind 14 bytes of Ethernet) of 40 bytes and more, a sixteenth of it: 2 is to drop, 0xffffffff to go on.
    let a_sixteenth = "10,48 0 0 23,21 0 7 17,40 0 0 38,53 0 5 40,32 0 0 4294963256,84 0 0 15,21 0 2 0,6 0 0 2,6 0 0 4294967295,6 0 0 4294967295";
    for (netns, link, way, reason) in
        [(&line.router, "r0", "ingress", "TC_INGRESS"), (&line.router, "r1", "egress", "TC_EGRESS")]
    {
        netns.run(&format!(
            "tc qdisc add dev {link} clsact; tc filter add dev {link} {way} bpf da bytecode '{a_sixteenth}'"
        ));
        let dropped = || {
            trial::number(
                netns,
                &format!("tc -s qdisc show dev {link} clsact | sed -n 's/.*dropped \\([0-9]*\\),.*/\\1/p'"),
            )
        };
        assert_exact(&format!("tc {way}"), &line, &[(spot("tc", netns, link, reason), &dropped)]);
        netns.run(&format!("tc qdisc del dev {link} clsact"));
    }
}

/// Lets a process sleep three quarters of the time, and run at the end: a test that is over finds it awake.
fn sleepy(process: u32) -> impl Fn(&AtomicBool) {
    let signal = move |name: &str| {
        let _sent = Command::new("kill").args([name, &process.to_string()]).status();
    };
    move |runs| {
        while runs.load(Ordering::Relaxed) {
            signal("-STOP");
            std::thread::sleep(Duration::from_millis(150));
            signal("-CONT");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn what_the_receiver_is_too_slow_for_is_its_buffers() {
    needs(PROGRAMS);
    let _alone = alone();
    let line = Line::new();
    let server = line.serve();
    let full = spot("receive_buffer", &line.far, "b0", "SOCKET_RCVBUFF");
    let errors = || counts::Counts::of(&line.far).get("UdpRcvbufErrors");
    assert_exact_with("receive buffer", &line, &SIZES, &[(full, &errors)], sleepy(pid(&server)));
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn two_places_at_once_have_each_their_own() {
    needs(PROGRAMS);
    let _alone = alone();
    let line = Line::new();
    line.quiet();
    let server = line.serve();
    let full = || spot("receive_buffer", &line.far, "b0", "SOCKET_RCVBUFF");
    let errors = || counts::Counts::of(&line.far).get("UdpRcvbufErrors");
    rule(&line.router, "ip", "forward priority 0", A_TENTH);
    let firewall = || spot("firewall", &line.router, "r0", "NETFILTER_DROP");
    let rules = || ruled(&line.router);
    assert_exact_with(
        "rule and buffer",
        &line,
        &SIZES,
        &[(firewall(), &rules), (full(), &errors)],
        sleepy(pid(&server)),
    );
    line.router.run("tc qdisc add dev r1 root tbf rate 3mbit burst 10k limit 10k");
    let queue = || queued(&line.router, "r1");
    let qdisc = || spot("qdisc", &line.router, "r1", "QDISC_DROP");
    assert_exact("rule and queue", &line, &[(firewall(), &rules), (qdisc(), &queue)]);
    line.router.run("nft flush ruleset");
    line.near.run("tc qdisc add dev a0 root tbf rate 3500kbit burst 10k limit 10k");
    let sender = spot("qdisc", &line.near, "a0", "QDISC_DROP");
    assert_exact("two queues", &line, &[(sender, &|| queued(&line.near, "a0")), (qdisc(), &queue)]);
}
