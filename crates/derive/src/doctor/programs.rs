//! Programs that vnettop works with: Docker, Open vSwitch, iperf3 and its traps.

use super::remedy::{engine, way_to};
use super::{Check, CheckRow};
use std::path::Path;
use vnettop_sample::{DoctorFacts, SocketFound, SocketState};

/// From here on iperf3 has a thread for each stream.
const THREADS: (u32, u32) = (3, 16);
/// From here on it has `--json-stream`.
const STREAM: (u32, u32) = (3, 17);

const ADDS_DOCKER: &str = "names of containers and networks beside their links";
const ADDS_OVS: &str = "bridges, ports and upcalls of Open vSwitch";

pub(super) const CHECKS: &[CheckRow] = &[
    CheckRow::new("Docker", "its socket, looked at and not opened", ADDS_DOCKER, docker),
    CheckRow::new("Open vSwitch", "its database's socket, looked at and not opened", ADDS_OVS, ovs),
    CheckRow::new("iperf3", "iperf3 --version of PATH", "a benchmark to watch", iperf3),
];

fn docker(about: &CheckRow, facts: &DoctorFacts) -> Check {
    let option = given(facts, |place| place, "vnettop --docker-socket PATH", &facts.programs.docker);
    match &facts.programs.docker_elsewhere {
        Some(host) if facts.programs.docker.iter().all(|socket| socket.state == SocketState::Absent) => {
            let found = format!("DOCKER_HOST is not a socket of this machine: {host}");
            about.note(found).mended_by(option)
        }
        _ => opened(about, facts, &facts.programs.docker, &option),
    }
}

fn ovs(about: &CheckRow, facts: &DoctorFacts) -> Check {
    let option = given(facts, folder, "vnettop --ovs-socket PATH", &facts.programs.ovs);
    opened(about, facts, &facts.programs.ovs, &option)
}

/// The daemon makes its sockets anew in it.
fn folder(place: &Path) -> &Path {
    place.parent().unwrap_or(place)
}

/// How a socket that is elsewhere is come by: a container is given it from outside.
fn given(facts: &DoctorFacts, what: fn(&Path) -> &Path, option: &str, sockets: &[SocketFound]) -> String {
    match (engine(&facts.rights), sockets.first()) {
        (Some(engine), Some(socket)) => format!("{engine} run -v {0}:{0} ...", what(&socket.path).display()),
        _ => option.to_owned(),
    }
}

/// A program with a socket: the best of the places counts.
fn opened(about: &CheckRow, facts: &DoctorFacts, sockets: &[SocketFound], option: &str) -> Check {
    let first = |is: fn(&SocketState) -> bool| sockets.iter().find(|socket| is(&socket.state));
    if let Some(socket) = first(|state| *state == SocketState::MayOpen) {
        return about.ok(format!("{} may be opened", socket.path.display()));
    }
    if let Some(socket) = first(|state| *state == SocketState::Denied) {
        let found = format!("{} may not be opened", socket.path.display());
        return about.missing(found, way_to(&facts.rights, &["DAC_OVERRIDE"]));
    }
    for socket in sockets {
        if let SocketState::Unknown(why) = &socket.state {
            return about.unknown(format!("{}: {why}", socket.path.display()));
        }
    }
    let places: Vec<String> = sockets.iter().map(|socket| socket.path.display().to_string()).collect();
    about.note(format!("not here: no {}", places.join(", "))).mended_by(option)
}

fn iperf3(about: &CheckRow, facts: &DoctorFacts) -> Check {
    match &facts.programs.iperf3 {
        Ok(Some(found)) if found.version < THREADS => {
            let (words, path) = (&found.words, found.path.display());
            about
                .note(format!("{words} ({path}): one thread for all streams of -P, which share a core"))
                .adding("from 3.16 on a thread for each stream, from 3.17 on --json-stream")
                .mended_by(
                    "iperf3 -c HOST -p 5202 & iperf3 -c HOST -p 5203  (a process for each stream, on both sides)",
                )
        }
        Ok(Some(found)) => {
            let stream = if found.version < STREAM { "; --json-stream needs 3.17" } else { ", --json-stream" };
            about.ok(format!("{} ({}): a thread for each stream{stream}", found.words, found.path.display()))
        }
        Ok(None) => {
            let remedy = facts.programs.installer.map_or_else(
                || "install iperf3 3.16 or newer, or name another program: vnettop --watch NAME".to_owned(),
                |installer| {
                    let other = "or another program: vnettop --watch NAME";
                    match (facts.rights.uid, facts.rights.sudo) {
                        (0, _) => format!("{installer} iperf3  ({other})"),
                        (_, true) => format!("sudo {installer} iperf3  ({other})"),
                        (_, false) => format!("{installer} iperf3  (as root; {other})"),
                    }
                },
            );
            about.missing("PATH has none", remedy)
        }
        Err(why) => about.unknown(why),
    }
}
