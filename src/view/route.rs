//! The path of a test from end to end, a column a link: name, rate and how many times its nominal speed, losses and cores, with the
//! threads at the ends and the programs between. It is wrapped where it is too long for the width. While there are notices
//! they stand here.

use super::canvas::{Area, Canvas, cells};
use super::format::{Count, Percent, Rate, Times, UNKNOWN};
use super::path::{self, SameWay};
use super::text::{plural, wrap};
use super::{Tone, finding};
use crate::action::Action;
use crate::derive::paths::{CarrierMetrics, HopMetrics};
use crate::derive::{CoreMetrics, LinkMetrics, LossPlace, Metrics, ThreadMetrics};
use crate::sample::HopWay;
use crate::state::{Mode, State};

/// Rows of a column: its name, and what is known of it.
pub(super) const ROWS: u16 = 3;
/// What is known of a place, below its name.
const FACTS: usize = 2;
/// Between two columns: at least ` ═▶ `.
const JOINT: usize = 4;
/// Where the whole path fits into one line with it: ` ▶ `.
const TIGHT: usize = 3;
/// From this share on it is worth a word that others use a thread's core.
const OTHERS: f64 = 0.2;

/// An end, a link or a program on the path.
struct PathPlace {
    name: (Tone, String),
    /// Below the name.
    facts: [(Tone, String); FACTS],
}

fn nothing() -> [(Tone, String); FACTS] {
    [(); FACTS].map(|()| (Tone::Muted, String::new()))
}

impl PathPlace {
    /// Cells that it needs in so many rows, its name's among them.
    fn width(&self, rows: u16) -> usize {
        let facts = self.facts.iter().take(usize::from(rows).saturating_sub(1));
        facts.map(|(_, text)| cells(text)).fold(cells(&self.name.1), usize::max)
    }
}

/// Rows that it takes with this width, with one row of each place, with two, with all; one where nothing is known, to say so.
pub(super) fn heights(state: &State, width: u16) -> [u16; ROWS as usize] {
    let group = state.metrics().and_then(|metrics| Some((metrics, path::groups(metrics).into_iter().next()?)));
    let Some((metrics, group)) = group else { return [1; ROWS as usize] };
    let places = places(state, metrics, &group);
    let height = |rows: u16| {
        let lines = wrapped(&places, usize::from(width - 4), rows).len();
        u16::try_from(lines).unwrap_or(u16::MAX).saturating_mul(rows)
    };
    [height(1), height(2), height(ROWS)]
}

/// The path, or what the last key has done.
pub(super) fn prepare(state: &State, area: Area) -> Canvas {
    let mut canvas = Canvas::new(area);
    let Some(metrics) = state.metrics().filter(|_| area.height > 0) else { return canvas };
    let width = area.width - 2;
    let of_notice = |(tone, text): (Tone, &str)| wrap(text, width).into_iter().map(move |line| (tone, line)).collect();
    let notices: Vec<Vec<(Tone, String)>> = finding::notices(state).map(of_notice).collect();
    if !notices.is_empty() && notice(state, area.width + 2).is_none() {
        let notices = notices.into_iter().flatten();
        for (y, (tone, line)) in (0..area.height).zip(notices) {
            canvas.left(1, y, width, tone, line);
        }
        return canvas;
    }
    let groups = path::groups(metrics);
    let Some(group) = groups.first() else {
        canvas.left(1, 0, width, Tone::Muted, "no connection of a watched program yet");
        return canvas;
    };
    let places = places(state, metrics, group);
    let Some((rows, lines)) = fitting(&places, usize::from(width), area.height) else {
        brief(&mut canvas, &places);
        return canvas;
    };
    let mut y = 0;
    for (at, line) in lines.iter().enumerate() {
        columns(&mut canvas, (y, rows), line, (at > 0, at + 1 < lines.len()));
        y += rows;
    }
    (0..area.height).for_each(|y| canvas.spot(0, y, area.width, Action::Paths));
    canvas
}

/// What the last key has done, where it is one sentence that fits into the line above the path.
pub(super) fn notice(state: &State, width: u16) -> Option<(Tone, &str)> {
    let mut notices = finding::notices(state);
    let (tone, text) = notices.next()?;
    (notices.next().is_none() && cells(text) + 6 <= usize::from(width)).then_some((tone, text))
}

/// What the sign after a rate means, where a link of the path may have one, and how many paths there are beside the one that is shown;
/// for the line above it.
pub(super) fn title(state: &State) -> String {
    let groups = state.metrics().map(path::groups).unwrap_or_default();
    let key = state.keys().key("paths");
    let links = groups.first().and_then(|group| group.path.as_ref()).into_iter().flat_map(|path| &path.hops);
    // As long as it is this path, whatever it carries: the line stands still.
    let has_times = links.filter_map(|hop| hop.link).any(LinkMetrics::has_times_label);
    let sign = if has_times { "× of nominal speed · " } else { "" };
    match groups.len() {
        0 | 1 => format!("{sign}{key} hop by hop"),
        more => format!("{sign}{key} hop by hop, {} beside it", plural(more - 1, "path")),
    }
}

/// Rows of each line, and the lines: with as much of each place as there is height for.
fn fitting(places: &[PathPlace], width: usize, height: u16) -> Option<(u16, Vec<Vec<&PathPlace>>)> {
    let with_rows = |rows: u16| (rows, wrapped(places, width, rows));
    (1..=ROWS).rev().map(with_rows).find(|(rows, lines)| usize::from(*rows) * lines.len() <= usize::from(height))
}

/// The places of a path in lines that fit, with so many rows of each place.
fn wrapped(places: &[PathPlace], width: usize, rows: u16) -> Vec<Vec<&PathPlace>> {
    let whole: usize = places.iter().map(|place| place.width(rows) + TIGHT).sum();
    if whole <= width + TIGHT {
        return vec![places.iter().collect()];
    }
    let mut lines: Vec<Vec<&PathPlace>> = Vec::new();
    let mut used = 0;
    for place in places {
        // A line comes from the one before, and goes on to the next.
        let needed = place.width(rows) + JOINT;
        if let Some(line) = lines.last_mut().filter(|_| used + needed <= width) {
            line.push(place);
            used += needed;
        } else {
            lines.push(vec![place]);
            used = needed + JOINT;
        }
    }
    lines
}

/// `client ▶ veth1 ▶ docker0 ▶ veth2 ▶ server`, where there is no row for more.
fn brief(canvas: &mut Canvas, places: &[PathPlace]) {
    let mut x = 1;
    for (at, PathPlace { name: (tone, name), .. }) in places.iter().enumerate() {
        let room = canvas.area.width.saturating_sub(x + 1);
        if at > 0 {
            x += canvas.left(x, 0, room, Tone::Muted, " ▶ ");
        }
        // Of a thread its role.
        let text = if *tone == Tone::FocusedTitle { name.split(' ').next().unwrap_or(name) } else { name };
        x += canvas.left(x, 0, canvas.area.width.saturating_sub(x + 1), *tone, text);
    }
    canvas.spot(0, 0, canvas.area.width, Action::Paths);
}

/// One line of places, the room that is left shared between them.
fn columns(canvas: &mut Canvas, (y, rows): (u16, u16), line: &[&PathPlace], (comes, goes_on): (bool, bool)) {
    let width = usize::from(canvas.area.width) - 2;
    let joints = line.len() - 1 + usize::from(comes) + usize::from(goes_on);
    let places: usize = line.iter().map(|place| place.width(rows)).sum();
    let least = if places + joints * JOINT <= width { JOINT } else { TIGHT };
    let spare = width.saturating_sub(places + joints * least);
    // So wide that the path reaches from border to border.
    let more = |at: usize| spare / joints.max(1) + usize::from(at < spare % joints.max(1));
    let mut at = 0;
    let mut x = 1;
    let cell = |value: usize| u16::try_from(value).unwrap_or(u16::MAX);
    if comes {
        joint(canvas, (x, y), least + more(at));
        x += cell(least + more(at));
        at += 1;
    }
    for (n, place) in line.iter().enumerate() {
        let (tone, name) = &place.name;
        let named = canvas.left(x, y, canvas.area.width - 1, *tone, name);
        for (below, (tone, text)) in (1..rows).zip(&place.facts) {
            canvas.left(x, y + below, canvas.area.width - 1, *tone, text);
        }
        let is_last = n + 1 == line.len();
        if !is_last || goes_on {
            let gap = place.width(rows) - usize::from(named) + least + more(at);
            joint(canvas, (x + named, y), gap);
            x += cell(place.width(rows) + least + more(at));
            at += 1;
        }
    }
}

/// ` ═══▶ ` over so many cells.
fn joint(canvas: &mut Canvas, (x, y): (u16, u16), width: usize) {
    let width = u16::try_from(width).unwrap_or(u16::MAX);
    canvas.run(x + 1, y, width.saturating_sub(3), Tone::Line, '═');
    canvas.glyph(x + width.saturating_sub(2), y, Tone::Line, '▶');
}

/// The sender, what lies between, the receiver.
fn places(state: &State, metrics: &Metrics, group: &SameWay<'_>) -> Vec<PathPlace> {
    let connection = group.connection;
    let mut all = vec![end(metrics, connection.from.pid, &connection.from.address.to_string())];
    match &group.path {
        Some(path) => {
            for (at, hop) in path.hops.iter().enumerate() {
                let carriers = path.carriers.iter().filter(|carrier| carrier.carrier.at == at);
                all.extend(carriers.map(carrier));
                all.push(link(state, hop));
            }
            all.extend(path.carriers.iter().filter(|carrier| carrier.carrier.at >= path.hops.len()).map(carrier));
            all.extend(path.gap.map(|gap| unknown(&format!("… {gap}"))));
        }
        None if state.settings().mode == Mode::Replay => all.push(unknown("… path not recorded")),
        None => all.push(unknown("… path not known yet")),
    }
    all.push(end(metrics, connection.to.pid, &connection.to.address.to_string()));
    all
}

fn unknown(text: &str) -> PathPlace {
    PathPlace { name: (Tone::Muted, text.to_owned()), facts: nothing() }
}

/// `client 39082`, `45 % of core 6`, `softirq 52 %`: a thread with its part of its core, and what else that core does; only an
/// address where none is watched.
fn end(metrics: &Metrics, pid: Option<u32>, address: &str) -> PathPlace {
    let own = metrics.subject.threads.iter().filter(|thread| Some(thread.sample.id.pid) == pid);
    match own.max_by(|one, other| one.cpu.unwrap_or(0.0).total_cmp(&other.cpu.unwrap_or(0.0))) {
        Some(thread) => {
            // The number tells it from others of its role.
            let role = thread.sample.role();
            let is_alone = metrics.subject.threads.iter().filter(|other| other.sample.role() == role).count() == 1;
            let name = if is_alone { role.to_owned() } else { format!("{role} tid {}", thread.sample.id.tid) };
            threaded(metrics, name, thread)
        }
        None => unknown(address),
    }
}

fn threaded(metrics: &Metrics, name: String, thread: &ThreadMetrics) -> PathPlace {
    let core = thread.sample.core;
    let shares = metrics.machine.cores.iter().find(|one| one.place.core == core).and_then(CoreMetrics::shares);
    let softirq = shares.map(|shares| shares.softirq);
    // On many kernels a thread's CPU time has the softirqs in it that ran meanwhile: they are told below it, and the rest of the core
    // is shared by the test's threads there.
    let there = metrics.subject.threads.iter().filter(|one| one.sample.core == core);
    let of_all: f64 = there.filter_map(|one| one.cpu).sum();
    let room = shares.map_or(f64::INFINITY, |shares| (shares.busy() - shares.softirq).max(0.0));
    let own = thread.cpu.map(|cpu| if of_all > room { cpu * room / of_all } else { cpu });
    let others = metrics.subject.recent.core(core).map(|recent| recent.others).filter(|others| *others >= OTHERS);
    // As wide as it gets, so that nothing beside it jumps.
    let percent = |share: Option<f64>| format!("{:>3} %", Percent(share).to_string());
    let beside = match others {
        Some(_) => (Tone::Warning, format!("all others {}", percent(others))),
        None => (Tone::Muted, format!("softirq {}", percent(softirq))),
    };
    PathPlace {
        name: (Tone::FocusedTitle, name),
        facts: [(Tone::Normal, format!("{} of core {core:<3}", percent(own))), beside],
    }
}

/// `docker0`, `35.2G 3.5×`, `0 lost/s on 4`
fn link(state: &State, hop: &HopMetrics<'_>) -> PathPlace {
    let name = hop.link.map_or_else(|| format!("link {}", hop.hop.link.ifindex.0), |link| link.facts.name.clone());
    let rate = match hop.hop.way {
        HopWay::Passed => UNKNOWN.to_owned(),
        _ => Rate(hop.bits_per_s, state.settings().units).to_string(),
    };
    let times = hop.link.and_then(LinkMetrics::times_label).filter(|_| hop.hop.way != HopWay::Passed);
    let times = times.map_or_else(String::new, |times| Times(times).to_string());
    let lost = hop.all_drops_per_s();
    let tone = if lost.is_some_and(|lost| lost > 0.0) { Tone::Bad } else { Tone::Muted };
    // What nothing is counted at takes no room from what is.
    let losses = if lost.is_none() && hop.hop.way == HopWay::Passed {
        String::new()
    } else {
        // The kernel tells the link that the packet came by; where it is lost is the socket behind the last one.
        let is_socket = !hop.losses.is_empty() && hop.losses.iter().all(|loss| loss.place == LossPlace::ReceiveBuffer);
        let place = if is_socket && lost.is_some_and(|lost| lost > 0.0) { " by the socket" } else { "" };
        format!("{:>4} lost/s{place}", Count(lost).to_string())
    };
    let rate = if hop.hop.way == HopWay::Passed { rate } else { format!("{rate:<5} {times:>5}") };
    PathPlace { name: (Tone::Title, name), facts: [(Tone::Normal, rate), (tone, losses)] }
}

/// `ovs-vswitchd`, ` 98 % of core 3`: a program, with its busiest thread.
fn carrier(one: &CarrierMetrics<'_>) -> PathPlace {
    let facts = one.workers.first().map_or_else(nothing, |worker| {
        let thread = &worker.thread;
        [
            (Tone::Normal, format!("{:>3} % of core {:<3}", Percent(thread.cpu).to_string(), thread.sample.core)),
            (Tone::Muted, format!("{} {}", worker.noun(), thread.sample.id.tid)),
        ]
    });
    PathPlace { name: (Tone::FocusedTitle, one.carrier.name.clone()), facts }
}
