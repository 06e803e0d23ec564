//! Where vnettop is decides what helps: a container of Docker or Podman, a bare process namespace, another one's /proc, a user
//! with some capabilities, a kernel that keeps something to itself.

use super::{check, iperf3, nobody, root};
use vnettop::derive::doctor::{Check, CheckState, judge};
use vnettop::sample::{BpfAnswer, Containment, DoctorFacts, TracefsState};

fn told(facts: &DoctorFacts, name: &str) -> Check {
    check(&judge(facts), name)
}

fn remedy(facts: &DoctorFacts, name: &str) -> String {
    told(facts, name).remedy.unwrap_or_else(|| panic!("{name} says what to do"))
}

/// Root of the machine in a process namespace of its own.
fn elsewhere(contained: Containment) -> DoctorFacts {
    let mut facts = root();
    (facts.kernel.moves, facts.kernel.drops) = (BpfAnswer::Elsewhere, BpfAnswer::Elsewhere);
    facts.rights.contained = contained;
    facts
}

#[test]
fn a_process_namespace_that_no_engine_made_is_told_of_no_engine() {
    let facts = elsewhere(Containment::PidNamespace);
    for name in ["migrations", "lost packets", "processes", "network namespaces"] {
        assert_eq!(remedy(&facts, name), "run vnettop outside of this PID namespace", "{name}");
    }
    for (_, check) in judge(&facts).checks() {
        assert!(!check.remedy.as_ref().is_some_and(|remedy| remedy.contains(" run -")), "{check:?}");
    }
    assert!(told(&facts, "migrations").found.ends_with("not in the machine's own PID namespace"));
    let facts = elsewhere(Containment::Podman);
    assert!(remedy(&facts, "migrations").starts_with("podman run --pid=host --net=host --cap-add SYS_ADMIN"));
}

#[test]
fn what_a_capability_alone_would_not_show_is_advised_whole() {
    let mut facts = elsewhere(Containment::Docker);
    (facts.rights.sys_admin, facts.rights.sys_ptrace) = (false, false);
    let way = remedy(&facts, "network namespaces");
    assert!(way.contains("--pid=host") && way.contains("SYS_ADMIN") && way.contains("SYS_PTRACE"), "{way}");
    facts.rights.uid = 1000;
    let way = remedy(&facts, "migrations");
    assert!(way.starts_with("docker run --user 0 --pid=host"), "only root of a container has its capabilities: {way}");
    facts.rights = super::HeldRights { contained: Containment::Docker, ..nobody().rights };
    let user = told(&facts, "user");
    assert_eq!(user.adds, Some("the container's capabilities, which only its root has"), "{user:?}");
    facts.programs.docker[0].state = super::SocketState::Absent;
    assert_eq!(remedy(&facts, "Docker"), "docker run -v /var/run/docker.sock:/var/run/docker.sock ...");
    assert_eq!(remedy(&facts, "Open vSwitch"), "docker run -v /run/openvswitch:/run/openvswitch ...");
}

#[test]
fn another_ones_proc_is_left_by_a_mount_that_nobody_else_sees() {
    let mut facts = elsewhere(Containment::PidNamespace);
    facts.sight.foreign_proc = true;
    facts.sight.hidden = vec!["/proc belongs to another PID namespace".to_owned()];
    assert_eq!(remedy(&facts, "processes"), "unshare --mount-proc vnettop", "never over the /proc of all");
    for name in ["migrations", "network namespaces", "irqbalance"] {
        let found = told(&facts, name).found;
        assert!(found.ends_with("/proc is that of another PID namespace"), "{name}: {found}");
    }
    facts.rights.contained = Containment::Nothing;
    facts.sight.hidden.clear();
    facts.kernel.links = Err("cannot read /proc/thread-self/ns/net".to_owned());
    for name in ["link counters", "migrations", "processes", "network namespaces"] {
        assert_eq!(remedy(&facts, name), "unshare --mount-proc vnettop", "{name}: vnettop is in none, its /proc is");
    }
    assert_eq!(told(&facts, "processes").found, "/proc is that of another PID namespace");
}

#[test]
fn an_ok_line_says_something_that_is_fine() {
    let mut facts = root();
    facts.kernel.tracefs = Ok(TracefsState::Known);
    assert_eq!(told(&facts, "tracefs").found, "not needed: BPF traces migrations here");
    facts.kernel.moves = BpfAnswer::NoRight;
    let tracefs = told(&facts, "tracefs");
    assert_eq!(tracefs.found, "not needed: with BTF migrations are traced without it", "here they are not traced yet");
    let mut facts = root();
    (facts.kernel.btf, facts.kernel.tracefs) = (Ok(false), Ok(TracefsState::Known));
    for facts in [root(), nobody(), facts] {
        for (_, check) in judge(&facts).checks().filter(|(_, check)| check.state == CheckState::Ok) {
            assert!(!check.found.contains("not readable"), "{check:?}");
        }
    }
}

#[test]
fn types_that_something_is_mounted_over_are_not_said_to_be_lacking() {
    let mut facts = root();
    facts.kernel.btf = Err("something is mounted over /sys/kernel/btf".to_owned());
    facts.kernel.drops = BpfAnswer::NoBtf;
    for name in ["BTF", "lost packets"] {
        let told = told(&facts, name);
        assert_eq!(told.state, CheckState::Unknown, "{told:?}");
        assert!(told.found.contains("mounted over") && told.remedy.is_none(), "no other kernel is needed: {told:?}");
    }
    assert_eq!(told(&facts, "migrations").found, "each one is traced, through tracefs");
}

#[test]
fn what_the_kernel_keeps_from_everybody_is_not_promised_with_a_capability() {
    let mut facts = root();
    facts.rights.hides_functions = true;
    let names = told(&facts, "function names");
    assert_eq!((names.state, names.remedy.as_deref()), (CheckState::Missing, Some("sysctl kernel.kptr_restrict=1")));
    facts.rights.realtime = Err("Operation not permitted (os error 1)".to_owned());
    let pins = told(&facts, "pins, priority");
    assert_eq!(pins.state, CheckState::Note, "a control group without real-time runtime refuses it: {pins:?}");
    assert!(pins.found.contains("real-time priority is refused: Operation not permitted"), "{}", pins.found);
    facts.rights.sys_nice = false;
    facts.rights.realtime = Ok(());
    assert_eq!(
        told(&facts, "pins, priority").adds,
        Some("pins of other users' threads"),
        "RLIMIT_RTPRIO gives the rest"
    );
}

#[test]
fn a_user_with_capabilities_is_not_told_that_he_has_none() {
    let mut facts = nobody();
    facts.rights.sys_nice = true;
    let user = told(&facts, "user");
    assert_eq!(user.found, "user 65534, with some of root's capabilities");
    assert!(user.remedy.is_none(), "each of them has a line of its own");
    facts.rights.user_namespace = Ok(true);
    assert_eq!(told(&facts, "user").found, "user 65534 of a user namespace, not of the machine");
}

#[test]
fn a_namespace_is_entered_with_the_rights_or_not_at_all() {
    let mut facts = root();
    facts.sight.inside = true;
    assert_eq!(remedy(&facts, "network namespaces"), "vnettop --netns all");
    facts.rights.sys_admin = false;
    assert!(remedy(&facts, "network namespaces").contains("CAP_SYS_ADMIN"), "the option alone would show no other");
    facts.rights.sys_admin = true;
    facts.rights.user_namespace = Ok(true);
    assert!(remedy(&facts, "network namespaces").contains("outside of this user namespace"), "nor would it there");
    let mut facts = root();
    facts.sight.unseen = vec!["cannot enter network namespaces of other users' processes".to_owned()];
    assert!(remedy(&facts, "network namespaces").starts_with("cat /proc/self/attr/current"), "no limit is in the way");
    facts.rights.contained = Containment::Docker;
    assert_eq!(remedy(&facts, "network namespaces"), "docker run --security-opt apparmor=unconfined ...");
}

#[test]
fn a_package_is_installed_by_root_and_streams_have_a_command_to_copy() {
    let mut facts = nobody();
    facts.programs.iperf3 = Ok(None);
    assert!(remedy(&facts, "iperf3").starts_with("sudo apt-get install iperf3  (or"), "{}", remedy(&facts, "iperf3"));
    facts.rights.sudo = false;
    assert!(
        remedy(&facts, "iperf3").starts_with("apt-get install iperf3  (as root; or"),
        "{}",
        remedy(&facts, "iperf3")
    );
    facts.programs.iperf3 = Ok(Some(iperf3((3, 9))));
    assert!(remedy(&facts, "iperf3").starts_with("iperf3 -c HOST -p 5202 & iperf3 -c HOST -p 5203  ("));
}

#[test]
fn before_linux_5_11_a_limit_of_locked_memory_is_told_from_a_lockdown() {
    let mut facts = root();
    facts.kernel.moves = BpfAnswer::NoRight;
    facts.rights.locked_memory = Some(64 << 10);
    assert!(remedy(&facts, "migrations").contains("lockdown"), "newer kernels do not charge for it");
    facts.host.kernel = "4.18.0-147.el8.aarch64".to_owned();
    let migrations = told(&facts, "migrations");
    assert_eq!(migrations.found, "64 KiB may be locked in memory; before Linux 5.11 BPF needs more");
    assert!(migrations.remedy.is_some_and(|remedy| remedy.starts_with("as root: ulimit -l unlimited")));
    facts.rights.contained = Containment::Docker;
    assert_eq!(remedy(&facts, "migrations"), "docker run --ulimit memlock=-1 ...");
    facts.rights.locked_memory = None;
    assert!(remedy(&facts, "migrations").contains("lockdown"), "nothing is limited");
}

#[test]
fn a_journal_that_cannot_be_written_is_said_before_a_pin_is_refused_for_it() {
    let mut facts = nobody();
    facts.rights.journals = Err("/root/.local/state/vnettop: Permission denied (os error 13)".to_owned());
    let told = told(&facts, "pin journal");
    assert_eq!((told.state, told.remedy.as_deref()), (CheckState::Missing, Some("XDG_STATE_HOME=DIRECTORY vnettop")));
    assert!(told.found.contains("/root/.local/state/vnettop: Permission denied"), "{told:?}");
    assert!(judge(&facts).works, "all but pins works");
}
