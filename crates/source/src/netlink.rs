//! Netlink as everyone here speaks it: framing, a dialogue with the kernel, the socket beneath. It knows no message's
//! meaning; what is asked and what an answer says belongs to the readers of links and of flows.

pub mod client;
pub(crate) mod generic;
pub mod message;
pub mod socket;

/// What the readers of `sock_diag` have in common.
pub(crate) mod sock_diag {
    /// `SOCK_DIAG_BY_FAMILY`: of requests and of answers.
    pub const BY_FAMILY: u16 = 20;

    /// Where a number stands among those about a socket's memory (`SK_MEMINFO_VARS`, each of 32 bits), bytes.
    pub mod meminfo {
        /// `SK_MEMINFO_RCVBUF` (Linux 2.6.29).
        pub const RCVBUF: usize = 4;
        /// `SK_MEMINFO_SNDBUF` (Linux 2.6.29).
        pub const SNDBUF: usize = 3 * 4;
        /// `SK_MEMINFO_DROPS` (Linux 4.7).
        pub const DROPS: usize = 8 * 4;
    }
}
