//! What was done meanwhile, on the axis of a plot: phases as bands above it, marks as lines with their number.

use super::{Chart, DrawnOrNot, PlotArea, PlotColor, PlotTime, inside, text_style};
use plotters::prelude::{PathElement, Rectangle, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// A time in which threads were pinned.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlotPhase {
    /// Where it begins, seconds on the axis.
    pub from_s: f64,
    /// Where it ends, seconds on the axis.
    pub to_s: f64,
}

/// Everything that was done, in the order of time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlotDone {
    /// What the recording was saved for and when, seconds on the axis; none where somebody asked for it.
    pub saved: Option<(f64, &'static str)>,
    /// When threads were pinned.
    pub pinned: Vec<PlotPhase>,
    /// When a user set a mark, seconds on the axis.
    pub marks_s: Vec<f64>,
}

/// Height of the band above a chart that says that threads were pinned, and how dark it is across a chart.
const BAND: i32 = 5;
const SHADE: f64 = 0.13;
/// About the width of a character, units of the drawing, and what keeps two words apart.
const CHARACTER: i32 = 8;
const GAP: i32 = 6;
const PINNED: &str = "pinned";
const SAVED: &str = "saved";

/// A word over the middle of what it belongs to.
struct Label {
    x: i32,
    word: String,
}

impl Label {
    fn reaches(&self) -> (i32, i32) {
        let half = width(&self.word) / 2;
        (self.x - half, self.x + half)
    }
}

fn width(word: &str) -> i32 {
    i32::try_from(word.chars().count()).unwrap_or(i32::MAX / 16) * CHARACTER
}

/// Each mark has its number; those too close for that have one label together: `2–4`.
fn mark_labels(places: &[i32]) -> Vec<Label> {
    let mut groups: Vec<(usize, usize)> = Vec::new();
    let label = |&(first, last): &(usize, usize)| {
        let word = if first == last { (first + 1).to_string() } else { format!("{}–{}", first + 1, last + 1) };
        Label { x: i32::midpoint(places[first], places[last]), word }
    };
    for nth in 0..places.len() {
        groups.push((nth, nth));
        while let [.., before, last] = &groups[..]
            && label(before).reaches().1 + GAP > label(last).reaches().0
        {
            let joined = (before.0, last.1);
            groups.truncate(groups.len() - 2);
            groups.push(joined);
        }
    }
    groups.iter().map(label).collect()
}

/// Nothing stands where a label would.
fn has_room(one: &Label, others: &[Label]) -> bool {
    let (from, to) = one.reaches();
    others.iter().map(Label::reaches).all(|(begin, end)| end + GAP <= from || to + GAP <= begin)
}

/// The word over each phase, if every one has room for it; the legend says it in any case.
fn phase_labels(bands: &[(i32, i32)], marks: &[Label]) -> Vec<Label> {
    let label = |&(from, to): &(i32, i32)| Label { x: i32::midpoint(from, to), word: PINNED.to_owned() };
    let labels: Vec<Label> = bands.iter().map(label).collect();
    let are_free = labels.iter().all(|one| has_room(one, marks));
    let have_room = bands.iter().all(|(from, to)| to - from >= width(PINNED)) && are_free;
    if have_room { labels } else { Vec::new() }
}

/// Draws them; the words above the chart where that is asked for. Across the chart pinned time is shaded, or where that would hide
/// what is in it, only edged.
pub(super) fn draw_done(
    area: &PlotArea<'_>,
    chart: &mut Chart<'_>,
    (x, y_to): (PlotTime, f64),
    done: &PlotDone,
    (is_top, is_shaded): (bool, bool),
) -> DrawnOrNot {
    let (scale, _) = x.unit();
    let is_seen = |at_s: f64| at_s >= x.from_s && at_s <= x.to_s;
    let mut bands = Vec::new();
    for phase in done.pinned.iter().filter(|phase| phase.to_s > x.from_s && phase.from_s < x.to_s) {
        let [from, to] = [phase.from_s.max(x.from_s), phase.to_s.min(x.to_s)].map(|at_s| at_s / scale);
        if is_shaded {
            let shade = Rectangle::new([(from, 0.0), (to, y_to)], PlotColor::Orange.fill(SHADE));
            chart.draw_series(std::iter::once(shade))?;
        }
        for at_s in [phase.from_s, phase.to_s].into_iter().filter(|&at_s| is_seen(at_s) && at_s < x.to_s) {
            let edge = PathElement::new(vec![(at_s / scale, 0.0), (at_s / scale, y_to)], PlotColor::Orange.line(1));
            chart.draw_series(std::iter::once(edge))?;
        }
        let [(left, top), (right, _)] = [from, to].map(|at| inside(area, chart.backend_coord(&(at, y_to))));
        bands.push((left, right));
        if is_top {
            area.draw(&Rectangle::new([(left, top - BAND), (right, top)], PlotColor::Orange.fill(1.0)))?;
        }
    }
    let marks: Vec<f64> = done.marks_s.iter().copied().filter(|&at_s| is_seen(at_s)).collect();
    for at_s in &marks {
        let line = PathElement::new(vec![(at_s / scale, 0.0), (at_s / scale, y_to)], PlotColor::Text.line(1));
        chart.draw_series(std::iter::once(line))?;
    }
    let saved = done.saved.map(|(at_s, _)| at_s).filter(|&at_s| is_seen(at_s));
    if let Some(at_s) = saved {
        let line = PathElement::new(vec![(at_s / scale, 0.0), (at_s / scale, y_to)], PlotColor::Teal.line(2));
        chart.draw_series(std::iter::once(line))?;
    }
    if !is_top {
        return Ok(());
    }
    let (_, top) = inside(area, chart.backend_coord(&(0.0, y_to)));
    let places: Vec<i32> = marks.iter().map(|at| inside(area, chart.backend_coord(&(at / scale, y_to))).0).collect();
    let mut marks = mark_labels(&places);
    if let Some(at_s) = saved {
        let (x, _) = inside(area, chart.backend_coord(&(at_s / scale, y_to)));
        let label = Label { x, word: SAVED.to_owned() };
        marks.extend(has_room(&label, &marks).then_some(label));
    }
    for label in phase_labels(&bands, &marks).iter().chain(&marks) {
        let style = text_style().pos(Pos::new(HPos::Center, VPos::Bottom));
        area.draw(&Text::new(label.word.clone(), (label.x, top - BAND - 2), style))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_never_meet_and_every_mark_has_one() {
        for places in [vec![], vec![5], vec![0, 3, 6, 200, 204, 600], (0..40).map(|nth| nth * 9).collect()] {
            let labels = mark_labels(&places);
            let reaches: Vec<(i32, i32)> = labels.iter().map(Label::reaches).collect();
            assert!(reaches.is_sorted_by(|one, other| one.1 + GAP <= other.0), "{reaches:?}");
            let ends =
                |label: &Label| -> Vec<usize> { label.word.split('–').filter_map(|end| end.parse().ok()).collect() };
            let counted: usize = labels.iter().map(ends).map(|ends| ends[ends.len() - 1] + 1 - ends[0]).sum();
            assert_eq!(counted, places.len(), "of {places:?}");
        }
    }

    #[test]
    fn phases_are_named_all_or_none_and_never_over_a_mark() {
        let mark = Label { x: 100, word: "1".to_owned() };
        assert_eq!(phase_labels(&[(0, 80), (200, 300)], &[mark]).len(), 2);
        assert!(phase_labels(&[(0, 80), (200, 220)], &[]).is_empty(), "one is too short");
        let mark = Label { x: 40, word: "1".to_owned() };
        assert!(phase_labels(&[(0, 80), (200, 300)], &[mark]).is_empty(), "a mark is in the way");
    }
}
