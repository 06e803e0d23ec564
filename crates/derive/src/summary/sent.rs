//! What a test has sent over its whole time: which share of it was lost, and what its own connections sent again.

use crate::TestMetrics;
use crate::flow::CountedConnections;
use crate::share::share;

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
}

impl SentTrack {
    /// Takes the figures of a sample while the test runs. `counts_from_start`: a new connection is no older than the recording.
    pub fn observe(&mut self, own: &TestMetrics, counts_from_start: bool) {
        let losses = &own.losses;
        self.whole_s += losses.seconds;
        // Of a loss without a share it is not known which packets it is a share of.
        let is_known = losses.places.is_empty() || losses.places.iter().any(|loss| loss.share.is_some());
        if let Some(sent) = losses.sent.filter(|_| is_known) {
            self.sent += sent;
            self.lost += losses.packets();
            self.known_s += losses.seconds;
        }
        let step = self.connections.advance(&own.flow, counts_from_start);
        let carries = own.flow.connections.iter().any(|one| one.carries && one.tcp().is_some());
        if step.tells_retransmits {
            self.again = Some(self.again.unwrap_or(0.0) + step.retransmits + step.relayed_retransmits);
        } else if carries {
            self.hides_again = true;
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
            track.observe(&tick(1.0, Some(1_000.0), 0.0), true);
        }
        track.observe(&tick(1.0, Some(1_000.0), 500.0), true);
        assert_eq!(track.lost_share(), Some(0.05), "half of a tenth");
        track.observe(&tick(2.0, None, 500.0), true);
        assert_eq!(track.lost_share(), None, "of a sixth nobody knows what was sent");
        assert_eq!(track.again(), None, "it has no connection");
    }
}
