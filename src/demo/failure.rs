//! Why a child of the demo could not do its part.

use super::DemoError;
use super::rtnl::RtnlError;
use crate::networks::RoleError;

/// What went wrong in a child: its first line where its part of the demo was to be ready.
#[derive(Debug, thiserror::Error)]
pub enum ChildFailure {
    /// The command line, a system call, or a parent that is gone.
    #[error(transparent)]
    Role(#[from] RoleError),
    /// A link or an address.
    #[error(transparent)]
    Link(#[from] RtnlError),
    /// A demo held without a screen.
    #[error(transparent)]
    Demo(#[from] DemoError),
}
