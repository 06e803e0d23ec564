//! The kinds of network that `vnettop compare` knows: a shell script each, which anybody can read and run by hand.

use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::path::Path;

/// Functions that the scripts use.
const PRELUDE: &str = include_str!("../assets/prelude.sh");

macro_rules! scripts {
    ($($name:literal),* $(,)?) => {
        &[$(NetworkKind { name: $name, script: include_str!(concat!("../assets/", $name, ".sh")) }),*]
    };
}

/// All of them, in the order in which they are measured and listed: from the plain to the built-up.
pub const KINDS: &[NetworkKind] = scripts![
    "loopback",
    "own-address",
    "veth",
    "veth-xdp",
    "netkit",
    "tc-redirect",
    "bridge",
    "bridge-nat",
    "published-port",
    "proxy",
    "ovs",
    "ovs-userspace",
    "ovs-bridge",
    "macvlan",
    "macvtap",
    "ipvlan-l2",
    "ipvlan-l3",
    "ipvlan-l3s",
    "vlan",
    "bond",
    "vxlan",
    "geneve",
    "gre",
    "wireguard",
    "host-gw",
    "routed",
    "tun",
    "tap-bridge",
    "unix",
    "pipe",
];

/// A kind of network between two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NetworkKind {
    /// What it is called on the command line and in tables.
    pub name: &'static str,
    script: &'static str,
}

/// What carries the data from one end to the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Through {
    /// A network, made by the script in namespaces `a` (the sender's), `b` (the receiver's, where there is one) and others between them.
    Network,
    /// A pair of unix sockets: no network at all, for scale.
    Socket,
    /// Pipes, likewise.
    Pipe,
}

impl NetworkKind {
    /// The one of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        KINDS.iter().find(|kind| kind.name == name).copied()
    }

    /// What it is, in some words.
    #[must_use]
    pub fn what(&self) -> &'static str {
        self.header("what").unwrap_or_default()
    }

    /// What carries the data.
    #[must_use]
    pub fn through(&self) -> Through {
        match self.header("through") {
            Some("socket") => Through::Socket,
            Some("pipe") => Through::Pipe,
            _ => Through::Network,
        }
    }

    /// The address on which the receiver is reached.
    #[must_use]
    pub fn target(&self) -> Option<&'static str> {
        self.header("target")
    }

    /// The loads that it carries, by name; none: all of them.
    #[must_use]
    pub fn loads(&self) -> Option<Vec<&'static str>> {
        self.header("loads").map(|loads| loads.split_whitespace().collect())
    }

    /// The whole script.
    #[must_use]
    pub fn script(&self) -> String {
        format!("{PRELUDE}\n{}", self.script)
    }

    /// Why it cannot be made here, as far as that can be told without trying: one sentence.
    #[must_use]
    pub fn missing(&self) -> Option<String> {
        if let Some(module) =
            self.header("module").filter(|module| !is_whole_root() && !Path::new("/sys/module").join(module).exists())
        {
            return Some(format!(
                "module {module} is not loaded; it makes links in every namespace, so load it yourself: modprobe {module}"
            ));
        }
        ["sh", "ip"].into_iter().chain(self.header("needs").unwrap_or_default().split_whitespace()).find_map(missing)
    }

    /// The value of `# KEY: VALUE` at the start of a script.
    fn header(&self, key: &str) -> Option<&'static str> {
        let comments = self.script.lines().map_while(|line| line.strip_prefix("# "));
        comments.filter_map(|line| line.split_once(": ")).find(|(name, _)| *name == key).map(|(_, value)| value)
    }
}

/// Root of the machine, outside of any user namespace (`/proc/self/uid_map`): it can unload a module again.
fn is_whole_root() -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    rustix::process::geteuid().is_root() && map.split_whitespace().eq(["0", "0", "4294967295"])
}

/// The sentence that a program is not installed, or that a device cannot be opened.
fn missing(need: &str) -> Option<String> {
    if need.starts_with('/') {
        let error = OpenOptions::new().read(true).write(true).open(need).err()?;
        return Some(format!("{need} cannot be opened: {error}"));
    }
    (!is_installed(need)).then(|| format!("{need} is not installed{}", package(need)))
}

/// Whether a program of this name is there.
#[must_use]
pub fn is_installed(program: &str) -> bool {
    std::env::split_paths(&search_path()).any(|folder| folder.join(program).is_file())
}

/// The Debian package that has it, where its name is another one.
fn package(program: &str) -> &'static str {
    match program {
        "ip" => " (Debian: iproute2)",
        "nft" => " (Debian: nftables)",
        "wg" => " (Debian: wireguard-tools)",
        _ if program.starts_with("ovs") => " (Debian: openvswitch-switch)",
        _ => "",
    }
}

/// Where programs are looked for: as usual, and where those of the administrator are, which an ordinary user's PATH may lack.
#[must_use]
pub fn search_path() -> OsString {
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    for folder in ["/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/bin", "/bin"] {
        if !std::env::split_paths(&path).any(|known| known == Path::new(folder)) {
            path.push(if path.is_empty() { OsStr::new("") } else { OsStr::new(":") });
            path.push(folder);
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_way_has_a_name_of_its_own_words_and_an_address() {
        let names: BTreeSet<&str> = KINDS.iter().map(|kind| kind.name).collect();
        assert_eq!(names.len(), KINDS.len(), "no name means two kinds");
        for kind in KINDS {
            assert!(kind.what().len() > 10, "{} says what it is", kind.name);
            if kind.through() == Through::Network {
                let target = kind.target().unwrap_or_default();
                assert!(target.parse::<std::net::Ipv4Addr>().is_ok(), "{}: {target:?} is an address", kind.name);
            }
        }
    }

    #[test]
    fn what_is_missing_is_named_with_its_package() {
        assert_eq!(missing("sh"), None, "a shell is everywhere");
        assert_eq!(missing("no-such-program").as_deref(), Some("no-such-program is not installed"));
        assert!(missing("/dev/no-such-device").is_some_and(|sentence| sentence.starts_with("/dev/no-such-device")));
    }
}
