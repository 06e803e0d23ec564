//! What was decided on the command line; units and interval may be changed by keys.

use crate::sample::OnRequest;
use std::time::Duration;

/// Where the samples come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The kernel.
    Live,
    /// A recording: its threads cannot be pinned.
    Replay,
    /// The kernel, with a network built for show.
    Demo,
    /// The kernel, with one network after the other that is measured and pinned by `vnettop compare`.
    Compare,
}

/// The unit of rates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Units {
    /// Bits a second, SI.
    Bits,
    /// Bytes a second, SI.
    Bytes,
    /// Packets a second, and how large they are; what has no packets is in bits.
    Packets,
}

/// What was decided on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Where the samples come from.
    pub mode: Mode,
    /// Nothing on the machine may be changed.
    pub readonly: bool,
    /// The unit of rates.
    pub units: Units,
    /// Time between two samples.
    pub interval: Duration,
    /// Names or pids of the watched threads, as typed.
    pub watch: Vec<String>,
    /// The terminal shows UTF-8.
    pub utf8: bool,
    /// What the kernel counts beyond the usual, whatever is looked at.
    pub on_request: OnRequest,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            mode: Mode::Live,
            readonly: false,
            units: Units::Bits,
            interval: Duration::from_millis(500),
            watch: vec!["iperf3".to_owned()],
            utf8: true,
            on_request: OnRequest::default(),
        }
    }
}
