//! What a link's name says by convention, where nothing better is known of it: the interfaces of Kubernetes' networks, the
//! bridges of container engines. All of it is a guess, and marked so.

use vnettop_sample::{Kind, LinkFacts, Owner, OwnerBy, OwnerKind};

/// How the names of links begin, what they are (none: anything), whose they are, who says so.
static CONVENTIONS: [(&str, Option<Kind>, &str, OwnerBy); 18] = [
    ("cali", Some(Kind::Veth), "calico", OwnerBy::Kubernetes),
    ("vxlan.calico", None, "calico", OwnerBy::Kubernetes),
    ("wireguard.cali", None, "calico", OwnerBy::Kubernetes),
    ("flannel.", None, "flannel", OwnerBy::Kubernetes),
    ("flannel-", None, "flannel", OwnerBy::Kubernetes),
    ("cilium_", None, "cilium", OwnerBy::Kubernetes),
    ("lxc", Some(Kind::Veth), "cilium", OwnerBy::Kubernetes),
    ("cni-podman", Some(Kind::Bridge), "podman", OwnerBy::Podman),
    ("podman", Some(Kind::Bridge), "podman", OwnerBy::Podman),
    ("cni", Some(Kind::Bridge), "cni", OwnerBy::Kubernetes),
    ("kube-", None, "kubernetes", OwnerBy::Kubernetes),
    ("nodelocaldns", None, "kubernetes", OwnerBy::Kubernetes),
    ("docker0", Some(Kind::Bridge), "docker", OwnerBy::Docker),
    ("docker_gwbridge", Some(Kind::Bridge), "docker_gwbridge", OwnerBy::Docker),
    ("virbr", Some(Kind::Bridge), "libvirt", OwnerBy::Libvirt),
    ("lxcbr", Some(Kind::Bridge), "lxc", OwnerBy::Lxc),
    ("lxdbr", Some(Kind::Bridge), "lxd", OwnerBy::Lxd),
    ("incusbr", Some(Kind::Bridge), "incus", OwnerBy::Incus),
];

/// Whose it may be; `master` is the name of the bridge it is a port of.
pub(super) fn guess(link: &LinkFacts, master: Option<&str>) -> Option<Owner> {
    let fits = |(start, kind, ..): &&(&str, Option<Kind>, &str, OwnerBy)| {
        link.name.starts_with(start)
            && kind.as_ref().is_none_or(|kind| *kind == link.kind || *kind == Kind::Veth && link.kind == Kind::Netkit)
    };
    if let Some((.., name, by)) = CONVENTIONS.iter().find(fits) {
        return Some(network(name, None, by.clone()));
    }
    if let Some(id) = docker_bridge(link) {
        return Some(network(id, Some(id), OwnerBy::Docker));
    }
    // The veths of CNI's bridge plugin have names of no meaning.
    let is_cni = link.kind == Kind::Veth && master.is_some_and(|master| master.starts_with("cni"));
    is_cni.then(|| network("cni", None, OwnerBy::Kubernetes))
}

/// The first digits of its network's id, in the name of a bridge that Docker made for it.
pub(super) fn docker_bridge(link: &LinkFacts) -> Option<&str> {
    let id = link.name.strip_prefix("br-").filter(|_| link.kind == Kind::Bridge)?;
    (id.len() == super::cgroup::SHORT_ID && super::cgroup::is_id(id.as_bytes())).then_some(id)
}

fn network(name: &str, id: Option<&str>, by: OwnerBy) -> Owner {
    Owner {
        kind: OwnerKind::Network,
        name: name.to_owned(),
        id: id.map(str::to_owned),
        by,
        guess: true,
        pod_namespace: None,
    }
}
