//! A flame graph that stands still: a row a depth, from the top on; below each rectangle what it called. It needs
//! no pointer to be read: what is too narrow is one rectangle with others, names stand where they fit, and all of them are in titles.

use super::{PlotColor, PlotText, PlotWidth, framed};
use maud::{Markup, html};

/// What is drawn as one rectangle, with what it called.
#[derive(Debug, Clone, PartialEq)]
pub struct FlameFrame {
    /// As it is written in it, as far as there is room.
    pub name: String,
    /// What it is, before its share.
    pub title: String,
    /// Its colour, and how strong that is, 0 to 1.
    pub color: (PlotColor, f64),
    /// Share of the whole, 0 to 1.
    pub share: f64,
    /// Samples of it and of what it called; none where it was not sampled.
    pub samples: Option<u64>,
    /// What it called, from the left; together no more than itself.
    pub called: Vec<FlameFrame>,
}

/// Rows at most: those of deeper functions are left out.
const ROWS: usize = 48;
/// Height of a row, and what keeps text from its edges, units of the drawing.
const ROW: f64 = 18.0;
const INSET: f64 = 4.0;
/// About the width of a character, units of the drawing; fewer than these say nothing.
const CHARACTER: f64 = 6.7;
const LEAST_CHARACTERS: usize = 3;

/// A rectangle: its row, where it begins and ends as shares of the whole, and of what it is.
#[derive(Debug, Clone, PartialEq)]
struct FlameRect {
    row: usize,
    from: f64,
    to: f64,
    name: String,
    title: String,
    color: (PlotColor, f64),
}

/// The narrowest rectangle, share of the whole.
fn narrowest(width: PlotWidth) -> f64 {
    match width {
        PlotWidth::Wide => 0.003,
        PlotWidth::Narrow => 0.008,
    }
}

/// Draws it.
#[must_use]
pub fn flame(text: &PlotText, width: PlotWidth, root: &FlameFrame) -> String {
    let mut rects = Vec::new();
    lay_out(&mut rects, root, (0, 0.0), narrowest(width));
    let rows = rects.iter().map(|rect| rect.row + 1).max().unwrap_or(1);
    let units = f64::from(width.units());
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "48 rows at most")]
    let height = (rows as f64 * ROW + 2.0).ceil() as u32;
    let drawn = html! { @for rect in &rects { (drawn(rect, units)) } };
    framed(text, width, height, &drawn.into_string())
}

/// The rectangle of a frame that begins there, and those below it.
fn lay_out(rects: &mut Vec<FlameRect>, frame: &FlameFrame, (row, from): (usize, f64), narrowest: f64) {
    let samples = frame.samples.map_or_else(String::new, |samples| format!(", {samples} samples"));
    rects.push(FlameRect {
        row,
        from,
        to: from + frame.share,
        name: frame.name.clone(),
        title: format!("{}: {:.1} %{samples}", frame.title, frame.share * 100.0),
        color: frame.color,
    });
    if row + 1 == ROWS {
        return;
    }
    let (wide, narrow): (Vec<&FlameFrame>, Vec<_>) = frame.called.iter().partition(|one| one.share >= narrowest);
    let mut from = from;
    for one in wide {
        lay_out(rects, one, (row + 1, from), narrowest);
        from += one.share;
    }
    let rest: f64 = narrow.iter().map(|one| one.share).sum();
    if rest >= narrowest {
        let title = format!("{} more: {:.1} %", narrow.len(), rest * 100.0);
        rects
            .push(FlameRect { row: row + 1, from, to: from + rest, name: "…".to_owned(), title, color: frame.color });
    }
}

fn drawn(rect: &FlameRect, units: f64) -> Markup {
    let (x, wide) = (rect.from * units, (rect.to - rect.from) * units);
    let y = rect.row as f64 * ROW + 1.0;
    let (color, strength) = rect.color;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "characters of a line")]
    let room = ((wide - 2.0 * INSET) / CHARACTER).max(0.0) as usize;
    html! {
        g {
            title { (rect.title) }
            rect x=(number(x)) y=(number(y)) width=(number(wide)) height=(number(ROW)) fill=(color.css())
                fill-opacity=(strength) stroke="var(--back)" {}
            @if let Some(name) = shortened(&rect.name, room) {
                text x=(number(x + INSET)) y=(number(y + 13.0)) font-family=(super::FONT) font-size="12" fill="currentColor" { (name) }
            }
        }
    }
}

/// A tenth of a unit is finer than a pixel.
fn number(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

/// As much of a name as has room; none where that says nothing.
fn shortened(name: &str, room: usize) -> Option<String> {
    let count = name.chars().count();
    if count <= room {
        return Some(name.to_owned());
    }
    (room >= LEAST_CHARACTERS).then(|| name.chars().take(room - 1).chain(std::iter::once('…')).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(name: &str, share: f64, called: Vec<FlameFrame>) -> FlameFrame {
        let (title, color) = (format!("<{name}>"), (PlotColor::Blue, 0.5));
        FlameFrame { name: name.to_owned(), title, color, share, samples: Some(7), called }
    }

    /// A whole with two stages; one has many that are narrow.
    fn whole() -> FlameFrame {
        let narrow = (0..100).map(|nth| frame(&format!("n{nth}"), 0.001, Vec::new())).collect();
        let deep = (0..70).fold(frame("leaf", 0.25, Vec::new()), |below, _| frame("f", 0.25, vec![below]));
        frame("core 1", 1.0, vec![frame("large <b>", 0.6, vec![deep]), frame("small", 0.4, narrow)])
    }

    #[test]
    fn widths_add_up_and_what_is_called_lies_below_its_caller() {
        let (root, mut rects) = (whole(), Vec::new());
        lay_out(&mut rects, &root, (0, 0.0), 0.003);
        let stages: Vec<&FlameRect> = rects.iter().filter(|rect| rect.row == 1).collect();
        let sum: f64 = stages.iter().map(|rect| rect.to - rect.from).sum();
        assert!((sum - 1.0).abs() < 1e-9, "the stages are the whole: {sum}");
        assert_eq!(stages[0].name, "large <b>", "in their order");
        for rect in rects.iter().filter(|rect| rect.row > 0) {
            let is_above =
                |one: &&FlameRect| one.row + 1 == rect.row && one.from <= rect.from + 1e-9 && one.to >= rect.to - 1e-9;
            assert_eq!(rects.iter().filter(is_above).count(), 1, "{rect:?}");
        }
        for row in 0..ROWS {
            let mut row: Vec<&FlameRect> = rects.iter().filter(|rect| rect.row == row).collect();
            row.sort_by(|one, other| one.from.total_cmp(&other.from));
            assert!(row.windows(2).all(|two| two[0].to <= two[1].from + 1e-9), "none overlap: {row:?}");
        }
        let merged: Vec<&FlameRect> = rects.iter().filter(|rect| rect.name == "…").collect();
        assert_eq!(merged.len(), 1);
        assert!((merged[0].to - merged[0].from - 0.1).abs() < 1e-9 && merged[0].title == "100 more: 10.0 %");
        assert_eq!(rects.iter().map(|rect| rect.row).max(), Some(ROWS - 1), "its height is bounded");
    }

    #[test]
    fn names_are_escaped_and_stand_only_where_they_fit() {
        let text = PlotText { title: "what".to_owned(), description: "it did".to_owned() };
        for width in [PlotWidth::Wide, PlotWidth::Narrow] {
            let svg = flame(&text, width, &whole());
            assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>") && svg.contains("role=\"img\""), "{svg}");
            assert!(svg.contains("&lt;large &lt;b&gt;&gt;: 60.0 %, 7 samples") && !svg.contains("<b>"), "{svg}");
            assert!(!svg.contains("\"#"), "a colour that is not the page's");
        }
        let small = frame("core 1", 1.0, vec![frame("copy", 0.5, vec![frame("_copy_from_iter", 0.1, Vec::new())])]);
        let expected = "<svg class=\"narrow\" role=\"img\" viewBox=\"0 0 380 56\"><title>what</title><desc>it did</desc>\
            <g><title>&lt;core 1&gt;: 100.0 %, 7 samples</title><rect x=\"0\" y=\"1\" width=\"380\" height=\"18\" fill=\"var(--blue)\" \
            fill-opacity=\"0.5\" stroke=\"var(--back)\"></rect><text x=\"4\" y=\"14\" font-family=\"sans-serif\" font-size=\"12\" \
            fill=\"currentColor\">core 1</text></g>\
            <g><title>&lt;copy&gt;: 50.0 %, 7 samples</title><rect x=\"0\" y=\"19\" width=\"190\" height=\"18\" fill=\"var(--blue)\" \
            fill-opacity=\"0.5\" stroke=\"var(--back)\"></rect><text x=\"4\" y=\"32\" font-family=\"sans-serif\" font-size=\"12\" \
            fill=\"currentColor\">copy</text></g>\
            <g><title>&lt;_copy_from_iter&gt;: 10.0 %, 7 samples</title><rect x=\"0\" y=\"37\" width=\"38\" height=\"18\" \
            fill=\"var(--blue)\" fill-opacity=\"0.5\" stroke=\"var(--back)\"></rect><text x=\"4\" y=\"50\" font-family=\"sans-serif\" \
            font-size=\"12\" fill=\"currentColor\">_co…</text></g></svg>";
        assert_eq!(flame(&text, PlotWidth::Narrow, &small), expected);
        assert_eq!(shortened("nft_do_chain", 12).as_deref(), Some("nft_do_chain"));
        assert_eq!(shortened("nft_do_chain", 5).as_deref(), Some("nft_…"));
        assert_eq!(shortened("nft_do_chain", 2), None);
    }
}
