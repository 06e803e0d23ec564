//! The stream of a run ↔ a file, one JSON object a line, zstd when the name ends in `.zst`.
//!
//! The first line names the format. A fact has a line of its own, which is written when it changes and holds until it changes
//! again; counters are integers, so what is read back is what was written, bit for bit.
//!
//! Files of older programs have the same version: a field that they lack is its default (`serde(default)`), a word that this one
//! does not know is kept (`Other`), and a line with a fact that it does not know is one that is damaged.
//!
//! What the program carries with it is read like a file:
//!
//! ```
//! use vnettop_record::{Recording, StoredIn};
//! use vnettop_sample::Item;
//!
//! let mut recording = Recording::open_stored(&StoredIn::Program)?;
//! let mut samples = 0;
//! while let Some(item) = recording.next_item()? {
//!     samples += u32::from(matches!(item, Item::Sample(_)));
//! }
//! assert!(samples > 100 && recording.truncated().is_none());
//! # Ok::<(), vnettop_record::RecordError>(())
//! ```

mod clean;
mod command;
mod cut;
mod frames;
mod line;
mod line_reader;
mod line_writer;
mod link_owner;
mod piece;
mod read;
mod ring;
mod standing;
mod stream;
mod timeout_writer;
mod write;

use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use command::{command_line, command_of};
pub use cut::cut;
pub use link_owner::{flags_to_write, is_strangers_link};
pub use read::{Bookmark, Recording, StoredIn};
pub use ring::{KeptRecording, RecordingRing, RingBounds};
pub use stream::{STREAM_PIECE, StreamError, StreamItem, StreamReader, StreamWriter};
pub use write::Recorder;

/// The only format there is; a file of another version is refused with a sentence.
const SCHEMA_VERSION: u32 = 1;

/// What goes wrong with a recording.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The file system's own reason.
    #[error("cannot {operation} recording {}: {error}", path.display())]
    File {
        /// "read", "create", "write", …
        operation: &'static str,
        /// The recording.
        path: PathBuf,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// There is something in the file already.
    #[error("recording {} exists already: name another file, or remove it first", .0.display())]
    Exists(PathBuf),
    /// The file is something else.
    #[error("{} is not a vnettop recording: its first line is not a vnettop_recording header", .0.display())]
    Foreign(PathBuf),
    /// The file is of another version.
    #[error("recording {} has schema version {version}, this vnettop reads {SCHEMA_VERSION}: use a newer vnettop", path.display())]
    Version {
        /// The recording.
        path: PathBuf,
        /// What it says.
        version: u32,
    },
    /// The recording has nothing between two moments.
    #[error("nothing is taken from recording {}: {}", path.display(), cut::nothing_there(*from, *to, *last, truncated.as_deref()))]
    NothingThere {
        /// The recording.
        path: PathBuf,
        /// The first moment, as time since its first sample.
        from: Duration,
        /// The last one; none is its end.
        to: Option<Duration>,
        /// The last sample that was looked at; none where there is none.
        last: Option<Duration>,
        /// Said of a recording that is damaged.
        truncated: Option<String>,
    },
    /// A line that cannot be used.
    #[error("recording {} is damaged in line {line}: {reason}", path.display())]
    Line {
        /// The recording.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
}

/// The first line of every recording.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    vnettop_recording: u32,
    vnettop: String,
    /// Hosts that the recording is of, where they were named to vnettop.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    hosts: Vec<String>,
}

fn file_error(operation: &'static str, path: &Path, error: io::Error) -> RecordError {
    RecordError::File { operation, path: path.to_owned(), error }
}
