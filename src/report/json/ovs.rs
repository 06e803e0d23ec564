//! Open vSwitch in JSON: each link as a port, and the switches themselves.

use super::{Each, InJson, JsonObject};
use crate::derive::{DatapathMetrics, OvsPlace, TestMetrics};
use crate::sample::{OvsBridge, OvsPort, OvsSwitch};
use serde::ser::SerializeMap;

/// A link as a port of Open vSwitch.
impl JsonObject for OvsPlace {
    fn fields<M: SerializeMap>(&self, _: &TestMetrics, object: &mut M) -> Result<(), M::Error> {
        let port = &self.port;
        object.serialize_entry("bridge", &self.bridge)?;
        object.serialize_entry("type", &port.kind)?;
        object.serialize_entry("datapath", &self.datapath)?;
        object.serialize_entry("port", &port.port)?;
        object.serialize_entry("ofport", &port.ofport)?;
        object.serialize_entry("vlan", &port.vlan)?;
        object.serialize_entry("peer", &port.peer)?;
        object.serialize_entry("remote_ip", &port.remote_ip)?;
        object.serialize_entry("local_ip", &port.local_ip)?;
        object.serialize_entry("key", &port.key)?;
        object.serialize_entry("error", &port.error)
    }
}

/// One ovs-vswitchd and its database, with those of its datapaths that flows cross.
impl JsonObject for OvsSwitch {
    fn fields<M: SerializeMap>(&self, metrics: &TestMetrics, object: &mut M) -> Result<(), M::Error> {
        let own = metrics.machine.datapaths.iter().filter(|datapath| datapath.counters.socket == self.socket);
        let datapaths: Vec<_> = own.map(|datapath| InJson(datapath, metrics)).collect();
        object.serialize_entry("socket", &self.socket)?;
        object.serialize_entry("version", &self.version)?;
        object.serialize_entry("netns", &self.netns)?;
        object.serialize_entry("bridges", &Each(&self.bridges, metrics))?;
        object.serialize_entry("datapaths", &datapaths)
    }
}

/// What a datapath counts, in packets.
impl JsonObject for DatapathMetrics {
    fn fields<M: SerializeMap>(&self, _: &TestMetrics, object: &mut M) -> Result<(), M::Error> {
        let (counters, rates) = (&self.counters, self.rates);
        object.serialize_entry("name", &counters.name)?;
        object.serialize_entry("type", &counters.kind)?;
        object.serialize_entry("netns", &counters.netns)?;
        object.serialize_entry("hit_per_s", &rates.map(|rates| rates.hit_per_s))?;
        object.serialize_entry("missed_per_s", &rates.map(|rates| rates.missed_per_s))?;
        object.serialize_entry("lost_per_s", &rates.map(|rates| rates.lost_per_s))?;
        object.serialize_entry("hit", &counters.hit)?;
        object.serialize_entry("missed", &counters.missed)?;
        object.serialize_entry("lost", &counters.lost)?;
        object.serialize_entry("flows", &counters.flows)
    }
}

impl JsonObject for OvsBridge {
    fn fields<M: SerializeMap>(&self, metrics: &TestMetrics, object: &mut M) -> Result<(), M::Error> {
        let without_link = self.ports.iter().filter(|port| port.link.is_none());
        let without_link: Vec<_> = without_link.map(|port| InJson(port, metrics)).collect();
        object.serialize_entry("name", &self.name)?;
        object.serialize_entry("datapath", &self.datapath)?;
        object.serialize_entry("fail_mode", &self.fail_mode)?;
        object.serialize_entry("without_link", &without_link)
    }
}

/// A port that is no link, with its reason where there is one.
impl JsonObject for OvsPort {
    fn fields<M: SerializeMap>(&self, _: &TestMetrics, object: &mut M) -> Result<(), M::Error> {
        object.serialize_entry("name", &self.name)?;
        object.serialize_entry("type", &self.kind)?;
        object.serialize_entry("error", &self.error)
    }
}
