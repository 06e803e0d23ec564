//! Text in a recording is outside input like the names of links: made harmless where it enters.

use crate::sample::{
    Benchmark, DropCount, Event, FlowPath, Host, KernelCounts, Kind, LinkFacts, OvsBridge, OvsDatapath, OvsPort,
    OvsSwitch, Owned, Problem, QdiscCounters, Runner, Space, ThreadSample,
};
use crate::text;
use std::sync::Arc;

fn clean(word: &mut String) {
    *word = text::clean(word.as_bytes());
}

pub(super) fn host(mut host: Arc<Host>) -> Arc<Host> {
    let Host { name, kernel, arch, policy } = Arc::make_mut(&mut host);
    [name, kernel, arch].into_iter().chain(policy.governor.as_mut()).for_each(clean);
    host
}

pub(super) fn links(mut links: Arc<Vec<Arc<LinkFacts>>>) -> Arc<Vec<Arc<LinkFacts>>> {
    for link in Arc::make_mut(&mut links) {
        let link = Arc::make_mut(link);
        clean(&mut link.name);
        for word in [&mut link.alias, &mut link.slave_kind].into_iter().flatten() {
            clean(word);
        }
        if let Kind::Other(word) = &mut link.kind {
            clean(word);
        }
    }
    links
}

pub(super) fn spaces(mut spaces: Arc<Vec<Space>>) -> Arc<Vec<Space>> {
    for space in Arc::make_mut(&mut spaces) {
        space.name.iter_mut().for_each(clean);
    }
    spaces
}

pub(super) fn owners(mut owners: Arc<Vec<Owned>>) -> Arc<Vec<Owned>> {
    for Owned { owner, .. } in Arc::make_mut(&mut owners) {
        [&mut owner.name, &mut owner.by].into_iter().chain(owner.id.as_mut()).for_each(clean);
    }
    owners
}

pub(super) fn ovs(mut ovs: Arc<Vec<OvsSwitch>>) -> Arc<Vec<OvsSwitch>> {
    for OvsSwitch { socket, version, bridges, .. } in Arc::make_mut(&mut ovs) {
        [socket].into_iter().chain(version).for_each(clean);
        for OvsBridge { name, datapath, fail_mode, ports } in bridges {
            [name, datapath].into_iter().chain(fail_mode).for_each(clean);
            for port in ports {
                let OvsPort { name, port, kind, peer, remote_ip, local_ip, key, error, .. } = port;
                let optional = [peer, remote_ip, local_ip, key, error].into_iter().flatten();
                [name, port, kind].into_iter().chain(optional).for_each(clean);
            }
        }
    }
    ovs
}

pub(super) fn kernel(mut counts: Arc<KernelCounts>) -> Arc<KernelCounts> {
    let drops = Arc::make_mut(&mut counts).drops.as_mut();
    for DropCount { reason, function, .. } in
        drops.into_iter().flat_map(|drops| drops.flows.iter_mut().chain(&mut drops.ended).chain(&mut drops.others))
    {
        for word in [reason, function].into_iter().flatten() {
            *word = Arc::from(text::clean(word.as_bytes()));
        }
    }
    counts
}

pub(super) fn datapaths(mut datapaths: Vec<OvsDatapath>) -> Vec<OvsDatapath> {
    for OvsDatapath { socket, kind, name, .. } in &mut datapaths {
        [socket, kind, name].into_iter().for_each(clean);
    }
    datapaths
}

pub(super) fn paths(mut paths: Arc<Vec<FlowPath>>) -> Arc<Vec<FlowPath>> {
    for path in Arc::make_mut(&mut paths) {
        path.gap.iter_mut().chain(&mut path.note).for_each(clean);
    }
    paths
}

pub(super) fn benchmarks(mut benchmarks: Arc<Vec<Benchmark>>) -> Arc<Vec<Benchmark>> {
    for Benchmark { target, affinity, .. } in Arc::make_mut(&mut benchmarks) {
        [target, affinity].into_iter().flatten().for_each(clean);
    }
    benchmarks
}

pub(super) fn qdiscs(mut qdiscs: Vec<QdiscCounters>) -> Vec<QdiscCounters> {
    for qdisc in &mut qdiscs {
        clean(&mut qdisc.kind);
    }
    qdiscs
}

pub(super) fn problems(mut problems: Arc<Vec<Problem>>) -> Arc<Vec<Problem>> {
    for Problem { source, text } in Arc::make_mut(&mut problems) {
        [source, text].into_iter().for_each(clean);
    }
    problems
}

pub(super) fn threads(mut threads: Vec<ThreadSample>) -> Vec<ThreadSample> {
    for thread in &mut threads {
        clean(&mut thread.name);
    }
    threads
}

pub(super) fn runners(mut runners: Arc<Vec<Runner>>) -> Arc<Vec<Runner>> {
    for runner in Arc::make_mut(&mut runners) {
        clean(&mut runner.name);
    }
    runners
}

pub(super) fn event(mut event: Event) -> Event {
    match &mut event {
        Event::RunAsked(asked) => asked.command.iter_mut().chain(&mut asked.watch).for_each(clean),
        Event::NotPinned { why, .. } => clean(why),
        _ => {}
    }
    event
}
