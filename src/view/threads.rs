//! The threads pane: where each watched thread is, where it was, how often it was moved.

use super::canvas::{Area, Canvas};
use super::format::{Count, Percent, Total};
use super::strip::{self, CoreLetters, StripWindow};
use super::table::{self, Column, Placed, fixed};
use super::text::plural;
use super::{Tone, UNDER_COUNT};
use crate::action::{Action, Pane};
use crate::derive::history::History;
use crate::derive::{Evidence, Metrics, ThreadMetrics};
use crate::sample::{CoreSet, TraceSource};
use crate::state::{State, ThreadColumn, ThreadSort};
use std::fmt::{self, Display, Formatter};

/// From here on a longer strip is worth less than further columns.
const WIDE: u16 = 100;

/// From here on the title has room for how a move is marked.
const ROOM_FOR_MARK: u16 = 60;
/// And its source.
const ROOM_FOR_SOURCE: u16 = 80;
/// A strip shorter than this shows no movement.
const STRIP_LEAST: u16 = 10;

/// What a strip asks for before columns of less worth: little where even the masks would not fit, else half of what the
/// first columns leave.
fn strip_least(width: u16) -> u16 {
    if width < 62 { width / 5 } else { (width - 25) / 2 }.clamp(STRIP_LEAST, 60)
}

/// In the order they usually stand.
const COLUMNS: [Column<ThreadColumn>; 13] = [
    fixed(ThreadColumn::Tid, "TID", 7, 0, true),
    Column { id: ThreadColumn::Name, title: "NAME", least: 8, most: 15, rank: 7, right: false },
    fixed(ThreadColumn::Role, "ROLE", 7, 5, false),
    fixed(ThreadColumn::Core, "CORE", 4, 1, true),
    Column { id: ThreadColumn::Allowed, title: "ALLOWED", least: 8, most: 20, rank: 6, right: false },
    fixed(ThreadColumn::Cpu, "CPU%", 4, 3, true),
    fixed(ThreadColumn::Moves, "MOVES", 6, 9, true),
    fixed(ThreadColumn::MovesRate, "MOVES/s", 7, 2, true),
    fixed(ThreadColumn::Class, "CLASS", 7, 8, false),
    fixed(ThreadColumn::Wait, "WAIT%", 5, 10, true),
    fixed(ThreadColumn::Voluntary, "VOL/s", 5, 11, true),
    fixed(ThreadColumn::Involuntary, "INVOL/s", 7, 12, true),
    Column { id: ThreadColumn::Strip, title: "CORES", least: STRIP_LEAST, most: 240, rank: 4, right: false },
];

/// What the pane shows and how, as its title.
pub(super) fn title(state: &State, width: u16) -> Vec<String> {
    let list = &state.threads;
    let mut parts = vec![state.settings.watch.join(", ")];
    if list.sort != ThreadSort::Cpu || list.reversed {
        parts.push(format!("by {}{}", list.sort.word(), if list.reversed { ", reversed" } else { "" }));
    }
    let total = state.metrics().map_or(0, |metrics| metrics.threads.len());
    parts.extend(state.metrics().and_then(|metrics| evidence(metrics, width)));
    if list.rows().len() < total {
        parts.push(format!("{} of {total}", list.rows().len()));
    } else if total > 0 {
        parts.push(plural(total, "thread"));
    }
    if state.sticky().is_on() {
        parts.push("sticky".to_owned());
    }
    if !list.filter.is_empty() {
        parts.push(format!("filter {}", list.filter));
    }
    parts
}

/// What the moves rest on, best first; several words where threads differ.
fn evidence(metrics: &Metrics, width: u16) -> Option<String> {
    let kinds = [(Evidence::Traced, ""), (Evidence::Counted, ""), (Evidence::Sampled, UNDER_COUNT)];
    let there = kinds.into_iter().filter(|(kind, _)| metrics.threads.iter().any(|thread| thread.evidence == *kind));
    // The one that may lose some is told wherever there is room for it.
    let by = match metrics.trace {
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
    let mark = if width < ROOM_FOR_MARK { "" } else { CoreLetters::of(&metrics.facts.topology).mark() };
    (!words.is_empty()).then(|| format!("moves {}{mark}", words.join(", ")))
}

/// The rows in sight.
pub(super) fn prepare(state: &State, history: &History, area: Area) -> Canvas {
    let mut canvas = Canvas::new(area);
    let Some(metrics) = state.metrics() else { return canvas };
    let rows = state.threads.rows();
    if rows.is_empty() {
        empty(&mut canvas, state, metrics.threads.is_empty());
        return canvas;
    }
    let chosen = table::in_order(&COLUMNS, &state.threads.columns);
    let order = chosen.as_deref().unwrap_or(&COLUMNS);
    let says = |column: &&Column<ThreadColumn>| match column.id {
        ThreadColumn::Name => state.threads.several_names(),
        ThreadColumn::Voluntary | ThreadColumn::Involuntary => chosen.is_some() || area.width >= WIDE,
        _ => true,
    };
    let roomy = |column: Column<ThreadColumn>| match column.id {
        ThreadColumn::Allowed if area.width < WIDE => Column { most: column.least, ..column },
        ThreadColumn::Strip => Column { least: strip_least(area.width), ..column },
        _ => column,
    };
    let columns: Vec<Column<ThreadColumn>> = order.iter().filter(says).copied().map(roomy).collect();
    let columns = table::fit(&columns, area.width);
    let letters = CoreLetters::of(&metrics.facts.topology);
    let strip = columns.iter().find(|column| column.id == ThreadColumn::Strip).map_or(0, |column| column.width);
    let window = StripWindow::of(metrics, strip);
    head(&mut canvas, &columns, state.threads.sort, &window.head(strip, letters.word()));
    let body = usize::from(area.height.saturating_sub(1));
    let first = table::window(state.threads.selection.anchor(), rows.len(), body);
    let pane = ThreadsPane { state, history, letters, window, columns: &columns };
    for (y, &index) in (1..).zip(rows.iter().skip(first).take(body)) {
        pane.row(&mut canvas, y, &metrics.threads[index]);
    }
    canvas
}

fn empty(canvas: &mut Canvas, state: &State, none_watched: bool) {
    let names = state.settings.watch.join(" or ");
    let selected = state.metrics().and_then(|metrics| metrics.tests.iter().find(|test| state.is_about(test)));
    let text = if let Some(ended) = selected.filter(|test| none_watched && test.ended_ns.is_some()) {
        format!("test {} has ended: n shows another one", ended.number)
    } else if none_watched {
        format!("no thread named {names} yet: start it, or --watch NAME|PID")
    } else {
        "no thread matches: Esc clears the filter".to_owned()
    };
    for (y, line) in (0..).zip(super::text::wrap(&text, canvas.area.width.saturating_sub(2))) {
        canvas.left(1, y, canvas.area.width.saturating_sub(1), Tone::Muted, line);
    }
}

fn head(canvas: &mut Canvas, columns: &[Placed<ThreadColumn>], sort: ThreadSort, strip: &str) {
    let sorted = match sort {
        ThreadSort::Cpu => ThreadColumn::Cpu,
        ThreadSort::Moves => ThreadColumn::Moves,
        ThreadSort::Tid => ThreadColumn::Tid,
    };
    for column in columns {
        let tone = if column.id == sorted { Tone::Accent } else { Tone::Header };
        let title = if column.id == ThreadColumn::Strip { strip } else { column.title };
        table::cell(canvas, column, 0, tone, title);
    }
}

/// What every row of the pane needs.
struct ThreadsPane<'a> {
    state: &'a State,
    history: &'a History,
    letters: CoreLetters<'a>,
    window: StripWindow,
    columns: &'a [Placed<ThreadColumn>],
}

impl ThreadsPane<'_> {
    fn row(&self, canvas: &mut Canvas, y: u16, thread: &ThreadMetrics) {
        let id = thread.sample.id;
        let width = canvas.area.width;
        canvas.spot(0, y, width, Action::SelectThread(id));
        if self.state.threads.selection.id() == Some(id) {
            canvas.glyph(0, y, Tone::Accent, '▸');
            if self.state.focus == Pane::Threads {
                canvas.select(0, y, width);
            }
        }
        for column in self.columns {
            self.cell(canvas, y, column, thread);
        }
    }

    fn cell(&self, canvas: &mut Canvas, y: u16, column: &Placed<ThreadColumn>, thread: &ThreadMetrics) {
        let mut put = |tone: Tone, value: &dyn Display| table::cell(canvas, column, y, tone, value);
        let sampled = thread.evidence == Evidence::Sampled;
        let idle = if thread.cpu.is_none_or(|cpu| cpu < 0.01) { Tone::Muted } else { Tone::Normal };
        match column.id {
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
                put(moves_tone(thread), &AtLeast(sampled && thread.moves_per_s.is_some(), Count(thread.moves_per_s)));
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
    match thread.moves_per_s {
        Some(rate) if rate > 0.0 => Tone::Warning,
        _ => Tone::Muted,
    }
}

fn wait_tone(thread: &ThreadMetrics) -> Tone {
    match thread.wait {
        Some(wait) if wait >= 0.05 => Tone::Warning,
        _ => Tone::Muted,
    }
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
