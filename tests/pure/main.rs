//! What needs no root, no namespace and no installed program, in one binary: recordings and worlds made by hand through the whole
//! program, and the project's own rules. `cargo test --test pure screens::` runs one file of it.
#![allow(clippy::too_many_lines, reason = "a test is one story, read from its beginning to its end")]

#[path = "../frames/mod.rs"]
mod frames;

mod fixture;
mod world;

mod bands;
mod causes;
mod commands;
mod cores;
mod crowds;
mod cuts;
mod damaged;
mod derivations;
mod doctor;
mod expositions;
mod first_minutes;
mod hosts;
mod house;
mod journeys;
mod json_fields;
mod json_shares;
mod kubectl;
mod legends;
mod mouse;
mod moves;
mod old_recordings;
mod packages;
mod pictures;
mod placements;
mod readme;
mod recording_format;
mod recordings;
mod release;
mod report;
mod rooms;
mod routers;
mod schemas;
mod screens;
mod screens_cost;
mod screens_kernel;
mod screens_looking;
mod seeks;
mod shipped_pages;
mod spoken;
mod story;
mod strings;
mod systems;
mod threads;
mod threats;
mod timelines;
mod traces;
