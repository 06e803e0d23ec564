//! Names and addresses, and what stands for each of them.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Programs that everybody has: their names are no secret, and some of what is found rests on them. What follows the name is.
const KNOWN_PROGRAMS: &[&str] = &[
    "bash",
    "containerd",
    "docker",
    "docker-proxy",
    "dockerd",
    "haproxy",
    "iperf",
    "iperf3",
    "irqbalance",
    "ksoftirqd",
    "kworker",
    "migration",
    "netperf",
    "netserver",
    "nginx",
    "nuttcp",
    "openvpn",
    "ovs-vswitchd",
    "ovsdb-server",
    "qemu",
    "qperf",
    "rustc",
    "sh",
    "socat",
    "sockperf",
    "sshd",
    "swapper",
    "uperf",
    "vhost",
    "vnettop",
    "wrk",
];

/// What stands for each name, by kind of label.
#[derive(Debug, Default)]
pub(super) struct Labels {
    names: HashMap<(&'static str, String), String>,
    counts: HashMap<String, u32>,
    links: HashMap<String, String>,
    v4: HashMap<Ipv4Addr, Ipv4Addr>,
    v6: HashMap<Ipv6Addr, Ipv6Addr>,
}

impl Labels {
    /// `container#1`, `netns#2`: the same for the same name. No interface and no container is called so by anybody.
    pub fn of(&mut self, kind: &'static str, name: &str) -> String {
        let key = (kind, name.to_owned());
        if !self.names.contains_key(&key) {
            let label = self.next(kind);
            self.names.insert(key.clone(), label);
        }
        self.names[&key].clone()
    }

    /// A link, wherever it is named: `lo` stays, another one becomes its kind with a number.
    pub fn link(&mut self, kind: &str, name: &str) -> String {
        if name == "lo" {
            return name.to_owned();
        }
        if !self.links.contains_key(name) {
            let is_plain = !kind.is_empty() && kind.len() <= 12 && kind.bytes().all(|byte| byte.is_ascii_lowercase());
            let label = self.next(if is_plain { kind } else { "link" });
            self.links.insert(name.to_owned(), label);
        }
        self.links[name].clone()
    }

    /// A program: one that everybody has keeps its name, without what stands behind it.
    pub fn program(&mut self, name: &str) -> String {
        let first = name.split(['/', ':', '-', ' ']).next().unwrap_or_default();
        for known in [name, first] {
            if KNOWN_PROGRAMS.contains(&known) {
                return known.to_owned();
            }
        }
        self.of("program", name)
    }

    pub fn socket(&mut self, socket: SocketAddr) -> SocketAddr {
        let mut became = socket;
        became.set_ip(self.address(socket.ip()));
        became
    }

    /// An address as text; none of what is none.
    pub fn address_text(&mut self, text: &str) -> Option<String> {
        text.parse().ok().map(|address| self.address(address).to_string())
    }

    /// An address of a range that nobody uses: `240.0.0.0/8` and `100::/64`. This host and no host stay what they are.
    pub fn address(&mut self, address: IpAddr) -> IpAddr {
        if address.to_canonical().is_loopback() || address.to_canonical().is_unspecified() {
            return address;
        }
        match address {
            IpAddr::V4(address) => IpAddr::V4(self.v4(address)),
            IpAddr::V6(address) => {
                if let Some(inner) = address.to_ipv4_mapped() {
                    IpAddr::V6(self.v4(inner).to_ipv6_mapped())
                } else {
                    let next = self.v6.len() as u128 + 1;
                    let first = u128::from(Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, 0));
                    IpAddr::V6(*self.v6.entry(address).or_insert(Ipv6Addr::from(first + next)))
                }
            }
        }
    }

    fn v4(&mut self, address: Ipv4Addr) -> Ipv4Addr {
        let next = u32::try_from(self.v4.len() + 1).unwrap_or(u32::MAX) & 0x00ff_ffff;
        *self.v4.entry(address).or_insert(Ipv4Addr::from(0xf000_0000 | next))
    }

    fn next(&mut self, kind: &str) -> String {
        let count = self.counts.entry(kind.to_owned()).or_default();
        *count += 1;
        format!("{kind}#{count}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_label_and_this_host_stays_this_host() {
        let mut labels = Labels::default();
        assert_eq!(
            [labels.of("container", "web"), labels.of("container", "db"), labels.of("container", "web")],
            ["container#1", "container#2", "container#1"]
        );
        assert_eq!(
            (labels.link("veth", "v1"), labels.link("port", "v1"), labels.link("veth", "lo")),
            ("veth#1".to_owned(), "veth#1".to_owned(), "lo".to_owned())
        );
        assert_eq!(
            (labels.program("iperf3"), labels.program("nginx: worker of acme")),
            ("iperf3".into(), "nginx".into())
        );
        assert_eq!(labels.program("acme-secret"), "program#1");
        for (address, becomes) in [
            ("10.0.0.1", "240.0.0.1"),
            ("::ffff:10.0.0.1", "::ffff:240.0.0.1"),
            ("10.0.0.2", "240.0.0.2"),
            ("fd00::7", "100::1"),
            ("127.0.0.1", "127.0.0.1"),
            ("::", "::"),
        ] {
            assert_eq!(labels.address_text(address).as_deref(), Some(becomes), "{address}");
        }
        assert_eq!(labels.address_text("acme.example"), None);
    }
}
