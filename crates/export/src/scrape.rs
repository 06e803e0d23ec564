//! A scrape on its way from the connection that asks to whoever answers, and back.

use super::freshness::Freshness;
use http_body_util::Full;
use hyper::body::Bytes;
use std::os::fd::OwnedFd;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tokio::sync::oneshot;

/// How long a scrape waits for its answer, whoever gives it.
const PATIENCE: Duration = Duration::from_secs(5);

/// A scrape that waits for its answer.
pub struct Scrape {
    /// What its `Accept` header said.
    pub accept: Option<String>,
    answer: oneshot::Sender<ScrapeAnswer>,
}

/// What a scrape gets.
#[derive(Debug, Clone)]
pub struct ScrapeAnswer {
    /// Its `Content-Type`.
    pub content_type: &'static str,
    /// All of it.
    pub text: Bytes,
}

impl Scrape {
    /// Nobody waits for it any more.
    #[must_use]
    pub fn is_given_up(&self) -> bool {
        self.answer.is_closed()
    }

    /// Answers it; that nobody waits for it any more is no failure.
    pub fn answer(self, answer: ScrapeAnswer) {
        let _gone = self.answer.send(answer);
    }
}

/// Hands scrapes over, and wakes whoever answers them.
#[derive(Clone)]
pub(super) struct ScrapeHandover {
    pub(super) scrapes: mpsc::Sender<Scrape>,
    pub(super) ready: Arc<OwnedFd>,
    pub(super) freshness: Arc<Freshness>,
}

impl ScrapeHandover {
    /// Asks for an answer; none when nobody gives answers any more.
    pub(super) async fn ask(&self, accept: Option<String>) -> Option<ScrapeAnswer> {
        let (answer, given) = oneshot::channel();
        self.scrapes.send(Scrape { accept, answer }).ok()?;
        let _full = rustix::io::write(&*self.ready, &1u64.to_ne_bytes());
        tokio::time::timeout(PATIENCE, given).await.ok()?.ok()
    }
}

impl ScrapeAnswer {
    pub(super) fn body(self) -> Full<Bytes> {
        Full::new(self.text)
    }
}
