//! The details of one row: every figure that is known of a link, a core or a thread, also those whose columns have no room.

use super::canvas::cells;
use super::core_details;
use super::format::{Bytes, Claim, Count, Percent, Rate, Total, UNKNOWN, speed};
use super::lines::{Line, sentences};
use super::links::words::{Peer, Queues, Whose};
use super::process_peers::Homes;
use super::text::namespace;
use super::{Tone, UNDER_COUNT};
use crate::action::RowId;
use crate::derive::links::LinkRates;
use crate::derive::{Evidence, LinkMetrics, Metrics, ThreadMetrics};
use crate::sample::{CoreSet, Kind, Word};
use crate::state::{State, Units};
use std::fmt::Display;

/// Cells of the name of a figure.
const NAME: usize = 18;

/// Every figure of the row, or that it no longer exists.
pub(super) fn lines(state: &State, row: RowId, width: u16) -> Vec<Line> {
    let Some(metrics) = state.metrics() else { return Vec::new() };
    let found = match row {
        RowId::Link(id) => {
            let link = metrics.machine.link(id.key).filter(|link| link.facts.born == id.born);
            link.map(|link| of_link(metrics, link))
        }
        RowId::Core(core) => metrics.machine.cores.iter().find(|other| other.place.core == core).map(|core| {
            let phrases = core_details::phrases(core, metrics.machine.elapsed_s);
            phrases.into_iter().map(|phrase| vec![phrase]).collect()
        }),
        RowId::Thread(id) => {
            metrics.threads.iter().find(|thread| thread.sample.id == id).map(|thread| of_thread(metrics, thread))
        }
    };
    found.unwrap_or_else(|| sentences(Tone::Normal, "it no longer exists", width))
}

fn figure(name: &str, value: impl Display) -> Line {
    let gap = " ".repeat(NAME.saturating_sub(cells(name)).max(1));
    vec![(Tone::Header, format!("{name}{gap}")), (Tone::Normal, value.to_string())]
}

fn of_link(metrics: &Metrics, link: &LinkMetrics) -> Vec<Line> {
    let facts = &link.facts;
    let mut lines = vec![figure("name", &facts.name)];
    lines.extend(facts.alias.as_ref().map(|alias| figure("alias", alias)));
    lines.push(figure("kind", facts.kind.word()));
    lines.extend(
        metrics
            .machine
            .owner(facts.key())
            .map(|owner| figure("owner", format_args!("{} by {}", Whose(owner), owner.by))),
    );
    lines.push(figure("namespace", namespace(metrics, facts.netns)));
    lines.push(figure("number", facts.ifindex.0));
    lines.push(figure("state", facts.state.word()));
    lines.push(figure("nominal speed", Claim::of(metrics, link, Units::Bits)));
    if facts.tells_mtu() {
        lines.push(figure("MTU", facts.mtu));
    }
    lines.push(figure("queues tx/rx", Queues(facts)));
    if facts.peer.is_some() || facts.lower.is_some() {
        lines.push(figure("other end", Peer { metrics, link }));
    }
    lines.extend(facts.node.map(|node| figure("NUMA node", format_args!("node{node}"))));
    let Some(rates) = &link.rates else { return lines };
    let both = |one: &dyn Display, other: &dyn Display| format!("{one} received, {other} sent");
    let count = |one, other| both(&Count(one), &Count(other));
    let bits = |rate| Rate(rate, Units::Bits);
    lines.push(Line::new());
    lines.push(figure("bit/s", both(&bits(rates.rx_bits_per_s), &bits(rates.tx_bits_per_s))));
    if facts.kind == Kind::Bridge {
        lines.push(figure("", "the host's own traffic; what is forwarded is on the ports"));
    }
    lines.extend(link.times_label().map(|times| figure("times its speed", format_args!("{times:.1}"))));
    lines.push(figure("packets/s", count(rates.rx_packets_per_s, rates.tx_packets_per_s)));
    lines.push(figure("mean packet", format_args!("{} bytes", Bytes(LinkRates::mean_packet_bytes(rates)))));
    lines.push(figure("dropped/s", count(rates.rx_dropped_per_s, rates.tx_dropped_per_s)));
    lines.push(figure("errors/s", count(rates.rx_errors_per_s, rates.tx_errors_per_s)));
    lines
}

fn of_thread(metrics: &Metrics, thread: &ThreadMetrics) -> Vec<Line> {
    let sample = &thread.sample;
    let set = |set: Option<&CoreSet>| set.map_or_else(|| UNKNOWN.to_owned(), ToString::to_string);
    let place = metrics.machine.facts.topology.place(sample.core);
    let node = place.and_then(|place| place.node).map_or_else(String::new, |node| format!(" (node{node})"));
    let mut lines = vec![
        figure("process", sample.id.pid),
        figure("thread", sample.id.tid),
        figure("name", &sample.name),
        figure("role", sample.role()),
        figure("core", format_args!("{}{node}", sample.core)),
        figure("allowed cores", set(sample.allowed.as_ref())),
    ];
    lines.extend(thread.before_pin.as_ref().map(|before| figure("before the pin", before)));
    lines.extend(sample.cpuset.as_ref().map(|cpuset| figure("cores of cgroup", cpuset)));
    let mark = if thread.evidence == Evidence::Sampled { UNDER_COUNT } else { "" };
    let classes = thread.by_class.words();
    lines.push(Line::new());
    lines.push(figure("CPU %", Percent(thread.cpu)));
    lines.push(figure("waiting for CPU %", Percent(thread.wait)));
    let since = if sample.migrations.is_some() { "since it started" } else { "visible so far" };
    lines.push(figure("migrations", format_args!("{mark}{} {since}", Total(thread.moves))));
    lines
        .push(figure("migrations/s", format_args!("{mark}{} ({})", Count(thread.moves_per_s), thread.evidence.word())));
    if !classes.is_empty() {
        lines.push(figure("known by class", classes.join(", ")));
    }
    lines.push(figure(
        "switches/s",
        format_args!("{} voluntary, {} involuntary", Count(thread.voluntary_per_s), Count(thread.involuntary_per_s)),
    ));
    let homes = Homes::all(metrics);
    let own: Vec<_> = homes.0.iter().filter(|home| home.pid == sample.id.pid).collect();
    if let Some(netns) = own.first().and_then(|home| home.own.netns) {
        lines.push(Line::new());
        lines.push(figure("namespace", namespace(metrics, netns)));
    }
    for home in own {
        let rate = home.flow.bits_per_s.map_or_else(|| UNKNOWN.to_owned(), speed);
        let proto = home.flow.proto().word().to_uppercase();
        lines.push(figure("port → peer", format_args!("{home}, {proto}, {rate}")));
    }
    lines
}
