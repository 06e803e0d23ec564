//! Two ends and a router between them, and what iperf3 and vnettop say of a test over them.

use super::truth::now;
use super::{Kept, Netns, VNETTOP, Watching, await_that};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

/// Objects that come in a second.
pub const TICKS_OF_A_SECOND: usize = 5;

/// Rules that a packet walks in the router, so that one core passes on some 10,000 packets a second.
const RULES: usize = 5_000;

/// Three namespaces in a row, the middle one a router: `a0` 198.18.1.1 – `r0`, `r1` – `b0` 198.18.2.1.
pub struct Line {
    pub near: Netns,
    pub router: Netns,
    pub far: Netns,
    pub directory: tempfile::TempDir,
    program: String,
}

impl Line {
    /// Up and routed.
    pub fn new() -> Self {
        let (near, router, far) = (Netns::new(), Netns::new(), Netns::new());
        near.run(&format!("ip link add a0 type veth peer name r0 netns {}", router.pid()));
        far.run(&format!("ip link add b0 type veth peer name r1 netns {}", router.pid()));
        near.run("ip addr add 198.18.1.1/24 dev a0; ip link set a0 up");
        far.run("ip addr add 198.18.2.1/24 dev b0; ip link set b0 up");
        router.run("ip addr add 198.18.1.254/24 dev r0; ip link set r0 up; ip addr add 198.18.2.254/24 dev r1; ip link set r1 up");
        router.run("echo 1 > /proc/sys/net/ipv4/ip_forward");
        near.run("ip route add default via 198.18.1.254");
        far.run("ip route add default via 198.18.2.254");
        let out = Command::new("sh").args(["-c", "command -v iperf3"]).output().expect("sh runs");
        let directory = tempfile::tempdir().expect("a temporary directory");
        // A command is called as the link that it was started by: only this test's processes are watched.
        let inode = fs::metadata(directory.path()).expect("it is there").ino();
        let program = directory.path().join(format!("ip{}", inode % 1_000_000_000));
        std::os::unix::fs::symlink(String::from_utf8_lossy(&out.stdout).trim(), &program).expect("writable");
        let program = program.display().to_string();
        Self { near, router, far, directory, program }
    }

    /// Makes the router too slow for some 25,000 packets a second.
    pub fn hold_up(&self) {
        // No setting of the machine is touched: one core gets all packets of the router, and each takes it long, so that its
        // backlog of 1,000 fills.
        let rules: Vec<String> =
            (1..=RULES).map(|rule| format!("rule add from 203.0.113.9 iif r1 table 100 priority {rule}")).collect();
        let file = self.directory.path().join("rules");
        fs::write(&file, rules.join("\n")).expect("writable");
        self.router.run(&format!("ip -batch {}", file.display()));
        let router = self.router.pid().to_string();
        let set =
            "mount -t sysfs none /sys; for queue in /sys/class/net/r0/queues/rx-*; do echo 2 > $queue/rps_cpus; done";
        let out = Command::new("nsenter").args(["-t", &router, "-n", "--", "unshare", "-m", "sh", "-ec", set]).output();
        let out = out.expect("nsenter runs");
        assert!(out.status.success(), "RPS can be set: {}", String::from_utf8_lossy(&out.stderr));
    }

    /// The same with a bridge in place of the router: `r0` and `r1` are its ports.
    pub fn bridged() -> Self {
        let line = Self::new();
        line.router.run("ip addr flush dev r0; ip addr flush dev r1; ip link add br0 type bridge; ip link set br0 up");
        line.router.run("ip link set r0 master br0; ip link set r1 master br0");
        line.near.run("ip route add 198.18.2.0/24 dev a0");
        line.far.run("ip route add 198.18.1.0/24 dev b0");
        line
    }

    /// Packets that nobody sends on purpose are in no counter of a link either: no IPv6, and nobody is asked for an address.
    pub fn quiet(&self) {
        for netns in [&self.near, &self.router, &self.far] {
            netns.run("for link in /proc/sys/net/ipv6/conf/*/disable_ipv6; do echo 1 > $link; done");
        }
        let address = |netns: &Netns, link: &str| {
            netns.output(&format!("ip -br link show {link} | awk '{{ print $3 }}'")).trim().to_owned()
        };
        let knows = |netns: &Netns, link: &str, whose: &str, (of, its): (&Netns, &str)| {
            netns.run(&format!("ip neigh replace {whose} lladdr {} dev {link} nud permanent", address(of, its)));
        };
        knows(&self.near, "a0", "198.18.1.254", (&self.router, "r0"));
        knows(&self.router, "r0", "198.18.1.1", (&self.near, "a0"));
        knows(&self.router, "r1", "198.18.2.1", (&self.far, "b0"));
        knows(&self.far, "b0", "198.18.2.254", (&self.router, "r1"));
    }

    /// What its processes are called.
    pub fn name(&self) -> &str {
        self.program.rsplit('/').next().expect("a name")
    }

    /// iperf3 by that name.
    pub fn program(&self) -> &str {
        &self.program
    }

    /// An iperf3 server at the far end, on the first core.
    pub fn serve(&self) -> Kept {
        let server = self.far.keep("taskset", &["-c", "0", &self.program, "-s"]);
        // Port 5201 in state LISTEN.
        await_that("the server listens", 10, || self.far.output("cat /proc/net/tcp6 /proc/net/tcp").contains(":1451 "));
        server
    }

    /// One iperf3 test of 6 s: what it reports at its end, and every object of vnettop until a second after the connections
    /// are gone.
    pub fn observe(&self, arguments: &[&str], meanwhile: impl FnOnce(&AtomicBool) + Send) -> (Value, Vec<Value>) {
        let mut command = self.near.command(VNETTOP);
        command.args(["-d", "0.2", "--netns", "all", "--watch", self.name()]);
        let mut watching = Watching::start(command);
        let mut objects = vec![watching.next()];
        until_it_traces(&mut watching, &mut objects);
        let runs = AtomicBool::new(true);
        let report = std::thread::scope(|scope| {
            scope.spawn(|| meanwhile(&runs));
            let mut client = self.near.command(&self.program);
            client.args(["-c", "198.18.2.1", "-J", "-t", "6"]).args(arguments).stdin(Stdio::null());
            let out = client.output().expect("iperf3 runs");
            runs.store(false, Ordering::Relaxed);
            serde_json::from_slice::<Value>(&out.stdout).expect("iperf3 prints its figures as JSON")
        });
        // Before the test the connection that only controls it may come and be known as that.
        let ended = now();
        loop {
            let object = watching.next();
            let is_over = object["ts"].as_str().is_some_and(|ts| ts > &*ended)
                && object["flows"].as_array().is_some_and(Vec::is_empty);
            objects.push(object);
            if is_over {
                break;
            }
        }
        // A function that the kernel has to be asked for is told a little later.
        objects.extend((0..TICKS_OF_A_SECOND).map(|_| watching.next()));
        (report, objects)
    }
}

/// Takes objects until the kernel's own word is had. Where it cannot be, a second goes by.
pub fn until_it_traces(watching: &mut Watching, objects: &mut Vec<Value>) {
    let is_refused = |object: &Value| {
        object["problems"]
            .as_array()
            .is_some_and(|problems| problems.iter().any(|problem| problem["source"] == "kernel"))
    };
    for _ in 0..50 {
        let object = watching.next();
        let is_it = object["trace"]["source"] == "bpf" || is_refused(&object);
        objects.push(object);
        if is_it {
            return;
        }
    }
    panic!("the kernel is asked within ten seconds");
}

/// The inode of a namespace.
pub fn inode(netns: &Netns) -> u64 {
    fs::metadata(format!("/proc/{}/ns/net", netns.pid())).expect("the holder lives").ino()
}

/// A place of losses: its word, its namespace, its name.
pub type Place = (String, u64, String);

/// Packets lost by place, namespace and name.
pub fn lost(objects: &[Value]) -> BTreeMap<Place, f64> {
    let mut sums = BTreeMap::new();
    for object in objects {
        for loss in object["losses"].as_array().expect("a list") {
            let word = |field: &str| loss[field].as_str().unwrap_or_default().to_owned();
            let key = (word("place"), loss["netns"].as_u64().unwrap_or(0), word("name"));
            *sums.entry(key).or_insert(0.0) += loss["packets"].as_f64().expect("packets");
        }
    }
    sums
}
