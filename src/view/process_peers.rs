//! Where the processes of watched threads are and with whom they talk: their connections, each as seen from its process.

use crate::derive::Metrics;
use crate::derive::flow::{Connection, End};
use std::fmt::{self, Display, Formatter};

/// Connections of processes, each as seen from its process.
pub(super) struct Homes<'a>(pub Vec<Home<'a>>);

/// One end of a connection.
pub(super) struct Home<'a> {
    pub pid: u32,
    pub own: End,
    other: End,
    sends: bool,
    pub flow: &'a Connection,
    /// Connections of the process that have no line of their own.
    more: usize,
}

impl<'a> Homes<'a> {
    /// Both ends of every connection.
    pub fn all(metrics: &'a Metrics) -> Self {
        let ends = |flow: &'a Connection| [(flow.from, flow.to, true, flow), (flow.to, flow.from, false, flow)];
        let homes = metrics.subject.flow.connections.iter().flat_map(ends);
        let homes = homes
            .filter_map(|(own, other, sends, flow)| Some(Home { pid: own.pid?, own, other, sends, flow, more: 0 }));
        Self(homes.collect())
    }

    /// For each process the connection that carries most.
    pub fn of(metrics: &'a Metrics) -> Self {
        let mut homes: Vec<Home<'a>> = Vec::new();
        for home in Self::all(metrics).0.into_iter().filter(|home| !home.flow.controls()) {
            match homes.iter_mut().find(|other| other.pid == home.pid) {
                Some(other) if other.flow.bits_per_s < home.flow.bits_per_s => {
                    *other = Home { more: other.more + 1, ..home };
                }
                Some(other) => other.more += 1,
                None => homes.push(home),
            }
        }
        Self(homes)
    }

    /// That of a process.
    pub fn at(&self, pid: u32) -> Option<&Home<'a>> {
        self.0.iter().find(|home| home.pid == pid)
    }

    /// Some process is in another network namespace than this.
    pub fn is_elsewhere(&self, own: u64) -> bool {
        self.0.iter().any(|home| home.own.netns.is_some_and(|netns| netns != own))
    }
}

impl Display for Home<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let arrow = if self.sends { '→' } else { '←' };
        write!(f, "{} {arrow} {}", self.own.address.port(), self.other.address)?;
        if self.more > 0 { write!(f, " +{}", self.more) } else { Ok(()) }
    }
}
