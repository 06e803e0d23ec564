//! The figures of a test that are read from afar, each with what it is of: where threads were pinned for a while, the pinned and the
//! unpinned time by themselves.

use super::lost::{per_s, share_and_count};
use super::verdict::{self, Result};
use super::words::{UNKNOWN, count, is_udp, known, known_percent, length, ran_s};
use crate::derive::experiment::CardSide;
use crate::derive::summary::TreatedTime;
use crate::derive::timeline::IncidentKind;
use crate::derive::{Card, Jitter, TestSummary, plural};
use crate::report::document::KeyFigure;
use crate::report::figures::{CommonUnit, digits, percent, rate, seconds, time};

/// A mean of pinned and unpinned time says nothing: where both were measured, each stands by itself.
pub(super) fn figures(test: &TestSummary, result: &Result<'_>) -> Vec<KeyFigure> {
    let treated = test.treated();
    let mut all: Vec<KeyFigure> = asked(test, result).into_iter().chain(sent(test)).collect();
    all.extend(match (result.card, &treated) {
        (Some(card), _) => both_sides(test, (card, result.is_rebuilt), treated.as_ref()),
        (None, Some(both)) => apart(both),
        (None, None) if result.is_mixed => Vec::new(),
        (None, None) => whole(test),
    });
    if result.card.is_none() && treated.is_none() {
        let migrations = known(test.rate.moves_per_s, |per_s| format!("{}/s", digits(per_s)));
        all.push(figure("migrations", migrations, &by_class(test)));
    }
    all.extend(cost(test));
    all.push(lost(test));
    all.extend((!is_udp(test)).then(|| retransmits(test)));
    let over = if test.runs { "still running at the end" } else { "from its first data to its last" };
    all.push(figure("length", length(ran_s(test)), over));
    all
}

/// What the client was started with, beside what was measured of it; nothing of one that sends as fast as it can.
fn asked(test: &TestSummary, result: &Result<'_>) -> Option<KeyFigure> {
    let asked = test.asked_bits_per_s?;
    let mean = test.mean_bits_per_s.filter(|_| !result.is_mixed);
    let measured = |mean: f64| format!("; measured: {}, {} of it", rate(mean), percent(mean / asked));
    let measured = mean.filter(|_| !is_udp(test) || test.sent_bits_per_s.is_none()).map_or_else(String::new, measured);
    Some(figure("asked for", rate(asked), &format!("by the client's options, all its streams together{measured}")))
}

/// What the senders of datagrams gave to the kernel, beside what arrived; nothing of TCP, and where it is not known.
fn sent(test: &TestSummary) -> Option<KeyFigure> {
    let sent = test.sent_bits_per_s.filter(|_| is_udp(test))?;
    let asked = test.asked_bits_per_s.map(|asked| format!(", {} of what it was asked for", percent(sent / asked)));
    let hint = format!("payload that its program gave to the kernel{}", asked.unwrap_or_default());
    Some(figure("sent", rate(sent), &hint))
}

/// CPU time for what arrived, of the whole test.
fn cost(test: &TestSummary) -> Option<KeyFigure> {
    let gbits = test.mean_bits_per_s.filter(|mean| *mean > 0.0)? / 1e9;
    let each = |cores: f64| time(cores / gbits);
    let softirqs = test
        .softirq_cores
        .map(|cores| format!("; softirqs of all traffic meanwhile, on many kernels a part of it: {}", each(cores)));
    let hint = "CPU time of its threads here for each Gbit of payload, of the whole test";
    Some(figure("CPU per Gbit", each(test.own_cores?), &format!("{hint}{}", softirqs.unwrap_or_default())))
}

/// Of the whole test: the share where it is known what was sent. What was sent again may be lost where nothing counts it.
fn lost(test: &TestSummary) -> KeyFigure {
    let again = test.own_retransmits.or(test.retransmits).filter(|again| test.lost <= 0.0 && *again >= 1.0);
    match again.filter(|_| !is_udp(test)) {
        Some(_) => figure(
            "packets lost",
            format!("{} counted", share_and_count(test)),
            "of the whole test, where drops are counted; what was sent again was late, or lost elsewhere",
        ),
        None => figure(
            "packets lost",
            share_and_count(test),
            "of the whole test, where the place is known, until just after its end",
        ),
    }
}

/// Its own, where its sockets tell; else all of its namespaces, in which other tests may be.
fn retransmits(test: &TestSummary) -> KeyFigure {
    let label = "retransmits";
    match (test.own_retransmits, test.retransmits) {
        (Some(own), all) => {
            let beside = all.filter(|all| *all >= own + 0.5);
            let beside = beside.map_or_else(String::new, |all| format!("; {} by all in its namespaces", count(all)));
            let often = if own > 0.0 { format!(": {}/s{}", per_s(test, own), of_million(test)) } else { String::new() };
            figure(label, count(own), &format!("TCP segments that its own connections sent again{often}{beside}"))
        }
        (None, Some(all)) => {
            let often = format!("{}/s", per_s(test, all));
            figure(label, count(all), &format!("TCP segments sent again in its namespaces, by whichever test: {often}"))
        }
        (None, None) => figure(label, UNKNOWN.to_owned(), "nothing in this recording counts what TCP sent again"),
    }
}

/// `, 166 of a million sent`, `, 1.05 % of those sent`: of as many as are counted; nothing where what was sent is not known.
fn of_million(test: &TestSummary) -> String {
    test.own_retransmit_share.map_or_else(String::new, |share| match share {
        MUCH.. => format!(", {} of those sent", percent(share)),
        _ => format!(", {} of a million sent", count(share * 1e6)),
    })
}

/// From this share on percents say it.
const MUCH: f64 = 0.001;

fn figure(label: &str, value: String, hint: &str) -> KeyFigure {
    KeyFigure { label: label.to_owned(), value, hint: hint.to_owned() }
}

/// Of a card each mean with the time that was compared, and beside it that of all such time.
fn both_sides(
    test: &TestSummary,
    (card, is_rebuilt): (&Card, bool),
    treated: Option<&[TreatedTime; 2]>,
) -> Vec<KeyFigure> {
    let is_pin = test.incidents.iter().any(|done| done.kind == IncidentKind::Pin);
    let names = verdict::side_names(card, is_pin || card.pinned_at_ns.is_none());
    let unit = unit_of([&card.before.jitter, &card.after.jitter]);
    let all = |nth: usize, of: &CardSide| {
        let whole = treated.map(|both| both[nth]).filter(|whole| whole.seconds >= of.jitter.window_s + 1.0);
        let word = ["unpinned", "pinned"][nth];
        whole.map_or_else(String::new, |whole| {
            format!("; all {} {word}: {}", length(whole.seconds), unit.figure(whole.mean_bits_per_s))
        })
    };
    let side = |nth: usize, of: &CardSide| {
        let hint = format!("{}{}", spread_of(Some(&of.jitter), unit), all(nth, of));
        figure(&format!("mean, {}", names[nth]), unit.figure(of.jitter.mean), &hint)
    };
    let moves = |of: &CardSide| known(of.moves_per_s, digits);
    let migrations = format!("{} → {}/s", moves(&card.before), moves(&card.after));
    let pairs = plural(card.pairs(), "pair");
    let range = if is_rebuilt {
        format!("{pairs} of a recording whose seconds repeat: an interval says nothing")
    } else {
        format!("{}; {pairs}", verdict::range(card))
    };
    vec![
        side(0, &card.before),
        side(1, &card.after),
        figure("difference", verdict::change(card), &range),
        figure("migrations", migrations, &format!("of its threads in the {} → in the {}", names[0], names[1])),
    ]
}

/// Of pinned time that no card compares.
fn apart(both: &[TreatedTime; 2]) -> Vec<KeyFigure> {
    let [unpinned, pinned] = both;
    let means = both.iter().map(|of| of.mean_bits_per_s);
    let unit = CommonUnit::of_rate(means.fold(0.0, f64::max));
    let side = |word: &str, of: &TreatedTime| {
        let label = format!("mean, {} {word}", length(of.seconds));
        figure(&label, unit.figure(of.mean_bits_per_s), &spread_of(of.jitter.as_ref(), unit))
    };
    let migrations = format!("{} → {}/s", digits(unpinned.moves_per_s), digits(pinned.moves_per_s));
    vec![
        side("unpinned", unpinned),
        side("pinned", pinned),
        figure("migrations", migrations, "of its threads in the unpinned time → in the pinned time"),
    ]
}

/// That of several spreads that stand beside each other.
fn unit_of<'a>(jitters: impl IntoIterator<Item = &'a Jitter>) -> CommonUnit {
    CommonUnit::of_rate(jitters.into_iter().map(|of| of.mean).fold(0.0, f64::max))
}

fn spread_of(jitter: Option<&Jitter>, unit: CommonUnit) -> String {
    jitter.map_or_else(
        || "too short for a spread".to_owned(),
        |of| {
            let (cv, bin) = (known_percent(of.cv), length(of.bin_s));
            format!("CV {cv}, p5 to p95: {}, of bins of {bin}", unit.range(of.p5, of.p95))
        },
    )
}

fn whole(test: &TestSummary) -> Vec<KeyFigure> {
    let jitter = test.rate.jitter.as_ref();
    let mean = test.mean_bits_per_s;
    let unit = CommonUnit::of_rate(mean.or(jitter.map(|of| of.p50)).unwrap_or(0.0));
    vec![
        figure("mean rate", known(mean, |mean| unit.figure(mean)), &payload(test)),
        figure(
            "CV",
            known_percent(jitter.and_then(|jitter| jitter.cv)),
            &format!("of the whole test{}: standard deviation / mean", in_bins(jitter)),
        ),
        figure("median", known(jitter, |of| unit.figure(of.p50)), "half of the time it was faster"),
        figure("p5 to p95", known(jitter, |of| unit.range(of.p5, of.p95)), "nine tenths of the bins are in between"),
        figure(
            "longest dip",
            known(jitter, |of| seconds(of.longest_dip_s)),
            "of the whole test: in a row below half of the median",
        ),
    ]
}

/// What a mean rate is of: of datagrams what arrived, where the receiver is here.
fn payload(test: &TestSummary) -> String {
    let arrived = test.read_bits_per_s.filter(|_| is_udp(test)).and(test.mean_bits_per_s);
    let Some((arrived, sent)) = arrived.zip(test.sent_bits_per_s.filter(|sent| *sent > 0.0)) else {
        return "payload, both ends counted once".to_owned();
    };
    format!("payload that arrived, {} of what was sent", percent(arrived / sent))
}

/// What its figures of a spread are of.
fn in_bins(jitter: Option<&Jitter>) -> String {
    jitter.map_or_else(String::new, |of| format!(" in bins of {}", length(of.bin_s)))
}

fn by_class(test: &TestSummary) -> String {
    let only_counted: f64 = test.rate.bins.iter().map(|bin| bin.unclassed).sum();
    let words = test.rate.moves_by_class.words().join(", ");
    let words = match (words.is_empty(), only_counted >= 0.5) {
        (true, false) => words,
        (true, true) => "; only counted".to_owned(),
        (false, false) => format!(": {words}"),
        (false, true) => format!("; those traced: {words}"),
    };
    let bins_s: f64 = test.rate.bins.iter().map(crate::derive::Bin::length_s).sum();
    let all = count((test.rate.moves_per_s.unwrap_or(0.0) * bins_s).round());
    let is_whole = (bins_s - ran_s(test)).abs() <= (ran_s(test) / 10.0).min(2.0);
    let time = if is_whole { String::new() } else { format!(" in the {} that have a rate", length(bins_s)) };
    format!("{all} of its threads{time}, from core to core{words}")
}
