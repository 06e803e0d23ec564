//! One test whose two ends name their connection differently: behind NAT it is one flow, and behind a program that copies the
//! second connection is a part of it and does not count again; live and from the recording.
//! What cannot run here says so by name; with `VNETTOP_REQUIRE_LIVE=1` that is a failure.

mod nat;
mod observed;
mod relays;
