//! One test whose two ends name their connection differently: behind NAT it is one flow, and behind a program that copies the
//! second connection is a part of it and does not count again; live and from the recording.

mod nat;
mod observed;
mod relays;
