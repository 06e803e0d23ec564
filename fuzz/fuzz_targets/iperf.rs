//! Command lines of iperf, and what it prints.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| vnettop::source::fuzzing::iperf(bytes));
