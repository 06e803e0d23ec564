//! How long a database has not answered: to the first request, or to the question whether it lives, which is asked when it
//! has said nothing for a while. It knows times, not messages.

const SECOND_NS: u64 = 1_000_000_000;
/// After so long a silence it is asked whether it lives; one that lives asks the same about as often.
const ASK_NS: u64 = 3 * SECOND_NS;
/// After so long without an answer that is said.
const LONG_NS: u64 = 5 * SECOND_NS;

/// What a sentence says of so long a silence: 5, 10, 20, … s, so that it is not another one every second.
pub(super) fn at_least_s(silent_ns: u64) -> u64 {
    let longs = silent_ns.max(LONG_NS) / LONG_NS;
    (LONG_NS / SECOND_NS) << longs.ilog2()
}

/// Since when nothing was heard, and since when something is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Inactivity {
    received_at_ns: u64,
    asked_at_ns: Option<u64>,
}

impl Inactivity {
    /// A new connection: the first request is asked.
    pub fn begin(now_ns: u64) -> Self {
        Self { received_at_ns: now_ns, asked_at_ns: Some(now_ns) }
    }

    /// When something was heard last, 0 for never; whether that is news.
    pub fn end(&mut self, received_at_ns: u64) -> bool {
        let is_news = received_at_ns != 0 && received_at_ns != self.received_at_ns;
        if is_news {
            *self = Self { received_at_ns, asked_at_ns: None };
        }
        is_news
    }

    /// It is time to ask whether it lives; the question is taken as asked.
    pub fn asks(&mut self, now_ns: u64) -> bool {
        let is_time = self.asked_at_ns.is_none() && now_ns.saturating_sub(self.received_at_ns) >= ASK_NS;
        if is_time {
            self.asked_at_ns = Some(now_ns);
        }
        is_time
    }

    /// For how many seconds at least nothing was heard, where it owes an answer for too long.
    pub fn seconds(&self, now_ns: u64) -> Option<u64> {
        let owes = self.asked_at_ns.is_some_and(|asked| now_ns.saturating_sub(asked) >= LONG_NS);
        owes.then(|| at_least_s(now_ns.saturating_sub(self.received_at_ns)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_seconds_without_an_answer_are_a_silence_and_quiet_alone_is_none() {
        let at = |seconds: u64| seconds * SECOND_NS;
        let mut silence = Inactivity::begin(at(10));
        assert_eq!(silence.seconds(at(14)), None, "the first answer may take a moment");
        assert_eq!(silence.seconds(at(15)), Some(5), "and no longer");
        assert!(silence.end(at(16)) && !silence.end(at(16)), "it has spoken once");
        assert_eq!((silence.asks(at(18)), silence.seconds(at(18))), (false, None), "it has just spoken");
        assert_eq!(silence.seconds(at(60)), None, "nobody has asked it anything");
        assert!(silence.asks(at(60)) && !silence.asks(at(61)), "one question at a time");
        assert_eq!(silence.seconds(at(64)), None);
        assert_eq!(silence.seconds(at(65)), Some(40), "at least as old as that: what was heard last is 49 s old");
        assert_eq!([5, 9, 10, 19, 20, 4_000].map(|seconds| at_least_s(at(seconds))), [5, 5, 10, 10, 20, 2_560]);
    }
}
