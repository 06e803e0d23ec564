//! A counter of a trace: steps of known values. Perfetto draws a value until the next one, and has no word for "not known": there
//! is no value where none is known, and a slice below the counter says from when to when.

use super::trace_writer::{TraceWriter, TrackId, TrackKind};
use std::io::{self, Write};

/// What the slice is called under a counter whose value is not known.
const UNKNOWN: &str = "not known";

/// A counter, whose steps come in the order of time.
#[derive(Debug, Clone, Default)]
pub struct CounterTrack {
    on: Option<TrackId>,
    /// The track of what is not known; none before something was not.
    gaps: Option<TrackId>,
    /// A slice on it is open.
    is_unknown: bool,
    /// The value written last.
    last: Option<f64>,
    /// The end of the last step, monotonic ns.
    to_ns: u64,
    /// What it counts was gone then.
    is_closed: bool,
}

/// What a counter is called, its unit, and below which track it lies.
#[derive(Debug, Clone, Copy)]
pub struct CounterPlace<'a> {
    /// Below which track.
    pub below: TrackId,
    /// Its name.
    pub name: &'a str,
    /// What its values are in.
    pub unit: &'a str,
    /// It has a track from the first value on; else from the first that is not 0.
    pub shows_zero: bool,
}

impl CounterTrack {
    /// A value that holds from one moment to another; none where it is not known.
    pub fn step<W: Write>(
        &mut self,
        out: &mut TraceWriter<W>,
        place: CounterPlace<'_>,
        (from_ns, to_ns): (u64, u64),
        value: Option<f64>,
    ) -> io::Result<()> {
        let value = value.filter(|value| value.is_finite());
        if !std::mem::take(&mut self.is_closed) && self.to_ns < from_ns {
            // Nothing is known of the time between two steps.
            self.unknown_from(out, place, self.to_ns)?;
        }
        self.to_ns = self.to_ns.max(to_ns);
        let Some(value) = value else { return self.unknown_from(out, place, from_ns) };
        let on = match self.on {
            Some(on) => on,
            None if value == 0.0 && !place.shows_zero => return Ok(()),
            None => {
                let track = out.track(Some(place.below), TrackKind::Counter(place.name, place.unit))?;
                *self.on.insert(track)
            }
        };
        if let Some(gaps) = self.gaps.filter(|_| std::mem::take(&mut self.is_unknown)) {
            out.end(gaps, from_ns)?;
        }
        if self.last != Some(value) {
            self.last = Some(value);
            out.count(on, from_ns, value)?;
        }
        Ok(())
    }

    /// What it counts is gone: nothing is counted from the end of the last step on.
    pub fn close<W: Write>(&mut self, out: &mut TraceWriter<W>) -> io::Result<()> {
        self.end(out)?;
        self.is_closed = true;
        match self.on.filter(|_| self.last.take().is_some_and(|last| last != 0.0)) {
            Some(on) => out.count(on, self.to_ns, 0.0),
            None => Ok(()),
        }
    }

    /// The trace ends: so does what is not known.
    pub fn end<W: Write>(&mut self, out: &mut TraceWriter<W>) -> io::Result<()> {
        match self.gaps.filter(|_| std::mem::take(&mut self.is_unknown)) {
            Some(gaps) => out.end(gaps, self.to_ns),
            None => Ok(()),
        }
    }

    /// Before the first value nothing is drawn, and nothing need be said.
    fn unknown_from<W: Write>(
        &mut self,
        out: &mut TraceWriter<W>,
        place: CounterPlace<'_>,
        from_ns: u64,
    ) -> io::Result<()> {
        if self.on.is_none() || self.is_unknown {
            return Ok(());
        }
        let name = || format!("{}: {UNKNOWN}", place.name);
        let gaps = match self.gaps {
            Some(gaps) => gaps,
            None => *self.gaps.insert(out.track(Some(place.below), TrackKind::Named(&name()))?),
        };
        self.is_unknown = true;
        self.last = None;
        out.begin(gaps, from_ns, UNKNOWN, &[])
    }
}
