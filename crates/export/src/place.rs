//! Where an exporter listens, as the command line names it.

use std::net::SocketAddr;
use std::path::PathBuf;

/// Where it listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// TCP.
    Address(SocketAddr),
    /// A unix socket, which is made anew.
    Socket(PathBuf),
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Socket(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl std::str::FromStr for Place {
    type Err = String;

    /// `HOST:PORT`, `:PORT` for every address of the machine, `unix:PATH`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            return Ok(Self::Socket(path.into()));
        }
        let everywhere = text.strip_prefix(':').map(|port| format!("[::]:{port}"));
        let address = everywhere.as_deref().unwrap_or(text).replace("localhost:", "127.0.0.1:");
        address.parse().map(Self::Address).map_err(|_| "give ADDRESS:PORT, :PORT or unix:PATH".to_owned())
    }
}
