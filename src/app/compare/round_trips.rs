//! Round trips of one byte between the ends of a network, while it is idle and beside its loads. What does not answer has none: it is no reason
//! to measure nothing else.

use super::load_programs::{HeldChild, listening, own_program, seconds};
use crate::networks::{self, NetworkEnd, PrivateNetwork, Through};
use crate::sample::RoundTrips;
use crate::source::benchmarks::round_trips;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::process::{ChildStderr, Stdio};
use std::time::{Duration, Instant};

/// Beside that of the loads. A path that forwards one port forwards this one too.
const PORT: u16 = 5202;
/// The path is asked so long while it is idle: some 100 round trips.
pub(super) const IDLE: Duration = Duration::from_secs(1);
/// How much longer than it should who asks may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// Who answers in a network, for as long as it stands.
pub(super) struct Answerer {
    target: SocketAddr,
    _server: HeldChild,
}

/// Who asks now; gone with it.
pub(super) struct Asking {
    report: ChildStderr,
    until: Instant,
    _client: HeldChild,
}

impl Answerer {
    /// Starts it; `None` where the path is no network, or nothing can listen there.
    pub(super) fn start(network: &PrivateNetwork) -> Option<Self> {
        if network.kind().through() != Through::Network {
            return None;
        }
        let target = network.kind().target()?.parse::<IpAddr>().ok()?;
        let mut server = own_program(network, NetworkEnd::Receiver, networks::ECHO);
        server.args(["--name", networks::PROBE_NAME, "--listen", &format!("0.0.0.0:{PORT}")]);
        Some(Self { target: SocketAddr::new(target, PORT), _server: listening(server).ok()? })
    }

    /// Begins to ask, for this long after a warm-up.
    pub(super) fn ask(&self, network: &PrivateNetwork, (warm_up, length): (Duration, Duration)) -> Option<Asking> {
        let mut client = own_program(network, NetworkEnd::Sender, networks::PROBE);
        client.args(["--name", networks::PROBE_NAME, "--to", &self.target.to_string()]);
        client.args(["--warm-up", &seconds(warm_up), "--seconds", &seconds(length)]);
        client.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut client = client.spawn().ok()?;
        let report = client.stderr.take();
        let client = HeldChild::of(client);
        let until = Instant::now() + warm_up + length + PATIENCE;
        Some(Asking { report: report?, until, _client: client })
    }
}

impl Asking {
    /// What it measured, once its time is over; `None` where nothing answered.
    pub(super) fn answers(mut self) -> Option<RoundTrips> {
        let mut said = Vec::new();
        loop {
            let left = Timespec::try_from(self.until.saturating_duration_since(Instant::now())).ok()?;
            match poll(&mut [PollFd::new(&self.report, PollFlags::IN)], Some(&left)) {
                Err(rustix::io::Errno::INTR) => continue,
                Ok(1..) => {}
                Ok(0) | Err(_) => return None,
            }
            let mut piece = [0; 1024];
            match self.report.read(&mut piece).ok()? {
                0 => return round_trips(&said),
                length => said.extend_from_slice(&piece[..length]),
            }
        }
    }
}
