//! One test while it runs, and for a moment after: what of each sample is its own, and what is derived of that.

use super::{Test, TestKey, TestMean, ends, ends_kept};
use crate::conclusions::Conclusions;
use crate::finding::Finding;
use crate::finding::nothing;
use crate::flow::{Connection, End, FlowTrack};
use crate::history::History;
use crate::ledger::{Bin, FlowBasis};
use crate::losses::Losses;
use crate::machine::MachineMetrics;
use crate::scope::{Scope, kept};
use crate::test_metrics::TestMetrics;
use crate::test_stages::{OwnPart, TestStages};
use std::collections::BTreeSet;
use std::sync::Arc;
use vnettop_sample::{Duty, Event, Sample, SocketKey};

/// So long after a test's last connection the kernel may still report its losses, ns.
const LATE_NS: u64 = 1_000_000_000;

/// A test that runs, or has just ended.
#[derive(Debug, Clone, Default)]
pub(super) struct Running {
    /// Its number; `None` before it is a test: a connection that nothing is sent through is none.
    pub number: Option<u32>,
    pub began_ns: u64,
    pub ended_ns: Option<u64>,
    /// Until it ended.
    mean: Option<TestMean>,
    ends_seen: Option<[End; 2]>,
    lost: f64,
    /// What was found of it when it ended.
    last_findings: Arc<Vec<Finding>>,
    scope: Scope,
    stages: TestStages,
    /// The test's own part of the previous sample.
    previous: Option<Sample>,
    /// As of the last sample that had a connection of it.
    metrics: Option<Arc<TestMetrics>>,
    /// Nothing once it has ended.
    conclusions: Arc<Conclusions>,
    /// As of the sample before: it may have ended within the last interval, whose rates are too low then.
    before: Option<Arc<Conclusions>>,
}

impl Running {
    /// Events of its own threads, and events of no thread.
    fn own_events(&self, key: TestKey, events: &[Event]) -> Vec<Event> {
        let has = |pid| self.previous.iter().flat_map(Sample::watched).any(|thread| thread.id.pid == pid);
        let is_own = |event: &&Event| match event {
            Event::Pinned { thread, .. } | Event::Restored { thread, .. } => {
                key.processes().contains(&thread.pid) || has(thread.pid)
            }
            _ => true,
        };
        events.iter().filter(is_own).cloned().collect()
    }

    pub fn observe(
        &mut self,
        key: TestKey,
        own: BTreeSet<SocketKey>,
        previous: &Sample,
        next: &Sample,
        machine: &Arc<MachineMetrics>,
        history: &History,
    ) {
        // One connection after another, as of a client that asks for many pages, is one test.
        self.ended_ns = if own.is_empty() { self.ended_ns.or(Some(next.at_ns)) } else { None };
        let mut events = self.own_events(key, &machine.events);
        let family = Arc::new(key.processes());
        let narrow = |scope: &mut Scope, flow: &mut FlowTrack, sample: &Sample| {
            let mut sample = sample.clone();
            flow.beside = scope.narrow_to(&family, &mut sample);
            sample
        };
        self.scope.take(own);
        let before = self.previous.take().unwrap_or_else(|| {
            let before = narrow(&mut self.scope, &mut self.stages.flow, previous);
            let then = MachineMetrics { at_ns: before.at_ns, elapsed_s: None, ..(**machine).clone() };
            let first = own_part(&Arc::new(then), std::mem::take(&mut events), &before, &before);
            self.stages.observe(None, &before, first, history);
            before
        });
        let now = narrow(&mut self.scope, &mut self.stages.flow, next);
        let own = own_part(machine, events, &before, &now);
        let (own, concluded) = self.stages.observe(Some(&before), &now, own, history);
        self.lost += own.losses.packets();
        if self.ended_ns.is_none() {
            self.mean = mean(&self.stages.flow);
        }
        self.ends_seen = ends_kept(self.ends_seen, ends(key, &own.flow.connections, true));
        match &mut self.metrics {
            Some(last) if self.ended_ns.is_some() => {
                let found = [self.before.take(), Some(std::mem::take(&mut self.conclusions))];
                if let Some(found) = found.into_iter().flatten().find(|found| !found.findings.is_empty()) {
                    self.last_findings = Arc::new(found.findings.clone());
                }
                Arc::make_mut(last).losses = own.losses;
            }
            last => {
                self.last_findings = Arc::default();
                let concluded = std::mem::replace(&mut self.conclusions, Arc::new(concluded));
                self.before = last.replace(Arc::new(own)).map(|_| concluded);
            }
        }
        self.previous = Some(now);
    }

    /// It has its first data, or wants to have and gets nothing: what is no benchmark's may never have any.
    pub fn begins(&self) -> bool {
        let Some(own) = self.metrics.as_ref().filter(|_| self.number.is_none()) else { return false };
        let begins = |connection: &Connection| connection.carries || connection.is_stuck();
        own.flow.connections.iter().any(begins) || !own.flow.tests.is_empty() || nothing::waiting(own).is_some()
    }

    /// Whether nothing more can come of it: it has ended, and late drops have had their time.
    pub fn is_over(&self, now_ns: u64) -> bool {
        self.ended_ns.is_some_and(|ended_ns| self.number.is_none() || now_ns.saturating_sub(ended_ns) >= LATE_NS)
    }

    /// The test as it is kept after its end: of the machine its threads and the links on its paths alone.
    pub fn kept(mut self, key: TestKey) -> Option<Arc<Test>> {
        let own = Arc::make_mut(self.metrics.as_mut()?);
        let on_way: BTreeSet<_> = own.paths.iter().flat_map(|path| &path.hops).map(|hop| hop.link).collect();
        let links = own.machine.links.iter().filter(|link| on_way.contains(&link.facts.key())).cloned().collect();
        own.machine = Arc::new(MachineMetrics {
            links: Arc::new(links),
            cores: Vec::new(),
            threads: Arc::clone(&own.threads),
            moves: Arc::default(),
            kernel: None,
            kernel_before: None,
            ..(*own.machine).clone()
        });
        (own.moves, own.losses) = (Arc::default(), Losses::default());
        self.shown(key)
    }

    pub fn shown(&self, key: TestKey) -> Option<Arc<Test>> {
        Some(Arc::new(Test {
            number: self.number?,
            key,
            began_ns: self.began_ns,
            ended_ns: self.ended_ns,
            mean: self.mean,
            ends_seen: self.ends_seen,
            lost: self.lost,
            last_findings: Arc::clone(&self.last_findings),
            metrics: self.metrics.clone()?,
            conclusions: Arc::clone(&self.conclusions),
        }))
    }
}

/// The mean of the bins in which the test ran throughout: connections tell where they began and ended, of datagrams and of a link's
/// packets the first bin and the last may be a part only.
fn mean(flow: &FlowTrack) -> Option<TestMean> {
    let mut whole = flow.bins.iter();
    if !matches!(flow.basis, Some(FlowBasis::Sockets(_))) {
        let _ends = (whole.next(), whole.next_back());
    }
    let known = || whole.clone().filter(|bin| bin.bits_per_s.is_some());
    Some(TestMean {
        bits_per_s: Bin::mean(known())?,
        from_ns: known().next()?.from_ns,
        to_ns: known().next_back()?.to_ns,
        known_s: known().map(Bin::length_s).sum(),
    })
}

/// What the first stage has derived, without what belongs to others.
fn own_part(machine: &Arc<MachineMetrics>, events: Vec<Event>, before: &Sample, now: &Sample) -> OwnPart {
    let is_in = |sample: &Sample, pid: u32, tid: u32| {
        let found = sample.threads.binary_search_by_key(&(pid, tid), |thread| (thread.id.pid, thread.id.tid));
        found.is_ok_and(|at| sample.threads[at].duty != Duty::Carrier)
    };
    let is_own = |pid, tid| is_in(now, pid, tid) || is_in(before, pid, tid);
    OwnPart {
        machine: Arc::clone(machine),
        threads: kept(&machine.threads, |thread| is_in(now, thread.sample.id.pid, thread.sample.id.tid)),
        moves: kept(&machine.moves, |one| is_own(one.thread.pid, one.thread.tid)),
        undone: machine.undone.iter().filter(|one| is_in(now, one.thread.pid, one.thread.tid)).cloned().collect(),
        events,
    }
}
