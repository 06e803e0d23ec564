//! Open vSwitch's userspace datapath: the main thread carries the packets where there are no poll-mode threads.

use super::worker;
use crate::ground::machine::{HOST, Machine};
use crate::ground::switch::{PROGRAMS, Switch, pod};
use crate::ground::{await_that, listening, needs};
use serde_json::Value;

#[test]
#[ignore = "on the real kernel: tests/run"]
fn the_main_thread_of_a_userspace_switch_is_a_worker() {
    needs(PROGRAMS);
    let machine = Machine::new();
    let switch = Switch::start(&machine, HOST, "openvswitch");
    switch.bridge("br0");
    let pods = [1, 2].map(|number| pod(&machine, number, HOST));
    switch.set("add-port br0 veth1 -- add-port br0 veth2");
    let pid: u32 = machine.run("cat /run/openvswitch/ovs-vswitchd.pid").trim().parse().expect("a number");
    let _server = listening(machine.inside(&pods[1], "iperf3"), &[]);
    let mut watching = machine.watch();
    watching.next();
    let mut client = machine.inside(&pods[0], "iperf3");
    client.args(["-u", "-l", "500", "-b", "20M", "-t", "60", "-c", "198.19.0.2"]);
    let _client = machine.keep("client", client);
    let mut test = Value::Null;
    await_that("the main thread of ovs-vswitchd is a worker and does something", 20, || {
        // It is the only benchmark of the machine.
        test = watching.next()["tests"][0].clone();
        worker(&test, pid).is_some_and(|worker| worker["cpu"].as_f64().is_some_and(|cpu| cpu > 0.01))
    });
    let told = worker(&test, pid).expect("it was there");
    let words = ["role", "of", "name"].map(|field| told[field].clone());
    assert_eq!(words, ["ovs", "ovs-vswitchd", "ovs-vswitchd"], "{told}");
    assert_eq!(told["pid"], pid, "{told}");
    assert!(told["place"].as_str().is_some_and(|place| place.starts_with("between veth1 and ")), "{told}");
    let sched = machine.run(&format!("kill -STOP {pid}; cat /proc/{pid}/task/{pid}/sched"));
    let line = sched.lines().find(|line| line.starts_with("se.nr_migrations")).expect("the kernel counts them");
    let moves: u64 = line.rsplit(' ').next().and_then(|word| word.parse().ok()).expect("a number");
    await_that("its moves are the kernel's", 5, || {
        let object = watching.next();
        worker(&object["tests"][0], pid).is_some_and(|worker| worker["moves"] == moves)
    });
    machine.run(&format!("kill -CONT {pid}"));
    switch.go_on();
}
