//! Who each link belongs to: the container of its namespace or of its other end, the process that holds it open, Docker's
//! network behind a bridge, or at least what its name suggests. A name once known stays until the link goes.
//! It looks only when namespaces or links have changed, or while something is not known; otherwise it costs nothing.

mod cgroup;
mod container_monitor;
mod containers;
mod docker;
mod holders;
mod name_patterns;
mod networks;
mod pods;
mod socket_search;

use crate::{Roots, netns_of, publish, scan};
use containers::Containers;
pub use docker::SocketPlaces;
use docker::{Docker, Network};
use holders::Holders;
use networks::Networks;
use pods::Pods;
use socket_search::SocketSearch;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vnettop_sample::{
    Ifindex, Kind, LinkFacts, LinkKey, Owned, Owner, OwnerBy, OwnerKind, PacketSocket, Problem, Space,
};

/// Finds the owners of links. A name once known stays until the link goes.
#[derive(Debug, Default)]
pub struct OwnerReader {
    proc: PathBuf,
    own: u64,
    containers: Containers,
    holders: Holders,
    docker: Docker,
    pods: Pods,
    networks: Networks,
    sockets: SocketSearch,
    spaces: Arc<Vec<Space>>,
    links: Arc<Vec<Arc<LinkFacts>>>,
    published: Arc<Vec<Owned>>,
    /// `LinkFacts::born` of each link published.
    born: Vec<u64>,
    /// Whether something published lacks a name that Docker, or the directories of pods, may know.
    lacks: Lacks,
    /// Docker has containers or networks here, and is to be asked again because something has changed.
    again: bool,
    due_ns: u64,
    problems: Vec<Problem>,
}

/// Owners that are not known by the name that people use.
#[derive(Debug, Clone, Copy, Default)]
struct Lacks {
    docker: bool,
    pods: bool,
}

impl OwnerReader {
    /// Names the holders of packet sockets that have dropped something.
    pub fn name_sockets(&mut self, sockets: &mut [PacketSocket]) {
        self.sockets.name(&self.proc, sockets);
    }

    /// Nothing is opened yet.
    #[must_use]
    pub fn new(roots: &Roots, docker: SocketPlaces) -> Self {
        let own = netns_of(Path::new("/proc/thread-self")).unwrap_or(0);
        Self::of(
            &roots.proc,
            own,
            Docker::new(docker),
            Pods::at(PathBuf::from("/var/log/pods")),
            Networks::below("/etc"),
        )
    }

    fn of(proc: &Path, own: u64, docker: Docker, pods: Pods, networks: Networks) -> Self {
        Self {
            proc: proc.to_owned(),
            own,
            containers: Containers::new(proc, own),
            holders: Holders::new(proc),
            docker,
            pods,
            networks,
            due_ns: u64::MAX,
            ..Self::default()
        }
    }

    /// Asks soon for the owners of these namespaces, which got further inhabitants: one without a known owner may belong to them.
    pub fn ask_soon(&mut self, joined: impl IntoIterator<Item = u64>, now_ns: u64) {
        joined.into_iter().for_each(|netns| self.containers.ask_soon(netns, now_ns));
        self.due_ns = self.due_ns.min(self.containers.due_ns);
    }

    /// The owners of these links, sorted by link; `living` gives the inhabitants of a namespace, the oldest first.
    pub fn read(
        &mut self,
        spaces: &Arc<Vec<Space>>,
        living: impl Fn(u64) -> Vec<u32>,
        links: &Arc<Vec<Arc<LinkFacts>>>,
        now_ns: u64,
    ) -> Arc<Vec<Owned>> {
        let changed = !Arc::ptr_eq(&self.spaces, spaces) || !Arc::ptr_eq(&self.links, links);
        if changed {
            (self.spaces, self.links) = (Arc::clone(spaces), Arc::clone(links));
        } else if now_ns < self.due_ns {
            return Arc::clone(&self.published);
        }
        if changed && self.links.iter().any(|link| link.kind == Kind::Bridge && link.netns == self.own) {
            self.networks.look(now_ns);
        }
        if self.look(changed, living, now_ns) || changed {
            self.join();
        }
        if self.ask(changed, now_ns) {
            self.join();
        }
        self.settle();
        Arc::clone(&self.published)
    }

    /// The process that holds a tun, tap or macvtap open.
    #[must_use]
    pub fn holder(&self, link: LinkKey) -> Option<(u32, &Owner)> {
        self.holders.holder(link)
    }

    /// Every link that a process is known to hold open, with the process.
    pub fn holders(&self) -> impl Iterator<Item = (LinkKey, u32)> {
        self.holders.all()
    }

    /// Waits for a moment until the search for holders has ended: it may have a namespace open.
    pub fn rest(&mut self) {
        self.holders.rest();
    }

    /// What cannot be seen and why.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Looks at processes; true when there is news.
    fn look(&mut self, changed: bool, living: impl Fn(u64) -> Vec<u32>, now_ns: u64) -> bool {
        let mut news = false;
        if changed || now_ns >= self.containers.due_ns {
            news |= self.containers.look(&self.spaces, living, now_ns);
        }
        if changed || news {
            let containers = &self.containers;
            self.holders.follow(&self.links, |link| containers.owner(link.netns).is_none(), now_ns);
        }
        self.holders.look(now_ns) || news
    }

    /// Asks for names and listens; true when there is news.
    fn ask(&mut self, changed: bool, now_ns: u64) -> bool {
        self.again |= changed && (self.lacks.docker || !self.docker.networks.is_empty());
        if changed {
            self.docker.ask_soon();
            self.pods.ask_soon(now_ns);
        }
        if (self.lacks.docker || self.again) && !self.docker.is_asked() && now_ns >= self.docker.next_ns() {
            self.docker.ask(now_ns);
            self.again = false;
        }
        let news = self.docker.is_asked() && self.docker.listen();
        (self.lacks.pods && self.pods.look(now_ns)) || news
    }

    /// When to look again, and what there is to complain of.
    fn settle(&mut self) {
        let docker = match (self.docker.is_asked(), self.lacks.docker || self.again) {
            (true, _) => 0,
            (false, true) => self.docker.next_ns(),
            (false, false) => u64::MAX,
        };
        let pods = if self.lacks.pods { self.pods.next_ns } else { u64::MAX };
        self.due_ns = docker.min(pods).min(self.containers.due_ns).min(self.holders.due_ns());
        self.problems.clear();
        self.problems.extend(self.holders.problems());
        self.problems.extend(self.docker.problem().filter(|_| self.lacks.docker || self.docker.is_named()));
    }

    /// Makes the list anew; the same `Arc` when nothing is different.
    fn join(&mut self) {
        let home = self.docker.listener.and_then(|pid| netns_of(&self.proc.join(pid.to_string()))).unwrap_or(self.own);
        let (mut all, mut born, mut lacks) = (Vec::new(), Vec::new(), Lacks::default());
        for link in self.links.iter() {
            let Some(owner) = keep_better_known(self.before(link), self.found(link, home)) else { continue };
            let unnamed = owner.guess || owner.id.as_deref() == Some(&owner.name);
            match owner.kind {
                OwnerKind::Container | OwnerKind::Network if matches!(owner.by, OwnerBy::Docker | OwnerBy::Cgroup) => {
                    lacks.docker |= unnamed;
                }
                OwnerKind::Pod => lacks.pods |= unnamed,
                _ => {}
            }
            all.push(Owned { link: link.key(), owner });
            born.push(link.born);
        }
        let is_known = |space: &Space| self.network_of(space).is_some();
        lacks.docker |= self.spaces.iter().any(|space| network_id(space).is_some() && !is_known(space));
        (self.born, self.lacks) = (born, lacks);
        publish(&mut self.published, all);
    }

    /// Who owned it so far.
    fn before(&self, link: &LinkFacts) -> Option<&Owner> {
        let at = self.published.binary_search_by_key(&link.key(), |owned| owned.link).ok()?;
        (self.born.get(at) == Some(&link.born)).then(|| &self.published[at].owner)
    }

    /// Who owns it by all that is known now; Docker's bridges are in the namespace `home`.
    fn found(&self, link: &LinkFacts, home: u64) -> Option<Owner> {
        let other_end = link.peer.and_then(|peer| peer.netns).filter(|&netns| netns != link.netns);
        let container = self.containers.owner(link.netns);
        let container = container.or_else(|| self.containers.owner(other_end?)).map(|owner| self.named(owner));
        let configured =
            || self.networks.of(&link.name).filter(|_| link.kind == Kind::Bridge && link.netns == self.own);
        let network = || self.network_of_bridge(link, home).or_else(|| self.network_around(link));
        let network = || network().or_else(|| configured().cloned());
        let held = || self.holder(link.key()).map(|(_, owner)| owner.clone());
        container.or_else(network).or_else(held).or_else(|| name_patterns::guess(link, self.name_of_master(link)))
    }

    /// The owner by the name that people use, where that is known.
    fn named(&self, owner: &Owner) -> Owner {
        let mut owner = owner.clone();
        let id = owner.id.as_deref();
        if let Some(pod) = id.filter(|_| owner.kind == OwnerKind::Pod).and_then(|uid| self.pods.name(uid)) {
            pod.name.clone_into(&mut owner.name);
            owner.pod_namespace = Some(pod.namespace.clone());
        } else if let Some(name) = id.and_then(|id| self.docker.container(id)) {
            name.clone_into(&mut owner.name);
            owner.by = OwnerBy::Docker;
        }
        owner
    }

    fn network_of_bridge(&self, link: &LinkFacts, home: u64) -> Option<Owner> {
        if link.kind != Kind::Bridge {
            return None;
        }
        let id = name_patterns::docker_bridge(link);
        let is_it = |network: &&Network| {
            let by_id = id.is_some_and(|id| network.id.starts_with(id));
            by_id || link.netns == home && network.bridge.as_deref() == Some(&link.name)
        };
        self.docker.networks.iter().find(is_it).map(network)
    }

    /// Docker keeps a namespace for an overlay, with its bridge and its vxlan, and one for its load balancer.
    fn network_around(&self, link: &LinkFacts) -> Option<Owner> {
        let at = self.spaces.binary_search_by_key(&link.netns, |space| space.netns).ok()?;
        self.network_of(&self.spaces[at]).map(network)
    }

    fn network_of(&self, space: &Space) -> Option<&Network> {
        let is_ingress = space.name.as_deref() == Some("ingress_sbox");
        let id = network_id(space);
        let is_it =
            |network: &&Network| id.is_some_and(|id| network.id.starts_with(id)) || is_ingress && network.ingress;
        self.docker.networks.iter().find(is_it)
    }

    fn name_of_master(&self, link: &LinkFacts) -> Option<&str> {
        let master: Ifindex = link.master?;
        let at = self.links.binary_search_by_key(&link.beside(master), |other| other.key()).ok()?;
        Some(&self.links[at].name)
    }
}

/// `1-<id>` for an overlay, `lb_<id>` for its load balancer: the first digits of the network's id.
fn network_id(space: &Space) -> Option<&str> {
    let name = space.name.as_deref()?;
    let overlay = || name.split_once('-').filter(|(epoch, _)| scan::number(epoch.as_bytes()).is_some());
    let id = name.strip_prefix("lb_").or_else(|| overlay().map(|(_, id)| id))?;
    let is_id =
        (9..=25).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase());
    is_id.then_some(id)
}

fn network(network: &Network) -> Owner {
    let id = network.id.chars().take(cgroup::SHORT_ID).collect();
    let (kind, name) = (OwnerKind::Network, network.name.clone());
    Owner { kind, name, id: Some(id), by: OwnerBy::Docker, guess: false, pod_namespace: None }
}

/// What is known better stays: a name is not given up for an id, nor what is certain for a guess.
fn keep_better_known(before: Option<&Owner>, now: Option<Owner>) -> Option<Owner> {
    let (Some(before), Some(now)) = (before, &now) else { return now.or_else(|| before.cloned()) };
    let only_id = now.id.as_deref() == Some(&now.name) && (now.kind, &now.id) == (before.kind, &before.id);
    let stays = only_id || now.guess && !before.guess;
    Some(if stays { before.clone() } else { now.clone() })
}

/// What a fuzzer gives every parser here.
#[cfg(fuzzing)]
pub(crate) fn fuzz(bytes: &[u8]) {
    if let Some(owner) = cgroup::owner(bytes) {
        assert!(!owner.name.chars().any(char::is_control), "{owner:?} is clean");
    }
    let _ = container_monitor::parse(bytes);
}

/// What a fuzzer gives the parsers of JSON here.
#[cfg(fuzzing)]
pub(crate) fn fuzz_json(body: &[u8]) {
    docker::fuzz(body);
    let _ = networks::network(body, &OwnerBy::Podman);
}

#[cfg(test)]
mod tests;
