//! Strips: a row of characters, one a second of a rate or one a slice of time of a thread's cores. It writes letters and
//! tones; what a node's colour is, the theme knows.

use super::Tone;
use super::canvas::Canvas;
use super::format::Interval;
use crate::derive::history::ThreadTrack;
use crate::derive::{Evidence, Metrics};
use crate::sample::{CoreId, CorePlace, Topology};
use std::collections::BTreeSet;
use std::ops::BitOrAssign;
use std::time::Duration;

/// Eight heights.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The block for a share between 0 and 1.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 0..=7")]
pub(crate) fn block(share: f64) -> char {
    BLOCKS[(share * 8.0).clamp(0.0, 7.0) as usize]
}

/// The block of so many eighths, one at least.
pub(crate) fn eighths(count: usize) -> char {
    BLOCKS[count.clamp(1, 8) - 1]
}

/// Rates below this share of the scale are not drawn: they would look like traffic next to what the scale is of.
const LEAST_SHARE: f64 = 0.001;

/// Rates, on the scale that all strips of the pane share; unknown and very low rates are gaps.
pub(crate) fn rates(canvas: &mut Canvas, (x, y): (u16, u16), tone: Tone, values: &[Option<f32>], most: f64) {
    for (at, value) in (x..).zip(values) {
        let share = value.map_or(0.0, |value| f64::from(value) / most);
        if share >= LEAST_SHARE {
            canvas.glyph(at, y, tone, block(share));
        }
    }
}

/// How the place of a thread is written: the node where there are several; else the core itself where its number is short enough,
/// else the level that tells the cores apart best.
pub(crate) struct CoreLetters<'a> {
    topology: &'a Topology,
    whole: bool,
    level: LevelName,
}

/// What stands in a strip that needs a word beside it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct StripSigns {
    /// Stays that begin with a digit alone.
    pub digits: bool,
    /// `*`.
    pub returned: bool,
}

impl StripSigns {
    fn of(stay: &[char]) -> Self {
        Self { digits: stay.iter().all(|glyph| !glyph.is_ascii_lowercase()), returned: stay.contains(&'*') }
    }
}

impl BitOrAssign for StripSigns {
    fn bitor_assign(&mut self, other: Self) {
        self.digits |= other.digits;
        self.returned |= other.returned;
    }
}

/// A level of the topology: its word, its number.
#[derive(Clone, Copy)]
struct LevelName {
    word: &'static str,
    number: fn(&CorePlace) -> Option<u32>,
}

const NODE: LevelName = LevelName { word: "node", number: |place| place.node };
const LLC: LevelName = LevelName { word: "llc", number: |place| place.llc };
const CLUSTER: LevelName = LevelName { word: "cluster", number: |place| place.cluster };

/// A stay of so many cells has room for a number of two digits and a bar, for the word, and for the core as well.
const ROOM_FOR_NUMBER: usize = 3;
const ROOM_FOR_WORD: usize = 10;
const ROOM_FOR_CORE: usize = 20;

impl<'a> CoreLetters<'a> {
    pub fn of(topology: &'a Topology) -> Self {
        let several =
            |level: LevelName| topology.cores.iter().filter_map(level.number).collect::<BTreeSet<u32>>().len() > 1;
        let few = topology.cores.last().is_none_or(|place| place.core < 36);
        let whole = topology.nodes <= 1 && few;
        let level = if whole || topology.nodes > 1 {
            NODE
        } else if several(LLC) {
            LLC
        } else {
            CLUSTER
        };
        Self { topology, whole, level }
    }

    /// What is written.
    pub fn word(&self) -> &'static str {
        match (self.whole, self.level.word) {
            (true, _) => "CORE",
            (_, "node") => "NODE",
            (_, "llc") => "LLC",
            _ => "CLUSTER",
        }
    }

    /// What a stay that begins with a 2 means, in words and in few.
    pub fn meaning(&self) -> [&'static str; 2] {
        match (self.whole, self.level.word) {
            (true, _) => ["migrated to core 2", "core 2"],
            (_, "node") => ["migrated to NUMA node 2", "node 2"],
            (_, "llc") => ["migrated to last-level cache 2", "cache 2"],
            _ => ["migrated to cluster 2", "cluster 2"],
        }
    }

    /// The number that is written, and that the tone is of.
    fn number(&self, core: CoreId) -> u32 {
        if self.whole { core } else { self.topology.place(core).and_then(self.level.number).unwrap_or(0) }
    }

    /// Colour by node, strength by core.
    fn tone(&self, core: CoreId, number: u32) -> Tone {
        let number = u8::try_from(number % 256).unwrap_or(0);
        match if self.whole { 0 } else { core % 3 } {
            0 => Tone::Node(number),
            1 => Tone::NodeBright(number),
            _ => Tone::NodeDim(number),
        }
    }

    /// A stay in so many cells: a bar that begins with where it is, in as many words as there is room for. It has `*` in each cell in
    /// which the thread left and came back.
    fn stay(&self, number: u32, stay: &Stay) -> Vec<char> {
        let &Stay { core, cells, ref returned, .. } = stay;
        let digit = char::from_digit(if self.whole { number } else { number % 10 }, 36).unwrap_or('?');
        let name = match (self.whole, cells) {
            (_, 0..ROOM_FOR_NUMBER) => digit.to_ascii_uppercase().to_string(),
            (true, ROOM_FOR_WORD..) => format!("core {number}"),
            (false, ROOM_FOR_CORE..) => format!("{}{number} core {core}", self.level.word),
            (false, ROOM_FOR_WORD..) => format!("{}{number}", self.level.word),
            _ => number.to_string(),
        };
        let mut text = vec!['▄'; cells];
        for &at in returned {
            text[at] = '*';
        }
        let is_free = |at: usize, name: &str| text[at..at + name.len()].iter().all(|glyph| *glyph == '▄');
        let at = (0..cells.saturating_sub(name.len())).find(|&at| is_free(at, &name));
        // When marks leave no place for the name, because a thread returns all the time, one mark gives way to a digit.
        let (at, name) = at.map_or_else(|| (0, digit.to_ascii_uppercase().to_string()), |at| (at, name));
        for (at, letter) in (at..cells).zip(name.chars()) {
            if text[at] == '▄' || cells >= ROOM_FOR_NUMBER {
                text[at] = letter;
            }
        }
        text
    }
}

/// The time that a strip of cores shows: so many slices, one a cell, each beginning at a multiple of its length, so that
/// what is over stands still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StripWindow {
    slice_ns: u64,
    /// Number of the slice that holds the newest instant.
    last: u64,
}

/// A slice where moves are known to the instant.
const SLICE_NS: u64 = 100_000_000;
/// A strip wider than this has room for slices of half of that.
const VERY_WIDE: u16 = 200;

impl StripWindow {
    /// Slices as fine as what is known: of a tenth of a second where moves are traced, of a tick where they are not.
    pub fn of(metrics: &Metrics, width: u16) -> Self {
        let traced = metrics.threads.iter().any(|thread| thread.evidence == Evidence::Traced);
        let slice_ns = match traced {
            true if width > VERY_WIDE => SLICE_NS / 2,
            true => SLICE_NS,
            false => metrics.machine.own.interval_ns.max(SLICE_NS),
        };
        let newest = metrics.threads.iter().map(|thread| thread.sample.at_ns).fold(metrics.machine.at_ns, u64::max);
        Self { slice_ns, last: newest / slice_ns }
    }

    /// Slices of this length, the last of them ending at an instant.
    pub fn until(end_ns: u64, slice_ns: u64) -> Self {
        Self { slice_ns, last: (end_ns / slice_ns).saturating_sub(1) }
    }

    /// The head of a strip of so many cells: what it shows, the time it spans, the length of a cell.
    pub fn head(self, width: u16, word: &str) -> String {
        let span = Interval(Duration::from_nanos(self.slice_ns.saturating_mul(u64::from(width))));
        let cell = Interval(Duration::from_nanos(self.slice_ns));
        let heads = [
            format!("{word}, LAST {span}, {cell} PER CELL"),
            format!("{word}, LAST {span}"),
            format!("{word}, {span}"),
            format!("LAST {span}"),
        ];
        let fits = |head: &String| head.len() <= usize::from(width);
        heads.into_iter().find(fits).unwrap_or_else(|| word.to_owned())
    }
}

/// A time on one core.
struct Stay {
    x: u16,
    cells: usize,
    core: CoreId,
    /// It came there within the first cell.
    came: bool,
    /// Cells in which it left and came back.
    returned: Vec<usize>,
}

/// Where a thread was, slice by slice, the newest at the right: each stay begins with its name, and has `*` where the thread left
/// the core and came back within the slice. Returns what of this there is.
pub(crate) fn cores(
    canvas: &mut Canvas,
    (x, y, width): (u16, u16, u16),
    letters: &CoreLetters<'_>,
    track: &ThreadTrack,
    window: StripWindow,
) -> StripSigns {
    let mut signs = StripSigns::default();
    for stay in stays((x, width), track, window) {
        let number = letters.number(stay.core);
        let tone = letters.tone(stay.core, number);
        let moved = Tone::Moved(u8::try_from(number % 256).unwrap_or(0));
        let text = letters.stay(number, &stay);
        signs |= StripSigns::of(&text);
        for (x, (at, glyph)) in (stay.x..).zip(text.into_iter().enumerate()) {
            let moved_here = (stay.came && at == 0) || stay.returned.contains(&at);
            canvas.glyph(x, y, if moved_here { moved } else { tone }, glyph);
        }
    }
    signs
}

fn stays((x, width): (u16, u16), track: &ThreadTrack, window: StripWindow) -> Vec<Stay> {
    let first = (window.last + 1).saturating_sub(u64::from(width));
    let from_ns = first * window.slice_ns;
    let mut trail = track.trail(from_ns).peekable();
    let mut core = trail.next_if(|&(at_ns, _)| at_ns <= from_ns).map(|(_, core)| core);
    let mut stays: Vec<Stay> = Vec::new();
    for (x, slice) in (x..).zip(first..=window.last) {
        let end_ns = (slice + 1) * window.slice_ns;
        let before = core;
        let mut moved = false;
        while let Some((_, to)) = trail.next_if(|&(at_ns, _)| at_ns < end_ns) {
            moved |= core.is_some_and(|from| from != to);
            core = Some(to);
        }
        let Some(core) = core else { continue };
        if let Some(stay) = stays.last_mut().filter(|_| before == Some(core)) {
            stay.returned.extend(moved.then_some(stay.cells));
            stay.cells += 1;
        } else {
            let returned = if moved && before == Some(core) { vec![0] } else { Vec::new() };
            stays.push(Stay { x, cells: 1, core, came: moved && before != Some(core), returned });
        }
    }
    stays
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::canvas::Area;

    #[test]
    fn a_stay_says_where_as_long_as_there_is_room_for_it() {
        let place = |core| CorePlace { core, online: true, node: Some(core / 2), ..CorePlace::default() };
        let topology = |cores, nodes| Topology { cores: (0..cores).map(place).collect(), nodes, ..Topology::default() };
        let (two, one) = (topology(4, 2), topology(4, 1));
        let reported = |topology: &Topology, cells| {
            let letters = CoreLetters::of(topology);
            let returned = if cells == 12 { vec![1, 4] } else { Vec::new() };
            let stay = Stay { x: 0, cells, core: 3, came: true, returned };
            letters.stay(letters.number(3), &stay).into_iter().collect::<String>()
        };
        let by_node = [1, 2, 3, 5, 11, 22].map(|cells| reported(&two, cells));
        assert_eq!(by_node, ["1", "1▄", "1▄▄", "1▄▄▄▄", "node1▄▄▄▄▄▄", "node1 core 3▄▄▄▄▄▄▄▄▄▄"]);
        assert_eq!([1, 3, 12].map(|cells| reported(&one, cells)), ["3", "3▄▄", "▄*▄▄*core 3▄"], "one node: the core");
    }

    #[test]
    fn next_to_nothing_is_not_drawn_beside_what_the_scale_is_of() {
        let mut canvas = Canvas::new(Area::new(0, 0, 9, 1));
        rates(&mut canvas, (0, 0), Tone::Good, &[Some(1e10), Some(5e9), Some(9e6), Some(0.0), None, Some(1e7)], 1e10);
        let drawn: Vec<_> = canvas.spans().map(|span| (span.x, span.text.to_owned())).collect();
        assert_eq!(drawn, [(0, "█▅".to_owned()), (5, "▁".to_owned())], "a thousandth is the least");
    }

    #[test]
    fn blocks_span_nothing_to_everything() {
        assert_eq!(block(0.0), '▁', "nothing is the lowest");
        assert_eq!(block(1.0), '█', "everything is the highest");
        assert_eq!(block(0.61), '▅', "between by eighths");
    }
}
