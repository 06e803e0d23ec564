//! The reader against captured bytes, against a kernel that plays every trick, and against noise.
#![allow(clippy::unwrap_used, reason = "tests")]

mod drivers;
mod kernel;
mod kinds;
mod noise;
mod parsing;
mod reading;

/// What `ip -d -j link` (and `ethtool`) said of the links of a dump, one object each.
fn said(name: &str) -> Vec<serde_json::Value> {
    let path = format!("{}/../../tests/fixtures/netlink/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A captured message or several; see tests/fixtures/netlink/README.md.
fn fixture(name: &str) -> Vec<u8> {
    let path = format!("{}/../../tests/fixtures/netlink/{name}.bin", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}
