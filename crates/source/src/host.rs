//! The machine, by name: what does not change while it runs. It refreshes no list of processes.

use super::{Roots, policy, proc_file};
use sysinfo::System;
use vnettop_sample::text;
use vnettop_sample::{Host, Machine, version_of};

/// This machine (`uname` and `gethostname`, three system calls; its policy from /proc and /sys).
#[must_use]
pub fn read() -> Host {
    let clean = |word: String| text::clean(word.as_bytes());
    Host {
        name: clean(System::host_name().unwrap_or_default()),
        kernel: clean(System::kernel_version().unwrap_or_default()),
        arch: clean(System::cpu_arch()),
        policy: policy::read(&Roots::default()),
    }
}

/// This machine as a comparison names it; its cores are told by the first sample.
#[must_use]
pub fn machine(roots: &Roots) -> Machine {
    let info = proc_file::text(&roots.proc.join("cpuinfo")).unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let processor = model.map(|(_, name)| text::clean(name.trim().as_bytes())).filter(|name| !name.is_empty());
    Machine { host: read(), cores: 0, nodes: 0, processor }
}

/// The machine of a captured tree (`sys/kernel/{hostname,osrelease,arch}` of /proc; `arch` since Linux 6.1). What the
/// tree does not tell is empty.
#[must_use]
pub fn read_from(roots: &Roots) -> Host {
    let kernel = roots.proc.join("sys/kernel");
    let word = |file: &str| text::clean(proc_file::text(&kernel.join(file)).unwrap_or_default().as_bytes());
    Host { name: word("hostname"), kernel: word("osrelease"), arch: word("arch"), policy: policy::read(roots) }
}

/// The running kernel is older than that version; what calls itself otherwise is none.
pub(super) fn is_before(version: (u32, u32)) -> bool {
    version_of(&rustix::system::uname().release().to_string_lossy()).is_some_and(|running| running < version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernels_version_is_in_its_release() {
        assert_eq!(version_of("4.18.0-147.el8.aarch64"), Some((4, 18)));
        assert_eq!(version_of("6.18-rc1"), Some((6, 18)));
        assert_eq!((version_of("linux"), version_of("6")), (None, None), "what is no version is none");
        assert!(is_before((1000, 0)) && !is_before((4, 0)), "the running one is between");
    }

    #[test]
    fn the_host_is_the_one_that_proc_names() {
        let (host, proc) = (read(), read_from(&Roots::default()));
        assert!(!host.name.is_empty(), "a machine has a name");
        assert_eq!((&host.name, &host.kernel), (&proc.name, &proc.kernel), "uname and /proc name the same machine");
        assert_eq!(host.arch, rustix::system::uname().machine().to_string_lossy(), "the machine is as uname -m says");
    }
}
