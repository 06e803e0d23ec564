//! The journal of pins and of settings of links.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| vnettop::effect::fuzz_journal(bytes));
