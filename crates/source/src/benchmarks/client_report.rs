//! What a client writes once, at its end: iperf3's JSON (`-J`), and the one line of vnettop's own loads. Outside input.

use serde_json::Value;
use vnettop_sample::RoundTrips;

/// What arrived in a test, as its sender reports it at the end.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientReport {
    /// How long it measured, seconds.
    pub seconds: f64,
    /// Bytes that arrived (`sum_received`); of vnettop's own loads bytes or answers.
    pub received: f64,
    /// Bytes that were sent (`sum_sent`); `None` for vnettop's own loads.
    pub sent: Option<f64>,
    /// Version as iperf3 writes it (`iperf 3.12`); `None` for vnettop's own loads.
    pub version: Option<String>,
}

impl ClientReport {
    /// Reads the JSON of an iperf3 client. Its sums leave out the seconds of `-O`, and so do these figures.
    ///
    /// # Errors
    /// One sentence: what failed by iperf3's own words, or that the JSON is no report.
    pub fn of_iperf3(json: &[u8]) -> Result<Self, String> {
        let whole: Value = serde_json::from_slice(json).map_err(|_| "iperf3 wrote no JSON".to_owned())?;
        if let Some(error) = whole["error"].as_str() {
            return Err(format!(
                "iperf3: {}",
                vnettop_sample::text::clean(error.trim_start_matches("error - ").as_bytes())
            ));
        }
        let end = &whole["end"];
        // Before 3.10 a test of UDP has one sum for both ends: the bytes sent, and the packets lost.
        let [received, sent] = ["sum_received", "sum_sent"].map(|name| end.get(name).unwrap_or(&end["sum"]));
        let arrived =
            match (end.get("sum_received"), &end["sum"]["packets"].as_f64(), &end["sum"]["lost_packets"].as_f64()) {
                (Some(_), ..) => 1.0,
                (None, Some(packets), Some(lost)) if *packets > 0.0 => (1.0 - lost / packets).clamp(0.0, 1.0),
                _ => return Err("iperf3's report does not say what arrived".to_owned()),
            };
        let figure = |sum: &Value, name: &str| sum[name].as_f64().filter(|value| value.is_finite() && *value >= 0.0);
        let seconds = figure(received, "seconds").filter(|seconds| *seconds > 0.0);
        let bytes = figure(received, "bytes").ok_or("iperf3's report has no sum of what was received")?;
        Ok(Self {
            seconds: seconds.ok_or("iperf3's report has no duration")?,
            received: bytes * arrived,
            sent: figure(sent, "bytes"),
            version: whole["start"]["version"].as_str().map(|word| vnettop_sample::text::clean(word.as_bytes())),
        })
    }

    /// Reads the line of one of vnettop's own loads.
    ///
    /// # Errors
    /// What the line says instead.
    pub fn of_load(line: &[u8]) -> Result<Self, String> {
        let read = || {
            let value: Value = serde_json::from_slice(line).ok()?;
            let (seconds, count) = (value["seconds"].as_f64()?, value["count"].as_f64()?);
            (seconds > 0.0).then_some(Self { seconds, received: count, sent: None, version: None })
        };
        read().ok_or_else(|| {
            let said = vnettop_sample::text::clean(line.trim_ascii());
            let said = said.trim_start_matches("vnettop: ");
            if said.is_empty() { "the sender exited without a report".to_owned() } else { said.to_owned() }
        })
    }
}

/// Reads the line of the program that times round trips; `None` where it says something else, or what nobody can have measured.
#[must_use]
pub fn round_trips(line: &[u8]) -> Option<RoundTrips> {
    let read: RoundTrips = serde_json::from_slice(line).ok()?;
    let times = [read.p50_us, read.p99_us, read.max_us];
    (times[0] > 0.0 && times.is_sorted() && read.mean_us > 0.0 && read.count > 0).then_some(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iperf3_says_what_arrived_or_why_nothing_did() {
        let tcp = br#"{"start":{"version":"iperf 3.12"},"end":{"sum_sent":{"bytes":1100,"seconds":1.0},"sum_received":{"bytes":1000,"seconds":2.0}}}"#;
        let read = ClientReport::of_iperf3(tcp).expect("a report");
        assert_eq!((read.seconds, read.received, read.sent), (2.0, 1000.0, Some(1100.0)));
        let old = br#"{"end":{"sum":{"bytes":180,"seconds":1.0,"packets":10,"lost_packets":4}}}"#;
        let read = ClientReport::of_iperf3(old).expect("a report");
        assert_eq!((read.received, read.sent), (108.0, Some(180.0)), "what was lost did not arrive");
        let error = br#"{"error":"error - unable to connect to server: Connection refused"}"#;
        let said = ClientReport::of_iperf3(error).expect_err("it failed");
        assert_eq!(said, "iperf3: unable to connect to server: Connection refused");
        for wrong in [&b""[..], b"{}", b"[]", br#"{"end":{"sum_received":{"bytes":-1,"seconds":1}}}"#, b"iperf3"] {
            assert!(ClientReport::of_iperf3(wrong).is_err(), "{wrong:?} is no report");
        }
    }

    #[test]
    fn a_load_of_ours_writes_one_line() {
        let read = ClientReport::of_load(b"{\"seconds\":1.5,\"count\":30}\n").expect("a report");
        assert_eq!((read.seconds, read.received), (1.5, 30.0));
        assert_eq!(ClientReport::of_load(b"vnettop: cannot ask: gone\n"), Err("cannot ask: gone".to_owned()));
        assert_eq!(ClientReport::of_load(b""), Err("the sender exited without a report".to_owned()));
    }

    #[test]
    fn round_trips_are_one_line() {
        let read =
            round_trips(b"{\"count\":3,\"mean_us\":9.5,\"p50_us\":9,\"p99_us\":11,\"max_us\":11}\n").expect("it is");
        assert_eq!((read.count, read.p50_us, read.p99_us), (3, 9.0, 11.0));
        for wrong in [&b"vnettop: cannot ask"[..], b"", br#"{"count":1,"mean_us":9,"p50_us":9,"p99_us":8,"max_us":9}"#]
        {
            assert_eq!(round_trips(wrong), None);
        }
    }
}
