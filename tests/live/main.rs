//! What is asked of the real kernel, in one binary, on namespaces and programs of its own: `cargo test --test live flows::` runs one
//! file of it.

#[path = "../frames/mod.rs"]
mod frames;

mod ground;

mod beside;
mod bpf_object;
mod causes;
mod churn;
mod compare;
mod containers;
mod datagrams;
mod demo;
mod descriptors;
mod doctor;
mod dropped;
mod export;
mod faces;
mod faults;
mod flows;
mod full;
mod hosts;
mod joins;
mod kernel;
mod limit;
mod links;
mod losses;
mod moves;
mod nothing;
mod one_key;
mod open_vswitch;
mod owners;
mod paths;
mod pin;
mod planted;
mod programs;
mod rates;
mod replay;
mod reported;
mod rights;
mod run;
mod saturation;
mod screen;
mod shares;
mod spaces;
mod stalled;
mod strangers;
mod switches;
mod systems;
mod tests;
mod threads;
mod together;
mod trace;
mod upcalls;
mod windows;
