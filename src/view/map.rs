//! The heat map: one character a core, a row a node, wrapped where a node is wider than the pane. When even that does
//! not fit, one character stands for several cores and shows the highest of them; nodes share rows only when there are
//! fewer rows than nodes.

use super::bars::busy_tone;
use super::canvas::Canvas;
use super::{Tone, bars, strip};
use crate::action::{Action, Pane};
use crate::derive::{CoreMetrics, Metrics};
use crate::sample::CoreSet;
use crate::state::State;

/// Cores of one node, by index into `Metrics::cores`.
struct Node {
    name: String,
    cores: Vec<usize>,
}

/// How the cores lie in the map.
pub(super) struct Map {
    nodes: Vec<Node>,
    /// Cells before the first core of a row.
    label: u16,
    /// Characters in a row.
    per_row: usize,
    /// Cores a character stands for.
    group: usize,
    /// A second cell beside each core tells what is special about it.
    roomy: bool,
}

impl Map {
    /// The most detailed map that fits, by node if it can be.
    pub fn of(metrics: &Metrics, width: u16, rows: u16) -> Self {
        let by_node = Self::by(nodes(metrics), metrics, width, rows);
        if by_node.rows() <= rows {
            return by_node;
        }
        let cores = (0..metrics.machine.cores.len()).collect();
        Self::by(vec![Node { name: "cores".to_owned(), cores }], metrics, width, rows)
    }

    fn by(nodes: Vec<Node>, metrics: &Metrics, width: u16, rows: u16) -> Self {
        let highest = metrics.machine.cores.last().map_or(0, |core| core.place.core);
        let digits = highest.to_string().len();
        let name = nodes.iter().map(|node| node.name.len()).max().unwrap_or(0);
        let label = u16::try_from(1 + name + 1 + 2 * digits + 1 + 1).unwrap_or(u16::MAX);
        let room = usize::from(width.saturating_sub(label)).max(1);
        let widest = nodes.iter().map(|node| node.cores.len()).max().unwrap_or(1);
        let mut map = Self { nodes, label, per_row: 1, group: 1, roomy: false };
        for group in [1, 2, 4, 8, 16, 32] {
            map.group = group;
            map.per_row = in_a_row(widest.div_ceil(group), room);
            if map.rows() <= rows {
                break;
            }
        }
        map.roomy = map.per_row * 2 <= room;
        map
    }

    /// Rows it takes.
    pub fn rows(&self) -> u16 {
        let rows = |node: &Node| node.cores.len().div_ceil(self.group).div_ceil(self.per_row);
        u16::try_from(self.nodes.iter().map(rows).sum::<usize>()).unwrap_or(u16::MAX)
    }

    /// How many cores a character stands for.
    pub fn group(&self) -> usize {
        self.group
    }

    /// Each core has a cell of its own for what is special about it.
    pub fn has_flags(&self) -> bool {
        self.roomy
    }

    /// Draws every core from a row on; returns the rows used.
    pub fn prepare(&self, canvas: &mut Canvas, state: &State, metrics: &Metrics, watched: &CoreSet, top: u16) -> u16 {
        let mut y = top;
        for node in &self.nodes {
            for (at, row) in node.cores.chunks(self.group * self.per_row).enumerate() {
                let name = if at == 0 { node.name.as_str() } else { "" };
                self.label(canvas, y, name, &metrics.machine.cores, row);
                let step = if self.roomy { 2 } else { 1 };
                for (x, cores) in (self.label..).step_by(step).zip(row.chunks(self.group)) {
                    self.core(canvas, (x, y), state, metrics, watched, cores);
                }
                y += 1;
            }
        }
        y.min(canvas.area.height) - top
    }

    fn label(&self, canvas: &mut Canvas, y: u16, name: &str, cores: &[CoreMetrics], row: &[usize]) {
        canvas.left(1, y, self.label, Tone::Header, name);
        let (Some(&first), Some(&last)) = (row.first(), row.last()) else { return };
        let (first, last) = (cores[first].place.core, cores[last].place.core);
        canvas.right(1, y, self.label - 2, Tone::Muted, format_args!("{first}-{last}"));
    }

    fn core(
        &self,
        canvas: &mut Canvas,
        (x, y): (u16, u16),
        state: &State,
        metrics: &Metrics,
        watched: &CoreSet,
        indices: &[usize],
    ) {
        let Some(core) =
            indices.iter().map(|&index| &metrics.machine.cores[index]).max_by(|a, b| heat(a).total_cmp(&heat(b)))
        else {
            return;
        };
        let flags = indices.iter().map(|&index| bars::flag(metrics, watched, &metrics.machine.cores[index]));
        let flag = flags.max().unwrap_or(' ');
        let (glyph, tone) = glyph(core);
        canvas.glyph(x, y, if flag == 't' && !self.roomy { Tone::Watched } else { tone }, glyph);
        if self.roomy {
            canvas.glyph(x + 1, y, Tone::Watched, flag);
        }
        let again = state.cores.selection.id() == Some(core.place.core) && state.focus == Pane::Cores;
        let action = if again { Action::Details } else { Action::SelectCore(core.place.core) };
        canvas.spot(x, y, if self.roomy { 2 } else { 1 }, action);
        let selected = state.cores.selection.id();
        if indices.iter().any(|&index| selected == Some(metrics.machine.cores[index].place.core))
            && state.focus == Pane::Cores
        {
            canvas.select(x, y, 1);
        }
    }
}

/// What the characters mean.
pub(super) fn legend(canvas: &mut Canvas, y: u16, group: usize) {
    let blocks: String = (0..8).map(|eighth| strip::block(f64::from(eighth) / 8.0)).collect();
    let used = canvas.left(1, y, canvas.area.width, Tone::Normal, blocks);
    let width = canvas.area.width;
    match group {
        1 => canvas.left(used + 2, y, width, Tone::Muted, "0-100 % busy"),
        _ => canvas.left(used + 2, y, width, Tone::Muted, format_args!("busy, {group} cores each")),
    };
}

/// All in one row, else the largest power of two, so that rows begin at round numbers.
fn in_a_row(cells: usize, room: usize) -> usize {
    if cells <= room { cells.max(1) } else { 1 << room.ilog2() }
}

/// The cores by node, else by socket, else all together.
fn nodes(metrics: &Metrics) -> Vec<Node> {
    let mut nodes: Vec<((&'static str, Option<u32>), Node)> = Vec::new();
    let by_node = metrics.machine.facts.topology.nodes > 0;
    for (index, core) in metrics.machine.cores.iter().enumerate() {
        let key = match (core.place.node, core.place.socket) {
            (Some(node), _) if by_node => ("node", Some(node)),
            (_, Some(socket)) => ("socket", Some(socket)),
            _ => ("cores", None),
        };
        if let Some((_, node)) = nodes.iter_mut().find(|(other, _)| *other == key) {
            node.cores.push(index);
        } else {
            let number = key.1.map_or_else(String::new, |number| number.to_string());
            nodes.push((key, Node { name: format!("{}{number}", key.0), cores: vec![index] }));
        }
    }
    nodes.into_iter().map(|(_, node)| node).collect()
}

/// Columns that a row a node needs, with a second cell a core where so many are left for it.
pub(super) fn wanted_width(metrics: &Metrics, most: u16) -> u16 {
    let map = Map::of(metrics, u16::MAX, u16::MAX);
    let row = u16::try_from(map.per_row).unwrap_or(u16::MAX);
    let roomy = map.label.saturating_add(row.saturating_mul(2));
    if roomy <= most { roomy } else { map.label.saturating_add(row) }
}

fn heat(core: &CoreMetrics) -> f64 {
    core.shares().map_or(-1.0, |shares| shares.busy())
}

/// `x` is offline, a gap is not known.
fn glyph(core: &CoreMetrics) -> (char, Tone) {
    match core.shares() {
        _ if !core.place.online => ('x', Tone::Muted),
        None => ('·', Tone::Muted),
        Some(shares) => (strip::block(shares.busy()), busy_tone(shares.busy())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_begin_at_round_numbers() {
        assert_eq!(in_a_row(32, 40), 32, "a node that fits is one row");
        assert_eq!(in_a_row(32, 19), 16, "else rows of a power of two");
        assert_eq!(in_a_row(0, 5), 1, "no core is no panic");
    }
}
