//! The threads pane: where each watched thread is, where it was, how often it was moved.

use super::canvas::{Area, Canvas, cells};
use super::format::{Count, Percent, Seconds, Total};
use super::process_peers::Homes;
use super::strip::{self, CoreLetters, StripWindow};
use super::table::{self, Column, Placed, fixed};
use super::text::plural;
use super::{Tone, UNDER_COUNT};
use crate::action::{Action, Pane, SortColumn};
use crate::derive::history::{History, LATELY_NS};
use crate::derive::{Evidence, Metrics, ShortLivedGroup, ThreadMetrics};
use crate::sample::{CoreSet, TraceSource, TracerStage, Word};
use crate::state::{Mode, State, ThreadColumn, ThreadSort};
use std::fmt::{self, Display, Formatter};
use std::time::Duration;
use strum::VariantArray;

/// From here on a longer strip is worth less than further columns.
const WIDE: u16 = 100;

/// From this width on the title has room for how a move is marked, in cells.
const ROOM_FOR_MARK: u16 = 60;
/// From this width on the title has room for the source of moves, in cells.
const ROOM_FOR_SOURCE: u16 = 80;
/// Lines from which on one of them can be spared to tell how many are hidden.
const LEAST_TO_TELL: u16 = 4;
/// Two addresses of IPv6 are cut.
const MOST_FOR_PEER: u16 = 45;
/// A strip shorter than this shows no movement.
const STRIP_LEAST: u16 = 9;

/// What a strip asks for before columns of less worth: little where even the masks would not fit, else half of what the
/// first columns leave.
fn strip_least(width: u16) -> u16 {
    if width < 62 { width / 5 } else { (width - 25) / 2 }.clamp(STRIP_LEAST, 30)
}

/// In the order they usually stand.
const COLUMNS: [Column<ThreadColumn>; ThreadColumn::VARIANTS.len()] = [
    fixed(ThreadColumn::Pid, "PID", 7, 10, true),
    fixed(ThreadColumn::Tid, "TID", 7, 0, true),
    Column { id: ThreadColumn::Name, title: "NAME", least: 8, most: 15, rank: 7, right: false },
    fixed(ThreadColumn::Role, "ROLE", 7, 4, false),
    Column { id: ThreadColumn::Netns, title: "NETNS", least: 10, most: 15, rank: 9, right: false },
    Column { id: ThreadColumn::Peer, title: "PORT → PEER", least: 23, most: 23, rank: 8, right: false },
    fixed(ThreadColumn::Core, "CORE", 4, 1, true),
    Column { id: ThreadColumn::Allowed, title: "ALLOWED", least: 8, most: 20, rank: 6, right: false },
    fixed(ThreadColumn::Cpu, "CPU%", 4, 3, true),
    fixed(ThreadColumn::Moves, "MIGR", 6, 12, true),
    fixed(ThreadColumn::MovesRate, "MIGR/s", 6, 2, true),
    fixed(ThreadColumn::Class, "CLASS", 7, 11, false),
    fixed(ThreadColumn::Wait, "WAIT%", 5, 13, true),
    fixed(ThreadColumn::Voluntary, "VOL/s", 5, 14, true),
    fixed(ThreadColumn::Involuntary, "INVOL/s", 7, 15, true),
    Column { id: ThreadColumn::Strip, title: "CORES", least: STRIP_LEAST, most: 240, rank: 5, right: false },
];

/// What the pane shows and how, as its title.
pub(super) fn title(state: &State, width: u16) -> Vec<String> {
    let list = &state.threads;
    let mut parts = vec![state.settings.watch.join(", ")];
    if list.chosen.sort != ThreadSort::Cpu || list.chosen.reversed {
        parts.push(format!("by {}{}", list.chosen.sort.word(), if list.chosen.reversed { ", reversed" } else { "" }));
    }
    let total = state.metrics().map_or(0, |metrics| metrics.threads.len());
    if list.rows().len() < total {
        parts.push(format!("{} of {total}", list.rows().len()));
    } else if total > 0 {
        parts.push(plural(total, "thread"));
    }
    parts.extend(state.metrics().and_then(|metrics| evidence(metrics, width)));
    parts.extend(state.metrics().and_then(windows).map(|[_, brief]| brief));
    if state.sticky.on {
        parts.push("auto-pin".to_owned());
    }
    if !list.filter.is_empty() {
        parts.push(format!("filter {}", list.filter));
    }
    parts
}

/// Over which times the figures of the rows are, in words and in few.
pub(super) fn windows(metrics: &Metrics) -> Option<[String; 2]> {
    let elapsed_s = metrics.machine.elapsed_s.filter(|_| !metrics.threads.is_empty())?;
    let (lately, sample) = (Seconds(Duration::from_nanos(LATELY_NS).as_secs_f64()), Seconds(elapsed_s));
    Some([format!("MIGR/s over {lately} at most, shares over {sample}"), format!("MIGR/s {lately}, shares {sample}")])
}

/// What the moves rest on, best first; several words where threads differ.
fn evidence(metrics: &Metrics, width: u16) -> Option<String> {
    let kinds = [(Evidence::Traced, ""), (Evidence::Counted, ""), (Evidence::Sampled, UNDER_COUNT)];
    let there = kinds.into_iter().filter(|(kind, _)| metrics.threads.iter().any(|thread| thread.evidence == *kind));
    // perf may lose moves, so it is named whatever the width.
    let by = match metrics.machine.trace {
        Some((TraceSource::Perf, _)) => " by perf",
        Some((TraceSource::Bpf, _)) if width >= ROOM_FOR_SOURCE => " by BPF",
        Some((TraceSource::Ftrace, _)) if width >= ROOM_FOR_SOURCE => " by ftrace",
        _ => "",
    };
    let words = |(kind, mark): (Evidence, &str)| {
        let gap = if mark.is_empty() { "" } else { " " };
        let by = if kind == Evidence::Traced { by } else { "" };
        format!("{mark}{gap}{}{by}", kind.word())
    };
    let words: Vec<String> = there.map(words).collect();
    let mark = if width < ROOM_FOR_MARK { "" } else { " (│, * and back)" };
    let is_coming = metrics.machine.tracer.is_some_and(|tracer| tracer.state == TracerStage::BeingAttached);
    let soon = if is_coming && width >= ROOM_FOR_SOURCE { ", the tracer is being attached" } else { "" };
    (!words.is_empty()).then(|| format!("migrations {}{mark}{soon}", words.join(", ")))
}

/// The rows in sight.
pub(super) fn prepare(state: &State, history: &History, area: Area) -> Canvas {
    let mut canvas = Canvas::new(area);
    let Some(metrics) = state.metrics() else { return canvas };
    let rows = state.threads.rows();
    if rows.is_empty() {
        empty(&mut canvas, state, metrics.threads.is_empty());
        if let Some(groups) = short_lives(state, area) {
            canvas.left(1, area.height - 1, area.width.saturating_sub(1), Tone::Muted, short_lived(groups));
        }
        return canvas;
    }
    let homes = Homes::of(metrics);
    let columns = columns(state, metrics, &homes, area.width);
    let letters = CoreLetters::of(&metrics.machine.facts.topology);
    let strip = columns.iter().find(|column| column.id == ThreadColumn::Strip).map_or(0, |column| column.width);
    let window = StripWindow::of(metrics, strip);
    head(&mut canvas, &columns, state, &window.head(strip, letters.word()));
    let table = table_height(state, area);
    let body = usize::from(table.saturating_sub(1));
    let first = table::window(state.threads.selection.anchor(), rows.len(), body);
    let pane = ThreadsPane { state, metrics, history, homes, letters, window, columns: &columns };
    for (y, &index) in (1..).zip(rows.iter().skip(first).take(body)) {
        pane.row(&mut canvas, y, &metrics.threads[index]);
    }
    let mut y = 1 + u16::try_from(rows.len()).unwrap_or(u16::MAX).min(table - 1);
    if tells_hidden(state, area) {
        let idle = format_args!("{} idle threads", state.threads.hidden);
        table::hidden(&mut canvas, state, y, Pane::Threads, idle);
        y += 1;
    }
    if let Some(groups) = short_lives(state, area) {
        canvas.left(1, y, area.width.saturating_sub(1), Tone::Muted, short_lived(groups));
    }
    canvas
}

/// The columns that have something to say, as wide as they can be.
fn columns(state: &State, metrics: &Metrics, homes: &Homes, width: u16) -> Vec<Placed<ThreadColumn>> {
    let chosen = table::in_order(&COLUMNS, &state.threads.chosen.columns);
    let order = chosen.as_deref().unwrap_or(&COLUMNS);
    let waits = metrics.threads.iter().any(waits);
    let is_pinned = metrics.threads.iter().any(|thread| thread.pinned);
    let says = |column: &&Column<ThreadColumn>| match column.id {
        ThreadColumn::Pid => state.threads.processes_have_several,
        ThreadColumn::Netns => homes.is_elsewhere(metrics.machine.netns),
        ThreadColumn::Peer => !homes.0.is_empty(),
        ThreadColumn::Name => state.threads.several_names,
        ThreadColumn::Voluntary | ThreadColumn::Involuntary => chosen.is_some() || width >= WIDE,
        _ => true,
    };
    let roomy = |column: Column<ThreadColumn>| match column.id {
        ThreadColumn::Allowed if is_pinned && chosen.is_none() => {
            Column { rank: 3, most: if width < WIDE { column.least } else { column.most }, ..column }
        }
        ThreadColumn::Allowed if width < WIDE => Column { most: column.least, ..column },
        // As wide as the longest, which would lose its end to the strip.
        ThreadColumn::Peer if width >= WIDE => {
            let longest = homes.0.iter().map(|home| cells(&home.to_string())).max().unwrap_or(0);
            let width = u16::try_from(longest).unwrap_or(u16::MAX).clamp(column.least, MOST_FOR_PEER);
            Column { least: width, most: width, ..column }
        }
        // Over the whole screen there are columns that have no other place.
        ThreadColumn::Strip if !state.is_zoomed && chosen.is_none() => Column { least: strip_least(width), ..column },
        // Before the strip, which the graph has too.
        ThreadColumn::Wait if waits && chosen.is_none() => Column { rank: 4, ..column },
        _ => column,
    };
    let sorted = |column: Column<ThreadColumn>| {
        if sort_of(column.id) == Some(state.threads.chosen.sort) { table::marked(column) } else { column }
    };
    let columns: Vec<Column<ThreadColumn>> = order.iter().filter(says).copied().map(roomy).map(sorted).collect();
    table::fit(&columns, width)
}

/// Lines for the head and the rows. With enough room one more line counts hidden threads, and one those that are gone.
pub(super) fn table_height(state: &State, area: Area) -> u16 {
    area.height - u16::from(tells_hidden(state, area)) - u16::from(short_lives(state, area).is_some())
}

fn tells_hidden(state: &State, area: Area) -> bool {
    state.threads.hidden > 0 && area.height >= LEAST_TO_TELL
}

/// Programs with threads too short-lived for a row of their own.
fn short_lives(state: &State, area: Area) -> Option<&[ShortLivedGroup]> {
    let groups = state.metrics()?.machine.short_lives.as_deref().filter(|groups| !groups.is_empty())?;
    (area.height > LEAST_TO_TELL).then_some(groups)
}

/// The one that migrated most comes first.
fn short_lived(groups: &[ShortLivedGroup]) -> String {
    let mut groups: Vec<&ShortLivedGroup> = groups.iter().collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.moves));
    let each = groups.iter().map(|group| {
        let (threads, moves) = (plural(group.threads, "thread"), plural(group.moves, "migration"));
        format!("{moves} of {threads} of {}", group.name)
    });
    format!("short-lived: {}", each.collect::<Vec<_>>().join(", "))
}

fn empty(canvas: &mut Canvas, state: &State, none_watched: bool) {
    let names = state.settings.watch.join(" or ");
    let several = state.metrics().filter(|metrics| none_watched && metrics.tests.len() > 1);
    let text = if let Some(ended) = several.and_then(Metrics::ended_test) {
        format!("test {} is over: n shows another one", ended.number)
    } else if none_watched && state.settings().mode == Mode::Replay {
        format!("no thread of {names} was recorded")
    } else if none_watched {
        format!("no {names} running. Start one, try vnettop demo, or watch another program: vnettop --watch NAME")
    } else {
        "no thread matches: Esc clears the filter".to_owned()
    };
    for (y, line) in (0..).zip(super::text::wrap(&text, canvas.area.width.saturating_sub(2))) {
        canvas.left(1, y, canvas.area.width.saturating_sub(1), Tone::Muted, line);
    }
}

/// What a click on the head of a column sorts by.
fn sort_of(column: ThreadColumn) -> Option<ThreadSort> {
    match column {
        ThreadColumn::Tid => Some(ThreadSort::Tid),
        ThreadColumn::Core => Some(ThreadSort::Core),
        ThreadColumn::Cpu => Some(ThreadSort::Cpu),
        ThreadColumn::Moves | ThreadColumn::MovesRate => Some(ThreadSort::Moves),
        ThreadColumn::Wait => Some(ThreadSort::Wait),
        _ => None,
    }
}

fn head(canvas: &mut Canvas, columns: &[Placed<ThreadColumn>], state: &State, strip: &str) {
    let list = &state.threads;
    // Moves have two columns: the order is that of their number.
    let has_total = columns.iter().any(|column| column.id == ThreadColumn::Moves);
    for column in columns {
        let sort = sort_of(column.id);
        let other = column.id == ThreadColumn::MovesRate && has_total;
        match sort.filter(|sort| *sort == list.chosen.sort && !other) {
            _ if column.id == ThreadColumn::Strip => table::cell(canvas, column, 0, Tone::Header, strip),
            Some(sort) => {
                let mark = table::sort_mark(sort.ascends() != list.chosen.reversed);
                table::cell(canvas, column, 0, Tone::Accent, format_args!("{}{mark}", column.title));
            }
            None => table::cell(canvas, column, 0, Tone::Header, column.title),
        }
        if let Some(sort) = sort {
            canvas.spot(column.x, 0, column.width, Action::SortBy(SortColumn::Threads(sort)));
        }
    }
}

/// What every row of the pane needs.
struct ThreadsPane<'a> {
    state: &'a State,
    metrics: &'a Metrics,
    history: &'a History,
    homes: Homes<'a>,
    letters: CoreLetters<'a>,
    window: StripWindow,
    columns: &'a [Placed<ThreadColumn>],
}

impl ThreadsPane<'_> {
    fn row(&self, canvas: &mut Canvas, y: u16, thread: &ThreadMetrics) {
        let id = thread.sample.id;
        let is_selected = self.state.threads.selection.id() == Some(id);
        let (area, is_focused) = ((0, y, canvas.area.width), self.state.focus == Pane::Threads);
        table::row(canvas, area, is_selected, is_focused, Action::SelectThread(id));
        for column in self.columns {
            self.cell(canvas, y, column, thread);
        }
    }

    fn cell(&self, canvas: &mut Canvas, y: u16, column: &Placed<ThreadColumn>, thread: &ThreadMetrics) {
        let mut put = |tone: Tone, value: &dyn Display| table::cell(canvas, column, y, tone, value);
        let sampled = thread.evidence == Evidence::Sampled;
        let idle = if thread.cpu.is_none_or(|cpu| cpu < 0.01) { Tone::Muted } else { Tone::Normal };
        match column.id {
            ThreadColumn::Pid => put(Tone::Muted, &thread.sample.id.pid),
            ThreadColumn::Netns => {
                let netns = self.homes.at(thread.sample.id.pid).and_then(|home| home.own.netns);
                let elsewhere = netns.filter(|netns| *netns != self.metrics.machine.netns);
                put(Tone::Muted, &elsewhere.map_or_else(String::new, |netns| self.metrics.machine.space_label(netns)));
            }
            ThreadColumn::Peer => {
                if let Some(home) = self.homes.at(thread.sample.id.pid) {
                    put(Tone::Muted, home);
                }
            }
            ThreadColumn::Tid => put(idle, &thread.sample.id.tid),
            ThreadColumn::Name => put(idle, &thread.sample.name),
            ThreadColumn::Role => put(Tone::Muted, &thread.sample.role()),
            ThreadColumn::Core => put(if thread.pinned { Tone::Good } else { idle }, &thread.sample.core),
            ThreadColumn::Allowed => put(
                if thread.pinned { Tone::Good } else { Tone::Muted },
                &MaskText { cores: thread.sample.allowed.as_ref(), pinned: thread.pinned },
            ),
            ThreadColumn::Cpu => put(idle, &Percent(thread.cpu)),
            ThreadColumn::Moves => put(Tone::Normal, &AtLeast(sampled, Total(thread.moves))),
            ThreadColumn::MovesRate => {
                let lately = thread.moves_lately_per_s;
                put(moves_tone(thread), &AtLeast(sampled && lately.is_some(), Count(lately)));
            }
            ThreadColumn::Class => put(Tone::Muted, &thread.last_class.map_or("", |class| class.word())),
            ThreadColumn::Wait => put(wait_tone(thread), &Percent(thread.wait)),
            ThreadColumn::Voluntary => put(Tone::Muted, &Count(thread.voluntary_per_s)),
            ThreadColumn::Involuntary => put(Tone::Muted, &Count(thread.involuntary_per_s)),
            ThreadColumn::Strip => {
                if let Some(track) = self.history.thread(thread.sample.id) {
                    strip::cores(canvas, (column.x, y, column.width), &self.letters, track, self.window);
                }
            }
        }
    }
}

fn moves_tone(thread: &ThreadMetrics) -> Tone {
    match thread.moves_lately_per_s {
        Some(rate) if rate > 0.0 => Tone::Warning,
        _ => Tone::Muted,
    }
}

/// It waits for a core so long that it matters.
fn waits(thread: &ThreadMetrics) -> bool {
    thread.wait.is_some_and(|wait| wait >= 0.05)
}

fn wait_tone(thread: &ThreadMetrics) -> Tone {
    if waits(thread) { Tone::Warning } else { Tone::Muted }
}

/// A number that may be an under-count.
struct AtLeast<D>(bool, D);

impl<D: Display> Display for AtLeast<D> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.0 {
            f.write_str(UNDER_COUNT)?;
        }
        self.1.fmt(f)
    }
}

/// An affinity mask, and whether it is vnettop's.
struct MaskText<'a> {
    cores: Option<&'a CoreSet>,
    pinned: bool,
}

impl Display for MaskText<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.pinned {
            f.write_str("PIN ")?;
        }
        match self.cores {
            Some(cores) => cores.fmt(f),
            None => f.write_str(super::format::UNKNOWN),
        }
    }
}

/// The heads of all columns.
#[cfg(test)]
pub(super) fn titles() -> impl Iterator<Item = &'static str> {
    COLUMNS.iter().map(|column| column.title)
}
