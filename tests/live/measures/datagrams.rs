//! Rates of UDP tests beside whatever else their namespaces count: each is what iperf3 itself says, in every direction.

use crate::ground::{Kept, Netns, VNETTOP, Watching, await_that, iperf3_server, needs, pid, veth_pair};
use serde_json::Value;

/// Programs that stay until this is dropped, and the address that is called.
struct Beside {
    address: &'static str,
    _kept: Vec<Kept>,
}

/// Runs a client for ten seconds; its own report, and the tests of its address in every object from when the kernel counts on.
fn observed(near: &Netns, far: &Netns, address: &str, arguments: &[&str]) -> (Value, Vec<Value>) {
    let server = iperf3_server(near, &["-1"]);
    let mut command = far.command(VNETTOP);
    command.args(["-d", "0.5"]);
    let mut watching = Watching::start(command);
    // From the first datagram on: the programs are attached once somebody is watched, and the server is.
    let mut is_attached = || {
        let object = watching.next();
        object["tracer"]["state"] == "attached"
            && object["threads"].as_array().is_some_and(|threads| !threads.is_empty())
    };
    while !is_attached() {}
    let mut client = far.command("iperf3");
    client.args(["-c", address, "-u", "-J", "-t", "6"]).args(arguments).stdout(std::process::Stdio::piped());
    let client = client.spawn().expect("iperf3 starts");
    let number = client.id();
    let report = std::thread::spawn(move || client.wait_with_output().expect("iperf3 ends"));
    let mut tests = Vec::new();
    while !report.is_finished() {
        let object = watching.next();
        let own = object["tests"].as_array().expect("a list").iter();
        let mut own = own.filter(|test| test["client"]["pid"] == number && test["ended_t_ns"].is_null());
        tests.extend(own.next().cloned());
    }
    drop((watching, server));
    let report = report.join().expect("no panic").stdout;
    (serde_json::from_slice(&report).expect("iperf3 prints JSON"), tests)
}

/// The middle one of the rates of a test, Mbit/s.
fn median(tests: &[Value], of: impl Fn(&Value) -> Option<f64>) -> f64 {
    let mut rates: Vec<f64> = tests.iter().filter_map(of).collect();
    rates.sort_by(f64::total_cmp);
    assert!(rates.len() > 5, "most of the test has a rate: {rates:?}");
    rates[rates.len() / 2] / 1e6
}

/// A tunnel between both; it ends in the receiver's namespace.
fn vxlan(near: &Netns, far: &Netns) -> Beside {
    for (netns, link, own, other) in [(near, "v0", 1, 2), (far, "v1", 2, 1)] {
        netns.run(&format!(
            "ip link add vx0 type vxlan id 1 dstport 8472 local 198.18.0.{own} remote 198.18.0.{other} dev {link} && \
             ip link set vx0 mtu 1450 up && ip addr add 10.42.0.{own}/24 dev vx0"
        ));
    }
    Beside { address: "10.42.0.1", _kept: Vec::new() }
}

/// Another program of both namespaces sends 2,000 datagrams/s to another port.
fn another(near: &Netns, far: &Netns) -> Beside {
    let reads = "import socket\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); s.bind(('0.0.0.0',9))\n\
                 while True: s.recv(2000)";
    let sends = "import socket,time\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\n\
                 while True: s.sendto(b'x'*200,('198.18.0.1',9)); time.sleep(0.0005)";
    let reader = near.keep("python3", &["-c", reads]);
    await_that("it listens", 10, || near.output("ss -Hlun").contains(":9 "));
    Beside { address: "198.18.0.1", _kept: vec![reader, far.keep("python3", &["-c", sends])] }
}

/// What vnettop says of a test at 10 Mbit/s beside something.
fn assert_own(beside: fn(&Netns, &Netns) -> Beside, arguments: &[&str]) {
    needs(&["iperf3", "ip", "nsenter", "python3", "ss"]);
    let (near, far) = veth_pair();
    let beside = beside(&near, &far);
    let arguments: Vec<&str> = ["-b", "10M"].iter().chain(arguments).copied().collect();
    let (report, tests) = observed(&near, &far, beside.address, &arguments);
    let theirs = report["end"]["sum"]["bits_per_second"].as_f64().expect("a rate") / 1e6;
    let ours = median(&tests, |test| test["bits_per_s"].as_f64());
    assert!((ours / theirs - 1.0).abs() < 0.02, "vnettop says {ours:.2} Mbit/s, iperf3 {theirs:.2}");
    let shares = tests.iter().flat_map(|test| test["datagrams"].as_array().expect("a list"));
    let lost = shares.filter_map(|one| one["lost_share"].as_f64()).fold(0.0, f64::max);
    assert!(lost < 0.05, "next to nothing is lost, and {lost} is said");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_tunnel_that_ends_beside_the_receiver_doubles_no_rate() {
    assert_own(vxlan, &[]);
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_tunnel_that_ends_beside_the_sender_of_a_reverse_test_doubles_no_rate() {
    assert_own(vxlan, &["-R"]);
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn datagrams_of_another_program_are_not_the_tests() {
    assert_own(another, &[]);
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn streams_of_one_udp_test_have_each_their_own_rate() {
    needs(&["iperf3", "ip", "nsenter"]);
    let (near, far) = veth_pair();
    let (_, tests) = observed(&near, &far, "198.18.0.1", &["-b", "5M", "-P", "3"]);
    let whole = median(&tests, |test| test["bits_per_s"].as_f64());
    assert!((whole / 15.0 - 1.0).abs() < 0.02, "three of 5 Mbit/s are {whole:.2}");
    let one = median(&tests, |test| {
        test["flows"].as_array()?.iter().find(|flow| flow["proto"] == "udp")?["bits_per_s"].as_f64()
    });
    assert!((one / 5.0 - 1.0).abs() < 0.02, "each stream has its own: {one:.2}");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn without_the_kernels_word_a_rate_beside_other_sockets_is_unknown_and_says_why() {
    needs(&["iperf3", "ip", "nsenter", "python3", "ss", "setpriv"]);
    let (near, far) = veth_pair();
    let _beside = another(&near, &far);
    let server = iperf3_server(&near, &["-1"]);
    let mut command = near.command("setpriv");
    // As root without the right to load programs.
    command.args(["--bounding-set", "-bpf,-perfmon,-sys_admin", "--inh-caps", "-bpf,-perfmon,-sys_admin", VNETTOP]);
    command.args(["-d", "0.5", "--netns", "self"]);
    let mut watching = Watching::start(command);
    // Both ends in one namespace: those of others may not be entered.
    let _client = near.keep("iperf3", &["-c", "198.18.0.1", "-u", "-b", "10M", "-t", "30"]);
    let number = pid(&server);
    let mut gap = None;
    for _ in 0..40 {
        let object = watching.next();
        let tests = object["tests"].as_array().expect("a list").clone();
        for test in tests.iter().filter(|test| test["server"]["pid"] == number || test["client"]["pid"] == number) {
            assert!(test["bits_per_s"].is_null(), "no rate is said of counters that have others' datagrams: {test}");
            let mut gaps = test["datagrams"].as_array().expect("a list").iter();
            gap = gaps.find_map(|one| one["gap"].as_str().map(str::to_owned)).or(gap);
        }
        if gap.as_deref().is_some_and(|gap| gap.contains("other UDP socket")) {
            return;
        }
    }
    panic!("it says what else is in the namespace: {gap:?}");
}

/// One socket that answers whoever calls it, as servers of QUIC have it; a client that sends so many bits/s for so many seconds
/// and writes down when it had sent how many bytes.
const SERVES: &str = "import socket\nopen('/proc/self/comm','w').write('several')\n\
    s=socket.socket(socket.AF_INET6,socket.SOCK_DGRAM); s.bind(('::',4433))\n\
    while True: s.sendto(b'ack',s.recvfrom(2000)[1])";
const CALLS: &str = "import socket,sys,time\nopen('/proc/self/comm','w').write('several')\n\
    s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); s.connect(('198.18.0.1',4433))\n\
    rate,seconds,log=float(sys.argv[1]),float(sys.argv[2]),open(sys.argv[3],'w')\n\
    s.setblocking(False); began,sent=time.monotonic(),0\n\
    while (now:=time.monotonic()-began)<seconds:\n \
    while sent*8<=now*rate: sent+=s.send(b'x'*1000)\n \
    print(time.monotonic_ns(),sent,file=log,flush=True)\n time.sleep(0.002)\n \
    try:\n  \
    while s.recv(100): pass\n \
    except BlockingIOError: pass";

/// Bytes that the log of a client has until an instant.
fn sent_until(log: &str, at_ns: f64) -> f64 {
    let words = log.lines().filter_map(|line| line.split_once(' '));
    let known: Vec<(f64, f64)> =
        words.filter_map(|(at_ns, bytes)| Some((at_ns.parse().ok()?, bytes.parse().ok()?))).collect();
    let after = known.partition_point(|one| one.0 < at_ns).clamp(1, known.len() - 1);
    let (before, after) = (known[after - 1], known[after]);
    before.1 + (after.1 - before.1) * ((at_ns - before.0) / (after.0 - before.0)).clamp(0.0, 1.0)
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn clients_of_one_socket_are_each_a_test_with_its_own_rate() {
    needs(&["ip", "nsenter", "python3", "ss"]);
    let (near, far) = veth_pair();
    let server = near.keep("python3", &["-c", SERVES]);
    await_that("it listens", 10, || near.output("ss -Hlun").contains(":4433 "));
    let mut command = far.command(VNETTOP);
    command.args(["-d", "0.5", "--netns", "all", "--watch", "several"]);
    let mut watching = Watching::start(command);
    while watching.next()["tracer"]["state"] != "attached" {}
    let folder = tempfile::tempdir().expect("a directory");
    let log = |rate: u32| folder.path().join(rate.to_string()).display().to_string();
    let start = |rate| far.keep("python3", &["-c", CALLS, &format!("{rate}e6"), "6", &log(rate)]);
    let clients = [4, 8, 12].map(|rate| (rate, start(rate)));
    let mut tests = Vec::new();
    await_that("all three have ended", 60, || {
        tests.clone_from(watching.next()["tests"].as_array().expect("a list"));
        tests.iter().filter(|test| !test["ended_t_ns"].is_null()).count() == clients.len()
    });
    for (rate, client) in &clients {
        let own = tests.iter().find(|test| test["client"]["pid"] == pid(client)).expect("it has a test");
        assert_eq!(own["server"]["pid"], pid(&server), "all call the same: {own}");
        let said = own["mean_bits_per_s"].as_f64().unwrap_or_else(|| panic!("it has a mean: {own}"));
        let log = std::fs::read_to_string(log(*rate)).expect("the client's log");
        let [from_ns, to_ns] =
            ["from_t_ns", "to_t_ns"].map(|end| own["mean_over"][end].as_f64().expect("what the mean covers"));
        let sent = (sent_until(&log, to_ns) - sent_until(&log, from_ns)) * 8e9 / (to_ns - from_ns);
        assert!((said / sent - 1.0).abs() < 0.01, "{said:.0} of {sent:.0} bits/s ({rate}e6): {}", own["mean_over"]);
        assert_eq!(own["lost_packets"].as_f64(), Some(0.0), "nothing is lost: {}", own["losses"]);
        let mut gaps = own["datagrams"].as_array().expect("a list").iter().filter_map(|one| one["gap"].as_str());
        assert!(gaps.next().is_some_and(|gap| gap.contains("several clients")), "why not all is known: {own}");
    }
}
