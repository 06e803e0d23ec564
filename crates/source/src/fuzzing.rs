//! The parsers of outside input, for the fuzzers in `fuzz/`: they are private, and only a build of these has this (`cfg(fuzzing)`).

use crate::netlink::message::messages;
use crate::{
    benchmarks, bpf, cores, doctor, ethtool_ioctl, flows, links, losses, netlink, netns, nft, ovs, owners, paths,
};
use crate::{profile, scan, slow, steering, threads};

/// Netlink messages, and what drivers answer.
pub fn netlink(bytes: &[u8]) {
    for message in messages(bytes) {
        let _ = netlink::generic::parse(&message);
        flows::fuzz(&message);
        links::fuzz(&message);
        losses::fuzz(&message);
        ovs::fuzz(&message);
        paths::fuzz(&message);
        steering::fuzz(&message);
    }
    nft::fuzz(bytes);
    ethtool_ioctl::fuzz(bytes);
}

/// Text of /proc and /sys, command lines, what descriptors point to.
pub fn proc(bytes: &[u8]) {
    for line in scan::lines(bytes) {
        scan::fields(line).for_each(|field| {
            let _ = (scan::number(field), scan::hex32(field), scan::value_of(line, field));
        });
    }
    threads::fuzz(bytes);
    cores::fuzz(bytes);
    losses::fuzz_text(bytes);
    owners::fuzz(bytes);
    netns::fuzz(bytes);
    slow::fuzz(bytes);
    steering::fuzz_text(&String::from_utf8_lossy(bytes));
}

/// Command lines of iperf, and what it prints.
pub fn iperf(bytes: &[u8]) {
    benchmarks::fuzz(bytes);
    doctor::fuzz(bytes);
}

/// What a container engine answers over HTTP.
pub fn docker(bytes: &[u8]) {
    owners::fuzz_json(bytes);
    for is_over in [false, true] {
        if let Some(body) = slow::fuzz_http(bytes, is_over) {
            owners::fuzz_json(body);
        }
    }
}

/// What Open vSwitch sends.
pub fn ovs(bytes: &[u8]) {
    ovs::fuzz_json(bytes);
}

/// ELF files, perf records, lists of mappings and symbols, the kernel's types.
pub fn profile(bytes: &[u8]) {
    profile::fuzz(bytes);
    bpf::fuzz(bytes);
}
