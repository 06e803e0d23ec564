//! Who a link belongs to.

use super::LinkKey;
use serde::{Deserialize, Serialize};

/// What kind of thing owns a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OwnerKind {
    /// A container of Docker, containerd, CRI-O, Podman or LXC.
    Container,
    /// A Kubernetes pod.
    Pod,
    /// A virtual machine, by the process that holds its tap.
    Vm,
    /// Whatever else holds a tun or tap open: a VPN, a test program.
    Process,
    /// A Docker network (its bridge), a Kubernetes network interface by its name.
    Network,
    /// An Open vSwitch bridge.
    Ovs,
}

/// Who a link belongs to. Text from outside, control characters replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// What kind of owner.
    #[serde(rename = "type")]
    pub kind: OwnerKind,
    /// What people call it: container name, pod, guest, program and pid.
    pub name: String,
    /// Its own identifier where it has one: the first 12 digits of a container's id, a pod's uid.
    pub id: Option<String>,
    /// Who said so: `docker`, `containerd`, `crio`, `podman`, `lxc`, `kubernetes`, `qemu`, `tun`, `ovs`, …
    pub by: String,
    /// Only guessed from a naming convention.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub guess: bool,
}

/// One link and its owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owned {
    /// The link.
    pub link: LinkKey,
    /// Its owner.
    pub owner: Owner,
}
