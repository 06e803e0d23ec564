//! Why a child of the demo could not do its part: operation, object and cause.

use super::DemoError;
use super::rtnl::RtnlError;
use std::io;

/// What went wrong in a child: its first line where its part of the demo was to be ready.
#[derive(Debug, thiserror::Error)]
pub enum ChildFailure {
    /// The command line.
    #[error("demo-child: {0}")]
    Usage(String),
    /// The parent is gone.
    #[error("the demo stopped before its child started")]
    Orphaned,
    /// A system call.
    #[error("cannot {operation}: {error}")]
    Run {
        /// With its object, as in "make a network namespace for veth-srv".
        operation: String,
        #[source]
        error: io::Error,
    },
    /// A link or an address.
    #[error(transparent)]
    Link(#[from] RtnlError),
    /// A demo held without a screen.
    #[error(transparent)]
    Demo(#[from] DemoError),
}

/// The failure of an operation, named with its object.
pub fn cannot<E: Into<io::Error>>(operation: impl Into<String>) -> impl FnOnce(E) -> ChildFailure {
    |error| ChildFailure::Run { operation: operation.into(), error: error.into() }
}
