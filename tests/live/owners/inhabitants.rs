//! Whose a namespace is that several live in: the numbers of processes say nothing of who was first, and somebody of the
//! host may be among them.

use super::{Group, await_owner, held};
use crate::ground::machine::Machine;
use crate::ground::{Kept, Watching, link, needs};

const ID: &str = "6ce404cac50ede45e1d3cb99b6866ef5599901e04c26e8dfea7b6befe566d2b6";

/// A process in a namespace of the machine, with about this number, in a control group or in none.
fn inhabitant(machine: &Machine, space: &str, number: u32, group: Option<&Group>) -> Kept {
    machine.run(&format!("echo {number} > /proc/sys/kernel/ns_last_pid"));
    let join = group.map_or_else(String::new, |group| format!("echo $$ > {}/cgroup.procs; ", group.0.display()));
    let script = format!("{join}echo held; exec sleep 3600");
    held(machine.inside(space, "sh").args(["-c", &script]))
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_namespace_is_its_oldest_container_s_whatever_the_numbers_of_its_inhabitants() {
    needs(&["setpriv", "nsenter"]);
    let group = |path: &str| Group::new(&[path]).expect("a control group can be made");
    let (docker, sidecar) = (group(&format!("docker-{ID}.scope")), group("lxc.payload.vnettop-side"));
    let machine = Machine::new();
    let (first, second) = (machine.space("one"), machine.space("two"));
    machine.run(
        "ip link add own0 type veth peer name own1 netns one; ip link add own2 type veth peer name own3 netns two",
    );
    // The numbers wrap after the second.
    let inhabitants = [(20_000, None), (30_000, Some(&docker)), (1_000, Some(&sidecar)), (500, None)];
    let _inside = inhabitants.map(|(number, group)| inhabitant(&machine, &first, number, group));
    let _host = inhabitant(&machine, &second, 400, None);
    machine.run("echo 3000 > /proc/sys/kernel/ns_last_pid");
    let mut vnettop: Watching = machine.watch();
    let object = vnettop.next();
    for name in ["own0", "own1"] {
        let owner = &link(&object, name).expect("it is there")["owner"];
        assert_eq!(owner["id"], ID[..12], "{name} is the container's at first sight: {owner}");
    }
    assert!(link(&object, "own2").expect("it is there")["owner"].is_null(), "where only the host lives it is nobody's");
    // A container joins it, with a number above the host's and below vnettop's own.
    let _joined = inhabitant(&machine, &second, 600, Some(&sidecar));
    await_owner(&mut vnettop, "own2", "the container", |owner| owner["name"] == "vnettop-side");
    assert_eq!(
        link(&vnettop.next(), "own0").expect("it stays")["owner"]["id"],
        ID[..12],
        "which changes nobody else's"
    );
}
