//! Every kind of plot, in both widths.

use super::*;

fn text() -> PlotText {
    PlotText { title: "rate <b> & \"x\"".to_owned(), description: "its mean is 1".to_owned() }
}

fn all(width: PlotWidth) -> [String; 4] {
    let x = PlotTime { from_s: 0.0, to_s: 60.0 };
    let done = PlotDone {
        saved: Some((10.0, "a dip")),
        pinned: vec![PlotPhase { from_s: 20.0, to_s: 90.0 }],
        marks_s: vec![30.0, 30.1],
    };
    let level = Some((5.0, "nominal 5 Gbit/s".to_owned()));
    let points = (0..600).map(|at| (f64::from(at) / 10.0, (at % 50 != 3).then_some(f64::from(at % 7)))).collect();
    let series = vec![LineSeries { color: PlotColor::Blue, points, band: Vec::new() }];
    let lanes = vec![Lane {
        name: "lost".to_owned(),
        color: PlotColor::Red,
        bars: vec![(1.0, 2.0, 5.0)],
        highest: "max 5.00/s".to_owned(),
    }];
    let row = |label: &str| HeatRow { label: label.to_owned(), cells: vec![Some(0.5), None, Some(1.0), Some(0.0)] };
    let run = StripRun { from_s: 0.0, to_s: 40.0, word: "core 3".to_owned(), color: PlotColor::Teal };
    let strip = StripRow { label: "<i>server</i>".to_owned(), runs: vec![run], ticks: vec![3.0] };
    let bar = BarRow {
        label: "a".to_owned(),
        value: Some(3.0),
        interval: Some((2.0, 4.0)),
        nominal: None,
        words: "3".to_owned(),
        color: PlotColor::Green,
    };
    [
        lines(
            &text(),
            width,
            &LinePlot { x, y_label: "Gbit/s".to_owned(), y_to: 7.0, series, lanes, level, done: done.clone() },
        ),
        heat(
            &text(),
            width,
            &HeatPlot { x, column_s: 15.0, rows: vec![row("core 0")], color: PlotColor::Blue, done: done.clone() },
        ),
        strips(&text(), width, &StripPlot { x, rows: vec![strip], done }),
        bars(&text(), width, &BarPlot { scale: BarScale::Linear, x_label: "rate, Gbit/s".to_owned(), rows: vec![bar] }),
    ]
}

#[test]
fn every_plot_has_a_role_a_title_and_a_description_and_only_the_colours_of_the_page() {
    for svg in all(PlotWidth::Wide).into_iter().chain(all(PlotWidth::Narrow)) {
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>"), "{svg}");
        assert!(svg.contains("role=\"img\""), "{svg}");
        assert!(svg.contains("<title>rate &lt;b&gt; &amp; &quot;x&quot;</title><desc>its mean is 1</desc>"), "{svg}");
        assert!(!svg.contains("\"#"), "a colour that is not the page's: {svg}");
        assert!(!svg.contains("<i>") && !svg.contains("<x>"), "names are escaped: {svg}");
        assert!(!svg.contains("NaN") && !svg.contains("inf\""), "{svg}");
    }
}

#[test]
fn what_has_no_length_or_no_value_is_drawn_as_nothing() {
    let x = PlotTime { from_s: 5.0, to_s: 5.0 };
    let none = LineSeries { color: PlotColor::Blue, points: vec![(5.0, Some(f64::NAN))], band: Vec::new() };
    let plot = LinePlot {
        x,
        y_label: String::new(),
        y_to: 0.0,
        series: vec![none],
        lanes: Vec::new(),
        level: None,
        done: PlotDone::default(),
    };
    let svg = lines(&text(), PlotWidth::Wide, &plot);
    assert!(svg.contains("</desc>") && !svg.contains("NaN"), "{svg}");
    let empty = BarPlot { scale: BarScale::Linear, x_label: String::new(), rows: Vec::new() };
    assert!(bars(&text(), PlotWidth::Narrow, &empty).ends_with("</svg>"));
}

#[test]
fn what_is_written_behind_a_bar_ends_within_the_drawing() {
    let words = "19.7 Gbit/s of 10.0 Gbit/s";
    let row = |value| BarRow {
        label: "eth0".to_owned(),
        value: Some(value),
        interval: None,
        nominal: None,
        words: words.to_owned(),
        color: PlotColor::Blue,
    };
    for width in [PlotWidth::Wide, PlotWidth::Narrow] {
        let svg = bars(
            &text(),
            width,
            &BarPlot { scale: BarScale::Linear, x_label: String::new(), rows: vec![row(19.7), row(3.0)] },
        );
        let ends = svg.match_indices(words).map(|(at, _)| {
            let (_, x) = svg[..at].rsplit_once(" x=\"").expect("a place");
            x.split('"').next().and_then(|x| x.parse::<f64>().ok()).expect("a number") + words.len() as f64 * 6.8
        });
        let ends: Vec<f64> = ends.collect();
        assert!(ends.len() == 2 && ends.iter().all(|end| *end <= f64::from(width.units())), "{width:?}: {ends:?}");
    }
}

/// Where each bar of this colour starts and how wide it is, and every word of the drawing.
fn drawn(svg: &str, color: &str) -> (Vec<(f64, f64)>, Vec<String>) {
    let number = |of: &str, name: &str| {
        let (_, rest) = of.split_once(&format!(" {name}=\""))?;
        rest.split('"').next()?.parse::<f64>().ok()
    };
    let rects = svg.split("<rect ").skip(1).map(|rest| format!(" {}", rest.split('>').next().unwrap_or_default()));
    let bars = rects
        .filter(|rect| rect.contains(color))
        .filter_map(|rect| Some((number(&rect, "x")?, number(&rect, "width")?)));
    let words = svg.split("</text>").filter_map(|part| Some(part.rsplit_once('>')?.1.trim().to_owned()));
    (bars.collect(), words.collect())
}

#[test]
fn a_lane_says_what_its_highest_bar_stands_for() {
    for width in [PlotWidth::Wide, PlotWidth::Narrow] {
        let [lines, ..] = all(width);
        assert!(drawn(&lines, "var(--red)").1.contains(&"max 5.00/s".to_owned()), "{width:?}: {lines}");
    }
}

#[test]
fn times_a_thousand_times_apart_are_read_beside_each_other() {
    let row = |p50: f64, p99: f64| BarRow {
        label: "stage".to_owned(),
        value: Some(p50),
        interval: Some((p50, p99)),
        nominal: None,
        words: String::new(),
        color: PlotColor::Blue,
    };
    let plot = || BarPlot {
        scale: BarScale::Logarithmic,
        x_label: "us".to_owned(),
        rows: vec![row(1.25, 2.25), row(10.3, 2_410.0)],
    };
    for width in [PlotWidth::Wide, PlotWidth::Narrow] {
        let (bars, words) = drawn(&bars(&text(), width, &plot()), "var(--blue)");
        let widths: Vec<f64> = bars.iter().map(|(_, width)| *width).collect();
        assert!(widths.len() == 2 && widths.iter().all(|width| *width >= 4.0), "both are seen: {widths:?}");
        assert!(widths[1] > 2.0 * widths[0], "the longer one is longer: {widths:?}");
        for power in ["1", "10", "100", "1000"] {
            assert!(words.contains(&power.to_owned()), "{width:?}: {power} is on the axis: {words:?}");
        }
    }
}
