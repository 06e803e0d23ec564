//! State and history → a [`View`]: every string and tone of one frame, cut and placed, only for what is visible. It is
//! pure: no clock, no file, no terminal. Painting it is the business of `ui`.

mod advice;
mod all_hosts;
mod bands;
mod bars;
mod both_ends;
mod busy_cores;
mod canvas;
mod card;
mod core_details;
mod cores;
mod digits;
mod drops;
mod finding;
mod flow;
mod footer;
mod format;
mod frame;
mod glossary;
mod header;
mod help;
mod host_graph;
mod host_row;
mod latency;
mod layout;
mod lines;
mod links;
mod map;
mod numbers;
mod overlay;
mod paragraphs;
mod path;
mod placement;
mod playback;
mod process_peers;
mod profile;
mod route;
mod row_details;
mod strip;
mod summary;
mod table;
mod test;
mod text;
mod threads;
mod timeline;
mod traffic;
mod verdict;

use crate::action::{Action, Mouse, Pane};
use crate::derive::history::History;
use crate::state::State;
use layout::Layout;

/// Marks a number that is an under-count.
const UNDER_COUNT: &str = "≥";

/// ±, also where one character of ASCII cannot say it.
fn plus_minus(state: &State) -> &'static str {
    if state.settings().utf8 { "±" } else { "+/-" }
}

pub use all_hosts::prepare_hosts;
pub use canvas::{Area, Canvas, Span};
pub use host_row::HostRow;

/// What a piece of text means; the theme decides how it looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each says what the text is")]
pub enum Tone {
    Normal,
    /// Zeros, what is only there for context.
    Muted,
    /// Borders, the lines of a scale, the shade of a time: drawn, never text.
    Line,
    /// The head of a column.
    Header,
    /// The title of a pane, and of the one with the focus.
    Title,
    FocusedTitle,
    /// What the eye should find: the sorted column, a link above its label, a core that changed.
    Accent,
    /// A key to press.
    Key,
    Good,
    Warning,
    Bad,
    /// The curve of a rate, from its highest rows (0) to its foot (7); and what is weaker beside it: how far it reaches.
    Curve(u8),
    /// The upper end of a column below the range of its rates, in such a row; the same of a dip.
    CurveEdge(u8),
    DipEdge,
    /// The curve where it is in a dip.
    Dip,
    /// A line drawn over the curve in such a row.
    OnCurve(u8),
    CurveDim,
    /// What was lost, above the curve; and the curve's upper end before it, in such a row.
    Lost,
    LostEdge(u8),
    /// What is empty of a time in which something was pinned: a ground, and where there is none a shade.
    Placed,
    /// The upper end of a column of the curve on it, in such a row.
    PlacedEdge(u8),
    /// A core that a watched thread is on.
    Watched,
    /// A NUMA node (or the core itself, where there is only one), so that neighbours differ; in three strengths, so
    /// that cores of one node do.
    Node(u8),
    NodeBright(u8),
    NodeDim(u8),
    /// A NUMA node that a thread has just come to.
    Moved(u8),
}

/// One frame, ready to be painted. Two equal views need one painting.
#[derive(Debug, Clone, Default, PartialEq)]
#[allow(missing_docs, reason = "the regions of the screen, top to bottom")]
pub struct View {
    /// Columns and rows it was prepared for.
    pub width: u16,
    pub height: u16,
    pub header: Canvas,
    pub tests: Canvas,
    /// What a test is like, the graph, and its path.
    pub verdict: Canvas,
    pub timeline: Canvas,
    pub path: Canvas,
    /// Borders and titles.
    pub frame: Canvas,
    pub links: Canvas,
    pub cores: Canvas,
    pub threads: Canvas,
    pub finding: Canvas,
    pub footer: Canvas,
    /// What lies over the panes; of no size when nothing does.
    pub overlay: Canvas,
    /// The place of its colour theme among those there are.
    pub theme: usize,
}

impl View {
    /// The regions in the order they are painted.
    #[must_use]
    pub fn layers(&self) -> [&Canvas; 12] {
        let Self { header, tests, frame, timeline, links, cores, threads, finding, footer, overlay, .. } = self;
        [header, tests, frame, &self.verdict, timeline, &self.path, links, cores, threads, finding, footer, overlay]
    }

    /// What the mouse asks for on this frame: what was clicked is what was seen there, even if it has moved since.
    #[must_use]
    pub fn action_for(&self, mouse: Mouse) -> Option<Action> {
        match mouse {
            Mouse::Click { x, y } if self.overlay.area.height > 0 => {
                let here = self.overlay.action_at(x, y).or_else(|| self.footer.action_at(x, y));
                // A click outside the box closes it; in a proposal that means no.
                here.or_else(|| (!self.overlay.area.contains(x, y)).then_some(Action::Cancel))
            }
            Mouse::Click { x, y } => {
                let spot = self.layers().into_iter().find_map(|canvas| canvas.action_at(x, y));
                let says = |canvas: &Canvas| canvas.area.contains(x, y);
                let finding = || [&self.finding, &self.verdict].into_iter().any(says).then_some(Action::Findings);
                spot.or_else(|| self.pane_at(x, y).map(Action::Focus)).or_else(finding)
            }
            // While a box is open, the box scrolls.
            Mouse::ScrollUp { .. } if self.overlay.area.height > 0 => Some(Action::Scroll(Pane::Links, -3)),
            Mouse::ScrollDown { .. } if self.overlay.area.height > 0 => Some(Action::Scroll(Pane::Links, 3)),
            Mouse::ScrollUp { x, y } if self.is_graph(x, y) => Some(Action::LessTime),
            Mouse::ScrollDown { x, y } if self.is_graph(x, y) => Some(Action::MoreTime),
            Mouse::ScrollUp { x, y } => self.pane_at(x, y).map(|pane| Action::Scroll(pane, -3)),
            Mouse::ScrollDown { x, y } => self.pane_at(x, y).map(|pane| Action::Scroll(pane, 3)),
        }
    }

    fn is_graph(&self, x: u16, y: u16) -> bool {
        self.overlay.area.height == 0 && self.timeline.area.contains(x, y)
    }

    fn pane_at(&self, x: u16, y: u16) -> Option<Pane> {
        let panes = [(Pane::Links, &self.links), (Pane::Cores, &self.cores), (Pane::Threads, &self.threads)];
        panes.into_iter().find(|(_, canvas)| canvas.area.contains(x, y)).map(|(pane, _)| pane)
    }
}

#[cfg(test)]
impl View {
    /// Plain rows, for those who paint.
    pub(crate) fn of_rows(width: u16, rows: &[&str]) -> Self {
        let height = u16::try_from(rows.len()).expect("few rows");
        let mut canvas = Canvas::new(Area::new(0, 0, width, height));
        for (y, text) in (0u16..).zip(rows) {
            canvas.left(0, y, width, Tone::Normal, text);
        }
        Self { width, height, links: canvas, ..Self::default() }
    }
}

/// Prepares one frame of this size.
#[must_use]
pub fn prepare(state: &State, history: &History, width: u16, height: u16) -> View {
    let mut view = View { width, height, theme: state.themes.at, ..View::default() };
    let Some(layout) = Layout::of(state, width, height) else {
        view.frame = frame::too_small(width, height);
        return view;
    };
    view.header = header::prepare(state, layout.header);
    view.footer = footer::prepare(state, layout.footer);
    view.tests = test::prepare(state, layout.tests);
    view.links = layout.links.map_or_else(Canvas::default, |area| links::prepare(state, history, area));
    view.cores = layout.cores.map_or_else(Canvas::default, |area| cores::prepare(state, area));
    view.threads = layout.threads.map_or_else(Canvas::default, |area| threads::prepare(state, history, area));
    view.timeline = layout.timeline.map_or_else(Canvas::default, |graph| timeline::prepare(state, history, graph));
    if let Some(bands) = &layout.bands {
        view.verdict = verdict::prepare(state, bands.verdict, (width, layout.height));
        view.path = route::prepare(state, bands.path);
    } else if layout.traffic.height > 0 {
        view.verdict = traffic::prepare(state, layout.traffic, (width, layout.height));
    }
    view.finding = finding::prepare(state, layout.finding, layout.timeline.is_none());
    view.frame = frame::prepare(state, &layout);
    view.overlay = overlay::prepare(state, width, height);
    view
}
