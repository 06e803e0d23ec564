//! What `vnettop doctor` says of machines that are told by hand: root on a new kernel, nobody, a container without /sys, Linux
//! 4.18 without BTF, tools that are old or not there, terminals that show little. Every missing thing says what to do.

mod advice;
mod object;
mod places;

use std::collections::BTreeSet;
use std::path::PathBuf;
use vnettop::derive::doctor::{Check, CheckState, Diagnosis, judge};
use vnettop::report::doctor;
use vnettop::sample::Word;
use vnettop::sample::{
    BpfAnswer, Containment, CorePlace, DoctorFacts, HeldRights, Host, Iperf3Found, KernelFeatures, ModuleState,
    MomentaryLoad, Policy, ProgramsFound, Sight, SocketFound, SocketState, TerminalFacts, Topology, TracefsState,
};

fn socket(path: &str, state: SocketState) -> SocketFound {
    SocketFound { path: PathBuf::from(path), state }
}

fn iperf3(version: (u32, u32)) -> Iperf3Found {
    let words = format!("iperf {}.{}", version.0, version.1);
    Iperf3Found { path: PathBuf::from("/usr/bin/iperf3"), version, words }
}

fn topology(cores: u32) -> Topology {
    let place = |core| CorePlace {
        core,
        online: true,
        physical: Some(core / 2),
        llc: Some(0),
        node: Some(0),
        socket: Some(0),
        ..CorePlace::default()
    };
    Topology { cores: (0..cores).map(place).collect(), nodes: 1, ..Topology::default() }
}

/// Linux 6.12, BTF, everything there, nothing in the way.
fn root() -> DoctorFacts {
    DoctorFacts {
        wall_ms: 1_767_323_045_678,
        host: Host {
            name: "bench".to_owned(),
            kernel: "6.12.9-amd64".to_owned(),
            arch: "x86_64".to_owned(),
            policy: Policy {
                governor: Some("performance".to_owned()),
                limit_khz: Some(3_600_000),
                most_khz: Some(3_600_000),
                numa_balancing: None,
                irqbalance: Some(false),
                default_qdisc: None,
                netdev_max_backlog: None,
            },
        },
        kernel: KernelFeatures {
            links: Ok(7),
            ethtool: Ok(true),
            tcp_diag: Ok(ModuleState::Present),
            udp_diag: Ok(ModuleState::Loadable),
            btf: Ok(true),
            moves: BpfAnswer::Loads,
            drops: BpfAnswer::Loads,
            tracefs: Ok(TracefsState::Readable),
            pidfd: Ok(true),
        },
        rights: HeldRights {
            uid: 0,
            user_namespace: Ok(false),
            contained: Containment::Nothing,
            sudo: true,
            bpf: true,
            perfmon: true,
            sys_admin: true,
            sys_ptrace: true,
            sys_nice: true,
            syslog: true,
            knows_bpf: true,
            hides_functions: false,
            journals: Ok("/root/.local/state/vnettop".to_owned()),
            realtime: Ok(()),
            locked_memory: Some(8 << 20),
            open_files: (524_288, 128),
        },
        sight: Sight {
            cores: Ok(8),
            processes: Ok(()),
            foreign_proc: false,
            hidden: Vec::new(),
            sysfs: Ok(()),
            clock_driver: Some("intel_pstate".to_owned()),
            topology: topology(8),
            hypervisor: None,
            load: Some(MomentaryLoad { busy: 2, steal: 0, all: 240 }),
            namespaces: 3,
            inside: false,
            unseen: Vec::new(),
        },
        programs: ProgramsFound {
            docker: vec![socket("/var/run/docker.sock", SocketState::MayOpen)],
            docker_elsewhere: None,
            ovs: vec![socket("/run/openvswitch/db.sock", SocketState::Absent)],
            iperf3: Ok(Some(iperf3((3, 18)))),
            installer: Some("apt-get install"),
        },
        terminal: TerminalFacts {
            is_output: true,
            size: Some((200, 60)),
            term: Some("xterm-256color".to_owned()),
            utf8: true,
            color: true,
        },
    }
}

/// The same machine for an ordinary user, whose terminal shows only ASCII.
fn nobody() -> DoctorFacts {
    let mut facts = root();
    facts.host = Host { name: "b\u{e4}nk".to_owned(), ..facts.host };
    facts.kernel.moves = BpfAnswer::NoRight;
    facts.kernel.drops = BpfAnswer::NoRight;
    facts.kernel.tracefs = Ok(TracefsState::Known);
    let HeldRights { knows_bpf, open_files, contained, sudo, .. } = facts.rights;
    facts.rights = HeldRights {
        uid: 65534,
        user_namespace: Ok(false),
        contained,
        sudo,
        bpf: false,
        perfmon: false,
        sys_admin: false,
        sys_ptrace: false,
        sys_nice: false,
        syslog: false,
        knows_bpf,
        hides_functions: false,
        journals: Ok("/root/.local/state/vnettop".to_owned()),
        realtime: Err("Operation not permitted (os error 1)".to_owned()),
        locked_memory: Some(64 << 10),
        open_files,
    };
    facts.sight.namespaces = 1;
    facts.sight.unseen = vec!["the network namespaces of other users' processes may not be looked at".to_owned()];
    facts.programs.docker = vec![socket("/var/run/docker.sock", SocketState::Denied)];
    facts.programs.iperf3 = Ok(Some(iperf3((3, 9))));
    facts.host.policy.governor = Some("powersave".to_owned());
    facts.terminal = TerminalFacts { size: Some((60, 15)), utf8: false, color: false, ..facts.terminal };
    facts
}

/// Root of a container on Linux 4.18: no BTF, no /sys, no iperf3, a /proc of its own, too few files.
fn old_container() -> DoctorFacts {
    let mut facts = root();
    facts.host = Host {
        kernel: "4.18.0-147.el8.aarch64".to_owned(),
        arch: "aarch64".to_owned(),
        policy: Policy::default(),
        ..facts.host
    };
    let gone = || "No such file or directory (os error 2)".to_owned();
    facts.kernel = KernelFeatures {
        ethtool: Ok(false),
        tcp_diag: Ok(ModuleState::NotLoaded),
        udp_diag: Err(format!("/proc/kallsyms: {}", gone())),
        btf: Ok(false),
        moves: BpfAnswer::Elsewhere,
        drops: BpfAnswer::Elsewhere,
        tracefs: Ok(TracefsState::Known),
        pidfd: Ok(false),
        ..facts.kernel
    };
    facts.rights = HeldRights {
        contained: Containment::Docker,
        sudo: false,
        sys_nice: false,
        sys_admin: false,
        realtime: Err("Operation not permitted (os error 1)".to_owned()),
        knows_bpf: false,
        open_files: (64, 128),
        ..facts.rights
    };
    facts.sight.sysfs = Err(format!("not mounted: {}", gone()));
    facts.sight.topology = Topology::default();
    facts.programs = ProgramsFound {
        docker: vec![socket("/var/run/docker.sock", SocketState::Absent)],
        docker_elsewhere: Some("tcp://192.0.2.1:2375".to_owned()),
        ovs: vec![socket("/run/openvswitch/db.sock", SocketState::Unknown("it is not a socket".to_owned()))],
        iperf3: Ok(None),
        installer: Some("dnf install"),
    };
    facts.terminal = TerminalFacts { is_output: false, size: None, term: Some("dumb".to_owned()), ..facts.terminal };
    facts
}

fn check(diagnosis: &Diagnosis, name: &str) -> Check {
    let found = diagnosis.checks().find(|(_, check)| check.name == name);
    found.unwrap_or_else(|| panic!("there is a check {name}")).1.clone()
}

fn state(facts: &DoctorFacts, name: &str) -> CheckState {
    check(&judge(facts), name).state
}

fn text(facts: &DoctorFacts) -> String {
    doctor::text(facts, &judge(facts))
}

#[test]
fn root_on_a_new_kernel_lacks_nothing() {
    insta::assert_snapshot!("doctor_root", text(&root()));
    let diagnosis = judge(&root());
    let states: BTreeSet<&str> = diagnosis.checks().map(|(_, check)| check.state.word()).collect();
    assert!(diagnosis.works && !states.contains("missing") && !states.contains("unknown"), "{states:?}");
}

#[test]
fn nobody_is_told_what_each_right_would_add() {
    insta::assert_snapshot!("doctor_nobody", text(&nobody()));
    let diagnosis = judge(&nobody());
    assert!(diagnosis.works, "an ordinary user sees what he may");
    assert!(text(&nobody()).is_ascii(), "a terminal without UTF-8 gets ASCII, whatever the host is called");
    assert_eq!(check(&diagnosis, "migrations").remedy.as_deref(), Some("sudo vnettop"));
    assert_eq!(check(&diagnosis, "Docker").state, CheckState::Missing, "the socket is there and may not be opened");
}

#[test]
fn a_container_of_an_old_kernel_is_told_unknown_from_missing() {
    insta::assert_snapshot!("doctor_old_container", text(&old_container()));
    let facts = old_container();
    for name in ["BTF", "TCP sockets", "UDP sockets", "Open vSwitch", "topology", "governor"] {
        assert_eq!(state(&facts, name), CheckState::Unknown, "{name} cannot be known there");
    }
    for name in ["migrations", "/sys", "iperf3", "open files", "screen"] {
        assert_eq!(state(&facts, name), CheckState::Missing, "{name} is not there");
    }
    let diagnosis = judge(&facts);
    assert!(!diagnosis.works, "64 files are too few");
    assert_eq!(diagnosis.verdict, "vnettop cannot work here without: open files.");
}

#[test]
fn linux_4_18_without_btf_traces_by_tracefs_and_not_without() {
    let mut facts = root();
    facts.host.kernel = "4.18.0-147.el8.aarch64".to_owned();
    facts.kernel.btf = Ok(false);
    facts.kernel.drops = BpfAnswer::NoBtf;
    facts.rights.knows_bpf = false;
    assert_eq!(state(&facts, "migrations"), CheckState::Ok, "by way of tracefs");
    assert_eq!(state(&facts, "lost packets"), CheckState::Missing, "the program needs BTF");
    facts.kernel.tracefs = Ok(TracefsState::Known);
    assert_eq!(state(&facts, "migrations"), CheckState::Ok, "vnettop mounts one for a moment");
    facts.kernel.tracefs = Ok(TracefsState::Absent);
    assert_eq!(state(&facts, "migrations"), CheckState::Missing, "neither BTF nor tracefs");
    facts.kernel.moves = BpfAnswer::NoRight;
    facts.rights = HeldRights { bpf: false, perfmon: false, sys_admin: false, ..facts.rights };
    let found = check(&judge(&facts), "migrations").found;
    assert!(found.contains("CAP_SYS_ADMIN"), "no capability is named that this kernel does not know: {found}");
}

#[test]
fn the_kernel_decides_by_its_version_where_it_must() {
    let mut facts = root();
    for (release, expected) in [
        ("4.18.0", CheckState::Ok),
        ("7.2.0-rc1", CheckState::Ok),
        ("4.17.19", CheckState::Missing),
        ("3.10.0-1160.el7", CheckState::Missing),
        ("linux", CheckState::Unknown),
    ] {
        facts.host.kernel = release.to_owned();
        let diagnosis = judge(&facts);
        assert_eq!(check(&diagnosis, "version").state, expected, "{release}");
        assert_eq!(diagnosis.works, expected != CheckState::Missing, "{release}: unknown is no verdict");
    }
    facts.kernel.ethtool = Ok(false);
    facts.host.kernel = "5.4.0".to_owned();
    assert_eq!(state(&facts, "ethtool netlink"), CheckState::Note, "the ioctl stands for it");
    assert_eq!(state(&facts, "lost packets"), CheckState::Note, "reasons begin with 5.17");
    facts.host.kernel = "6.1.0".to_owned();
    assert_eq!(state(&facts, "ethtool netlink"), CheckState::Missing, "it was left out of this kernel");
}

#[test]
fn the_main_job_needs_links_and_proc() {
    let broken = |change: fn(&mut DoctorFacts)| {
        let mut facts = root();
        change(&mut facts);
        judge(&facts)
    };
    let no_links = broken(|facts| facts.kernel.links = Err("Operation not permitted".to_owned()));
    assert!(!no_links.works && no_links.verdict.contains("link counters"), "{}", no_links.verdict);
    let no_proc = broken(|facts| facts.sight.cores = Err("cannot read /proc/stat".to_owned()));
    assert_eq!(check(&no_proc, "/proc").remedy.as_deref(), Some("mount -t proc proc /proc"));
    assert!(!no_proc.works, "without /proc there is nothing to show");
    assert!(broken(|facts| facts.programs.iperf3 = Ok(None)).works, "iperf3 may run elsewhere");
}

#[test]
fn roots_that_are_none_are_not_taken_for_root() {
    let mut facts = root();
    facts.rights.user_namespace = Ok(true);
    facts.kernel.moves = BpfAnswer::NoRight;
    for (name, expected) in
        [("user", CheckState::Note), ("network namespaces", CheckState::Missing), ("migrations", CheckState::Missing)]
    {
        let check = check(&judge(&facts), name);
        assert_eq!(check.state, expected, "{name}");
        assert!(check.remedy.is_some_and(|remedy| remedy.contains("as root of the machine")), "{name}");
    }
    let mut facts = root();
    (facts.rights.sys_nice, facts.rights.contained) = (false, Containment::Docker);
    let remedy = check(&judge(&facts), "pins, priority").remedy;
    assert!(remedy.is_some_and(|remedy| remedy.contains("--cap-add SYS_NICE")), "root of a container lacks it");
    let mut facts = root();
    (facts.kernel.moves, facts.kernel.drops) = (BpfAnswer::Elsewhere, BpfAnswer::Elsewhere);
    assert_eq!(state(&facts, "processes"), CheckState::Note, "a process namespace of its own hides the others");
}

#[test]
fn the_traps_of_iperf3_are_told_by_its_version() {
    let found = |version| {
        let mut facts = root();
        facts.programs.iperf3 = Ok(Some(iperf3(version)));
        check(&judge(&facts), "iperf3")
    };
    let old = found((3, 15));
    assert!(old.state == CheckState::Note && old.found.contains("one thread for all streams"), "{}", old.found);
    let newer = found((3, 16));
    assert!(newer.state == CheckState::Ok && newer.found.contains("needs 3.17"), "{}", newer.found);
    assert!(found((4, 0)).found.contains("a thread for each stream"));
    let mut facts = root();
    facts.programs.iperf3 = Err("iperf3 --version did not answer within 2 s".to_owned());
    assert_eq!(state(&facts, "iperf3"), CheckState::Unknown, "one that hangs is not judged");
    facts.programs.iperf3 = Ok(None);
    let remedy = check(&judge(&facts), "iperf3").remedy.expect("a command");
    assert!(remedy.starts_with("apt-get install iperf3"), "{remedy}");
}

#[test]
fn the_machine_under_test_is_noted_not_refused() {
    let mut facts = root();
    facts.host.policy = Policy {
        governor: Some("ondemand".to_owned()),
        limit_khz: Some(1_200_000),
        most_khz: Some(2_600_000),
        numa_balancing: Some(true),
        irqbalance: Some(true),
        default_qdisc: None,
        netdev_max_backlog: None,
    };
    facts.sight.topology.nodes = 2;
    for name in ["governor", "clock", "irqbalance", "NUMA balancing"] {
        let check = check(&judge(&facts), name);
        assert!(check.state == CheckState::Note && check.remedy.is_some(), "{name}: {check:?}");
    }
    let remedy = check(&judge(&facts), "clock").remedy.expect("a command");
    assert!(remedy.starts_with("echo 2600000 |"), "in the unit of the file, kHz: {remedy}");
}

#[test]
fn every_missing_thing_says_what_it_adds_and_what_to_do_in_lines_that_fit() {
    for facts in [root(), nobody(), old_container()] {
        let diagnosis = judge(&facts);
        let names: BTreeSet<&str> = diagnosis.checks().map(|(_, check)| check.name).collect();
        assert_eq!(names.len(), diagnosis.checks().count(), "no two checks have one name");
        for (_, check) in diagnosis.checks() {
            let is_told = check.adds.is_some() && check.remedy.is_some();
            assert!(check.state != CheckState::Missing || is_told, "{} is missing, and then?", check.name);
            assert!(!check.found.is_empty() && !check.source.is_empty(), "{}", check.name);
        }
        let text = text(&facts);
        assert!(text.lines().all(|line| line.chars().count() <= 98), "no line is wider than 98 columns:\n{text}");
        assert_eq!(text.lines().last(), Some(diagnosis.verdict.as_str()), "the verdict comes last");
        for (_, check) in diagnosis.checks() {
            let command = check.remedy.as_ref().map_or("", |remedy| remedy.split("  ").next().unwrap_or(remedy));
            assert!(
                text.lines().any(|line| line.contains(command)),
                "{}: a command stands on one line, to be copied: {:?}",
                check.name,
                check.remedy
            );
        }
    }
}
