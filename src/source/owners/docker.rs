//! What Docker calls its containers and networks, asked of its unix socket without ever waiting for it. Names once heard
//! stay while it is silent. It decides nothing about links.

mod ask;
mod http;
mod names;
mod place;

use crate::sample::Problem;
use ask::{Asked, Look};
pub(super) use names::Network;
pub use place::Sockets;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::PathBuf;

/// It is asked no more often than this, ns.
const PAUSE_NS: u64 = 1_000_000_000;
/// The longest pause while it does not help, ns.
const LONGEST_PAUSE_NS: u64 = 32_000_000_000;

/// Docker, as far as it has answered.
#[derive(Debug)]
pub(super) struct Docker {
    sockets: Sockets,
    /// The socket that took a question last, or the one to complain of.
    path: PathBuf,
    asked: [Option<Asked>; 2],
    /// By the first digits of the id.
    containers: BTreeMap<String, String>,
    networks: Vec<Network>,
    /// The process that listens.
    listener: Option<u32>,
    /// When it was last asked.
    last_ns: Option<u64>,
    /// No question before it has passed; grows while the answers do not help.
    pause_ns: u64,
    /// Why there was no good answer to each question.
    trouble: [Option<String>; 2],
}

const QUESTIONS: [&str; 2] = ["/containers/json", "/networks"];

impl Docker {
    /// Nothing is opened yet.
    pub fn new(sockets: Sockets) -> Self {
        Self {
            path: sockets.paths.first().cloned().unwrap_or_default(),
            sockets,
            asked: [None, None],
            containers: BTreeMap::new(),
            networks: Vec::new(),
            listener: None,
            last_ns: None,
            pause_ns: PAUSE_NS / 2,
            trouble: [None, None],
        }
    }

    /// The name of a container by the first digits of its id.
    pub fn container(&self, id: &str) -> Option<&str> {
        self.containers.get(id).map(String::as_str)
    }

    pub fn networks(&self) -> &[Network] {
        &self.networks
    }

    /// The process that listens on the socket; its bridges are in the namespace of that.
    pub fn listener(&self) -> Option<u32> {
        self.listener
    }

    pub fn is_asked(&self) -> bool {
        self.asked.iter().any(Option::is_some)
    }

    /// When it may be asked again.
    pub fn next_ns(&self) -> u64 {
        self.last_ns.map_or(0, |last| last.saturating_add(self.pause_ns))
    }

    /// There is something new to hear of: no pause longer than the usual one.
    pub fn hurry(&mut self) {
        self.pause_ns = self.pause_ns.min(PAUSE_NS);
    }

    /// Asks, if it is time.
    pub fn ask(&mut self, now_ns: u64) {
        if self.is_asked() || now_ns < self.next_ns() {
            return;
        }
        self.last_ns = Some(now_ns);
        self.pause_ns = (self.pause_ns * 2).min(LONGEST_PAUSE_NS);
        for (at, question) in QUESTIONS.iter().enumerate() {
            match self.reach(question, now_ns) {
                Ok(asked) => self.asked[at] = Some(asked),
                Err(error) => {
                    // No socket, or nobody behind it: there is no Docker.
                    let absent = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused);
                    self.trouble[at] = (!absent || self.sockets.named).then(|| error.to_string());
                }
            }
        }
    }

    /// Asks the first socket that takes the question. Where none does, the first that is there says why.
    fn reach(&mut self, question: &str, now_ns: u64) -> io::Result<Asked> {
        let mut refused = Err(ErrorKind::NotFound.into());
        for path in &self.sockets.paths {
            match Asked::ask(path, question, now_ns) {
                Ok(asked) => {
                    self.path.clone_from(path);
                    return Ok(asked);
                }
                Err(error) if refused.as_ref().is_err_and(|known: &io::Error| known.kind() == ErrorKind::NotFound) => {
                    self.path.clone_from(path);
                    refused = Err(error);
                }
                Err(_) => {}
            }
        }
        refused
    }

    /// Takes what it has answered; true when that is something new.
    pub fn listen(&mut self, now_ns: u64) -> bool {
        let mut news = false;
        for at in 0..QUESTIONS.len() {
            let Some(asked) = &mut self.asked[at] else { continue };
            let listener = asked.listener;
            let body = match asked.look(now_ns) {
                Look::Waiting => continue,
                Look::Body(body) => body,
                Look::Failed(why) => {
                    (self.asked[at], self.trouble[at]) = (None, Some(why));
                    continue;
                }
            };
            self.asked[at] = None;
            let learned = self.learn(at, &body);
            self.trouble[at] = learned.is_none().then(|| "it answers something that is not Docker's".to_owned());
            if let Some(changed) = learned {
                news |= changed || self.listener != listener;
                self.listener = listener;
            }
        }
        news
    }

    /// Whether the answer changes anything; none when it is not understood.
    fn learn(&mut self, at: usize, body: &[u8]) -> Option<bool> {
        if at == 0 {
            let containers = names::containers(body)?;
            let changed = self.containers != containers;
            self.containers = containers;
            Some(changed)
        } else {
            let networks = names::networks(body)?;
            let changed = self.networks != networks;
            self.networks = networks;
            Some(changed)
        }
    }

    /// Why names are missing; none where there is no Docker, or it answers.
    pub fn problem(&self) -> Option<Problem> {
        let why = self.trouble.iter().flatten().next()?;
        let text = format!(
            "cannot ask Docker at {} for names ({why}): containers are shown by their ids; run as root, or name its socket with --docker-socket",
            self.path.display()
        );
        Some(Problem { source: "owners".to_owned(), text })
    }
}

#[cfg(test)]
impl Docker {
    pub fn at(path: PathBuf) -> Self {
        Self::new(Sockets { paths: vec![path], named: false })
    }
}

#[cfg(test)]
mod tests;
