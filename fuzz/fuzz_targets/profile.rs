//! ELF files, perf records, lists of mappings and symbols, the kernel's types.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| vnettop::source::fuzzing::profile(bytes));
