//! Packets that vanish where no counter of a drop tells of it: vnettop names the two links they vanish between and how many,
//! and says nothing where nothing is lost, whatever is put together or taken apart on the way.

mod live;

use live::line::{Line, inode};
use live::{Netns, can_run};
use serde_json::Value;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const PROGRAMS: &[&str] = &["iperf3", "ip", "tc", "nsenter", "taskset", "iptables", "nft", "ethtool", "python3"];
/// 8,000 datagrams/s of two sizes.
const SIZES: [&[&str]; 2] = [&["-u", "-l", "64", "-b", "4M"], &["-u", "-l", "1470", "-b", "94M"]];
/// Three of ten datagrams; those of iperf3 that open a test are smaller.
const THIRTY_PERCENT: &str = "-p udp -m length --length 60: -m statistic --mode random --probability 0.3 -j DROP";

/// Every loss of that place.
fn at<'a>(objects: &'a [Value], place: &'a str) -> impl Iterator<Item = &'a Value> {
    let losses = objects.iter().flat_map(|object| object["losses"].as_array().expect("a list"));
    losses.filter(move |loss| loss["place"] == place)
}

/// Datagrams that iperf3 misses and that reached no socket.
fn vanished((report, objects): &(Value, Vec<Value>)) -> f64 {
    let missed = report["end"]["sum"]["lost_packets"].as_f64().unwrap_or_else(|| panic!("iperf3 ends well: {report}"));
    missed - packets(objects, "receive_buffer")
}

fn packets(objects: &[Value], place: &str) -> f64 {
    at(objects, place).map(|loss| loss["packets"].as_f64().expect("packets")).sum::<f64>() + 0.0
}

/// The sentences of a finding.
fn said<'a>(objects: &'a [Value], id: &'a str) -> Vec<&'a str> {
    let findings = objects.iter().flat_map(|object| object["findings"].as_array().expect("a list"));
    findings.filter(|finding| finding["id"] == id).map(|finding| finding["text"].as_str().expect("a text")).collect()
}

/// As many packets as iperf3 misses vanish there, a finding says it, and no other place has them too.
fn holds(what: &str, (report, objects): &(Value, Vec<Value>), place: &str, netns: u64, ends: (&str, Option<&str>)) {
    let missed = report["end"]["sum"]["lost_packets"].as_f64().unwrap_or_else(|| panic!("iperf3 ends well: {report}"));
    let (found, all) = (packets(objects, place), live::line::lost(objects));
    // On a loaded machine the receiver, too, is late.
    let late = packets(objects, "receive_buffer");
    eprintln!("{what}: iperf3 lost {missed:.0}, vnettop {found:.0} {place}, {late:.0} in the receiver's buffer");
    assert!(missed > 500.0, "{what}: something is lost: {report}");
    let off = (found + late) / missed - 1.0;
    assert!(off.abs() < 0.1, "{what}: {off:+.3} of what iperf3 misses, each once: {all:?}");
    assert!(all.keys().all(|(word, ..)| word == place || word == "receive_buffer"), "{what}: nowhere else: {all:?}");
    for loss in at(objects, place) {
        assert_eq!(loss["netns"], netns, "{what}: in that namespace: {loss}");
        let told = (loss["link"].as_str().unwrap_or_default(), loss["to_link"].as_str());
        assert!(place != "between" || told == ends, "{what}: between these: {loss}");
    }
    assert!(said(objects, "loss").len() >= 3, "{what}: a finding says it: {:?}", said(objects, "loss"));
}

#[test]
fn what_a_firewall_drops_on_a_router_vanishes_between_its_links() {
    if !can_run("what_a_firewall_drops_on_a_router_vanishes_between_its_links", PROGRAMS) {
        return;
    }
    let line = Line::new();
    let _server = line.serve();
    line.router.run(&format!("iptables -A FORWARD {THIRTY_PERCENT}"));
    for arguments in SIZES {
        let seen = line.observe(arguments, |_| ());
        holds("FORWARD", &seen, "between", inode(&line.router), ("r0", Some("r1")));
        let text = said(&seen.1, "loss").join("\n");
        assert!(text.contains("are lost between r0 (in) and r1 (out) "), "with both links and the namespace: {text}");
        assert!(text.contains("nft list ruleset"), "and where to look: {text}");
        let share = at(&seen.1, "between").filter_map(|loss| loss["share"].as_f64());
        let shares: Vec<f64> = share.filter(|share| (0.25..0.35).contains(share)).collect();
        assert!(shares.len() >= 12, "most ticks say 30 %: {shares:?}");
    }
    line.router.run("iptables -F FORWARD; iptables -t mangle -A POSTROUTING -o r1 -p udp -m length --length 60: -m statistic --mode random --probability 0.3 -j DROP");
    let seen = line.observe(SIZES[0], |_| ());
    holds("POSTROUTING", &seen, "between", inode(&line.router), ("r0", Some("r1")));
}

#[test]
fn what_a_firewall_drops_at_the_receiver_vanishes_before_its_socket() {
    if !can_run("what_a_firewall_drops_at_the_receiver_vanishes_before_its_socket", PROGRAMS) {
        return;
    }
    let line = Line::new();
    let _server = line.serve();
    line.far.run(&format!("iptables -A INPUT {THIRTY_PERCENT}"));
    for arguments in SIZES {
        let seen = line.observe(arguments, |_| ());
        holds("INPUT", &seen, "between", inode(&line.far), ("b0", None));
        let text = said(&seen.1, "loss").join("\n");
        assert!(text.contains("are lost between b0 (in) and the socket "), "the socket got less: {text}");
    }
}

#[test]
fn what_is_policed_at_ingress_vanishes_behind_its_link() {
    if !can_run("what_is_policed_at_ingress_vanishes_behind_its_link", PROGRAMS) {
        return;
    }
    let line = Line::new();
    let _server = line.serve();
    line.router.run(
        "nft add table netdev police; \
         nft 'add chain netdev police in { type filter hook ingress device r0 priority 0; }'; \
         nft add rule netdev police in udp length '>=' 40 limit rate over 5000/second burst 100 packets drop",
    );
    let seen = line.observe(SIZES[0], |_| ());
    let (found, missed) = (packets(&seen.1, "between"), vanished(&seen));
    eprintln!("ingress: iperf3 lost {missed:.0}, vnettop {found:.0}");
    // Two links' counters are believed only after a second.
    assert!((0.7..1.1).contains(&(found / missed)), "{found} of {missed} after the first second");
    assert!(at(&seen.1, "between").all(|loss| loss["link"] == "r0"), "behind the link they came in through");
}

#[test]
fn what_a_bridge_drops_vanishes_between_its_ports() {
    if !can_run("what_a_bridge_drops_vanishes_between_its_ports", PROGRAMS) {
        return;
    }
    let line = Line::bridged();
    let _server = line.serve();
    let clean = line.observe(SIZES[0], |_| ());
    assert!(at(&clean.1, "between").next().is_none(), "a bridge that drops nothing: {:?}", live::line::lost(&clean.1));
    line.router.run(
        "nft add table bridge filter; \
         nft 'add chain bridge filter forward { type filter hook forward priority 0; }'; \
         nft add rule bridge filter forward udp length '>=' 40 numgen random mod 10 '<' 3 drop",
    );
    let seen = line.observe(SIZES[0], |_| ());
    let (found, missed) = (packets(&seen.1, "between"), vanished(&seen));
    eprintln!("bridge: iperf3 lost {missed:.0}, vnettop {found:.0}");
    assert!((0.7..1.1).contains(&(found / missed)), "{found} of {missed} after the first second");
    assert!(at(&seen.1, "between").all(|loss| loss["link"] == "r0" && loss["to_link"] == "r1"), "between its ports");
}

#[test]
fn what_rp_filter_drops_is_called_so() {
    if !can_run("what_rp_filter_drops_is_called_so", PROGRAMS) {
        return;
    }
    let line = Line::new();
    let _server = line.serve();
    line.far.run("ip link add d0 type veth peer name d1; ip link set d0 up; ip link set d1 up; echo 1 > /proc/sys/net/ipv4/conf/all/rp_filter");
    let turned = |_: &AtomicBool| {
        std::thread::sleep(Duration::from_secs(2));
        line.far.run("ip route add 198.18.1.1/32 dev d0");
        std::thread::sleep(Duration::from_secs(2));
        line.far.run("ip route del 198.18.1.1/32 dev d0");
    };
    let (_, objects) = line.observe(SIZES[0], turned);
    let counted = line.far.output("nstat -asz TcpExtIPReversePathFilter | awk '/Reverse/ { print $2 }'");
    let counted: f64 = counted.trim().parse().unwrap_or_else(|_| panic!("nstat counts: {counted}"));
    let found = packets(&objects, "rp_filter");
    eprintln!("rp_filter: nstat counts {counted:.0}, vnettop {found:.0}, all {:?}", live::line::lost(&objects));
    assert!(counted > 5_000.0 && (found / counted - 1.0).abs() < 0.05, "{found} of {counted}");
    assert!(at(&objects, "between").next().is_none(), "each is told once");
    let text = said(&objects, "loss").join("\n");
    assert!(text.contains("are lost by rp_filter") && text.contains("rp_filter=2"), "and what mends it: {text}");
}

#[test]
fn where_nothing_is_dropped_nothing_vanishes() {
    if !can_run("where_nothing_is_dropped_nothing_vanishes", PROGRAMS) {
        return;
    }
    let line = Line::new();
    let _server = line.serve();
    let offloads = |gro: &str, tso: &str| {
        for (netns, links) in [(&line.near, &["a0"][..]), (&line.router, &["r0", "r1"]), (&line.far, &["b0"])] {
            for link in links {
                netns.run(&format!("ethtool -K {link} gro {gro} tso {tso} gso {tso}"));
            }
        }
    };
    let cases: [(&str, &str, &[&str]); 8] = [
        ("off", "on", &[]),
        ("on", "on", &[]),
        ("on", "off", &["--bidir"]),
        ("off", "off", &["-R"]),
        ("off", "on", SIZES[0]),
        ("on", "on", &["-u", "-l", "1470", "-b", "94M", "--bidir"]),
        ("on", "on", &["-u", "-l", "8000", "-b", "50M"]),
        ("off", "off", &["-u", "-l", "8000", "-b", "50M", "-R"]),
    ];
    for (gro, tso, arguments) in cases {
        offloads(gro, tso);
        let (_, objects) = line.observe(arguments, |_| ());
        let all = live::line::lost(&objects);
        let vanished = packets(&objects, "between");
        eprintln!("gro {gro} tso {tso} {arguments:?}: {vanished:.1} between, {all:?}");
        assert!(
            at(&objects, "between").next().is_none(),
            "gro {gro} tso {tso} {arguments:?}: nothing vanishes: {all:?}"
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

fn blaster(netns: &Netns, address: &str) -> live::Kept {
    netns.keep("python3", &["-c", OTHERS, address, "9"])
}

#[test]
fn what_a_firewall_drops_of_others_is_not_the_flows() {
    if !can_run("what_a_firewall_drops_of_others_is_not_the_flows", PROGRAMS) {
        return;
    }
    let line = Line::new();
    let _server = line.serve();
    line.router.run("iptables -A INPUT -p udp --dport 9 -j DROP");
    let _others = blaster(&line.far, "198.18.2.254");
    for arguments in [SIZES[0], &[]] {
        let (_, objects) = line.observe(arguments, |_| ());
        assert!(at(&objects, "between").next().is_none(), "the flow misses none: {:?}", live::line::lost(&objects));
    }
}

#[test]
fn a_share_is_unknown_where_others_send_from_the_same_namespace() {
    if !can_run("a_share_is_unknown_where_others_send_from_the_same_namespace", PROGRAMS) {
        return;
    }
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
    let known: Vec<f64> = shares(&beside).into_iter().flatten().collect();
    assert!(known.len() <= 3, "with 2,000 of others beside 8,000 it is not: {known:?}");
    let text = said(&beside, "loss").join("\n");
    assert!(text.contains(" packets/s are lost in the qdisc"), "the finding tells packets: {text}");
}

#[test]
fn datagrams_that_leave_in_pieces_are_told_with_the_size_that_fits() {
    if !can_run("datagrams_that_leave_in_pieces_are_told_with_the_size_that_fits", PROGRAMS) {
        return;
    }
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
            && text.contains(" bytes leave as 6 fragments each (MTU 1500 on a0): one lost fragment")
            && text.ends_with("(iperf3 -l 1472 sends whole ones)")
    };
    let right = texts.iter().filter(right).count();
    assert!(right * 10 >= texts.len() * 8, "with its numbers: {texts:?}");
    let (_, whole) = line.observe(SIZES[1], |_| ());
    assert_eq!(said(&whole, "fragments"), Vec::<&str>::new(), "and only while it happens");
    // Three of a hundred fragments are one datagram of six.
    line.router.run("iptables -A FORWARD -p udp -m statistic --mode random --probability 0.03 -j DROP; iptables -A FORWARD -f -m statistic --mode random --probability 0.03 -j DROP");
    // iperf3 sends the datagram that opens its stream only once, and gives up where that is dropped.
    let test = || line.observe(&["-u", "-l", "8000", "-b", "60M"], |_| ());
    let (report, objects) = (0..3).map(|_| test()).find(|(report, _)| report["error"].is_null()).expect("it opens");
    let missed = report["end"]["sum"]["lost_packets"].as_f64().expect("a number");
    let found = packets(&objects, "between");
    eprintln!(
        "fragments: iperf3 lost {missed:.0} datagrams, vnettop {found:.0} packets, all {:?}",
        live::line::lost(&objects)
    );
    assert!(
        found > 0.8 * missed && found < 1.6 * missed,
        "a datagram loses one fragment or a few: {found} for {missed}"
    );
}

#[test]
fn a_links_drops_hold_those_of_its_qdisc_and_json_keeps_them_apart() {
    if !can_run("a_links_drops_hold_those_of_its_qdisc_and_json_keeps_them_apart", PROGRAMS) {
        return;
    }
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
