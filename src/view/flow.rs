//! The watched flow in one line: its mean rate, how much it swings, over which time, and what it is the rate of. It is
//! on screen at all times when it is known, so it is cut to any width, the least needed figures first.

mod state;

use super::Tone;
use super::canvas::{Canvas, cells};
use super::format::{Count, Scale, Seconds, Share, speed};
use super::lines::{Piece, fitting};
use super::text::plural;
use crate::derive::flow::DatagramTest;
use crate::derive::jitter::STEADY;
use crate::derive::{Card, FlowBasis, Metrics, Test, benchmarks};
use crate::sample::Word;
use crate::state::Units;
pub(super) use state::{has_outliers, state_of, state_word, was_unsteady};

/// From this coefficient of variation on the rate swings; below [`STEADY`] it is steady.
pub(super) const SWINGS: f64 = 0.10;

/// Draws as much of the line as fits: the figures of the border, then what they are of; none of it before there is a rate. Returns
/// the cells used. `sign` stands before the deviation.
pub(super) fn line(canvas: &mut Canvas, (x, y, width): (u16, u16, u16), metrics: &Metrics, sign: &str) -> Option<u16> {
    let mut figures = figures(metrics, None, sign);
    figures.first()?;
    figures.push(Piece::new(LAST_RANK, Tone::Title, format!(" · {}", what(metrics))));
    let mut used = 0;
    for Piece { tone, text, .. } in fitting(figures, usize::from(width), 0) {
        used += canvas.left(x + used, y, width - used, tone, text);
    }
    Some(used)
}

/// The upper border of the graph, over the whole width: the word for what is shown, what it is, and at the right its rate and
/// spread; after a pin what they were before.
pub(super) fn border(
    canvas: &mut Canvas,
    y: u16,
    (metrics, was, is_focused): (&Metrics, Option<&Card>, bool),
    sign: &str,
) -> u16 {
    let width = usize::from(canvas.area.width);
    let word = if is_test(metrics) { "Test" } else { "Link" };
    let (tone, mark) = if is_focused { (Tone::FocusedTitle, '▸') } else { (Tone::Title, ' ') };
    let used = canvas.left(1, y, canvas.area.width, tone, format_args!("{mark}{word} "));
    let x = 2 + used;
    let room = width.saturating_sub(usize::from(x) + 2);
    let what = what(metrics);
    let mut figures = figures(metrics, was, sign);
    // Those of a test that has ended begin with it.
    if metrics.subject.jitter.is_some() && is_test(metrics) && metrics.ended_test().is_none() {
        let (tone, word) = state_word(metrics);
        figures.insert(0, Piece::new(1, tone, format!("{word} ")));
    }
    let first: usize =
        figures.iter().filter(|figure| figure.rank <= OF_FIRST_RANK).map(|figure| cells(&figure.text)).sum();
    let reserved = (cells(&what) + 3).min(room * 2 / 5).min(room.saturating_sub(first + 2));
    let figures = fitting(figures, room.saturating_sub(reserved + 2), 0);
    let needed: usize = figures.iter().map(|figure| cells(&figure.text)).sum();
    let left = room.saturating_sub(needed + if needed > 0 { 5 } else { 2 });
    if left >= LEAST_FOR_WHAT {
        let left = u16::try_from(left).unwrap_or(0);
        canvas.glyph(x, y, Tone::Muted, ' ');
        let used = canvas.left(x + 1, y, left, Tone::Title, in_whole_parts(&what, usize::from(left)));
        canvas.glyph(x + 1 + used, y, Tone::Muted, ' ');
    }
    if needed == 0 {
        return used;
    }
    let mut x = u16::try_from(width.saturating_sub(needed + 4)).unwrap_or(0);
    x += canvas.left(x, y, 1, Tone::Muted, ' ');
    for Piece { tone, text, .. } in figures {
        x += canvas.left(x, y, canvas.area.width, tone, text);
    }
    canvas.glyph(x, y, Tone::Muted, ' ');
    used
}

/// The upper border of a test in bands: the word, and what is tested. Returns the cells of both.
pub(super) fn name(canvas: &mut Canvas, y: u16, metrics: &Metrics) -> u16 {
    let used = canvas.left(1, y, canvas.area.width, Tone::FocusedTitle, " Test ");
    let what = what(metrics);
    let room = canvas.area.width.saturating_sub(used + 6);
    let text = in_whole_parts(&what, usize::from(room));
    let more = canvas.left(used + 2, y, room + 2, Tone::Title, format_args!(" {text} "));
    used + more
}

/// As much of what is tested as fits, ending where a comma stands, or the receiver alone; all of it where not even that fits, to be cut.
fn in_whole_parts(text: &str, width: usize) -> &str {
    let receiver = text.find('→').map_or(text, |at| &text[at..]);
    let parts = [text, receiver].into_iter().flat_map(|text| {
        let ends = std::iter::once(text.len()).chain(text.rmatch_indices(", ").map(|(end, _)| end));
        ends.map(move |end| &text[..end])
    });
    parts.filter(|part| cells(part) <= width).max_by_key(|part| cells(part)).unwrap_or(text)
}

/// Rate and spread, now and before the pin, are worth more than what they are of.
const OF_FIRST_RANK: u8 = 2;
/// What the figures are of is dropped first where there is no room.
const LAST_RANK: u8 = 9;
/// Fewer cells say nothing of what is shown.
const LEAST_FOR_WHAT: usize = 8;

/// Whether something is tested: connections are measured, a benchmark's program runs, or a thread is an end of one. Else the
/// rate is a link's alone.
fn is_test(metrics: &Metrics) -> bool {
    let is_of_link = matches!(metrics.subject.flow.basis, Some(FlowBasis::Link(_)));
    !is_of_link
        || metrics.test.is_some()
        || benchmarks::words(&metrics.subject.benchmarks).is_some()
        || metrics.subject.threads.iter().any(|thread| thread.sample.side.is_some())
}

/// What the rate is the rate of: the test in its program's words, its two ends, or how many connections; a link's name where only
/// that is known.
pub(super) fn what(metrics: &Metrics) -> String {
    let link = match &metrics.subject.flow.basis {
        Some(FlowBasis::Link(name)) => Some(name),
        _ => None,
    };
    let test = benchmarks::words(&metrics.subject.benchmarks).or_else(|| {
        let flow = metrics.subject.flow.connections.iter().find(|connection| connection.carries)?;
        Some(format!("{} → {}, {}", flow.from.address.ip(), flow.to.address, flow.proto().word().to_uppercase()))
    });
    match (test, link) {
        (Some(test), Some(link)) => format!("{test}, rate of link {link}"),
        (Some(test), None) => test,
        (None, Some(link)) if is_test(metrics) => format!("rate of link {link}"),
        (None, Some(link)) => link.clone(),
        (None, None) => match metrics.subject.flow.basis {
            Some(FlowBasis::Datagrams(count)) => plural(count, "UDP stream"),
            Some(FlowBasis::Sockets(count)) => plural(count, "connection"),
            _ => "no traffic".to_owned(),
        },
    }
}

/// The figures of the border in the order they stand.
pub(super) fn figures(metrics: &Metrics, was: Option<&Card>, sign: &str) -> Vec<Piece> {
    let piece = Piece::new;
    if let Some(ended) = metrics.ended_test() {
        return result(ended, metrics.machine.at_ns);
    }
    let Some(jitter) = &metrics.subject.jitter else {
        // At first there are too few rates, and after a pin those before it do not count.
        let rate =
            |rate| [piece(0, Tone::Title, speed(rate)), piece(1, Tone::Muted, " · spread not known yet".to_owned())];
        return metrics.subject.flow.bits_per_s.map(rate).into_iter().flatten().collect();
    };
    let scale = Scale::of(jitter.mean, Units::Bits);
    let number = |rate| scale.number(rate);
    let tone = tone(jitter.cv);
    let beside = beside(metrics);
    let proto = if beside.is_some() { "TCP " } else { "" };
    let mut all = vec![piece(0, tone, format!("{proto}{}", scale.with_unit(jitter.mean))).up_to(proto.len() + 11)];
    all.push(piece(7, Tone::Title, format!(" {sign} {}", number(jitter.deviation))).up_to(sign.len() + 6));
    all.extend(beside.map(|text| piece(2, Tone::Title, text)));
    all.extend(jitter.cv.map(|cv| piece(1, tone, format!(" · CV {}", Share(cv))).up_to(11)));
    all.extend(was.map(|card| {
        let before = &card.before.jitter;
        let cv = before.cv.map_or_else(String::new, |cv| format!(", CV {}", Share(cv)));
        piece(2, Tone::Title, format!(" · was {}{cv}", number(before.mean)))
    }));
    all.extend([
        piece(5, Tone::Title, format!(" · p5 {}", number(jitter.p5))).up_to(10),
        piece(8, Tone::Title, format!(" · p50 {}", number(jitter.p50))).up_to(11),
        piece(6, Tone::Title, format!(" · p95 {}", number(jitter.p95))).up_to(11),
        piece(4, Tone::Title, format!(" · longest dip {}", Seconds(jitter.longest_dip_s))).up_to(20),
        piece(3, Tone::Title, format!(" · over {}", Seconds(jitter.window_s))).up_to(13),
    ]);
    all
}

/// What a test has come to that has ended: its mean rate and spread, what it lost, how long it ran, how long ago.
fn result(test: &Test, now_ns: u64) -> Vec<Piece> {
    let piece = Piece::new;
    let seconds = |from_ns: u64, to_ns: u64| Seconds((to_ns.saturating_sub(from_ns) as f64 / 1e9).round());
    let ended_ns = test.ended_ns.unwrap_or(now_ns);
    let mean = test.mean.map_or_else(String::new, |mean| format!(", mean {}", speed(mean.bits_per_s)));
    let mut all = vec![piece(0, Tone::Title, format!("stopped {} ago{mean}", seconds(ended_ns, now_ns)))];
    // What the mean covers, where there is one.
    let over =
        test.mean.map_or_else(|| seconds(test.began_ns, test.metrics.machine.at_ns), |mean| Seconds(mean.known_s));
    all.push(piece(1, Tone::Title, format!(" over {over}")));
    let lost = if test.lost > 0.0 { Tone::Warning } else { Tone::Title };
    all.push(piece(2, lost, format!(" · {} lost", Count(Some(test.lost)))));
    all.extend(test.metrics.jitter.as_ref().and_then(|jitter| {
        let cv = jitter.cv?;
        Some(piece(3, tone(jitter.cv), format!(" · CV {} in its last {}", Share(cv), Seconds(jitter.window_s))))
    }));
    all
}

/// How loud a coefficient of variation is.
pub(super) fn tone(cv: Option<f64>) -> Tone {
    match cv {
        Some(cv) if cv >= SWINGS => Tone::Warning,
        Some(cv) if cv < STEADY => Tone::Good,
        _ => Tone::Title,
    }
}

/// The rate of UDP tests that run besides the connections of the line.
pub(super) fn beside(metrics: &Metrics) -> Option<String> {
    let datagrams = &metrics.subject.flow.tests;
    let is_of_tcp = matches!(metrics.subject.flow.basis, Some(FlowBasis::Sockets(_))) && !datagrams.is_empty();
    let rate = |test: &DatagramTest| test.received.or(test.sent).map(|rate| rate.bits_per_s);
    let rates = || datagrams.iter().map(rate).sum::<Option<f64>>();
    is_of_tcp.then(rates).map(|rates| match rates {
        Some(rate) => format!(" + UDP {}", speed(rate)),
        None => " + UDP at an unknown rate".to_owned(),
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::derive::flow::DatagramRate;
    use crate::derive::{FlowMetrics, Jitter, TestMetrics};
    use crate::sample::{Benchmark, Direction, Program, Proto, Side};
    use crate::view::canvas::Area;

    pub(in crate::view::flow) const SPREAD: Jitter = Jitter {
        bins: 300,
        bin_s: 0.1,
        window_s: 30.0,
        mean: 24.1e9,
        deviation: 9.2e9,
        cv: Some(0.382),
        p5: 13.9e9,
        p50: 34.1e9,
        p95: 35.6e9,
        longest_dip_s: 2.1,
    };

    fn shown(width: usize, basis: &FlowBasis) -> String {
        shown_beside(width, basis, &[], &[])
    }

    fn shown_beside(width: usize, basis: &FlowBasis, tests: &[Benchmark], datagrams: &[DatagramTest]) -> String {
        let flow = FlowMetrics { basis: Some(basis.clone()), tests: datagrams.to_vec(), ..FlowMetrics::default() };
        let benchmarks = tests.to_vec();
        let metrics =
            Metrics::of_everything(TestMetrics { flow, benchmarks, jitter: Some(SPREAD), ..TestMetrics::default() });
        let width = u16::try_from(width).expect("a width");
        let mut canvas = Canvas::new(Area::new(0, 0, width, 1));
        line(&mut canvas, (0, 0, width), &metrics, "±").expect("there is a rate");
        canvas.spans().map(|span| span.text.to_owned()).collect()
    }

    #[test]
    fn the_line_says_what_it_can_and_stays_within_its_width() {
        assert_eq!(
            shown(200, &FlowBasis::Sockets(2)),
            "24.1 Gbit/s ± 9.20 · CV 38 % · p5 13.9 · p50 34.1 · p95 35.6 · longest dip 2.1 s · over 30 s · 2 connections"
        );
        assert_eq!(shown(40, &FlowBasis::Sockets(1)), "24.1 Gbit/s · CV 38 % · over 30 s", "the window next");
        assert!(shown(200, &FlowBasis::Link("docker0".into())).ends_with(" · docker0"), "what it is the rate of");
        for width in 0..130 {
            assert!(cells(&shown(width, &FlowBasis::Sockets(1))) <= width, "within {width}");
        }
    }

    #[test]
    fn what_is_tested_is_cut_where_a_part_of_it_ends() {
        let reported = |width| in_whole_parts("172.17.0.2 → 172.17.0.3:5201, TCP", width);
        assert_eq!(
            [33, 32, 28].map(reported),
            ["172.17.0.2 → 172.17.0.3:5201, TCP", "172.17.0.2 → 172.17.0.3:5201", "172.17.0.2 → 172.17.0.3:5201"]
        );
        assert_eq!(
            [24, 18, 9].map(reported),
            ["→ 172.17.0.3:5201, TCP", "→ 172.17.0.3:5201", "172.17.0.2 → 172.17.0.3:5201, TCP"]
        );
    }

    #[test]
    fn udp_beside_it_is_not_left_out() {
        let rate = |bits_per_s| Some(DatagramRate { packets_per_s: Some(1e3), bits_per_s });
        let test =
            |received| DatagramTest { streams: 1, length_bytes: Some(1_448), received, ..DatagramTest::default() };
        let of = FlowBasis::Sockets(1);
        let reported = |tests: &[DatagramTest]| shown_beside(70, &of, &[], tests);
        assert_eq!(reported(&[test(rate(5e8))]), "TCP 24.1 Gbit/s + UDP 500 Mbit/s · CV 38 % · p5 13.9 · over 30 s");
        assert!(reported(&[test(None)]).contains(" + UDP at an unknown rate"), "it is there");
        let alone = shown_beside(60, &FlowBasis::Datagrams(1), &[], &[test(rate(5e8))]);
        assert!(!alone.contains('+'), "the line is of UDP itself: {alone}");
    }

    fn running(side: Side) -> Benchmark {
        Benchmark {
            target: (side == Side::Client).then(|| "198.18.0.1".to_owned()),
            proto: Some(Proto::Tcp),
            streams: Some(8),
            direction: Some(Direction::Reverse),
            ..Benchmark::new(1, Program::Iperf3, side, 5201)
        }
    }

    #[test]
    fn the_running_test_is_named_where_there_is_room() {
        let of = FlowBasis::Sockets(8);
        let (client, server) = (running(Side::Client), running(Side::Server));
        let both = shown_beside(200, &of, &[server.clone(), client.clone()], &[]);
        let words = ", TCP, 8 streams, reverse";
        assert!(both.ends_with(&format!(" · over 30 s · iperf3 → 198.18.0.1:5201{words}")), "the client's: {both}");
        let alone = shown_beside(200, &of, std::slice::from_ref(&server), &[]);
        assert!(alone.ends_with(&format!(" · iperf3 -s :5201{words}")), "its client is elsewhere: {alone}");
        let two = shown_beside(200, &of, &[client.clone(), client.clone()], &[]);
        assert!(two.ends_with(", reverse (+1 more)"), "of two tests one, and that there is another: {two}");
        let idle = Benchmark { streams: None, direction: None, proto: None, ..server };
        assert!(!shown_beside(200, &of, &[idle], &[]).contains("iperf3"), "a server that waits is no test");
        for width in 0..180 {
            let text = shown_beside(width, &of, std::slice::from_ref(&client), &[]);
            assert!(cells(&text) <= width, "within {width}: {text}");
        }
    }
}
