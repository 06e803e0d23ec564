//! Docker's user-space proxy: a process of its own for each published port, whose command line says from where to where
//! it copies. Asked only where a connection ends at an address that no watched process holds.

use std::ffi::OsStr;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Where the proxy of that namespace takes what comes for an address.
pub(super) fn behind(netns: u64, to: SocketAddr) -> Option<SocketAddr> {
    let numbered = |name: &OsStr| name.as_bytes().iter().all(u8::is_ascii_digit);
    let processes = fs::read_dir("/proc").ok()?.filter_map(Result::ok);
    processes.filter(|entry| numbered(&entry.file_name())).find_map(|entry| of(&entry.path(), netns, to))
}

fn of(process: &Path, netns: u64, to: SocketAddr) -> Option<SocketAddr> {
    let name = fs::read(process.join("comm")).ok()?;
    if !name.starts_with(b"docker-proxy") {
        return None;
    }
    let lives_there = process.join("ns/net").metadata().is_ok_and(|file| file.ino() == netns);
    let line = fs::read(process.join("cmdline")).ok().filter(|_| lives_there)?;
    target(&line, to)
}

/// `docker-proxy -proto tcp -host-ip 0.0.0.0 -host-port 8080 -container-ip 172.17.0.2 -container-port 80`.
fn target(line: &[u8], to: SocketAddr) -> Option<SocketAddr> {
    let words: Vec<&str> = line.split(|&byte| byte == 0).filter_map(|word| str::from_utf8(word).ok()).collect();
    let value = |name: &str| {
        let at = words.iter().position(|word| word.trim_start_matches('-') == name)?;
        words.get(at + 1).copied()
    };
    let port = value("host-port")?.parse::<u16>().ok()?;
    let ip = value("host-ip").and_then(|ip| ip.parse::<IpAddr>().ok());
    let listens = port == to.port() && ip.is_none_or(|ip| ip.is_unspecified() || ip == to.ip());
    let target = || Some(SocketAddr::new(value("container-ip")?.parse().ok()?, value("container-port")?.parse().ok()?));
    if listens { target() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_proxys_command_line_says_where_it_copies_to() {
        let line = b"/usr/bin/docker-proxy\0-proto\0tcp\0-host-ip\x000.0.0.0\0-host-port\x005201\0-container-ip\x00198.18.0.2\0-container-port\x005202\0-use-listen-fd\0";
        let at = |text: &str| text.parse().expect("an address");
        assert_eq!(target(line, at("198.18.0.1:5201")), Some(at("198.18.0.2:5202")), "the container's own end");
        assert_eq!(target(line, at("198.18.0.1:5203")), None, "another published port is another proxy");
    }

    proptest! {
        #[test]
        fn any_command_line_is_survived(line: Vec<u8>) {
            target(&line, "198.18.0.1:1".parse().expect("an address"));
        }
    }
}
