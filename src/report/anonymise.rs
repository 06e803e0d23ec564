//! Items without names: host, containers, programs, links, namespaces, command lines and addresses become neutral labels, the
//! same one for the same name. It is done before anything is derived, so that no sentence can hold one. Every field that is text is
//! named here; free sentences, which may hold any name, are replaced as a whole.

mod labels;

use crate::sample::{
    Benchmark, Carrier, CoreProfile, EndName, Ends, Event, Facts, FlowPath, Host, Interrupts, Item, KernelCounts,
    LinkFacts, NextHop, OvsBridge, OvsDatapathKind, OvsPort, OvsPortKind, OvsSwitch, Owned, Owner, OwnerBy, OwnerKind,
    Problem, ProblemSource, RunAsked, Runner, Sample, SearchStep, SilentNeighbour, Space, SpaceEntry, Steering,
    WireNames,
};
use labels::Labels;
use std::sync::Arc;

/// Replaces names, item by item, in the order of a recording.
#[derive(Debug, Default)]
pub struct Anonymiser {
    labels: Labels,
    /// The facts that were replaced last, and what they became: they seldom change.
    last: Option<(Arc<Facts>, Arc<Facts>)>,
    last_kernel: Option<(Arc<KernelCounts>, Arc<KernelCounts>)>,
}

impl Anonymiser {
    /// The item without names.
    #[must_use]
    pub fn item(&mut self, item: Item) -> Item {
        match item {
            Item::Sample(sample) => Item::Sample(Box::new(self.sample(*sample))),
            Item::Event(event) => Item::Event(self.event(event)),
        }
    }

    fn sample(&mut self, mut sample: Sample) -> Sample {
        sample.facts = self.facts(&sample.facts);
        for thread in &mut sample.threads {
            thread.name = self.labels.program(&thread.name).into();
        }
        for flow in &mut sample.flows {
            (flow.local, flow.remote) = (self.labels.socket(flow.local), self.labels.socket(flow.remote));
        }
        for datapath in &mut sample.datapaths {
            datapath.socket = self.labels.of("switch", &datapath.socket);
            datapath.kind = datapath_kind(&datapath.kind);
            let is_shared = ["ovs-system", "ovs-netdev"].contains(&&*datapath.name);
            datapath.name =
                if is_shared { datapath.name.clone() } else { self.labels.link("datapath", &datapath.name) };
        }
        sample.datapaths.sort_by(|one, other| one.key().cmp(&other.key()));
        sample.kernel = sample.kernel.take().map(|kernel| self.kernel(kernel));
        sample
    }

    /// Whose packets were dropped; reasons and functions are the kernel's own words.
    fn kernel(&mut self, kernel: Arc<KernelCounts>) -> Arc<KernelCounts> {
        if let Some((last, became)) = &self.last_kernel
            && Arc::ptr_eq(last, &kernel)
        {
            return Arc::clone(became);
        }
        let mut counts = (*kernel).clone();
        if let Some(latency) = &mut counts.latency {
            for row in &mut latency.rows {
                if let Some(flow) = row.of.flow_mut() {
                    (flow.from, flow.to) = (self.labels.socket(flow.from), self.labels.socket(flow.to));
                }
            }
            latency.rows.sort_by(|one, other| one.of.cmp(&other.of));
            for one in &mut latency.waited_for {
                one.name = Arc::from(self.labels.program(&one.name));
            }
        }
        if let Some(drops) = &mut counts.drops {
            for list in [&mut drops.flows, &mut drops.ended, &mut drops.others] {
                for flow in list.iter_mut().filter_map(|count| count.flow.as_mut()) {
                    (flow.from, flow.to) = (self.labels.socket(flow.from), self.labels.socket(flow.to));
                }
                list.sort_by(|one, other| one.key().cmp(&other.key()));
            }
        }
        for flow in counts.hops.iter_mut().flat_map(|hop| &mut hop.flows).map(|one| &mut one.flow) {
            (flow.from, flow.to) = (self.labels.socket(flow.from), self.labels.socket(flow.to));
        }
        let became = Arc::new(counts);
        self.last_kernel = Some((kernel, Arc::clone(&became)));
        became
    }

    fn facts(&mut self, facts: &Arc<Facts>) -> Arc<Facts> {
        if let Some((last, became)) = &self.last
            && Arc::ptr_eq(last, facts)
        {
            return Arc::clone(became);
        }
        // Each by its name: the compiler asks what of a new one is a name.
        let Facts {
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
        } = &**facts;
        let became = Arc::new(Facts {
            host: Arc::new(Host { name: "host".to_owned(), kernel: version(&host.kernel), ..(**host).clone() }),
            topology: Arc::clone(topology),
            links: Arc::new(links.iter().map(|link| Arc::new(self.link(link))).collect()),
            problems: Arc::new(problems.iter().map(problem).collect()),
            spaces: Arc::new(spaces.iter().map(|space| self.space(space)).collect()),
            owners: Arc::new(owners.iter().map(|owned| self.owned(owned)).collect()),
            ovs: Arc::new(self.switches(ovs)),
            paths: Arc::new(paths.iter().map(|path| self.path(path)).collect()),
            benchmarks: Arc::new(benchmarks.iter().map(|one| self.benchmark(one)).collect()),
            offloads: Arc::clone(offloads),
            steering: Arc::new(steering.iter().map(steered).collect()),
            family: family.clone(),
            runners: Arc::new(runners.iter().map(|runner| self.runner(runner)).collect()),
            firewall: Arc::clone(firewall),
        });
        self.last = Some((Arc::clone(facts), Arc::clone(&became)));
        became
    }

    fn link(&mut self, link: &LinkFacts) -> LinkFacts {
        let mac = link.mac.as_ref().map(|mac| self.labels.of("mac", mac));
        LinkFacts { name: self.labels.link(link.kind.word(), &link.name), alias: None, mac, ..link.clone() }
    }

    fn space(&mut self, space: &Space) -> Space {
        Space { name: space.name.as_ref().map(|name| self.labels.of("netns", name)), ..space.clone() }
    }

    fn owned(&mut self, owned: &Owned) -> Owned {
        let Owner { kind, name, id: _, by, guess, pod_namespace } = &owned.owner;
        let name = match kind {
            OwnerKind::Container => self.labels.of("container", name),
            OwnerKind::Pod => self.labels.of("pod", name),
            OwnerKind::Vm => self.labels.of("guest", name),
            OwnerKind::Process => self.labels.of("process", name),
            OwnerKind::Network => self.labels.of("network", name),
            OwnerKind::Ovs => self.labels.link("bridge", name),
        };
        let by = if matches!(by, OwnerBy::Other(_)) { OwnerBy::Other("other".to_owned()) } else { by.clone() };
        let pod_namespace = pod_namespace.as_ref().map(|namespace| self.labels.of("pod-namespace", namespace));
        Owned { link: owned.link, owner: Owner { kind: *kind, name, id: None, by, guess: *guess, pod_namespace } }
    }

    fn switches(&mut self, switches: &[OvsSwitch]) -> Vec<OvsSwitch> {
        let mut all: Vec<OvsSwitch> = switches.iter().map(|switch| self.switch(switch)).collect();
        all.sort_by(|one, other| one.socket.cmp(&other.socket));
        all
    }

    fn switch(&mut self, switch: &OvsSwitch) -> OvsSwitch {
        let mut bridges: Vec<OvsBridge> = switch.bridges.iter().map(|bridge| self.bridge(bridge)).collect();
        bridges.sort_by(|one, other| one.name.cmp(&other.name));
        OvsSwitch { socket: self.labels.of("switch", &switch.socket), bridges, ..switch.clone() }
    }

    fn bridge(&mut self, bridge: &OvsBridge) -> OvsBridge {
        let mut ports: Vec<OvsPort> = bridge.ports.iter().map(|port| self.port(port)).collect();
        ports.sort_by(|one, other| one.name.cmp(&other.name));
        let is_known = |mode: &String| ["standalone", "secure"].contains(&&**mode);
        OvsBridge {
            name: self.labels.link("bridge", &bridge.name),
            datapath: datapath_kind(&bridge.datapath),
            fail_mode: bridge.fail_mode.clone().filter(is_known),
            ports,
        }
    }

    fn port(&mut self, port: &OvsPort) -> OvsPort {
        let OvsPort { name, port: of, kind, link, ofport, vlan, peer, remote_ip, local_ip, key, error, counts_drops } =
            port;
        OvsPort {
            name: self.labels.link("port", name),
            port: self.labels.link("port", of),
            kind: if matches!(kind, OvsPortKind::Other(_)) {
                OvsPortKind::Other("other".to_owned())
            } else {
                kind.clone()
            },
            link: *link,
            ofport: *ofport,
            vlan: *vlan,
            peer: peer.as_ref().map(|peer| self.labels.link("port", peer)),
            remote_ip: remote_ip.as_ref().and_then(|ip| self.labels.address_text(ip)),
            local_ip: local_ip.as_ref().and_then(|ip| self.labels.address_text(ip)),
            key: key.clone().filter(|key| key.bytes().all(|byte| byte.is_ascii_digit())),
            error: error.as_ref().map(|_| "an error".to_owned()),
            counts_drops: *counts_drops,
        }
    }

    fn path(&mut self, path: &FlowPath) -> FlowPath {
        let FlowPath { netns, proto, from, to, hops, gap, note, ends, outside, silent, neighbours, carriers } = path;
        FlowPath {
            netns: *netns,
            proto: *proto,
            from: self.labels.socket(*from),
            to: self.labels.socket(*to),
            hops: hops.clone(),
            gap: gap.as_ref().map(|_| "the next link is not known".to_owned()),
            note: note.as_ref().map(|_| "other packets of it may go elsewhere".to_owned()),
            ends: ends.as_ref().map(|ends| self.ends(ends)),
            outside: outside
                .map(|out| WireNames { from: self.labels.socket(out.from), to: self.labels.socket(out.to) }),
            silent: silent
                .map(|silent| SilentNeighbour { ip: self.labels.socket((silent.ip, 0).into()).ip(), ..silent }),
            neighbours: neighbours
                .iter()
                .map(|next| NextHop {
                    link: next.link,
                    ip: self.labels.address(next.ip),
                    mac: self.labels.of("mac", &next.mac),
                })
                .collect(),
            carriers: carriers
                .iter()
                .map(|one| Carrier { name: self.labels.program(&one.name), ..one.clone() })
                .collect(),
        }
    }

    fn ends(&mut self, ends: &Ends) -> Ends {
        let mut end = |end: &EndName| EndName {
            netns: end.netns,
            local: self.labels.socket(end.local),
            remote: self.labels.socket(end.remote),
        };
        let (near, far) = (end(&ends.near), end(&ends.far));
        let mut holders = ends.holders.clone();
        for holder in &mut holders {
            holder.name = self.labels.program(&holder.name);
        }
        Ends { near, far, holders }
    }

    fn benchmark(&mut self, one: &Benchmark) -> Benchmark {
        let target = one.target.as_ref();
        let cores = |text: &String| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b',' || byte == b'-');
        Benchmark {
            target: target.map(|name| self.labels.address_text(name).unwrap_or_else(|| self.labels.of("server", name))),
            affinity: one.affinity.clone().filter(cores),
            ..one.clone()
        }
    }

    fn runner(&mut self, runner: &Runner) -> Runner {
        Runner { name: self.labels.program(&runner.name), ..runner.clone() }
    }

    fn event(&mut self, event: Event) -> Event {
        match event {
            Event::RunAsked(asked) => {
                let program = asked.command.first().map(|word| word.rsplit('/').next().unwrap_or(word).to_owned());
                let command = program.map(|program| self.labels.program(&program));
                let watch = asked.watch.iter().map(|name| self.labels.program(name)).collect();
                Event::RunAsked(RunAsked { command: command.into_iter().collect(), watch, ..asked })
            }
            Event::NotPinned { at_ns, why: _ } => Event::NotPinned { at_ns, why: "the reason is left out".to_owned() },
            Event::Profiled(profile) => Event::Profiled(Box::new(without_programs(*profile, &mut self.labels))),
            Event::Search { at_ns, step } => Event::Search { at_ns, step: search_step(step) },
            Event::Pinned { .. }
            | Event::Restored { .. }
            | Event::Steered { .. }
            | Event::Unsteered { .. }
            | Event::Mark { .. }
            | Event::Saved { .. }
            | Event::RunStarted { .. }
            | Event::Stretch { .. }
            | Event::Reported { .. }
            | Event::RunEnded { .. } => event,
        }
    }
}

/// A kernel's release without what its builder has added: `6.18.44`.
fn version(release: &str) -> String {
    release.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect()
}

/// What a core did, without the functions and files of programs; those of the kernel are everybody's.
fn without_programs(mut profile: CoreProfile, labels: &mut Labels) -> CoreProfile {
    for stack in &mut profile.stacks {
        stack.program = stack.program.as_ref().map(|name| labels.program(name));
    }
    for function in &mut profile.functions {
        if !function.kernel {
            (function.name, function.module) = (None, function.module.as_ref().map(|file| labels.of("file", file)));
        } else if function.module.as_deref() == Some("bpf") {
            function.name = Some("bpf_prog".to_owned());
        }
    }
    profile
}

/// A step of a search, without the names of threads and links, and without sentences, which may hold anything.
fn search_step(step: SearchStep) -> SearchStep {
    match step {
        SearchStep::Started { seed, mut placements, left_out: _, test } => {
            for thread in placements.iter_mut().flat_map(|placement| &mut placement.threads) {
                "thread".clone_into(&mut thread.label);
            }
            for steer in placements.iter_mut().flat_map(|placement| &mut placement.steers) {
                "link".clone_into(&mut steer.request.name);
                // That of a setting has the names of its links in it.
                if !steer.request.setting.takes_cores() {
                    steer.whose = steer.request.setting.of("link");
                }
                steer.space = SpaceEntry::Unknown;
            }
            SearchStep::Started { seed, placements, left_out: Vec::new(), test }
        }
        SearchStep::Failed { placement, why: _ } => {
            SearchStep::Failed { placement, why: "the reason is left out".to_owned() }
        }
        SearchStep::Phase { .. } | SearchStep::Dropped { .. } | SearchStep::Ended => step,
    }
}

fn datapath_kind(kind: &OvsDatapathKind) -> OvsDatapathKind {
    match kind {
        OvsDatapathKind::Other(_) => OvsDatapathKind::Other("other".to_owned()),
        known => known.clone(),
    }
}

/// What could not be read, without what it was.
fn problem(problem: &Problem) -> Problem {
    let source = match &problem.source {
        ProblemSource::Other(_) => ProblemSource::Other("other".to_owned()),
        known => known.clone(),
    };
    let advice = if problem.is_of_rights() { ": run vnettop as root" } else { "" };
    Problem { source, text: format!("a part could not be read{advice}") }
}

fn steered(steering: &Steering) -> Steering {
    let interrupts = match &steering.interrupts {
        Some(Interrupts::Unknown(_)) => Some(Interrupts::Unknown("that is not known".to_owned())),
        known => known.clone(),
    };
    Steering { interrupts, ..steering.clone() }
}
