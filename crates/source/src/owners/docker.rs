//! What Docker calls its containers and networks, asked of its unix socket aside. Names once heard stay while it is silent.
//! It decides nothing about links.

mod names;
mod place;

use crate::slow::Slow;
use crate::slow::docker::{Answer, ask};
pub(super) use names::Network;
pub use place::SocketPlaces;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;
use vnettop_sample::{Problem, ProblemSource};

/// Shortest pause between questions to Docker, ns.
const PAUSE_NS: u64 = 1_000_000_000;
/// Longest pause while the answers do not help, ns.
const LONGEST_PAUSE_NS: u64 = 32_000_000_000;

/// Docker, as far as it has answered.
#[derive(Debug, Default)]
pub(super) struct Docker {
    sockets: SocketPlaces,
    /// The socket that took a question last, or the one that the problem names.
    path: PathBuf,
    asked: [Option<Slow<Answer>>; 2],
    /// Names of containers by the first digits of their ids.
    containers: BTreeMap<String, String>,
    pub networks: Vec<Network>,
    /// The process that listens on the socket, in whose network namespace Docker's bridges are.
    pub listener: Option<u32>,
    /// When Docker was last asked, ns.
    last_ns: Option<u64>,
    /// Least time between questions; doubles while the answers do not help.
    pause_ns: u64,
    /// Why there was no good answer to each question.
    trouble: [Option<String>; 2],
}

const QUESTIONS: [&str; 2] = ["/containers/json", "/networks"];

impl Docker {
    /// Nothing is opened yet.
    pub fn new(sockets: SocketPlaces) -> Self {
        let named = sockets.paths.first().filter(|_| sockets.named);
        let missing = named.and_then(|path| path.metadata().err()).map(|error| error.to_string());
        Self {
            path: sockets.paths.first().cloned().unwrap_or_default(),
            sockets,
            pause_ns: PAUSE_NS / 2,
            trouble: [missing, None],
            ..Self::default()
        }
    }

    /// The user named the socket: problems with it are reported even when there are no containers.
    pub fn is_named(&self) -> bool {
        self.sockets.named
    }

    /// The name of a container by the first digits of its id.
    pub fn container(&self, id: &str) -> Option<&str> {
        self.containers.get(id).map(String::as_str)
    }

    pub fn is_asked(&self) -> bool {
        self.asked.iter().any(Option::is_some)
    }

    /// When Docker may be asked again, ns.
    pub fn next_ns(&self) -> u64 {
        self.last_ns.map_or(0, |last| last.saturating_add(self.pause_ns))
    }

    /// Shortens the pause to the usual one: there is something new to ask for.
    pub fn ask_soon(&mut self) {
        self.pause_ns = self.pause_ns.min(PAUSE_NS);
    }

    /// Asks, if it is time.
    pub fn ask(&mut self, now_ns: u64) {
        if self.is_asked() || now_ns < self.next_ns() {
            return;
        }
        self.last_ns = Some(now_ns);
        self.pause_ns = (self.pause_ns * 2).min(LONGEST_PAUSE_NS);
        self.asked = QUESTIONS.map(|question| ask(&self.sockets.paths, question));
    }

    /// Takes Docker's answers; true when they bring something new.
    pub fn listen(&mut self) -> bool {
        let mut news = false;
        for at in 0..QUESTIONS.len() {
            let Some(Answer { path, listener, body }) = Slow::take_within(&mut self.asked[at], Duration::ZERO) else {
                continue;
            };
            self.path = path;
            self.trouble[at] = match body {
                Ok(body) => match self.learn(at, &body) {
                    Some(changed) => {
                        news |= changed || self.listener != listener;
                        self.listener = listener;
                        None
                    }
                    None => Some("its answer is not Docker's".to_owned()),
                },
                // No socket, or nobody behind it: there is no Docker.
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
                    self.sockets.named.then(|| error.to_string())
                }
                Err(error) => Some(error.to_string()),
            };
        }
        news
    }

    /// Whether the answer changes anything; none when it is not understood.
    fn learn(&mut self, at: usize, body: &[u8]) -> Option<bool> {
        Some(if at == 0 {
            std::mem::replace(&mut self.containers, names::containers(body)?) != self.containers
        } else {
            std::mem::replace(&mut self.networks, names::networks(body)?) != self.networks
        })
    }

    /// Why names are missing; `None` when there is no Docker, or it answers.
    pub fn problem(&self) -> Option<Problem> {
        let why = self.trouble.iter().flatten().next()?;
        let text = format!(
            "cannot ask Docker at {} for names ({why}): containers are shown by their ids; run as root, or name its socket with --docker-socket",
            self.path.display()
        );
        Some(Problem { source: ProblemSource::Owners, text })
    }
}

#[cfg(test)]
impl Docker {
    pub fn at(path: PathBuf) -> Self {
        Self::new(SocketPlaces { paths: vec![path], named: false })
    }
}

/// What a fuzzer gives every parser here.
#[cfg(fuzzing)]
pub(super) fn fuzz(body: &[u8]) {
    let _ = (names::containers(body), names::networks(body));
}

#[cfg(test)]
mod tests;
