//! Links and cores of a trace: what each link carried and dropped, and how busy each core was and with how many softirqs, from one
//! sample to the next.

use super::core_lanes::heading;
use super::counter_track::{CounterPlace, CounterTrack};
use super::trace_writer::{TraceWriter, TrackId, TrackKind};
use std::collections::BTreeMap;
use std::io::{self, Write};
use vnettop_derive::links::LinkRates;
use vnettop_derive::{LinkMetrics, MachineMetrics};
use vnettop_sample::{CoreId, LinkKey};

/// The counters of a link.
type LinkCounter = (&'static str, &'static str, fn(&LinkRates) -> Option<f64>);

const LINK_COUNTERS: [LinkCounter; 8] = [
    ("received", "bit/s", |rates| rates.rx_bits_per_s),
    ("sent", "bit/s", |rates| rates.tx_bits_per_s),
    ("packets received", "packets/s", |rates| rates.rx_packets_per_s),
    ("packets sent", "packets/s", |rates| rates.tx_packets_per_s),
    ("dropped when received", "packets/s", |rates| rates.rx_dropped_per_s),
    ("dropped before sending", "packets/s", |rates| rates.tx_dropped_per_s),
    ("errors when receiving", "packets/s", |rates| rates.rx_errors_per_s),
    ("errors when sending", "packets/s", |rates| rates.tx_errors_per_s),
];

/// One link.
#[derive(Debug, Default)]
struct OneLink {
    track: Option<TrackId>,
    counters: [CounterTrack; LINK_COUNTERS.len()],
    is_here: bool,
}

/// One core.
#[derive(Debug, Default)]
struct OneCore {
    busy: CounterTrack,
    softirq: CounterTrack,
}

/// The links and cores of a machine.
#[derive(Debug, Default)]
pub struct MachineTracks {
    links_heading: Option<TrackId>,
    /// By key, and how often its number was given anew.
    links: BTreeMap<(LinkKey, u64), OneLink>,
    cores: BTreeMap<CoreId, OneCore>,
}

impl MachineTracks {
    /// Takes a sample, whose rates are since the moment of the sample before. `cores` is the track that those of cores are below.
    pub fn observe<W: Write>(
        &mut self,
        out: &mut TraceWriter<W>,
        machine: &MachineMetrics,
        from_ns: u64,
        cores: TrackId,
    ) -> io::Result<()> {
        let span = (from_ns, machine.at_ns);
        self.links.values_mut().for_each(|link| link.is_here = false);
        for link in machine.links.iter() {
            self.link(out, machine, link, span)?;
        }
        for gone in self.links.extract_if(.., |_, link| !link.is_here).map(|(_, link)| link) {
            for mut counter in gone.counters {
                counter.close(out)?;
            }
        }
        for core in &machine.cores {
            let of = core.place.core;
            let one = self.cores.entry(of).or_default();
            let shares = core.shares();
            let names = [format!("core {of}: busy"), format!("core {of}: softirqs")];
            let values = [shares.map(|shares| shares.busy() * 100.0), shares.map(|shares| shares.softirq * 100.0)];
            for ((counter, name), value) in [&mut one.busy, &mut one.softirq].into_iter().zip(&names).zip(values) {
                let place = CounterPlace { below: cores, name, unit: "% of its time", shows_zero: false };
                counter.step(out, place, span, value)?;
            }
        }
        Ok(())
    }

    /// The trace ends.
    pub fn finish<W: Write>(&mut self, out: &mut TraceWriter<W>) -> io::Result<()> {
        let of_links = self.links.values_mut().flat_map(|link| &mut link.counters);
        let of_cores = self.cores.values_mut().flat_map(|core| [&mut core.busy, &mut core.softirq]);
        of_links.chain(of_cores).try_for_each(|counter| counter.end(out))
    }

    fn link<W: Write>(
        &mut self,
        out: &mut TraceWriter<W>,
        machine: &MachineMetrics,
        link: &LinkMetrics,
        span: (u64, u64),
    ) -> io::Result<()> {
        let one = self.links.entry((link.facts.key(), link.facts.born)).or_default();
        one.is_here = true;
        let is_still = |rates: &LinkRates| LINK_COUNTERS.iter().all(|(_, _, of)| of(rates) == Some(0.0));
        if one.track.is_none() && link.rates.as_ref().is_none_or(is_still) {
            return Ok(());
        }
        let links = heading(out, &mut self.links_heading, "Links")?;
        let below = match one.track {
            Some(track) => track,
            None => *one.track.insert(out.track(Some(links), TrackKind::Named(&link_name(machine, link)))?),
        };
        for (counter, (name, unit, of)) in one.counters.iter_mut().zip(LINK_COUNTERS) {
            let place = CounterPlace { below, name, unit, shows_zero: false };
            counter.step(out, place, span, link.rates.as_ref().and_then(of))?;
        }
        Ok(())
    }
}

/// What a link is called, with its namespace where that is another one than vnettop's own.
pub fn link_name(machine: &MachineMetrics, link: &LinkMetrics) -> String {
    let netns = link.facts.netns;
    let is_own = netns == machine.netns;
    if is_own { link.facts.name.clone() } else { format!("{} in {}", link.facts.name, machine.space_label(netns)) }
}
