//! Netlink messages, and what drivers answer.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| vnettop::source::fuzzing::netlink(bytes));
