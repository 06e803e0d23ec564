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

    /// `HOST:PORT`, `:PORT` for every address of the machine, `unix:PATH`. Brackets may be around an address of either family: who
    /// puts them around a variable, as in a pod, does not know which it is.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            return Ok(Self::Socket(path.into()));
        }
        let everywhere = text.strip_prefix(':').map(|port| format!("[::]:{port}"));
        let address = everywhere.as_deref().unwrap_or(text).replace("localhost:", "127.0.0.1:");
        let bracketed = || {
            let (host, port) = address.strip_prefix('[')?.split_once("]:")?;
            Some(SocketAddr::new(host.parse().ok()?, port.parse().ok()?))
        };
        let parsed = address.parse().ok().or_else(bracketed).map(Self::Address);
        parsed.ok_or_else(|| "give ADDRESS:PORT, :PORT or unix:PATH; an IPv6 address in brackets".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_either_family_may_have_brackets() {
        for (text, expected) in [
            ("[198.18.0.1]:9782", "198.18.0.1:9782"),
            ("[fd00::1]:9782", "[fd00::1]:9782"),
            ("198.18.0.1:9782", "198.18.0.1:9782"),
            (":9782", "[::]:9782"),
            ("localhost:9782", "127.0.0.1:9782"),
            ("unix:/run/x", "unix:/run/x"),
        ] {
            assert_eq!(text.parse::<Place>().map(|place| place.to_string()), Ok(expected.to_owned()));
        }
        for wrong in ["fd00::1:9782", "[198.18.0.1]", "[]:1", "[198.18.0.1]:99999", "[web]:1", ""] {
            assert!(wrong.parse::<Place>().is_err(), "{wrong}");
        }
    }
}
