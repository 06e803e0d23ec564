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
    /// Any other process that holds a tun or tap open: a VPN, a test program.
    Process,
    /// A Docker network (its bridge), a Kubernetes network interface by its name.
    Network,
    /// An Open vSwitch bridge.
    Ovs,
}

/// What says whose a link is: a container engine, the program of a virtual machine, or the kind of what is held open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
#[allow(missing_docs, reason = "their own names")]
pub enum OwnerBy {
    /// A control group named by an id, of an engine that is not known.
    Cgroup,
    CloudHypervisor,
    Cni,
    Containerd,
    Crio,
    Crosvm,
    Docker,
    Firecracker,
    Incus,
    Kubernetes,
    Libvirt,
    Lkvm,
    Lxc,
    Lxd,
    Macvtap,
    Nspawn,
    Ovs,
    Podman,
    Qemu,
    Tun,
    /// The word of another version's recording.
    #[serde(untagged)]
    #[strum(transparent)]
    Other(String),
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
    /// What says so.
    pub by: OwnerBy,
    /// Only guessed from a naming convention.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub guess: bool,
    /// The Kubernetes namespace of a pod, which with its name is no other pod's; none where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_namespace: Option<String>,
}

impl Owner {
    /// Kubernetes namespace and name of a pod, where both are known.
    #[must_use]
    pub fn pod(&self) -> Option<(&str, &str)> {
        Some((self.pod_namespace.as_deref()?, &*self.name))
    }
}

/// One link and its owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owned {
    /// The link.
    pub link: LinkKey,
    /// Its owner.
    pub owner: Owner,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_written_as_they_are_shown_and_those_of_others_stay() {
        for (by, word) in [(OwnerBy::CloudHypervisor, "cloud-hypervisor"), (OwnerBy::Other("jail".to_owned()), "jail")]
        {
            assert_eq!((by.to_string(), serde_json::json!(by)), (word.to_owned(), serde_json::json!(word)));
            assert_eq!(serde_json::from_value::<OwnerBy>(serde_json::json!(word)).ok(), Some(by));
        }
    }
}
