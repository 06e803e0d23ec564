//! Facts: what hardly changes from sample to sample. A new fact is a field of [`Facts`] and its row in [`Facts::visit`], by which
//! recordings write it when it has changed and read it back, and the samples that wait to be shown are weighed.

use super::{
    Benchmark, FlowPath, Host, LinkFacts, Offloads, OvsSwitch, Owned, Problem, Runner, Space, Steering, Topology,
};
use serde::{Serialize, de::DeserializeOwned};
use std::sync::Arc;

/// Facts of the machine and of what is watched. Each is the same `Arc` until it changes, and so is the one around them all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// The machine.
    pub host: Arc<Host>,
    /// Where each core sits; changes when a core goes on- or offline.
    pub topology: Arc<Topology>,
    /// What each link is, sorted by namespace and ifindex; changes with a notification.
    pub links: Arc<Vec<Arc<LinkFacts>>>,
    /// Sources that could not be read, each with its reason; empty is the normal case.
    pub problems: Arc<Vec<Problem>>,
    /// The network namespaces whose links these are, sorted by inode.
    pub spaces: Arc<Vec<Space>>,
    /// Who the links belong to, sorted by link.
    pub owners: Arc<Vec<Owned>>,
    /// What Open vSwitch says, sorted by socket.
    pub ovs: Arc<Vec<OvsSwitch>>,
    /// Which way the flows go.
    pub paths: Arc<Vec<FlowPath>>,
    /// The benchmark programs among the watched processes, sorted by pid; changes when one comes, goes or reports.
    pub benchmarks: Arc<Vec<Benchmark>>,
    /// The offloads of the links on a path, sorted by link.
    pub offloads: Arc<Vec<Offloads>>,
    /// What puts the packets of the links on a path onto cores, sorted by link.
    pub steering: Arc<Vec<Steering>>,
    /// The processes of the command that vnettop runs: its own and all that descend from it, ascending. None where no command
    /// was started, and where it is not known.
    pub family: Option<Arc<Vec<u32>>>,
    /// Which threads of the whole machine used the cores lately, most first; empty while no watched thread waits for a core.
    /// Changes when they were looked at again.
    pub runners: Arc<Vec<Runner>>,
}

/// What is done with each fact in turn; see [`Facts::visit`].
pub trait FactVisitor {
    /// Why it cannot be done.
    type Error;

    /// One fact: its name in a recording, what it was, what it is, and about how many bytes of it are not shared with what it was.
    ///
    /// # Errors
    /// It cannot be done with this one; the facts after it are left out.
    fn fact<T>(&mut self, name: &str, was: &mut T, is: &T, bytes: usize) -> Result<(), Self::Error>
    where
        T: Clone + PartialEq + Serialize + DeserializeOwned;
}

impl Facts {
    /// Goes through what these facts were and what they `are`, in the order in which recordings have them.
    ///
    /// # Errors
    /// What was to be done with a fact failed.
    pub fn visit<V: FactVisitor>(&mut self, are: &Self, on: &mut V) -> Result<(), V::Error> {
        // Each by its name: the compiler asks for the row of a new one.
        let Self {
            host,
            topology,
            links,
            problems,
            spaces,
            owners,
            ovs,
            paths,
            benchmarks,
            offloads,
            steering,
            family,
            runners,
        } = self;
        on.fact("host", host, &are.host, size_of::<Host>() + ROW)?;
        on.fact("topology", topology, &are.topology, rows(&are.topology.cores))?;
        on.fact("links", links, &are.links, size_of_val(&**are.links))?;
        on.fact("problems", problems, &are.problems, rows(&are.problems))?;
        on.fact("spaces", spaces, &are.spaces, rows(&are.spaces))?;
        on.fact("owners", owners, &are.owners, rows(&are.owners))?;
        on.fact("ovs", ovs, &are.ovs, rows(&are.ovs))?;
        on.fact("paths", paths, &are.paths, rows(&are.paths))?;
        on.fact("benchmarks", benchmarks, &are.benchmarks, rows(&are.benchmarks))?;
        on.fact("offloads", offloads, &are.offloads, rows(&are.offloads))?;
        on.fact("steering", steering, &are.steering, rows(&are.steering))?;
        on.fact("family", family, &are.family, are.family.as_ref().map_or(0, |pids| rows(pids)))?;
        on.fact("runners", runners, &are.runners, rows(&are.runners))
    }
}

/// What a row of facts has beside its fixed size, bytes: names, addresses, hops.
const ROW: usize = 256;

fn rows<T>(rows: &[T]) -> usize {
    rows.len() * (size_of::<T>() + ROW)
}
