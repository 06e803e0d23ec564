//! One sentence a test every few seconds, for a screen reader or a log: what it carries, the verdict, what holds it back. The
//! sentences are those of the screen.

use super::figure::{percent, speed};
use super::finding::FindingId;
use super::ledger::{Bin, Mean};
use super::metrics::Metrics;
use super::plural;
use super::test::Test;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A rate that varies less than this, as a coefficient of variation, is called steady.
const STEADY: f64 = 0.05;

/// So much before its time a sample may come, ns.
const MOST_EARLY_NS: u64 = 50_000_000;

/// What was last said, and what has passed since.
#[derive(Debug)]
pub struct SpokenLines {
    every_ns: u64,
    /// The programs whose tests are watched, as a sentence names them.
    programs: String,
    /// When the next sentences are due, `CLOCK_MONOTONIC`, ns; none before the first sample.
    due_ns: Option<u64>,
    /// The bins of each running test since its last sentence, by number.
    rates: BTreeMap<u32, BinsSince>,
    /// Tests whose end was said, by number.
    ended: BTreeSet<u32>,
    /// It was said that no test runs, and what starts one.
    said_idle: bool,
}

/// The mean rate of the bins of a test since its last sentence, bits/s; the newest bin ended then, `CLOCK_MONOTONIC`, ns.
#[derive(Debug, Default)]
struct BinsSince {
    mean: Mean,
    to_ns: u64,
}

impl BinsSince {
    /// The newest bins of a test, of which some may be in it.
    fn add(&mut self, bins: &[Bin]) {
        let new = &bins[bins.partition_point(|bin| bin.to_ns <= self.to_ns)..];
        for bin in new {
            self.mean.add(bin.bits_per_s, bin.length_s());
        }
        self.to_ns = new.last().map_or(self.to_ns, |bin| bin.to_ns);
    }
}

impl SpokenLines {
    /// Sentences at this distance, about tests of these programs.
    #[must_use]
    pub fn new(every: Duration, programs: &[String]) -> Self {
        Self {
            every_ns: u64::try_from(every.as_nanos()).unwrap_or(u64::MAX),
            programs: programs.join(" or "),
            due_ns: None,
            rates: BTreeMap::new(),
            ended: BTreeSet::new(),
            said_idle: false,
        }
    }

    /// The sentences that are due with these metrics; mostly none.
    pub fn due(&mut self, metrics: &Metrics) -> Vec<String> {
        let now_ns = metrics.machine.at_ns;
        let running = || metrics.tests.iter().filter(|test| test.ended_ns.is_none());
        running().for_each(|test| self.rates.entry(test.number).or_default().add(&test.metrics.timeline.bins));
        let due_ns = *self.due_ns.get_or_insert(now_ns.saturating_add(self.every_ns));
        if now_ns.saturating_add((self.every_ns / 20).min(MOST_EARLY_NS)) < due_ns {
            return Vec::new();
        }
        let next_ns = due_ns.saturating_add(self.every_ns);
        self.due_ns = Some(if next_ns > now_ns { next_ns } else { now_ns.saturating_add(self.every_ns) });
        let gone = metrics.tests.iter().filter(|test| test.ended_ns.is_some() && self.ended.insert(test.number));
        let mut sentences: Vec<String> = gone.map(|test| ended(test)).collect();
        sentences.extend(running().map(|test| self.running(test)));
        if running().next().is_some() {
            self.said_idle = false;
        } else {
            sentences.push(self.idle(metrics));
        }
        sentences
    }

    /// `test 1, ADDRESS → ADDRESS, TCP: 34.8 Gbit/s. Steady over 30 s (CV 2 %). Limit: …`
    fn running(&mut self, test: &Test) -> String {
        let rate = self.rates.get_mut(&test.number).and_then(|since| std::mem::take(&mut since.mean).value());
        let rate = rate.map_or_else(|| "rate not known yet".to_owned(), speed);
        let lost = if test.lost >= 1.0 { format!(", {:.0} packets lost", test.lost) } else { String::new() };
        let limit = test.conclusions.limit.as_ref();
        let limit = limit.map_or_else(String::new, |limit| format!(" Limit: {}.", limit.text));
        format!("test {}, {}: {rate}{lost}. {}.{limit}", test.number, test.words(), verdict(test))
    }

    /// That there is none, with what passes all the same; else the first time with what starts one.
    fn idle(&mut self, metrics: &Metrics) -> String {
        let was_said = std::mem::replace(&mut self.said_idle, true);
        if let Some(traffic) = &metrics.traffic {
            return format!("no test runs. {}", traffic.sentence(&metrics.machine));
        }
        if was_said {
            "no test runs".to_owned()
        } else {
            format!("no test runs: start {} or vnettop demo", self.programs)
        }
    }
}

/// What a pin brought, else how steady the rate is, with the first finding.
fn verdict(test: &Test) -> String {
    if let Some(card) = &test.metrics.card {
        return format!("Pinned, {}", card.sentence());
    }
    let first = test.conclusions.findings.first().filter(|_| !test.conclusions.limit_leads);
    let tells_spread = |id: FindingId| matches!(id, FindingId::Jitter | FindingId::JitterUnexplained);
    let steadiness = match test.metrics.jitter.and_then(|jitter| Some((jitter.cv?, jitter.window_s))) {
        _ if first.is_some_and(|finding| tells_spread(finding.id)) => None,
        Some((cv, window_s)) => {
            let word = if cv < STEADY { "Steady" } else { "Varies" };
            Some(format!("{word} over {window_s:.0} s (CV {} %)", percent(cv)))
        }
        None => Some("Too short to judge".to_owned()),
    };
    let advice = first.map(|finding| finding.text.trim_end_matches('.').to_owned());
    steadiness.into_iter().chain(advice).collect::<Vec<_>>().join(". ")
}

/// `test 1, ADDRESS → ADDRESS, TCP: ended after 60 s, mean 30.4 Gbit/s, 0 packets lost.`
fn ended(test: &Test) -> String {
    let seconds = test.ended_ns.map_or(0.0, |ended_ns| ended_ns.saturating_sub(test.began_ns) as f64 / 1e9);
    let mean = test.mean.map_or_else(String::new, |mean| format!(", mean {}", speed(mean.bits_per_s)));
    let lost = plural(test.lost.round(), "packet");
    format!("test {}, {}: ended after {seconds:.0} s{mean}, {lost} lost.", test.number, test.words())
}
