//! What a program copies from one connection to another (socat, haproxy, nginx, ssh, Docker's proxy) is the same data once
//! more. Who holds the ends that nobody watches tells that it is one: it was called on one connection and calls on the other.
//! Where it serves several at once, what they have carried tells which belong together.

use vnettop_sample::{EndName, Ends, FlowPath, FlowSample, Holder, Proto, SocketKey};

/// What a program and the buffers before and behind it may have in hand, bytes; and the part of the whole by which two
/// readings a moment apart differ.
const IN_HAND: u64 = 64 * 1024 * 1024;
const A_MOMENT: u64 = 4;

/// A proxy's outgoing connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProxiedConnection {
    /// Its watched end.
    pub key: SocketKey,
    pub pid: u32,
    /// The program's process.
    pub relay: u32,
    /// The watched ends whose data it may be, and the process that each of them calls; empty where it carries others'.
    pub firsts: Vec<(SocketKey, u32)>,
}

/// The second connections of the programs that copy for one of these.
pub(crate) fn seconds(flows: &[FlowSample], paths: &[FlowPath]) -> Vec<ProxiedConnection> {
    let held = |path: &FlowPath| path.ends.as_ref().is_some_and(|ends| !ends.holders.is_empty());
    let paths = paths.iter().filter(|path| path.proto == Proto::Tcp && held(path));
    let ends: Vec<&Ends> = paths.filter_map(|path| path.ends.as_ref()).collect();
    let of = |flow: &FlowSample| {
        let near = EndName { netns: flow.netns, local: flow.local, remote: flow.remote };
        ends.iter().find(|ends| flow.proto == Proto::Tcp && ends.near == near).map(|ends| &ends.holders[..])
    };
    let known = || flows.iter().filter(|_| !ends.is_empty()).filter_map(|flow| Some((flow, of(flow)?)));
    let second = |(flow, holders): (&FlowSample, &[Holder])| {
        let [holder] = holders else { return None };
        let relay = Some(holder).filter(|holder| !holder.accepts)?.pid;
        // What goes through several programs comes out of the last one.
        let calls =
            known().filter(|(_, called)| called[0].accepts && called.last().is_some_and(|one| one.pid == relay));
        let mut calls = calls.peekable();
        calls.peek()?;
        let firsts =
            calls.filter(|(first, _)| is_same(first, flow)).map(|(first, called)| (first.key(), called[0].pid));
        Some(ProxiedConnection { key: flow.key(), pid: flow.pid, relay, firsts: firsts.collect() })
    };
    known().filter_map(second).collect()
}

/// The one may have carried what the other has.
fn is_same(first: &FlowSample, second: &FlowSample) -> bool {
    let moved = |flow: &FlowSample| flow.pulses.last().map_or((0, 0), |pulse| (pulse.acked, pulse.received));
    let near = |one: u64, other: u64| one.abs_diff(other) <= IN_HAND + one.max(other) / A_MOMENT;
    let (there, here) = (moved(first), moved(second));
    near(there.0, here.1) && near(there.1, here.0)
}

#[cfg(test)]
pub(crate) mod tests;
