//! What a core does, planted: rules, checksums, system calls, a stranger. Each is the largest stage of the test's work on that
//! core, or has its name and the share that `perf` finds too.

use crate::ground::turn::alone;
use crate::ground::{Kept, Netns, VNETTOP, Watching, has, iperf3_server, left_out, needs, needs_two_cores, veth_pair};
use serde_json::Value;
use std::process::{Command, Stdio};

const PROGRAMS: &[&str] = &["ip", "nsenter", "taskset", "unshare", "iperf3"];
/// The core that sends, and is looked at.
const CORE: &str = "1";
/// Rules of the chain that every packet goes through.
const RULES: usize = 1000;

/// An iperf3 that sends from the core that is looked at; the server is on the other one.
fn test(server: &Netns, client: &Netns, address: &str, arguments: &[&str]) -> [Kept; 2] {
    let serving = iperf3_server(server, &["-A", "0"]);
    let all = [&["-c", CORE, "iperf3", "-c", address, "-t", "120"], arguments].concat();
    [serving, client.keep("taskset", &all)]
}

/// A profile of some seconds.
fn profiled(more: &[&str]) -> Value {
    let mut command = Command::new(VNETTOP);
    command.args(["--profile", CORE, "-d", "0.25"]).args(more);
    let mut watching = Watching::start(command);
    loop {
        let object = watching.next();
        let profile = &object["profile"];
        if profile["over_s"].as_f64().is_some_and(|over_s| over_s > 4.0) {
            let shares = stages(profile).iter().map(share);
            let sum: f64 = shares.sum();
            assert!((sum - 1.0).abs() < 1e-6, "the stages are all of the core: {sum}");
            let expected = 499.0 * profile["over_s"].as_f64().expect("a number");
            let taken = profile["samples"].as_f64().expect("a number") + profile["lost"].as_f64().expect("a number");
            // A virtual machine's timer comes late while the host has its core, and what it missed is not made up for.
            assert!((0.6..1.1).contains(&(taken / expected)), "499 samples a second: {profile}");
            return profile.clone();
        }
    }
}

fn stages(profile: &Value) -> &Vec<Value> {
    profile["stages"].as_array().expect("a list")
}

fn share(stage: &Value) -> f64 {
    stage["share"].as_f64().expect("a share")
}

/// The largest stage of what the test and its packets do: others may have most of the core.
fn top(profile: &Value) -> &str {
    let is_of_test = |stage: &&Value| !matches!(stage["stage"].as_str(), Some("program" | "idle" | "unknown"));
    stages(profile).iter().find(is_of_test).and_then(|stage| stage["stage"].as_str()).expect("the test runs there")
}

#[test]
#[ignore = "needs root: tests/run runs it"]
fn a_thousand_rules_are_the_largest_stage_with_their_time_for_each_packet() {
    needs(&[PROGRAMS, &["nft"]].concat());
    needs_two_cores();
    let _alone = alone();
    let [near, middle, far] = [Netns::new(), Netns::new(), Netns::new()];
    near.run(&format!("ip link add e0 type veth peer name r0 netns {}", middle.pid()));
    far.run(&format!("ip link add e0 type veth peer name r1 netns {}", middle.pid()));
    near.run("ip addr add 198.18.1.2/24 dev e0; ip link set e0 up; ip route add default via 198.18.1.1");
    far.run("ip addr add 198.18.2.2/24 dev e0; ip link set e0 up; ip route add default via 198.18.2.1");
    middle.run(
        "ip addr add 198.18.1.1/24 dev r0; ip addr add 198.18.2.1/24 dev r1; ip link set r0 up; ip link set r1 up; \
         sysctl -qw net.ipv4.ip_forward=1",
    );
    let rules: Vec<String> = (0..RULES).map(|at| format!("ip saddr 10.0.{}.{} drop\n", at / 250, at % 250)).collect();
    let rules = rules.concat();
    middle.run(&format!(
        "nft -f - <<'END'\ntable ip t {{\nchain f {{\ntype filter hook forward priority 0; policy accept;\n{rules}}}\n}}\nEND"
    ));
    let _test = test(&far, &near, "198.18.2.2", &["-u", "-b", "0", "-l", "200"]);
    let profile = profiled(&[]);
    assert_eq!(top(&profile), "nft", "{profile}");
    let nft = stages(&profile).iter().find(|stage| stage["stage"] == "nft").expect("it is there");
    assert_eq!(nft["functions"][0]["name"].as_str().and_then(|name| name.split(' ').next()), Some("nft_do_chain"));
    let ns = nft["ns_per_packet"].as_f64().expect("the path is known");
    assert!((500.0..200_000.0).contains(&ns), "{ns} ns for a thousand rules");
    // They are counted while others go on, and none of the ends has rules.
    let counted = |rules: &Value| (rules["link"].as_str().map(str::to_owned), rules["rules"].as_u64());
    let rules = profile["rules"].as_array().expect("a list").iter().map(counted).collect::<Vec<_>>();
    let expected = |link: &str, rules| (Some(link.to_owned()), Some(rules));
    assert!(rules.contains(&expected("r0", RULES as u64)), "as many as were made: {profile}");
    assert!(rules.iter().all(|one| one.1 == Some(0) || *one == expected("r0", RULES as u64)), "{profile}");
    assert!(profile["text"].as_str().is_some_and(|text| text.contains(" % nft, conntrack (1,000 rules on r0); ")));
}

#[test]
#[ignore = "needs root: tests/run runs it"]
fn a_vxlan_without_offloads_is_its_checksums() {
    needs(&[PROGRAMS, &["ethtool"]].concat());
    needs_two_cores();
    let _alone = alone();
    let (near, far) = veth_pair();
    for (netns, at, link) in [(&near, 1, "v0"), (&far, 2, "v1")] {
        netns.run(&format!(
            "ip link set {link} mtu 60000; \
             ip link add vx0 mtu 59000 type vxlan id 7 local 198.18.0.{at} remote 198.18.0.{} dstport 4789 dev {link} udpcsum; \
             ip addr add 198.18.9.{at}/24 dev vx0; ip link set vx0 up; \
             for link in vx0 {link}; do ethtool -K $link tx off rx off tso off gso off gro off >/dev/null 2>&1 || :; done",
            3 - at
        ));
    }
    let _test = test(&far, &near, "198.18.9.2", &["-u", "-b", "0", "-l", "58000"]);
    let profile = profiled(&[]);
    assert_eq!(top(&profile), "checksum", "{profile}");
}

#[test]
#[ignore = "needs root: tests/run runs it"]
fn a_sender_of_single_bytes_is_its_system_calls() {
    needs(PROGRAMS);
    needs_two_cores();
    let _alone = alone();
    let (near, far) = veth_pair();
    let _test = test(&far, &near, "198.18.0.2", &["-l", "1"]);
    let profile = profiled(&[]);
    assert_eq!(top(&profile), "system_call", "{profile}");
}

#[test]
#[ignore = "needs root: tests/run runs it"]
fn a_stranger_has_a_name_and_the_share_that_perf_finds_and_nothing_more() {
    needs(&["taskset", "setpriv", "sh"]);
    needs_two_cores();
    let _alone = alone();
    let spins = ["-c", CORE, "setpriv", "--reuid", "65534", "--clear-groups", "sh", "-c", "while :; do :; done"];
    let spinner = Command::new("taskset").args(spins).stdin(Stdio::null()).spawn().expect("taskset runs");
    let _spinner = Kept(spinner);
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data").display().to_string();
    let perf = has("perf").then(|| {
        let arguments = ["record", "-q", "-e", "cpu-clock", "-F", "499", "-C", CORE, "-o", &data, "sleep", "5"];
        Kept(Command::new("perf").args(arguments).stdin(Stdio::null()).spawn().expect("perf runs"))
    });
    let profile = profiled(&[]);
    let spins = stages(&profile).iter().find(|stage| stage["program"] == "sh").expect("it has a name");
    assert_eq!((spins["stage"].as_str(), &spins["functions"]), (Some("program"), &Value::Array(Vec::new())));
    assert!(share(spins) > 0.2, "it has what others leave it: {profile}");
    let Some(mut perf) = perf else { return left_out("the share beside perf's", "perf is not installed") };
    assert!(perf.0.wait().is_ok_and(|status| status.success()), "perf has recorded");
    let script = Command::new("perf").args(["script", "-i", &data, "-F", "comm"]).output().expect("perf runs");
    let text = String::from_utf8_lossy(&script.stdout);
    let of = |name: &str| text.lines().filter(|line| line.trim() == name).count() as f64;
    let all = text.lines().filter(|line| !line.trim().is_empty()).count() as f64;
    let found = of("sh") / all;
    assert!((found - share(spins)).abs() < 0.05, "perf: {found}, vnettop: {}", share(spins));
}
