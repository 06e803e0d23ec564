//! Network namespaces as they come and go: which links are in which, whose other end is where, and that nothing of
//! vnettop keeps one alive.

use crate::ground::{self, Netns, Watching, link, needs};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Duration, Instant};

/// A named namespace of `ip netns`, gone with the value.
struct Named(String);

impl Named {
    fn new(word: &str) -> Self {
        let named = Self(format!("vnettop-{word}-{}", std::process::id()));
        ip(&format!("netns add {}", named.0));
        ip(&format!("-n {} link set lo up", named.0));
        named
    }

    fn delete(&self) {
        ip(&format!("netns del {}", self.0));
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        let _gone_already = Command::new("ip").args(["netns", "del", &self.0]).output();
    }
}

fn ip(line: &str) {
    let out = Command::new("ip").args(line.split(' ')).output().expect("ip runs");
    assert!(out.status.success(), "ip {line}: {}", String::from_utf8_lossy(&out.stderr));
}

fn inode(pid: u32) -> u64 {
    let link = std::fs::read_link(format!("/proc/{pid}/ns/net")).expect("a process of the test's");
    let text = link.to_string_lossy().into_owned();
    text.trim_start_matches("net:[").trim_end_matches(']').parse().expect("an inode")
}

fn list<'a>(object: &'a Value, what: &str) -> impl Iterator<Item = &'a Value> {
    object[what].as_array().expect("a list").iter()
}

fn space(object: &Value, netns: u64) -> Option<&Value> {
    object["namespaces"].as_array()?.iter().find(|space| space["netns"] == netns)
}

fn link_in<'a>(object: &'a Value, netns: u64, name: &str) -> Option<&'a Value> {
    object["links"].as_array()?.iter().find(|link| link["netns"] == netns && link["name"] == name)
}

/// vnettop inside a namespace, looking at all of them.
fn watch(home: &Netns, more: &[&str]) -> Watching {
    let mut command = home.command(ground::VNETTOP);
    command.args(["-d", "0.2"]).args(more);
    Watching::start(command)
}

/// The first object that is as wanted, and after how many more it came; within ten seconds.
fn until(watching: &mut Watching, what: &str, is: impl Fn(&Value) -> bool) -> (Value, usize) {
    let end = Instant::now() + Duration::from_secs(10);
    for count in 1.. {
        let object = watching.next();
        if is(&object) {
            return (object, count);
        }
        assert!(Instant::now() < end, "{what} within ten seconds: {}", object["namespaces"]);
    }
    unreachable!("the loop ends by returning")
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_pair_between_namespaces_has_both_ends_and_each_knows_the_other() {
    needs(&["ip"]);
    let (home, far) = ground::veth_pair();
    let (here, there) = (inode(home.pid()), inode(far.pid()));
    let mut watching = watch(&home, &["--netns", "all"]);
    let (object, _) = until(&mut watching, "both ends are seen", |object| {
        link_in(object, here, "v0").is_some() && link_in(object, there, "v1").is_some()
    });
    let ends = link_in(&object, here, "v0").zip(link_in(&object, there, "v1"));
    let (near_end, far_end) = ends.expect("both ends");
    assert_eq!(near_end["peer"]["netns"], there, "the near end knows where its peer is: {near_end}");
    assert_eq!(near_end["peer"]["name"], "v1", "and what it is called");
    assert_eq!(
        (&far_end["peer"]["netns"], &far_end["peer"]["name"]),
        (&here.into(), &"v0".into()),
        "so does the far one"
    );
    assert_eq!(far_end["claim_mbps"], 10000, "claims are asked for there too");
    let first = space(&object, there).expect("the namespace is listed");
    let lives = first["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).expect("a process");
    assert_eq!(inode(lives), there, "with a process that lives in it");
    let only = watch(&home, &["--netns", &there.to_string()]).next();
    let places: Vec<_> = list(&only, "links").map(|link| link["netns"].as_u64()).collect();
    assert!(!places.is_empty() && places.iter().all(|netns| *netns == Some(there)), "one namespace alone: {places:?}");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn namespaces_that_come_and_go_are_seen_and_none_is_kept_alive() {
    needs(&["ip"]);
    let home = Netns::new();
    come_and_go(&home, "comes", watch(&home, &["--netns", "all"]));
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_kernel_that_tells_nobody_of_an_end_keeps_no_namespace_alive_either() {
    needs(&["ip", "strace"]);
    let home = Netns::new();
    // As before Linux 5.3.
    let mut command = home.command("strace");
    command.args(["-f", "-qq", "-o", "/dev/null", "--seccomp-bpf", "-e", "trace=pidfd_open"]);
    command.args(["-e", "inject=pidfd_open:error=ENOSYS"]);
    command.args([ground::VNETTOP, "-d", "0.2", "--netns", "all"]);
    come_and_go(&home, "untold", Watching::start(command));
}

/// Namespaces that are made while vnettop watches are seen, and none stays because of it.
fn come_and_go(home: &Netns, word: &str, mut watching: Watching) {
    watching.next();
    let named = Named::new(word);
    let (object, ticks) = until(&mut watching, "a new namespace is seen", |object| {
        list(object, "namespaces").any(|space| space["name"] == named.0.as_str())
    });
    assert!(ticks <= 3, "it is there at once, not after {ticks} ticks");
    assert!(list(&object, "links").any(|link| link["netns_name"] == named.0.as_str()), "its lo too");
    // A pair whose far end is in a namespace that only a process keeps.
    let far = Netns::new();
    let there = inode(far.pid());
    home.run(&format!("ip link add w0 type veth peer name w1 netns {}", far.pid()));
    until(&mut watching, "the pair is seen", |object| link_in(object, there, "w1").is_some());
    drop(far);
    let (_, ticks) =
        until(&mut watching, "the near end goes with the namespace", |object| link(object, "w0").is_none());
    assert!(ticks <= 10, "vnettop lets go of it at once: the pair was gone after {ticks} ticks");
    named.delete();
    until(&mut watching, "a deleted namespace is gone", |object| {
        !list(object, "namespaces").any(|space| space["name"] == named.0.as_str())
    });
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn namespaces_that_were_seen_leave_no_descriptor_behind() {
    needs(&["ip"]);
    let home = Netns::new();
    let mut watching = watch(&home, &["--netns", "all"]);
    let descriptors = |watching: &Watching| {
        let listed = std::fs::read_dir(format!("/proc/{}/fd", watching.pid())).expect("it runs");
        i64::try_from(listed.count()).expect("few")
    };
    let spaces = |object: &Value| i64::try_from(list(object, "namespaces").count()).expect("few");
    let (begun, before) = (spaces(&watching.next()), descriptors(&watching));
    for round in 0..10 {
        let named = Named::new(&format!("leak{round}"));
        let is_named = |object: &Value| list(object, "namespaces").any(|space| space["name"] == named.0.as_str());
        until(&mut watching, "the namespace is seen", is_named);
        named.delete();
        until(&mut watching, "it is gone", |object| !is_named(object));
    }
    // Others come and go on this machine too; each takes five.
    let (ended, after) = (spaces(&watching.next()), descriptors(&watching));
    let others = 5 * (ended - begun).max(0);
    assert!(
        after <= before + others + 20,
        "fifty would be left open: {before} before, {after} after, {others} others'"
    );
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn who_enters_a_namespace_sees_that_one() {
    needs(&["ip"]);
    let (home, _far) = ground::veth_pair();
    let mut watching = watch(&home, &[]);
    let object = watching.next();
    let here = inode(home.pid());
    let places: Vec<_> = list(&object, "links").map(|link| link["netns"].as_u64()).collect();
    assert!(
        places.iter().all(|netns| *netns == Some(here)),
        "the usual choice inside a namespace is itself: {places:?}"
    );
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn several_namespaces_may_be_named_and_one_that_is_not_there_is_refused() {
    needs(&["ip"]);
    let (home, far) = ground::veth_pair();
    let _other = Netns::new();
    let (here, there) = (inode(home.pid()), inode(far.pid()));
    let process = far.pid().to_string();
    let mut watching = watch(&home, &["--netns", "self", "--netns", &process]);
    let (object, _) = until(&mut watching, "both ends are seen", |object| {
        link_in(object, here, "v0").is_some() && link_in(object, there, "v1").is_some()
    });
    let places = list(&object, "links").filter_map(|link| link["netns"].as_u64());
    assert_eq!(places.collect::<BTreeSet<_>>(), BTreeSet::from([here, there]), "the two that were named");
    let refused =
        Command::new(ground::VNETTOP).args(["--json", "-n", "1", "--netns", "self", "--netns", "no-such"]).output();
    let refused = refused.expect("vnettop runs");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("there is no network namespace 'no-such': choose from all, self"), "{said}");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn the_demo_shows_its_three_namespaces_and_the_way_between_its_ends() {
    needs(&["iperf3"]);
    let mut command = Command::new(ground::VNETTOP);
    command.args(["demo", "-d", "0.5"]);
    let mut watching = Watching::start(command);
    let way = ["eth0", "veth-cli", "demo0", "veth-srv", "eth0"];
    let (object, _) = until(&mut watching, "the way is drawn", |object| {
        list(object, "flows").any(|flow| {
            let path = flow["path"].as_array().into_iter().flatten();
            path.map(|hop| hop["name"].as_str()).eq(way.map(Some))
        })
    });
    let places: BTreeSet<_> = list(&object, "links").filter_map(|link| link["netns"].as_u64()).collect();
    assert_eq!(places.len(), 3, "its own namespaces and nobody else's");
}
