//! The lines that iperf 3 writes with `--json-stream`, however their bytes come. They are outside input: whatever is in
//! them gives a figure or nothing. It opens nothing.

use super::super::rounded;
use serde_json::Value;
use vnettop_sample::{Reported, Side, Whole};

/// No interval is as long; what is longer is left out.
pub(super) const LONGEST_LINE: usize = 1024 * 1024;

/// What the lines said so far.
#[derive(Debug, Default)]
pub struct Lines {
    /// The beginning of a line.
    begun: Vec<u8>,
    /// When the process that writes the lines began, ms since 1970; `None` when unknown.
    since_ms: Option<u64>,
    /// The current test is the process' own, not one of a process that wrote into the same file before.
    is_own: bool,
    /// Which side the lines are of, as far as is known.
    pub side: Option<Side>,
    /// The last interval.
    pub last: Option<Reported>,
    wholes: Vec<(Option<Side>, Whole)>,
    /// At least one line was an event of iperf 3.
    pub(super) speaks: bool,
    /// A line was no event.
    strange: bool,
}

impl Lines {
    /// The lines of a process that began at that time, ms since 1970.
    pub(super) fn since(since_ms: Option<u64>) -> Self {
        Self { since_ms, ..Self::default() }
    }

    /// Takes the next bytes. Bytes that are not `new` were there before vnettop read the file, and may be of an earlier test.
    pub fn take(&mut self, bytes: &[u8], new: bool) {
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.begun.extend_from_slice(line);
            if line.ends_with(b"\n") {
                if self.begun.len() <= LONGEST_LINE {
                    self.event(new);
                }
                self.begun.clear();
            }
            // The rest of a line that is too long is no event either.
            self.begun.truncate(LONGEST_LINE + 1);
        }
    }

    /// The last interval, if it is one of the process itself.
    pub(super) fn last_of_its_own(&self) -> Option<Reported> {
        self.last.filter(|_| self.is_own)
    }

    /// The tests of the process that ended since this was asked last.
    pub fn ended(&mut self) -> Vec<(Option<Side>, Whole)> {
        std::mem::take(&mut self.wholes)
    }

    /// Drops the unfinished line: the next bytes do not continue it.
    pub(super) fn cut(&mut self) {
        self.begun.clear();
    }

    /// Drops the unfinished line and the last interval: the file is being written anew.
    pub(super) fn forget(&mut self) {
        self.begun.clear();
        (self.last, self.side, self.is_own) = (None, None, false);
    }

    /// A line was something that iperf 3 does not write.
    pub(super) fn is_strange(&self) -> bool {
        self.strange || self.begun.len() > LONGEST_LINE
    }

    fn event(&mut self, new: bool) {
        let event = serde_json::from_slice::<Value>(&self.begun).unwrap_or_default();
        let data = &event["data"];
        match event["event"].as_str() {
            Some("start") => {
                self.last = None;
                self.side = side(data);
                self.is_own = new || self.began_later(data);
            }
            Some("interval") => {
                self.is_own |= new;
                self.last = interval(data).or(self.last);
            }
            Some("end") => {
                self.is_own |= new;
                let whole = whole(data, self.side).filter(|_| self.is_own);
                self.wholes.extend(whole.map(|whole| (self.side, whole)));
            }
            _ => {}
        }
        let is_event = event["event"].is_string();
        self.speaks |= is_event;
        self.strange |= !is_event && !self.begun.trim_ascii().is_empty();
    }

    /// The test began when the process was there already.
    fn began_later(&self, start: &Value) -> bool {
        let stamp = &start["timestamp"];
        // Whole seconds are rounded down, so the time that they are compared with is rounded down too.
        let exact = stamp["timemillisecs"].as_u64().filter(|ms| *ms > 1_000_000_000_000);
        let seconds = stamp["timesecs"].as_u64();
        self.since_ms.is_some_and(|since_ms| match (exact, seconds) {
            (Some(ms), _) => ms >= since_ms,
            (None, Some(seconds)) => seconds >= since_ms / 1000,
            (None, None) => false,
        })
    }
}

fn side(start: &Value) -> Option<Side> {
    match (start["connecting_to"].is_object(), start["accepted_connection"].is_object()) {
        (true, _) => Some(Side::Client),
        (false, true) => Some(Side::Server),
        (false, false) => None,
    }
}

fn number(sum: &Value, name: &str, times: f64) -> Option<u64> {
    rounded((sum[name].as_f64()? * times).round())
}

/// A figure of all sums that have it: two of them where both ends send.
fn total(sums: [&Value; 2], name: &str) -> Option<u64> {
    sums.into_iter().filter_map(|sum| number(sum, name, 1.0)).reduce(u64::saturating_add)
}

/// The sums of an interval's streams.
fn interval(data: &Value) -> Option<Reported> {
    let sums = [&data["sum"], &data["sum_bidir_reverse"]];
    Some(Reported {
        at_ms: number(sums[0], "end", 1000.0)?,
        length_ms: number(sums[0], "seconds", 1000.0)?,
        bits_per_s: total(sums, "bits_per_second")?,
        retransmits: total(sums, "retransmits"),
        lost_packets: total(sums, "lost_packets"),
        packets: total(sums, "packets"),
    })
}

/// The sums of a whole test; none of one that ended before it began.
fn whole(data: &Value, side: Option<Side>) -> Option<Whole> {
    let sent = [&data["sum_sent"], &data["sum_sent_bidir_reverse"]];
    let received = [&data["sum_received"], &data["sum_received_bidir_reverse"]];
    let seconds = |sum: &&Value| number(sum, "seconds", 1000.0).filter(|&ms| ms > 0);
    // A server writes 0 for a rate that it does not know: when both ends send, that is one half of the sum.
    let is_unknown = |sum: &Value| side == Some(Side::Server) && sum["bits_per_second"].as_f64() == Some(0.0);
    let rate = |sums: [&Value; 2]| total(sums, "bits_per_second").filter(|_| !sums.into_iter().any(is_unknown));
    let (sent_bits_per_s, received_bits_per_s) = (rate(sent), rate(received));
    let of_sender = |name| total(sent, name).filter(|_| sent_bits_per_s.is_some());
    let of_receiver = |name| total(received, name).filter(|_| received_bits_per_s.is_some());
    Some(Whole {
        length_ms: received.iter().chain(&sent).find_map(seconds)?,
        sent_bits_per_s,
        received_bits_per_s,
        retransmits: of_sender("retransmits"),
        lost_packets: of_receiver("lost_packets"),
        packets: of_receiver("packets").filter(|&packets| packets > 0).or_else(|| of_sender("packets")),
        jitter_ns: received.iter().filter_map(|sum| number(sum, "jitter_ms", 1e6)).max(),
    })
}

#[cfg(test)]
mod tests;
