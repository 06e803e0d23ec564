//! Programs that vnettop works with: Docker, Open vSwitch, iperf3 and its traps.

use super::{Check, as_root, way_to};
use crate::sample::{DoctorFacts, SocketFound, SocketState};

/// From here on iperf3 has a thread for each stream.
const THREADS: (u32, u32) = (3, 16);
/// From here on it has `--json-stream`.
const STREAM: (u32, u32) = (3, 17);

pub(super) fn checks(facts: &DoctorFacts) -> Vec<Check> {
    vec![docker(facts), ovs(facts), iperf3(facts)]
}

fn docker(facts: &DoctorFacts) -> Check {
    let about = SocketKind {
        name: "Docker",
        source: "its socket, looked at and not opened",
        adds: "names of containers and networks beside their links",
        option: "vnettop --docker-socket PATH",
    };
    match &facts.programs.docker_elsewhere {
        Some(host) if facts.programs.docker.iter().all(|socket| socket.state == SocketState::Absent) => {
            let found = format!("DOCKER_HOST is not a socket of this machine: {host}");
            Check::note(about.name, about.source, found).adding(about.adds).mended_by(about.option)
        }
        _ => about.judge(facts, &facts.programs.docker),
    }
}

fn ovs(facts: &DoctorFacts) -> Check {
    let about = SocketKind {
        name: "Open vSwitch",
        source: "its database's socket, looked at and not opened",
        adds: "bridges, ports and upcalls of Open vSwitch",
        option: "vnettop --ovs-socket PATH",
    };
    about.judge(facts, &facts.programs.ovs)
}

/// A program with a socket.
struct SocketKind {
    name: &'static str,
    source: &'static str,
    adds: &'static str,
    option: &'static str,
}

impl SocketKind {
    /// The best of the places counts.
    fn judge(&self, facts: &DoctorFacts, sockets: &[SocketFound]) -> Check {
        let Self { name, source, adds, option } = *self;
        let first = |is: fn(&SocketState) -> bool| sockets.iter().find(|socket| is(&socket.state));
        if let Some(socket) = first(|state| *state == SocketState::MayOpen) {
            return Check::ok(name, source, format!("{} may be opened", socket.path.display()));
        }
        if let Some(socket) = first(|state| *state == SocketState::Denied) {
            let found = format!("{} may not be opened", socket.path.display());
            return Check::missing(name, source, found, adds, way_to(&facts.rights, &["DAC_OVERRIDE"]));
        }
        for socket in sockets {
            if let SocketState::Unknown(why) = &socket.state {
                return Check::unknown(name, source, format!("{}: {why}", socket.path.display())).adding(adds);
            }
        }
        let places: Vec<String> = sockets.iter().map(|socket| socket.path.display().to_string()).collect();
        Check::note(name, source, format!("not here: no {}", places.join(", "))).adding(adds).mended_by(option)
    }
}

fn iperf3(facts: &DoctorFacts) -> Check {
    let (name, source) = ("iperf3", "iperf3 --version of PATH");
    let adds = "a benchmark to watch";
    match &facts.programs.iperf3 {
        Ok(Some(found)) if found.version < THREADS => {
            let text = format!(
                "{} ({}): one thread for all streams of -P, which share a core",
                found.words,
                found.path.display()
            );
            Check::note(name, source, text)
                .adding("from 3.16 on a thread for each stream, from 3.17 on --json-stream")
                .mended_by("a process for each stream: iperf3 -c HOST -p 5202 & iperf3 -c HOST -p 5203")
        }
        Ok(Some(found)) => {
            let stream = if found.version < STREAM { "; --json-stream needs 3.17" } else { ", --json-stream" };
            let text = format!("{} ({}): a thread for each stream{stream}", found.words, found.path.display());
            Check::ok(name, source, text)
        }
        Ok(None) => {
            let remedy = facts.programs.installer.map_or_else(
                || "install iperf3 3.16 or newer, or name another program: vnettop --watch NAME".to_owned(),
                |installer| {
                    let install = as_root(&facts.rights, installer);
                    format!("{install} iperf3  (or another program: vnettop --watch NAME)")
                },
            );
            Check::missing(name, source, "there is none", adds, remedy)
        }
        Err(why) => Check::unknown(name, source, why).adding(adds),
    }
}
