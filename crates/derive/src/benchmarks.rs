//! The benchmark tests that run: what a client's command line says, and what a server's connections show, because its own
//! command line says nothing of the test.

use super::flow::{self, Connection};
use vnettop_sample::{Benchmark, Direction, Event, Report, Reported, Side, Word};

/// The running test in its program's own words, by its clients, or by its servers when the clients are elsewhere; `None` when
/// no test runs.
#[must_use]
pub fn words(benchmarks: &[Benchmark]) -> Option<String> {
    let running = |side| benchmarks.iter().filter(move |one| one.side == side && one.runs());
    let (one, all) = match running(Side::Client).next() {
        Some(client) => (client, running(Side::Client).count()),
        None => (running(Side::Server).next()?, running(Side::Server).count()),
    };
    let target = one.target.as_deref().unwrap_or_default();
    let side = if one.side == Side::Client { "→ " } else { "-s " };
    let target = if target.contains(':') { format!("[{target}]") } else { target.to_owned() };
    let mut text = format!("{} {side}{target}:{}", one.program.word(), one.port);
    text.extend(one.proto.map(|proto| format!(", {}", proto.word().to_uppercase())));
    text.extend(one.streams.filter(|&streams| streams > 1).map(|streams| format!(", {streams} streams")));
    text.push_str(match one.direction {
        Some(Direction::Reverse) => ", reverse",
        Some(Direction::Both) => ", both directions",
        _ => "",
    });
    if all > 1 {
        text = format!("{text} (+{} more)", all - 1);
    }
    Some(text)
}

/// The last interval that the command of `vnettop run` reported into its standard output, and that command's process.
#[derive(Debug, Clone, Default)]
pub(super) struct LastInterval(Option<(u32, Reported)>);

impl LastInterval {
    pub(super) fn event(&mut self, event: &Event) {
        match *event {
            Event::Reported { pid, report: Report::Interval(last), .. } => self.0 = Some((pid, last)),
            Event::RunStarted { .. } | Event::RunEnded { .. } => self.0 = None,
            _ => {}
        }
    }

    /// Gives the report to its benchmark: the command itself, else the only client that writes such lines.
    fn join(&self, all: &mut [Benchmark]) {
        let Some((pid, last)) = self.0 else { return };
        let of_command = all.iter().position(|one| one.pid == pid && one.json_stream);
        let mut clients = (0..all.len()).filter(|&at| all[at].json_stream && all[at].side == Side::Client);
        let only = clients.next().filter(|_| clients.next().is_none());
        if let Some(test) = of_command.or(only).map(|at| &mut all[at]).filter(|test| test.reported.is_none()) {
            (test.reported, test.unread) = (Some(last), None);
        }
    }
}

/// Every benchmark with what its connections tell: a server has protocol, streams and direction only of a test that it serves.
pub(super) fn all(benchmarks: &[Benchmark], connections: &[Connection], arrived: &LastInterval) -> Vec<Benchmark> {
    let metrics = |test: &Benchmark| match test.side {
        Side::Client => test.clone(),
        Side::Server => served(test, connections),
    };
    let mut all: Vec<Benchmark> = benchmarks.iter().map(metrics).collect();
    arrived.join(&mut all);
    all
}

/// What a server serves: the connections to its port that carry data.
fn served(test: &Benchmark, connections: &[Connection]) -> Benchmark {
    let data = || connections.iter().filter(|connection| connection.carries);
    let is_here = |end: &flow::End| end.pid == Some(test.pid) && end.address.port() == test.port;
    let received = flow::connections(data().filter(|connection| is_here(&connection.to)).map(flow::Connection::mptcp));
    let sent = flow::connections(data().filter(|connection| is_here(&connection.from)).map(flow::Connection::mptcp));
    let proto = data().find(|connection| is_here(&connection.to) || is_here(&connection.from));
    Benchmark {
        proto: proto.map(flow::Connection::proto).or(test.proto),
        streams: u32::try_from(received.max(sent)).ok().filter(|&streams| streams > 0),
        direction: match (received > 0, sent > 0) {
            (true, false) => Some(Direction::Forward),
            (false, true) => Some(Direction::Reverse),
            (true, true) => Some(Direction::Both),
            (false, false) => None,
        },
        ..test.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::End;
    use vnettop_sample::Program;

    const SERVER: u32 = 7;

    fn server() -> Benchmark {
        Benchmark::new(SERVER, Program::Iperf3, Side::Server, 5201)
    }

    /// A connection of the server's with somebody elsewhere.
    fn connection(sends: bool, carries: bool) -> Connection {
        let end = |address: &str, pid| End { netns: None, address: address.parse().expect("an address"), pid };
        let (here, there) = (end("10.0.0.1:5201", Some(SERVER)), end("10.0.0.2:4000", None));
        let (from, to) = if sends { (here, there) } else { (there, here) };
        Connection { carries, ..Connection::between(from, to) }
    }

    fn seen(connections: &[Connection]) -> (Option<u32>, Option<Direction>) {
        let all = all(&[server()], connections, &LastInterval::default());
        (all[0].streams, all[0].direction)
    }

    #[test]
    fn a_server_learns_its_test_from_the_connections_that_carry_data() {
        let control = connection(false, false);
        assert_eq!(
            seen(&[control]),
            (None, None),
            "a server that waits, or has only a control connection, has no test"
        );
        let (received, sent) = (connection(false, true), connection(true, true));
        assert_eq!(seen(&[control, received, received]), (Some(2), Some(Direction::Forward)), "two streams come in");
        assert_eq!(seen(&[control, sent]), (Some(1), Some(Direction::Reverse)), "one goes out: iperf3 -R");
        assert_eq!(seen(&[sent, received]), (Some(1), Some(Direction::Both)), "one each way: --bidir");
        let foreign = Connection { to: End { pid: Some(8), ..received.to }, ..received };
        assert_eq!(seen(&[foreign]), (None, None), "another process' connection is none of its");
    }
    #[test]
    fn what_the_command_says_in_passing_stands_beside_it_while_it_runs() {
        let client = |pid| Benchmark { json_stream: true, ..Benchmark::new(pid, Program::Iperf3, Side::Client, 5201) };
        let last = Reported { at_ms: 1000, ..Reported::default() };
        let mut arrived = LastInterval::default();
        arrived.event(&Event::Reported { at_ns: 1, pid: 5, side: None, report: Report::Interval(last) });
        let stated = |arrived: &LastInterval, pids: &[u32]| -> Vec<bool> {
            let tests: Vec<Benchmark> = pids.iter().map(|&pid| client(pid)).collect();
            all(&tests, &[], arrived).iter().map(|one| one.reported.is_some()).collect()
        };
        assert_eq!(stated(&arrived, &[4, 5]), [false, true], "it is the command's own");
        assert_eq!(stated(&arrived, &[6]), [true], "or of the one test that the command started");
        assert_eq!(stated(&arrived, &[6, 7]), [false, false], "of two nobody knows whose it is");
        arrived.event(&Event::RunEnded { at_ns: 2, code: 0 });
        assert_eq!(stated(&arrived, &[5]), [false], "the command has ended");
    }
}
