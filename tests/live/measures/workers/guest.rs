//! A guest that holds two taps: its threads, what goes into it and comes out, what it loses, and that it is what limits.

use super::{client, of_client, until_it_ends, watch, worker};
use crate::ground::forwarder::{FAR, Forwarder, PROGRAMS};
use crate::ground::line::inode;
use crate::ground::truth::present;
use crate::ground::{await_that, iperf3_server, needs, needs_two_cores};
use serde_json::Value;
use std::process::Command;

/// The connection of a test that carries data.
fn data(test: &Value) -> Option<&Value> {
    test["flows"].as_array()?.iter().find(|flow| flow["control"] == false && flow["proto"] == "udp")
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn the_threads_of_a_guest_are_told_with_the_moves_of_the_kernel_and_its_packets_with_the_taps() {
    needs(&PROGRAMS);
    needs_two_cores();
    let guest = Forwarder::start(&[]);
    let _server = iperf3_server(&guest.far, &[]);
    let mut watching = watch();
    let client = client(&guest.near, &format!("-c {FAR} -u -b 20M -l 500 -t 60"));
    let tids = [guest.pid(), guest.copying()];
    let mut before = None;
    await_that("both threads are workers", 20, || {
        let object = watching.next();
        let seen = |test: &Value| tids.map(|tid| worker(test, tid).and_then(|worker| worker["moves"].as_u64()));
        before = of_client(&object, &client).map(seen);
        before.is_some_and(|moves| moves.iter().all(Option::is_some))
    });
    for core in ["0", "1", "0", "1", "0-1"] {
        Command::new("taskset").args(["-cp", core, &tids[1].to_string()]).output().expect("taskset runs");
        watching.next();
    }
    // What it had to move stands still with it; the client goes on, so there is a test.
    guest.signal("STOP");
    present(&mut watching);
    let object = present(&mut watching);
    let test = of_client(&object, &client).unwrap_or_else(|| panic!("there is a test: {}", object["tests"]));
    for (tid, role) in tids.into_iter().zip(["vmm", "vcpu"]) {
        let told = worker(test, tid).unwrap_or_else(|| panic!("the {role} is a worker: {}", test["workers"]));
        assert_eq!(told["role"], role, "{told}");
        assert_eq!(told["moves"], guest.moves(tid), "se.nr_migrations of the {role}");
        assert_eq!(
            (&told["pid"], &told["hop"], &told["place"]),
            (&tids[0].into(), &4.into(), &"between t1 and t2".into())
        );
    }
    let moved = guest.moves(tids[1]) - before.expect("it was seen")[1].expect("it was a worker");
    assert!(moved >= 3, "the vCPU was moved meanwhile: {moved}");
    let flow = data(test).expect("it has a flow");
    let carriers = flow["path_carriers"].as_array().expect("a list");
    let told = |carrier: &Value| ["packets_in", "packets_out"].map(|field| carrier[field].as_u64().expect("a count"));
    let [went_in, came_out] = guest.counted();
    assert!(came_out > 1_000, "it has carried: {came_out}");
    assert_eq!(carriers.iter().map(told).collect::<Vec<_>>(), [[went_in, came_out]], "as the taps count: {carriers:?}");
    let carrier = &carriers[0];
    assert_eq!((&carrier["kind"], &carrier["pid"], &carrier["at"]), (&"guest".into(), &tids[0].into(), &4.into()));
    let of = |tid: u32| carrier["threads"].as_array().is_some_and(|all| all.contains(&tid.into()));
    assert!(tids.into_iter().all(of), "both threads are its own: {carrier}");
    guest.signal("CONT");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn what_a_guest_drops_is_lost_in_it() {
    needs(&PROGRAMS);
    let guest = Forwarder::start(&["--drop", "10"]);
    let _server = iperf3_server(&guest.far, &[]);
    let [in_before, out_before] = guest.counted();
    let mut watching = watch();
    let client = client(&guest.near, &format!("-c {FAR} -u -b 10M -l 500 -t 5"));
    let mut objects = until_it_ends(&mut watching, &client);
    objects.extend((0..5).map(|_| watching.next()));
    let [went_in, came_out] = guest.counted();
    let dropped = (went_in - in_before) as f64 - (came_out - out_before) as f64;
    // Those of its last moments are told once it has ended.
    let tests = objects.iter().filter_map(|object| of_client(object, &client));
    let losses = tests.clone().flat_map(|test| test["losses"].as_array().expect("a list"));
    let ours: Vec<&Value> = losses.filter(|loss| loss["place"] == "forwarder").collect();
    let told: f64 = ours.iter().filter_map(|loss| loss["packets"].as_f64()).sum();
    eprintln!("dropped {dropped}, told {told} in {} objects", ours.len());
    assert!(dropped > 1_000.0, "it drops one of ten: {dropped}");
    let paths =
        || tests.clone().filter_map(data).map(|flow| (&flow["path_gap"], &flow["path_carriers"])).collect::<Vec<_>>();
    assert!((told - dropped).abs() <= f64::min(5.0, dropped * 0.01), "told {told} of {dropped}: {:?}", paths());
    let name = format!("python3 {}", guest.pid());
    let here = (&"t1".into(), &inode(&guest.host).into(), &name.into());
    assert!(ours.iter().all(|loss| (&loss["link"], &loss["netns"], &loss["name"]) == here), "by its name: {ours:?}");
}

/// A test of these arguments through a guest that burns 50 µs a packet: its limit is that guest.
fn limited(arguments: &str) {
    let guest = Forwarder::start(&["--burn-us", "50"]);
    let _server = iperf3_server(&guest.far, &[]);
    let mut watching = watch();
    let client = client(&guest.near, &format!("-c {FAR} -t 8 {arguments}"));
    let objects = until_it_ends(&mut watching, &client);
    let (mut age_s, mut told) = (0.0, Vec::new());
    for object in &objects {
        let Some(test) = of_client(object, &client) else { continue };
        age_s += object["elapsed_s"].as_f64().expect("a time");
        if age_s > 1.5 && test["ended_t_ns"].is_null() {
            told.push((test["limit"]["kind"].clone(), test["limit"]["sentence"].to_string()));
        }
    }
    let by_name = format!("python3 {} is the limit: its vCPU {}", guest.pid(), guest.copying());
    let named = told.iter().filter(|(kind, sentence)| kind == "worker" && sentence.contains(&by_name)).count();
    eprintln!("{arguments}: {named} of {}", told.len());
    assert!(told.len() >= 20 && named * 10 >= told.len() * 9, "{named} of {}: {told:#?}", told.len());
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_guest_that_is_too_slow_for_a_flood_is_the_limit() {
    needs(&PROGRAMS);
    needs_two_cores();
    limited("-u -b 0 -l 64");
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_guest_that_is_too_slow_for_a_stream_is_the_limit() {
    needs(&PROGRAMS);
    needs_two_cores();
    limited("-b 0");
}
