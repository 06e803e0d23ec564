//! What the machine does behind a benchmark's back: where its cores sit, their clocks, who moves interrupts and pages.

use super::{Check, as_root};
use crate::derive::plural;
use crate::sample::{CorePlace, DoctorFacts};

/// A cap closer to the top than this share is none, in percent.
const CAPPED: u64 = 98;
const CPUFREQ: &str = "/sys/devices/system/cpu/cpu*/cpufreq";

pub(super) fn checks(facts: &DoctorFacts) -> Vec<Check> {
    let mut checks = vec![topology(facts), governor(facts), clock(facts), irqbalance(facts)];
    checks.extend(balancing(facts));
    checks
}

fn topology(facts: &DoctorFacts) -> Check {
    let (name, source) = ("topology", "/sys/devices/system/cpu, node");
    let adds = "which cores are near each other: proposals and migration classes rest on it";
    if facts.sight.sysfs.is_err() {
        let found = "not known: /sys is not visible here";
        return Check::unknown(name, source, found)
            .adding(adds)
            .mended_by(as_root(&facts.rights, "mount -t sysfs sysfs /sys"));
    }
    let topology = &facts.sight.topology;
    let online: Vec<&CorePlace> = topology.cores.iter().filter(|place| place.online).collect();
    let count = |of: fn(&CorePlace) -> Option<u32>| {
        let mut known: Vec<u32> = online.iter().filter_map(|place| of(place)).collect();
        known.sort_unstable();
        known.dedup();
        known.len()
    };
    let parts = [
        (count(|place| place.socket), "socket"),
        (count(|place| place.node), "node"),
        (count(|place| place.llc), "last-level cache"),
        (count(|place| place.cluster), "cluster"),
    ];
    let told = parts.iter().filter(|(count, _)| *count > 0).map(|&(count, what)| plural(count, what));
    let untold: Vec<&str> = parts.iter().filter(|(count, _)| *count == 0).map(|&(_, what)| what).collect();
    let mut found = std::iter::once(plural(online.len(), "core")).chain(told).collect::<Vec<_>>().join(", ");
    if !untold.is_empty() {
        found = format!("{found}; not reported: {}", untold.join(", "));
    }
    Check::ok(name, source, found)
}

/// Why there are no clocks to be read.
fn no_clock(facts: &DoctorFacts) -> &'static str {
    match facts.sight.sysfs {
        Ok(()) => "core 0 has no cpufreq: firmware or a hypervisor chooses its clock",
        Err(_) => "not known: /sys is not visible here",
    }
}

fn governor(facts: &DoctorFacts) -> Check {
    let (name, source) = ("governor", "cpu0/cpufreq/scaling_governor");
    match facts.host.policy.governor.as_deref() {
        None => Check::unknown(name, source, no_clock(facts)),
        Some("performance") => Check::ok(name, source, "performance"),
        Some(governor) => Check::note(name, source, format!("{governor}: the clock of a core follows its load"))
            .adding("a steadier rate")
            .mended_by(format!(
                "echo performance | {}",
                as_root(&facts.rights, &format!("tee {CPUFREQ}/scaling_governor"))
            )),
    }
}

fn clock(facts: &DoctorFacts) -> Check {
    let (name, source) = ("clock", "scaling_max_freq, cpuinfo_max_freq");
    let (Some(limit), Some(most)) = (facts.host.policy.limit_khz, facts.host.policy.most_khz) else {
        return Check::unknown(name, source, no_clock(facts));
    };
    let found = format!("core 0 is capped at {} of its {} MHz", limit / 1000, most / 1000);
    if limit.saturating_mul(100) >= most.saturating_mul(CAPPED) {
        return Check::ok(name, source, found);
    }
    Check::note(name, source, found)
        .adding("the full clock")
        .mended_by(format!("echo {most} | {}", as_root(&facts.rights, &format!("tee {CPUFREQ}/scaling_max_freq"))))
}

fn irqbalance(facts: &DoctorFacts) -> Check {
    let (name, source) = ("irqbalance", "names of the processes in /proc");
    match facts.host.policy.irqbalance {
        Some(false) => Check::ok(name, source, "it does not run"),
        Some(true) => Check::note(name, source, "it runs, and may put interrupts on cores that threads are pinned to")
            .adding("interrupts that stay where they are")
            .mended_by(as_root(&facts.rights, "systemctl stop irqbalance")),
        None => Check::unknown(name, source, "no process is visible, or there are too many to check"),
    }
}

/// Only of a machine with several nodes.
fn balancing(facts: &DoctorFacts) -> Option<Check> {
    let (name, source) = ("NUMA balancing", "/proc/sys/kernel/numa_balancing");
    if facts.sight.topology.nodes < 2 {
        return None;
    }
    Some(match facts.host.policy.numa_balancing {
        Some(false) => Check::ok(name, source, "off"),
        Some(true) => Check::note(name, source, "on: the kernel migrates pages and threads between nodes")
            .adding("threads and pages that stay where they are")
            .mended_by(as_root(&facts.rights, "sysctl kernel.numa_balancing=0")),
        None => Check::unknown(name, source, "the kernel does not report it"),
    })
}
