//! The listening thread, and what passes between it and whoever answers.

use super::freshness::Freshness;
use super::gate::Gate;
use super::listener::Listener;
use super::scrape::{Scrape, ScrapeHandover};
use super::web_config::{Secured, WebConfigError};
use super::{Place, connections};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::time::Duration;

/// Why nothing is exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The address is taken or not this machine's, or the socket's folder cannot be written to.
    #[error("cannot listen on {place}: {error}; choose another with --web.listen-address")]
    Listen {
        /// Where.
        place: String,
        /// The kernel's reason.
        error: io::Error,
    },
    /// Its thread could not be started.
    #[error("cannot start the thread of the HTTP server: {0}")]
    Thread(#[source] io::Error),
    /// The file of who may ask.
    #[error(transparent)]
    Config(#[from] WebConfigError),
}

/// Listens until it is dropped with its program.
pub struct Exporter {
    scrapes: Receiver<Scrape>,
    ready: Arc<OwnedFd>,
    freshness: Arc<Freshness>,
    /// What is told at the start: where it listens, and who may ask.
    pub welcome: String,
    /// The socket that was made for it, and its device and inode.
    socket: Option<(PathBuf, (u64, u64))>,
}

/// Wakes whoever answers when nobody can ask any more, however that came.
struct RingAtTheEnd(Arc<OwnedFd>);

impl Drop for RingAtTheEnd {
    fn drop(&mut self) {
        let _full = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }
}

impl Exporter {
    /// Listens, and starts the thread that answers. `web_config` is the file that exporters call `--web.config.file`, which is read
    /// anew when it has changed, as `say` is told; samples come so often as `interval` says.
    ///
    /// # Errors
    /// Nothing can be listened on, the file is not what it should be, or there is no thread.
    pub fn start(
        place: &Place,
        (web_config, say): (Option<&PathBuf>, fn(&str)),
        interval: Duration,
    ) -> Result<Self, ExportError> {
        let gate = Gate::open(web_config.map(PathBuf::as_path), say)?;
        let listener =
            Listener::bind(place).map_err(|error| ExportError::Listen { place: place.to_string(), error })?;
        let socket = match listener.place() {
            Place::Socket(path) => identity(path).map(|identity| (path.clone(), identity)),
            Place::Address(_) => None,
        };
        let welcome = welcome(&listener, &gate.now());
        let ready = Arc::new(bell().map_err(ExportError::Thread)?);
        let (sender, scrapes) = mpsc::channel();
        let freshness = Arc::new(Freshness::new(interval));
        let handover = ScrapeHandover { scrapes: sender, ready: Arc::clone(&ready), freshness: Arc::clone(&freshness) };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(1)
            .build()
            .map_err(ExportError::Thread)?;
        std::thread::Builder::new()
            .name("export".to_owned())
            .spawn(move || {
                let _last = RingAtTheEnd(Arc::clone(&handover.ready));
                // Ends before that, and with it the connections, the last that could ask.
                let runtime = runtime;
                runtime.block_on(connections::serve(listener, Arc::new(gate), handover));
            })
            .map_err(ExportError::Thread)?;
        Ok(Self { scrapes, ready, freshness, welcome, socket })
    }

    /// A sample has come: `/-/healthy` says so until it is too old.
    pub fn sampled(&self) {
        self.freshness.sampled();
    }

    /// Readable when a scrape waits.
    #[must_use]
    pub fn ready(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }

    /// The scrapes that wait; none where the server has stopped.
    #[must_use]
    pub fn waiting(&self) -> Option<Vec<Scrape>> {
        let _empty = rustix::io::read(&*self.ready, &mut [0; 8]);
        let mut waiting = Vec::new();
        loop {
            match self.scrapes.try_recv() {
                Ok(scrape) => waiting.push(scrape),
                Err(TryRecvError::Empty) => return Some(waiting),
                Err(TryRecvError::Disconnected) => return None,
            }
        }
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        // Another's that took its place stays.
        if let Some((path, own)) = &self.socket
            && identity(path) == Some(*own)
        {
            let _gone = std::fs::remove_file(path);
        }
    }
}

/// Device and inode of what is there.
fn identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::symlink_metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

fn bell() -> io::Result<OwnedFd> {
    use rustix::event::{EventfdFlags, eventfd};
    Ok(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)
}

fn welcome(listener: &Listener, secured: &Secured) -> String {
    let place = match listener.place() {
        Place::Address(address) => {
            format!("{}://{address}/metrics", if secured.tls.is_some() { "https" } else { "http" })
        }
        Place::Socket(path) => format!("unix:{}, path /metrics", path.display()),
    };
    let open =
        matches!(listener.place(), Place::Address(address) if !address.ip().is_loopback()) && secured.access.is_open();
    let warning = if open { "; whoever reaches this address can read them: see --web.config.file" } else { "" };
    format!("metrics for Prometheus: {place}{warning}")
}
