//! How long to wait before a host is tried again: longer each time, until a connection has held.

use std::time::Duration;

/// The longest pause, s.
const LONGEST_S: u64 = 30;
/// A connection that held so long was a good one.
const HELD: Duration = Duration::from_secs(20);

/// The next pause, s.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pause(u64);

impl Default for Pause {
    fn default() -> Self {
        Self(1)
    }
}

impl Pause {
    /// After a connection, or a try at one, that held so long.
    pub fn next(&mut self, held: Duration) -> u64 {
        let now_s = if held >= HELD { 1 } else { self.0 };
        self.0 = (2 * now_s).min(LONGEST_S);
        now_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_until_a_connection_has_held() {
        let mut pause = Pause::default();
        let short = Duration::from_millis(10);
        let pauses: Vec<u64> = (0..7).map(|_| pause.next(short)).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
        assert_eq!((pause.next(HELD), pause.next(short)), (1, 2));
    }
}
