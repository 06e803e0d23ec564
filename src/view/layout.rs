//! Which pane gets which cells. Three shapes: the full picture, panes below each other where it is narrow and tall, and
//! the focused pane with one line for each other where it is small.

use super::canvas::Area;
use super::paragraphs::LARGE;
use super::{bands::Bands, cores, finding, summary, test, timeline, traffic};
use crate::action::Pane;
use crate::state::State;

/// The smallest screen that can show anything useful.
pub(crate) const SMALLEST: (u16, u16) = (60, 15);

/// From here on links lie above cores and threads, as in the picture.
const FULL: (u16, u16) = (76, 20);
/// From here on a narrow screen shows all panes below each other.
const STACKED_HEIGHT: u16 = 32;
/// No pane is worth less than this many rows.
const LEAST_ROWS: u16 = 4;

/// A narrower or lower screen has the panes one below the other, or one of them; with a graph above them they may be lower.
const FULL_BELOW_GRAPH: u16 = 15;

/// Below so many rows links need them more than cores do, where no test runs.
const SHORT: u16 = 22;

/// How the panes lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Full,
    Stacked,
    Compact,
    /// The focused pane alone.
    Zoomed,
    /// The test: verdict, graph, path.
    Bands,
}

/// Where everything lies; a pane without an area is only summed up.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub shape: Shape,
    pub width: u16,
    pub header: Area,
    /// Below it, one line a test; empty where there is nothing to choose.
    pub tests: Area,
    /// The graph of the test, below its border; none where there is no rate, or no room.
    pub timeline: Option<(Area, timeline::Parts)>,
    /// What passes while no test runs, in words, above that graph.
    pub traffic: Area,
    /// Rows of the screen that are not the list of tests.
    pub height: u16,
    pub links: Option<Area>,
    pub cores: Option<Area>,
    pub threads: Option<Area>,
    pub finding: Area,
    /// Where a replay is in its recording: in the lower border, or a row of its own.
    pub playback: Option<Area>,
    /// The parts of a test, where it has the whole screen.
    pub bands: Option<Bands>,
    /// One line a pane, in the compact shape.
    pub summaries: Vec<(Pane, Area)>,
    pub footer: Area,
}

impl Layout {
    /// None where the screen is too small.
    pub fn of(state: &State, width: u16, height: u16) -> Option<Self> {
        if width < SMALLEST.0 || height < SMALLEST.1 {
            return None;
        }
        if state.is_zoomed {
            return Some(Self::empty(width, height, height).zoomed(state, height));
        }
        let tests = test::wanted_rows(state, height).min(height - SMALLEST.1);
        let below_tests = height - tests;
        if state.shows_bands() {
            return Some(Self::empty(width, height, below_tests).in_bands(state, tests));
        }
        let words = traffic::wanted_rows(state, (width, below_tests));
        let parts = if words > 0 && below_tests < LARGE {
            timeline::Parts::above_one_pane(state, above_one_pane(state, below_tests.saturating_sub(words + 1)))
        } else {
            timeline::Parts::above_panes(state, below_tests).filter(|_| state.shows_test())
        };
        let graph = parts.map_or(0, timeline::Parts::rows);
        // With its border.
        let pane = if words + graph > 0 { words + graph + 1 } else { 0 };
        let mut layout = Self::below(state, width, below_tests, pane);
        layout.tests.height = tests;
        layout.traffic = Area::new(2, 2 + tests, width - 4, words);
        let panes = [&mut layout.links, &mut layout.cores, &mut layout.threads].into_iter().flatten();
        let lines = layout.summaries.iter_mut().map(|(_, area)| area);
        let others = [&mut layout.finding, &mut layout.footer].into_iter().chain(&mut layout.playback);
        for area in panes.chain(lines).chain(others) {
            area.y += tests + pane;
        }
        layout.timeline = parts.map(|parts| (Area::new(1, 2 + tests + words, width - 2, graph), parts));
        Some(layout)
    }

    /// The screen without the list of tests, from below a graph of so many rows on, which tells the limit where there is one.
    fn below(state: &State, width: u16, whole: u16, graph: u16) -> Self {
        let height = whole - graph;
        let base = Self::empty(width, height, whole);
        let limit = if graph > 0 { 0 } else { finding::limit_rows(state) };
        let finding = finding_rows(state, whole) + limit;
        let panes = rows(Pane::LISTS.into_iter().filter(|pane| traffic::has_pane(state, *pane)).count());
        let is_whole = usize::from(panes) == Pane::LISTS.len();
        if traffic::shown(state).is_some() && whole < LARGE {
            base.compact(state, height)
        } else if is_whole && width >= FULL.0 && height >= if graph > 0 { FULL_BELOW_GRAPH } else { FULL.1 } {
            base.full(state, height, finding.min(height - 6 - 2 * LEAST_ROWS))
        } else if whole >= STACKED_HEIGHT || !is_whole && height >= panes * (LEAST_ROWS + 1) + 4 + finding {
            base.stacked(state, height, (panes, finding))
        } else {
            base.compact(state, height)
        }
    }

    /// Header and footer, and nothing between them.
    fn empty(width: u16, height: u16, whole: u16) -> Self {
        Self {
            shape: Shape::Compact,
            width,
            header: Area::new(0, 0, width, 1),
            tests: Area::new(0, 1, width, 0),
            timeline: None,
            traffic: Area::default(),
            height: whole,
            links: None,
            cores: None,
            threads: None,
            finding: Area::default(),
            playback: None,
            bands: None,
            summaries: Vec::new(),
            footer: Area::new(0, height - 1, width, 1),
        }
    }

    /// Header, border, links, border, cores beside threads, border, finding, border, footer.
    fn full(mut self, state: &State, height: u16, finding: u16) -> Self {
        let cores_width = cores_width(state, self.width);
        let threads_width = self.width - cores_width - 3;
        // Where no test runs the threads say little.
        let most = if height < SHORT && traffic::shown(state).is_some() { LEAST_ROWS } else { u16::MAX };
        let below = thread_rows(state).max(cores::wanted_rows(state, cores_width)).min(most);
        let (above, below) = share(height - 6 - finding, link_rows(state), below);
        let middle = 2 + above + 1;
        self.shape = Shape::Full;
        self.links = Some(Area::new(1, 2, self.width - 2, above));
        self.cores = Some(Area::new(1, middle, cores_width, below));
        self.threads = Some(Area::new(cores_width + 2, middle, threads_width, below));
        self.finding = Area::new(2, middle + below + 1, self.width - 4, finding);
        self.playback = self.in_the_border(state);
        self
    }

    /// Header, border, links, border, cores, border, threads, border, finding, border, footer; without what is left out.
    fn stacked(mut self, state: &State, height: u16, (panes, finding): (u16, u16)) -> Self {
        let width = self.width - 2;
        let total = height - 4 - panes - finding;
        let shows = |pane: Pane| traffic::has_pane(state, pane);
        let most = (total / panes).max(LEAST_ROWS);
        let cores = match (shows(Pane::Cores), panes) {
            (false, _) => 0,
            (true, 1) => total,
            (true, _) => cores::wanted_rows(state, width).clamp(LEAST_ROWS, most),
        };
        let (links, threads) = match (shows(Pane::Links), shows(Pane::Threads)) {
            (true, true) => share(total - cores, link_rows(state), thread_rows(state)),
            (true, false) => (total - cores, 0),
            (false, _) => (0, total - cores),
        };
        self.shape = Shape::Stacked;
        let mut y = 2;
        let mut below = |pane: Pane, rows: u16| {
            let area = shows(pane).then(|| Area::new(1, y, width, rows))?;
            y += rows + 1;
            Some(area)
        };
        self.links = below(Pane::Links, links);
        self.cores = below(Pane::Cores, cores);
        self.threads = below(Pane::Threads, threads);
        self.finding = Area::new(2, y, self.width - 4, finding);
        self.playback = self.in_the_border(state);
        self
    }

    /// Header, tests, border, verdict, graph, border, path, a line a pane, border, footer.
    fn in_bands(mut self, state: &State, tests: u16) -> Self {
        self.shape = Shape::Bands;
        self.tests.height = tests;
        let bands = Bands::of(state, 1 + tests, (self.width, self.height));
        self.timeline = Some((bands.graph, bands.rows));
        self.playback = state.playback.as_ref().map(|_| Area::new(1, bands.bottom, self.width - 2, 1));
        (self.cores, self.threads) = (bands.cores, bands.threads);
        self.bands = Some(bands);
        self
    }

    /// Below the finding.
    fn in_the_border(&self, state: &State) -> Option<Area> {
        let Area { y, height, .. } = self.finding;
        state.playback.as_ref().map(|_| Area::new(1, y + height, self.width - 2, 1))
    }

    /// Header, border, the focused pane, border, one line for each other, the finding, footer.
    fn compact(mut self, state: &State, height: u16) -> Self {
        let others = summary::others(state);
        let lines = rows(others.len());
        let playback = u16::from(state.playback.is_some());
        let rows = height - 5 - lines - playback;
        self.alone(state, rows);
        let line = |at: u16| Area::new(0, 3 + rows + at, self.width, 1);
        self.summaries = others.into_iter().zip((0..).map(line)).collect();
        self.finding = Area { x: 1, width: self.width - 2, ..line(lines) };
        self.playback = (playback > 0).then(|| line(lines + 1));
        self
    }

    /// Header, border, the focused pane, border, the finding, a replay's clock and bar, footer.
    fn zoomed(mut self, state: &State, height: u16) -> Self {
        let playback = u16::from(state.playback.is_some());
        self.shape = Shape::Zoomed;
        self.alone(state, height - 5 - playback);
        self.finding = Area::new(1, height - 2 - playback, self.width - 2, 1);
        self.playback = (playback > 0).then(|| Area::new(0, height - 2, self.width, 1));
        self
    }

    /// One pane from the uppermost border on.
    fn alone(&mut self, state: &State, rows: u16) {
        let area = Some(Area::new(1, 2, self.width - 2, rows));
        match state.focus {
            Pane::Links => self.links = area,
            Pane::Cores => self.cores = area,
            Pane::Threads => self.threads = area,
            Pane::Test => self.timeline = area.map(|area| (area, timeline::Parts::alone(state, rows))),
        }
    }
}

/// Rows that one pane and a line for each other leave for a graph, of so many. Where nothing is wrong the links go first.
fn above_one_pane(state: &State, height: u16) -> u16 {
    let below = summary::others(state).len() + usize::from(state.playback.is_some());
    let both = height.saturating_sub(5 + rows(below));
    let graph = if traffic::is_trouble(state) { both / 2 } else { LEAST_ROWS };
    // Beside trouble the graph has every row that links leave.
    let table = if traffic::is_trouble(state) { rows(state.links.rows().len() + 1) } else { link_rows(state) };
    let wanted = if state.focus == Pane::Links { table } else { u16::MAX };
    both.saturating_sub(wanted.min(both.saturating_sub(graph)).max(LEAST_ROWS))
}

/// Rows below the panes for what there is to say, without the limit.
fn finding_rows(state: &State, height: u16) -> u16 {
    match height {
        // What passes is said above, and little else is to be said.
        _ if traffic::shown(state).is_some() => 2,
        0..30 => 2,
        30..40 => 3,
        40..50 => 5,
        _ => 6,
    }
}

fn cores_width(state: &State, width: u16) -> u16 {
    let most = if width < 100 { width * 2 / 5 } else { width * 9 / 20 };
    cores::wanted_width(state, width, most).min(most)
}

/// In steps of four, so that one link coming or going does not move the panes.
fn link_rows(state: &State) -> u16 {
    let reported = usize::from(state.links.hidden.links > 0);
    rows((state.links.rows().len() + reported).next_multiple_of(4) + 1)
}

fn thread_rows(state: &State) -> u16 {
    let reported = usize::from(state.threads.hidden > 0);
    rows((state.threads.rows().len() + reported).next_multiple_of(4) + 1)
}

fn rows(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}

/// Shares rows between two: who wants less than half gets what it wants; what both leave is halved.
fn share(total: u16, first: u16, second: u16) -> (u16, u16) {
    let (first, second) = (first.max(LEAST_ROWS), second.max(LEAST_ROWS));
    let half = total / 2;
    let first = match (u32::from(first) + u32::from(second) <= u32::from(total), first <= half, second <= half) {
        (true, ..) => first + (total - first - second) / 2,
        (_, true, _) => first,
        (_, _, true) => total - second,
        _ => half,
    };
    (first, total - first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_shared_by_want() {
        assert_eq!(share(20, 5, 5), (10, 10), "what both leave is halved");
        assert_eq!(share(20, 5, 30), (5, 15), "who wants little gets it");
        assert_eq!(share(20, 2001, 6), (14, 6), "many links get what the threads leave");
        assert_eq!(share(20, 2001, 65), (10, 10), "two that want everything get half each");
        assert_eq!(share(10, 0, 0), (5, 5), "nothing wanted is no panic");
    }
}
