//! `/proc/PID/cgroup` → the container, pod or machine that a process lives in, by the names that container engines give
//! their control groups. Of nested ones the innermost counts. It reads no file and asks nobody for a better name.

use crate::scan;
use vnettop_sample::text::clean;
use vnettop_sample::{Owner, OwnerBy, OwnerKind};

/// What a name from a path may be long, characters.
const LONGEST: usize = 64;
/// A container's full id, hexadecimal digits.
const FULL_ID: usize = 64;
/// As much of it as people use.
pub(super) const SHORT_ID: usize = 12;

/// `docker-<id>.scope` and its like: what stands before the id, and whose it is.
static PREFIXES: [(&[u8], OwnerBy); 6] = [
    (b"docker-", OwnerBy::Docker),
    (b"cri-containerd-", OwnerBy::Containerd),
    (b"nerdctl-", OwnerBy::Containerd),
    (b"crio-", OwnerBy::Crio),
    (b"libpod-payload-", OwnerBy::Podman),
    (b"libpod-", OwnerBy::Podman),
];

/// Directories that a container's own directory, named by its full id, lies in.
static PARENTS: [(&[u8], OwnerBy); 4] = [
    (b"docker", OwnerBy::Docker),
    (b"default", OwnerBy::Containerd),
    (b"k8s.io", OwnerBy::Containerd),
    (b"moby", OwnerBy::Containerd),
];

/// Who a process belongs to by the text of its `cgroup` file; none for a process of the host.
pub(super) fn owner(text: &[u8]) -> Option<Owner> {
    scan::lines(text).find_map(|line| in_path(line.splitn(3, |&byte| byte == b':').nth(2)?))
}

fn in_path(path: &[u8]) -> Option<Owner> {
    let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
    let parts: Vec<&[u8]> = path.split(|&byte| byte == b'/').filter(|part| !part.is_empty()).collect();
    // systemd-nspawn itself, outside of its machine.
    if parts.last() == Some(&&b"supervisor"[..]) {
        return None;
    }
    let inner = |at: usize| in_part(at.checked_sub(1).map_or(&[][..], |above| parts[above]), parts[at]);
    (0..parts.len()).rev().find_map(inner)
}

/// One directory below another.
fn in_part(parent: &[u8], part: &[u8]) -> Option<Owner> {
    // An engine that was told of slices but uses plain directories: `slice:engine:id`.
    let mut colons = part.splitn(3, |&byte| byte == b':');
    if let (Some(slice), Some(engine), Some(id)) = (colons.next(), colons.next(), colons.next()) {
        return in_pod(slice).or_else(|| container(id, engine_word(engine)));
    }
    let name = part.strip_suffix(b".scope").unwrap_or(part);
    let prefixed = |(prefix, by): &(&[u8], OwnerBy)| Some((name.strip_prefix(*prefix)?, by.clone()));
    if let Some((id, by)) = PREFIXES.iter().find_map(prefixed).filter(|(id, _)| is_id(id)) {
        return in_pod(parent).or_else(|| container(id, by));
    }
    if name.len() == FULL_ID && is_id(name) {
        let by = PARENTS.iter().find(|(known, _)| *known == parent).map_or(OwnerBy::Cgroup, |(_, by)| by.clone());
        return in_pod(parent).or_else(|| container(name, by));
    }
    lxc(parent, part).or_else(|| machine(part)).or_else(|| in_pod(part))
}

fn engine_word(engine: &[u8]) -> OwnerBy {
    match engine {
        b"docker" => OwnerBy::Docker,
        b"cri-containerd" | b"nerdctl" => OwnerBy::Containerd,
        b"crio" => OwnerBy::Crio,
        b"libpod" => OwnerBy::Podman,
        _ => OwnerBy::Cgroup,
    }
}

/// `lxc.payload.NAME`, `lxc/NAME`; who watches over it from outside is in `lxc.monitor.NAME`.
fn lxc(parent: &[u8], part: &[u8]) -> Option<Owner> {
    let dotted = part.strip_prefix(b"lxc.payload.");
    let below = || (parent == b"lxc" || parent == b"lxc.payload").then_some(part);
    named(OwnerKind::Container, dotted.or_else(below)?, OwnerBy::Lxc)
}

/// `systemd-nspawn@NAME.service`, `machine-NAME.scope`; libvirt puts `qemu-NUMBER-` or `lxc-NUMBER-` before the name.
fn machine(part: &[u8]) -> Option<Owner> {
    if let Some(name) = part.strip_prefix(b"systemd-nspawn@") {
        return named(OwnerKind::Container, &unescaped(name.strip_suffix(b".service")?), OwnerBy::Nspawn);
    }
    let name = unescaped(part.strip_prefix(b"machine-")?.strip_suffix(b".scope")?);
    let of_libvirt = |engine: &[u8]| {
        let rest = name.strip_prefix(engine)?;
        let dash = rest.iter().position(|&byte| byte == b'-')?;
        scan::number(&rest[..dash]).map(|_| &rest[dash + 1..])
    };
    if let Some(guest) = of_libvirt(b"qemu-") {
        return named(OwnerKind::Vm, guest, OwnerBy::Qemu);
    }
    match of_libvirt(b"lxc-") {
        Some(guest) => named(OwnerKind::Container, guest, OwnerBy::Lxc),
        None => named(OwnerKind::Container, &name, OwnerBy::Nspawn),
    }
}

/// `pod<uid>`, `kubepods-burstable-pod<uid>.slice`; in the second form the dashes of the uid are `_`.
fn in_pod(part: &[u8]) -> Option<Owner> {
    let name = part.strip_suffix(b".slice").unwrap_or(part);
    let at = name.windows(3).rposition(|three| three == b"pod")?;
    let uid: Vec<u8> = name[at + 3..].iter().map(|&byte| if byte == b'_' { b'-' } else { byte }).collect();
    let digits = uid.iter().filter(|byte| byte.is_ascii_hexdigit()).count();
    let is_uid = digits == 32 && uid.iter().all(|&byte| byte.is_ascii_hexdigit() || byte == b'-');
    let uid = is_uid.then(|| clean(&uid)).filter(|uid| uid.len() <= 36)?;
    Some(Owner {
        kind: OwnerKind::Pod,
        name: uid.clone(),
        id: Some(uid),
        by: OwnerBy::Kubernetes,
        guess: false,
        pod_namespace: None,
    })
}

/// A container by its id, which is its name until a better one is known.
fn container(id: &[u8], by: OwnerBy) -> Option<Owner> {
    let id = is_id(id).then(|| clean(&id[..SHORT_ID]))?;
    Some(Owner { kind: OwnerKind::Container, name: id.clone(), id: Some(id), by, guess: false, pod_namespace: None })
}

fn named(kind: OwnerKind, name: &[u8], by: OwnerBy) -> Option<Owner> {
    Some(Owner { kind, name: short(name, LONGEST)?, id: None, by, guess: false, pod_namespace: None })
}

/// A name, cleaned, and no longer than so many characters; none where it is empty.
pub(super) fn short(name: &[u8], longest: usize) -> Option<String> {
    Some(clean(name).chars().take(longest).collect()).filter(|name: &String| !name.is_empty())
}

pub(super) fn is_id(text: &[u8]) -> bool {
    (SHORT_ID..=FULL_ID).contains(&text.len())
        && text.iter().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte))
}

/// systemd writes what a unit's name may not hold as `\x2d`.
fn unescaped(name: &[u8]) -> Vec<u8> {
    let (mut rest, mut out) = (name, Vec::with_capacity(name.len()));
    while let Some((&byte, more)) = rest.split_first() {
        let digits = rest.strip_prefix(b"\\x").and_then(|code| code.get(..2));
        match digits.and_then(scan::hex32).and_then(|code| u8::try_from(code).ok()) {
            Some(code) => (out.push(code), rest = &rest[4..]).1,
            None => (out.push(byte), rest = more).1,
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ID: &str = "a51cac518006d1e5b7e2d64fbb2d2f0a1a8f7c1e0c9b8a7d6e5f4a3b2c1d0e9f";

    /// Kind, name and who said so.
    fn of(path: &str) -> Option<(OwnerKind, String, String)> {
        let path = path.replace("<id>", ID).replace("<uid>", "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0");
        let path = path.replace("<_uid>", "0f1e2d3c_4b5a_6978_8796_a5b4c3d2e1f0");
        owner(format!("0::{path}\n").as_bytes()).map(|owner| (owner.kind, owner.name, owner.by.to_string()))
    }

    #[test]
    fn every_engine_is_known_by_its_paths() {
        for (path, by) in [
            ("/docker/<id>", "docker"),
            ("/system.slice/docker-<id>.scope", "docker"),
            ("/system.slice/docker-<id>.scope/init.scope", "docker"),
            ("/docker/aaaaaaaaaaaa/docker/<id>", "docker"),
            ("/system.slice:docker:<id>", "docker"),
            ("/system.slice/cri-containerd-<id>.scope", "containerd"),
            ("/system.slice/containerd.service/system.slice:cri-containerd:<id>", "containerd"),
            ("/default/<id>", "containerd"),
            ("/system.slice/nerdctl-<id>.scope", "containerd"),
            ("/system.slice/crio-<id>.scope", "crio"),
            ("/machine.slice/libpod-<id>.scope/container", "podman"),
            ("/machine.slice/machine-libpod_pod_<id>.slice/libpod-<id>.scope", "podman"),
            ("/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-<id>.scope/container", "podman"),
            ("/libpod_parent/libpod-<id>", "podman"),
            // `--cgroups=split`, as Quadlet's units have it.
            ("/system.slice/web.service/libpod-payload-<id>", "podman"),
            ("/user.slice/user-1000.slice/user@1000.service/app.slice/web.service/libpod-payload-<id>", "podman"),
            ("/crio/crio-<id>", "crio"),
            ("/somebody/<id>", "cgroup"),
            ("/docker/<id> (deleted)", "docker"),
        ] {
            let expected = Some((OwnerKind::Container, "a51cac518006".to_owned(), by.to_owned()));
            assert_eq!(of(path), expected, "{path} is a container of {by}");
        }
    }

    #[test]
    fn every_container_of_a_pod_is_the_pod() {
        for path in [
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<_uid>.slice/cri-containerd-<id>.scope",
            "/kubepods.slice/kubepods-pod<_uid>.slice/crio-<id>.scope/container",
            "/kubepods/besteffort/pod<uid>/<id>",
            "/kubepods/pod<uid>/crio-<id>",
            "/docker/<id>/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod<_uid>.slice/cri-containerd-<id>.scope",
            "/system.slice/containerd.service/kubepods-besteffort-pod<_uid>.slice:cri-containerd:<id>",
            "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod<_uid>.slice/docker-<id>.scope",
        ] {
            let uid = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0".to_owned();
            assert_eq!(of(path), Some((OwnerKind::Pod, uid, "kubernetes".to_owned())), "{path} is a pod");
        }
    }

    #[test]
    fn machines_have_names() {
        use OwnerKind::{Container, Vm};
        for (path, kind, name, by) in [
            ("/lxc.payload.web/system.slice/ssh.service", Container, "web", "lxc"),
            ("/lxc/web/init.scope", Container, "web", "lxc"),
            ("/machine.slice/systemd-nspawn@my\\x2dbox.service/payload", Container, "my-box", "nspawn"),
            ("/machine.slice/machine-box.scope", Container, "box", "nspawn"),
            ("/machine.slice/machine-qemu\\x2d3\\x2dweb\\x2d1.scope/libvirt/emulator", Vm, "web-1", "qemu"),
            ("/machine.slice/machine-lxc\\x2d88\\x2dold.scope", Container, "old", "lxc"),
        ] {
            assert_eq!(of(path), Some((kind, name.to_owned(), by.to_owned())), "{path} is {name}");
        }
    }

    #[test]
    fn of_a_container_in_a_machine_the_container_is_meant() {
        assert_eq!(of("/lxc.payload.web/docker/<id>").map(|owner| owner.2), Some("docker".to_owned()), "the innermost");
        assert_eq!(
            of("/lxc.payload.web/user.slice").map(|owner| owner.1),
            Some("web".to_owned()),
            "or the one there is"
        );
    }

    #[test]
    fn what_lives_on_the_host_belongs_to_nobody() {
        for path in [
            "/",
            "/init.scope",
            "/user.slice/user-1000.slice/session-2.scope",
            "/system.slice/docker.service",
            "/system.slice/containerd.service",
            "/machine.slice/libpod-conmon-<id>.scope",
            "/process_api/dc8dda9aa16c353462d7b0703f69b7ed",
            "/kubepods.slice/kubepods-burstable.slice",
            "/docker/deadbeef",
            "/system.slice/podman.service",
            "/lxc.monitor.web",
            "/machine.slice/machine-box.scope/supervisor",
        ] {
            assert_eq!(of(path), None, "{path} is no container");
        }
    }

    #[test]
    fn the_lines_of_version_1_are_read_too() {
        let text = format!("12:cpuset:/\n4:memory:/docker/{ID}\n1:name=systemd:/docker/{ID}\n0::/\n");
        assert_eq!(owner(text.as_bytes()).expect("a container").name, "a51cac518006", "one controller is enough");
        // Both drivers: plain directories, and systemd's slices and scopes.
        let uid = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0";
        let slice =
            format!("/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{}.slice", uid.replace('-', "_"));
        let plain = format!("/kubepods/burstable/pod{uid}");
        for (path, name, by) in [
            (format!("{plain}/{ID}"), uid, "kubernetes"),
            (format!("{plain}/crio-{ID}"), uid, "kubernetes"),
            (format!("{slice}/cri-containerd-{ID}.scope"), uid, "kubernetes"),
            (format!("{slice}/crio-{ID}.scope"), uid, "kubernetes"),
            (format!("{slice}/docker-{ID}.scope"), uid, "kubernetes"),
            (format!("/system.slice/docker-{ID}.scope"), "a51cac518006", "docker"),
            (format!("/default/{ID}"), "a51cac518006", "containerd"),
            (format!("/system.slice/nerdctl-{ID}.scope"), "a51cac518006", "containerd"),
            (format!("/machine.slice/libpod-{ID}.scope"), "a51cac518006", "podman"),
            (format!("/libpod_parent/libpod-{ID}"), "a51cac518006", "podman"),
            ("/lxc/web".to_owned(), "web", "lxc"),
            ("/lxc.payload/web".to_owned(), "web", "lxc"),
        ] {
            let text = format!(
                "11:cpu,cpuacct:{path}\n10:pids:{path}\n6:rdma:/\n4:memory:{path}\n1:name=systemd:{path}\n0::/system.slice/engine.service\n"
            );
            let found = owner(text.as_bytes()).map(|owner| (owner.name, owner.by.to_string()));
            assert_eq!(found, Some((name.to_owned(), by.to_owned())), "{path} is {name} of {by}");
        }
    }

    #[test]
    fn a_hostile_name_is_made_harmless_and_short() {
        let text = [&b"0::/lxc.payload.\x1b[31m"[..], &[b'x'; 4000], b"\n"].concat();
        let name = owner(&text).expect("a container").name;
        assert!(name.starts_with("?[31mx") && name.len() == LONGEST, "no escape code, no endless name: {name}");
        assert_eq!(owner(b"0::/machine.slice/machine-\\x1b\\xff.scope").expect("a machine").name, "??", "nor escaped");
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>) {
            let _ = owner(&bytes);
        }

        #[test]
        fn any_path_of_likely_parts_gives_a_short_clean_name(
            parts in proptest::collection::vec("(docker|lxc|pod|machine|crio|libpod|:|-|\\\\x|\\\\x2|[a-f0-9]{12}|\\.scope|\\.slice|/|.){0,9}", 0..6)
        ) {
            if let Some(owner) = owner(format!("0::/{}", parts.join("/")).as_bytes()) {
                prop_assert!(owner.name.chars().count() <= LONGEST && !owner.name.chars().any(char::is_control));
            }
        }
    }
}
