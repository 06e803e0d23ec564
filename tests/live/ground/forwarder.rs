//! Two ends and a virtual machine's stand-in between them: a program that holds a tap on each of two bridges and copies frames.

use super::{Kept, Netns, await_that, pid};
use std::io::Read;
use std::process::Stdio;

/// The program; see there.
const FORWARDER: &str = include_str!("forwarder.py");

/// What the tests need beside it.
pub const PROGRAMS: [&str; 5] = ["ip", "iperf3", "nsenter", "python3", "taskset"];

/// The far end's address.
pub const FAR: &str = "198.18.1.2";

/// Three namespaces, `eth0` 198.18.1.1 in the first – `va`, `br1`, `t1`, the program, `t2`, `br2`, `vb` in the second –
/// `eth0` 198.18.1.2 in the third.
pub struct Forwarder {
    pub near: Netns,
    pub host: Netns,
    pub far: Netns,
    program: Kept,
}

impl Forwarder {
    /// Up, and the program copies; it is given these arguments.
    pub fn start(arguments: &[&str]) -> Self {
        let (near, host, far) = (Netns::new(), Netns::new(), Netns::new());
        for (end, port, number) in [(&near, "va", 1), (&far, "vb", 2)] {
            host.run(&format!(
                "ip link add br{number} type bridge; ip link set br{number} up
                 ip tuntap add t{number} mode tap; ip link set t{number} master br{number} up
                 ip link add {port} type veth peer name eth0 netns {}; ip link set {port} master br{number} up",
                end.pid()
            ));
            end.run(&format!("ip addr add 198.18.1.{number}/24 dev eth0; ip link set eth0 up"));
        }
        let mut command = host.command("python3");
        command.args(["-c", FORWARDER, "t1", "t2"]).args(arguments).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut program = Kept(command.spawn().expect("python3 starts"));
        let mut ready = [0; 6];
        program.0.stdout.as_mut().expect("piped").read_exact(&mut ready).expect("it holds its taps");
        let both_up =
            || ["t1", "t2"].iter().all(|tap| host.output(&format!("ip link show {tap}")).contains("LOWER_UP"));
        await_that("both taps have a carrier", 10, both_up);
        Self { near, host, far, program }
    }

    /// The program's pid, which is its main thread's.
    pub fn pid(&self) -> u32 {
        pid(&self.program)
    }

    /// The thread that copies.
    pub fn copying(&self) -> u32 {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.pid())).expect("it runs").flatten();
        let mut tids = threads.filter_map(|thread| thread.file_name().to_str()?.parse().ok());
        tids.find(|tid| *tid != self.pid()).expect("it has two threads")
    }

    /// How often the kernel moved a thread of it from core to core.
    pub fn moves(&self, tid: u32) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/task/{tid}/sched", self.pid())).expect("it runs");
        let line = text.lines().find(|line| line.starts_with("se.nr_migrations")).expect("the kernel counts them");
        line.rsplit(' ').next().and_then(|word| word.parse().ok()).expect("a number")
    }

    /// It stands still, or goes on.
    pub fn signal(&self, name: &str) {
        self.host.run(&format!("kill -{name} {}", self.pid()));
    }

    /// Packets that the first tap has given to the program, and the second one was given by it.
    pub fn counted(&self) -> [u64; 2] {
        let text = self.host.output("ip -s -j link");
        let links: serde_json::Value = serde_json::from_str(&text).expect("ip prints JSON");
        let count = |name: &str, way: &str| {
            let link = links.as_array().expect("a list").iter().find(|link| link["ifname"] == name);
            link.and_then(|link| link["stats64"][way]["packets"].as_u64()).expect("ip counts")
        };
        [count("t1", "tx"), count("t2", "rx")]
    }
}
