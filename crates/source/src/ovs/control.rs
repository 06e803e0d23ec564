//! The control socket of one ovs-vswitchd (`ovs-vswitchd.PID.ctl`, JSON-RPC 1.0), asked once a second what its userspace
//! datapath has counted. It never waits: the answer is heard when it comes. What answers wrongly is left alone for a while.

use super::inactivity;
use crate::slow::json_rpc::{Conversation, Over, ReadBudget, RpcMessage};
use serde_json::{Value, json};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vnettop_sample::text::clean;
use vnettop_sample::{OvsDatapath, OvsDatapathKind, Problem};

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
    conversation: Option<Conversation>,
    budget: Arc<ReadBudget>,
    /// When the question was asked that is not answered yet.
    asked_at_ns: Option<u64>,
    ask_at_ns: u64,
    rest_ns: u64,
    /// The last answer, of which it does not say where that is; none where it is too old.
    pub reported: Option<OvsDatapath>,
    pub problem: Option<Problem>,
}

impl Control {
    pub fn new(path: PathBuf, pid: u32) -> Self {
        Self { path, pid, rest_ns: SECOND_NS, ..Self::default() }
    }

    pub fn is_at(&self, path: &Path) -> bool {
        self.path == path
    }

    /// At every tick: asks where it is time to.
    pub fn ask(&mut self, now_ns: u64) {
        if let Some(asked_at_ns) = self.asked_at_ns {
            let silent_ns = now_ns.saturating_sub(asked_at_ns);
            if silent_ns >= SILENCE_NS {
                self.reported = None;
                self.problem = Some(super::problem(format!(
                    "ovs-vswitchd has not answered at {} for {} s: datapath drops unknown; see its log",
                    self.name(),
                    inactivity::at_least_s(silent_ns)
                )));
            }
            return;
        }
        if now_ns < self.ask_at_ns {
            return;
        }
        self.ask_at_ns = now_ns + PACE_NS;
        if self.conversation.is_none() {
            match Conversation::open(&self.path, &self.budget) {
                Ok(conversation) => self.conversation = Some(conversation),
                Err(error) => {
                    let why = match error.kind() {
                        io::ErrorKind::PermissionDenied => "connecting is not permitted; run as root".to_owned(),
                        _ => error.to_string(),
                    };
                    return self.fail(&why, now_ns);
                }
            }
        }
        if let Some(conversation) = &self.conversation {
            conversation.say(&request());
            self.asked_at_ns = Some(now_ns);
        }
    }

    /// Takes in what it has answered.
    pub fn receive(&mut self, now_ns: u64) {
        let Some(conversation) = self.conversation.take() else { return };
        let taken = conversation.arrived().try_for_each(|message| self.take(&message?));
        self.conversation = Some(conversation);
        match taken {
            Ok(()) => {}
            Err(Over::Closed) => self.fail("it closes the connection", now_ns),
            Err(Over::Wrong(why)) => self.fail(&why, now_ns),
        }
    }

    fn take(&mut self, message: &RpcMessage) -> Result<(), Over> {
        if self.asked_at_ns.take().is_none() {
            return Err(Over::Wrong("it sends without being asked".to_owned()));
        }
        let counters = understand(&message.value).map_err(Over::Wrong)?;
        self.reported = Some(OvsDatapath { born: u64::from(self.pid), at_ns: message.at_ns, ..counters });
        (self.rest_ns, self.problem) = (SECOND_NS, None);
        Ok(())
    }

    /// Leaves it alone for a while.
    fn fail(&mut self, why: &str, now_ns: u64) {
        (self.conversation, self.asked_at_ns, self.reported) = (None, None, None);
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
fn understand(value: &Value) -> Result<OvsDatapath, String> {
    if let Some(words) = value["error"].as_str() {
        let words: String = words.chars().take(80).collect();
        return Err(format!("it refuses ({})", clean(words.trim().as_bytes())));
    }
    let reported = value["result"].as_str().and_then(counters);
    reported.ok_or_else(|| "its answer is not that of dpctl/show".to_owned())
}

/// `  lookups: hit:5 missed:2 lost:0` and `  flows: 1` below the datapath's name.
fn counters(text: &str) -> Option<OvsDatapath> {
    let is_name = |line: &str| line.trim_end().strip_suffix(':').is_some_and(|name| name.ends_with(DATAPATH));
    let mut lines = text.lines().skip_while(|line| line.starts_with(' ') || !is_name(line));
    lines.next()?;
    let below: Vec<&str> = lines.take_while(|line| line.starts_with(' ')).map(str::trim).collect();
    let after = |word: &str| below.iter().find_map(|line| line.strip_prefix(word));
    let lookups = after("lookups:")?;
    let count = |word: &str| lookups.split_whitespace().find_map(|reported| reported.strip_prefix(word))?.parse().ok();
    let flows = after("flows:")?.trim().parse().ok()?;
    let (kind, name) = (OvsDatapathKind::Netdev, DATAPATH.to_owned());
    let (hit, missed, lost) = (count("hit:")?, count("missed:")?, count("lost:")?);
    Some(OvsDatapath { kind, name, hit, missed, lost, flows, ..OvsDatapath::default() })
}

/// What a fuzzer gives every parser here.
#[cfg(fuzzing)]
pub(super) fn fuzz(value: &Value) {
    let _ = (understand(value), value.as_str().map(counters));
}

#[cfg(test)]
mod tests;
