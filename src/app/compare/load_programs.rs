//! The programs of one measurement: the receiver first, then the sender, whose report ends it. All of them end with what holds them.

use super::ComparePlan;
use crate::networks::{self, NetworkEnd, NetworkKind, PrivateNetwork, Through};
use crate::sample::Load;
use crate::sched;
use crate::source::benchmarks::ClientReport;
use rustix::pipe::{PipeFlags, pipe_with};
use std::ffi::OsStr;
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// iperf3's port; vnettop's own loads use it too.
const PORT: u16 = 5201;
/// A server that does not listen by then never will.
const PATIENCE: Duration = Duration::from_secs(5);
/// Payload of a UDP packet whose Ethernet frame has 64 bytes.
const SMALL_PAYLOAD: f64 = 18.0;

/// The programs of a measurement while they run.
pub(super) struct RunningLoad {
    _others: Vec<HeldChild>,
    /// The one whose report ends it.
    _reporter: HeldChild,
    report: ReportPipe,
    said: Vec<u8>,
    load: Load,
    /// `iperf3` or `vnettop`.
    pub(super) sender: &'static str,
}

/// A program that ends with its holder.
pub(super) struct HeldChild(Child);

impl HeldChild {
    /// Holds it.
    pub(super) fn of(child: Child) -> Self {
        Self(child)
    }
}

impl Drop for HeldChild {
    fn drop(&mut self) {
        networks::end(&mut self.0);
    }
}

enum ReportPipe {
    Out(ChildStdout),
    Err(std::process::ChildStderr),
}

/// What came of a measurement.
pub(super) struct LoadResult {
    /// Seconds that it lasted.
    pub(super) seconds: f64,
    /// What arrived, a second.
    pub(super) rate: f64,
    /// Share of the packets that did not.
    pub(super) lost_share: Option<f64>,
    /// The iperf3 that sent.
    pub(super) version: Option<String>,
}

/// Whether there is an iperf3 to send with.
#[must_use]
pub fn has_iperf3() -> bool {
    networks::is_installed("iperf3")
}

impl RunningLoad {
    /// Starts the programs of a load; the measurement begins now.
    ///
    /// # Errors
    /// One sentence: what could not be started, or what carries no such load.
    pub(super) fn start(network: &PrivateNetwork, load: Load, plan: &ComparePlan) -> Result<Self, String> {
        let bench = Bench { network, plan };
        match network.kind().through() {
            Through::Network => bench.over_network(load),
            Through::Socket | Through::Pipe => bench.without_network(load, network.kind()),
        }
        .map_err(|error| error.to_string())
    }

    /// Readable when there is something of the report, and at its end.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        match &self.report {
            ReportPipe::Out(pipe) => pipe.as_fd(),
            ReportPipe::Err(pipe) => pipe.as_fd(),
        }
    }

    /// Takes what there is of the report; whether that was its end. To be called when it is readable.
    pub(super) fn receive(&mut self) -> bool {
        let mut piece = [0; 16 * 1024];
        let read = match &mut self.report {
            ReportPipe::Out(pipe) => pipe.read(&mut piece),
            ReportPipe::Err(pipe) => pipe.read(&mut piece),
        };
        match read {
            // A wait that a signal interrupts says of everything that it is readable.
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => false,
            Ok(0) | Err(_) => true,
            Ok(length) => {
                self.said.extend_from_slice(&piece[..length]);
                false
            }
        }
    }

    /// What the report says.
    ///
    /// # Errors
    /// What it says instead.
    pub(super) fn result(&self) -> Result<LoadResult, String> {
        let report = match self.sender {
            "iperf3" => ClientReport::of_iperf3(&self.said),
            _ => ClientReport::of_load(&self.said),
        }?;
        let of_unit = match (self.load, self.sender) {
            (Load::Tcp | Load::Tcp4, _) => 8.0,
            (Load::Udp, "iperf3") => 1.0 / SMALL_PAYLOAD,
            (Load::Rr | Load::Udp, _) => 1.0,
        };
        let lost = |sent: f64| (sent > 0.0).then(|| (1.0 - report.received / sent).max(0.0));
        Ok(LoadResult {
            seconds: report.seconds,
            rate: report.received * of_unit / report.seconds,
            lost_share: report.sent.filter(|_| self.load == Load::Udp).and_then(lost),
            version: report.version,
        })
    }
}

/// The programs of one network.
struct Bench<'a> {
    network: &'a PrivateNetwork,
    plan: &'a ComparePlan,
}

impl Bench<'_> {
    fn over_network(&self, load: Load) -> io::Result<RunningLoad> {
        let target = self.network.kind().target().and_then(|target| target.parse::<IpAddr>().ok());
        let target = target.ok_or_else(|| io::Error::other("its script names no target"))?;
        if load == Load::Rr || (load == Load::Tcp && !has_iperf3()) {
            return self.with_own(load, SocketAddr::new(target, PORT));
        }
        if !has_iperf3() {
            return Err(io::Error::other("this load needs iperf3, which is not installed"));
        }
        let mut server = self.run_at(NetworkEnd::Receiver, "iperf3");
        server.args(["-4", "-s", "-1", "-p", &PORT.to_string(), "--forceflush"]);
        // Nobody reads what it says later, and a full pipe would hold it up.
        server.args(["-i", "0"]);
        let server = listening(server)?;
        let mut client = self.run_at(NetworkEnd::Sender, "iperf3");
        client.args(["-4", "-c", &target.to_string(), "-p", &PORT.to_string(), "-J", "-i", "0"]);
        client.args(["-t", &seconds(self.plan.length), "-O", &seconds(self.plan.warm_up)]);
        match load {
            Load::Tcp4 => drop(client.args(["-P", "4"])),
            Load::Udp => drop(client.args(["-u", "-b", "0", "-l", "18"])),
            Load::Tcp | Load::Rr => {}
        }
        running(client.spawn()?, Vec::from([server]), load, "iperf3")
    }

    /// vnettop's own programs over TCP.
    fn with_own(&self, load: Load, target: SocketAddr) -> io::Result<RunningLoad> {
        let listen = SocketAddr::new(IpAddr::from([0, 0, 0, 0]), PORT).to_string();
        let own = |end, role: &str| own_program(self.network, end, role);
        let window = self.window();
        if load == Load::Rr {
            let mut server = own(NetworkEnd::Receiver, networks::ECHO);
            server.args(["--listen", &listen]);
            let server = listening(server)?;
            let mut client = own(NetworkEnd::Sender, networks::ASK);
            client.args(["--to", &target.to_string()]).args(&window).stdout(Stdio::null()).stderr(Stdio::piped());
            return running(client.spawn()?, Vec::from([server]), load, "vnettop");
        }
        let mut server = own(NetworkEnd::Receiver, networks::SINK);
        server.args(["--listen", &listen]).args(&window).stderr(Stdio::piped());
        let server = listening(server)?;
        let mut client = own(NetworkEnd::Sender, networks::FILL);
        client.args(["--to", &target.to_string()]).stdout(Stdio::null());
        // The receiver counts; it is the one that reports.
        let client = HeldChild(client.spawn()?);
        running_child(server, Vec::from([client]), load, "vnettop")
    }

    /// vnettop's own programs over pipes or a pair of sockets, which they have as standard input and output.
    fn without_network(&self, load: Load, kind: NetworkKind) -> io::Result<RunningLoad> {
        let own = |end, role: &str| own_program(self.network, end, role);
        let (there, back) = match kind.through() {
            Through::Pipe => (pipe()?, pipe()?),
            Through::Socket | Through::Network => {
                let (near, far) = UnixStream::pair()?;
                let twice = (OwnedFd::from(near.try_clone()?), OwnedFd::from(far.try_clone()?));
                ((OwnedFd::from(far), OwnedFd::from(near)), twice)
            }
        };
        let window = self.window();
        if load == Load::Rr {
            let mut server = own(NetworkEnd::Receiver, networks::ECHO);
            server.stdin(Stdio::from(there.0)).stdout(Stdio::from(back.1));
            let server = HeldChild(server.spawn()?);
            let mut client = own(NetworkEnd::Sender, networks::ASK);
            client.args(&window).stdin(Stdio::from(back.0)).stdout(Stdio::from(there.1)).stderr(Stdio::piped());
            return running(client.spawn()?, Vec::from([server]), load, "vnettop");
        }
        let mut sender = own(NetworkEnd::Sender, networks::FILL);
        sender.stdout(Stdio::from(there.1));
        let sender = HeldChild(sender.spawn()?);
        let mut receiver = own(NetworkEnd::Receiver, networks::SINK);
        receiver.args(&window).stdin(Stdio::from(there.0)).stdout(Stdio::null()).stderr(Stdio::piped());
        running(receiver.spawn()?, Vec::from([sender]), load, "vnettop")
    }

    /// A program at an end, free to run on any core that vnettop was started with.
    fn run_at(&self, end: NetworkEnd, program: &str) -> Command {
        program_at(self.network, end, program)
    }

    fn window(&self) -> [String; 4] {
        ["--warm-up".to_owned(), seconds(self.plan.warm_up), "--seconds".to_owned(), seconds(self.plan.length)]
    }
}

fn program_at(network: &PrivateNetwork, end: NetworkEnd, program: &str) -> Command {
    let mut command = network.run_at(end, OsStr::new(program));
    sched::unseated(&mut command);
    command
}

/// One of vnettop's own programs at an end.
pub(super) fn own_program(network: &PrivateNetwork, end: NetworkEnd, role: &str) -> Command {
    let mut command = program_at(network, end, "/proc/self/exe");
    command.args([networks::SUBCOMMAND, role]);
    command
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(pipe_with(PipeFlags::CLOEXEC)?)
}

pub(super) fn seconds(length: Duration) -> String {
    length.as_secs_f64().to_string()
}

fn running(reporter: Child, others: Vec<HeldChild>, load: Load, sender: &'static str) -> io::Result<RunningLoad> {
    running_child(HeldChild(reporter), others, load, sender)
}

fn running_child(
    mut reporter: HeldChild,
    others: Vec<HeldChild>,
    load: Load,
    sender: &'static str,
) -> io::Result<RunningLoad> {
    // What writes to standard error was told to.
    let report = match (reporter.0.stderr.take(), reporter.0.stdout.take()) {
        (Some(err), _) => ReportPipe::Err(err),
        (None, Some(out)) => ReportPipe::Out(out),
        (None, None) => return Err(io::Error::other("its output cannot be read")),
    };
    let running = RunningLoad { _others: others, _reporter: reporter, report, said: Vec::new(), load, sender };
    rustix::io::ioctl_fionbio(running.fd(), true)?;
    Ok(running)
}

/// Starts a server and waits until it says that it listens.
pub(super) fn listening(mut command: Command) -> io::Result<HeldChild> {
    let mut server = HeldChild(command.spawn()?);
    let deadline = Instant::now() + PATIENCE;
    loop {
        match networks::first_line(&mut server.0, deadline) {
            Ok(line) if line.contains("listening") => return Ok(server),
            Ok(line) if line.starts_with('-') => {}
            Ok(line) => {
                let line = crate::text::clean(line.as_bytes());
                return Err(io::Error::other(format!("the server does not listen: {line}")));
            }
            Err(error) => return Err(io::Error::other(format!("the server does not listen: {error}"))),
        }
    }
}
