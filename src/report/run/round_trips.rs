//! How long answers took on the command's own connections: a fact, a row of a comparison, JSON.

use crate::derive::experiment::{CONFIDENCE, Difference};
use crate::derive::run::{DataRoundTrips, RunCard};
use crate::derive::{FlowBasis, plural};
use crate::report::figures::digits;
use crate::report::page::{self, Fact};
use crate::report::pair;
use serde_json::{Value, json};

/// In a sentence; `None` where nothing ran over TCP, or not long enough for any figure.
pub(super) fn fact(card: &RunCard) -> Option<Fact> {
    if !matches!(card.basis, Some(FlowBasis::Sockets(_))) {
        return None;
    }
    // A rate was measured and no round trip beside it: nobody who sends was seen.
    let unread = || "not known: the senders, where TCP measures it, are not watched here".to_owned();
    let text = card.round_trips.as_ref().map(sentence).or_else(|| card.jitter.map(|_| unread()))?;
    Some(page::fact("answers", text))
}

fn sentence(trips: &DataRoundTrips) -> String {
    let interval = |of: Difference| {
        let percent = CONFIDENCE * 100.0;
        format!(" ({percent:.0} % interval of the mean of seconds {} to {})", digits(of.from), digits(of.to))
    };
    let idle = trips.least_us.map_or_else(
        || "the least is not known before Linux 4.6".to_owned(),
        |us| format!("{us} us at least, as on an idle path"),
    );
    format!(
        "under load p50 {} us{}, p99 {} us; {idle} (round trips of {}, tcp_info, {})",
        digits(trips.p50_us),
        trips.interval.map_or_else(String::new, interval),
        digits(trips.p99_us),
        plural(trips.connections, "connection"),
        plural(trips.readings, "reading"),
    )
}

/// The medians without and with pins.
pub(super) fn row(card: &RunCard) -> Option<[String; 4]> {
    Some(pair::quantile("answers", card.round_trips?.change?))
}

/// `null` where no sender of a connection was watched.
pub(super) fn json(card: &RunCard) -> Value {
    card.round_trips.map_or(Value::Null, |trips| {
        json!({
            "connections": trips.connections, "readings": trips.readings, "least_us": trips.least_us,
            "p50_us": trips.p50_us, "p99_us": trips.p99_us, "p50_interval_us": trips.interval,
            "change_s": trips.change.map(|of| json!({
                "unpinned": of.before_s, "pinned": of.after_s, "difference": of.change,
            })),
        })
    })
}
