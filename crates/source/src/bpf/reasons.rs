//! Why a packet was dropped, in the running kernel's own words: `enum skb_drop_reason` (Linux 5.17) of its BTF, and that of
//! Open vSwitch's module. The numbers differ from release to release, so only the names mean anything.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const MAGIC: u16 = 0xeb9f;
const ENUM: u32 = 6;
/// Reasons from here on are a sub-system's own (`SKB_DROP_REASON_SUBSYS_SHIFT`).
const SUBSYSTEMS: u32 = 1 << 16;
const PREFIXES: [&str; 2] = ["SKB_DROP_REASON_", "SKB_"];

/// The names by number.
#[derive(Debug, Clone, Default)]
pub(super) struct Reasons {
    names: BTreeMap<u32, Arc<str>>,
    openvswitch: PathBuf,
    /// A module's strings go on where the kernel's end.
    strings_from: usize,
}

impl Reasons {
    /// From the kernel's types; the module is read where there is one.
    pub fn read(vmlinux: &[u8], openvswitch: &Path) -> Self {
        let mut reasons = Self { openvswitch: openvswitch.to_owned(), ..Self::default() };
        if let Some(base) = Types::of(vmlinux, 0) {
            base.add_enum("skb_drop_reason", &mut reasons.names);
            // Linux 7: queueing disciplines have a list of their own.
            base.add_enum("qdisc_drop_reason", &mut reasons.names);
            base.add_enum("ovs_drop_reason", &mut reasons.names);
            reasons.strings_from = base.strings.len();
            reasons.read_module();
        }
        reasons
    }

    fn read_module(&mut self) {
        let module = fs::read(&self.openvswitch).unwrap_or_default();
        if let Some(module) = Types::of(&module, self.strings_from) {
            module.add_enum("ovs_drop_reason", &mut self.names);
        }
    }

    /// Reads the module once more for a reason of a sub-system that has no name yet: it may have been loaded since.
    pub fn learn(&mut self, reason: u32) {
        if reason >= SUBSYSTEMS && !self.names.contains_key(&reason) {
            self.read_module();
            self.names.entry(reason).or_insert_with(|| unnamed(reason));
        }
    }

    /// The name without its prefix, as `NETFILTER_DROP`; none for 0, which kernels that have no reasons give.
    pub fn name(&self, reason: u32) -> Option<Arc<str>> {
        let known = || self.names.get(&reason).cloned();
        (reason != 0).then(|| known().unwrap_or_else(|| unnamed(reason)))
    }
}

fn unnamed(reason: u32) -> Arc<str> {
    Arc::from(format!("reason {reason}"))
}

/// One BTF blob (`Documentation/bpf/btf.rst`), as far as enumerations need it. Whatever the bytes are, nothing panics.
struct Types<'a> {
    bytes: &'a [u8],
    strings: &'a [u8],
    strings_from: usize,
}

impl<'a> Types<'a> {
    fn of(bytes: &'a [u8], strings_from: usize) -> Option<Self> {
        if u16::from_ne_bytes(*bytes.first_chunk()?) != MAGIC {
            return None;
        }
        let header = usize::try_from(word(bytes, 4)?).ok()?;
        let section = |offset: usize, length: usize| {
            let from = header.checked_add(usize::try_from(word(bytes, offset)?).ok()?)?;
            bytes.get(from..from.checked_add(usize::try_from(word(bytes, length)?).ok()?)?)
        };
        Some(Self { bytes: section(8, 12)?, strings: section(16, 20)?, strings_from })
    }

    fn string(&self, at: u32) -> Option<&'a str> {
        let at = usize::try_from(at).ok()?.checked_sub(self.strings_from)?;
        let bytes = self.strings.get(at..)?;
        std::str::from_utf8(bytes.split(|&byte| byte == 0).next()?).ok()
    }

    /// Adds the members of the enumeration of that name.
    fn add_enum(&self, name: &str, into: &mut BTreeMap<u32, Arc<str>>) {
        let mut rest = self.bytes;
        while let (Some(of), Some(info)) = (word(rest, 0), word(rest, 4)) {
            let (count, kind) = (info & 0xffff, info >> 24 & 31);
            let behind = rest.get(12..).unwrap_or_default();
            if kind == ENUM && self.string(of) == Some(name) {
                for member in behind.chunks_exact(8).take(count as usize) {
                    let (Some(of), Some(value)) = (word(member, 0), word(member, 4)) else { continue };
                    let Some(full) = self.string(of) else { continue };
                    let short = PREFIXES.iter().find_map(|prefix| full.strip_prefix(prefix)).unwrap_or(full);
                    into.entry(value).or_insert_with(|| Arc::from(short));
                }
                return;
            }
            rest = behind.get(trailer(kind, count)..).unwrap_or_default();
        }
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Bytes behind the three words of a type.
fn trailer(kind: u32, count: u32) -> usize {
    let count = count as usize;
    match kind {
        // int, var, declaration tag
        1 | 14 | 17 => 4,
        // array
        3 => 12,
        // struct, union, section, 64-bit enum
        4 | 5 | 15 | 19 => count * 12,
        // enum, function prototype
        6 | 13 => count * 8,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn btf(strings: &[u8], types: &[u32]) -> Vec<u8> {
        let types: Vec<u8> = types.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).expect("short");
        let mut bytes = MAGIC.to_ne_bytes().to_vec();
        bytes.extend([1, 0]);
        for word in [24, 0, length(&types), length(&types), length(strings)] {
            bytes.extend(u32::to_ne_bytes(word));
        }
        bytes.extend(types);
        bytes.extend(strings);
        bytes
    }

    #[test]
    fn reasons_have_the_names_of_the_running_kernel() {
        let strings = b"\0int\0skb_drop_reason\0SKB_DROP_REASON_NO_SOCKET\0SKB_CONSUMED\0";
        let (int, of, no_socket, consumed) = (1, 5, 21, 47);
        let types = [int, 1 << 24, 4, 0, of, 6 << 24 | 2, 4, no_socket, 3, consumed, 1];
        let module = b"ovs_drop_reason\0OVS_DROP_METER\0";
        let base = u32::try_from(strings.len()).expect("short");
        let ovs = btf(module, &[base, 6 << 24 | 1, 4, base + 16, 3 << 16 | 5]);
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        fs::write(file.path(), ovs).expect("writable");
        let reasons = Reasons::read(&btf(strings, &types), file.path());
        let name = |reason| reasons.name(reason).map(|name| name.to_string());
        assert_eq!(name(3).as_deref(), Some("NO_SOCKET"), "without the prefix that all have");
        assert_eq!(name(1).as_deref(), Some("CONSUMED"), "one that has a shorter prefix");
        assert_eq!(name(3 << 16 | 5).as_deref(), Some("OVS_DROP_METER"), "a module's own");
        assert_eq!(name(99).as_deref(), Some("reason 99"), "a number without a name is shown as such");
        assert_eq!(name(0), None, "a kernel without reasons");
    }

    #[test]
    fn a_module_that_is_loaded_later_is_read_when_its_first_reason_comes() {
        let strings = b"\0skb_drop_reason\0";
        let base = u32::try_from(strings.len()).expect("short");
        let tree = tempfile::tempdir().expect("a temporary directory");
        let path = tree.path().join("openvswitch");
        let mut reasons = Reasons::read(&btf(strings, &[]), &path);
        let name = |reasons: &mut Reasons, reason| {
            reasons.learn(reason);
            reasons.name(reason).map(|name| name.to_string())
        };
        assert_eq!(name(&mut reasons, 3 << 16 | 1).as_deref(), Some("reason 196609"), "there is no module");
        let module = b"ovs_drop_reason\0OVS_DROP_METER\0";
        fs::write(&path, btf(module, &[base, 6 << 24 | 1, 4, base + 16, 3 << 16 | 5])).expect("writable");
        assert_eq!(name(&mut reasons, 3 << 16 | 5).as_deref(), Some("OVS_DROP_METER"), "now there is");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut whole = btf(&bytes, &[0; 4]);
            Reasons::read(&whole, Path::new("/nonexistent"));
            whole.extend(&bytes);
            whole[8..24.min(bytes.len() + 8)].copy_from_slice(&bytes[..bytes.len().min(16)]);
            Reasons::read(&whole, Path::new("/nonexistent"));
        }
    }
}
