//! What each check advises, and to whom: a container, a user without sudo, root with half of the capabilities, a machine
//! without /proc. Nobody is advised what he cannot do, and nothing is said that is not known.

use super::{check, nobody, root};
use vnettop::derive::doctor::{Check, CheckState, judge};
use vnettop::sample::{BpfAnswer, Containment, DoctorFacts, ModuleState, TracefsState};

fn told(facts: &DoctorFacts, name: &str) -> Check {
    check(&judge(facts), name)
}

fn remedy(facts: &DoctorFacts, name: &str) -> String {
    told(facts, name).remedy.unwrap_or_else(|| panic!("{name} says what to do"))
}

/// Root of an ordinary container: its own process namespace, the usual capabilities.
fn contained() -> DoctorFacts {
    let mut facts = root();
    (facts.kernel.moves, facts.kernel.drops) = (BpfAnswer::Elsewhere, BpfAnswer::Elsewhere);
    let rights = &mut facts.rights;
    (rights.contained, rights.sudo, rights.bpf, rights.perfmon) = (Containment::Docker, false, false, false);
    (rights.sys_admin, rights.sys_ptrace, rights.sys_nice, rights.syslog) = (false, false, false, false);
    facts
}

#[test]
fn without_proc_nothing_is_said_of_processes_namespaces_and_cores() {
    let mut facts = root();
    facts.sight.cores = Err("cannot read /proc/stat".to_owned());
    facts.sight.processes = Err("cannot read /proc/self".to_owned());
    facts.sight.namespaces = 0;
    facts.sight.topology.cores.clear();
    facts.kernel.tcp_diag = Err("/proc/kallsyms: gone".to_owned());
    facts.kernel.btf = Ok(false);
    facts.kernel.tracefs = Err("/proc/filesystems: gone".to_owned());
    (facts.kernel.moves, facts.kernel.drops) = (BpfAnswer::Elsewhere, BpfAnswer::Elsewhere);
    facts.host.policy.irqbalance = None;
    for name in ["processes", "network namespaces", "topology", "TCP sockets", "tracefs", "migrations", "irqbalance"] {
        let told = told(&facts, name);
        assert_eq!(told.state, CheckState::Unknown, "{name}: {told:?}");
        assert!(!told.found.contains("namespace") && !told.found.contains("0 "), "{name}: {}", told.found);
        let is_mounted = told.remedy.as_deref() == Some("mount -t proc proc /proc");
        assert!(is_mounted || name == "irqbalance", "{name}: {:?}", told.remedy);
    }
}

#[test]
fn sudo_is_advised_only_where_it_is_there_and_helps() {
    let mut facts = nobody();
    for name in ["user", "migrations", "pins, priority", "network namespaces", "Docker"] {
        assert_eq!(remedy(&facts, name), "sudo vnettop", "{name}");
    }
    facts.kernel.tcp_diag = Err("not readable".to_owned());
    assert_eq!(remedy(&facts, "TCP sockets"), "sudo modprobe tcp_diag");
    facts.sight.hidden = vec!["/proc is mounted with hidepid".to_owned()];
    assert_eq!(remedy(&facts, "user"), "sudo vnettop", "a host that hides processes is no container");
    facts.rights.sudo = false;
    for name in ["user", "migrations", "processes", "network namespaces"] {
        assert_eq!(remedy(&facts, name), "run vnettop as root", "{name}");
    }
    assert_eq!(remedy(&facts, "TCP sockets"), "modprobe tcp_diag  (as root)");
    assert!(remedy(&facts, "governor").starts_with("echo performance | tee /sys/"), "{}", remedy(&facts, "governor"));
    facts.rights.contained = Containment::Docker;
    assert_eq!(remedy(&facts, "user"), "docker run --user 0 ...");
    assert_eq!(remedy(&facts, "pins, priority"), "docker run --user 0 --cap-add SYS_NICE ...");
    assert_eq!(remedy(&facts, "migrations"), "docker run --user 0 --cap-add SYS_ADMIN ...", "as older Dockers know it");
}

#[test]
fn root_of_a_container_is_told_what_the_host_has_to_do() {
    let mut facts = contained();
    facts.host.policy.governor = Some("ondemand".to_owned());
    facts.host.policy.irqbalance = Some(true);
    for name in ["governor", "irqbalance"] {
        assert!(remedy(&facts, name).ends_with("  (on the host)"), "{name}: {}", remedy(&facts, name));
    }
    facts.kernel.tcp_diag = Ok(ModuleState::NotLoaded);
    assert_eq!(remedy(&facts, "TCP sockets"), "modprobe tcp_diag  (on the host)", "once");
    facts.sight.sysfs = Err("not mounted: gone".to_owned());
    assert_eq!(remedy(&facts, "/sys"), "start the container with /sys mounted");
    assert!(told(&facts, "/sys").found.starts_with("not mounted"));
    let way = remedy(&facts, "migrations");
    for part in ["--pid=host", "--net=host", "--cap-add SYS_ADMIN", "--cap-add SYS_PTRACE", "on the host"] {
        assert!(way.contains(part), "{part}: {way}");
    }
    facts.rights.open_files = (64, 128);
    assert_eq!(remedy(&facts, "open files"), "docker run --ulimit nofile=128 ...");
    facts.programs.iperf3 = Ok(None);
    assert!(remedy(&facts, "iperf3").starts_with("apt-get install iperf3  ("), "it is installed in the container");
    facts.rights.contained = Containment::Nothing;
    assert_eq!(remedy(&facts, "open files"), "as root: ulimit -n 128  (a service: LimitNOFILE=128)");
}

#[test]
fn root_without_a_capability_is_told_which_one() {
    let mut facts = root();
    facts.rights.sys_ptrace = false;
    let told = told(&facts, "network namespaces");
    assert_eq!(told.found, "3 namespaces; CAP_SYS_PTRACE is missing");
    let service = "a service: add CAP_SYS_PTRACE to its CapabilityBoundingSet=";
    assert_eq!(told.remedy.as_deref(), Some(service), "the set is added to, not emptied");
    facts.rights.contained = Containment::Docker;
    assert_eq!(remedy(&facts, "network namespaces"), "docker run --cap-add SYS_PTRACE ...");
    facts.rights.sys_admin = false;
    facts.sight.unseen = vec!["cannot enter network namespaces; run vnettop as root".to_owned()];
    let told = super::check(&judge(&facts), "network namespaces");
    assert_eq!(told.found, "3 namespaces; CAP_SYS_ADMIN and CAP_SYS_PTRACE are missing", "it is root already");
    assert_eq!(told.remedy.as_deref(), Some("docker run --cap-add SYS_ADMIN --cap-add SYS_PTRACE ..."));
    let mut facts = root();
    facts.sight.unseen = vec!["only 3 network namespaces are shown: limit of 128 open files".to_owned()];
    assert!(remedy(&facts, "network namespaces").starts_with("ulimit -n "), "no capability helps against that");
}

#[test]
fn irqbalance_is_unknown_where_processes_are_out_of_sight() {
    assert_eq!(told(&root(), "irqbalance").state, CheckState::Ok, "all are visible, and it is not among them");
    let mut hidden = nobody();
    hidden.sight.hidden = vec!["/proc is mounted with hidepid".to_owned()];
    for facts in [contained(), hidden] {
        let told = told(&facts, "irqbalance");
        assert_eq!(told.state, CheckState::Unknown, "{}", told.found);
    }
}

#[test]
fn a_capability_of_a_user_namespace_is_not_taken_for_one_of_the_machine() {
    let mut facts = root();
    facts.rights.user_namespace = Ok(true);
    facts.kernel.moves = BpfAnswer::NoRight;
    facts.host.policy.irqbalance = Some(true);
    assert_eq!(told(&facts, "migrations").found, "the capability holds in this user namespace only");
    let way = "run vnettop as root of the machine, outside of this user namespace";
    for name in ["migrations", "user", "network namespaces", "pins, priority"] {
        assert_eq!(remedy(&facts, name), way, "{name}");
    }
    assert_eq!(remedy(&facts, "irqbalance"), "systemctl stop irqbalance  (outside of this user namespace)");
    facts.rights.contained = Containment::Docker;
    assert!(remedy(&facts, "user").ends_with("outside of this container"), "{}", remedy(&facts, "user"));
    facts = root();
    facts.kernel.moves = BpfAnswer::NoRight;
    let way = remedy(&facts, "migrations");
    assert!(way.contains("Seccomp") && way.contains("lockdown"), "either may block it: {way}");
}

#[test]
fn who_lacks_rights_and_btf_is_told_of_both_and_promised_neither() {
    let mut facts = nobody();
    assert!(told(&facts, "user").adds.is_some_and(|adds| adds.contains("each lost packet")), "with BTF");
    facts.kernel.btf = Ok(false);
    facts.kernel.drops = BpfAnswer::NoBtf;
    facts.kernel.tracefs = Ok(TracefsState::Known);
    let drops = told(&facts, "lost packets").found;
    assert!(drops.contains("BTF") && drops.contains("CAP_BPF"), "{drops}");
    assert!(told(&facts, "user").adds.is_some_and(|adds| !adds.contains("lost")), "without BTF root has none either");
    let names = told(&facts, "function names");
    assert!(names.state == CheckState::Note && names.adds.is_none(), "nor a function: {names:?}");
    facts.sight.sysfs = Err("not mounted: gone".to_owned());
    let drops = told(&facts, "lost packets").found;
    assert!(drops.contains("/sys is not visible here") && drops.contains("CAP_BPF"), "{drops}");
    for name in ["BTF", "tracefs"] {
        assert_eq!(told(&facts, name).found, "/sys is not visible here", "{name}");
    }
}

#[test]
fn what_needs_nothing_is_ok_and_clocks_are_what_they_are() {
    let mut facts = root();
    let loadable = told(&facts, "UDP sockets");
    assert!(loadable.state == CheckState::Ok && loadable.remedy.is_none(), "the kernel loads it: {loadable:?}");
    assert_eq!(told(&facts, "clock").found, "core 0 may run at its full 3600 MHz");
    let mut effect = |governor: &str, driver: &str| {
        facts.host.policy.governor = Some(governor.to_owned());
        facts.sight.clock_driver = Some(driver.to_owned());
        told(&facts, "governor").found
    };
    assert_eq!(effect("userspace", "acpi-cpufreq"), "userspace: the clock is set by a program");
    assert_eq!(effect("powersave", "acpi-cpufreq"), "powersave: the clock stays at its lowest");
    assert_eq!(effect("powersave", "intel_pstate"), "powersave: the clock of a core follows its load");
    assert_eq!(effect("schedutil", "acpi-cpufreq"), "schedutil: the clock of a core follows its load");
}
