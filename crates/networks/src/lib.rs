//! Networks that vnettop makes itself, and what has to run in them: those of `vnettop compare`, and what `vnettop demo` shares with
//! them. Everything lies in namespaces that only processes of vnettop's own hold: with the last of them the kernel takes links, rules,
//! mounts and files away, however vnettop ends. It measures nothing.
//!
//! Each is a shell script with a name; which of them this machine can make is told without trying:
//!
//! ```
//! use vnettop_networks::{KINDS, NetworkKind};
//!
//! for kind in KINDS {
//!     println!("{}: {}", kind.what(), kind.missing().unwrap_or_else(|| "can be made".to_owned()));
//! }
//! let veth = NetworkKind::named("veth").expect("the name of a script");
//! assert!(veth.script().contains("type veth"));
//! ```
//!
//! A program that makes one answers to its own name for those that hold it: it calls [`run_child`] first in `main`.

mod child;
mod guardian;
mod kinds;
mod load;
mod namespace;
mod network;
mod probe;
mod relay;
mod role;
pub mod standin;
mod sys;
mod wire;

pub use child::run_child;
pub use kinds::{KINDS, NetworkKind, Through, is_installed};
pub use load::{ASK, ECHO, FILL, LOAD_NAME, SINK};
pub use namespace::{NamespaceError, enter_private, is_capable_root};
pub use network::{BuildError, NetworkEnd, PrivateNetwork, become_program};
pub use probe::{PROBE, PROBE_NAME};
pub use role::{
    READY, RoleError, RoleOptions, SUBCOMMAND, cannot, command, die_with, end, exit_code, first_line, pid, ready, say,
};
pub use standin::ClientRun;
pub use sys::{TunKind, attach_tun, leave_namespaces};
pub use wire::{TUN_DEVICE, open_device};
