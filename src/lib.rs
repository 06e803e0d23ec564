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
//!
//! From a recording to a frame:
//!
//! ```
//! use ratatui::{buffer::Buffer, layout::Rect};
//! use std::path::Path;
//! use vnettop::derive::Derivation;
//! use vnettop::record::Recording;
//! use vnettop::state::{Settings, State};
//! use vnettop::ui::{Theme, paint, text};
//! use vnettop::view::prepare;
//!
//! let mut recording = Recording::open(Path::new("assets/kunpeng.vnettop.zst"))?;
//! let (mut derivation, mut state) = (Derivation::default(), State::new(Settings::default()));
//! while let Some(item) = recording.next_item()? {
//!     if let Some(metrics) = derivation.advance(item) {
//!         state.receive(metrics);
//!     }
//! }
//! let view = prepare(&state, derivation.history(), 200, 60);
//! let mut frame = Buffer::empty(Rect::new(0, 0, 200, 60));
//! paint(&view, Theme::plain(true), &mut frame);
//! assert!(text(&frame).contains("docker0"), "the bridge of the recorded machine is on it");
//! # Ok::<(), vnettop::record::RecordError>(())
//! ```

pub mod action;
pub mod app;
pub mod cli;
pub mod config;
pub mod demo;
pub mod effect;
pub mod input;
#[cfg(feature = "fleet")]
pub mod prometheus;
pub mod report;
pub mod rights;
pub mod state;
pub mod term;
pub mod trust;
pub mod ui;
pub mod update;
pub mod view;

pub use vnettop_convert as convert;
pub use vnettop_derive as derive;
pub use vnettop_export as export;
pub use vnettop_networks as networks;
pub use vnettop_record as record;
pub use vnettop_sample as sample;
pub use vnettop_sample::text;
pub use vnettop_source as source;
pub use vnettop_source::{clock, sched};
