//! Namespaces that are kept by a mount (`ip netns`, Docker, Podman, CRI-O): which, and under what name. Bytes of
//! `mountinfo` are outside input: a line that is not as the kernel writes it is no mount.

use super::Spaces;
use crate::scan;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{Read, Seek};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use vnettop_sample::text::clean;

/// One mounted network namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mount {
    pub netns: u64,
    pub path: PathBuf,
}

impl Mount {
    /// What people call it: the file's name where the directory is one for namespaces, otherwise the whole path.
    pub fn name(&self) -> String {
        let in_netns = self.path.parent().is_some_and(|parent| parent.ends_with("netns"));
        let name = if in_netns { self.path.file_name() } else { None };
        clean(name.unwrap_or(self.path.as_os_str()).as_encoded_bytes())
    }
}

impl Spaces {
    /// Follows what is mounted: names, and namespaces that nothing else keeps. Those with processes are found by [`Spaces::read`].
    pub fn read_mounts(&mut self) {
        let Some(mountinfo) = &mut self.mountinfo else { return };
        let mut text = Vec::new();
        if mountinfo.rewind().and_then(|()| mountinfo.read_to_end(&mut text)).is_err() {
            return;
        }
        let mounts: BTreeMap<u64, Mount> = mounts(&text).into_iter().rev().map(|mount| (mount.netns, mount)).collect();
        let own = self.own;
        for (&netns, known) in &mut self.known {
            let name = mounts.get(&netns).map(Mount::name);
            self.changed |= known.name != name;
            known.mounted = name.is_some() || netns == own;
            known.name = name;
        }
        let known: Vec<u64> = self.known.keys().copied().collect();
        for netns in known {
            self.let_go(netns);
        }
        for (&netns, mount) in &mounts {
            if !self.known.contains_key(&netns)
                && self.has_room(netns, |choice| choice == mount.name())
                && let Ok(file) = super::open(&mount.path)
            {
                self.hold(netns, file, Some(mount.name()));
            }
        }
    }
}

/// The network namespaces among the mounts (`/proc/PID/mountinfo`): field 4 is `net:[INODE]`, field 5 the mount point.
pub(super) fn mounts(text: &[u8]) -> Vec<Mount> {
    text.split(|&byte| byte == b'\n').filter_map(mount).collect()
}

fn mount(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|&byte| byte == b' ').skip(3);
    let netns = scan::netns(fields.next()?)?;
    Some(Mount { netns, path: PathBuf::from(OsString::from_vec(unescaped(fields.next()?))) })
}

/// Blanks, line ends and backslashes are written as three octal digits.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| first == b'\\');
        let value = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(value.unwrap_or(first));
        rest = if value.is_some() { &after[3..] } else { after };
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &[u8] = b"24 1 253:0 / / rw - ext4 /dev/vda rw\n\
        30 24 0:5 net:[4026532291] /run/netns/blue rw shared:9 - nsfs nsfs rw\n\
        31 24 0:5 mnt:[4026532292] /run/other rw - nsfs nsfs rw\n\
        32 24 0:5 net:[4026532293] /run/docker/netns/1-ab\\040c rw - nsfs nsfs rw\n\
        33 24 0:5 net:[4026532294] /srv/kept rw - nsfs nsfs rw\n";

    #[test]
    fn only_network_namespaces_count_and_are_called_as_their_files() {
        let found = mounts(TEXT);
        let named: Vec<_> = found.iter().map(|mount| (mount.netns, mount.name())).collect();
        let expected = [(4_026_532_291, "blue"), (4_026_532_293, "1-ab c"), (4_026_532_294, "/srv/kept")];
        assert_eq!(named, expected.map(|(netns, name)| (netns, name.to_owned())), "by file name, else by path");
        assert_eq!(found[1].path, PathBuf::from("/run/docker/netns/1-ab c"), "the path is the real one");
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>) {
            for mount in mounts(&bytes) {
                mount.name();
            }
        }
    }
}
