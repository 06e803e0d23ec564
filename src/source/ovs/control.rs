//! The control socket of one ovs-vswitchd (`ovs-vswitchd.PID.ctl`, JSON-RPC 1.0), asked once a second what its userspace
//! datapath has counted. It never waits: the answer is heard when it comes. What answers wrongly is left alone for a while.

use super::budget::Budget;
use super::connection::{Over, OvsConnection};
use super::readiness::Readiness;
use super::silence;
use crate::sample::{OvsDatapath, OvsDatapathKind, Problem};
use crate::text::clean;
use serde_json::{Value, json};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const SECOND_NS: u64 = 1_000_000_000;
/// How often it is asked: a little less than a second, so that a tick which comes early does not wait for the next one. What
/// answers is the thread that forwards where it has no other.
const PACE_NS: u64 = 950_000_000;
/// After so long without an answer what it said last is not known any more.
const SILENCE_NS: u64 = 5 * SECOND_NS;
/// How long what does no good is left alone at most.
const LONGEST_REST_NS: u64 = 64 * SECOND_NS;
/// What a switch calls its datapath for all bridges of this kind.
const DATAPATH: &str = "ovs-netdev";

/// The conversation with one ovs-vswitchd.
#[derive(Debug, Default)]
pub(super) struct Control {
    path: PathBuf,
    /// Its process.
    pid: u32,
    connection: Option<OvsConnection>,
    budget: Budget,
    /// When the question was asked that is not answered yet.
    asked_at_ns: Option<u64>,
    ask_at_ns: u64,
    rest_ns: u64,
    /// The last answer, of which it does not say where that is; none where it is too old.
    pub told: Option<OvsDatapath>,
    pub problem: Option<Problem>,
}

impl Control {
    pub fn new(path: PathBuf, pid: u32) -> Self {
        Self { path, pid, rest_ns: SECOND_NS, ..Self::default() }
    }

    pub fn is_at(&self, path: &Path) -> bool {
        self.path == path
    }

    pub fn is_connected(&self) -> bool {
        self.connection.is_some()
    }

    /// What it says is left in its socket until the budget allows more.
    pub fn is_put_off(&self) -> bool {
        self.connection.is_some() && !self.budget.is_left()
    }

    /// At every tick: asks where it is time to.
    pub fn ask(&mut self, readiness: &mut Readiness, now_ns: u64) {
        if let Some(asked_at_ns) = self.asked_at_ns {
            let silent_ns = now_ns.saturating_sub(asked_at_ns);
            if silent_ns >= SILENCE_NS {
                self.told = None;
                self.problem = Some(super::problem(format!(
                    "ovs-vswitchd has not answered at {} for {} s: datapath drops unknown; see its log",
                    self.name(),
                    silence::at_least_s(silent_ns)
                )));
            }
            return;
        }
        if now_ns < self.ask_at_ns {
            return;
        }
        self.ask_at_ns = now_ns + PACE_NS;
        if self.connection.is_none() {
            match OvsConnection::open(&self.path) {
                Ok(connection) => {
                    readiness.add(&connection);
                    self.connection = Some(connection);
                }
                Err(error) => {
                    let why = match error.kind() {
                        io::ErrorKind::PermissionDenied => "connecting is not permitted; run as root".to_owned(),
                        _ => error.to_string(),
                    };
                    return self.fail(&why, now_ns);
                }
            }
        }
        let said = self.connection.as_mut().map_or(Ok(()), |connection| connection.say(&request()));
        self.asked_at_ns = Some(now_ns);
        self.end(said, now_ns);
    }

    /// Takes in what it has answered.
    pub fn receive(&mut self, buffer: &mut Vec<u8>, now_ns: u64) {
        let Some(mut connection) = self.connection.take() else { return };
        self.budget.fill(now_ns);
        let (mut open, mut answer) = (self.asked_at_ns.is_some(), None);
        let heard = connection.receive(buffer, &mut self.budget, |message| {
            if !std::mem::take(&mut open) {
                return Err("it sends without being asked".to_owned());
            }
            answer = Some(understand(message)?);
            Ok(())
        });
        self.connection = Some(connection);
        if let Some(counters) = answer {
            self.told = Some(OvsDatapath { born: u64::from(self.pid), at_ns: now_ns, ..counters });
            (self.asked_at_ns, self.rest_ns, self.problem) = (None, SECOND_NS, None);
        }
        self.end(heard.map(drop), now_ns);
    }

    fn end(&mut self, result: Result<(), Over>, now_ns: u64) {
        match result {
            Ok(()) => {}
            Err(Over::Closed) => self.fail("it closes the connection", now_ns),
            Err(Over::Wrong(why)) => self.fail(&why, now_ns),
        }
    }

    /// Leaves it alone for a while.
    fn fail(&mut self, why: &str, now_ns: u64) {
        (self.connection, self.asked_at_ns, self.told) = (None, None, None);
        self.ask_at_ns = now_ns + self.rest_ns;
        self.rest_ns = (2 * self.rest_ns).min(LONGEST_REST_NS);
        self.problem = Some(super::problem(format!(
            "cannot query {} for the drops of ovs-vswitchd's datapath: {why}",
            self.name()
        )));
    }

    fn name(&self) -> String {
        clean(self.path.as_os_str().as_bytes())
    }
}

fn request() -> Vec<u8> {
    let datapath = format!("netdev@{DATAPATH}");
    json!({"id": 0, "method": "dpctl/show", "params": [datapath]}).to_string().into_bytes()
}

/// Understands an answer.
///
/// # Errors
/// It is none, or a refusal: the end of a sentence.
fn understand(message: &[u8]) -> Result<OvsDatapath, String> {
    let value: Value = serde_json::from_slice(message).map_err(|_| "it does not send JSON".to_owned())?;
    if let Some(words) = value["error"].as_str() {
        let words: String = words.chars().take(80).collect();
        return Err(format!("it refuses ({})", clean(words.trim().as_bytes())));
    }
    let told = value["result"].as_str().and_then(counters);
    told.ok_or_else(|| "its answer is not that of dpctl/show".to_owned())
}

/// `  lookups: hit:5 missed:2 lost:0` and `  flows: 1` below the datapath's name.
fn counters(text: &str) -> Option<OvsDatapath> {
    let is_name = |line: &str| line.trim_end().strip_suffix(':').is_some_and(|name| name.ends_with(DATAPATH));
    let mut lines = text.lines().skip_while(|line| line.starts_with(' ') || !is_name(line));
    lines.next()?;
    let below: Vec<&str> = lines.take_while(|line| line.starts_with(' ')).map(str::trim).collect();
    let after = |word: &str| below.iter().find_map(|line| line.strip_prefix(word));
    let lookups = after("lookups:")?;
    let count = |word: &str| lookups.split_whitespace().find_map(|told| told.strip_prefix(word))?.parse().ok();
    let flows = after("flows:")?.trim().parse().ok()?;
    let (kind, name) = (OvsDatapathKind::Netdev, DATAPATH.to_owned());
    let (hit, missed, lost) = (count("hit:")?, count("missed:")?, count("lost:")?);
    Some(OvsDatapath { kind, name, hit, missed, lost, flows, ..OvsDatapath::default() })
}

#[cfg(test)]
mod tests;
