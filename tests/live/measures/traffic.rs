//! A router on which nobody is watched: what passes it, and what its queue drops, beside the kernel's own counters.

use crate::ground::line::Line;
use crate::ground::{VNETTOP, needs};
use std::process::Stdio;
use std::time::Instant;

/// Of what the kernel counted in the same seconds.
const OFF: f64 = 0.1;

/// The number before some words.
fn before(text: &str, words: &str) -> f64 {
    let at = text.find(words).unwrap_or_else(|| panic!("it says '{words}': {text}"));
    let number = text[..at].rsplit(' ').next().unwrap_or_default();
    let (digits, times) = number.strip_suffix('k').map_or((number, 1.0), |digits| (digits, 1e3));
    times * digits.parse::<f64>().unwrap_or_else(|_| panic!("a number before '{words}': {text}"))
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn what_a_router_forwards_and_drops_is_told_as_the_kernel_counts_it() {
    needs(&["iperf3", "ip", "tc", "nsenter"]);
    let line = Line::new();
    line.quiet();
    let _server = line.serve();
    line.router.run("tc qdisc replace dev r1 root tbf rate 30mbit burst 20k limit 20k");
    let _client = line.near.keep(line.program(), &["-c", "198.18.2.1", "-u", "-b", "60M", "-l", "1400", "-t", "60"]);
    let counted = || {
        let read = "cat /proc/net/dev | sed -n 's/.*r0: *[0-9]* *\\([0-9]*\\) .*/\\1/p'; tc -s qdisc show dev r1 root | sed -n 's/.*dropped \\([0-9]*\\),.*/\\1/p'";
        let said = line.router.output(read);
        let numbers: Vec<f64> = said.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        (Instant::now(), numbers[0], numbers[1])
    };
    let mut command = line.router.command(VNETTOP);
    command.args(["--watch", "nobody-is-called-so", "-d", "0.5", "-n", "3", "--lines", "3"]).stdin(Stdio::null());
    let first = counted();
    let out = command.output().expect("vnettop runs");
    let last = counted();
    let said = String::from_utf8_lossy(&out.stdout);
    let newest = said.lines().last().unwrap_or_else(|| panic!("it says something: {out:?}"));
    assert!(newest.contains("no test runs. r0 → r1: "), "{said}");
    let seconds = (last.0 - first.0).as_secs_f64();
    let [came, dropped] = [last.1 - first.1, last.2 - first.2].map(|packets| packets / seconds);
    let (rate, drops) = newest.split_once(" tbf on r1 drops ").unwrap_or_else(|| panic!("the queue drops: {newest}"));
    let [told, told_dropped] = [rate, drops].map(|text| before(text, " packets/s."));
    eprintln!("came {came:.0}/s, told {told:.0}/s; dropped {dropped:.0}/s, told {told_dropped:.0}/s");
    assert!(newest.contains(" come in, more than the 30 Mbit/s that it is set to. "), "{newest}");
    assert!((told / came - 1.0).abs() < OFF, "{came} packets/s came in: {newest}");
    assert!((told_dropped / dropped - 1.0).abs() < OFF, "{dropped} packets/s were dropped: {newest}");
}
