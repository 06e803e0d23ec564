//! `vnettop export`: samples in, scrapes answered. A scrape gets figures of its own instant: the sampler is asked for a sample
//! then, so that rates over two scrapes are over the time between them.

use super::black_box::{BlackBox, SaveNews};
use super::headless::stop_if_asked;
use super::signals::wait;
use super::{AppError, Ended, Signals};
use crate::derive::{Derivation, Metrics, Totals};
use crate::export::{Exporter, Scrape, ScrapeAnswer};
use crate::report::exposition::{ExpositionFormat, exposition};
use crate::source::feed::{Feed, FeedCommand, Next};
use crate::source::now_ns;
use crate::term;
use std::time::Duration;

/// A sample that was so young when a scrape came answers it.
const FRESH_NS: u64 = 100_000_000;
/// How long a scrape waits for a sample; then the newest one has to do, and its time is among the metrics.
const PATIENCE: Duration = Duration::from_secs(2);

/// Answers scrapes until a signal asks for an end.
///
/// # Errors
/// The source failed.
pub fn export(
    feed: &Feed,
    signals: &Signals,
    exporter: &Exporter,
    most_links: usize,
    black_box: Option<BlackBox>,
) -> Result<Ended, AppError> {
    let mut desk = ExportDesk::new(most_links, black_box);
    let ended = desk.serve(feed, signals, exporter);
    desk.end_saves();
    ended
}

impl ExportDesk {
    fn serve(&mut self, feed: &Feed, signals: &Signals, exporter: &Exporter) -> Result<Ended, AppError> {
        loop {
            let ending = signals.ending();
            stop_if_asked(signals, feed);
            if let Some(signal) = ending {
                return Ok(Ended::Signal(signal));
            }
            loop {
                match feed.next()? {
                    Next::Item(item) => {
                        if self.take(item) {
                            exporter.sampled();
                        }
                    }
                    Next::Waiting => break,
                    Next::End => return Err(AppError::SourceEnded),
                }
            }
            let came = exporter.waiting().ok_or(AppError::ExporterEnded)?;
            self.waiting.extend(came.into_iter().map(|scrape| WaitingScrape { came_ns: now_ns(), scrape }));
            self.answer();
            if !self.waiting.is_empty() && !self.asked {
                self.asked = true;
                feed.command(FeedCommand::Now);
            }
            let at_most = self.waiting.first().map(|one| PATIENCE.saturating_sub(one.waited()));
            wait(&[feed.ready(), signals.fd(), exporter.ready()], at_most);
        }
    }
}

/// A scrape, and when it came, monotonic ns.
struct WaitingScrape {
    came_ns: u64,
    scrape: Scrape,
}

impl WaitingScrape {
    fn waited(&self) -> Duration {
        Duration::from_nanos(now_ns().saturating_sub(self.came_ns))
    }
}

/// What a scrape is answered from.
struct ExportDesk {
    derivation: Derivation,
    black_box: Option<BlackBox>,
    totals: Totals,
    newest: Option<Metrics>,
    /// What was answered from the newest sample: a thousand scrapes at once cost as much as one of each form.
    answered: Vec<(ExpositionFormat, ScrapeAnswer)>,
    /// In the order in which they came.
    waiting: Vec<WaitingScrape>,
    /// The sampler was asked for a sample.
    asked: bool,
}

impl ExportDesk {
    fn new(most_links: usize, black_box: Option<BlackBox>) -> Self {
        let mut totals = Totals::new(most_links);
        // A counter that is there from the start: its first step is not lost.
        black_box.iter().flat_map(BlackBox::triggers).for_each(|kind| totals.saves.count(kind, 0));
        Self {
            derivation: Derivation::default(),
            black_box,
            totals,
            newest: None,
            answered: Vec::new(),
            waiting: Vec::new(),
            asked: false,
        }
    }

    /// Takes what came; true for a sample.
    fn take(&mut self, item: crate::sample::Item) -> bool {
        if let Some(black_box) = &mut self.black_box {
            black_box.record(&item);
        }
        let Some(metrics) = self.derivation.advance(item) else { return false };
        self.totals.observe(&metrics);
        if let Some(news) = self.black_box.as_mut().and_then(|black_box| black_box.observe(&metrics)) {
            self.tell_saved(&news);
        }
        self.newest = Some(metrics);
        self.answered.clear();
        self.asked = false;
        true
    }

    fn tell_saved(&mut self, news: &SaveNews) {
        term::say(&news.text);
        if let Some(kind) = news.kind.filter(|_| !news.is_warning) {
            self.totals.saves.count(kind, 1);
        }
    }

    fn end_saves(&mut self) {
        let saved = self.black_box.take().map(|mut black_box| black_box.finish()).unwrap_or_default();
        for news in saved {
            self.tell_saved(&news);
        }
    }

    /// Answers those for whom there is a fresh sample, and those that have waited long enough.
    fn answer(&mut self) {
        self.waiting.retain(|one| !one.scrape.is_given_up());
        let sampled_ns = self.newest.as_ref().map(|newest| newest.machine.at_ns.saturating_add(FRESH_NS));
        let due = |one: &mut WaitingScrape| {
            sampled_ns.is_some_and(|sampled_ns| sampled_ns >= one.came_ns) || one.waited() >= PATIENCE
        };
        for WaitingScrape { scrape, .. } in self.waiting.extract_if(.., due) {
            // Without any sample it hears that there is none.
            let Some(newest) = &self.newest else { continue };
            let format = ExpositionFormat::accepted(scrape.accept.as_deref());
            let known = self.answered.iter().find(|(of, _)| *of == format).map(|(_, answer)| answer.clone());
            let answer = known.unwrap_or_else(|| {
                let text = exposition(&self.totals, newest, format).into();
                let answer = ScrapeAnswer { content_type: format.content_type(), text };
                self.answered.push((format, answer.clone()));
                answer
            });
            scrape.answer(answer);
        }
    }
}
