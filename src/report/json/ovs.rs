//! Open vSwitch in JSON: each link as a port, and the switches themselves.

use crate::derive::{DatapathMetrics, Metrics, OvsPlace};
use crate::sample::{OvsBridge, OvsPort, OvsSwitch};
use serde::Serialize;

/// A link as a port of Open vSwitch.
#[derive(Serialize)]
#[allow(clippy::struct_field_names, reason = "the names of the JSON")]
pub(super) struct PortObject<'a> {
    bridge: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    datapath: &'a str,
    port: &'a str,
    ofport: Option<i64>,
    vlan: Option<u16>,
    peer: Option<&'a str>,
    remote_ip: Option<&'a str>,
    local_ip: Option<&'a str>,
    key: Option<&'a str>,
    error: Option<&'a str>,
}

impl<'a> PortObject<'a> {
    pub fn of(place: &'a OvsPlace) -> Self {
        let OvsPlace { bridge, datapath, port, .. } = place;
        Self {
            bridge,
            kind: &port.kind,
            datapath,
            port: &port.port,
            ofport: port.ofport,
            vlan: port.vlan,
            peer: port.peer.as_deref(),
            remote_ip: port.remote_ip.as_deref(),
            local_ip: port.local_ip.as_deref(),
            key: port.key.as_deref(),
            error: port.error.as_deref(),
        }
    }
}

/// One ovs-vswitchd and its database.
#[derive(Serialize)]
pub(super) struct Switch<'a> {
    socket: &'a str,
    version: Option<&'a str>,
    netns: u64,
    bridges: Vec<BridgeObject<'a>>,
    /// Those that flows cross.
    datapaths: Vec<Datapath<'a>>,
}

/// What a datapath counts, in packets.
#[derive(Serialize)]
struct Datapath<'a> {
    name: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    netns: u64,
    hit_per_s: Option<f64>,
    missed_per_s: Option<f64>,
    lost_per_s: Option<f64>,
    hit: u64,
    missed: u64,
    lost: u64,
    flows: u64,
}

#[derive(Serialize)]
struct BridgeObject<'a> {
    name: &'a str,
    datapath: &'a str,
    fail_mode: Option<&'a str>,
    /// Those that are no link, each with its reason where there is one.
    without_link: Vec<Broken<'a>>,
}

#[derive(Serialize)]
struct Broken<'a> {
    name: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    error: Option<&'a str>,
}

impl<'a> Switch<'a> {
    pub fn all(metrics: &'a Metrics) -> Vec<Self> {
        let of = |switch: &'a OvsSwitch| Self {
            socket: &switch.socket,
            version: switch.version.as_deref(),
            netns: switch.netns,
            bridges: switch.bridges.iter().map(BridgeObject::of).collect(),
            datapaths: {
                let own = metrics.datapaths.iter().filter(|datapath| datapath.counters.socket == switch.socket);
                own.map(Datapath::of).collect()
            },
        };
        metrics.facts.ovs.iter().map(of).collect()
    }
}

impl<'a> Datapath<'a> {
    fn of(datapath: &'a DatapathMetrics) -> Self {
        let (counters, rates) = (&datapath.counters, datapath.rates);
        Self {
            name: &counters.name,
            kind: &counters.kind,
            netns: counters.netns,
            hit_per_s: rates.map(|rates| rates.hit_per_s),
            missed_per_s: rates.map(|rates| rates.missed_per_s),
            lost_per_s: rates.map(|rates| rates.lost_per_s),
            hit: counters.hit,
            missed: counters.missed,
            lost: counters.lost,
            flows: counters.flows,
        }
    }
}

impl<'a> BridgeObject<'a> {
    fn of(bridge: &'a OvsBridge) -> Self {
        let broken = |port: &'a OvsPort| Broken { name: &port.name, kind: &port.kind, error: port.error.as_deref() };
        Self {
            name: &bridge.name,
            datapath: &bridge.datapath,
            fail_mode: bridge.fail_mode.as_deref(),
            without_link: bridge.ports.iter().filter(|port| port.link.is_none()).map(broken).collect(),
        }
    }
}
