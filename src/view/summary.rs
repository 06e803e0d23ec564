//! One line for each pane that has no room.

use super::canvas::{Canvas, cells};
use super::format::{Count, Percent, Rate, Seconds};
use super::{Tone, threads, traffic};
use crate::action::{Action, Pane};
use crate::derive::cores::{CoreMetrics, Shares};
use crate::derive::{FindingId, LinkMetrics, Metrics};
use crate::sample::Word;
use crate::state::{State, Units};

/// The panes without the focus, but for those that are left out.
pub(super) fn others(state: &State) -> Vec<Pane> {
    Pane::LISTS.into_iter().filter(|pane| *pane != state.focus && traffic::has_pane(state, *pane)).collect()
}

/// The line of a pane.
pub(super) fn prepare(canvas: &mut Canvas, state: &State, pane: Pane, y: u16) {
    let width = canvas.area.width;
    canvas.left(1, y, width, Tone::Title, pane.word());
    if let Some(metrics) = state.metrics() {
        canvas.left(9, y, width - 10, Tone::Normal, about(state, metrics, pane));
    }
    canvas.spot(0, y, width, Action::Focus(pane));
}

/// A closed pane as a line of the frame: the key that opens it, what is most worth knowing of it, and where there is room over which
/// times its figures are, and those of its rows below.
pub(super) fn drawer(canvas: &mut Canvas, state: &State, pane: Pane, (y, key): (u16, &str), is_open: bool) {
    let width = canvas.area.width;
    let mut x = 1;
    x += canvas.left(x, y, width, Tone::Key, format_args!(" {key} "));
    x += canvas.left(x, y, width, Tone::Title, format_args!("{} ", pane.word()));
    if let Some(metrics) = state.metrics() {
        let text = if is_open && pane == Pane::Cores { all_cores(metrics) } else { about(state, metrics, pane) };
        x += canvas.left(x, y, width.saturating_sub(x + 2), Tone::Normal, format_args!("{text} "));
        let room = usize::from(width.saturating_sub(x + 6));
        let windows = windows(metrics, pane, is_open).into_iter();
        if let Some(windows) = windows.filter(|_| width >= WIDE).find(|text| cells(text) < room) {
            canvas.right(x, y, width - 3 - x, Tone::Muted, format_args!(" {windows} "));
        }
    }
    canvas.spot(0, y, width, Action::ToggleZoom(Some(pane)));
}

/// Over which times the figures of a pane are, from the longest form to the shortest.
fn windows(metrics: &Metrics, pane: Pane, is_open: bool) -> Vec<String> {
    let sample = metrics.machine.elapsed_s.map(|seconds| format!("over {}", Seconds(seconds)));
    match pane {
        Pane::Threads if is_open => threads::windows(metrics).into_iter().flatten().collect(),
        Pane::Links | Pane::Cores => sample.into_iter().collect(),
        Pane::Threads | Pane::Test => Vec::new(),
    }
}

/// What stands behind the name of the pane, so that it begins with how many there are.
fn about(state: &State, metrics: &Metrics, pane: Pane) -> String {
    match pane {
        Pane::Links => links(state, metrics),
        Pane::Cores => cores(state, metrics),
        Pane::Threads => watched(state, metrics),
        Pane::Test => String::new(),
    }
}

/// From so many columns on a line has room for the time that its figures are of.
const WIDE: u16 = 100;

/// Links whose rates differ by less are as busy as each other.
const ALIKE: f64 = 0.95;

/// The busier direction of a link, bits/s; −1 where it is not known.
pub(super) fn peak(link: &LinkMetrics) -> f64 {
    link.rates.and_then(|rates| rates.peak_bits_per_s()).unwrap_or(-1.0)
}

/// The busiest link. Links of one path are as busy as each other but for a few packets: always the first of them, one of
/// vnettop's own namespace before others.
pub(super) fn busiest(metrics: &Metrics) -> Option<&LinkMetrics> {
    let most = metrics.machine.links.iter().map(peak).fold(-1.0, f64::max);
    let mut alike = metrics.machine.links.iter().filter(|link| peak(link) >= ALIKE * most);
    let own = |link: &&LinkMetrics| link.facts.key().netns == metrics.machine.netns;
    alike.clone().find(own).or_else(|| alike.next())
}

fn links(state: &State, metrics: &Metrics) -> String {
    let busiest = busiest(metrics);
    let count = metrics.machine.links.len();
    let Some((link, rates)) = busiest.and_then(|link| Some((link, link.rates?))) else { return count.to_string() };
    let units = state.settings.units;
    let (rx, tx) = match units {
        Units::Packets => (Count(rates.rx_packets_per_s).to_string(), Count(rates.tx_packets_per_s).to_string()),
        _ => (Rate(rates.rx_bits_per_s, units).to_string(), Rate(rates.tx_bits_per_s, units).to_string()),
    };
    format!("{count} · busiest {} ↓ {rx} ↑ {tx} {}/s", link.facts.name, units.word())
}

fn cores(state: &State, metrics: &Metrics) -> String {
    let count = metrics.machine.cores.len();
    // The one that limits the test, whichever was looked at last.
    let limits = metrics.conclusions.limit.as_ref().and_then(|limit| metrics.machine.core(limit.core?));
    let core = limits.or_else(|| state.cores.looked_at().map(|index| &metrics.machine.cores[index]));
    match core.and_then(|core| Some((core.place.core, core.shares()?))) {
        Some((core, shares)) => {
            let [busy, softirq] = [shares.busy(), shares.softirq].map(|share| Percent(Some(share)));
            format!("{count} · core {core}: {busy} % busy, {softirq} % softirq")
        }
        None => count.to_string(),
    }
}

/// Above rows that say how busy single ones are: the mean of those that are known, as one that is offline is not.
fn all_cores(metrics: &Metrics) -> String {
    let all = &metrics.machine.cores;
    let mean = |of: fn(&Shares) -> f64| {
        let known = all.iter().filter_map(CoreMetrics::shares).map(|shares| of(&shares));
        let (count, sum) = known.fold((0.0, 0.0), |(count, sum), share| (count + 1.0, sum + share));
        Percent((count > 0.0).then_some(sum / count))
    };
    format!("{} · on average {} % busy, {} % softirq", all.len(), mean(Shares::busy), mean(|shares| shares.softirq))
}

fn watched(state: &State, metrics: &Metrics) -> String {
    let names = state.settings.watch.join(" or ");
    if metrics.threads.is_empty() {
        return format!("no {names} running");
    }
    // As often as the verdict says, where it does.
    let told = metrics.conclusions.findings.iter().find(|finding| finding.id == FindingId::Jitter);
    let told = told.and_then(|finding| finding.numbers.iter().find(|(name, _)| *name == "moves_per_s"));
    let moves: Option<f64> = metrics.threads.iter().map(|thread| thread.moves_per_s).sum();
    let over = metrics.subject.jitter.filter(|_| told.is_some()).map(|jitter| jitter.window_s);
    let over = over.or(metrics.machine.elapsed_s.filter(|_| told.is_none()));
    let over = over.map_or_else(String::new, |seconds| format!(" over {}", Seconds(seconds)));
    let moves = told.map(|(_, per_s)| *per_s).or(moves);
    let sampled = metrics.threads.iter().any(|thread| thread.evidence == crate::derive::Evidence::Sampled);
    let mark = if sampled && moves.is_some() { super::UNDER_COUNT } else { "" };
    let pins = match state.pins() {
        0 => String::new(),
        pins => format!(" · {pins} pinned"),
    };
    format!("{} of {names} · {mark}{} migrations/s{over}{pins}", metrics.threads.len(), Count(moves))
}
