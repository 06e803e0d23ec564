//! A network with a sender in it that sends at a steady rate, what vnettop says of its way, and what should be said.

use crate::ground::{Kept, Netns, VNETTOP, Watching, await_that, pid};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

/// Python: takes what comes to a port.
const RECEIVER: &str = "
import socket, sys
listener = socket.create_server((sys.argv[1], 5201))
while True:
    taken, _ = listener.accept()
    while taken.recv(65536):
        pass";

/// Python: 2.5 MB/s in pieces of 25 kB; time lost is made good. Its socket has a mark.
const SENDER: &str = "
import socket, sys, time
out = socket.socket()
out.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, int(sys.argv[2]))
out.connect((sys.argv[1], 5201))
begun, sent = time.monotonic(), 0
while True:
    out.sendall(b'x' * 25000)
    sent += 25000
    time.sleep(max(0, sent / 2.5e6 - (time.monotonic() - begun)))";

/// Ticks that rates are summed over.
const TICKS: usize = 8;

/// A veth pair between two namespaces, up at both ends.
pub fn cable((one, name): (&Netns, &str), (other, peer): (&Netns, &str)) {
    one.run(&format!("ip link add {name} type veth peer name {peer} netns {}; ip link set {name} up", other.pid()));
    other.run(&format!("ip link set {peer} up"));
}

/// A network, and from where to where something is sent in it.
pub struct Shape<'a> {
    spaces: BTreeMap<u64, &'static str>,
    from: &'a Netns,
    to: &'a Netns,
    address: &'static str,
    listens: &'static str,
    mark: u32,
}

impl<'a> Shape<'a> {
    /// Namespaces by a letter each.
    pub fn new(spaces: &[(&'static str, &'a Netns)], from: &str, to: &str, address: &'static str) -> Self {
        let find = |letter: &str| spaces.iter().find(|(name, _)| *name == letter).expect("a letter of the shape").1;
        let inode = |netns: &Netns| fs::metadata(format!("/proc/{}/ns/net", netns.pid())).expect("it lives").ino();
        let (from, to) = (find(from), find(to));
        Self {
            spaces: spaces.iter().map(|(name, netns)| (inode(netns), *name)).collect(),
            from,
            to,
            address,
            listens: address,
            mark: 0,
        }
    }

    /// The receiver has another address than its sender uses.
    pub fn behind(self, listens: &'static str) -> Self {
        Self { listens, ..self }
    }

    /// The sender's socket has this mark.
    pub fn marked(self, mark: u32) -> Self {
        Self { mark, ..self }
    }

    /// The processes at both ends.
    fn traffic(&self) -> (Kept, Kept) {
        let receiver = self.to.keep("python3", &["-c", RECEIVER, self.listens]);
        // Port 5201 in state LISTEN.
        await_that("the receiver listens", 20, || {
            self.to.output("cat /proc/net/tcp").contains(":1451 00000000:0000 0A")
        });
        (self.from.keep("python3", &["-c", SENDER, self.address, &self.mark.to_string()]), receiver)
    }

    /// The flow as vnettop, started with these arguments by the sender's side, tells it when it has a path or a gap.
    pub fn watched_with(&self, arguments: &[&str]) -> Value {
        self.watched_by(self.from.command(VNETTOP), arguments)
    }

    /// The same as a vnettop tells it that is started by this command.
    pub fn watched_by(&self, mut command: Command, arguments: &[&str]) -> Value {
        let (sender, receiver) = self.traffic();
        let mut watching = Watching::start(started(&mut command, &sender, &receiver, arguments));
        for _ in 0..60 {
            let object = watching.next();
            let flow = object["flows"].as_array().into_iter().flatten().find(|flow| is_way_told(flow, &sender));
            if let Some(flow) = flow {
                return flow.clone();
            }
        }
        panic!("a flow with a path or a gap is told within 60 ticks");
    }

    /// The path in JSON is this one, `letter:link way by` a hop, without a gap; each hop that counts moves what the flow
    /// moves and little more, and those with the same packets move the same. Returns the path's note.
    pub fn is_walked(&self, expected: &str) -> Value {
        let (sender, receiver) = self.traffic();
        let mut command = Command::new(VNETTOP);
        let mut watching = Watching::start(started(&mut command, &sender, &receiver, &[]));
        let mut last = String::new();
        let mut rates: Vec<(f64, Vec<Option<f64>>)> = Vec::new();
        for _ in 0..80 {
            let object = watching.next();
            let Some(flow) = object["flows"].as_array().into_iter().flatten().find(|flow| is_way_told(flow, &sender))
            else {
                continue;
            };
            last = format!("{} · gap {}", self.told(flow), flow["path_gap"]);
            if self.told(flow) != expected || !flow["path_gap"].is_null() {
                rates.clear();
                continue;
            }
            let hops = flow["path"].as_array().expect("a list").iter().map(|hop| hop["bits_per_s"].as_f64()).collect();
            rates.extend(flow["bits_per_s"].as_f64().map(|moved| (moved, hops)));
            if rates.len() == TICKS {
                rates_agree(expected, &rates);
                return flow["path_note"].clone();
            }
        }
        panic!("the path is told as it is:\n  expected {expected}\n  told     {last}");
    }

    /// The path as `letter:link way by`.
    fn told(&self, flow: &Value) -> String {
        let hop = |hop: &Value| {
            let letter = hop["netns"].as_u64().and_then(|netns| self.spaces.get(&netns)).unwrap_or(&"?");
            let word = |field: &str| hop[field].as_str().unwrap_or("?").to_owned();
            format!("{letter}:{} {} {}", word("name"), word("way"), word("by"))
        };
        flow["path"].as_array().into_iter().flatten().map(hop).collect::<Vec<_>>().join(", ")
    }
}

/// It is the sender's own connection, and its way is told.
fn is_way_told(flow: &Value, sender: &Kept) -> bool {
    let is_told = flow["path"].as_array().is_some_and(|path| !path.is_empty()) || flow["path_gap"].is_string();
    is_told && flow["from"]["pid"] == pid(sender) && flow["bits_per_s"].as_f64().is_some_and(|rate| rate > 1e6)
}

fn started(command: &mut Command, sender: &Kept, receiver: &Kept, arguments: &[&str]) -> Command {
    for process in [sender, receiver] {
        command.args(["--watch", &pid(process).to_string()]);
    }
    command.args(["-d", "0.5"]).args(arguments);
    std::mem::replace(command, Command::new("true"))
}

/// Each hop that counts moves what the flow moves and its headers.
fn rates_agree(expected: &str, rates: &[(f64, Vec<Option<f64>>)]) {
    let moved: f64 = rates.iter().map(|(moved, _)| moved).sum();
    for (at, hop) in expected.split(", ").enumerate() {
        let sum: Option<f64> = rates.iter().map(|(_, hops)| hops[at]).sum();
        let share = sum.map(|sum| sum / moved);
        eprintln!("{hop}: {share:?} of the flow's {:.1} Mbit/s", moved / rates.len() as f64 / 1e6);
        match share {
            None => assert!(hop.contains(" passed "), "{hop} has a rate"),
            Some(share) => {
                assert!(!hop.contains(" passed "), "a bridge that only forwards counts nothing: {hop}");
                assert!((0.98..1.06).contains(&share), "{hop} moves the flow and its headers: {share}");
            }
        }
    }
}
