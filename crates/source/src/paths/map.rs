//! The links of all namespaces, asked by who stands on whom. It asks no kernel.

use std::sync::Arc;
use vnettop_sample::{Kind, LinkFacts, LinkKey, OvsBridge, OvsPort, OvsSwitch, PeerRef, row_of};

/// Links and switches as a walk looks at them.
#[derive(Debug, Clone, Copy)]
pub(super) struct NetworkMap<'a> {
    links: &'a [Arc<LinkFacts>],
    pub switches: &'a [OvsSwitch],
}

/// A port of Open vSwitch, and where it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct SwitchPort<'a> {
    pub switch: &'a OvsSwitch,
    pub bridge: &'a OvsBridge,
    pub port: &'a OvsPort,
}

impl<'a> NetworkMap<'a> {
    /// `links` are sorted by key.
    pub fn new(links: &'a [Arc<LinkFacts>], switches: &'a [OvsSwitch]) -> Self {
        Self { links, switches }
    }

    pub fn link(&self, key: LinkKey) -> Option<&'a LinkFacts> {
        row_of(self.links, &key, |link| link.key()).map(|link| &**link)
    }

    /// What a sentence calls it.
    pub fn name(&self, key: LinkKey) -> &'a str {
        self.link(key).map_or("?", |link| link.name.as_str())
    }

    /// Every link.
    pub fn all(&self) -> impl Iterator<Item = &'a LinkFacts> + use<'a> {
        self.links.iter().map(|link| &**link)
    }

    /// The links of one namespace.
    fn within(&self, netns: u64) -> impl Iterator<Item = &'a LinkFacts> + use<'a> {
        let first = self.links.partition_point(|link| link.netns < netns);
        let end = self.links.partition_point(|link| link.netns <= netns);
        self.links[first..end].iter().map(|link| &**link)
    }

    /// The namespaces that have links.
    pub fn namespaces(&self) -> impl Iterator<Item = u64> + use<'a> {
        self.links.chunk_by(|one, next| one.netns == next.netns).map(|links| links[0].netns)
    }

    pub fn loopback(&self, netns: u64) -> Option<LinkKey> {
        self.within(netns).find(|link| link.kind == Kind::Loopback).map(LinkFacts::key)
    }

    /// What has this link as its master.
    pub fn ports(&self, master: LinkKey) -> impl Iterator<Item = &'a LinkFacts> + use<'a> {
        self.within(master.netns).filter(move |link| link.master == Some(master.ifindex))
    }

    /// What stands on this link, in whatever namespace.
    pub fn upon(&self, lower: LinkKey) -> impl Iterator<Item = &'a LinkFacts> + use<'a> {
        self.all().filter(move |link| link.lower.and_then(PeerRef::key) == Some(lower))
    }

    /// The link's master, where it is a link that forwards or joins.
    pub fn master(&self, link: &LinkFacts) -> Option<&'a LinkFacts> {
        self.link(link.beside(link.master?))
    }

    /// The port of Open vSwitch that a link is.
    pub fn switch_port(&self, link: LinkKey) -> Option<SwitchPort<'a>> {
        self.switch_ports().find(|at| at.port.link == Some(link))
    }

    /// Every port of every switch.
    pub fn switch_ports(&self) -> impl Iterator<Item = SwitchPort<'a>> + use<'a> {
        let switches = self.switches;
        switches.iter().flat_map(|switch| {
            switch
                .bridges
                .iter()
                .flat_map(move |bridge| bridge.ports.iter().map(move |port| SwitchPort { switch, bridge, port }))
        })
    }
}
