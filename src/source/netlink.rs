//! Netlink as everyone here speaks it: framing, a dialogue with the kernel, the socket beneath. It knows no message's
//! meaning; what is asked and what an answer says belongs to the readers of links and of flows.

pub(in crate::source) mod client;
pub(in crate::source) mod generic;
pub(in crate::source) mod message;
pub(in crate::source) mod socket;
