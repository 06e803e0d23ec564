//! TCP's sequence numbers have 32 bits, and a fast test uses each of them again after some seconds.

use super::{FAR, PROGRAMS, alone, latency_of, stages, us, watch};
use crate::ground::{Kept, iperf3_server, needs, pid, veth_pair};
use std::process::Stdio;

/// Bytes until a number comes again.
const WRAP: f64 = 4_294_967_296.0;

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_number_that_comes_again_is_another_byte() {
    needs(PROGRAMS);
    needs(&["iperf3"]);
    let _alone = alone();
    let (near, far) = veth_pair();
    let server = iperf3_server(&far, &[]);
    let mut client = near.command("iperf3");
    client.args(["-c", FAR, "-t", "120"]).stdout(Stdio::null());
    let client = Kept(client.spawn().expect("iperf3 starts"));
    let mut watching = watch(&[pid(&client), pid(&server)]);
    let (mut bytes, mut looked) = (0.0, 0);
    // Each number has been used so often while vnettop looked, or a minute is over.
    while bytes < 4.0 * WRAP && looked < 120 {
        let object = watching.next();
        let Some(latency) = latency_of(&object, pid(&client)) else { continue };
        looked += 1;
        let rate = object["tests"][0]["bits_per_s"].as_f64().unwrap_or(0.0);
        bytes += rate / 8.0 * 0.5;
        for stage in ["socket", "hop"].iter().flat_map(|name| stages(latency, name, false)) {
            // What fits into a socket passes in some ten milliseconds at the slowest rate that wraps here.
            let longest_us = us(&stage["so_far"], "max_us");
            assert!(longest_us < 5e5 || longest_us.is_nan(), "nothing waits for half a second: {stage}");
        }
    }
    assert!(bytes > WRAP, "the numbers came again: {bytes} bytes");
}
