//! Answers of a Prometheus: elements, or one sentence.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| vnettop::prometheus::fuzz(text));
