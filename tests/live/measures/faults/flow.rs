//! A flow over a path, and what vnettop finds about it.

use super::*;

/// Python: takes what comes to a port of every address.
const RECEIVER: &str = "
import socket, threading
def take(taken):
    while taken.recv(1 << 20):
        pass
listener = socket.create_server(('', 5201))
while True:
    threading.Thread(target=take, args=(listener.accept()[0],)).start()";

/// Python: sends to an address as fast as another program takes it, but for a short rest after each piece.
const SENDER: &str = "
import socket, sys, time
out = socket.create_connection((sys.argv[1], 5201))
while True:
    out.sendall(b'x' * 500000)
    time.sleep(0.002)";

/// A flow on two cores and a vnettop that watches both ends.
pub struct Flow {
    sender: Kept,
    _receiver: Kept,
    pub watching: Watching,
}

impl Flow {
    /// From one namespace to an address of another; the sender on core 0, the receiver on core 1.
    pub fn between(from: &Netns, to: &Netns, address: &str) -> Self {
        Self::of_programs((from, &["python3", "-c", SENDER, address]), (to, &["python3", "-c", RECEIVER]))
    }

    /// The same with iperf3.
    pub fn of_iperf3(from: &Netns, to: &Netns, address: &str) -> Self {
        Self::of_programs((from, &["iperf3", "-t", "120", "-c", address]), (to, &["iperf3", "-s"]))
    }

    pub fn of_programs((from, sends): (&Netns, &[&str]), (to, takes): (&Netns, &[&str])) -> Self {
        let pinned = |netns: &Netns, core, program: &[&str]| netns.keep("taskset", &[&["-c", core], program].concat());
        let receiver = pinned(to, "1", takes);
        // Port 5201 in state LISTEN.
        await_that("the receiver listens", 20, || {
            to.output("cat /proc/net/tcp /proc/net/tcp6")
                .lines()
                .any(|line| line.contains(":1451 0") && line.contains(" 0A "))
        });
        let sender = pinned(from, "0", sends);
        let mut command = Command::new(VNETTOP);
        for process in [&sender, &receiver] {
            command.args(["--watch", &pid(process).to_string()]);
        }
        command.args(["-d", "0.25"]);
        Self { sender, _receiver: receiver, watching: Watching::start(command) }
    }

    /// The flow of an object that has a path.
    pub fn of<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        let flows = object["flows"].as_array().expect("a list");
        let is_it = |flow: &&Value| flow["from"]["pid"] == pid(&self.sender) && flow["path"][0].is_object();
        flows.iter().find(is_it)
    }

    /// Awaits an object of which this is true, within so many ticks.
    pub fn awaits(&mut self, what: &str, ticks: usize, mut is: impl FnMut(&Self, &Value) -> bool) -> Value {
        let mut last = Value::Null;
        for _ in 0..ticks {
            last = self.watching.next();
            if is(self, &last) {
                return last;
            }
        }
        panic!("{what} within {ticks} ticks; flows {:#}, findings {:#}", last["flows"], last["findings"]);
    }

    /// Awaits a finding whose sentence has all these words, and gives it.
    pub fn finds(&mut self, id: &str, words: &[&str]) -> String {
        let object = self.awaits(&format!("{id} with {words:?} is found"), 60, |_, object| {
            finding(object, id).is_some_and(|text| words.iter().all(|word| text.contains(word)))
        });
        let text = finding(&object, id).expect("it is there");
        eprintln!("{text}");
        text
    }

    /// Awaits that it is gone and stays away: two seconds of silence within ten.
    pub fn mended(&mut self, id: &str) {
        let mut silent = 0;
        for _ in 0..40 {
            let object = self.watching.next();
            silent = if finding(&object, id).is_none() { silent + 1 } else { 0 };
            if silent == 8 {
                return;
            }
        }
        panic!("{id} is gone once mended");
    }

    /// While the flow moves for some seconds, no finding about its path is told.
    pub fn is_healthy(&mut self) {
        let moves = |flow: &Value| flow["bits_per_s"].as_f64().is_some_and(|bits| bits > 1e6);
        let mut seen = 0;
        self.awaits("the flow moves along a whole path", 60, |flow, object| {
            no_finding(object);
            flow.of(object).is_some_and(|flow| moves(flow) && flow["path_gap"].is_null())
        });
        for _ in 0..16 {
            let object = self.watching.next();
            no_finding(&object);
            seen += usize::from(self.of(&object).is_some_and(moves));
        }
        assert!(seen > 8, "the flow moves all the while, {seen} of 16 ticks");
    }

    /// Datagrams arrive for two seconds, and none is lost.
    pub fn is_healthy_for_datagrams(&mut self) {
        let mut healthy = 0;
        self.awaits("datagrams arrive, and none is lost", 120, |_, object| {
            let arrives = object["tests"][0]["bits_per_s"].as_f64().is_some_and(|bits| bits > 1e6);
            healthy = if arrives && finding(object, "loss").is_none() { healthy + 1 } else { 0 };
            healthy == 8
        });
    }

    /// What the hop through a link of that name is told to be handled on: cores, what says so, why not.
    pub fn cores(&mut self, link: &str, what: &str, is: impl Fn(&Value) -> bool) {
        let object = self.awaits(&format!("{link} {what}"), 60, |flow, object| {
            let path = flow.of(object).and_then(|flow| flow["path"].as_array());
            path.is_some_and(|path| path.iter().any(|hop| hop["name"] == link && is(hop)))
        });
        let path = self.of(&object).expect("it is there")["path"].as_array().expect("a list");
        for hop in path {
            eprintln!("{} {} {} {}", hop["name"], hop["softirq_cores"], hop["softirq_by"], hop["softirq_unknown"]);
        }
    }
}
