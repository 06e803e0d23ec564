//! The traffic of the benchmark: the physical link that it leaves by, if it leaves the machine; and which of the watched threads
//! send, because the softirq work of a whole virtual path runs on the sender's core.

use super::links::LinkMetrics;
use super::threads::ThreadMetrics;
use vnettop_sample::{Benchmark, Direction, Kind, Side};

/// A physical link carries the benchmark when it moves at least this part of what the busiest link moves: on a path of
/// virtual links within the machine it carries next to nothing.
const PART: f64 = 0.5;
/// A physical link that moves less than this carries no benchmark, bits/s.
const LEAST: f64 = 1e6;
/// The physical link that carries the benchmark; none where it stays within the machine.
pub(super) fn carrier(links: &[LinkMetrics]) -> Option<&LinkMetrics> {
    let peak = |link: &LinkMetrics| link.rates.and_then(|rates| rates.peak_bits_per_s()).unwrap_or(0.0);
    let most = links.iter().map(peak).fold(0.0, f64::max);
    if most < LEAST {
        return None;
    }
    let nics = links.iter().filter(|link| matches!(link.facts.kind, Kind::Physical | Kind::Virtio));
    let busiest = nics.max_by(|a, b| peak(a).total_cmp(&peak(b)))?;
    (peak(busiest) >= LEAST && peak(busiest) >= PART * most).then_some(busiest)
}

/// Whether servers send, as far as the command lines of the watched clients and the connections of the servers tell: a client
/// is there that lets its server send (`-R`, `--bidir`), or a server that does.
pub(super) fn servers_send(threads: &[ThreadMetrics], benchmarks: &[Benchmark]) -> bool {
    let is_back = |direction| matches!(direction, Some(Direction::Reverse | Direction::Both));
    // The client may be on another machine: then the server's connections tell.
    threads.iter().any(|thread| is_back(thread.sample.direction))
        || benchmarks.iter().any(|test| test.side == Side::Server && is_back(test.direction))
}

/// Whether the thread sends; none where its side is not known.
pub(super) fn sends(thread: &ThreadMetrics, servers_send: bool) -> Option<bool> {
    Some(match thread.sample.side? {
        Side::Client => thread.sample.direction != Some(Direction::Reverse),
        Side::Server => servers_send,
    })
}
