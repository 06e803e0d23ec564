//! The path of a test from end to end, a column a link: name, rate and how many times its nominal speed, losses and cores, with the
//! threads at the ends and the programs between. Where it is too long for the width what matters least is left out, then it is
//! wrapped. What a key has done stands in the line above it, or in rows below it.

mod places;

use super::canvas::{Area, Canvas, cells};
use super::format::{Count, Seconds};
use super::path;
use super::text::{plural, wrap};
use super::{Tone, finding};
use crate::action::Action;
use crate::derive::paths::HopMetrics;
use crate::derive::{LinkMetrics, Test};
use crate::sample::LinkKey;
use crate::state::State;
use places::{FORMS_IN_A_ROW, PathPlace, PlaceFact, Wording, places};

/// Rows of a column: its name, and what is known of it.
pub(super) const ROWS: u16 = 3;
/// Between two columns: at least ` ═▶ `.
const JOINT: usize = 4;
/// Where the whole path fits into one line with it: ` ▶ `.
const TIGHT: usize = 3;
/// From so many columns on the line above the path has room for the time that its figures are of.
const WIDE: u16 = 100;

/// Rows that a path takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct PathHeights {
    /// With a row of what is known of each place.
    pub least: u16,
    /// With all that is known.
    pub most: u16,
    /// Each number of rows in which it shows more than in fewer.
    pub steps: [u16; 4],
}

/// Rows that it takes with this width; one where nothing is known, to say so.
pub(super) fn heights(state: &State, width: u16) -> PathHeights {
    let group = state.metrics().and_then(|metrics| Some((metrics, path::groups(metrics).into_iter().next()?)));
    let Some((metrics, group)) = group else { return PathHeights { least: 1, most: 1, steps: [1; 4] } };
    let places = places(state, metrics, &group);
    let height = |rows: u16, wording: Wording| {
        let lines = wrapped(&places, usize::from(width - 4), (rows, wording)).len();
        u16::try_from(lines).unwrap_or(u16::MAX).saturating_mul(rows)
    };
    let at_least = |rows: u16| Wording::ALL.map(|wording| height(rows, wording)).into_iter().fold(u16::MAX, u16::min);
    let most = height(ROWS, Wording::Whole);
    let (least, facts) = (at_least(ROWS - 1), at_least(ROWS));
    let names = in_a_row(&places, usize::from(width - 4)).map_or_else(|| height(NAMES.0, NAMES.1), |_| 1);
    PathHeights { least, most, steps: [names, least, facts, most] }
}

/// The path.
pub(super) fn prepare(state: &State, area: Area) -> Canvas {
    let mut canvas = Canvas::new(area);
    let Some(metrics) = state.metrics().filter(|_| area.height > 0) else { return canvas };
    let width = area.width - 2;
    let groups = path::groups(metrics);
    let Some(group) = groups.first() else {
        canvas.left(1, 0, width, Tone::Muted, "no connection of a watched program yet");
        return canvas;
    };
    let places = places(state, metrics, group);
    if let Some(((rows, wording), lines)) = fitting(&places, usize::from(width), area.height) {
        let mut y = 0;
        for (at, line) in lines.iter().enumerate() {
            columns(&mut canvas, (y, rows, wording), line, (at > 0, at + 1 < lines.len()));
            y += rows;
        }
    } else if let Some(row) = in_a_row(&places, usize::from(width)) {
        write_row(&mut canvas, &row, usize::from(width));
    } else {
        let lines = wrapped(&places, usize::from(width), NAMES);
        for (at, (y, line)) in (0..area.height).zip(&lines).enumerate() {
            columns(&mut canvas, (y, 1, NAMES.1), line, (at > 0, at + 1 < lines.len()));
        }
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

/// The same where it does not, in lines for rows below the path, in a screen of this width.
pub(super) fn notice_lines(state: &State, width: u16) -> Vec<PlaceFact> {
    if notice(state, width).is_some() {
        return Vec::new();
    }
    let lines = |(tone, text): (Tone, &str)| wrap(text, width - 4).into_iter().map(move |line| (tone, line)).collect();
    finding::notices(state).flat_map::<Vec<PlaceFact>, _>(lines).collect()
}

/// For the line above the path, in so many rows: what is lost on all of it, where no row has it, what the sign after a rate means, where
/// a link may have one, the time that the figures are of, and how many paths there are beside the one that is shown.
pub(super) fn title(state: &State, Area { width, height, .. }: Area) -> String {
    let metrics = state.metrics();
    let groups = metrics.map(path::groups).unwrap_or_default();
    let key = state.keys().key("paths");
    let hops = groups.first().and_then(|group| group.path.as_ref()).map_or(&[][..], |path| &path.hops);
    // The rates of links hold what other tests send over them too.
    let over_these = |test: &Test| {
        let is_here = |link: LinkKey| hops.iter().filter_map(|hop| hop.link).any(|one| one.facts.key() == link);
        test.ended_ns.is_none() && test.metrics.paths.iter().flat_map(|path| &path.hops).any(|hop| is_here(hop.link))
    };
    let running = metrics.map_or(0, |metrics| metrics.tests.iter().filter(|test| over_these(test)).count());
    let mut parts: Vec<String> = (running > 1).then(|| "rates of all tests".to_owned()).into_iter().collect();
    let lost = hops.iter().filter_map(HopMetrics::all_drops_per_s).reduce(|all, one| all + one);
    parts.extend(lost.filter(|_| height < ROWS).map(|lost| format!("{} lost/s", Count(Some(lost)))));
    // As long as it is this path, whatever it carries: the line stands still.
    let has_times = hops.iter().filter_map(|hop| hop.link).any(LinkMetrics::has_times_label);
    parts.extend(has_times.then(|| "× of nominal speed".to_owned()));
    let elapsed_s = metrics.and_then(|metrics| metrics.machine.elapsed_s).filter(|_| width >= WIDE && !hops.is_empty());
    parts.extend(elapsed_s.map(|seconds| format!("over {}", Seconds(seconds))));
    parts.push(match groups.len() {
        0 | 1 => format!("hop by hop: {key}"),
        more => format!("hop by hop, {} beside it: {key}", plural(more - 1, "path")),
    });
    parts.join(" · ")
}

/// Rows of a place and its wording.
type Form = (u16, Wording);
/// The names alone.
const NAMES: Form = (1, Wording::Briefest);

/// The lines: with as many rows of each place as there is height for, then in as many words. None where no row is left for what is known.
fn fitting(places: &[PathPlace], width: usize, height: u16) -> Option<(Form, Vec<Vec<&PathPlace>>)> {
    let forms = (2..=ROWS).rev().flat_map(|rows| Wording::ALL.map(|wording| (rows, wording)));
    let mut lines = forms.map(|form| (form, wrapped(places, width, form)));
    lines.find(|((rows, _), lines)| usize::from(*rows) * lines.len() <= usize::from(height))
}

/// The places of a path in lines that fit, in this form.
fn wrapped(places: &[PathPlace], width: usize, (rows, wording): Form) -> Vec<Vec<&PathPlace>> {
    let whole: usize = places.iter().map(|place| place.width(rows, wording) + TIGHT).sum();
    if whole <= width + TIGHT {
        return vec![places.iter().collect()];
    }
    let mut lines: Vec<Vec<&PathPlace>> = Vec::new();
    let mut used = 0;
    for place in places {
        // A line comes from the one before, and goes on to the next.
        let needed = place.width(rows, wording) + JOINT;
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

/// `client 45 % ▶ veth1 34.8G ▶ docker0 ▶ veth2 34.8G ▶ server 92 %`, for where there is no row for more; none where it has no room.
fn in_a_row(places: &[PathPlace], room: usize) -> Option<Vec<[PlaceFact; 2]>> {
    let mut forms = (0..FORMS_IN_A_ROW).map(|form| places.iter().map(|place| place.in_a_row(form)).collect());
    forms.find(|row: &Vec<[PlaceFact; 2]>| width_of(row) <= room)
}

fn width_of(row: &[[PlaceFact; 2]]) -> usize {
    row.iter().flatten().map(|(_, text)| cells(text)).sum::<usize>() + row.len().saturating_sub(1) * TIGHT
}

/// Writes it, what room is left shared between its joints.
fn write_row(canvas: &mut Canvas, row: &[[PlaceFact; 2]], room: usize) {
    let joints = row.len().saturating_sub(1).max(1);
    let spare = room.saturating_sub(width_of(row));
    let mut x = 1;
    for (at, place) in row.iter().enumerate() {
        if at > 0 {
            let gap = TIGHT + spare / joints + usize::from(at <= spare % joints);
            joint(canvas, (x, 0), gap);
            x += u16::try_from(gap).unwrap_or(u16::MAX);
        }
        for (tone, text) in place {
            x += canvas.left(x, 0, canvas.area.width.saturating_sub(x + 1), *tone, text);
        }
    }
}

/// One line of places, the room that is left shared between them.
fn columns(
    canvas: &mut Canvas,
    (y, rows, wording): (u16, u16, Wording),
    line: &[&PathPlace],
    (comes, goes_on): (bool, bool),
) {
    let width = usize::from(canvas.area.width) - 2;
    let joints = line.len() - 1 + usize::from(comes) + usize::from(goes_on);
    let places: usize = line.iter().map(|place| place.width(rows, wording)).sum();
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
        let (tone, name) = place.name(wording);
        let named = canvas.left(x, y, canvas.area.width - 1, tone, name);
        for (below, (tone, text)) in (1..).zip(place.facts(rows, wording)) {
            canvas.left(x, y + below, canvas.area.width - 1, *tone, text);
        }
        let is_last = n + 1 == line.len();
        if !is_last || goes_on {
            let width = place.width(rows, wording);
            joint(canvas, (x + named, y), width - usize::from(named) + least + more(at));
            x += cell(width + least + more(at));
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
