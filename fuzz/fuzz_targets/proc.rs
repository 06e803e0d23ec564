//! Text of /proc and /sys, and command lines.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| vnettop::source::fuzzing::proc(bytes));
