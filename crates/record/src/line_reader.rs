//! Reads one line after another, wherever they come from: facts are remembered, a sample gets those that hold, and what breaks
//! an order that everything behind relies on is refused.

use super::line::{self, RecordLine};
use super::{Header, SCHEMA_VERSION, clean};
use std::sync::Arc;
use vnettop_sample::text;
use vnettop_sample::{CoreId, Facts, FlowSample, Item, LinkCounters, MOST_CORES, OvsDatapath, Sample};

/// No line of a real recording comes near it (8,000 links take about 3 MB); a longer one is not read into memory.
pub(super) const LONGEST_LINE: usize = 64 << 20;

/// No recording is of more hosts than can be watched.
const MOST_HOSTS: usize = 16;

/// Why a line cannot be used.
pub(super) enum LineError {
    /// It is no line of a recording; this may be because it is only the beginning of one.
    Unreadable(String),
    /// What it says cannot be.
    Impossible(String),
}

/// Why a first line is none of a recording that can be read.
pub(super) enum HeaderError {
    /// It is something else.
    Foreign,
    /// It is that of a recording of another version.
    Version(u32),
}

/// The first line: the hosts that the recording is of where it names them, and the version of vnettop that wrote it; control
/// characters replaced.
pub(super) fn header(line: &[u8]) -> Result<(Vec<String>, String), HeaderError> {
    let header: Header = serde_json::from_slice(line).map_err(|_| HeaderError::Foreign)?;
    if header.vnettop_recording != SCHEMA_VERSION {
        return Err(HeaderError::Version(header.vnettop_recording));
    }
    let clean = |word: &String| text::clean(word.as_bytes());
    let hosts: Vec<String> = header.hosts.iter().map(clean).collect();
    let is_known = |at: usize| hosts[at].is_empty() || hosts[..at].contains(&hosts[at]);
    if hosts.len() > MOST_HOSTS || (0..hosts.len()).any(is_known) {
        return Err(HeaderError::Foreign);
    }
    Ok((hosts, clean(&header.vnettop)))
}

/// What holds after the lines read so far.
#[derive(Default)]
pub(super) struct LineReader {
    pub facts: Arc<Facts>,
}

impl LineReader {
    /// Reads a line, whose texts are made harmless in place.
    pub fn read(&mut self, line: &mut Vec<u8>) -> Result<RecordLine, LineError> {
        clean::line(line);
        let read = line::read(line, Arc::make_mut(&mut self.facts));
        let mut read = read.map_err(|error| LineError::Unreadable(reason(&error)))?;
        let checked = match &mut read {
            RecordLine::Fact => self.check_facts(),
            RecordLine::Item(Item::Sample(sample)) => {
                sample.facts = Arc::clone(&self.facts);
                check(sample)
            }
            RecordLine::Item(Item::Event(_)) | RecordLine::Reply(_) | RecordLine::From(_) => Ok(()),
        };
        checked.map(|()| read).map_err(LineError::Impossible)
    }

    fn check_facts(&self) -> Result<(), String> {
        // Each by its name: the compiler asks whether the order and the cores of a new one matter.
        let Facts {
            topology,
            links,
            spaces,
            owners,
            benchmarks,
            offloads,
            steering,
            family,
            runners,
            firewall,
            host: _,
            problems: _,
            ovs: _,
            paths: _,
        } = &*self.facts;
        sorted(links.iter().map(|link| link.key()), "links")?;
        sorted(topology.cores.iter().map(|place| place.core), "cores")?;
        sorted(spaces.iter().map(|space| space.netns), "spaces")?;
        sorted(owners.iter().map(|owned| owned.link), "owners")?;
        sorted(benchmarks.iter().map(|one| one.pid), "benchmarks")?;
        sorted(offloads.iter().map(|reported| reported.link), "offloads")?;
        sorted(steering.iter().map(|reported| reported.link), "steerings")?;
        sorted(family.iter().flat_map(|pids| &**pids), "processes")?;
        sorted(firewall.iter().map(|reported| reported.link), "firewalls")?;
        possible(topology.cores.iter().map(|place| place.core))?;
        possible(steering.iter().flat_map(|reported| &reported.napi).map(|thread| thread.core))?;
        possible(runners.iter().map(|runner| runner.core))
    }
}

fn check(sample: &Sample) -> Result<(), String> {
    sorted(sample.counters.iter().map(LinkCounters::key), "counters")?;
    sorted(sample.cores.iter().map(|row| row.core), "cores")?;
    sorted(sample.threads.iter().map(|thread| (thread.id.pid, thread.id.tid)), "threads")?;
    sorted(sample.flows.iter().map(FlowSample::key), "flows")?;
    sorted(sample.qdiscs.iter().map(|qdisc| (qdisc.link, qdisc.handle)), "qdiscs")?;
    sorted(sample.protocols.iter().map(|counters| counters.netns), "protocols")?;
    sorted(sample.datapaths.iter().map(OvsDatapath::key), "datapaths")?;
    possible(sample.cores.iter().map(|row| row.core).chain(sample.threads.iter().map(|thread| thread.core)))?;
    let hops = || sample.kernel.iter().flat_map(|kernel| &kernel.hops);
    let of_flows = hops().flat_map(|hop| &hop.flows).flat_map(|flow| &flow.cores);
    possible(hops().flat_map(|hop| &hop.cores).chain(of_flows).map(|(core, _)| *core))?;
    possible(sample.trace.iter().flat_map(|trace| &trace.moves).flat_map(|moved| [moved.from, moved.to]))
}

/// Everything behind relies on this order; a recording that breaks it was not written by vnettop.
fn sorted<K: PartialOrd>(keys: impl Iterator<Item = K>, what: &str) -> Result<(), String> {
    if keys.is_sorted_by(|a, b| a < b) { Ok(()) } else { Err(format!("its {what} are out of order")) }
}

/// A core that no kernel can have would only be memory wasted.
fn possible(mut cores: impl Iterator<Item = CoreId>) -> Result<(), String> {
    cores.find(|&core| core >= MOST_CORES).map_or(Ok(()), |core| Err(format!("there is no core {core}")))
}

/// What is wrong with a line, which is one line of JSON: its own number in that says nothing.
fn reason(error: &serde_json::Error) -> String {
    let (text, column) = (error.to_string(), error.column());
    let place = format!(" at line {} column {column}", error.line());
    text.strip_suffix(&place).map_or_else(|| text.clone(), |what| format!("{what} (column {column})"))
}
