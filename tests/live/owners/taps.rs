//! Taps of one name in several namespaces, held from outside, as slirp4netns and pasta hold those of rootless containers.

use super::{await_owner, holder, watch};
use crate::ground::{self, Netns, Watching, link, needs};

#[test]
#[ignore = "on the real kernel: tests/run"]
fn taps_of_one_name_are_each_their_own_holder_s() {
    needs(&["python3", "bash"]);
    let (host, inside) = (Netns::new(), [Netns::new(), Netns::new()]);
    let holders = ["taps0", "taps1"].map(|name| (name, holder(&host, "python3", name, "2", "")));
    for ((name, _), netns) in holders.iter().zip(&inside) {
        host.run(&format!("ip link set {name} netns {}", netns.pid()));
        netns.run(&format!("ip link set {name} name tap0 && ip link set tap0 up"));
    }
    for ((_, holder), netns) in holders.iter().zip(&inside) {
        // Of all namespaces, so that both taps are seen; each is looked for where it is.
        let mut command = watch(&host);
        command.args(["--netns", "all"]);
        let mut vnettop = Watching::start(command);
        let inode = netns.output("readlink /proc/self/ns/net");
        let inode: u64 = inode.trim().trim_start_matches("net:[").trim_end_matches(']').parse().expect("an inode");
        let name = format!("python3 {}", ground::pid(holder));
        await_in(&mut vnettop, inode, &name);
    }
    // One that is not shown is not mistaken for the one that is.
    let mut command = watch(&host);
    command.args(["--netns", &inside[1].pid().to_string()]);
    let mut vnettop = Watching::start(command);
    let name = format!("python3 {}", ground::pid(&holders[1].1));
    await_owner(&mut vnettop, "tap0", "its holder", |owner| owner["name"] == name.as_str());
    assert_eq!(link(&vnettop.next(), "tap0").expect("it stays")["owner"]["name"], name.as_str());
}

/// The tap0 of that namespace is as wanted.
fn await_in(vnettop: &mut Watching, netns: u64, name: &str) {
    ground::await_that(&format!("tap0 of {netns} is {name}'s"), 20, || {
        let object = vnettop.next();
        let links = object["links"].as_array().expect("a list");
        links.iter().any(|link| link["netns"] == netns && link["name"] == "tap0" && link["owner"]["name"] == name)
    });
}
