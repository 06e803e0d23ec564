//! A test of which two hosts each see an end, as JSON: both ends, the path over the wire, the losses of both sides. Each figure is of
//! its host's own clock.

use super::{InJson, JsonObject, ThreadRow};
use crate::derive::TestMetrics;
use crate::derive::end_to_end::{EndToEnd, HostEnd, HostMetrics};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

struct EndToEndObject<'a>(&'a EndToEnd<'a>, &'a [HostMetrics<'a>]);

impl Serialize for EndToEndObject<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(test, hosts) = self;
        let gaps = test.gaps.iter().map(|(host, gap)| HostPathGap { from: hosts[*host].name, gap });
        let path = test.hops.iter().map(|hop| {
            let HostMetrics { name, metrics } = hosts[hop.host];
            OfHostObject { name, metrics: &metrics.subject, of: &hop.hop }
        });
        let losses = test.losses.iter().map(|lost| {
            // The losses of a test are over that test's own interval.
            let end = if test.sender.host == lost.host { &test.sender } else { &test.receiver };
            OfHostObject { name: hosts[lost.host].name, metrics: &end.test.metrics, of: lost.loss }
        });
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("sender", &EndObject(&test.sender, &hosts[test.sender.host]))?;
        object.serialize_entry("receiver", &EndObject(&test.receiver, &hosts[test.receiver.host]))?;
        object.serialize_entry("path", &path.collect::<Vec<_>>())?;
        object.serialize_entry("path_gaps", &gaps.collect::<Vec<_>>())?;
        object.serialize_entry("losses", &losses.collect::<Vec<_>>())?;
        object.serialize_entry("findings", &test.findings)?;
        object.end()
    }
}

/// Where a host's part of the path ends before it is known, and why.
#[derive(Serialize)]
struct HostPathGap<'a> {
    from: &'a str,
    gap: &'a str,
}

struct EndObject<'a>(&'a HostEnd<'a>, &'a HostMetrics<'a>);

impl Serialize for EndObject<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(end, host) = self;
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("from", host.name)?;
        object.serialize_entry("test", &end.test.number)?;
        object.serialize_entry("addr", &end.address.ip())?;
        object.serialize_entry("port", &end.address.port())?;
        object.serialize_entry("netns", &end.netns)?;
        object.serialize_entry("pid", &end.pid)?;
        object.serialize_entry("streams", &end.streams)?;
        object.serialize_entry("bits_per_s", &end.bits_per_s)?;
        object.serialize_entry("retransmits_per_s", &end.retransmits_per_s)?;
        object.serialize_entry("jitter", &end.jitter.as_ref().map(|jitter| InJson(jitter, &host.metrics.subject)))?;
        let tests = host.metrics.tests_of_threads();
        let threads: Vec<_> = end.threads.iter().map(|thread| ThreadRow::of(thread, &tests)).collect();
        object.serialize_entry("threads", &threads)?;
        object.end()
    }
}

/// Something of a host, with its name.
struct OfHostObject<'a, T> {
    name: &'a str,
    metrics: &'a TestMetrics,
    of: &'a T,
}

impl<T: JsonObject> Serialize for OfHostObject<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("from", self.name)?;
        self.of.fields(self.metrics, &mut object)?;
        object.end()
    }
}

/// What is written of a host among several: its name as vnettop was given it, and the tests that two hosts see.
pub(super) struct OfHost<'a> {
    pub hosts: &'a [HostMetrics<'a>],
    pub at: usize,
    pub tests: &'a [EndToEnd<'a>],
}

impl Serialize for OfHost<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let host = &self.hosts[self.at];
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("from", host.name)?;
        host.metrics.fields(&host.metrics.subject, &mut object)?;
        let tests: Vec<_> = self.tests.iter().map(|test| EndToEndObject(test, self.hosts)).collect();
        object.serialize_entry("end_to_end", &tests)?;
        object.end()
    }
}
