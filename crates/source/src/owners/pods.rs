//! What Kubernetes calls the pods of this machine: the kubelet keeps a directory `NAMESPACE_NAME_UID` of logs for each. It
//! asks no API server.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use vnettop_sample::text::clean;

/// Listed no more often than this, ns.
const PAUSE_NS: u64 = 1_000_000_000;
const LONGEST_PAUSE_NS: u64 = 64_000_000_000;
/// What a name may be long, characters: Kubernetes allows 253.
const LONGEST: usize = 128;

/// What a pod is called: two of a machine have the same name in two namespaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PodName {
    pub namespace: String,
    pub name: String,
}

/// Names of pods by their uids.
#[derive(Debug, Default)]
pub(super) struct Pods {
    directory: PathBuf,
    names: BTreeMap<String, PodName>,
    /// When it may be listed again.
    pub next_ns: u64,
    pause_ns: u64,
}

impl Pods {
    pub fn at(directory: PathBuf) -> Self {
        Self { directory, names: BTreeMap::new(), next_ns: 0, pause_ns: PAUSE_NS }
    }

    pub fn name(&self, uid: &str) -> Option<&PodName> {
        self.names.get(uid)
    }

    /// There are new pods.
    pub fn ask_soon(&mut self, now_ns: u64) {
        (self.next_ns, self.pause_ns) = (self.next_ns.min(now_ns.saturating_add(PAUSE_NS)), PAUSE_NS);
    }

    /// Lists them, if it is time; true when there is a new name.
    pub fn look(&mut self, now_ns: u64) -> bool {
        if now_ns < self.next_ns {
            return false;
        }
        self.next_ns = now_ns.saturating_add(self.pause_ns);
        self.pause_ns = (self.pause_ns * 2).min(LONGEST_PAUSE_NS);
        let listing = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let names: BTreeMap<String, PodName> =
            listing.filter_map(|entry| parts(entry.file_name().as_encoded_bytes())).collect();
        let news = names != self.names;
        self.names = names;
        news
    }
}

/// uid and name; no part may hold a `_`.
fn parts(directory: &[u8]) -> Option<(String, PodName)> {
    let mut parts = directory.split(|&byte| byte == b'_');
    let (namespace, name, uid) = (parts.next()?, parts.next()?, parts.next()?);
    let whole = parts.next().is_none() && [namespace, name, uid].iter().all(|part| !part.is_empty());
    let short = |part| clean(part).chars().take(LONGEST).collect();
    whole.then(|| (clean(uid), PodName { namespace: short(namespace), name: short(name) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_has_the_name_of_its_logs() {
        let logs = tempfile::tempdir().expect("writable");
        let uid = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0";
        for name in [&*format!("default_web-7d4b9c_{uid}"), "stray", "a_b_c_d", "__", "_a_b"] {
            fs::create_dir(logs.path().join(name)).expect("writable");
        }
        let mut pods = Pods::at(logs.path().to_owned());
        assert!(pods.look(0), "there is a name");
        let name = PodName { namespace: "default".to_owned(), name: "web-7d4b9c".to_owned() };
        assert_eq!((pods.name(uid), pods.names.len()), (Some(&name), 1), "by its uid, and nothing else");
        assert!(!pods.look(1), "it is not listed on every tick");
    }
}
