//! Podman and CRI-O name no container in its control group, but the process that watches over it does: `conmon`, an
//! ancestor of the container's processes, is given the id and the name on its command line.

use crate::source::scan;
use crate::text::clean;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Ancestors that are asked: a container's processes are seldom further from its first.
const GENERATIONS: usize = 8;
/// What is read of a command line and a `stat`, bytes.
const LONGEST: u64 = 16 * 1024;
/// What a name may be long, characters.
const LONGEST_NAME: usize = 64;

/// The name of the container with this id (its beginning) that a process lives in.
pub(super) fn name(proc: &Path, pid: u32, id: &str) -> Option<String> {
    let mut pid = pid;
    for _ in 0..GENERATIONS {
        pid = parent(&read(&proc.join(pid.to_string()).join("stat"))?)?;
        let found = told(&read(&proc.join(pid.to_string()).join("cmdline"))?, id);
        if found.is_some() {
            return found;
        }
    }
    None
}

fn read(path: &Path) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    File::open(path).ok()?.take(LONGEST).read_to_end(&mut text).ok()?;
    Some(text)
}

/// The fourth word of `stat`, behind a name that may hold anything; none of the first process.
fn parent(stat: &[u8]) -> Option<u32> {
    let behind = stat.iter().rposition(|&byte| byte == b')')? + 1;
    let word = stat[behind..].split(|&byte| byte == b' ').filter(|word| !word.is_empty()).nth(1)?;
    scan::number32(word).filter(|&pid| pid > 1)
}

/// What conmon's command line calls the container with this id: `-c ID … -n NAME`. CRI-O's names are the kubelet's,
/// `k8s_CONTAINER_POD_NAMESPACE_UID_ATTEMPT`, of which the pod has a better one.
fn told(cmdline: &[u8], id: &str) -> Option<String> {
    let words: Vec<&[u8]> = cmdline.split(|&byte| byte == 0).collect();
    let program = words.first()?.rsplit(|&byte| byte == b'/').next()?;
    let after = |option: &[&[u8]]| words.windows(2).find(|two| option.contains(&two[0])).map(|two| two[1]);
    if program != b"conmon" || !after(&[b"-c", b"--cid"])?.starts_with(id.as_bytes()) {
        return None;
    }
    let name: String = clean(after(&[b"-n", b"--name"])?).chars().take(LONGEST_NAME).collect();
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;

    const ID: &str = "6ce404cac50e";

    fn podman() -> Vec<u8> {
        include_str!("../../../tests/fixtures/owners/conmon-podman.cmdline").replace('\n', "\0").into_bytes()
    }

    #[test]
    fn a_container_of_podman_has_the_name_that_conmon_was_given() {
        assert_eq!(told(&podman(), ID).as_deref(), Some("web"));
        assert_eq!(told(&podman(), "a51cac518006"), None, "another container's");
        assert_eq!(told(b"/bin/sleep\0-c\x006ce404cac50e\0-n\0me\0", ID), None, "anybody may have such options");
        let hostile = [b"conmon\0-c\0", ID.as_bytes(), b"\0-n\0\x1b[2J", &[b'x'; 4000]].concat();
        let name = told(&hostile, ID).expect("a name");
        assert!(name.starts_with("?[2Jx") && name.len() == LONGEST_NAME, "{name}");
    }

    #[test]
    fn it_is_looked_for_among_the_ancestors() {
        let proc = tempfile::tempdir().expect("writable");
        let process = |pid: u32, parent: u32, cmdline: &[u8]| {
            let directory = proc.path().join(pid.to_string());
            fs::create_dir_all(&directory).expect("writable");
            fs::write(directory.join("stat"), format!("{pid} (a) 1 (b) S {parent} 0 0")).expect("writable");
            fs::write(directory.join("cmdline"), cmdline).expect("writable");
        };
        process(7, 1, &podman());
        process(8, 7, b"/bin/sh\0");
        process(9, 8, b"iperf3\0-s\0");
        process(10, 1, b"iperf3\0-s\0");
        assert_eq!(name(proc.path(), 9, ID).as_deref(), Some("web"), "two generations up");
        assert_eq!(name(proc.path(), 10, ID), None, "its first ancestor is no container's");
        assert_eq!(name(proc.path(), 11, ID), None, "a process that is gone");
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(stat: Vec<u8>, cmdline: Vec<u8>) {
            let _ = parent(&stat);
            let _ = told(&cmdline, ID);
            let _ = told(&[b"conmon\0", &cmdline[..]].concat(), ID);
        }
    }
}
