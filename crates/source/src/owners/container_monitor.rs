//! The process that watches over a container, an ancestor of those inside: Podman's and CRI-O's `conmon`, containerd's shim,
//! LXC's monitor, `systemd-nspawn`. Its command line has the name that a control group leaves out, and all there is where
//! the container has no group of its own.

use super::cgroup::{self, SHORT_ID, short};
use crate::threads::parse_stat;
use crate::{proc_file, untrusted_reader};
use std::path::Path;
use vnettop_sample::text::clean;
use vnettop_sample::{Owner, OwnerBy, OwnerKind};

/// Ancestors that are asked: a container's processes are seldom further from its first.
const GENERATIONS: usize = 8;
/// What is read of a `stat`, bytes.
const LONGEST: u64 = 16 * 1024;
/// What a name may be long, characters.
const LONGEST_NAME: usize = 64;
/// How the kernel names them: 15 letters, and LXC's as whoever started it.
const KEEPERS: [&[u8]; 4] = [b"conmon", b"containerd-shim", b"systemd-nspawn", b"lxc-"];

/// The container of whoever watches over a process.
pub(super) fn owner(proc: &Path, pid: u32) -> Option<Owner> {
    find(proc, pid, |_| true)
}

/// The name of the container with this id (its beginning) that a process lives in.
pub(super) fn name(proc: &Path, pid: u32, id: &str) -> Option<String> {
    find(proc, pid, |owner| owner.id.as_deref() == Some(id)).map(|owner| owner.name)
}

/// The nearest that is wanted.
fn find(proc: &Path, mut pid: u32, is_it: impl Fn(&Owner) -> bool) -> Option<Owner> {
    let stat_of = |pid: u32| proc_file::beginning(&proc.join(pid.to_string()).join("stat"), LONGEST).ok();
    let mut stat = stat_of(pid)?;
    for _ in 0..GENERATIONS {
        pid = parse_stat(&stat)?.parent;
        if pid <= 1 {
            return None;
        }
        stat = stat_of(pid)?;
        let comm = parse_stat(&stat)?.comm;
        if KEEPERS.iter().any(|keeper| comm.starts_with(keeper)) {
            let found = parse(&untrusted_reader::cmdline(proc, pid)?).filter(&is_it);
            if found.is_some() {
                return found;
            }
        }
    }
    None
}

/// Whom a command line says that its process watches over.
pub(super) fn parse(cmdline: &[u8]) -> Option<Owner> {
    let words: Vec<&[u8]> = cmdline.split(|&byte| byte == 0).filter(|word| !word.is_empty()).collect();
    let program = words.first()?.rsplit(|&byte| byte == b'/').next()?;
    let after = |options: &[&str]| {
        let is_one = |word: &[u8]| options.iter().any(|option| option.as_bytes() == word);
        words.windows(2).find(|two| is_one(two[0])).map(|two| two[1])
    };
    // `[lxc monitor] PATH NAME` is one word.
    if let Some(place) = words[0].strip_prefix(b"[lxc monitor] ") {
        return container(None, place.rsplit(|&byte| byte == b' ').next(), OwnerBy::Lxc);
    }
    match program {
        b"conmon" => container(after(&["-c", "--cid"]), after(&["-n", "--name"]), OwnerBy::Podman),
        b"systemd-nspawn" => {
            let joined = |option: &str| words.iter().find_map(|word| word.strip_prefix(option.as_bytes()));
            let last =
                |path: &'_ [u8]| path.rsplit(|&byte| byte == b'/').find(|part| !part.is_empty()).map(<[u8]>::to_vec);
            let name = after(&["-M", "--machine"]).or_else(|| joined("--machine="));
            let directory = || last(after(&["-D", "--directory"]).or_else(|| joined("--directory="))?);
            container(None, name.map(<[u8]>::to_vec).or_else(directory).as_deref(), OwnerBy::Nspawn)
        }
        // A pod is known by its control group, and has many of these.
        _ if program.starts_with(b"containerd-shim") => {
            let is_pod = after(&["-namespace"]) == Some(b"k8s.io");
            let id = after(&["-id"]).filter(|_| !is_pod)?;
            if cgroup::is_id(id) {
                container(Some(id), None, OwnerBy::Containerd)
            } else {
                container(None, Some(id), OwnerBy::Containerd)
            }
        }
        _ => None,
    }
}

/// CRI-O's names are the kubelet's, `k8s_CONTAINER_POD_NAMESPACE_UID_ATTEMPT`, of which the pod has a better one.
fn container(id: Option<&[u8]>, name: Option<&[u8]>, by: OwnerBy) -> Option<Owner> {
    let id = id.filter(|id| cgroup::is_id(id)).map(|id| clean(&id[..SHORT_ID]));
    let name = name.and_then(|name| short(name, LONGEST_NAME)).or_else(|| id.clone())?;
    Some(Owner { kind: OwnerKind::Container, name, id, by, guess: false, pod_namespace: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;

    const ID: &str = "6ce404cac50e";

    /// An argument a line.
    fn line(fixture: &str) -> Vec<u8> {
        fixture.replace('\n', "\0").into_bytes()
    }

    fn podman() -> Vec<u8> {
        line(include_str!("../../../../tests/fixtures/owners/conmon-podman.cmdline"))
    }

    #[test]
    fn each_names_its_container() {
        let of = |line: &[u8]| parse(line).map(|owner| (owner.name, owner.id, owner.by.to_string()));
        let named =
            |name: &str, id: Option<&str>, by: &str| Some((name.to_owned(), id.map(str::to_owned), by.to_owned()));
        assert_eq!(of(&podman()), named("web", Some(ID), "podman"));
        let shim = line(include_str!("../../../../tests/fixtures/owners/containerd-shim.cmdline"));
        assert_eq!(of(&shim), named("web1", None, "containerd"), "ctr's containers have no other id");
        let monitor = line(include_str!("../../../../tests/fixtures/owners/lxc-monitor.cmdline"));
        assert_eq!(of(&monitor), named("box", None, "lxc"));
        let nspawn = line(include_str!("../../../../tests/fixtures/owners/systemd-nspawn.cmdline"));
        assert_eq!(of(&nspawn), named("bench", None, "nspawn"));
        let unnamed = |rest: &str| of(&[b"systemd-nspawn\0", rest.as_bytes(), b"\0"].concat());
        assert_eq!(unnamed("-D\0/srv/trees/web/"), named("web", None, "nspawn"), "its directory is its name");
        assert_eq!(unnamed("--machine=db\0--directory=/srv/x"), named("db", None, "nspawn"));
        assert_eq!(unnamed("-b"), None);
        let full = format!("containerd-shim-runc-v2\0-namespace\0default\0-id\0{ID}{}\0", "0".repeat(52));
        assert_eq!(of(full.as_bytes()), named(ID, Some(ID), "containerd"), "nerdctl's have");
        assert_eq!(of(full.replace("default", "k8s.io").as_bytes()), None, "which is no pod's name");
        assert_eq!(of(b"/bin/sleep\0-c\x006ce404cac50e\0-n\0me\0"), None, "anybody may have such options");
        let hostile = [b"conmon\0-c\0", ID.as_bytes(), b"\0-n\0\x1b[2J", &[b'x'; 4000]].concat();
        let name = parse(&hostile).expect("a name").name;
        assert!(name.starts_with("?[2Jx") && name.len() == LONGEST_NAME, "{name}");
    }

    #[test]
    fn it_is_looked_for_among_the_ancestors() {
        let proc = tempfile::tempdir().expect("writable");
        let process = |pid: u32, comm: &str, parent: u32, cmdline: &[u8]| {
            let directory = proc.path().join(pid.to_string());
            let rest = "0 0 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 659 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 6 0 0 0 0 0";
            fs::create_dir_all(&directory).expect("writable");
            fs::write(directory.join("stat"), format!("{pid} ({comm}) S {parent} {rest}\n")).expect("writable");
            fs::write(directory.join("cmdline"), cmdline).expect("writable");
        };
        process(7, "conmon", 1, &podman());
        process(8, "a) 1 (b", 7, b"/bin/sh\0");
        process(9, "iperf3", 8, b"iperf3\0-s\0");
        process(10, "iperf3", 1, b"iperf3\0-s\0");
        let of = |pid| (name(proc.path(), pid, ID), owner(proc.path(), pid).map(|owner| owner.name));
        assert_eq!(of(9), (Some("web".to_owned()), Some("web".to_owned())), "two generations up");
        assert_eq!(name(proc.path(), 9, "a51cac518006"), None, "another container's");
        assert_eq!(of(10), (None, None), "its first ancestor is no container's");
        assert_eq!(of(7), (None, None), "who watches lives outside");
        assert_eq!(of(11), (None, None), "a process that is gone");
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(cmdline: Vec<u8>) {
            for program in ["", "conmon\0", "containerd-shim\0-id\0", "systemd-nspawn\0", "[lxc monitor] "] {
                let _ = parse(&[program.as_bytes(), &cmdline].concat());
            }
        }
    }
}
