//! Which of the watched threads send: the softirq work of a whole virtual path runs on the sender's core.

use crate::derive::threads::ThreadMetrics;
use crate::derive::{BenchmarkMetrics, Metrics};
use crate::sample::{Direction, Side};

/// Which sides send, as far as the command lines of the watched clients and the connections of the servers tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Senders {
    /// A client is there that lets its server send (`-R`, `--bidir`), or a server that does.
    servers: bool,
}

impl Senders {
    pub(super) fn of(metrics: &Metrics) -> Self {
        let reversed =
            |thread: &ThreadMetrics| matches!(thread.sample.direction, Some(Direction::Reverse | Direction::Both));
        // Its client may be on another machine: then its connections tell.
        let sends = |test: &BenchmarkMetrics| {
            test.test.side == Side::Server && matches!(test.direction, Some(Direction::Reverse | Direction::Both))
        };
        Self { servers: metrics.threads.iter().any(reversed) || metrics.benchmarks.iter().any(sends) }
    }

    /// Whether the thread sends; none where its side is not known.
    pub(super) fn sends(self, thread: &ThreadMetrics) -> Option<bool> {
        Some(match thread.sample.side? {
            Side::Client => thread.sample.direction != Some(Direction::Reverse),
            Side::Server => self.servers,
        })
    }
}
