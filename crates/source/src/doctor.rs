//! What works here and what is missing, read once for `vnettop doctor`: by the readers that sample, opened as they open, and
//! by looks at files where a reader would load a kernel module or call another program. It changes nothing and judges nothing.

mod container;
mod iperf3;
mod modules;
mod momentary;
mod sockets;

use super::cores::CoreReader;
use super::kernel::refusal;
use super::links::LinkReader;
use super::netlink::generic;
use super::netns::{Choice, Spaces};
use super::ovs::SocketPlace;
use super::owners::SocketPlaces;
use super::threads::ThreadReader;
use super::{LEAST_TO_WATCH, Roots, SourceError, enough_descriptors, host, needed, now_ns, proc_file};
use crate::bpf::{self, Refusal};
use crate::clock::wall_ms;
use crate::sched;
use rustix::fs::{Access, access};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, Resource, getpid, getrlimit, pidfd_open};
use rustix::termios::{isatty, tcgetwinsize};
use rustix::thread::{CapabilitySet, capabilities};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use vnettop_sample::text::clean;
use vnettop_sample::{
    BpfAnswer, Containment, DoctorFacts, HeldRights, KernelFeatures, KnownFact, Problem, ProgramsFound, Sight,
    TerminalFacts, Topology, TracefsState,
};

/// Where to look, and what the command line and the environment say.
#[derive(Debug, Clone)]
pub struct DoctorScope {
    /// Where /proc and /sys are.
    pub roots: Roots,
    /// Where Docker's socket may be.
    pub docker: SocketPlaces,
    /// Where databases of Open vSwitch may be.
    pub ovs: Vec<SocketPlace>,
    /// `DOCKER_HOST`.
    pub docker_host: Option<OsString>,
    /// `PATH`.
    pub path: Option<OsString>,
    /// Where journals of pins are kept; none where no directory is named.
    pub journals: Option<PathBuf>,
    /// `TERM`.
    pub term: Option<OsString>,
    /// The screen would have more than ASCII.
    pub utf8: bool,
    /// The screen would have colours.
    pub color: bool,
}

/// Looks at everything, each thing once; at most some seconds.
#[must_use]
pub fn probe(scope: &DoctorScope) -> DoctorFacts {
    let roots = &scope.roots;
    // First, as the program does it: what is opened below takes descriptors.
    let _told_by_the_limit = enough_descriptors(LEAST_TO_WATCH);
    let open_files = (proc_file::descriptor_limit(), needed(LEAST_TO_WATCH));
    DoctorFacts {
        wall_ms: wall_ms(),
        host: host::read(),
        kernel: features(roots),
        rights: rights(scope, open_files),
        sight: sight(roots),
        programs: programs(scope),
        terminal: terminal(scope),
    }
}

fn features(roots: &Roots) -> KernelFeatures {
    let [moves, drops] = programs_of_bpf(roots);
    let [tcp_diag, udp_diag] = modules::find(roots, ["tcp_diag", "udp_diag"]);
    KernelFeatures {
        links: LinkReader::open().and_then(|mut links| links.read()).map(|read| read.links.len()).map_err(words),
        ethtool: ethtool(),
        tcp_diag,
        udp_diag,
        btf: btf(roots),
        moves,
        drops,
        tracefs: tracefs(roots),
        pidfd: match pidfd_open(getpid(), PidfdFlags::empty()) {
            Ok(_) => Ok(true),
            Err(Errno::NOSYS) => Ok(false),
            Err(error) => Err(words(error)),
        },
    }
}

/// A kernel without types of its own has no folder for them either.
fn btf(roots: &Roots) -> KnownFact<bool> {
    let folder = roots.sys.join("kernel/btf");
    match is_there(folder.join("vmlinux").symlink_metadata()) {
        Ok(false) if folder.exists() => Err(format!("something is mounted over {}", folder.display())),
        found => found,
    }
}

/// By its command that asks for the speed of a link (`ETHTOOL_MSG_LINKMODES_GET`), in the list of all families.
fn ethtool() -> KnownFact<bool> {
    const LINKMODES_GET: u8 = 4;
    is_there(generic::open("ethtool", LINKMODES_GET))
}

/// Whether the BPF programs of migrations and of dropped packets load, tried where vnettop itself would load them.
fn programs_of_bpf(roots: &Roots) -> [BpfAnswer; 2] {
    if refusal::is_elsewhere(roots) {
        return [BpfAnswer::Elsewhere, BpfAnswer::Elsewhere];
    }
    bpf::try_loading(&roots.sys).map(|tried| match tried {
        Ok(()) => BpfAnswer::Loads,
        Err(Refusal::Rights) => BpfAnswer::NoRight,
        Err(Refusal::NoBtf) => BpfAnswer::NoBtf,
        Err(Refusal::NoTracefs(error) | Refusal::Unread(error)) => BpfAnswer::Refused(words(error)),
        Err(Refusal::NoMemory { needed_mb, left_mb }) => {
            BpfAnswer::Refused(words(refusal::no_memory(needed_mb, left_mb)))
        }
        Err(Refusal::Other(why)) => BpfAnswer::Refused(words(why)),
    })
}

/// It is mounted nowhere for this: a kind of file system that the kernel does not know would have it look for a module.
fn tracefs(roots: &Roots) -> KnownFact<TracefsState> {
    if bpf::has_migration_event(&roots.sys) {
        return Ok(TracefsState::Readable);
    }
    let list = roots.proc.join("filesystems");
    let kinds = proc_file::text(&list).map_err(|error| format!("{}: {}", list.display(), words(error)))?;
    let is_known = kinds.lines().any(|line| line.split_whitespace().last() == Some("tracefs"));
    Ok(if is_known { TracefsState::Known } else { TracefsState::Absent })
}

fn rights(scope: &DoctorScope, open_files: (usize, usize)) -> HeldRights {
    let roots = &scope.roots;
    let held = capabilities(None).map_or(CapabilitySet::empty(), |own| own.effective);
    HeldRights {
        uid: rustix::process::geteuid().as_raw(),
        user_namespace: proc_file::text(&roots.proc.join("self/uid_map")).map(|map| !is_whole(&map)).map_err(words),
        contained: containment(roots),
        sudo: iperf3::program(scope.path.as_deref(), "sudo").is_some(),
        bpf: held.contains(CapabilitySet::BPF),
        perfmon: held.contains(CapabilitySet::PERFMON),
        sys_admin: held.contains(CapabilitySet::SYS_ADMIN),
        sys_ptrace: held.contains(CapabilitySet::SYS_PTRACE),
        sys_nice: held.contains(CapabilitySet::SYS_NICE),
        syslog: held.contains(CapabilitySet::SYSLOG),
        knows_bpf: refusal::knows_cap_bpf(roots),
        hides_functions: proc_file::text(&roots.proc.join("sys/kernel/kptr_restrict")).is_ok_and(|mode| mode == "2"),
        realtime: realtime(),
        locked_memory: getrlimit(Resource::Memlock).current,
        journals: journals(scope.journals.as_deref()),
        open_files,
    }
}

/// It need not be there: then it can be made in the nearest one that is.
fn journals(directory: Option<&Path>) -> KnownFact<String> {
    let directory = directory.ok_or("neither XDG_STATE_HOME nor HOME is set")?;
    let there = directory.ancestors().find(|place| place.exists()).unwrap_or(directory);
    let name = clean(directory.as_os_str().as_encoded_bytes());
    match access(there, Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) => Ok(name),
        Err(error) => Err(format!("{name}: {}", words(io::Error::from(error)))),
    }
}

fn containment(roots: &Roots) -> Containment {
    let mounts = proc_file::text(&roots.proc.join("self/mountinfo")).unwrap_or_default();
    container::containment(&mounts, roots.proc.join("self").exists() && refusal::is_elsewhere(roots))
}

/// On a thread of its own, which does nothing else: a control group may refuse it to who has the right.
fn realtime() -> KnownFact<()> {
    let tried = std::thread::spawn(|| sched::set_realtime(1)).join();
    tried.map_err(|_panic| "the trial failed".to_owned())?.map_err(words)
}

/// An empty directory is no /proc.
fn own_process(roots: &Roots) -> Result<(), SourceError> {
    let path = roots.proc.join("self");
    path.symlink_metadata().map(drop).map_err(|error| SourceError::File { path, error })
}

/// Every user number means itself: the machine's own user namespace.
fn is_whole(uid_map: &str) -> bool {
    uid_map.split_whitespace().eq(["0", "0", "4294967295"])
}

fn sight(roots: &Roots) -> Sight {
    let mut cores = CoreReader::open(roots);
    let read = cores.as_mut().map_err(words).and_then(|cores| cores.read().map_err(words));
    let load = match (&read, &mut cores) {
        (Ok(first), Ok(cores)) => momentary::load(first, cores),
        _ => None,
    };
    // First: before Linux 6.4 a program without /proc cannot ask how long a tick is, and would end there.
    let threads = own_process(roots).and_then(|()| ThreadReader::open(roots, Vec::new()));
    let choice = Choice::usual();
    let inside = choice == Choice::Own;
    let mut spaces = Spaces::new(roots, choice);
    let namespaces = spaces.read(None, now_ns()).len();
    Sight {
        cores: read.as_ref().map(|read| read.cores.len()).map_err(Clone::clone),
        hidden: threads.as_ref().map_or_else(|_| Vec::new(), |threads| sentences(threads.problems())),
        processes: threads.map(drop).map_err(words),
        foreign_proc: is_foreign(roots),
        sysfs: std::fs::read_dir(roots.sys.join("devices/system/cpu")).map(drop).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => format!("not mounted: {}", words(error)),
            _ => words(error),
        }),
        clock_driver: proc_file::text(&roots.sys.join("devices/system/cpu/cpu0/cpufreq/scaling_driver")).ok(),
        hypervisor: momentary::hypervisor(roots),
        load,
        topology: read.map_or_else(|_| Topology::default(), |read| Topology::clone(&read.topology)),
        namespaces,
        inside,
        unseen: sentences(spaces.problems()),
    }
}

/// Its `self` is named by another number than vnettop has, or by none.
fn is_foreign(roots: &Roots) -> bool {
    let own = std::process::id().to_string();
    own_process(roots).is_ok()
        && std::fs::read_link(roots.proc.join("self")).ok().is_none_or(|link| link.as_os_str() != own.as_str())
}

fn sentences(problems: &[Problem]) -> Vec<String> {
    problems.iter().map(|problem| words(&problem.text)).collect()
}

fn programs(scope: &DoctorScope) -> ProgramsFound {
    let docker = scope.docker.paths.iter().cloned().map(|path| SocketPlace { path, asked: false });
    let host = scope.docker_host.as_ref().map(|host| clean(host.as_encoded_bytes()));
    ProgramsFound {
        docker: docker.map(sockets::look).collect(),
        docker_elsewhere: host.filter(|host| !host.is_empty() && !host.starts_with("unix://")),
        ovs: scope.ovs.iter().cloned().map(sockets::look).collect(),
        iperf3: iperf3::find(scope.path.clone()),
        installer: iperf3::installer(scope.path.as_deref()),
    }
}

fn terminal(scope: &DoctorScope) -> TerminalFacts {
    let size = |fd: std::os::fd::BorrowedFd<'_>| tcgetwinsize(fd).ok().map(|size| (size.ws_col, size.ws_row));
    let (output, error, input) = (rustix::stdio::stdout(), rustix::stdio::stderr(), rustix::stdio::stdin());
    TerminalFacts {
        is_output: isatty(output),
        size: size(output).or_else(|| size(error)).or_else(|| size(input)),
        term: scope.term.as_ref().map(|term| clean(term.as_encoded_bytes())).filter(|term| !term.is_empty()),
        utf8: scope.utf8,
        color: scope.color,
    }
}

/// There, or not there; anything else is a reason.
fn is_there<T>(looked: io::Result<T>) -> KnownFact<bool> {
    match looked {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(words(error)),
    }
}

/// A reason, cleaned where it enters.
fn words(of: impl std::fmt::Display) -> String {
    clean(of.to_string().as_bytes())
}

/// What a fuzzer gives every parser here.
#[cfg(fuzzing)]
pub(crate) fn fuzz(bytes: &[u8]) {
    let _ = iperf3::parse(std::path::Path::new("/i"), bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(roots: Roots) -> DoctorScope {
        DoctorScope {
            roots,
            docker: SocketPlaces::find(|_| None, Some("/nowhere/docker.sock".as_ref())),
            ovs: Vec::new(),
            docker_host: Some("tcp://192.0.2.1:2375".into()),
            path: None,
            journals: None,
            term: Some("a\u{1b}[2J".into()),
            utf8: false,
            color: false,
        }
    }

    #[test]
    fn the_machines_own_user_namespace_maps_every_number_to_itself() {
        assert!(is_whole("         0          0 4294967295\n"), "as /proc/self/uid_map pads it");
        assert!(!is_whole("0 1000 1") && !is_whole(""), "one mapped user is not the machine's root");
    }

    #[test]
    fn a_tree_that_holds_nothing_is_unknown_with_reasons_and_no_guess() {
        let empty = tempfile::tempdir().expect("a temporary directory");
        let roots = Roots { proc: empty.path().join("proc"), sys: empty.path().join("sys") };
        let facts = probe(&scope(roots));
        assert!(facts.sight.cores.is_err(), "nothing is read: {:?}", facts.sight);
        assert!(facts.sight.topology.cores.is_empty(), "no core is made up");
        assert_eq!(facts.kernel.btf, Ok(false), "no types there");
        assert!(facts.sight.processes.is_err_and(|why| why.contains("proc/self: ")), "an empty directory is no /proc");
        assert!(facts.sight.sysfs.is_err_and(|why| why.starts_with("not mounted: ")), "nor is it /sys");
        let why = facts.kernel.tracefs.expect_err("which file systems there are is not known");
        assert!(why.contains("/filesystems: "), "what could not be read is named: {why}");
        assert!(!facts.rights.sudo, "without PATH there is no sudo");
        assert_eq!(facts.kernel.moves, BpfAnswer::Elsewhere, "nothing is loaded for another /proc");
        assert_eq!(facts.programs.iperf3, Ok(None), "without PATH there is no iperf3");
        assert_eq!(facts.programs.docker_elsewhere.as_deref(), Some("tcp://192.0.2.1:2375"));
        assert_eq!(facts.terminal.term.as_deref(), Some("a?[2J"), "nothing steers a terminal");
    }
}
