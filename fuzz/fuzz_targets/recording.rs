//! Recordings: read to the end or to one sentence, and derived.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use vnettop::derive::Derivation;
use vnettop::record::Recording;

fuzz_target!(|bytes: &[u8]| {
    let mut file = File::from(memfd_create("recording", MemfdFlags::CLOEXEC).expect("memory"));
    file.write_all(bytes).expect("memory");
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let Ok(mut recording) = Recording::open(&path) else { return };
    let mut derivation = Derivation::default();
    while let Ok(Some(item)) = recording.next_item() {
        drop(derivation.advance(item));
    }
});
