//! What a recording is converted to, sample by sample.

use super::folded_stacks::FoldedStacks;
use super::perfetto::PerfettoTrace;
use super::tables::{CsvTable, TableKind};
use std::io::{self, Write};
use vnettop_derive::Metrics;
use vnettop_sample::Event;

/// What is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConvertedTo {
    /// A trace for Perfetto (protocol buffers).
    Perfetto,
    /// A table of comma-separated values.
    Table(TableKind),
    /// The stacks of profiled cores, a line a stack.
    Stacks,
}

/// Where what is written starts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StartedAt {
    /// The first sample of the recording, from which tables count seconds, `CLOCK_MONOTONIC`, ns; none: the first that comes.
    pub origin_ns: Option<u64>,
    /// Events and bins of before are left out, `CLOCK_MONOTONIC`, ns; 0: nothing is.
    pub since_ns: u64,
}

/// A recording being converted. Memory is bounded by what there is at one time, not by the length of the recording.
#[derive(Debug)]
pub struct Conversion<W>(Writing<W>);

#[derive(Debug)]
enum Writing<W> {
    Perfetto(Box<PerfettoTrace<W>>),
    Table(Box<CsvTable<W>>),
    Stacks(Box<FoldedStacks<W>>),
}

impl<W: Write> Conversion<W> {
    /// Starts.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn new(to: ConvertedTo, from: StartedAt, out: W) -> io::Result<Self> {
        Ok(Self(match to {
            ConvertedTo::Perfetto => Writing::Perfetto(Box::new(PerfettoTrace::new(out, from.since_ns))),
            ConvertedTo::Table(kind) => {
                Writing::Table(Box::new(CsvTable::new(kind, out, from.origin_ns, from.since_ns)?))
            }
            ConvertedTo::Stacks => Writing::Stacks(Box::new(FoldedStacks::new(out, from.since_ns))),
        }))
    }

    /// Takes the metrics of the next sample, whose time must not be before that of the last one. What the first says of the time
    /// before it is left out.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn observe(&mut self, metrics: &Metrics) -> io::Result<()> {
        match &mut self.0 {
            Writing::Perfetto(trace) => trace.observe(metrics),
            Writing::Table(table) => table.observe(metrics),
            Writing::Stacks(stacks) => {
                stacks.observe(metrics);
                Ok(())
            }
        }
    }

    /// Nothing comes after it but these events, of after the last sample: writes what was held back.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(mut self, last: &[Event]) -> io::Result<()> {
        match &mut self.0 {
            Writing::Perfetto(trace) => trace.finish(last),
            Writing::Table(table) => table.finish(),
            Writing::Stacks(stacks) => stacks.finish(),
        }
    }
}
