//! The links pane: what each link claims beside what it moves.

pub(super) mod words;

use super::canvas::{Area, Canvas, cells};
use super::format::{Bytes, Claim, Count, Percent, Rate, Times};
use super::table::{self, Column, Placed, fixed};
use super::text::plural;
use super::{Tone, strip};
use crate::action::{Action, Pane, SortColumn};
use crate::derive::history::History;
use crate::derive::links::LinkRates;
use crate::derive::losses::QdiscDrops;
use crate::derive::{LinkMetrics, Metrics};
use crate::sample::{Kind, LinkState, Owner, OwnerKind, Word};
use crate::state::{LinkColumn, LinkList, LinkRow, LinkSort, ListShape, State, Units};
use std::fmt::Display;
use strum::VariantArray;
use words::{LeftOut, Name, Peer, Queues, Whose};

/// From here on a longer strip is worth less than further columns.
const WIDE: u16 = 140;

/// Cells that a name and an alias can use, and those that a name alone fills.
const LEAST_FOR_ALIAS: u16 = 19;
const WITH_ALIAS: u16 = 27;

/// From here on there is room for whose a link is.
const LEAST_FOR_OWNER: u16 = 63;

/// Lines from which on one of them can be spared to tell what is left out.
const LEAST_TO_TELL: u16 = 5;

/// In the order they usually stand; name, rates and drops go last when there is no room.
const COLUMNS: [Column<LinkColumn>; LinkColumn::VARIANTS.len()] = [
    Column { id: LinkColumn::Name, title: "NAME", least: 15, most: 19, rank: 0, right: false },
    Column { id: LinkColumn::Netns, title: "NETNS", least: 10, most: 15, rank: 6, right: false },
    Column { id: LinkColumn::Kind, title: "KIND", least: 8, most: 11, rank: 6, right: false },
    Column { id: LinkColumn::Owner, title: "OWNER", least: 13, most: 20, rank: 6, right: false },
    Column { id: LinkColumn::State, title: "STATE", least: 5, most: 14, rank: 8, right: false },
    Column { id: LinkColumn::Claims, title: "SPEED", least: 11, most: 13, rank: 4, right: false },
    fixed(LinkColumn::Rx, "RX ↓", 6, 1, true),
    fixed(LinkColumn::Tx, "TX ↑", 6, 2, true),
    fixed(LinkColumn::Times, "×SPEED", 6, 5, true),
    fixed(LinkColumn::Pps, "PPS", 5, 7, true),
    fixed(LinkColumn::Mean, "AVG B", 5, 10, true),
    fixed(LinkColumn::Wire, "WIRE", 5, 7, true),
    fixed(LinkColumn::WireShare, "WIRE%", 5, 7, true),
    fixed(LinkColumn::Drops, "DROP/s", 6, 3, true),
    fixed(LinkColumn::Errors, "ERR/s", 5, 12, true),
    Column { id: LinkColumn::Strip, title: "LAST", least: 8, most: 120, rank: 9, right: false },
    Column { id: LinkColumn::Peer, title: "PEER", least: 15, most: 15, rank: 13, right: false },
    fixed(LinkColumn::Mtu, "MTU", 5, 14, true),
    fixed(LinkColumn::Queues, "QUEUES", 9, 15, true),
];

/// What the pane shows and how, as its title.
pub(super) fn title(state: &State, area: Area) -> Vec<String> {
    let list = &state.links;
    let total = state.metrics().map_or(0, |metrics| metrics.machine.links.len());
    let mut parts = vec![format!("{}/s", state.settings.units.word())];
    if list.busy_first() {
        parts.push(if list.chosen.reversed { "busy first, reversed" } else { "busy first" }.to_owned());
    } else if list.chosen.sort != LinkSort::Name || list.chosen.reversed {
        parts.push(format!("by {}{}", list.chosen.sort.title(), if list.chosen.reversed { ", reversed" } else { "" }));
    }
    let reported = table_height(state, area) < area.height;
    let hidden = if list.hidden.links > 0 && !reported { " (idle hidden)" } else { "" };
    parts.push(if list.matched == total {
        format!("{}{hidden}", plural(total, "link"))
    } else {
        format!("{} of {total}{hidden}", list.matched)
    });
    if !list.filter.is_empty() {
        parts.push(format!("filter {}", list.filter));
    }
    if list.chosen.shape == ListShape::Flat {
        parts.push("flat".to_owned());
    }
    let resting =
        state.metrics().map_or(0, |metrics| metrics.machine.facts.spaces.iter().filter(|space| space.rests).count());
    if resting > 0 {
        parts.push(format!("{} read twice a second", plural(resting, "idle namespace")));
    }
    parts
}

/// The rows in sight.
pub(super) fn prepare(state: &State, history: &History, area: Area) -> Canvas {
    let mut canvas = Canvas::new(area);
    let Some(metrics) = state.metrics() else {
        canvas.left(1, 0, area.width, Tone::Muted, "waiting for the first sample");
        return canvas;
    };
    let rows = state.links.rows();
    let table = table_height(state, area);
    let body = usize::from(table.saturating_sub(1));
    let first = table::window(state.links.selection.anchor(), rows.len(), body);
    let has_alias = |row: &LinkRow| metrics.machine.links[row.index].facts.alias.is_some();
    let aliases = rows.iter().skip(first).take(body).any(has_alias);
    let shown = rows.iter().skip(first).take(body);
    let columns = columns(metrics, state, area.width, (aliases, state.links.erred.holds));
    let strip = columns.iter().find(|column| column.id == LinkColumn::Strip);
    let strips: Vec<_> = strip.map_or_else(Vec::new, |column| {
        shown.clone().map(|row| strip_of(state, history, &metrics.machine.links[row.index], column.width)).collect()
    });
    let scale = strips.iter().flatten().flatten().copied().map(f64::from).fold(0.0, f64::max);
    let seconds = history.seconds.saturating_sub(state.behind_s);
    head(&mut canvas, &columns, state, (seconds, scale));
    let pane = LinksPane { state, metrics, columns: &columns, strips, scale };
    for (y, row) in (1..).zip(rows.iter().skip(first).take(body)) {
        pane.row(&mut canvas, y, row);
    }
    if rows.is_empty() {
        let why = match (metrics.machine.links.is_empty(), state.links.filter.is_empty()) {
            (true, _) => "no link in this namespace; all of them: vnettop --netns all",
            (_, true) => "every link is idle: i shows them",
            (_, false) => "no link matches: Esc clears the filter, i shows idle ones",
        };
        canvas.left(1, 1, area.width - 1, Tone::Muted, why);
    }
    welcome(&mut canvas, state);
    if table < area.height {
        let shown = u16::try_from(rows.len()).unwrap_or(u16::MAX).clamp(1, table - 1);
        table::hidden(&mut canvas, state, 1 + shown, Pane::Links, LeftOut(state.links.hidden));
    }
    canvas
}

/// What to do, in the middle of the rows that are free, on a machine on which nothing is measured.
const WELCOME: [[&str; 2]; 4] = [
    ["waiting for a test", ""],
    ["iperf3 -c HOST -t 60", "  starts one: it is shown as soon as it runs"],
    ["vnettop demo", "          makes one in a network of its own"],
    ["vnettop replay", "        shows a recorded one"],
];

fn welcome(canvas: &mut Canvas, state: &State) {
    let rows = u16::try_from(state.links.rows().len()).unwrap_or(u16::MAX).max(1);
    let lines = u16::try_from(WELCOME.len()).unwrap_or(0);
    let (width, height) = (canvas.area.width, canvas.area.height);
    let is_idle = state.awaits_test() && state.links.filter.is_empty();
    let Some(free) = height.checked_sub(1 + rows + 2).filter(|free| *free >= lines && is_idle) else { return };
    let widest = WELCOME.iter().map(|[one, other]| cells(one) + cells(other)).max().unwrap_or(0);
    let Some(x) = width.checked_sub(u16::try_from(widest).unwrap_or(u16::MAX)) else { return };
    for (y, [command, what]) in (2 + rows + (free - lines) / 2..).zip(WELCOME) {
        let used = canvas.left(x / 2, y, width, Tone::Accent, command);
        canvas.left(x / 2 + used, y, width, Tone::Muted, what);
    }
}

/// Lines for the head and the rows: one more tells what is left out, where there is room.
pub(super) fn table_height(state: &State, area: Area) -> u16 {
    let tells = state.links.hidden.links > 0 && area.height >= LEAST_TO_TELL;
    area.height - u16::from(tells)
}

/// A column that says nothing here makes room for others; errors that there are go as late as drops.
fn columns(metrics: &Metrics, state: &State, width: u16, (aliases, errors): (bool, bool)) -> Vec<Placed<LinkColumn>> {
    let (list, units) = (&state.links, state.settings.units);
    let chosen = table::in_order(&COLUMNS, &list.chosen.columns);
    let (order, roomy_enough) = (chosen.as_deref().unwrap_or(&COLUMNS), chosen.is_some() || width >= WIDE);
    let says = |column: &&Column<LinkColumn>| match column.id {
        LinkColumn::Netns => list.several_namespaces(),
        LinkColumn::State => list.any_down.holds,
        LinkColumn::Owner => list.owned.holds,
        // Units of packets show packet sizes in place of packets/s and of the multiple of the nominal speed.
        LinkColumn::Pps | LinkColumn::Times => units != Units::Packets,
        LinkColumn::Wire | LinkColumn::WireShare => units == Units::Packets,
        LinkColumn::Peer | LinkColumn::Mtu => roomy_enough,
        LinkColumn::Queues => roomy_enough && metrics.machine.links.iter().any(|link| link.facts.tx_queues.is_some()),
        _ => true,
    };
    let roomy = |column: Column<LinkColumn>| match column.id {
        LinkColumn::Name if aliases => Column { most: WITH_ALIAS, ..column },
        LinkColumn::Mean if units == Units::Packets && chosen.is_none() => Column { rank: 7, ..column },
        LinkColumn::Name | LinkColumn::Strip => column,
        _ if width >= WIDE => column,
        _ => Column { most: column.least, ..column },
    };
    // When links have owners, the owner says more than the kind.
    let ranked = |column: Column<LinkColumn>| match column.id {
        _ if chosen.is_some() => column,
        LinkColumn::Errors if errors => Column { rank: 3, ..column },
        LinkColumn::Kind if width >= LEAST_FOR_OWNER && list.owned.holds => Column { rank: 8, ..column },
        _ => column,
    };
    let columns: Vec<Column<LinkColumn>> = order.iter().filter(says).copied().map(roomy).map(ranked).collect();
    let sorted = |column: Column<LinkColumn>| {
        if sort_of(column.id) == Some(list.chosen.sort) { table::marked(column) } else { column }
    };
    let columns: Vec<Column<LinkColumn>> = columns.into_iter().map(sorted).collect();
    table::fit(&columns, width)
}

/// What a click on the head of a column sorts by.
fn sort_of(column: LinkColumn) -> Option<LinkSort> {
    match column {
        LinkColumn::Name => Some(LinkSort::Name),
        LinkColumn::Rx => Some(LinkSort::Rx),
        LinkColumn::Tx => Some(LinkSort::Tx),
        LinkColumn::Pps => Some(LinkSort::Pps),
        LinkColumn::Drops => Some(LinkSort::Drops),
        LinkColumn::Errors => Some(LinkSort::Errors),
        LinkColumn::Times => Some(LinkSort::Times),
        LinkColumn::Mean => Some(LinkSort::Mean),
        _ => None,
    }
}

fn head(canvas: &mut Canvas, columns: &[Placed<LinkColumn>], state: &State, (seconds, scale): (usize, f64)) {
    let list = &state.links;
    for column in columns {
        let sort = sort_of(column.id);
        let sorted = sort.filter(|sort| *sort == list.chosen.sort);
        let tone = if sorted.is_some() { Tone::Accent } else { Tone::Header };
        match (column.id, sorted.filter(|_| !list.busy_first())) {
            (LinkColumn::Strip, _) => {
                // No longer than there is anything to show.
                let seconds = seconds.clamp(1, usize::from(column.width).max(1));
                let top = (scale > 0.0).then(|| Rate(Some(scale), Units::Bits).to_string());
                let heads = [
                    top.as_ref().map(|top| format!("LAST {seconds} s, █ = {top}")),
                    top.map(|top| format!("{seconds} s, █={top}")),
                    Some(format!("LAST {seconds} s")),
                ];
                let mut fitting = heads.into_iter().flatten().filter(|head| cells(head) <= usize::from(column.width));
                canvas.left(column.x, 0, column.width, tone, fitting.next().unwrap_or_default());
            }
            (_, Some(sort)) => {
                let mark = table::sort_mark(sort.ascends() != list.chosen.reversed);
                table::cell(canvas, column, 0, tone, format_args!("{}{mark}", column.title));
            }
            _ => table::cell(canvas, column, 0, tone, column.title),
        }
        if let Some(sort) = sort {
            canvas.spot(column.x, 0, column.width, Action::SortBy(SortColumn::Links(sort)));
        }
    }
}

/// The last seconds of a link. A frozen screen keeps its strip: the seconds that have passed since are left out.
fn strip_of(state: &State, history: &History, link: &LinkMetrics, width: u16) -> Vec<Option<f32>> {
    let (count, behind) = (usize::from(width), state.behind_s);
    let mut values = history.link_strip(link.facts.key(), link.facts.born, count + behind);
    values.truncate(count);
    values
}

/// What every row of the pane needs.
struct LinksPane<'a> {
    state: &'a State,
    metrics: &'a Metrics,
    columns: &'a [Placed<LinkColumn>],
    /// One strip for each row in sight; empty when there is no room.
    strips: Vec<Vec<Option<f32>>>,
    /// What a full block of a strip stands for, bits/s.
    scale: f64,
}

impl LinksPane<'_> {
    fn row(&self, canvas: &mut Canvas, y: u16, row: &LinkRow) {
        let link = &self.metrics.machine.links[row.index];
        let id = LinkList::id(self.metrics, row);
        let is_selected = self.state.links.selection.id() == Some(id);
        let (area, is_focused) = ((0, y, canvas.area.width), self.state.focus == Pane::Links);
        table::row(canvas, area, is_selected, is_focused, Action::SelectLink(id));
        for column in self.columns {
            self.cell(canvas, y, column, row, link);
        }
    }

    fn cell(&self, canvas: &mut Canvas, y: u16, column: &Placed<LinkColumn>, row: &LinkRow, link: &LinkMetrics) {
        let mut put = |tone: Tone, value: &dyn Display| table::cell(canvas, column, y, tone, value);
        let units = self.state.settings.units;
        let rates = link.rates.unwrap_or_default();
        match column.id {
            LinkColumn::Name => {
                let (text, alias) = (link.facts.name.as_str(), link.facts.alias.as_deref());
                let alias = alias.filter(|_| column.width > LEAST_FOR_ALIAS);
                put(name_tone(row, link), &Name { row, text, alias });
            }
            LinkColumn::Netns => put(Tone::Muted, &self.namespace(link)),
            LinkColumn::Kind => put(Tone::Muted, &link.facts.kind.word()),
            LinkColumn::Owner => {
                if let Some(owner) = self.owner(row, link) {
                    put(if owner.guess { Tone::Muted } else { Tone::Normal }, &Whose(owner));
                }
            }
            LinkColumn::State => {
                // A loopback that is down is usual where nothing talks to itself.
                let is_usual = link.facts.kind == Kind::Loopback;
                put(if is_usual { Tone::Muted } else { Tone::Warning }, &state_word(link.facts.state));
            }
            LinkColumn::Claims => put(Tone::Muted, &self.claim(row, link)),
            LinkColumn::Rx if units == Units::Packets => rate(put, rates.rx_packets_per_s, Tone::Normal, Count),
            LinkColumn::Tx if units == Units::Packets => rate(put, rates.tx_packets_per_s, Tone::Normal, Count),
            LinkColumn::Rx => rate(put, rates.rx_bits_per_s, Tone::Normal, |bits| Rate(bits, units)),
            LinkColumn::Tx => rate(put, rates.tx_bits_per_s, Tone::Normal, |bits| Rate(bits, units)),
            LinkColumn::Times => drop(link.times_label().map(|times| put(Tone::Accent, &Times(times)))),
            LinkColumn::Pps => rate(put, rates.packets_per_s(), Tone::Normal, Count),
            LinkColumn::Mean => known(put, rates.mean_packet_bytes(), Bytes),
            LinkColumn::Wire => known(put, link.wire_packet_bytes(), Bytes),
            LinkColumn::WireShare => known(put, link.wire_share(), Percent),
            LinkColumn::Drops => rate(put, self.drops(link), Tone::Warning, Count),
            LinkColumn::Errors => rate(put, errors(&rates), Tone::Bad, Count),
            LinkColumn::Strip => {
                let values = self.strips.get(usize::from(y - 1)).map_or(&[][..], Vec::as_slice);
                strip::rates(canvas, (column.x, y), Tone::Good, values, self.scale);
            }
            LinkColumn::Peer => put(Tone::Muted, &Peer { metrics: self.metrics, link }),
            LinkColumn::Mtu if !link.facts.tells_mtu() => put(Tone::Muted, &super::format::UNKNOWN),
            LinkColumn::Mtu => put(Tone::Muted, &link.facts.mtu),
            LinkColumn::Queues => put(Tone::Muted, &Queues(&link.facts)),
        }
    }

    /// Whose it is, unless the tree says so: a port of Open vSwitch stands under its bridge, and that is its own.
    fn owner(&self, row: &LinkRow, link: &LinkMetrics) -> Option<&Owner> {
        let owner = self.metrics.machine.owner(link.facts.key())?;
        let above = || self.state.links.master(row.index).filter(|_| row.depth > 0);
        let bridge = || above().and_then(|at| self.metrics.machine.links.get(at)).unwrap_or(link);
        Some(owner).filter(|owner| owner.kind != OwnerKind::Ovs || bridge().facts.name != owner.name)
    }

    /// What the namespace is called; nothing for the own one.
    fn namespace(&self, link: &LinkMetrics) -> String {
        let netns = link.facts.netns;
        if netns == self.metrics.machine.netns {
            return String::new();
        }
        self.metrics.machine.space_label(netns)
    }

    fn claim(&self, row: &LinkRow, link: &LinkMetrics) -> Claim {
        Claim {
            mbps: link.facts.speed_mbps,
            basis: link.basis,
            ports: self.state.links.ports(row.index),
            units: self.state.settings().units,
        }
    }

    /// Drops, including those of its qdiscs when the link is on a watched flow's path, and errors when these have no column of
    /// their own.
    fn drops(&self, link: &LinkMetrics) -> Option<f64> {
        let rates = link.rates.as_ref();
        let queued = self.metrics.subject.losses.of_qdiscs(link.facts.key()).and_then(QdiscDrops::packets_per_s);
        let dropped = rates?.dropped_per_s().map(|dropped| dropped + queued.unwrap_or(0.0));
        if self.columns.iter().any(|column| column.id == LinkColumn::Errors) {
            return dropped;
        }
        Some(dropped? + rates.and_then(errors)?)
    }
}

fn errors(rates: &LinkRates) -> Option<f64> {
    Some(rates.rx_errors_per_s? + rates.tx_errors_per_s?)
}

/// A rate in its tone: unknown and nothing are quiet.
fn rate<D: Display>(
    mut put: impl FnMut(Tone, &dyn Display),
    value: Option<f64>,
    tone: Tone,
    show: impl Fn(Option<f64>) -> D,
) {
    let quiet = value.is_none_or(|value| value == 0.0);
    put(if quiet { Tone::Muted } else { tone }, &show(value));
}

/// A number that is quiet only where it is not known.
fn known<D: Display>(mut put: impl FnMut(Tone, &dyn Display), value: Option<f64>, show: impl Fn(Option<f64>) -> D) {
    let tone = if value.is_some() { Tone::Normal } else { Tone::Muted };
    put(tone, &show(value));
}

fn name_tone(row: &LinkRow, link: &LinkMetrics) -> Tone {
    let down = !matches!(link.facts.state, LinkState::Up | LinkState::Unknown);
    if row.context || down { Tone::Muted } else { Tone::Normal }
}

fn state_word(state: LinkState) -> &'static str {
    if matches!(state, LinkState::Up | LinkState::Unknown) { "" } else { state.word() }
}

/// The heads of all columns.
#[cfg(test)]
pub(super) fn titles() -> impl Iterator<Item = &'static str> {
    COLUMNS.iter().map(|column| column.title)
}
