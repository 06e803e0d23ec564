//! The screen of all hosts: a line for each host, and below them each test that has its ends on two of them.

use super::canvas::{Area, Canvas, cells, fitted};
use super::format::{Count, Interval, Percent, Rate, UNKNOWN};
use super::host_row::HostRow;
use super::layout::SMALLEST;
use super::lines::{Line, sentences};
use super::text::plural;
use super::{Tone, View, both_ends, frame, header, host_graph, overlay};
use crate::action::{Action, KeyContext};
use crate::derive::end_to_end::EndToEnd;
use crate::derive::{Metrics, Test, TestMetrics};
use crate::sample::{CoreId, HostState, Problem};
use crate::state::{AllHosts, Mode, Overlay, State, Units};

/// The columns of the list: title and cells; the last one has the rest.
const COLUMNS: [(&str, usize); 6] =
    [("RATE", 12), ("CV %", 6), ("SOFTIRQ %", 13), ("MIGR/s", 7), ("LOST/s", 7), ("STATE", 0)];
/// A narrower list has no softirq time: its states would be cut.
const ALL_COLUMNS: u16 = 70;
/// Columns of a test that one host sees: title and cells; the words of the test have the rest.
const OF_A_TEST: [(&str, usize); 5] = [("RATE", 12), ("CV %", 6), ("MIGR/s", 7), ("LOST/s", 7), ("TEST", 0)];
/// Names of hosts have between so many cells and so many.
const NAMES: (usize, usize) = (8, 24);

/// Prepares the frame of all hosts; each of the tests is of two of them, by their place. With it, how far it can be scrolled.
#[must_use]
pub fn prepare_hosts(
    all: &AllHosts,
    hosts: &[HostRow<'_>],
    tests: &[EndToEnd<'_>],
    (width, height): (u16, u16),
) -> (View, usize) {
    let mut view = View { width, height, theme: hosts[0].state.themes.at, ..View::default() };
    if width < SMALLEST.0 || height < SMALLEST.1 {
        view.frame = frame::too_small(width, height);
        return (view, 0);
    }
    let first = hosts[0].state;
    view.header = first_line(hosts, Area::new(0, 0, width, 1));
    view.footer = footer(first, all, Area::new(0, height - 1, width, 1));
    // Two rows at least are left for the tests, and one for the finding; every border and the footer has its own.
    let rows = u16::try_from(hosts.len()).unwrap_or(u16::MAX).min(height - 10);
    let list = Area::new(1, 2, width - 2, rows + 1);
    view.links = list_of(all, hosts, list);
    let news = notices(hosts, tests, width - 4);
    let free = (height - 1).saturating_sub(list.y + list.height + 3);
    let most_reported = (height / 4).max(2).min(free.saturating_sub(2)).max(1);
    let reported = u16::try_from(news.len()).unwrap_or(u16::MAX).clamp(1, most_reported);
    let below = Area::new(1, list.y + list.height + 1, width - 2, free.saturating_sub(reported));
    view.finding = lines_of(&news, 0, Area::new(1, below.y + below.height + 1, width - 2, reported));
    let lines = if tests.is_empty() {
        alone(hosts, (width - 4, below.height))
    } else {
        both_ends::lines(hosts, tests, (width - 4, below.height))
    };
    let most = lines.len().saturating_sub(usize::from(below.height));
    let scroll = all.scroll.min(most);
    view.threads = lines_of(&lines, scroll, below);
    let range = (most > 0)
        .then(|| format!(" PgDn: rows {}-{} of {} ", scroll + 1, scroll + usize::from(below.height), lines.len()));
    // Rates of tests have no packets.
    let unit = if first.settings().units == Units::Bytes { "bytes" } else { "bits" };
    view.frame = borders((width, height), [list, below, view.finding.area], (tests, unit), range.as_deref());
    view.overlay = match first.overlay() {
        Overlay::Help { .. } => overlay::prepare(first, width, height),
        _ if all.proposes() => overlay::prepare_of_hosts(hosts, all.scroll, width, height),
        _ => Canvas::default(),
    };
    // A box has its own end.
    (view, if all.proposes() { usize::from(u16::MAX) } else { most })
}

fn first_line(hosts: &[HostRow<'_>], area: Area) -> Canvas {
    let mut canvas = Canvas::new(area);
    let first = hosts[0].state;
    let x = canvas.left(0, 0, area.width, Tone::FocusedTitle, " vnettop ");
    let interval = first.metrics().map_or(first.settings().interval, |metrics| header::interval(first, metrics));
    let text = format!(" {} · {}", plural(hosts.len(), "host"), Interval(interval));
    canvas.left(x, 0, area.width - x, Tone::Normal, text);
    let stale = hosts.iter().filter(|host| host.state.is_stale()).count();
    let mode = match first.settings().mode {
        _ if first.frozen() => (Tone::Warning, "❄ paused".to_owned()),
        Mode::Replay => (Tone::Accent, "▶ replay".to_owned()),
        _ if stale > 0 => (Tone::Bad, format!("○ {} not live", plural(stale, "host"))),
        _ => (Tone::Good, "● live".to_owned()),
    };
    let rec = first.is_recorded.then(|| (Tone::Bad, "● rec".to_owned()));
    let help = (Tone::Key, format!("{} help", first.keys().key("help")));
    let status: Vec<(Tone, String)> = rec.into_iter().chain([mode, help]).collect();
    let needed: usize = status.iter().map(|(_, text)| cells(text) + 2).sum();
    let mut x = area.width.saturating_sub(u16::try_from(needed).unwrap_or(u16::MAX));
    for (tone, text) in status {
        if tone == Tone::Key {
            canvas.spot(x, 0, u16::try_from(cells(&text)).unwrap_or(0), Action::Help);
        }
        x += canvas.left(x, 0, area.width, tone, text) + 2;
    }
    canvas
}

fn footer(state: &State, all: &AllHosts, area: Area) -> Canvas {
    let mut canvas = Canvas::new(area);
    let place = if all.proposes() { KeyContext::Proposal } else { KeyContext::Hosts };
    let is_replay = state.settings().mode == Mode::Replay;
    let mut x = 1;
    for (key, word, action) in state.keys().hints(place) {
        // A thread is taken off on the screen of its host.
        let is_elsewhere = matches!(action, Action::TogglePart(_) | Action::Card);
        if is_elsewhere || is_replay && matches!(action, Action::Propose | Action::Undo) {
            continue;
        }
        let key = key.to_string();
        let needed = u16::try_from(cells(&key) + 1 + word.len()).unwrap_or(u16::MAX);
        if x + needed > area.width {
            break;
        }
        canvas.spot(x, 0, needed, action);
        x += canvas.left(x, 0, area.width, Tone::Key, &key) + 1;
        x += canvas.left(x, 0, area.width, Tone::Muted, word) + 2;
    }
    canvas
}

fn list_of(all: &AllHosts, hosts: &[HostRow<'_>], area: Area) -> Canvas {
    let mut canvas = Canvas::new(area);
    let longest = hosts.iter().map(|host| cells(host.name)).max().unwrap_or(0).clamp(NAMES.0, NAMES.1);
    let name = |text: &str| fitted(text, longest);
    let is_shown = |&(title, _): &(&str, usize)| area.width >= ALL_COLUMNS || title != COLUMNS[2].0;
    let columns: Vec<(&str, usize)> = COLUMNS.into_iter().filter(is_shown).collect();
    let head = name("HOST") + &titles(&columns, hosts[0].state.settings().units);
    canvas.left(2, 0, area.width, Tone::Header, head);
    let room = usize::from(area.height - 1);
    let selected = all.selected.min(hosts.len() - 1);
    let first = (selected + 1).saturating_sub(room.max(1));
    for (y, (at, host)) in (1..area.height).zip(hosts.iter().enumerate().skip(first)) {
        let mark = if at == selected { '▸' } else { ' ' };
        let stale = host.state.is_stale();
        let tone = if stale { Tone::Muted } else { Tone::Normal };
        let mut x = canvas.left(0, y, 2, Tone::FocusedTitle, format_args!("{mark} "));
        x += canvas.left(x, y, area.width, if stale { Tone::Muted } else { Tone::Title }, name(host.name));
        for (figure, (_, width)) in figures(host).into_iter().zip(COLUMNS).filter(|(_, column)| is_shown(column)) {
            x += canvas.left(x, y, area.width, tone, format_args!(" {figure:>width$}"));
        }
        let (tone, word) = state_of(host);
        canvas.left(x + 2, y, area.width.saturating_sub(x + 2), tone, word);
        canvas.spot(0, y, area.width, Action::OpenHost(at));
    }
    canvas
}

/// The heads of columns, the rate with its unit.
fn titles(columns: &[(&str, usize)], units: Units) -> String {
    let title = |&(title, width): &(&str, usize)| match (title, width) {
        ("RATE", width) => format!(" {:>width$}", format!("RATE {}", host_graph::unit(units))),
        (title, 0) => format!("  {title}"),
        (title, width) => format!(" {title:>width$}"),
    };
    columns.iter().map(title).collect()
}

/// Rate, spread, softirq time of the busiest core, migrations and losses of what runs there.
fn figures(host: &HostRow<'_>) -> [String; 5] {
    let Some(metrics) = host.state.metrics() else { return [UNKNOWN; 5].map(str::to_owned) };
    let running: Vec<&Test> = running(metrics).collect();
    let sum = |each: &dyn Fn(&Test) -> Option<f64>| {
        running.iter().filter_map(|test| each(test)).reduce(|one, other| one + other)
    };
    let rate = sum(&|test| test.metrics.flow.bits_per_s);
    let busiest = running.iter().max_by(|one, other| rate_of(one).total_cmp(&rate_of(other)));
    let spread = busiest.and_then(|test| test.metrics.jitter?.cv);
    let migrates =
        sum(&|test| test.metrics.threads.iter().filter_map(|thread| thread.moves_per_s).reduce(|a, b| a + b));
    let lost = sum(&|test| lost_per_s(&test.metrics));
    let softirq = softirq(metrics)
        .map_or_else(|| UNKNOWN.to_owned(), |(share, core)| format!("{} core {core}", Percent(Some(share))));
    [
        Rate(rate, host.state.settings().units).to_string(),
        Percent(spread).to_string(),
        softirq,
        Count(migrates).to_string(),
        Count(lost).to_string(),
    ]
}

fn running(metrics: &Metrics) -> impl Iterator<Item = &Test> {
    metrics.tests.iter().map(|test| &**test).filter(|test| test.ended_ns.is_none())
}

fn rate_of(test: &Test) -> f64 {
    test.metrics.flow.bits_per_s.unwrap_or(0.0)
}

fn lost_per_s(metrics: &TestMetrics) -> Option<f64> {
    let losses = &metrics.losses;
    (losses.seconds > 0.0).then(|| losses.places.iter().map(|loss| losses.per_second(loss.packets)).sum())
}

/// The core with the most softirq time.
fn softirq(metrics: &Metrics) -> Option<(f64, CoreId)> {
    let each = metrics.machine.cores.iter().filter_map(|core| Some((core.shares()?.softirq, core.place.core)));
    each.max_by(|one, other| one.0.total_cmp(&other.0))
}

fn state_of(host: &HostRow<'_>) -> (Tone, String) {
    match &host.state.connection {
        _ if host.state.settings().mode == Mode::Replay => (Tone::Accent, "recorded".to_owned()),
        None | Some(HostState::Live(_)) if has_limited_rights(host) => {
            (Tone::Warning, "live, limited rights: F".to_owned())
        }
        None => (Tone::Good, "this machine".to_owned()),
        Some(HostState::Live(_)) => (Tone::Good, "live".to_owned()),
        Some(HostState::Connecting) => (Tone::Warning, "connecting".to_owned()),
        Some(HostState::Silent) => (Tone::Bad, "silent: old values".to_owned()),
        Some(HostState::Lost { why, .. }) => (Tone::Bad, format!("lost: {}", cause(why))),
    }
}

fn has_limited_rights(host: &HostRow<'_>) -> bool {
    host.state.metrics().is_some_and(|metrics| metrics.machine.facts.problems.iter().any(Problem::is_of_rights))
}

/// What ssh or the agent has said, where that is known: the name of the host stands before it already.
fn cause(why: &str) -> &str {
    let said = why.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    said.unwrap_or(why)
}

/// The notices of all hosts, and what both ends of the tests say.
fn notices(hosts: &[HostRow<'_>], tests: &[EndToEnd<'_>], width: u16) -> Vec<Line> {
    let mut lines = Vec::new();
    let has = |host: &HostRow<'_>, notice| host.state.notices.list().contains(notice);
    for (at, host) in hosts.iter().enumerate() {
        for notice in host.state.notices.list() {
            // What is said of all of them is said of none in particular, and once.
            let is_of_all = hosts.len() > 1 && hosts.iter().all(|other| has(other, notice));
            if is_of_all && at > 0 {
                continue;
            }
            let tone = if notice.warning { Tone::Warning } else { Tone::Accent };
            let whole = if is_of_all || names(&notice.text, host.name) {
                notice.text.clone()
            } else {
                format!("{}: {}", host.name, notice.text)
            };
            lines.extend(sentences(tone, &whole, width));
        }
    }
    let findings = tests.iter().flat_map(|test| &test.findings);
    lines.extend(findings.flat_map(|finding| sentences(Tone::Normal, finding, width)));
    if lines.is_empty() {
        let runs = |host: &HostRow<'_>| host.state.metrics().is_some_and(|metrics| running(metrics).next().is_some());
        let text = match tests.len() {
            _ if hosts.len() == 1 => "A second --host would show the other end of its tests.",
            0 if hosts.iter().any(runs) => {
                "Only one end of each test is visible: add its other host, or rights there (F)."
            }
            0 => "No test runs. Start iperf3 from one of these hosts to another.",
            _ => "No finding takes both ends to explain.",
        };
        lines.extend(sentences(Tone::Muted, text, width));
    }
    lines
}

/// Whether a sentence says itself which host it is about.
fn names(text: &str, host: &str) -> bool {
    text.split([' ', ':', ',', ';']).any(|word| word == host)
}

/// The tests of each host, where no two hosts see the same one: a row each, and what rows are left as their graphs.
fn alone(hosts: &[HostRow<'_>], (width, height): (u16, u16)) -> Vec<Line> {
    let of_host = |host| running_of(host).map(move |test| (host, test));
    let tests: Vec<(&HostRow<'_>, &Test)> = hosts.iter().flat_map(of_host).collect();
    if tests.is_empty() {
        return sentences(Tone::Muted, "No host has a test that runs.", width);
    }
    let longest = tests.iter().map(|(host, _)| cells(host.name)).max().unwrap_or(0).clamp(NAMES.0, NAMES.1);
    let head = fitted("HOST", longest) + &titles(&OF_A_TEST, hosts[0].state.settings().units);
    let mut lines = vec![vec![(Tone::Header, head)]];
    let left = usize::from(height).saturating_sub(1 + tests.len()) / tests.len();
    let rows = u16::try_from(left.saturating_sub(1)).unwrap_or(u16::MAX).min(host_graph::ROWS.1);
    for (host, test) in tests {
        let units = host.state.settings().units;
        let migrates = test.metrics.threads.iter().filter_map(|thread| thread.moves_per_s).reduce(|a, b| a + b);
        let figures = [
            Rate(test.metrics.flow.bits_per_s, units).to_string(),
            Percent(test.metrics.jitter.and_then(|jitter| jitter.cv)).to_string(),
            Count(migrates).to_string(),
            Count(lost_per_s(&test.metrics)).to_string(),
        ];
        let cells: Vec<String> =
            figures.iter().zip(OF_A_TEST).map(|(text, (_, width))| format!(" {text:>width$}")).collect();
        let name = (Tone::Title, fitted(host.name, longest));
        lines.push(vec![name, (Tone::Normal, cells.concat()), (Tone::Normal, format!("  {}", test.words()))]);
        if rows >= host_graph::ROWS.0 {
            lines.extend(host_graph::lines(&test.metrics, units, (usize::from(width), rows)));
            lines.push(Line::new());
        }
    }
    lines
}

fn running_of<'a>(host: &'a HostRow<'_>) -> impl Iterator<Item = &'a Test> {
    host.state.metrics().into_iter().flat_map(running)
}

fn lines_of(lines: &[Line], first: usize, area: Area) -> Canvas {
    let mut canvas = Canvas::new(area);
    for (y, line) in (0..area.height).zip(lines.iter().skip(first)) {
        let mut x = 1;
        for (tone, text) in line {
            x += canvas.left(x, y, (area.width - 1).saturating_sub(x), *tone, text);
        }
    }
    canvas
}

/// Borders around the list, the tests and the finding.
fn borders(
    (width, height): (u16, u16),
    areas: [Area; 3],
    (tests, unit): (&[EndToEnd<'_>], &str),
    range: Option<&str>,
) -> Canvas {
    let mut canvas = Canvas::new(Area::new(0, 0, width, height - 1));
    let title = match tests {
        [] => " Tests ".to_owned(),
        [one] => format!(" Test of both ends ── {} ", one.sender.test.words()),
        more => format!(" {} of both ends ", plural(more.len(), "test")),
    };
    let titles = [format!(" Hosts ── {unit}/s "), title, " Finding ".to_owned()];
    for (at, (area, title)) in areas.iter().zip(&titles).enumerate() {
        frame::line(&mut canvas, area.y - 1, if at == 0 { frame::TOP } else { frame::BETWEEN });
        frame::sides(&mut canvas, *area);
        canvas.left(2, area.y - 1, width - 4, if at == 0 { Tone::FocusedTitle } else { Tone::Title }, title);
    }
    if let Some(range) = range {
        canvas.right(2, areas[1].y - 1, width - 4, Tone::Title, range);
    }
    frame::line(&mut canvas, areas[2].y + areas[2].height, ('└', '┘'));
    canvas
}
