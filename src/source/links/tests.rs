//! The reader against captured bytes, against a kernel that plays every trick, and against noise.
#![allow(clippy::unwrap_used, reason = "tests")]

mod kernel;
mod noise;
mod parsing;
mod reading;

/// A captured message or several; see tests/fixtures/netlink/README.md.
fn fixture(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/fixtures/netlink/{name}.bin", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}
