//! What a link's name says by convention, where nothing better is known of it: the interfaces of Kubernetes' networks, the
//! bridges of container engines. All of it is a guess, and marked so.

use crate::sample::{Kind, LinkFacts, Owner, OwnerKind};

/// How the names of links begin, what they are (none: anything), whose they are, who says so.
static CONVENTIONS: [(&str, Option<Kind>, &str, &str); 18] = [
    ("cali", Some(Kind::Veth), "calico", "kubernetes"),
    ("vxlan.calico", None, "calico", "kubernetes"),
    ("wireguard.cali", None, "calico", "kubernetes"),
    ("flannel.", None, "flannel", "kubernetes"),
    ("flannel-", None, "flannel", "kubernetes"),
    ("cilium_", None, "cilium", "kubernetes"),
    ("lxc", Some(Kind::Veth), "cilium", "kubernetes"),
    ("cni-podman", Some(Kind::Bridge), "podman", "podman"),
    ("podman", Some(Kind::Bridge), "podman", "podman"),
    ("cni", Some(Kind::Bridge), "cni", "kubernetes"),
    ("kube-", None, "kubernetes", "kubernetes"),
    ("nodelocaldns", None, "kubernetes", "kubernetes"),
    ("docker0", Some(Kind::Bridge), "docker", "docker"),
    ("docker_gwbridge", Some(Kind::Bridge), "docker_gwbridge", "docker"),
    ("virbr", Some(Kind::Bridge), "libvirt", "libvirt"),
    ("lxcbr", Some(Kind::Bridge), "lxc", "lxc"),
    ("lxdbr", Some(Kind::Bridge), "lxd", "lxd"),
    ("incusbr", Some(Kind::Bridge), "incus", "incus"),
];

/// Whose it may be; `master` is the name of the bridge it is a port of.
pub(super) fn guess(link: &LinkFacts, master: Option<&str>) -> Option<Owner> {
    let fits = |(start, kind, ..): &&(&str, Option<Kind>, &str, &str)| {
        link.name.starts_with(start)
            && kind
                .as_ref()
                .is_none_or(|kind| *kind == link.kind || *kind == Kind::Veth && link.kind.word() == "netkit")
    };
    if let Some((.., name, by)) = CONVENTIONS.iter().find(fits) {
        return Some(network(name, None, by));
    }
    if let Some(id) = docker_bridge(link) {
        return Some(network(id, Some(id), "docker"));
    }
    // The veths of CNI's bridge plugin have names of no meaning.
    let is_cni = link.kind == Kind::Veth && master.is_some_and(|master| master.starts_with("cni"));
    is_cni.then(|| network("cni", None, "kubernetes"))
}

/// The first digits of its network's id, in the name of a bridge that Docker made for it.
pub(super) fn docker_bridge(link: &LinkFacts) -> Option<&str> {
    let id = link.name.strip_prefix("br-").filter(|_| link.kind == Kind::Bridge)?;
    (id.len() == super::cgroup::SHORT_ID && super::cgroup::is_id(id.as_bytes())).then_some(id)
}

fn network(name: &str, id: Option<&str>, by: &str) -> Owner {
    let (name, id, by) = (name.to_owned(), id.map(str::to_owned), by.to_owned());
    Owner { kind: OwnerKind::Network, name, id, by, guess: true }
}
