//! Losses beside the traffic of others: whose they are, which share they are, that nothing is told where nothing is lost, and
//! datagrams that leave in pieces. What each place loses is in `live_dropped`.

use crate::ground::line::{Line, inode};
use crate::ground::{self, Netns, needs};
use serde_json::Value;

const PROGRAMS: &[&str] = &["iperf3", "ip", "tc", "nsenter", "taskset", "iptables", "ethtool", "python3"];
/// 8,000 datagrams/s of two sizes.
const SIZES: [&[&str]; 2] = [&["-u", "-l", "64", "-b", "4M"], &["-u", "-l", "1470", "-b", "94M"]];
/// Every loss of that place.
fn at<'a>(objects: &'a [Value], place: &'a str) -> impl Iterator<Item = &'a Value> {
    let losses = objects.iter().flat_map(|object| object["losses"].as_array().expect("a list"));
    losses.filter(move |loss| loss["place"] == place)
}

fn packets(objects: &[Value], place: &str) -> f64 {
    at(objects, place).map(|loss| loss["packets"].as_f64().expect("packets")).sum::<f64>() + 0.0
}

/// The sentences of a finding.
fn said<'a>(objects: &'a [Value], id: &'a str) -> Vec<&'a str> {
    let findings = objects.iter().flat_map(|object| object["findings"].as_array().expect("a list"));
    findings.filter(|finding| finding["id"] == id).map(|finding| finding["text"].as_str().expect("a text")).collect()
}

/// GRO, TSO and what the client is asked for.
type Case<'a> = (&'a str, &'a str, &'a [&'a str]);

#[test]
#[ignore = "on the real kernel: tests/run"]
fn where_nothing_is_dropped_nothing_is_told() {
    nothing_is_told(&[("off", "on", &[]), ("off", "on", SIZES[0])]);
}

mod release {
    use super::{SIZES, nothing_is_told};

    #[test]
    #[ignore = "on the real kernel: tests/run"]
    fn where_nothing_is_dropped_nothing_is_told_whatever_is_offloaded() {
        nothing_is_told(&[
            ("off", "on", &[]),
            ("on", "on", &[]),
            ("on", "off", &["--bidir"]),
            ("off", "off", &["-R"]),
            ("off", "on", SIZES[0]),
            ("on", "on", &["-u", "-l", "1470", "-b", "94M", "--bidir"]),
            ("on", "on", &["-u", "-l", "8000", "-b", "50M"]),
            ("off", "off", &["-u", "-l", "8000", "-b", "50M", "-R"]),
        ]);
    }
}

fn nothing_is_told(cases: &[Case<'_>]) {
    needs(PROGRAMS);
    let line = Line::new();
    let _server = line.serve();
    let offloads = |gro: &str, tso: &str| {
        for (netns, links) in [(&line.near, &["a0"][..]), (&line.router, &["r0", "r1"]), (&line.far, &["b0"])] {
            for link in links {
                netns.run(&format!("ethtool -K {link} gro {gro} tso {tso} gso {tso}"));
            }
        }
    };
    for &(gro, tso, arguments) in cases {
        offloads(gro, tso);
        let (_, objects) = line.observe(arguments, |_| ());
        let all = ground::line::lost(&objects);
        eprintln!("gro {gro} tso {tso} {arguments:?}: {all:?}");
        // On a loaded machine a core or the receiver may be late in truth, and with GRO a veth has a ring of 256 that may be full.
        let is_late = |place: &str| ["backlog", "receive_buffer"].contains(&place) || (place == "link" && gro == "on");
        assert!(
            all.keys().all(|(place, ..)| is_late(place)),
            "gro {gro} tso {tso} {arguments:?}: nothing is told: {:?}",
            at(&objects, "tcp").chain(at(&objects, "link")).collect::<Vec<_>>()
        );
    }
}

/// Python: 2,000 small datagrams/s to a host and port that are its arguments.
const OTHERS: &str = "
import socket, sys, time
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
due = time.monotonic()
while True:
    for _ in range(20):
        out.sendto(b'x' * 200, (sys.argv[1], int(sys.argv[2])))
    due += 0.01
    time.sleep(max(0, due - time.monotonic()))";

fn blaster(netns: &Netns, address: &str) -> ground::Kept {
    netns.keep("python3", &["-c", OTHERS, address, "9"])
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn what_a_firewall_drops_of_others_is_not_the_flows() {
    needs(PROGRAMS);
    let line = Line::new();
    let _server = line.serve();
    line.router.run("iptables -A INPUT -p udp --dport 9 -j DROP");
    let _others = blaster(&line.far, "198.18.2.254");
    for arguments in [SIZES[0], &[]] {
        let (_, objects) = line.observe(arguments, |_| ());
        assert!(at(&objects, "firewall").next().is_none(), "the flow misses none: {:?}", ground::line::lost(&objects));
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_share_is_of_its_own_packets_where_others_send_from_the_same_namespace() {
    needs(PROGRAMS);
    let line = Line::new();
    let _server = line.serve();
    line.near.run("tc qdisc replace dev a0 root tbf rate 4mbit burst 10k limit 10k");
    let (_, alone) = line.observe(SIZES[0], |_| ());
    let shares = |objects: &[Value]| {
        let all: Vec<Option<f64>> = at(objects, "qdisc").map(|loss| loss["share"].as_f64()).collect();
        all
    };
    assert!(
        shares(&alone).iter().filter(|share| share.is_some()).count() >= 15,
        "alone it is known: {:?}",
        shares(&alone)
    );
    // Beside a second pair that uses neither the qdisc nor the path.
    let elsewhere = Netns::new();
    line.near.run(&format!(
        "ip link add c0 type veth peer name d0 netns {}; ip addr add 198.18.3.1/24 dev c0; ip link set c0 up",
        elsewhere.pid()
    ));
    elsewhere.run("ip addr add 198.18.3.2/24 dev d0; ip link set d0 up");
    let _others = blaster(&line.near, "198.18.3.2");
    let (_, beside) = line.observe(SIZES[0], |_| ());
    let median = |objects: &[Value]| {
        let mut known: Vec<f64> = shares(objects).into_iter().flatten().collect();
        known.sort_by(f64::total_cmp);
        known[known.len() / 2]
    };
    let (alone, beside) = (median(&alone), median(&beside));
    assert!(
        (beside / alone - 1.0).abs() < 0.05,
        "2,000 of others are none of its 8,000: {beside} beside, {alone} alone"
    );
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn datagrams_that_leave_in_pieces_are_told_with_the_size_that_fits() {
    needs(PROGRAMS);
    let line = Line::new();
    let _server = line.serve();
    let (_, objects) = line.observe(&["-u", "-l", "8000", "-b", "30M"], |_| ());
    let texts = said(&objects, "fragments");
    assert!(texts.len() >= 15, "while it happens: {texts:?}");
    // What controls the test leaves through the link too.
    let right = |text: &&&str| {
        let size = text.split_once(" of ").and_then(|(_, rest)| rest.split_once(" bytes"));
        let size = size.and_then(|(size, _)| size.parse::<f64>().ok());
        size.is_some_and(|size| (size / 8000.0 - 1.0).abs() < 0.01)
            && text.contains(" bytes are sent as 6 fragments each (MTU 1500 on a0); one lost fragment")
            && text.ends_with("(iperf3 -l 1472 keeps them whole)")
    };
    let right = texts.iter().filter(right).count();
    assert!(right * 10 >= texts.len() * 8, "with its numbers: {texts:?}");
    let (_, whole) = line.observe(SIZES[1], |_| ());
    assert_eq!(said(&whole, "fragments"), Vec::<&str>::new(), "and only while it happens");
    // Three of a hundred fragments are one datagram of six.
    line.router.run("iptables -A FORWARD -p udp -m statistic --mode random --probability 0.03 -j DROP; iptables -A FORWARD -f -m statistic --mode random --probability 0.03 -j DROP");
    let counted = || {
        let said = line.router.output("iptables -L FORWARD -v -x -n | awk '/DROP/ { sum += $1 } END { print sum }'");
        said.trim().parse::<f64>().unwrap_or_else(|_| panic!("iptables counts: {said}"))
    };
    // iperf3 sends the datagram that opens its stream only once, and gives up where that is dropped.
    let mut before = 0.0;
    let mut test = || {
        before = counted();
        line.observe(&["-u", "-l", "8000", "-b", "60M"], |_| ())
    };
    let (report, objects) = (0..3).map(|_| test()).find(|(report, _)| report["error"].is_null()).expect("it opens");
    let (missed, dropped) = (report["end"]["sum"]["lost_packets"].as_f64().expect("a number"), counted() - before);
    let found = packets(&objects, "firewall");
    eprintln!(
        "fragments: iperf3 lost {missed:.0} datagrams, the rules dropped {dropped} packets, vnettop {found:.0}, all {:?}",
        ground::line::lost(&objects)
    );
    assert!(missed > 100.0 && (found - dropped).abs() < 0.5, "each fragment that a rule drops: {found} of {dropped}");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_links_drops_hold_those_of_its_qdisc_and_json_keeps_them_apart() {
    needs(PROGRAMS);
    let line = Line::new();
    let _server = line.serve();
    line.router.run("tc qdisc replace dev r1 root handle 7: tbf rate 4mbit burst 10k limit 10k");
    let (_, objects) = line.observe(SIZES[0], |_| ());
    let hops = objects.iter().flat_map(|object| object["flows"].as_array().expect("a list"));
    let hops = hops.flat_map(|flow| flow["path"].as_array().expect("a list")).filter(|hop| hop["name"] == "r1");
    let hops: Vec<&Value> =
        hops.filter(|hop| hop["qdisc_drops_per_s"].as_f64().is_some_and(|drops| drops > 500.0)).collect();
    assert!(hops.len() >= 15, "the hop has the qdisc's drops");
    assert!(hops.iter().all(|hop| hop["dropped_per_s"] == 0.0), "beside its own: {:?}", hops[0]);
    let router = inode(&line.router);
    let queued = |object: &Value| {
        let mut links = object["links"].as_array().expect("a list").iter();
        links.find(|link| link["netns"] == router && link["name"] == "r1").expect("it is listed")["qdisc_drops_per_s"]
            .as_f64()
    };
    assert!(objects.iter().filter_map(queued).any(|drops| drops > 500.0), "so does the link");
    for loss in at(&objects, "qdisc") {
        let fields = ["qdisc", "handle", "link", "name"].map(|field| loss[field].as_str().unwrap_or_default());
        assert_eq!(fields, ["tbf", "7:", "r1", "tbf on r1"], "nobody needs to take the name apart");
    }
}
