//! The cores that a proposal touches, before and after: those its threads are on now and those they would get.

use super::proposal::{CoreChange, Step};
use super::recent::RecentLoad;
use crate::sample::{CoreId, Topology};
use std::collections::BTreeSet;

pub(super) fn of(steps: &[Step], topology: &Topology, recent: &RecentLoad) -> Vec<CoreChange> {
    let touched: BTreeSet<CoreId> = steps.iter().flat_map(|step| [step.on, step.core]).collect();
    let tids = |is: &dyn Fn(&&Step) -> bool| steps.iter().filter(is).map(|step| step.thread.tid).collect();
    let change = |core: CoreId| CoreChange {
        core,
        node: topology.place(core).and_then(|place| place.node),
        load: recent.core(core),
        now: tids(&|step| step.on == core),
        then: tids(&|step| step.core == core),
    };
    touched.into_iter().map(change).collect()
}
