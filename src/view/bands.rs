//! How a test lies on the screen: its verdict, its graph, its path, and a line for each pane that is closed. The graph has every
//! row that the others do not need.

use super::canvas::Area;
use super::paragraphs::LARGE;
use super::{cores, finding, route, timeline, verdict};
use crate::action::Pane;
use crate::state::State;
use route::PathHeights;

/// From so many rows on there are lines for the panes, and lanes below the graph.
const ROOMY: u16 = 21;
/// From so many on cores and threads have some rows, at most so many each.
const TALL: u16 = 40;
const MOST_CORES: u16 = 3;
const MOST_THREADS: u16 = 6;

/// Where the parts of the test lie, from top to bottom, each within the side borders.
#[derive(Debug, Clone)]
pub(super) struct Bands {
    pub verdict: Area,
    pub graph: Area,
    /// What has which of its rows.
    pub rows: timeline::Parts,
    pub path: Area,
    /// What a key has done, where it has no room in the line above the path: over the panes that are closed.
    pub notice: Area,
    /// One line a closed pane, over the whole width; where there is much room, with some rows of it below.
    pub drawers: Vec<(Pane, Area)>,
    pub cores: Option<Area>,
    pub threads: Option<Area>,
    /// The line below everything.
    pub bottom: u16,
}

/// Rows of each part.
struct BandRows {
    verdict: u16,
    lanes: u16,
    path: u16,
    /// What the path takes with a row of what is known of each place, with more of that or less.
    path_heights: PathHeights,
    drawers: u16,
    /// What a key has done stands in the line above the path.
    keeps_path: bool,
}

impl BandRows {
    fn of(state: &State, (width, height): (u16, u16)) -> Self {
        // The last one stands in the lower border, where no replay is.
        let in_border = u16::from(state.playback.is_none());
        let (lanes, path, drawers) = match height {
            0..ROOMY => (0, 1, 0),
            ROOMY..LARGE => (2, 2, 2 - in_border),
            LARGE..TALL => (4, 7, 3),
            _ => (8, 12, 3),
        };
        let mut path_heights = route::heights(state, width);
        if height < ROOMY {
            path_heights.least = 1;
        }
        Self {
            verdict: verdict::wanted_rows(state, (width, height)),
            lanes: timeline::lanes_wanted(state, lanes),
            path: path_heights.most.min(path.max(path_heights.least)),
            path_heights,
            keeps_path: finding::notices(state).next().is_some(),
            drawers,
        }
    }

    /// The line above the path takes part in both.
    fn rows(&self) -> u16 {
        self.verdict + self.lanes + self.path + u16::from(self.path > 0) + self.drawers
    }

    /// Gives up rows, what is needed least first, until the graph has so many of all.
    fn leave(&mut self, graph: u16, all: u16) {
        let least = self.path_heights.least;
        while self.rows() + graph > all {
            let part = match self {
                Self { lanes: 3.., .. } => &mut self.lanes,
                Self { path, .. } if *path > least.max(3) => path,
                Self { drawers: 3.., .. } => &mut self.drawers,
                Self { lanes: 2.., .. } => &mut self.lanes,
                Self { path, .. } if *path > least => path,
                Self { lanes: 1.., .. } => &mut self.lanes,
                // The figures of the path say more than the line of a pane.
                Self { drawers: 1.., .. } => &mut self.drawers,
                Self { path: 2.., .. } | Self { path: 1, keeps_path: false, .. } => &mut self.path,
                // Rather no graph than a verdict that is cut.
                _ => return,
            };
            *part -= 1;
        }
        // Rows in which the path would show no more are the graph's.
        let filled = self.path_heights.steps.into_iter().filter(|height| *height <= self.path).max();
        self.path = filled.unwrap_or_else(|| self.path.min(1));
    }
}

/// The least rows of the graph: 8 of 24, 16 of 40, 24 of 60, and between these as many in proportion.
fn least_graph(height: u16) -> u16 {
    match height {
        0..ROOMY => 2,
        ROOMY..40 => 8 + height.saturating_sub(24) / 2,
        _ => 16 + (height.min(60) - 40) * 2 / 5,
    }
}

/// Rows for cores and for threads, of so many that the graph does without.
fn tables(state: &State, spare: u16, width: u16) -> [u16; 2] {
    let threads = u16::try_from(state.threads.rows().len()).unwrap_or(u16::MAX).saturating_add(1).min(MOST_THREADS);
    let cores = cores::wanted_rows(state, width).min(MOST_CORES);
    // Rather none than one end of a test.
    let threads = if threads <= spare { threads } else { 0 };
    [cores.min(spare - threads), threads]
}

/// What of these rows for cores and threads stays where a notice leaves so many of them: the threads as a whole, and what is left for
/// the cores, who want so many.
fn beside_notice([cores, threads]: [u16; 2], rows: u16, wanted: u16) -> [u16; 2] {
    if cores + threads <= rows {
        return [cores, threads];
    }
    let threads = if threads <= rows { threads } else { 0 };
    let cores = if cores > 0 { (rows - threads).min(wanted).min(MOST_CORES) } else { 0 };
    [cores, threads]
}

impl Bands {
    /// Below so many rows (header, list of tests), on a screen of this width, with so many rows for all of it and its footer.
    pub fn of(state: &State, top: u16, (width, height): (u16, u16)) -> Self {
        let mut shares = BandRows::of(state, (width, height));
        // Header, footer, the upper and the lower border.
        let all = height - 4;
        let others = least_graph(height.min(ROOMY - 1)) + 1 + 2 * u16::from(shares.keeps_path);
        shares.verdict = shares.verdict.min(all - others);
        // The axis below it, and the row of what happened.
        let below = if height < ROOMY { 1 } else { 2 };
        shares.leave(least_graph(height) + below, all);
        let inner = width - 2;
        let graph = all.saturating_sub(shares.rows() + 1).max(1);
        let tables = if height >= TALL && usize::from(shares.drawers) == Pane::LISTS.len() {
            tables(state, graph.saturating_sub(least_graph(height) + 1), inner)
        } else {
            [0; 2]
        };
        let graph = graph - tables.iter().sum::<u16>();
        let lines = u16::try_from(route::notice_lines(state, width).len()).unwrap_or(u16::MAX);
        let left = shares.drawers + tables.iter().sum::<u16>();
        // More lines than there are rows of closed panes take the lanes' as well.
        let more = lines.saturating_sub(left).min(shares.lanes);
        shares.lanes -= more;
        let left = left + more;
        let rows = timeline::Parts::in_bands(state, graph, shares.lanes);
        let mut y = top + 1;
        let mut below = |height: u16| {
            y += height;
            Area::new(1, y - height, inner, height)
        };
        let verdict = below(shares.verdict);
        let verdict = Area { x: 2, width: inner - 2, ..verdict };
        let graph = below(rows.rows());
        below(u16::from(shares.path > 0));
        let path = below(shares.path);
        let notice = below(lines.min(left));
        let left = left - notice.height;
        let tables = beside_notice(tables, left.saturating_sub(shares.drawers), cores::wanted_rows(state, inner));
        let (mut drawers, mut cores, mut threads) = (Vec::new(), None, None);
        for pane in Pane::LISTS.into_iter().take(usize::from(shares.drawers.min(left))) {
            drawers.push((pane, Area { x: 0, width, ..below(1) }));
            match pane {
                Pane::Cores if tables[0] > 0 => cores = Some(below(tables[0])),
                Pane::Threads if tables[1] > 0 => threads = Some(below(tables[1])),
                _ => {}
            }
        }
        below(left.saturating_sub(shares.drawers + tables.iter().sum::<u16>()));
        let bottom = below(1);
        if state.playback.is_none() && height >= ROOMY && drawers.len() < Pane::LISTS.len() {
            drawers.push((Pane::LISTS[drawers.len()], Area { x: 0, width, ..bottom }));
        }
        Self { verdict, graph, rows, path, notice, drawers, cores, threads, bottom: bottom.y }
    }
}
