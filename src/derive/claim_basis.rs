//! What the speed a driver reports is worth: the claim's basis, as measured kind by kind of link.

use crate::sample::{Kind, LinkFacts};

/// Where a claimed speed comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Basis {
    /// Hardware, or a host that says so: the only claim that can limit anything.
    Real,
    /// A constant in the driver's source.
    Constant,
    /// What the link below says.
    Inherited,
    /// The largest of a bridge's ports.
    MaxOfPorts,
    /// The sum of the ports of a bond or team.
    SumOfPorts,
    /// Someone set it with ethtool.
    UserSet,
    /// The driver says nothing.
    None,
}

/// `BOND_MODE_ACTIVEBACKUP` and `BOND_MODE_BROADCAST`: the bond modes whose speed is a single port's, of the one in use
/// and of the slowest.
const BOND_OF_ONE_PORT: [u8; 2] = [1, 3];

/// The basis of a link's claim. `kernel` is the release, because tun's constant changed from 10 to 10000 in Linux 6.2.
#[must_use]
pub fn basis(link: &LinkFacts, kernel: &str) -> Basis {
    let Some(mbps) = link.speed_mbps else { return Basis::None };
    match &link.kind {
        Kind::Physical | Kind::Virtio => Basis::Real,
        Kind::Tun | Kind::Tap if link.speed_was_set || mbps != tun_constant(kernel) => Basis::UserSet,
        Kind::Bridge => Basis::MaxOfPorts,
        Kind::Bond if link.bond_mode.is_some_and(|mode| BOND_OF_ONE_PORT.contains(&mode)) => Basis::Inherited,
        Kind::Bond => Basis::SumOfPorts,
        Kind::Other(word) if word == "team" => Basis::SumOfPorts,
        Kind::Macvlan | Kind::Macvtap | Kind::Ipvlan | Kind::Vlan | Kind::Vxlan => Basis::Inherited,
        _ if link.speed_was_set => Basis::UserSet,
        _ if link.lower.is_some() => Basis::Inherited,
        _ => Basis::Constant,
    }
}

/// What tun and tap say when nobody set anything: 10 Mb/s before Linux 6.2 (commit 598d2982b115), 10000 from then on.
fn tun_constant(kernel: &str) -> u32 {
    let mut numbers = kernel.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse::<u32>().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if version >= (6, 2) { 10_000 } else { 10 }
}
