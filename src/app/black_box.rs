//! The flight recorder: the last minutes of what a recording holds, always in memory, saved when somebody asks for it (a key, `vnettop
//! save`) or when something happens (`--on`). Nothing is written before. What is saved is written by a thread of its own, so that no disk
//! makes a sample late.

mod ask;
mod runtime_folder;
mod saved_file;
mod socket;

use super::kept_file::{KeepError, place, stamp};
use crate::derive::{Metrics, TriggerKind, TriggerPlan, TriggerWatch, TriggeredEvent};
use crate::record::{KeptRecording, RecordingRing, RingBounds};
use crate::report::recording::length;
use crate::sample::{Item, Word};
use saved_file::{SavedName, prune, write_whole};
use socket::SaveSocket;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

pub use ask::{AskError, AskedVnettop, ask};
pub use runtime_folder::runtime_folders;

/// How long a file that is still being written is waited for at the end.
const PATIENCE: Duration = Duration::from_secs(5);
/// An event may have begun so long before or after the bin by which it was noticed, and a short one lasts so long, ns: what is saved
/// reaches that much further on both sides.
const EDGE_NS: u64 = 500_000_000;
/// What is kept beyond what a trigger asks for, ns: a piece may end in the middle of it.
const SLACK_NS: u64 = 5_000_000_000;

/// How the flight recorder works.
#[derive(Debug, Clone)]
pub struct BlackBoxOptions {
    /// How much it keeps.
    pub bounds: RingBounds,
    /// Where it saves.
    pub folder: Option<PathBuf>,
    /// Where the socket for `vnettop save` may be, the best place first; empty where there is to be none.
    pub runtime_folders: Vec<PathBuf>,
    /// What this vnettop does, for whoever has several.
    pub what: &'static str,
    /// When it saves by itself.
    pub plan: TriggerPlan,
}

/// What came of a save.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SaveNews {
    /// It could not be saved.
    pub is_warning: bool,
    /// A sentence.
    pub text: String,
    /// The trigger; none where somebody has asked.
    pub kind: Option<TriggerKind>,
}

/// The ring, shared with the thread that answers `vnettop save`: it is locked for as long as an item or a piece takes.
#[derive(Clone)]
struct SharedRing(Arc<Mutex<RecordingRing>>);

impl SharedRing {
    fn lock(&self) -> MutexGuard<'_, RecordingRing> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The flight recorder of one vnettop.
pub struct BlackBox {
    ring: SharedRing,
    folder: Option<PathBuf>,
    plan: TriggerPlan,
    watch: TriggerWatch,
    /// What has happened and is not saved yet, because the time after it is to be saved too.
    pending: Option<TriggeredEvent>,
    /// The file that is being written.
    writing: Option<JoinHandle<SaveNews>>,
    /// The newest sample, monotonic ns and wall clock.
    newest_ns: u64,
    wall_ms: u64,
    /// The last thing that could not be saved; said once.
    failed: Option<String>,
    /// Gone with this vnettop.
    _socket: Option<SaveSocket>,
}

impl BlackBox {
    /// Begins to keep. Where no socket can be made, `vnettop save` says so to whoever calls it.
    #[must_use]
    pub fn start(options: BlackBoxOptions) -> Self {
        let BlackBoxOptions { mut bounds, folder, runtime_folders, what, plan } = options;
        if !plan.triggers.is_empty() {
            let asked_ns = u64::try_from((plan.before + plan.after).as_nanos()).unwrap_or(u64::MAX);
            bounds.keep_ns = bounds.keep_ns.max(asked_ns.saturating_add(SLACK_NS));
        }
        let ring = SharedRing(Arc::new(Mutex::new(RecordingRing::new(bounds))));
        let socket = SaveSocket::open(&runtime_folders, what, &ring);
        Self {
            ring,
            folder,
            watch: TriggerWatch::new(plan.triggers.clone()),
            plan,
            pending: None,
            writing: None,
            newest_ns: 0,
            wall_ms: 0,
            failed: None,
            _socket: socket,
        }
    }

    /// What is waited for.
    pub fn triggers(&self) -> impl Iterator<Item = TriggerKind> {
        self.plan.triggers.iter().map(|trigger| trigger.kind)
    }

    /// Keeps an item. Without memory for it, what was kept before stays.
    pub fn record(&mut self, item: &Item) {
        if let Item::Sample(sample) = item {
            (self.newest_ns, self.wall_ms) = (sample.at_ns, sample.wall_ms);
        }
        let _no_memory = self.ring.lock().add(item);
    }

    /// Looks whether something has happened that is to be saved, and saves it once the time after it is over.
    pub fn observe(&mut self, metrics: &Metrics) -> Option<SaveNews> {
        let event = self.watch.observe(metrics);
        self.pending = self.pending.or(event);
        let after_ns = u64::try_from(self.plan.after.as_nanos()).unwrap_or(u64::MAX);
        let due_ns = after_ns.saturating_add(EDGE_NS);
        let is_due = |event: &TriggeredEvent| self.newest_ns >= event.at_ns.saturating_add(due_ns);
        if self.pending.as_ref().is_some_and(is_due) && self.writing.is_none() {
            self.save_pending();
        }
        self.news()
    }

    /// Saves all that is kept; the sentence of what is done now, of which [`BlackBox::observe`] has the result.
    ///
    /// # Errors
    /// There is no folder for it.
    pub(super) fn save(&mut self) -> Result<String, KeepError> {
        let Some(kept) = self.kept() else {
            let why = why_nothing(&self.ring.lock());
            return Ok(format!("nothing was saved: {why}"));
        };
        self.begin("vnettop-saved", None, kept.length_ns(), vec![(String::new(), kept)])
    }

    /// What is kept, for a recording of several hosts.
    pub(super) fn kept(&self) -> Option<KeptRecording> {
        self.ring.lock().kept(0).ok().flatten()
    }

    /// Saves what several hosts have kept as one recording.
    pub(super) fn save_hosts(&mut self, hosts: Vec<(String, KeptRecording)>) -> Result<String, KeepError> {
        let length_ns = hosts.iter().map(|(_, kept)| kept.length_ns()).max().unwrap_or_default();
        self.begin("vnettop-hosts-saved", None, length_ns, hosts)
    }

    /// Saves what a limit that was exceeded is to be judged by; the sentence of where it is.
    pub fn save_evidence(&mut self) -> Option<SaveNews> {
        let kept = self.kept()?;
        let kept = kept.because(None, self.newest_ns);
        let begun = self.begin(SavedName::of_gate(), None, kept.length_ns(), vec![(String::new(), kept)]);
        if let Err(error) = begun {
            return Some(SaveNews { is_warning: true, text: error.to_string(), kind: None });
        }
        self.wait()
    }

    /// Saves what has happened and waits for its time after, and what is still being written.
    pub fn finish(&mut self) -> Vec<SaveNews> {
        let mut all: Vec<SaveNews> = self.wait().into_iter().collect();
        self.save_pending();
        all.extend(self.wait());
        all
    }

    fn save_pending(&mut self) {
        let Some(event) = self.pending.take() else { return };
        let before_ns = u64::try_from(self.plan.before.as_nanos()).unwrap_or(u64::MAX).saturating_add(EDGE_NS);
        let Some(kept) = self.ring.lock().kept(event.at_ns.saturating_sub(before_ns)).ok().flatten() else { return };
        let (name, kept) = (SavedName::of(event.kind), kept.because(Some(event.kind), event.at_ns));
        let begun = self.begin(&name, Some(event.kind), kept.length_ns(), vec![(String::new(), kept)]);
        if let Err(error) = begun {
            self.writing = Builder::new()
                .spawn(move || SaveNews { is_warning: true, text: error.to_string(), kind: Some(event.kind) })
                .ok();
        }
    }

    /// Begins to write a file; the sentence of it.
    fn begin(
        &mut self,
        name: &str,
        kind: Option<TriggerKind>,
        length_ns: u64,
        hosts: Vec<(String, KeptRecording)>,
    ) -> Result<String, KeepError> {
        if self.writing.is_some() {
            return Ok("the previous file is still being written: try again".to_owned());
        }
        let path = place(self.folder.as_deref(), &format!("{name}-{}.jsonl.zst", stamp(self.wall_ms)))?;
        let lasts = length(length_ns as f64 / 1e9);
        let sentence = format!("saving the last {lasts} to {}", path.display());
        let (plan, most_bytes) = (self.plan.clone(), self.ring.lock().bounds().most_bytes);
        let job = move || {
            let (is_warning, text) = match write_whole(&path, |file| match &*hosts {
                [(name, kept)] if name.is_empty() => kept.write_to(file),
                hosts => KeptRecording::write_hosts(hosts, file),
            }) {
                Ok(written) => {
                    let is_own = SavedName::is_one(&written);
                    let pruned = if is_own { prune(&written, plan.most_files, plan.most_bytes) } else { Ok(()) };
                    let shortened = hosts.iter().any(|(_, kept)| kept.is_shortened());
                    (
                        pruned.is_err(),
                        sentence_of(kind, &lasts, &written, shortened.then_some(most_bytes), pruned.err()),
                    )
                }
                Err(error) => (true, failure(&path, &error)),
            };
            SaveNews { is_warning, text, kind }
        };
        self.writing = Builder::new().name("save".to_owned()).spawn(job).ok();
        if self.writing.is_none() {
            return Ok("nothing was saved: the kernel refused a thread".to_owned());
        }
        Ok(sentence)
    }

    /// What came of a file that is written now; a failure once.
    fn news(&mut self) -> Option<SaveNews> {
        let news = self.writing.take_if(|writing| writing.is_finished())?.join().ok()?;
        if !news.is_warning {
            self.failed = None;
            return Some(news);
        }
        let is_known = self.failed.as_ref() == Some(&news.text);
        self.failed = Some(news.text.clone());
        (!is_known).then_some(news)
    }

    fn wait(&mut self) -> Option<SaveNews> {
        let began = Instant::now();
        while self.writing.as_ref().is_some_and(|writing| !writing.is_finished()) && began.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.news()
    }
}

/// The sentence of a file that is written.
fn sentence_of(
    kind: Option<TriggerKind>,
    lasts: &str,
    path: &Path,
    bytes: Option<usize>,
    pruned: Option<std::io::Error>,
) -> String {
    let what = kind.map_or_else(String::new, |kind| format!("{}: ", kind.word()));
    let bound = bytes.map(shortened).unwrap_or_default();
    let unpruned = pruned.map(|error| format!("; older ones cannot be removed: {error}")).unwrap_or_default();
    format!("{what}saved {lasts} to {}{bound}{unpruned}", path.display())
}

/// Why nothing is kept, as the end of a sentence.
fn why_nothing(ring: &RecordingRing) -> &'static str {
    if ring.is_too_much() { "so many links are not kept in memory without --keep 3m" } else { "there is no sample yet" }
}

/// Said where the bytes and not the minutes have decided how much is saved.
fn shortened(most_bytes: usize) -> String {
    format!(", all that fits in {} MiB (recorder.mib)", most_bytes >> 20)
}

/// The same sentence however often it happens: without the name of the file.
fn failure(path: &Path, error: &std::io::Error) -> String {
    format!("nothing was saved in {}: {error}", path.parent().unwrap_or(path).display())
}
