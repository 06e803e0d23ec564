//! What Podman and CNI call the networks whose bridges are here: a file of configuration for each, below /etc. Those of rootless
//! containers are in somebody's home, and are not looked for.

use super::cgroup::{SHORT_ID, short};
use crate::proc_file;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use vnettop_sample::text::clean;
use vnettop_sample::{Owner, OwnerBy, OwnerKind};

/// Listed no more often than this, ns, and only when links have changed.
const PAUSE_NS: u64 = 1_000_000_000;
/// So many files of a directory are read at most, and so much of each, bytes.
const MOST: usize = 256;
const LONGEST: u64 = 64 * 1024;
/// What a name may be long, characters.
const LONGEST_NAME: usize = 64;

/// Networks by the names of their bridges.
#[derive(Debug, Default)]
pub(super) struct Networks {
    /// Of files, and whose they are.
    directories: Vec<(PathBuf, OwnerBy)>,
    owners: BTreeMap<String, Owner>,
    next_ns: u64,
}

impl Networks {
    /// Below this directory, which is /etc.
    pub fn below(etc: &str) -> Self {
        let places = [("cni/net.d", OwnerBy::Cni), ("containers/networks", OwnerBy::Podman)];
        let directories = places.map(|(at, by)| (PathBuf::from(etc).join(at), by)).into();
        Self { directories, owners: BTreeMap::new(), next_ns: 0 }
    }

    /// Whose bridge has that name.
    pub fn of(&self, bridge: &str) -> Option<&Owner> {
        self.owners.get(bridge)
    }

    /// Reads them, if it is time.
    pub fn look(&mut self, now_ns: u64) {
        if now_ns < self.next_ns {
            return;
        }
        self.next_ns = now_ns.saturating_add(PAUSE_NS);
        self.owners.clear();
        for (directory, by) in &self.directories {
            for file in fs::read_dir(directory).into_iter().flatten().flatten().take(MOST) {
                if let Ok(text) = proc_file::plain(&file.path(), LONGEST) {
                    self.owners.extend(network(text.as_bytes(), by));
                }
            }
        }
    }
}

/// The bridge of a file, and whose it is: Podman's `network_interface`, or CNI's plugin with a `bridge`.
pub(super) fn network(text: &[u8], by: &OwnerBy) -> Option<(String, Owner)> {
    let file: Value = serde_json::from_slice(text).ok()?;
    let plugins = || file["plugins"].as_array()?.iter().find_map(|plugin| plugin["bridge"].as_str());
    let bridge = file["network_interface"].as_str().or_else(|| file["bridge"].as_str()).or_else(plugins)?;
    let short = |key: &str, longest| file[key].as_str().and_then(|text| short(text.as_bytes(), longest));
    let (name, id) = (short("name", LONGEST_NAME)?, short("id", SHORT_ID));
    let owner = Owner { kind: OwnerKind::Network, name, id, by: by.clone(), guess: false, pod_namespace: None };
    Some((clean(bridge.as_bytes()), owner))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_bridge_has_the_name_of_its_network() {
        let etc = tempfile::tempdir().expect("writable");
        let write = |at: &str, text: &str| {
            let path = etc.path().join(at);
            fs::create_dir_all(path.parent().expect("a directory")).expect("writable");
            fs::write(path, text).expect("writable");
        };
        write("containers/networks/bench.json", include_str!("../../../../tests/fixtures/owners/podman-network.json"));
        write("cni/net.d/10-bench.conflist", include_str!("../../../../tests/fixtures/owners/cni.conflist"));
        write("cni/net.d/99-loopback.conf", r#"{"cniVersion": "0.4.0", "name": "lo", "type": "loopback"}"#);
        write("cni/net.d/README", "nothing of a network");
        let mut networks = Networks::below(etc.path().to_str().expect("text"));
        networks.look(0);
        let of = |bridge| networks.of(bridge).map(|owner| (&*owner.name, owner.id.as_deref(), owner.by.clone()));
        assert_eq!(of("podman1"), Some(("bench", Some("e0f59594db11"), OwnerBy::Podman)));
        assert_eq!(of("cni0"), Some(("benchnet", None, OwnerBy::Cni)));
        assert_eq!((of("podman0"), networks.owners.len()), (None, 2), "nobody else's");
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>) {
            let _ = network(&bytes, &OwnerBy::Podman);
        }
    }
}
