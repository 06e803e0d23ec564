//! What a test has sent over its whole time: which share of it was lost, and what its own connections sent again, and when.

use super::columns::{halve, spread};
use crate::flow::CountedConnections;
use crate::share::share;
use crate::{Mean, TestMetrics};

/// A share is of a whole test where what was sent is known for this part of its time.
const WHOLE: f64 = 0.9;

#[derive(Debug, Clone, Default)]
pub(super) struct SentTrack {
    /// Packets sent and lost in the ticks in which both are known.
    sent: f64,
    lost: f64,
    /// How long these ticks are together, and how long all are, s.
    known_s: f64,
    whole_s: f64,
    connections: CountedConnections,
    /// Segments that its connections have sent again; none before any of them told, and once one of them does not.
    again: Option<f64>,
    hides_again: bool,
    /// Segments sent again in the ticks in which what was sent is known.
    again_of_sent: f64,
    /// By column of time: its own, and those of the senders' namespaces.
    own_columns: Vec<f64>,
    all_columns: Vec<f64>,
    /// Payload of datagrams that the senders gave to the kernel, and that the receivers read, bits/s; and how long each could have
    /// been known, s.
    given: Mean,
    read: Mean,
    of_datagrams_s: f64,
}

impl SentTrack {
    /// Takes the figures of a sample while the test runs. `counts_from_start`: a new connection is no older than the recording;
    /// `is_whole`: all of the sample is of the test.
    pub fn observe(&mut self, own: &TestMetrics, (counts_from_start, is_whole): (bool, bool), spans: &[(usize, f64)]) {
        let losses = &own.losses;
        self.whole_s += losses.seconds;
        let step = self.connections.advance(&own.flow, counts_from_start);
        let again = step.retransmits + step.relayed_retransmits;
        // Of a loss without a share it is not known which packets it is a share of.
        let is_known = losses.places.is_empty() || losses.places.iter().any(|loss| loss.share.is_some());
        if let Some(sent) = losses.sent.filter(|_| is_known) {
            self.sent += sent;
            self.lost += losses.packets();
            self.again_of_sent += again;
            self.known_s += losses.seconds;
        }
        let carries = own.flow.connections.iter().any(|one| one.carries && one.tcp().is_some());
        if step.tells_retransmits {
            self.again = Some(self.again.unwrap_or(0.0) + again);
        } else if carries {
            self.hides_again = true;
        }
        spread(&mut self.own_columns, again, spans);
        spread(&mut self.all_columns, losses.retransmits.unwrap_or(0.0), spans);
        if is_whole {
            self.add_datagrams(own);
        }
    }

    fn add_datagrams(&mut self, own: &TestMetrics) {
        let tests = &own.flow.tests;
        if tests.is_empty() {
            return;
        }
        let elapsed_s = own.machine.elapsed_s.unwrap_or(0.0);
        self.of_datagrams_s += elapsed_s;
        self.given.add(tests.iter().map(|test| Some(test.sent?.bits_per_s)).sum(), elapsed_s);
        self.read.add(tests.iter().map(|test| Some(test.received?.bits_per_s)).sum(), elapsed_s);
    }

    /// Two columns of time become one.
    pub fn halve(&mut self) {
        for columns in [&mut self.own_columns, &mut self.all_columns] {
            halve(columns, |one, other| *one += other);
        }
    }

    /// Share of the packets sent that were lost, over its whole time; none where that is not known for most of it.
    pub fn lost_share(&self) -> Option<f64> {
        share(self.lost, self.sent).filter(|_| self.known_s >= WHOLE * self.whole_s)
    }

    /// Segments that its own connections have sent again; none where one of them does not tell.
    pub fn again(&self) -> Option<f64> {
        self.again.filter(|_| !self.hides_again)
    }

    /// These as a share of the segments that it sent; none where that is not known for most of its time.
    pub fn again_share(&self) -> Option<f64> {
        self.again()?;
        share(self.again_of_sent, self.sent).filter(|_| self.known_s >= WHOLE * self.whole_s)
    }

    /// Segments sent again by column of time: its own where these are known, else those of the senders' namespaces.
    pub fn again_columns(&self) -> Vec<f64> {
        if self.again().is_some() { self.own_columns.clone() } else { self.all_columns.clone() }
    }

    /// Payload of datagrams that its senders gave to the kernel, and that its receivers read, bits/s; none of TCP, and where that is
    /// not known for most of its time. Where `mean` is that of the test, which is of whole bins and not of whole samples, what was sent
    /// is of the same time: what arrived of it is the same part.
    pub fn datagrams(&self, mean: Option<f64>) -> [Option<f64>; 2] {
        let is_most = |mean: &&Mean| mean.weight > 0.0 && mean.weight >= WHOLE * self.of_datagrams_s;
        let [given, read] = [&self.given, &self.read].map(|mean| Some(mean).filter(is_most)?.value());
        match (given, read.filter(|read| *read > 0.0), mean) {
            (Some(given), Some(read), Some(mean)) => [Some(given * mean / read), Some(mean)],
            _ => [given, read],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::losses::{Loss, Losses};

    fn tick(seconds: f64, sent: Option<f64>, packets: f64) -> TestMetrics {
        let share = sent.map(|sent| packets / sent);
        let places = vec![Loss { packets, share, ..Loss::default() }];
        let losses = Losses { seconds, places, sent, ..Losses::default() };
        TestMetrics { losses, ..TestMetrics::default() }
    }

    #[test]
    fn a_share_is_of_everything_that_was_sent_and_not_of_its_last_moment() {
        let mut track = SentTrack::default();
        for _ in 0..9 {
            track.observe(&tick(1.0, Some(1_000.0), 0.0), (true, true), &[]);
        }
        track.observe(&tick(1.0, Some(1_000.0), 500.0), (true, true), &[]);
        assert_eq!(track.lost_share(), Some(0.05), "half of a tenth");
        track.observe(&tick(2.0, None, 500.0), (true, true), &[]);
        assert_eq!(track.lost_share(), None, "of a sixth nobody knows what was sent");
        assert_eq!(track.again(), None, "it has no connection");
    }
}
