//! vnettop beside a real Open vSwitch with the userspace datapath: every kind of port, a restart of its database, two
//! switches at once. What it shows is compared with what `ovs-vsctl` says.

use crate::ground::ovs::{PROGRAMS, Switch};
use crate::ground::{self, Kept, Netns, VNETTOP, Watching, await_that, link, needs};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

fn watch(netns: &Netns, switches: &[&Switch], more: &[&str]) -> Watching {
    let mut command = netns.command(VNETTOP);
    for switch in switches {
        command.arg("--ovs-socket").arg(switch.directory());
    }
    // Nobody is called so: other people's benchmarks are not the test's.
    command.args(["-d", "0.2", "--readonly", "--watch", "no-such-name"]).args(more);
    Watching::start(command)
}

/// The first object that is so, within the time.
fn until(watching: &mut Watching, what: &str, seconds: u64, is: impl Fn(&Value) -> bool) -> Value {
    let end = Instant::now() + Duration::from_secs(seconds);
    loop {
        let object = watching.next();
        if is(&object) {
            return object;
        }
        assert!(Instant::now() < end, "{what} within {seconds} s, not: {:#}", object["ovs"]);
    }
}

fn ovs<'a>(object: &'a Value, name: &str) -> &'a Value {
    &link(object, name).unwrap_or_else(|| panic!("there is a link {name}"))["ovs"]
}

const PORTS: &str = "add-port br0 int0 -- set interface int0 type=internal \
    -- add-port br0 vx0 -- set interface vx0 type=vxlan options:remote_ip=198.18.9.2 options:key=7 \
    -- add-port br0 gn0 -- set interface gn0 type=geneve options:remote_ip=198.18.9.3 \
    -- add-port br0 gr0 -- set interface gr0 type=gre options:remote_ip=198.18.9.4 \
    -- add-port br0 pa -- set interface pa type=patch options:peer=pb \
    -- add-br br1 -- set bridge br1 datapath_type=netdev \
    -- add-port br1 pb -- set interface pb type=patch options:peer=pa \
    -- add-port br0 v0 tag=5";

fn bridge(netns: &Netns, switch: &Switch) {
    switch.vsctl("add-br br0 -- set bridge br0 datapath_type=netdev fail_mode=standalone");
    netns.run("ip link add v0 type veth peer name v1; ip link set v0 up; ip link set v1 up; ip link set br0 up");
    switch.vsctl(PORTS);
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn every_kind_of_port_is_shown_as_ovs_vsctl_shows_it() {
    needs(&PROGRAMS);
    let netns = Netns::new();
    let switch = Switch::start(&netns);
    bridge(&netns, &switch);
    switch.vsctl("set Open_vSwitch . ovs_version=3.1.0");
    let mut watching = watch(&netns, &[&switch], &[]);
    let object = until(&mut watching, "every port is a link", 20, |object| {
        ["vx0", "gn0", "gr0", "pa", "pb", "int0", "br0", "v0"].iter().all(|name| link(object, name).is_some())
    });
    for name in ["br0", "br1", "int0", "vx0", "gn0", "gr0", "pa", "pb", "v0"] {
        let told = |column: &str| switch.vsctl(&format!("get interface {name} {column}"));
        let kind = told("type").replace('"', "");
        let said = ovs(&object, name);
        assert_eq!(said["type"], if kind.is_empty() { "system" } else { &kind }, "type of {name}");
        assert_eq!(said["ofport"].to_string(), told("ofport"), "ofport of {name}");
        let bridge = if name.starts_with("br") { name.to_owned() } else { switch.vsctl(&format!("port-to-br {name}")) };
        assert_eq!((&said["bridge"], &said["datapath"]), (&bridge.into(), &"netdev".into()), "bridge of {name}");
    }
    let kind = |name: &str| link(&object, name).expect("it is there")["kind"].clone();
    let kinds = ["br0", "int0", "v0", "vx0", "gn0", "gr0", "pa"].map(kind);
    assert_eq!(kinds, ["tap", "tap", "veth", "vxlan", "geneve", "gre", "patch"], "kinds of links");
    let of = |name: &str, field: &str| ovs(&object, name)[field].clone();
    assert_eq!((of("vx0", "remote_ip"), of("vx0", "key")), ("198.18.9.2".into(), "7".into()));
    assert_eq!((of("v0", "vlan"), of("pa", "peer")), (5.into(), "pb".into()));
    assert_eq!(
        link(&object, "pa").expect("it is there")["peer"]["name"],
        "pb",
        "the two ends of a patch know each other"
    );
    assert_eq!(link(&object, "v1").expect("it is there")["ovs"], Value::Null, "the other end of the veth is no port");
    let shown = &object["ovs"][0];
    assert_eq!(shown["version"].to_string(), switch.vsctl("get Open_vSwitch . ovs_version"));
    let threads = object["threads"].as_array().expect("threads");
    let main = threads.iter().find(|thread| thread["tid"] == switch.pid()).expect("ovs-vswitchd is watched too");
    assert_eq!((&main["role"], &main["name"]), (&"ovs".into(), &"ovs-vswitchd".into()));
    assert_eq!(shown["netns"], link(&object, "lo").expect("lo")["netns"], "the links are where ovs-vswitchd is");
    let bridges: Vec<&Value> =
        shown["bridges"].as_array().expect("bridges").iter().map(|bridge| &bridge["name"]).collect();
    assert_eq!(bridges, ["br0", "br1"]);
    assert_eq!(shown["bridges"][0]["fail_mode"], "standalone");
    switch.vsctl("del-port br0 gn0 -- set port v0 tag=9");
    let gone = |object: &Value| link(object, "gn0").is_none() && ovs(object, "v0")["vlan"] == 9;
    until(&mut watching, "a deleted port and another tag are shown", 5, gone);
    watching.stop();
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn the_rate_of_a_patch_port_is_that_of_the_traffic_through_it() {
    let needed = [&PROGRAMS[..], &["python3"]].concat();
    needs(&needed);
    let netns = Netns::new();
    let switch = Switch::start(&netns);
    bridge(&netns, &switch);
    netns.run("ip link set br1 up; ip addr add 198.18.1.1/24 dev br0; ip neigh add 198.18.1.2 lladdr 02:00:00:00:00:02 dev br0");
    // 1,042 bytes on the wire, 100 times a second, to nobody: it is flooded through every port.
    let sender = ground::UDP_SENDER.replace("127.0.0.1", "198.18.1.2");
    let _sender = netns.keep("python3", &["-c", &sender]);
    let mut watching = watch(&netns, &[&switch], &[]);
    let rate = |object: &Value| link(object, "pa")?["tx_bits_per_s"].as_f64();
    until(&mut watching, "a patch port has a rate", 40, |object| rate(object).is_some_and(|bits| bits > 0.0));
    let object = until(&mut watching, "its rate is that of a whole period", 20, |object| {
        let (of_patch, of_bridge) = (rate(object), link(object, "br0").and_then(|br0| br0["tx_bits_per_s"].as_f64()));
        of_patch.zip(of_bridge).is_some_and(|(patch, bridge)| bridge > 0.0 && (0.8..1.25).contains(&(patch / bridge)))
    });
    // No tick has a spike or a hole: OVS counts every five seconds, the rate holds in between.
    let first = rate(&object).expect("a rate");
    for _ in 0..30 {
        let now = rate(&watching.next()).expect("a patch port keeps its rate between two of its counts");
        assert!((0.5..2.0).contains(&(now / first)), "{now} bits/s beside {first}: no spike, no hole");
    }
    let patch = link(&object, "pa").expect("it is there");
    assert_eq!(patch["rx_dropped_per_s"], Value::Null, "a patch port does not count drops");
    watching.stop();
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_restart_of_the_database_is_over_within_five_seconds_and_leaves_no_descriptor() {
    needs(&PROGRAMS);
    let netns = Netns::new();
    let mut switch = Switch::start(&netns);
    bridge(&netns, &switch);
    let mut watching = watch(&netns, &[&switch], &[]);
    let is_well = |object: &Value| {
        let problems = object["problems"].as_array().expect("problems");
        link(object, "pa").is_some() && problems.iter().all(|problem| problem["source"] != "ovs")
    };
    let before = until(&mut watching, "the switch is seen", 20, |object| {
        is_well(object) && object["threads"].as_array().is_some_and(|threads| !threads.is_empty())
    });
    let index = |object: &Value| link(object, "pa").expect("it is there")["ifindex"].clone();
    let pid = watching.pid();
    let open = || own_descriptors(pid);
    let open_before = open();
    for _ in 0..3 {
        switch.stop_database();
        let told = |object: &Value| !is_well(object);
        until(&mut watching, "that the database is gone is said", 5, told);
        switch.start_database(&netns);
        let after = until(&mut watching, "the restarted database is followed again", 5, is_well);
        assert_eq!(index(&after), index(&before), "the same port is the same link");
    }
    let all = || format!("no descriptor is left behind: {:?} became {:?}", open_before, open());
    await_that(&all(), 5, || open().len() <= open_before.len());
    switch.stop_database();
    let gone = |object: &Value| link(object, "pa").is_none() && object["ovs"] == Value::Array(Vec::new());
    until(&mut watching, "a switch whose database stays away is not shown", 8, gone);
    watching.stop();
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn two_switches_in_two_namespaces_keep_their_own_bridges() {
    needs(&PROGRAMS);
    let (near, far) = (Netns::new(), Netns::new());
    let (first, second) = (Switch::start(&near), Switch::start(&far));
    for (switch, netns) in [(&first, &near), (&second, &far)] {
        bridge(netns, switch);
    }
    let mut watching = watch(&near, &[&first, &second], &["--netns", "all"]);
    let object = until(&mut watching, "both switches are seen", 20, |object| {
        let switches = object["ovs"].as_array().expect("a list");
        switches.len() == 2
            && switches.iter().all(|switch| switch["bridges"].as_array().is_some_and(|all| all.len() == 2))
    });
    let inode = |netns: &Netns| {
        let out = Command::new("stat").args(["-Lc", "%i", &format!("/proc/{}/ns/net", netns.pid())]).output();
        String::from_utf8(out.expect("stat runs").stdout).expect("a number").trim().parse::<u64>().expect("a number")
    };
    let mut places: Vec<u64> =
        object["ovs"].as_array().expect("a list").iter().filter_map(|switch| switch["netns"].as_u64()).collect();
    let mut expected = vec![inode(&near), inode(&far)];
    places.sort_unstable();
    expected.sort_unstable();
    assert_eq!(places, expected, "each is where its ovs-vswitchd is");
    let patches = object["links"].as_array().expect("links").iter().filter(|link| link["name"] == "pa");
    let mut namespaces: Vec<u64> = patches.filter_map(|link| link["netns"].as_u64()).collect();
    namespaces.sort_unstable();
    assert_eq!(namespaces, expected, "a patch port of that name in both namespaces");
    watching.stop();
}

/// A database that never stops speaking: the same update again and again, as fast as it is taken.
const FLOOD: &str = "
import json, socket, sys
server = socket.socket(socket.AF_UNIX); server.bind(sys.argv[1]); server.listen()
bridge = {'name': 'br-flood', 'datapath_type': 'netdev', 'fail_mode': ['set', []], 'ports': ['set', []]}
rows = lambda n: {'00000000-0000-0000-0000-%012d' % n: {'new': dict(bridge, name='br%d' % n)}}
while True:
    peer, _ = server.accept()
    try:
        asked, end = json.JSONDecoder().raw_decode(peer.recv(65536).decode())
        peer.sendall(json.dumps({'id': asked['id'], 'error': None, 'result': {'Bridge': rows(0)}}).encode())
        update = lambda n: json.dumps({'method': 'update', 'id': None, 'params': [asked['params'][1], {'Bridge': rows(n % 100)}]})
        text = ''.join(update(n) for n in range(5000)).encode()
        while True: peer.sendall(text)
    except OSError: pass
";

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_database_that_floods_costs_little_is_told_and_delays_no_tick() {
    needs(&["python3"]);
    let netns = Netns::new();
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("db.sock");
    let mut flood = netns.command("python3");
    flood.args(["-c", FLOOD]).arg(&path);
    let _flood = Kept(flood.spawn().expect("python3 starts"));
    await_that("it listens", 10, || path.exists());
    let mut command = netns.command(VNETTOP);
    command.args(["-d", "0.2", "--watch", "no-such-name", "--ovs-socket"]).arg(&path);
    let mut vnettop = Watching::start(command);
    let told = |object: &Value| {
        let problems = object["problems"].as_array().expect("a list").iter();
        problems
            .filter(|problem| problem["source"] == "ovs")
            .map(|problem| problem["text"].to_string())
            .collect::<Vec<String>>()
    };
    let mut object = Value::Null;
    await_that("it is told", 30, || {
        object = vnettop.next();
        told(&object).iter().any(|text| text.contains("sends faster than vnettop reads"))
    });
    let seen: Vec<Value> = (0..40).map(|_| vnettop.next()).collect();
    let mean = |field: &dyn Fn(&Value) -> f64| seen.iter().map(field).sum::<f64>() / 40.0;
    let cpu = mean(&|object| object["own"]["cpu"].as_f64().expect("a share"));
    assert!(cpu < 0.15, "following it stays cheap: {cpu:.3} of a core");
    let elapsed = mean(&|object| object["elapsed_s"].as_f64().expect("a time"));
    assert!((0.19..0.23).contains(&elapsed), "ticks keep their pace: {elapsed:.3} s from one to the next");
    let last = seen.last().expect("forty");
    assert_eq!(told(last).len(), 1, "one sentence, as long as it lasts: {:?}", told(last));
    assert!(!last["ovs"].as_array().expect("a list").is_empty(), "what it said is shown all the same");
}

fn told(object: &Value) -> String {
    let problems = object["problems"].as_array().expect("a list").iter().filter(|problem| problem["source"] == "ovs");
    problems.filter_map(|problem| problem["text"].as_str()).collect::<Vec<_>>().join("\n")
}

fn descriptors(watching: &Watching) -> usize {
    own_descriptors(watching.pid()).len()
}

/// What vnettop has open, but for files of /proc: those are kept for whatever runs on this machine, and come and go with it.
fn own_descriptors(pid: u32) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("vnettop runs").flatten();
    let open = entries.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    let mut open: Vec<PathBuf> = open.filter(|path| !path.starts_with("/proc")).collect();
    open.sort();
    open
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_database_that_takes_the_connection_and_says_nothing_is_told_and_holds_nothing_up() {
    needs(&["unshare"]);
    let netns = Netns::new();
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("db.sock");
    let listener = std::os::unix::net::UnixListener::bind(&path).expect("it binds");
    let mut command = netns.command(VNETTOP);
    command.args(["-d", "0.2", "--watch", "no-such-name", "--ovs-socket"]).arg(&path);
    let mut watching = Watching::start(command);
    let first = watching.next();
    let _connection = listener.accept().expect("it connects");
    assert_eq!(told(&first), "", "the first answer may take a moment");
    let object =
        until(&mut watching, "the silence is told", 12, |object| told(object).contains("has not answered for"));
    let sentence = told(&object);
    assert!(sentence.contains("no ports known"), "{sentence}");
    let held = descriptors(&watching);
    let later = until(&mut watching, "it goes on", 12, |object| told(object).contains("for 10 s"));
    assert!(!told(&later).contains('\n'), "one sentence: {}", told(&later));
    await_that("no descriptor is left behind", 5, || {
        watching.next();
        descriptors(&watching) <= held
    });
    listener.set_nonblocking(true).expect("it may");
    assert!(listener.accept().is_err(), "nobody connects again and again");
    watching.was_never_held_up();
    watching.stop();
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_database_that_stands_still_is_told_with_the_age_of_what_is_shown_until_it_goes_on() {
    needs(&PROGRAMS);
    let netns = Netns::new();
    let switch = Switch::start(&netns);
    bridge(&netns, &switch);
    let mut watching = watch(&netns, &[&switch], &[]);
    let counts = |object: &Value| link(object, "pa").is_some_and(|pa| !pa["rx_bytes"].is_null());
    let before = until(&mut watching, "the switch is seen", 20, counts);
    assert_eq!(told(&before), "", "all is well");
    let held = descriptors(&watching);
    let signal = |name: &str| {
        let sent = Command::new("kill").args([name, &switch.database().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "the database runs");
    };
    for _ in 0..2 {
        signal("-STOP");
        let is_old = |object: &Value| told(object).contains("s: its data is stale; check ovsdb-server");
        until(&mut watching, "that it stands still is told", 15, is_old);
        let object = until(&mut watching, "how old it is is told", 30, |object| told(object).contains("for 20 s"));
        assert_eq!(link(&object, "pa").map(|pa| &pa["rx_bytes"]), Some(&Value::Null), "shown, and not counted");
        signal("-CONT");
        until(&mut watching, "it is over when it goes on", 5, |object| told(object).is_empty());
        until(&mut watching, "it counts again", 15, counts);
        await_that("no descriptor is left behind", 5, || {
            watching.next();
            descriptors(&watching) <= held
        });
    }
    watching.was_never_held_up();
    watching.stop();
}
