//! vnettop: virtual network interfaces, softirq load and migrating benchmark threads on one screen, and one key that
//! pins them.
//!
//! ```text
//! kernel ─► source ─► Sample ─► derive ─► Metrics ─► State ─► view ─► View ─► ui ─► terminal
//!           or a recording                └► report (JSON lines)
//! keyboard ─► input ─► Action ─► update(&mut State) ─► Option<Effect> ─► effect ─► Outcome ─► State
//! ```
//!
//! One direction: nothing to the left imports anything to its right. See ARCHITECTURE.md.

pub mod action;
pub mod app;
pub mod bpf;
pub mod cli;
pub mod demo;
pub mod derive;
pub mod effect;
pub mod input;
pub mod mounts;
pub mod record;
pub mod report;
pub mod sample;
pub mod sched;
pub mod source;
pub mod state;
pub mod term;
pub mod text;
pub mod ui;
pub mod update;
pub mod view;
