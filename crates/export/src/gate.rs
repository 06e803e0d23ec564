//! Who may ask and how that is encrypted, as the file of `--web.config.file` says now: a certificate is renewed every few weeks, and a
//! Secret of Kubernetes replaced, while the exporter runs for months. What is read anew can only guard as much as before: a file that
//! is half written or lost its passwords opens nothing.

use super::web_config::{Secured, WebConfigError};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often somebody who asks has the files looked at.
const LOOK: Duration = Duration::from_secs(1);
/// Reads at most, where the files that the first one names change meanwhile.
const MOST_READS: usize = 3;

/// What tells one state of a file from the next: device, inode, length, times of its content and of itself. None where it is not there.
type Stamp = Option<(u64, u64, u64, (i64, i64), (i64, i64))>;

/// The file, what it said last, and who is told of changes.
pub(super) struct Gate {
    path: Option<PathBuf>,
    say: fn(&str),
    held: Mutex<GateState>,
}

struct GateState {
    secured: Arc<Secured>,
    /// Of its files, as they were before they were read; empty while they cannot be used, so that the next look reads them again.
    stamps: Vec<Stamp>,
    looked_at: Instant,
    /// Why they cannot be used, as it was said.
    refused: Option<String>,
}

impl Gate {
    /// Reads the file for the first time; without one everybody may ask, unencrypted.
    pub fn open(path: Option<&Path>, say: fn(&str)) -> Result<Self, WebConfigError> {
        let (secured, stamps) = path.map_or_else(|| Ok(Default::default()), read)?;
        let held = GateState { secured: Arc::new(secured), stamps, looked_at: Instant::now(), refused: None };
        Ok(Self { path: path.map(Path::to_owned), say, held: Mutex::new(held) })
    }

    /// What holds now. Where the files have changed and cannot be used, what held before holds on, and why is said once.
    pub fn now(&self) -> Arc<Secured> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(path) = self.path.as_deref().filter(|_| held.looked_at.elapsed() >= LOOK) {
            held.looked_at = Instant::now();
            let news = held.look(path);
            if let Some(news) = news {
                (self.say)(&news);
            }
        }
        Arc::clone(&held.secured)
    }
}

impl GateState {
    /// Reads the files anew where they have changed; what there is to say of it.
    fn look(&mut self, path: &Path) -> Option<String> {
        if !self.stamps.is_empty() && stamps(&self.secured.files) == self.stamps {
            return None;
        }
        let read = read(path).and_then(|(secured, stamps)| Ok((self.secured.followed_by(secured, path)?, stamps)));
        match read {
            Ok((secured, stamps)) => {
                (self.secured, self.stamps, self.refused) = (Arc::new(secured), stamps, None);
                Some(format!("{}: read anew", path.display()))
            }
            Err(error) => {
                self.stamps.clear();
                let why = error.to_string();
                let is_new = self.refused.as_ref() != Some(&why);
                self.refused = Some(why.clone());
                is_new.then(|| format!("{why}; passwords and certificates stay as they were"))
            }
        }
    }
}

/// Reads the file and those that it names, with their stamps from before that.
fn read(path: &Path) -> Result<(Secured, Vec<Stamp>), WebConfigError> {
    let mut secured = Secured::read(path)?;
    for _ in 1..MOST_READS {
        let before = stamps(&secured.files);
        let again = Secured::read(path)?;
        let is_same = again.files == secured.files;
        secured = again;
        if is_same {
            return Ok((secured, before));
        }
    }
    // Whatever it names now is looked at again at the next question.
    Ok((secured, Vec::new()))
}

fn stamps(files: &[PathBuf]) -> Vec<Stamp> {
    let stamp = |file: &PathBuf| {
        let file = std::fs::metadata(file).ok()?;
        let (content, itself) = ((file.mtime(), file.mtime_nsec()), (file.ctime(), file.ctime_nsec()));
        Some((file.dev(), file.ino(), file.size(), content, itself))
    };
    files.iter().map(stamp).collect()
}
