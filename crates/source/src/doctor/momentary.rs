//! What the machine is and does at this moment: whether it is a virtual one, and how busy its cores are.

use crate::Roots;
use crate::cores::{CoreReader, CoreReading};
use crate::proc_file;
use std::time::Duration;
use vnettop_sample::text::{clean, shortened};
use vnettop_sample::{CoreCounters, MomentaryLoad};

/// Time between the two looks: 30 clock ticks of a core.
const BETWEEN: Duration = Duration::from_millis(300);
/// Characters of a name that firmware gives.
const LONGEST: usize = 40;
/// Vendors of virtual machines, as DMI names them, in small letters.
const VENDORS: &[&str] = &[
    "qemu",
    "kvm",
    "vmware",
    "virtualbox",
    "innotek",
    "xen",
    "microsoft",
    "amazon ec2",
    "google",
    "bochs",
    "parallels",
    "openstack",
    "alibaba",
    "huawei cloud",
    "firecracker",
    "bhyve",
];

/// The virtual machine that this is: by the processor's flag `hypervisor` (x86), by /sys/hypervisor, or by DMI.
pub(super) fn hypervisor(roots: &Roots) -> Option<String> {
    let text = |path: &str| proc_file::text(&roots.sys.join(path)).ok().filter(|text| !text.is_empty());
    let dmi: Vec<String> =
        ["class/dmi/id/sys_vendor", "class/dmi/id/product_name"].into_iter().filter_map(text).collect();
    let name = shortened(clean(dmi.join(" ").as_bytes()), LONGEST);
    let kind = text("hypervisor/type");
    let cpuinfo = proc_file::text(&roots.proc.join("cpuinfo")).unwrap_or_default();
    let is_flagged = cpuinfo
        .lines()
        .find(|line| line.starts_with("flags"))
        .is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"));
    let is_named = VENDORS.iter().any(|vendor| name.to_lowercase().contains(vendor));
    // A physical machine may be sold by a vendor that makes virtual ones too: on x86 the flag decides.
    let knows_flags = cpuinfo.lines().any(|line| line.starts_with("flags"));
    let is_virtual = kind.is_some() || is_flagged || !knows_flags && is_named;
    let otherwise = || kind.clone().unwrap_or_else(|| "unnamed hypervisor".to_owned());
    is_virtual.then(|| if name.is_empty() { otherwise() } else { name.clone() })
}

/// What the cores do from `first` on, for a moment; none where they cannot be read again.
pub(super) fn load(first: &CoreReading, cores: &mut CoreReader) -> Option<MomentaryLoad> {
    std::thread::sleep(BETWEEN);
    let second = cores.read().ok()?;
    let sum = |cores: &[CoreCounters], of: fn(&CoreCounters) -> u64| cores.iter().map(of).sum::<u64>();
    let passed = |of: fn(&CoreCounters) -> u64| sum(&second.cores, of).saturating_sub(sum(&first.cores, of));
    let busy = passed(|core| core.user + core.system + core.irq + core.softirq);
    let (steal, idle) = (passed(|core| core.steal), passed(|core| core.idle));
    let all = busy + steal + idle;
    (all > 0 && first.cores.len() == second.cores.len()).then_some(MomentaryLoad { busy, steal, all })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_virtual_machine_is_known_by_its_flag_and_named_by_its_firmware() {
        let dir = tempfile::tempdir().expect("a directory");
        let roots = Roots { proc: dir.path().join("proc"), sys: dir.path().join("sys") };
        let write = |path: &std::path::Path, text: &str| {
            fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
            fs::write(path, text).expect("a file");
        };
        assert_eq!(hypervisor(&roots), None, "nothing is known");
        write(&roots.sys.join("class/dmi/id/sys_vendor"), "QEMU\n");
        write(&roots.proc.join("cpuinfo"), "processor\t: 0\nflags\t\t: fpu sse2\n");
        assert_eq!(hypervisor(&roots), None, "the flag decides where there are flags");
        write(&roots.proc.join("cpuinfo"), "flags\t\t: fpu hypervisor\n");
        assert_eq!(hypervisor(&roots).as_deref(), Some("QEMU"));
        write(&roots.proc.join("cpuinfo"), "Features\t: fp asimd\n");
        assert_eq!(hypervisor(&roots).as_deref(), Some("QEMU"), "arm64 has no such flag");
        write(&roots.sys.join("class/dmi/id/sys_vendor"), "Huawei\n");
        assert_eq!(hypervisor(&roots), None);
    }
}
