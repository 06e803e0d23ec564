//! Facts: what hardly changes from sample to sample. A new fact is a field of [`Facts`] and its row in [`Facts::visit`], by which
//! recordings write it when it has changed and read it back, and the samples that wait to be shown are weighed.

use super::{
    Benchmark, FirewallRules, FlowPath, Host, LinkFacts, Offloads, OvsSwitch, Owned, Problem, Runner, Space, Steering,
    Topology,
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
    /// The paths of the flows.
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
    /// The rules of nftables that packets of the paths may meet, a row a namespace (16 at most), sorted by link; empty where
    /// no profile shows that the kernel goes through rules.
    pub firewall: Arc<Vec<FirewallRules>>,
}

/// What is done with each fact in turn; see [`Facts::visit`].
pub trait FactVisitor {
    /// Why it cannot be done.
    type Error;

    /// One fact: name in recordings, old value (may be overwritten), new value, bytes not shared with the old one (approximate).
    ///
    /// # Errors
    /// It cannot be done with this one; the facts after it are left out.
    fn fact<T>(&mut self, name: &str, was: &mut T, is: &T, bytes: usize) -> Result<(), Self::Error>
    where
        T: Clone + PartialEq + Serialize + DeserializeOwned;
}

impl Facts {
    /// Each fact with its `newer` value, in the order in which recordings have them.
    ///
    /// # Errors
    /// What was to be done with a fact failed.
    pub fn visit<V: FactVisitor>(&mut self, newer: &Self, visitor: &mut V) -> Result<(), V::Error> {
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
            firewall,
        } = self;
        visitor.fact("host", host, &newer.host, size_of::<Host>() + ROW)?;
        visitor.fact("topology", topology, &newer.topology, rows(&newer.topology.cores))?;
        visitor.fact("links", links, &newer.links, size_of_val(&**newer.links))?;
        visitor.fact("problems", problems, &newer.problems, rows(&newer.problems))?;
        visitor.fact("spaces", spaces, &newer.spaces, rows(&newer.spaces))?;
        visitor.fact("owners", owners, &newer.owners, rows(&newer.owners))?;
        visitor.fact("ovs", ovs, &newer.ovs, rows(&newer.ovs))?;
        visitor.fact("paths", paths, &newer.paths, rows(&newer.paths))?;
        visitor.fact("benchmarks", benchmarks, &newer.benchmarks, rows(&newer.benchmarks))?;
        visitor.fact("offloads", offloads, &newer.offloads, rows(&newer.offloads))?;
        visitor.fact("steering", steering, &newer.steering, rows(&newer.steering))?;
        visitor.fact("family", family, &newer.family, newer.family.as_ref().map_or(0, |pids| rows(pids)))?;
        visitor.fact("runners", runners, &newer.runners, rows(&newer.runners))?;
        visitor.fact("firewall", firewall, &newer.firewall, rows(&newer.firewall))
    }
}

/// What a row of facts has beside its fixed size, bytes: names, addresses, hops.
const ROW: usize = 256;

fn rows<T>(rows: &[T]) -> usize {
    rows.len() * (size_of::<T>() + ROW)
}
