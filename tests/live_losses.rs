//! Loss forced at four places in turn, with real iperf3: vnettop names the place and as many packets as iperf3 misses.
//! `VNETTOP_LOSS_RUNS=10` repeats each; nine of ten must be right.

mod live;

use live::{Kept, Netns, VNETTOP, Watching, await_that, can_run, pid};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const PROGRAMS: &[&str] = &["iperf3", "ip", "tc", "nsenter", "taskset"];
/// Rules that a packet walks in the router, so that one core passes on some 10,000 packets a second.
const RULES: usize = 5_000;

/// Three namespaces in a row, the middle one a router: `a0` 198.18.1.1 – `r0`, `r1` – `b0` 198.18.2.1.
struct Line {
    near: Netns,
    router: Netns,
    far: Netns,
    directory: tempfile::TempDir,
    program: String,
}

impl Line {
    fn new() -> Self {
        let (near, router, far) = (Netns::new(), Netns::new(), Netns::new());
        near.run(&format!("ip link add a0 type veth peer name r0 netns {}", router.pid()));
        far.run(&format!("ip link add b0 type veth peer name r1 netns {}", router.pid()));
        near.run("ip addr add 198.18.1.1/24 dev a0; ip link set a0 up");
        far.run("ip addr add 198.18.2.1/24 dev b0; ip link set b0 up");
        router.run("ip addr add 198.18.1.254/24 dev r0; ip link set r0 up; ip addr add 198.18.2.254/24 dev r1; ip link set r1 up");
        router.run("echo 1 > /proc/sys/net/ipv4/ip_forward");
        near.run("ip route add default via 198.18.1.254");
        far.run("ip route add default via 198.18.2.254");
        let out = Command::new("sh").args(["-c", "command -v iperf3"]).output().expect("sh runs");
        let directory = tempfile::tempdir().expect("a temporary directory");
        // A command is called as the link that it was started by: only this test's processes are watched.
        let inode = fs::metadata(directory.path()).expect("it is there").ino();
        let program = directory.path().join(format!("ip{}", inode % 1_000_000_000));
        std::os::unix::fs::symlink(String::from_utf8_lossy(&out.stdout).trim(), &program).expect("writable");
        let program = program.display().to_string();
        Self { near, router, far, directory, program }
    }

    fn name(&self) -> &str {
        self.program.rsplit('/').next().expect("a name")
    }

    fn serve(&self) -> Kept {
        let server = self.far.keep("taskset", &["-c", "0", &self.program, "-s"]);
        // Port 5201 in state LISTEN.
        await_that("the server listens", 10, || self.far.output("cat /proc/net/tcp6 /proc/net/tcp").contains(":1451 "));
        server
    }

    /// One iperf3 test of 6 s: what it reports at its end, and every object of vnettop until the connections are gone.
    fn observe(&self, arguments: &[&str], meanwhile: impl FnOnce(&AtomicBool) + Send) -> (Value, Vec<Value>) {
        let mut command = self.near.command(VNETTOP);
        command.args(["-d", "0.2", "--netns", "all", "--watch", self.name()]);
        let mut watching = Watching::start(command);
        let mut objects = vec![watching.next()];
        let runs = AtomicBool::new(true);
        let report = std::thread::scope(|scope| {
            scope.spawn(|| meanwhile(&runs));
            let mut client = self.near.command(&self.program);
            client.args(["-c", "198.18.2.1", "-u", "-J", "-t", "6"]).args(arguments).stdin(Stdio::null());
            let out = client.output().expect("iperf3 runs");
            runs.store(false, Ordering::Relaxed);
            serde_json::from_slice::<Value>(&out.stdout).expect("iperf3 prints its figures as JSON")
        });
        let flows = |object: &Value| object["flows"].as_array().expect("a list").len();
        let mut had_some = false;
        while !(had_some && flows(&objects[objects.len() - 1]) == 0) {
            objects.push(watching.next());
            had_some |= flows(&objects[objects.len() - 1]) > 0;
        }
        (report, objects)
    }
}

fn inode(netns: &Netns) -> u64 {
    fs::metadata(format!("/proc/{}/ns/net", netns.pid())).expect("the holder lives").ino()
}

/// Packets lost by place, namespace and name.
fn lost(objects: &[Value]) -> BTreeMap<(String, u64, String), f64> {
    let mut sums = BTreeMap::new();
    for object in objects {
        let elapsed = object["elapsed_s"].as_f64().unwrap_or(0.0);
        for loss in object["losses"].as_array().expect("a list") {
            let word = |field: &str| loss[field].as_str().unwrap_or_default().to_owned();
            let key = (word("place"), loss["netns"].as_u64().unwrap_or(0), word("name"));
            *sums.entry(key).or_insert(0.0) += loss["packets_per_s"].as_f64().expect("a rate") * elapsed;
        }
    }
    sums
}

/// Runs one place as often as asked, and tells in which runs the place and the number were right.
fn assert_found(
    what: &str,
    mut run: impl FnMut() -> (Value, Vec<Value>),
    is_it: impl Fn(&(String, u64, String)) -> bool,
) {
    let runs = std::env::var("VNETTOP_LOSS_RUNS").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let mut right = 0;
    for _ in 0..runs {
        let (report, objects) = run();
        let sum = &report["end"]["sum"];
        let missed = sum["lost_packets"].as_f64().unwrap_or_else(|| panic!("iperf3 ends well: {report}"));
        let places = lost(&objects);
        let found: f64 = places.iter().filter(|(place, _)| is_it(place)).map(|(_, packets)| packets).sum::<f64>() + 0.0;
        let elsewhere: f64 =
            places.iter().filter(|(place, _)| !is_it(place)).map(|(_, packets)| packets).sum::<f64>() + 0.0;
        let told = objects.iter().filter(|object| {
            object["findings"].as_array().expect("a list").iter().any(|finding| finding["id"] == "loss")
        });
        let told = told.count();
        let (off, all_off) = (found / missed - 1.0, (found + elsewhere) / missed - 1.0);
        // On a loaded machine some packets are truly lost elsewhere too: all of them must be accounted for.
        let is_right = missed > 500.0 && all_off.abs() < 0.1 && elsewhere < 0.3 * found && told >= 3;
        right += usize::from(is_right);
        eprintln!(
            "{what}: iperf3 lost {missed:.0} of {}, vnettop {found:.0} there ({:+.1} %), {elsewhere:.0} elsewhere, said {told} times{}",
            sum["packets"],
            off * 100.0,
            if is_right { String::new() } else { format!(" WRONG {places:?}") }
        );
    }
    assert!(right * 10 >= runs * 9, "{what} is named with its packets in {right} of {runs} runs");
}

/// Arguments for 64 bytes and for 1,470 bytes at about 8,000 packets/s.
const SIZES: [(&str, &[&str], &str); 2] =
    [("64 bytes", &["-l", "64", "-b", "4M"], "4mbit"), ("1470 bytes", &["-l", "1470", "-b", "94M"], "60mbit")];

#[test]
fn loss_in_the_senders_qdisc_is_found_there() {
    if !can_run("loss_in_the_senders_qdisc_is_found_there", PROGRAMS) {
        return;
    }
    let line = Line::new();
    let _server = line.serve();
    let netns = inode(&line.near);
    for (size, arguments, rate) in SIZES {
        line.near.run(&format!("tc qdisc replace dev a0 root tbf rate {rate} burst 10k limit 10k"));
        let is_it = |place: &(String, u64, String)| *place == ("qdisc".into(), netns, "tbf on a0".into());
        assert_found(&format!("sender's qdisc, {size}"), || line.observe(arguments, |_| ()), is_it);
    }
}

#[test]
fn loss_on_a_hop_in_the_middle_is_found_there() {
    if !can_run("loss_on_a_hop_in_the_middle_is_found_there", PROGRAMS) {
        return;
    }
    let line = Line::new();
    let _server = line.serve();
    let netns = inode(&line.router);
    // Not every kernel has netem.
    let netem = line.router.output("tc qdisc add dev r1 root netem loss 20% && echo yes").contains("yes");
    for (size, arguments, rate) in SIZES {
        if !netem {
            line.router.run(&format!("tc qdisc replace dev r1 root tbf rate {rate} burst 10k limit 10k"));
        }
        let name = if netem { "netem on r1" } else { "tbf on r1" };
        let is_it = |place: &(String, u64, String)| *place == ("qdisc".into(), netns, name.into());
        assert_found(&format!("hop in the middle, {size}"), || line.observe(arguments, |_| ()), is_it);
    }
}

#[test]
fn loss_in_a_full_backlog_is_found_there() {
    if !can_run("loss_in_a_full_backlog_is_found_there", PROGRAMS) {
        return;
    }
    let line = Line::new();
    let _server = line.serve();
    // No setting of the machine is touched: one core gets all packets of the router, and each takes it long, so that its
    // backlog of 1,000 fills. Many streams, because what waits there still counts against a sender's own buffer.
    let rules: Vec<String> =
        (1..=RULES).map(|rule| format!("rule add from 203.0.113.9 iif r1 table 100 priority {rule}")).collect();
    let file = line.directory.path().join("rules");
    fs::write(&file, rules.join("\n")).expect("writable");
    line.router.run(&format!("ip -batch {}", file.display()));
    let router = line.router.pid().to_string();
    let set = "mount -t sysfs none /sys; for queue in /sys/class/net/r0/queues/rx-*; do echo 2 > $queue/rps_cpus; done";
    let out = Command::new("nsenter").args(["-t", &router, "-n", "--", "unshare", "-m", "sh", "-ec", set]).output();
    let out = out.expect("nsenter runs");
    assert!(out.status.success(), "RPS can be set: {}", String::from_utf8_lossy(&out.stderr));
    for (size, length, rate) in [("64 bytes", "64", "400K"), ("1470 bytes", "1470", "9M")] {
        let arguments = ["-l", length, "-b", rate, "-P", "32"];
        let is_it = |place: &(String, u64, String)| place.0 == "backlog";
        assert_found(&format!("backlog, {size}"), || line.observe(&arguments, |_| ()), is_it);
    }
}

#[test]
fn loss_in_the_receivers_buffer_is_found_there() {
    if !can_run("loss_in_the_receivers_buffer_is_found_there", PROGRAMS) {
        return;
    }
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
    for (size, arguments, _) in SIZES {
        let is_it = |place: &(String, u64, String)| place.0 == "receive_buffer" && place.1 == netns;
        assert_found(&format!("receive buffer, {size}"), || line.observe(arguments, sleepy), is_it);
    }
}
