//! Where a thread may go at all: its cpuset, what is online, the mask its owner gave it. A mask that vnettop set is no
//! wish of the owner's; isolated cores are taken only where nothing else is left.

use crate::derive::threads::ThreadMetrics;
use crate::sample::{CoreSet, Topology};

/// The cores a thread may be given, and a word on it where they are fewer than one would think.
pub(super) struct Allowed {
    pub(super) cores: CoreSet,
    pub(super) note: Option<String>,
}

pub(super) fn of(thread: &ThreadMetrics, topology: &Topology, online: &CoreSet) -> Allowed {
    let sample = &thread.sample;
    let cpuset = sample.cpuset.as_ref().map(|cpuset| cpuset.intersection(online)).filter(|cores| !cores.is_empty());
    let whole = cpuset.as_ref().unwrap_or(online);
    // Of a thread that vnettop pinned, the mask from before the pin is its owner's wish.
    let wish = if thread.pinned { thread.before_pin.as_ref() } else { sample.allowed.as_ref() };
    let mask = wish.map(|mask| mask.intersection(online)).filter(|mask| !mask.is_empty() || !thread.pinned);
    let mut narrowed = None;
    let cores = match mask {
        None => whole.clone(),
        // Without a known cpuset the mask is the only word on what is allowed.
        Some(mask) if cpuset.is_none() => mask,
        // The kernel keeps fresh threads off isolated cores: that is nobody's wish either.
        Some(mask) if mask == *whole || mask == without(whole, &topology.isolated) => whole.clone(),
        Some(mask) => {
            narrowed = Some(format!("its own mask allows only {mask}"));
            mask
        }
    };
    let open = without(&cores, &topology.isolated);
    if open.is_empty() && !cores.is_empty() {
        return Allowed { cores, note: Some("isolated, but nothing else is allowed".to_owned()) };
    }
    Allowed { cores: open, note: narrowed }
}

fn without(cores: &CoreSet, isolated: &CoreSet) -> CoreSet {
    if isolated.is_empty() { cores.clone() } else { cores.iter().filter(|&core| !isolated.contains(core)).collect() }
}
