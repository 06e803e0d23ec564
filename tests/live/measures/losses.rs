//! Loss forced at four places in turn, with real iperf3: vnettop names the place and as many packets as iperf3 misses.
//! `VNETTOP_LOSS_RUNS=10` repeats each; nine of ten must be right.

use crate::ground::line::{Line, Place, inode, lost};
use crate::ground::{Netns, left_out, needs, pid};
use serde_json::Value;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const PROGRAMS: &[&str] = &["iperf3", "ip", "tc", "nsenter", "taskset"];

/// What a counter of the kernel says of packets lost at a place.
type Counter<'a> = &'a dyn Fn() -> f64;

/// Why a run forced no loss. iperf3 sends the datagram that opens a stream only once, and gives up where that is lost; and a
/// sender that shares its core with the full queue may be too slow to fill it.
fn of_no_use(report: &Value, objects: &[Value]) -> Option<&'static str> {
    let error = report["error"].as_str().unwrap_or_default();
    if error.contains("unable to read from stream socket") {
        return Some("iperf3's opening datagram was lost");
    }
    let lost_none = report["end"]["sum"]["lost_packets"] == 0 && lost(objects).is_empty();
    lost_none.then_some("nothing was lost, and nothing was told")
}

/// Runs one place as often as asked, and tells in which runs the place and the number were right. Where the place has a counter
/// of its own, what is told of it is what that counts to the packet, and what is truly lost elsewhere is only accounted for.
fn assert_found(
    what: &str,
    kernels: Option<Counter<'_>>,
    mut run: impl FnMut() -> (Value, Vec<Value>),
    is_it: impl Fn(&Place) -> bool,
) {
    let runs = std::env::var("VNETTOP_LOSS_RUNS").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let mut right = 0;
    for _ in 0..runs {
        let mut before = kernels.map_or(0.0, |count| count());
        let (mut report, mut objects) = run();
        for _ in 0..3 {
            let Some(why) = of_no_use(&report, &objects) else { break };
            eprintln!("{what}: {why}: once more");
            before = kernels.map_or(0.0, |count| count());
            (report, objects) = run();
        }
        let counted = kernels.map(|count| count() - before);
        let sum = &report["end"]["sum"];
        let missed = sum["lost_packets"].as_f64().unwrap_or_else(|| panic!("iperf3 ends well: {report}"));
        let places = lost(&objects);
        let sum_of = |there: bool| {
            let some = places.iter().filter(|(place, _)| is_it(place) == there);
            some.map(|(_, packets)| packets).sum::<f64>() + 0.0
        };
        let (found, elsewhere) = (sum_of(true), sum_of(false));
        let told = objects.iter().filter(|object| {
            object["findings"].as_array().expect("a list").iter().any(|finding| finding["id"] == "loss")
        });
        let told = told.count();
        let (off, all_off) = (found / missed - 1.0, (found + elsewhere) / missed - 1.0);
        // On a loaded machine some packets are truly lost elsewhere too: all of them must be accounted for.
        let is_place = match counted {
            Some(counted) => counted > 100.0 && (found - counted).abs() < 0.5,
            None => missed > 500.0 && elsewhere < 0.3 * found,
        };
        let is_right = is_place && all_off.abs() < 0.1 && told >= 3;
        right += usize::from(is_right);
        eprintln!(
            "{what}: iperf3 lost {missed:.0} of {}, the kernel counts {counted:?}, vnettop {found:.0} there ({:+.1} %), {elsewhere:.0} \
             elsewhere (all {:+.1} %), said {told} times{}",
            sum["packets"],
            off * 100.0,
            all_off * 100.0,
            match (is_right, elsewhere > 0.0) {
                (true, false) => String::new(),
                (true, true) => format!(": {places:?}"),
                (false, _) => format!(" WRONG {places:?}"),
            }
        );
    }
    assert!(right * 10 >= runs * 9, "{what} is named with its packets in {right} of {runs} runs");
}

/// Arguments for 64 bytes and for 1,470 bytes at about 8,000 packets/s.
const SIZES: [(&str, &[&str], &str); 2] = [
    ("64 bytes", &["-u", "-l", "64", "-b", "4M"], "4mbit"),
    ("1470 bytes", &["-u", "-l", "1470", "-b", "94M"], "60mbit"),
];

#[test]
#[ignore = "on the real kernel: tests/run"]
fn loss_in_the_senders_qdisc_is_found_there() {
    needs(PROGRAMS);
    let line = Line::new();
    line.quiet();
    let _server = line.serve();
    let netns = inode(&line.near);
    for (size, arguments, rate) in SIZES {
        line.near.run(&format!("tc qdisc replace dev a0 root tbf rate {rate} burst 10k limit 10k"));
        let is_it = |place: &Place| *place == ("qdisc".into(), netns, "tbf on a0".into());
        let dropped =
            || number(&line.near, "tc -s qdisc show dev a0 root | sed -n 's/.*dropped \\([0-9]*\\),.*/\\1/p'");
        assert_found(&format!("sender's qdisc, {size}"), Some(&dropped), || line.observe(arguments, |_| ()), is_it);
    }
}

/// Gives a link's way out a netem; false where the kernel has none.
fn netem(netns: &Netns, link: &str, what: &str) -> bool {
    let said = netns.output(&format!("tc qdisc replace dev {link} root netem {what} && echo done"));
    let done = said.contains("done");
    assert!(done || said.contains("qdisc kind is unknown"), "only a kernel without netem refuses '{what}': {said}");
    done
}

/// The number that a shell line prints inside.
fn number(netns: &Netns, script: &str) -> f64 {
    let said = netns.output(script);
    said.trim().parse().unwrap_or_else(|_| panic!("a number from {script}: {said}"))
}

/// Makes a link lose on its way out: 5 % by netem or, where the kernel has none, what a token bucket has no room for. What
/// vnettop is to call it.
fn lose(netns: &Netns, link: &str, rate: &str) -> String {
    if netem(netns, link, "loss 5%") {
        return format!("netem on {link}");
    }
    left_out(&format!("netem on {link}"), &format!("this kernel has none, so a tbf of {rate} stands for it"));
    netns.run(&format!("tc qdisc replace dev {link} root tbf rate {rate} burst 10k limit 10k"));
    format!("tbf on {link}")
}

/// What is lost on the way out of a link is found there.
fn assert_found_at(what: &str, over: &Line, (netns, link): (&Netns, &str)) {
    over.quiet();
    let _server = over.serve();
    for (size, arguments, rate) in SIZES {
        let name = lose(netns, link, rate);
        let is_it = |place: &Place| *place == ("qdisc".into(), inode(netns), name.clone());
        let dropped =
            || number(netns, &format!("tc -s qdisc show dev {link} root | sed -n 's/.*dropped \\([0-9]*\\),.*/\\1/p'"));
        assert_found(&format!("{what}, {name}, {size}"), Some(&dropped), || over.observe(arguments, |_| ()), is_it);
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_flow_s_own_figure_of_loss_names_the_socket_and_counts_nothing_of_the_way() {
    needs(PROGRAMS);
    let line = Line::new();
    let _server = line.serve();
    line.near.run("tc qdisc replace dev a0 root tbf rate 60mbit burst 10k limit 10k");
    let (_, objects) = line.observe(&["-u", "-l", "1470", "-b", "94M"], |_| ());
    let flows = objects.iter().flat_map(|object| object["flows"].as_array().expect("a list"));
    let known: Vec<&Value> = flows.filter(|flow| !flow["lost_per_s"].is_null()).collect();
    assert!(known.len() > 5, "the datagrams' flow tells it: {}", known.len());
    assert!(known.iter().all(|flow| flow["lost_per_s_source"] == "receive_buffer"), "and of which place: {}", known[0]);
    // On a loaded machine some are truly lost at the socket too.
    let own = objects.iter().map(|object| {
        let flows = object["flows"].as_array().expect("a list").iter();
        flows.filter_map(|flow| flow["lost_per_s"].as_f64()).sum::<f64>() * object["elapsed_s"].as_f64().unwrap_or(0.0)
    });
    let own: f64 = own.sum();
    let places = lost(&objects);
    let at =
        |word: &str| -> f64 { places.iter().filter(|(place, _)| place.0 == word).map(|(_, packets)| packets).sum() };
    let (queue, socket) = (at("qdisc"), at("receive_buffer"));
    eprintln!("{queue:.0} packets lost in the queue, {socket:.0} at the socket, of which the flow tells {own:.0}");
    assert!(queue > 1_000.0, "the queue's are in losses: {places:?}");
    assert!(own <= 1.1 * socket + 50.0, "the flow's are the socket's {socket:.0} and nothing of the way, not {own:.0}");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn loss_on_a_hop_in_the_middle_is_found_there() {
    needs(PROGRAMS);
    let line = Line::new();
    assert_found_at("hop in the middle", &line, (&line.router, "r1"));
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn loss_on_a_port_of_a_bridge_in_the_middle_is_found_there() {
    needs(PROGRAMS);
    let line = Line::bridged();
    assert_found_at("port of a bridge", &line, (&line.router, "r1"));
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn loss_on_the_senders_own_way_out_is_found_there() {
    needs(PROGRAMS);
    let line = Line::new();
    assert_found_at("sender's way out", &line, (&line.near, "a0"));
}

/// Nothing is told as lost where packets are only late or come twice, and no number is less than nothing. A receiver that is
/// too slow loses some in truth.
fn assert_nothing_lost(what: &str, netns: &Netns, (report, objects): &(Value, Vec<Value>)) {
    let sum = &report["end"]["sum"];
    assert!(sum["packets"].as_u64().is_some_and(|packets| packets > 1_000), "{what}: the test ends well: {report}");
    let places = lost(objects);
    eprintln!("{what}: iperf3 lost {} of {}, vnettop tells {places:?}", sum["lost_packets"], sum["packets"]);
    let netns = inode(netns);
    let is_there = |place: &Place| place.1 == netns && place.0 != "backlog";
    assert!(!places.keys().any(is_there), "{what}: no packet is told as lost there: {places:?}");
    for loss in objects.iter().flat_map(|object| object["losses"].as_array().expect("a list")) {
        assert!(
            loss["packets_per_s"].as_f64().is_some_and(|packets| packets > 0.0),
            "{what}: more than nothing: {loss}"
        );
        assert!(loss["share"].as_f64().is_none_or(|share| (0.0..=1.0).contains(&share)), "{what}: a share: {loss}");
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn what_is_late_or_comes_twice_is_not_lost() {
    const HOW: [&str; 3] = ["delay 100ms limit 10000", "delay 20ms reorder 25% 50% limit 10000", "duplicate 5%"];
    needs(PROGRAMS);
    let (routed, bridged) = (Line::new(), Line::bridged());
    let places = [
        ("router", &routed, &routed.router, "r1"),
        ("bridge", &bridged, &bridged.router, "r1"),
        ("sender", &routed, &routed.near, "a0"),
    ];
    for (what, line, netns, link) in places {
        let _server = line.serve();
        for how in HOW {
            if !netem(netns, link, how) {
                left_out("what_is_late_or_comes_twice_is_not_lost", "this kernel has no netem");
                return;
            }
            assert_nothing_lost(&format!("{how} at the {what}"), netns, &line.observe(SIZES[0].1, |_| ()));
        }
        netns.run(&format!("tc qdisc del dev {link} root"));
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn what_arrives_damaged_is_told_as_that() {
    needs(&[PROGRAMS, &["nft", "ethtool"]].concat());
    let line = Line::new();
    let _server = line.serve();
    let netns = inode(&line.far);
    let is_it = |place: &Place| place.0 == "checksum" && place.1 == netns;
    // What is damaged in IP's header is a loss of IP; in Ethernet's, it is for nobody.
    let errors = "nstat -asz UdpInCsumErrors IpInHdrErrors | awk '/Errors/ { sum += $2 } END { print sum }'";
    let damaged = || number(&line.far, errors);
    // A veth leaves checksums out, and then nobody looks at them.
    line.near.run("ethtool -K a0 tx off");
    line.router.run(
        "nft add table ip damage; nft 'add chain ip damage out { type filter hook postrouting priority 0; }'; \
         nft add rule ip damage out udp length '>=' 40 numgen random mod 20 0 udp checksum set 0x1234",
    );
    for (size, arguments, _) in SIZES {
        assert_found(&format!("damaged by a rule, {size}"), Some(&damaged), || line.observe(arguments, |_| ()), is_it);
    }
    line.router.run("nft delete table ip damage");
    line.near.run("ethtool -K a0 tx on");
    if !netem(&line.router, "r1", "corrupt 5%") {
        left_out("what_arrives_damaged_is_told_as_that, by netem", "this kernel has none");
        return;
    }
    let is_it = |place: &Place| ["checksum", "ip"].contains(&&*place.0) && place.1 == netns;
    for (size, arguments, _) in SIZES {
        assert_found(&format!("damaged by netem, {size}"), Some(&damaged), || line.observe(arguments, |_| ()), is_it);
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn loss_in_a_full_backlog_is_found_there() {
    needs(PROGRAMS);
    let line = Line::new();
    let _server = line.serve();
    // Many streams, because what waits in a backlog still counts against a sender's own buffer.
    line.hold_up();
    for (size, length, rate) in [("64 bytes", "64", "400K"), ("1470 bytes", "1470", "9M")] {
        let arguments = ["-u", "-l", length, "-b", rate, "-P", "32"];
        let is_it = |place: &Place| place.0 == "backlog";
        assert_found(&format!("backlog, {size}"), None, || line.observe(&arguments, |_| ()), is_it);
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn loss_in_the_receivers_buffer_is_found_there() {
    needs(PROGRAMS);
    let line = Line::new();
    let server = line.serve();
    let netns = inode(&line.far);
    let signal = |name: &str| {
        let _sent = Command::new("kill").args([name, &pid(&server).to_string()]).status();
    };
    // A receiver that does not keep up: it sleeps three quarters of the time.
    let sleepy = |runs: &AtomicBool| {
        while runs.load(Ordering::Relaxed) {
            signal("-STOP");
            std::thread::sleep(Duration::from_millis(150));
            signal("-CONT");
            std::thread::sleep(Duration::from_millis(50));
        }
        signal("-CONT");
    };
    let errors = || number(&line.far, "nstat -asz UdpRcvbufErrors | awk '/Errors/ { print $2 }'");
    for (size, arguments, _) in SIZES {
        let is_it = |place: &Place| place.0 == "receive_buffer" && place.1 == netns;
        assert_found(&format!("receive buffer, {size}"), Some(&errors), || line.observe(arguments, sleepy), is_it);
    }
}
