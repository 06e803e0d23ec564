//! Macvtaps of one name in namespaces of their own, each opened by a node that was made for it, as who has no udev there does.

use super::{await_owner, held, watch};
use crate::ground::{self, Kept, Netns, Watching, link, needs};
use std::path::Path;
use std::process::Command;

/// Opens a node and holds it.
const HOLDER: &str = "
import os, sys, time
node = os.open(sys.argv[1], os.O_RDWR)
print('held', flush=True)
time.sleep(3600)";

/// Longer than the known holders go without being looked at, in ticks of a tenth of a second.
const TICKS: usize = 60;

/// A node of the macvtap `mt0` of that namespace, by the number that its sysfs tells.
fn node(netns: &Netns, directory: &Path, name: &str) -> String {
    let path = directory.join(name).display().to_string();
    let number = "unshare --mount sh -c 'mount -t sysfs none /sys && cat /sys/class/macvtap/tap*/dev'";
    let number = netns.output(number);
    let (major, minor) = number.trim().split_once(':').expect("major and minor number of the device");
    let made = Command::new("mknod").args([&path, "c", major, minor]).status();
    assert!(made.is_ok_and(|status| status.success()), "the node {path} of {number} is made");
    path
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn macvtaps_are_their_holders_whatever_the_paths_of_their_nodes() {
    needs(&["python3", "mknod", "unshare"]);
    let (host, inside) = (Netns::new(), [Netns::new(), Netns::new()]);
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory for nodes");
    let nodes = [0, 1].map(|at: usize| {
        inside[at].run(
            "ip link add v0 type veth peer name v1; ip link set v0 up; ip link set v1 up
             ip link add link v0 name mt0 type macvtap mode bridge; ip link set mt0 up",
        );
        node(&inside[at], directory.path(), ["one", "another"][at])
    });
    // From outside, so that neither the path nor the holder's namespace says which of the two it is.
    let open = |at: usize| -> Kept { held(host.command("python3").args(["-c", HOLDER, &nodes[at]])) };
    let holders = [0, 1].map(open);
    for at in [0, 1] {
        let mut command = watch(&inside[at]);
        command.args(["--netns", "self"]);
        let mut vnettop = Watching::start(command);
        let named = |holder: &Kept| format!("python3 {}", ground::pid(holder));
        let first = named(&holders[at]);
        let owner = await_owner(&mut vnettop, "mt0", "its own holder", |owner| owner["name"] == first.as_str());
        assert_eq!((&owner["by"], &owner["type"]), (&"macvtap".into(), &"process".into()), "{owner}");
        for _ in 0..TICKS {
            let owner = link(&vnettop.next(), "mt0").expect("it stays")["owner"].clone();
            assert_eq!(owner["name"], first.as_str(), "it stays its holder's");
        }
    }
    // Another one takes it over.
    let mut vnettop = Watching::start(watch(&inside[0]));
    let [first, _second] = holders;
    let name = format!("python3 {}", ground::pid(&first));
    await_owner(&mut vnettop, "mt0", "its holder", |owner| owner["name"] == name.as_str());
    drop(first);
    let next = open(0);
    let name = format!("python3 {}", ground::pid(&next));
    await_owner(&mut vnettop, "mt0", "the next holder", |owner| owner["name"] == name.as_str());
}
