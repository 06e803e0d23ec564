//! A proxy that makes a process for each connection: the one that copies is the worker.

use super::{client, of_client, watch, worker};
use crate::ground::line::Line;
use crate::ground::{await_that, iperf3_server, needs, pid};

/// CPU time of a process, clock ticks.
fn ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit(") ").next().unwrap_or_default().split(' ').skip(11).take(2);
    fields.filter_map(|field| field.parse::<u64>().ok()).sum()
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn the_process_of_a_proxy_that_copies_the_data_is_a_worker() {
    needs(&["iperf3", "ip", "nsenter", "socat"]);
    let line = Line::new();
    let relay = line.router.keep("socat", &["TCP-LISTEN:5301,fork,reuseaddr", "TCP:198.18.2.1:5201"]);
    // Port 5301 in state LISTEN.
    await_that("the program listens", 10, || line.router.output("cat /proc/net/tcp6 /proc/net/tcp").contains(":14B5 "));
    let _server = iperf3_server(&line.far, &[]);
    let mut watching = watch();
    let client = client(&line.near, "-c 198.18.1.254 -p 5301 -t 60");
    let children = format!("/proc/{0}/task/{0}/children", pid(&relay));
    let busiest = || {
        let text = std::fs::read_to_string(&children).expect("it runs");
        text.split(' ')
            .filter_map(|word| word.parse().ok())
            .max_by_key(|&child| ticks(child))
            .filter(|&child| ticks(child) > 20)
    };
    let mut copies = None;
    await_that("one of its processes copies", 20, || {
        copies = busiest();
        copies.is_some()
    });
    let copies = copies.expect("it was there");
    let (mut told, mut last) = (None, None);
    await_that("it is a worker", 20, || {
        let object = watching.next();
        last = of_client(&object, &client).map(|test| test["workers"].clone());
        told = of_client(&object, &client).and_then(|test| worker(test, copies)).cloned();
        told.as_ref().is_some_and(|told| told["cpu"].as_f64().is_some_and(|cpu| cpu > 0.05))
    });
    let told = told.expect("it was there");
    let words = ["role", "name", "of"].map(|field| told[field].clone());
    assert_eq!(words, ["relay", "socat", "socat"], "{told}");
    assert_eq!((&told["pid"], &told["place"]), (&copies.into(), &"between r0 and r1".into()), "{last:?}");
}
