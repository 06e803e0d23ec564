//! What is asked of the real kernel, in one binary, on namespaces and programs of its own: `cargo test --test live paths::` runs one
//! file of it.
#![allow(clippy::too_many_lines, reason = "a test is one story, read from its beginning to its end")]

#[path = "../frames/mod.rs"]
mod frames;

mod ground;

mod bpf_object;
mod containers;
mod convert;
mod demo;
mod descriptors;
mod doctor;
mod export;
mod faces;
mod measures;
mod nothing;
mod open_vswitch;
mod owners;
mod paths;
mod pin;
mod release;
mod replay;
mod reported;
mod rights;
mod screen;
mod steer;
mod switches;
mod systems;
