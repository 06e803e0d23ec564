//! The picture of docs/perfetto.md: a part of a trace of the built-in recording, drawn from its packets as Perfetto's lanes lie.
//!
//! `INSTA_UPDATE=always cargo test --test pure traces::picture::` writes it anew.

use super::trace_reader::ReadTrack;
use super::{shipped, trace_of};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// The part that is drawn, s after the first sample.
const FROM_S: f64 = 5.0;
const TO_S: f64 = 50.0;
const WIDTH: f64 = 900.0;
const LEFT: f64 = 190.0;
const RIGHT: f64 = 12.0;
const LANE: f64 = 24.0;
const CURVE: f64 = 72.0;
/// Of cores, by their number: enough to be told from the one before.
const COLORS: [&str; 6] = ["#5b8ff9", "#61ddaa", "#f6bd16", "#7262fd", "#78d3f8", "#f6903d"];

struct Drawing {
    svg: String,
    y: f64,
    origin_ns: u64,
}

impl Drawing {
    fn x(&self, at_ns: u64) -> f64 {
        let seconds = (at_ns as f64 - self.origin_ns as f64) / 1e9;
        let share = (seconds.clamp(FROM_S, TO_S) - FROM_S) / (TO_S - FROM_S);
        LEFT + share * (WIDTH - LEFT - RIGHT)
    }

    fn text(&mut self, x: f64, y: f64, text: &str, beside: &str) {
        let text = text.replace('&', "&amp;").replace('<', "&lt;");
        let _ = writeln!(self.svg, "<text x=\"{x:.1}\" y=\"{y:.1}\"{beside}>{text}</text>");
    }

    fn name(&mut self, name: &str) {
        let y = self.y + 16.0;
        self.text(8.0, y, name, "");
    }

    fn slices(&mut self, name: &str, track: &ReadTrack, color: impl Fn(&str) -> usize) {
        self.name(name);
        for slice in &track.slices {
            let (from, to) = (self.x(slice.from_ns), self.x(slice.to_ns));
            if to - from < 0.1 {
                continue;
            }
            let (y, fill) = (self.y + 2.0, COLORS[color(&slice.name) % COLORS.len()]);
            let width = to - from;
            let _ = writeln!(
                self.svg,
                "<rect x=\"{from:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"20\" fill=\"{fill}\" stroke=\"#fff\" stroke-width=\"0.5\"/>"
            );
            if width > slice.name.chars().count() as f64 * 7.0 {
                self.text(from + 4.0, y + 14.0, &slice.name, " fill=\"#000\"");
            }
        }
        self.y += LANE;
    }

    fn instants(&mut self, name: &str, track: &ReadTrack) {
        self.name(name);
        for (at_ns, _) in &track.instants {
            let (x, y) = (self.x(*at_ns), self.y + 4.0);
            if x > LEFT && x < WIDTH - RIGHT {
                let _ = writeln!(self.svg, "<path d=\"M{x:.1} {y:.1}l4 8h-2.5v8h-3v-8h-2.5z\" fill=\"#c2185b\"/>");
            }
        }
        self.y += LANE;
    }

    fn counter(&mut self, name: &str, track: &ReadTrack) {
        self.name(name);
        let most = track.values.iter().map(|(_, value)| *value).fold(0.0, f64::max).max(1.0);
        let bottom = self.y + CURVE - 4.0;
        let height = |value: f64| bottom - value / most * (CURVE - 10.0);
        let end = WIDTH - RIGHT;
        let mut path = format!("M{LEFT:.1} {bottom:.1}");
        for (at_ns, value) in &track.values {
            let (x, y) = (self.x(*at_ns), height(*value));
            let _ = write!(path, "H{x:.1}V{y:.1}");
        }
        let _ = writeln!(
            self.svg,
            "<path d=\"{path}H{end:.1}V{bottom:.1}z\" fill=\"#b7d3ff\" stroke=\"#1f5fbf\" stroke-width=\"1\"/>"
        );
        let y = self.y + 32.0;
        self.text(8.0, y, &format!("up to {:.1} Gbit/s", most / 1e9), " fill=\"#666\"");
        self.y += CURVE;
    }
}

/// Of each named track one, below the one of which it is told.
fn below<'a>(tracks: &'a BTreeMap<u64, ReadTrack>, number: u64, name: &str) -> &'a ReadTrack {
    let mut own = tracks.values().filter(|track| track.below == Some(number));
    own.find(|track| track.name.starts_with(name)).unwrap_or_else(|| panic!("{name} is there"))
}

fn core(name: &str) -> usize {
    name.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn picture() -> String {
    let all = shipped();
    let tracks = trace_of(&all);
    let named = |name: &str| tracks.values().find(|track| track.name.starts_with(name)).expect("it is there");
    let svg = String::new();
    let mut drawing = Drawing { svg, y: 34.0, origin_ns: all[0].machine.at_ns };
    drawing.counter("test 1: rate", below(&tracks, named("test 1").number, "rate"));
    drawing.slices("test 1: limit", below(&tracks, named("test 1").number, "limit"), str::len);
    for thread in tracks.values().filter(|track| track.thread.is_some()) {
        let (_, tid) = thread.thread.unwrap_or_default();
        drawing.slices(&format!("{} {tid}: core", thread.name), thread, core);
        drawing.instants("  migrations", below(&tracks, thread.number, "migrations"));
    }
    for name in ["core 4: watched threads", "core 6: watched threads"] {
        drawing.slices(name, named(name), core);
    }
    drawing.instants("pins, marks", named("pins, settings"));
    let bottom = drawing.y;
    for second in (10..50).step_by(10) {
        let x = drawing.x(drawing.origin_ns + second * 1_000_000_000);
        drawing.text(x, 22.0, &format!("{second} s"), " fill=\"#666\" text-anchor=\"middle\"");
        let _ = writeln!(drawing.svg, "<path d=\"M{x:.1} 28V{bottom:.1}\" stroke=\"#000\" stroke-opacity=\"0.12\"/>");
    }
    let height = bottom + 8.0;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH:.0} {height:.0}\" role=\"img\" \
         font-family=\"'DejaVu Sans',Roboto,Helvetica,sans-serif\" font-size=\"11.5\" fill=\"#1a1a1a\">\n\
         <title>A trace that vnettop convert wrote: rate, limit, the core of each thread, migrations, two cores, pins</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{}</svg>\n",
        drawing.svg
    )
}

#[test]
fn the_picture_is_of_a_trace_of_today() {
    let made = picture();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/trace.svg");
    if std::env::var("INSTA_UPDATE").is_ok_and(|how| how == "always") {
        std::fs::write(&path, &made).expect("assets can be written to");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == made,
        "assets/trace.svg is of another day; INSTA_UPDATE=always cargo test --test pure traces::picture::"
    );
}
