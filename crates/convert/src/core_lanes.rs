//! What ran on a core, as far as that is known: the watched threads that are on it. One that comes while another one is there has
//! a lane of its own, so that no slices of a track overlap.

use super::trace_writer::{TraceWriter, TrackId, TrackKind};
use std::collections::BTreeMap;
use std::io::{self, Write};
use vnettop_sample::{CoreId, ThreadId};

/// A row of a core, and who is in it.
#[derive(Debug)]
struct CoreLane {
    on: TrackId,
    holder: Option<ThreadId>,
}

/// The rows of all cores.
#[derive(Debug, Default)]
pub struct CoreLanes {
    lanes: BTreeMap<CoreId, Vec<CoreLane>>,
}

impl CoreLanes {
    /// A thread comes to a core.
    pub fn come<W: Write>(
        &mut self,
        out: &mut TraceWriter<W>,
        below: TrackId,
        at_ns: u64,
        (core, thread, name): (CoreId, ThreadId, &str),
    ) -> io::Result<()> {
        let lanes = self.lanes.entry(core).or_default();
        let free = lanes.iter().position(|lane| lane.holder.is_none());
        let at = free.unwrap_or(lanes.len());
        if free.is_none() {
            let on = out.track(Some(below), TrackKind::Named(&lane_name(core, at)))?;
            lanes.push(CoreLane { on, holder: None });
        }
        lanes[at].holder = Some(thread);
        out.begin(lanes[at].on, at_ns, name, &[])
    }

    /// It leaves.
    pub fn leave<W: Write>(
        &mut self,
        out: &mut TraceWriter<W>,
        at_ns: u64,
        core: CoreId,
        thread: ThreadId,
    ) -> io::Result<()> {
        let lanes = self.lanes.get_mut(&core).into_iter().flatten();
        match lanes.into_iter().find(|lane| lane.holder == Some(thread)) {
            Some(lane) => {
                lane.holder = None;
                out.end(lane.on, at_ns)
            }
            None => Ok(()),
        }
    }
}

fn lane_name(core: CoreId, nth: usize) -> String {
    match nth {
        0 => format!("core {core}: watched threads"),
        nth => format!("core {core}: watched threads ({})", nth + 1),
    }
}

/// The track of a thing that all tracks of its kind are below.
pub fn heading<W: Write>(out: &mut TraceWriter<W>, known: &mut Option<TrackId>, name: &str) -> io::Result<TrackId> {
    match *known {
        Some(track) => Ok(track),
        None => Ok(*known.insert(out.track(None, TrackKind::Named(name))?)),
    }
}
