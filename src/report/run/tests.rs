//! A made-up card in its three forms.

use super::*;
use crate::derive::experiment::{Card, CardSide, Difference, Phase, PlacementStanding, QuantileChange, Verdict};
use crate::derive::jitter::Jitter;
use crate::derive::moves::{Evidence, MovesByClass};
use crate::derive::run::{
    CardLimit, CommandRun, DataRoundTrips, MovesSeen, PinComparison, SearchResult, SearchedPlacement, Seen,
    WatchedThreads,
};
use crate::derive::{Finding, FindingId, FlowBasis};
use crate::sample::{
    CoreSet, Host, PinMode, PlacedThread, PlacementClass, RunAsked, StretchSide, TestKind, ThreadId, TriedPlacement,
};
use std::sync::Arc;

fn jitter(mean: f64, deviation: f64) -> Jitter {
    Jitter {
        bins: 160,
        bin_s: 0.1,
        window_s: 19.8,
        mean,
        deviation,
        cv: Some(deviation / mean),
        p5: mean - deviation,
        p50: mean,
        p95: mean + deviation,
        longest_dip_s: 0.4,
    }
}

fn round_trips() -> DataRoundTrips {
    DataRoundTrips {
        connections: 2,
        readings: 198,
        least_us: Some(41),
        p50_us: 812.4,
        p99_us: 3301.0,
        interval: Some(Difference { estimate: 812.0, from: 790.0, to: 834.0 }),
        change: None,
    }
}

fn never() -> RunCard {
    RunCard {
        asked: RunAsked {
            wall_ms: 1_767_323_045_678,
            command: ["iperf3", "-c", "198.18.0.2"].map(str::to_owned).to_vec(),
            watch: vec!["iperf3".to_owned()],
            measure: None,
            pin: PinMode::Never,
            steer: crate::sample::SteerMode::Never,
            tune: false,
            ends_only: false,
            repeat: 1,
            stretch_ns: 10_000_000_000,
            settle_ns: 2_000_000_000,
            max_cv_ppm: Some(50_000),
            max_drops: Some(0),
        },
        measured: None,
        host: Arc::new(Host {
            name: "kp920".to_owned(),
            kernel: "6.6.0".to_owned(),
            arch: "aarch64".to_owned(),
            ..Host::default()
        }),
        cores: 128,
        runs: vec![CommandRun { from_ns: 0, to_ns: Some(20_040_000_000), code: Some(0) }],
        watched: vec![WatchedThreads { name: "iperf3".to_owned(), role: "client", threads: 1 }],
        basis: Some(FlowBasis::Sockets(2)),
        why_link: None,
        jitter: Some(jitter(28.8e9, 8.71e9)),
        moves: Some(MovesSeen {
            per_s: 37.25,
            by_class: MovesByClass { node: 25, cluster: 12, ..MovesByClass::default() },
            evidence: Evidence::Counted,
        }),
        reported: Vec::new(),
        unread: None,
        round_trips: Some(round_trips()),
        drops: None,
        findings: vec![Seen {
            finding: Finding {
                id: FindingId::Moves,
                text: "iperf3 client moves | 37 times a second".to_owned(),
                parts: crate::derive::FindingParts::default(),
                numbers: vec![("moves_per_s", 37.25)],
                key: Some('p'),
            },
            seconds: 12.0,
            at_ns: 0,
        }],
        busy_s: 20.0,
        proposal: Some(Err("only core 0 may run the busy threads".to_owned())),
        comparison: None,
        search: None,
        limits: vec![
            CardLimit::MaxCv { most: 0.05, measured: Some(0.302) },
            CardLimit::MaxDrops { most: 0, measured: None },
        ],
        missing: Vec::new(),
    }
}

fn compared() -> RunCard {
    let side = |mean, deviation, moves_per_s, others| CardSide { jitter: jitter(mean, deviation), moves_per_s, others };
    let phase = |nth: u64| {
        let pinned = [1, 2, 4, 7].contains(&nth);
        let mean = if pinned { 35.0e9 } else { 28.0e9 + 0.2e9 * nth as f64 };
        let side = if pinned { StretchSide::Pinned } else { StretchSide::Unpinned };
        Phase { side, from_ns: nth * 2_000_000_000, to_ns: (nth + 1) * 2_000_000_000, mean_bits_per_s: mean }
    };
    let card = Card {
        pinned_at_ns: None,
        piece_ns: None,
        before: side(28.8e9, 8.71e9, Some(37.25), Some(0.313)),
        after: side(35.0e9, 0.42e9, None, None),
        phases: (0..8).map(phase).collect(),
        mean: Difference { estimate: 6.2e9, from: 4.9e9, to: 7.4e9 },
        cv: Some(Difference { estimate: -0.29, from: -0.35, to: -0.22 }),
        latency: None,
        verdict: Verdict::SteadierAndFaster,
    };
    let pins = vec![("iperf3 client".to_owned(), 39081, CoreSet::single(4))];
    let comparison = Some(PinComparison { card: Some(card), pins });
    let change = Difference { estimate: -412e-6, from: -450e-6, to: -371e-6 };
    let change = Some(QuantileChange { before_s: 812e-6, after_s: 400e-6, change: Some(change) });
    let round_trips = Some(DataRoundTrips { change, ..round_trips() });
    RunCard { comparison, round_trips, proposal: None, ..never() }
}

/// A card as text, each fact in one line.
fn text_card(of: &RunCard) -> String {
    let text = card(of, Format::Text);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "no terminal breaks a line of it:\n{text}");
    text.replace(&format!("\n{}", " ".repeat(12)), " ")
}

#[test]
fn the_text_says_what_was_measured_in_words_and_units() {
    let text = text_card(&never());
    for line in [
        "vnettop run: iperf3 -c 198.18.0.2",
        "  result    exit code 0 after 20 s",
        "  machine   kp920, Linux 6.6.0 aarch64, 128 cores, 2026-01-02T03:04:05.678Z",
        "  watched   1 iperf3 client (busy threads)",
        "  rate of   2 connections",
        "  window    19.8 s in 160 bins of 0.1 s, without the first 2 s",
        "  rate      mean 28.8 Gbit/s, sd 8.71 Gbit/s, CV 30.2 %",
        "  spread    p5 20.1 Gbit/s, p50 28.8 Gbit/s, p95 37.5 Gbit/s, longest dip 0.4 s",
        "  migrated  37.2/s (counted by the kernel, not all traced), by class: 12 cluster, 25 node",
        "  answers   under load p50 812 us (99 % interval of the mean of seconds 790 to 834), p99 3301 us; 41 us at least, as on \
         an idle path (round trips of 2 connections, tcp_info, 198 readings)",
        "  drops     not known: the run was too short for two readings",
        "  proposal  only core 0 may run the busy threads",
        "  finding   iperf3 client moves | 37 times a second [for 12 s of 20 s]",
        "  limit     --max-cv exceeded: CV 30.2 % (limit 5.00 %)",
        "  limit     --max-drops 0 was not checked: its figure was not measured",
    ] {
        assert!(text.lines().any(|got| got == line), "there is the line {line:?}:\n{text}");
    }
    assert_eq!(text.lines().count(), 15, "and no other:\n{text}");
}

#[test]
fn what_is_not_counted_of_udp_is_said() {
    let unknown = text_card(&RunCard { round_trips: None, ..never() });
    assert!(unknown.contains("  answers   not known: the senders, where TCP"), "{unknown}");
    let mut udp = RunCard { basis: Some(FlowBasis::Link("v0".to_owned())), ..never() };
    udp.drops = Some(crate::derive::run::RunDrops::default());
    udp.limits[1] = CardLimit::MaxDrops { most: 0, measured: Some(0) };
    let text = text_card(&udp);
    for line in [
        "  rate of   link v0, because no connection of the watched threads carried data: it is another protocol",
        "  drops     0 packets by links, 0 by softnet; loss in qdiscs and socket buffers was not read",
        "  limit     --max-drops ok: packets dropped 0 (limit 0)",
    ] {
        assert!(text.lines().any(|got| got == line), "there is the line {line:?}:\n{text}");
    }
    let why = "connections cannot be read: list TCP sockets: No such file or directory";
    let unread = text_card(&RunCard { why_link: Some(why.to_owned()), ..udp.clone() });
    assert!(unread.contains(&format!("link v0, because {why}")), "the reason is what the kernel answered:\n{unread}");
    let datagrams = text_card(&RunCard { basis: Some(FlowBasis::Datagrams(4)), ..udp });
    let line = "  rate of   4 UDP streams, payload by the datagrams counted";
    assert!(datagrams.lines().any(|got| got == line), "a UDP test has a rate of its own:\n{datagrams}");
    assert!(!datagrams.contains("  answers "), "and no answers:\n{datagrams}");
}

#[test]
fn a_comparison_is_a_table_with_a_verdict() {
    let text = text_card(&compared());
    let mean = text.lines().find(|line| line.starts_with("  mean ")).expect("a row");
    let cells: Vec<&str> = mean.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
    assert_eq!(cells, ["mean", "28.8 Gbit/s", "35.0 Gbit/s", "+6.20 (+4.90 to +7.40) Gbit/s"], "{text}");
    assert!(text.contains("30.2 %       1.20 %"), "both CVs stand in their columns:\n{text}");
    assert!(text.contains("37.2/s            –"), "an unknown figure is a dash, not 0:\n{text}");
    assert!(text.contains("812 us") && text.contains("−412 (−450 to −371) us"), "how long answers took: {text}");
    let others = text.lines().find(|line| line.starts_with("  others ")).expect("how busy others were");
    let words: Vec<&str> = others.split_whitespace().collect();
    assert_eq!(words[1..4], ["0.31", "cores", "–"], "in each kind: {others}");
    for line in [
        "  verdict   steadier and faster: the mean rose, the spread fell",
        "  phases    U:28.0  P:35.0  P:35.0  U:28.6  P:35.0  U:29.0  U:29.2  P:35.0 Gbit/s (U unpinned, P pinned, in the \
         order of time)",
        "  method    adjacent phases without their first 2 s, ordered so that drift cancels out: ratio of \
         the means, t interval from 4 paired differences, at 99 %",
    ] {
        assert!(text.lines().any(|got| got == line), "there is the line {line:?}:\n{text}");
    }
    assert!(text.contains("iperf3 client 39081 → 4"), "who was pinned where:\n{text}");
    assert!(!text.contains("longest dip"), "the unpinned figures are not told twice:\n{text}");
}

#[test]
fn markdown_is_a_table_and_nothing_in_it_is_taken_for_markup() {
    let text = card(&compared(), Format::Markdown);
    assert!(text.contains("|---|---:|---:|---:|") && text.contains("| mean | 28.8 Gbit/s | 35.0 Gbit/s |"), "{text}");
    assert!(text.contains("moves \\| 37"), "a bar in a finding ends no cell:\n{text}");
    assert!(text.contains("- **verdict** steadier and faster"), "{text}");
}

#[test]
fn json_has_the_figures_and_nulls_for_what_is_not_known() {
    let value: serde_json::Value = serde_json::from_str(&card(&compared(), Format::Json)).expect("one object");
    assert_eq!(value["comparison"]["verdict"], "steadier and faster");
    assert_eq!(value["comparison"]["mean_difference_bits_per_s"]["from"], 4.9e9);
    assert_eq!(value["comparison"]["pinned"]["moves_per_s"], serde_json::Value::Null);
    assert_eq!(
        (&value["comparison"]["pairs"], &value["comparison"]["phases"][2]["kind"]),
        (&4.into(), &"pinned".into())
    );
    assert_eq!(value["comparison"]["unpinned"]["other_cores"], 0.313, "how busy others were");
    assert_eq!((&value["drops"], &value["limits"][0]["broken"]), (&serde_json::Value::Null, &true.into()));
    assert_eq!(value["limits"][1]["measured"], serde_json::Value::Null, "a limit that was not measured is not broken");
    assert_eq!(value["jitter"]["mean_bits_per_s"], 28.8e9);
}

#[test]
fn three_hundred_runs_are_one_short_line() {
    let ran = |nth: u64, code| CommandRun {
        from_ns: nth,
        to_ns: Some(nth + 1_000_000_000 + nth * 10_000_000),
        code: Some(code),
    };
    let runs = (0..299).map(|nth| ran(nth, 0)).chain([ran(10, 1)]).collect();
    let text = text_card(&RunCard { runs, ..never() });
    let line = "  result    300 runs: 299 × exit code 0 after 1 s to 4 s; 1 × exit code 1 after 1.1 s";
    assert!(text.lines().any(|got| got == line), "those that ended alike stand together:\n{text}");
}

#[test]
fn what_is_not_sure_says_between_what() {
    let mut run = compared();
    let of = run.comparison.as_mut().and_then(|comparison| comparison.card.as_mut()).expect("a card");
    (of.verdict, of.mean) = (Verdict::Inconclusive, Difference { estimate: -1.6e9, from: -4.06e9, to: 0.93e9 });
    let text = text_card(&run);
    assert!(
        text.contains(
            "  verdict   inconclusive: the change may be anything from −4.1 to +0.9 Gbit/s; a longer test narrows it\n"
        ),
        "{text}"
    );
    let of = run.comparison.as_mut().and_then(|comparison| comparison.card.as_mut()).expect("a card");
    of.phases.truncate(6);
    let text = text_card(&run);
    assert!(text.contains("  verdict   inconclusive: 3 pairs of phases, at least 4 needed\n"), "{text}");
}

#[test]
fn limits_that_are_not_kept_are_told() {
    let stated = limits(&never());
    assert!(stated.len() == 2 && stated[0].0 && !stated[1].0, "one is broken, one could not be checked: {stated:?}");
}

/// A search that found these placements with these rates against the best one, Gbit/s.
fn searched(ranking: &[(PlacementClass, f64, PlacementStanding)]) -> RunCard {
    let best = ranking[0].1;
    let one = |&(class, rate, standing): &(PlacementClass, f64, PlacementStanding)| {
        let placed = |(tid, core)| PlacedThread {
            thread: ThreadId { pid: tid, tid, start: 7 },
            label: "iperf3 client".to_owned(),
            core,
        };
        let threads = if class == PlacementClass::Unpinned { Vec::new() } else { vec![placed((39081, 4))] };
        let share = rate / best - 1.0;
        let behind = Difference { estimate: share, from: share - 0.02, to: share + 0.02 };
        SearchedPlacement {
            tried: TriedPlacement { class, is_rule: class == PlacementClass::SameCluster, threads, steers: Vec::new() },
            phases: 6,
            retransmits_per_s: None,
            busy_cores: None,
            mean: rate * 1e9,
            interval: Some(Difference { estimate: rate * 1e9, from: rate * 0.98e9, to: rate * 1.02e9 }),
            against_best: (standing != PlacementStanding::Best).then_some(behind),
            standing,
            dropped_after: (standing == PlacementStanding::Worse).then_some(6),
        }
    };
    let search = SearchResult {
        seed: 5,
        rounds: 6,
        ranking: ranking.iter().map(one).collect(),
        left_out: vec!["not tried: same node, too few allowed cores".to_owned()],
        alike: true,
        is_over: false,
        test: TestKind::default(),
        least_s: 24.0,
    };
    let asked = RunAsked { pin: PinMode::Search, ..never().asked };
    RunCard { asked, search: Some(search), proposal: None, findings: Vec::new(), limits: Vec::new(), ..never() }
}

#[test]
fn a_search_is_a_ranking_with_the_best_by_hand() {
    let ranking = [
        (PlacementClass::SameCore, 35.0, PlacementStanding::Best),
        (PlacementClass::AwayFromInterrupts, 34.6, PlacementStanding::Open),
        (PlacementClass::Unpinned, 28.8, PlacementStanding::Worse),
        (PlacementClass::SameCluster, 17.0, PlacementStanding::Worse),
    ];
    let text = text_card(&searched(&ranking));
    for line in [
        "  placement             Gbit/s (99 % interval)      % against the best  phases",
        "  same core                35.0 (34.3 to 35.7)                    best       6",
        "  unpinned                 28.8 (28.2 to 29.4)  −17.7 (−19.7 to −15.7)       6",
        "  verdict   best: same core; clearly worse: unpinned, same cluster; inconclusive: away from interrupts",
        "  best      taskset -cp 4 39081   iperf3 client → core 4",
        "  p         proposes same core for this kind of test from now on",
        "  dropped   unpinned after 6 rounds, same cluster after 6 rounds",
        "  left out  not tried: same node, too few allowed cores",
    ] {
        assert!(text.lines().any(|got| got == line), "there is the line {line:?}:\n{text}");
    }
    assert!(text.contains("by its rule p proposes same cluster"), "what the rule would have been:\n{text}");
    let markdown = card(&searched(&ranking), Format::Markdown);
    assert!(markdown.contains("| same core | 35.0 (34.3 to 35.7) | best | 6 |"), "{markdown}");
    let value: serde_json::Value = serde_json::from_str(&card(&searched(&ranking), Format::Json)).expect("one object");
    let search = &value["search"];
    assert_eq!((&search["found"], &search["differs"]), (&"same core".into(), &true.into()), "{search}");
    assert_eq!(search["ranking"][3]["dropped_after"], 6, "{search}");
    assert_eq!(search["ranking"][0]["taskset"][0], "taskset -cp 4 39081", "{search}");
}

#[test]
fn placements_that_do_not_differ_are_said_not_to() {
    let alike = |standing| {
        searched(&[
            (PlacementClass::SameCluster, 35.0, PlacementStanding::Best),
            (PlacementClass::Unpinned, 34.9, standing),
        ])
    };
    let same = text_card(&alike(PlacementStanding::Same));
    assert!(same.contains("the placements do not differ: any two are within 3 % of each other"), "{same}");
    let open = text_card(&alike(PlacementStanding::Open));
    assert!(!open.contains("do not differ"), "{open}");
    let range = "inconclusive: against the best it may be anything from −2.29 to +1.71 %; a";
    assert!(open.contains(range), "{open}");
    assert!(!same.contains("taskset") && !open.contains("proposes same cluster for"), "and nothing is recommended");
}

/// Whatever was found: the sentence of a search says no more than its placements' standings do.
#[test]
fn a_search_says_that_nothing_differs_only_where_every_placement_is_known_not_to() {
    use PlacementStanding::{Best, Open, Same, Worse};
    let classes = [PlacementClass::SameCluster, PlacementClass::Unpinned, PlacementClass::SameCore];
    for (one, other, alike) in [Same, Open, Worse]
        .into_iter()
        .flat_map(|one| [Same, Open, Worse].map(|other| (one, other)))
        .flat_map(|(one, other)| [true, false].map(|alike| (one, other, alike)))
    {
        let mut run = searched(&[(classes[0], 35.0, Best), (classes[1], 34.9, one), (classes[2], 34.8, other)]);
        run.search.as_mut().expect("a search").alike = alike;
        let text = text_card(&run);
        let value: serde_json::Value = serde_json::from_str(&card(&run, Format::Json)).expect("one object");
        let has = |standing| one == standing || other == standing;
        let is_known = !has(Open) && !has(Worse);
        assert_eq!(text.contains("do not differ"), is_known && alike, "{one:?} {other:?} {alike}: {text}");
        assert_eq!(text.contains("verdict   inconclusive"), has(Open) && !has(Worse), "{one:?} {other:?}: {text}");
        assert_eq!(text.contains("clearly worse: "), has(Worse), "{one:?} {other:?}: {text}");
        let differs = if has(Worse) { Some(true) } else { is_known.then_some(false) };
        assert_eq!(value["search"]["differs"].as_bool(), differs, "{one:?} {other:?}: {value}");
    }
}

#[test]
fn json_is_as_the_schema_says() {
    let schema = include_str!("../../../schemas/card.schema.json");
    let schema = serde_json::from_str(schema).expect("JSON");
    let schema = jsonschema::validator_for(&schema).expect("a schema");
    let ranked = searched(&[(PlacementClass::Unpinned, 30e9, PlacementStanding::Best)]);
    for of in [never(), compared(), ranked] {
        let value = serde_json::from_str(&card(&of, Format::Json)).expect("one object");
        let wrong: Vec<_> =
            schema.iter_errors(&value).map(|wrong| format!("{}: {wrong}", wrong.instance_path())).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
    }
}
