//! What the machine does behind a benchmark's back: where its cores sit, their clocks, who moves interrupts and pages.

use super::remedy::as_root;
use super::{Check, CheckRow, sight};
use crate::figure::percent;
use crate::plural;
use vnettop_sample::{CorePlace, DoctorFacts};

/// A cap closer to the top than this share is none, in percent.
const CAPPED: u64 = 98;
const CPUFREQ: &str = "/sys/devices/system/cpu/cpu*/cpufreq";
const UNSEEN: &str = "not known: /sys is not visible here";

const ADDS_TOPOLOGY: &str = "distances between cores, for proposals and classes of migrations";
const ADDS_QUIET: &str = "interrupts that stay where they are";
const ADDS_STILL: &str = "threads and pages that stay where they are";

const ADDS_STEADY: &str = "a steadier rate";
/// Share of the time from which on steal disturbs a benchmark.
const STOLEN: f64 = 0.01;
/// Cores' worth from which on other programs disturb one.
const LOADED: f64 = 0.3;

pub(super) const CHECKS: &[CheckRow] = &[
    CheckRow::new("topology", "/sys/devices/system/cpu, node", ADDS_TOPOLOGY, topology),
    CheckRow::new("virtual machine", "cpuinfo, /sys/hypervisor, DMI", ADDS_STEADY, virtual_machine),
    CheckRow::new("steal", "/proc/stat", "all time of its cores for the benchmark", steal),
    CheckRow::new("foreign load", "/proc/stat", ADDS_STEADY, foreign_load),
    CheckRow::new("governor", "cpu0/cpufreq/scaling_governor", "a steadier rate", governor),
    CheckRow::new("clock", "scaling_max_freq, cpuinfo_max_freq", "the full clock", clock),
    CheckRow::new("irqbalance", "names of the processes in /proc", ADDS_QUIET, irqbalance),
    CheckRow::new("NUMA balancing", "/proc/sys/kernel/numa_balancing", ADDS_STILL, balancing)
        .only(|facts| facts.sight.topology.nodes >= 2),
];

fn topology(about: &CheckRow, facts: &DoctorFacts) -> Check {
    if facts.sight.sysfs.is_err() {
        return about.without_sys(UNSEEN, facts);
    }
    if facts.sight.cores.is_err() {
        return about.without_proc("not known: /proc is not visible here", facts);
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
    let reported = parts.iter().filter(|(count, _)| *count > 0).map(|&(count, what)| plural(count, what));
    let untold: Vec<&str> = parts.iter().filter(|(count, _)| *count == 0).map(|&(_, what)| what).collect();
    let mut found = std::iter::once(plural(online.len(), "core")).chain(reported).collect::<Vec<_>>().join(", ");
    if !untold.is_empty() {
        found = format!("{found}; not reported: {}", untold.join(", "));
    }
    about.ok(found)
}

fn virtual_machine(about: &CheckRow, facts: &DoctorFacts) -> Check {
    match &facts.sight.hypervisor {
        None if facts.sight.cores.is_err() => about.unknown("not known: /proc is not visible here").adding_nothing(),
        None => about.ok("no hypervisor is visible"),
        Some(name) => about
            .note(format!("{name}: other guests may share its cores, caches and network cards"))
            .mended_by("compare runs by vnettop run --pin compare, which alternates"),
    }
}

fn steal(about: &CheckRow, facts: &DoctorFacts) -> Check {
    let Some(load) = facts.sight.load else {
        return about.unknown("the cores could not be read twice").adding_nothing();
    };
    let share = load.steal as f64 / load.all.max(1) as f64;
    let found = format!("{} % of CPU time goes to other guests", percent(share));
    if share < STOLEN {
        return about.ok(found);
    }
    about.note(found).mended_by("run the benchmark on an idle host, or on dedicated cores")
}

fn foreign_load(about: &CheckRow, facts: &DoctorFacts) -> Check {
    let Some(load) = facts.sight.load else {
        return about.unknown("the cores could not be read twice").adding_nothing();
    };
    let cores = facts.sight.cores.as_ref().map_or(0, |cores| *cores);
    let used = load.busy as f64 / load.all.max(1) as f64 * cores as f64;
    let found = format!("{used:.1} of {} in use now", plural(cores, "core"));
    if used < LOADED {
        return about.ok(found);
    }
    about.note(found).mended_by("top  (what runs there competes with a benchmark)")
}

/// Whose `powersave` follows the load; any other one's is the lowest clock.
const OWN_POWERSAVE: [&str; 3] = ["intel_pstate", "amd-pstate-epp", "amd_pstate_epp"];

/// Why there are no clocks to be read.
fn no_clock(facts: &DoctorFacts) -> &'static str {
    match facts.sight.sysfs {
        Ok(()) if facts.host.policy.governor.is_some() => "the kernel does not report it",
        Ok(()) => "core 0 has no cpufreq: this kernel does not set its clock",
        Err(_) => UNSEEN,
    }
}

fn governor(about: &CheckRow, facts: &DoctorFacts) -> Check {
    match facts.host.policy.governor.as_deref() {
        None => about.unknown(no_clock(facts)).adding_nothing(),
        Some("performance") => about.ok("performance"),
        Some(governor) => about
            .note(format!("{governor}: {}", effect(governor, facts.sight.clock_driver.as_deref())))
            .mended_by(set_cpufreq(facts, "performance", "scaling_governor")),
    }
}

/// What a governor does with the clocks.
fn effect(governor: &str, driver: Option<&str>) -> &'static str {
    match (governor, driver) {
        ("userspace", _) => "the clock is set by a program",
        ("powersave", Some(driver)) if !OWN_POWERSAVE.contains(&driver) => "the clock stays at its lowest",
        _ => "the clock of a core follows its load",
    }
}

fn set_cpufreq(facts: &DoctorFacts, value: impl std::fmt::Display, file: &str) -> String {
    format!("echo {value} | {}", as_root(&facts.rights, &format!("tee {CPUFREQ}/{file}")))
}

fn clock(about: &CheckRow, facts: &DoctorFacts) -> Check {
    let (Some(limit), Some(most)) = (facts.host.policy.limit_khz, facts.host.policy.most_khz) else {
        return about.unknown(no_clock(facts)).adding_nothing();
    };
    if limit.saturating_mul(100) >= most.saturating_mul(CAPPED) {
        return about.ok(format!("core 0 may run at its full {} MHz", most / 1000));
    }
    let found = format!("core 0 is capped at {} of its {} MHz", limit / 1000, most / 1000);
    about.note(found).mended_by(set_cpufreq(facts, most, "scaling_max_freq"))
}

fn irqbalance(about: &CheckRow, facts: &DoctorFacts) -> Check {
    let not_seen = |why: &str| about.unknown(why).adding_nothing();
    match facts.host.policy.irqbalance {
        Some(false) if facts.sight.foreign_proc => not_seen("not known: /proc is that of another PID namespace"),
        Some(false) if sight::is_partial(facts) => not_seen("not known: only some processes are visible here"),
        Some(false) => about.ok("it does not run"),
        Some(true) => about
            .note("it runs, and may put interrupts on cores that threads are pinned to")
            .mended_by(as_root(&facts.rights, "systemctl stop irqbalance")),
        None => not_seen("no process is visible, or there are too many to check"),
    }
}

fn balancing(about: &CheckRow, facts: &DoctorFacts) -> Check {
    match facts.host.policy.numa_balancing {
        Some(false) => about.ok("off"),
        Some(true) => about
            .note("on: the kernel migrates pages and threads between nodes")
            .mended_by(as_root(&facts.rights, "sysctl kernel.numa_balancing=0")),
        None => about.unknown("the kernel does not report it").adding_nothing(),
    }
}
