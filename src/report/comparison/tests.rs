//! A comparison with everything in it, and files that are none.

use super::*;
use crate::sample::{ClaimedLink, ComparedPath, ComparisonPlan, Host, Machine, Measurement, Treatment};

fn path(name: &str, rates: &[(f64, f64)]) -> ComparedPath {
    let one = |round: usize, pinned: bool, rate: f64| Measurement {
        rate: Some(rate),
        seconds: Some(3.0),
        sender: "iperf3".to_owned(),
        cv: Some(0.05),
        moves_per_s: Some(4.0),
        busy_cores: Some(1.8),
        softirq_cores: Some(0.6),
        ..Measurement::begun(
            u32::try_from(round + 1).expect("few"),
            Load::Tcp,
            if pinned { Treatment::Pinned } else { Treatment::Unpinned },
        )
    };
    let of_round =
        |(round, &(unpinned, pinned)): (usize, &(f64, f64))| [one(round, false, unpinned), one(round, true, pinned)];
    ComparedPath {
        name: name.to_owned(),
        what: format!("two ends over {name}"),
        skipped: None,
        links: vec![ClaimedLink {
            name: "eth0".to_owned(),
            kind: "veth".to_owned(),
            claim_mbps: Some(10_000),
            basis: "constant".to_owned(),
        }],
        measurements: rates.iter().enumerate().flat_map(of_round).collect(),
    }
}

pub(super) fn whole() -> Comparison {
    let skipped = ComparedPath {
        skipped: Some("wg is not installed (Debian: wireguard-tools)".to_owned()),
        links: Vec::new(),
        measurements: Vec::new(),
        ..path("wireguard", &[])
    };
    let host =
        Host { name: "kp920".to_owned(), kernel: "6.6.0".to_owned(), arch: "aarch64".to_owned(), ..Host::default() };
    Comparison {
        version: COMPARISON_VERSION,
        vnettop: "0.2.0".to_owned(),
        began_ms: 0,
        machine: Machine { host, cores: 128, nodes: 4, processor: None },
        plan: ComparisonPlan {
            seconds: 3.0,
            warm_up_s: 1.0,
            rounds: 3,
            loads: vec![Load::Tcp],
            pins: true,
            steers: false,
            steers_alone: false,
            unsteered: None,
            iperf3: Some("iperf 3.12".to_owned()),
            is_root: true,
        },
        interrupted: false,
        paths: vec![
            path("veth", &[(30e9, 35e9), (31e9, 36e9), (32e9, 37e9)]),
            path("bridge", &[(29e9, 29.1e9), (31e9, 30.8e9), (30e9, 30.2e9)]),
            path("tun", &[(1e9, 0.5e9), (1.01e9, 0.52e9), (0.99e9, 0.51e9)]),
            skipped,
        ],
    }
}

#[test]
fn the_table_has_order_spread_gain_claim_and_what_was_left_out() {
    insta::assert_snapshot!("comparison_text", comparison(&whole(), None, WrittenAs::Text));
    insta::assert_snapshot!("comparison_markdown", comparison(&whole(), None, WrittenAs::Markdown));
}

#[test]
fn what_would_mislead_is_said() {
    let mut busy = whole();
    busy.plan.seconds = 1.0;
    for one in busy.paths.iter_mut().flat_map(|path| &mut path.measurements) {
        (one.cv, one.others_cores) = (None, Some(2.5));
    }
    let text = |of: &Comparison| comparison(of, None, WrittenAs::Text);
    let used = "Other programs used 2.50 of 128 cores before the loads";
    assert!(!text(&busy).contains(used), "a fiftieth of a large machine is little: {}", text(&busy));
    assert!(text(&busy).contains("CV needs --time 2 or more (veth tcp, bridge tcp, tun tcp)"), "{}", text(&busy));
    assert!(!text(&busy).contains("PLACE need"), "{}", text(&busy));
    busy.machine.cores = 4;
    assert!(text(&busy).contains(&used.replace("128", "4")), "{}", text(&busy));
    busy.plan.seconds = 3.0;
    assert!(text(&busy).contains("CV needs a TCP connection and enough samples of it"), "{}", text(&busy));
    for one in busy.paths.iter_mut().flat_map(|path| &mut path.measurements) {
        one.others_cores = Some(f64::NAN);
    }
    let mut once = busy.clone();
    for path in &mut once.paths {
        path.measurements.truncate(2);
    }
    assert!(text(&once).contains("intervals and PLACE need two rounds or more (--repeat)\n"), "{}", text(&once));
    let json = comparison(&busy, None, WrittenAs::Json);
    assert!(read(json.as_bytes()).is_ok_and(|read| !text(&read).contains("Other programs")), "not a number is unknown");
}

#[test]
fn an_earlier_one_stands_beside_it_with_a_verdict() {
    let mut earlier = whole();
    for one in earlier.paths.iter_mut().flat_map(|path| &mut path.measurements) {
        one.rate = one.rate.map(|rate| if rate < 2e9 { rate * 2.0 } else { rate * 1.01 });
    }
    insta::assert_snapshot!("comparison_against", comparison(&whole(), Some(&earlier), WrittenAs::Text));
}

#[test]
fn what_is_written_is_read_back_and_anything_else_is_one_sentence() {
    let json = comparison(&whole(), None, WrittenAs::Json);
    assert_eq!(read(json.as_bytes()), Ok(whole()));
    assert_eq!(read(b"{}"), Err(NoComparison::Foreign));
    assert_eq!(read(b"\xff"), Err(NoComparison::Foreign));
    assert_eq!(read(b"{\"vnettop_comparison\":99}"), Err(NoComparison::Version(99)));
    assert!(matches!(read(b"{\"vnettop_comparison\":1}"), Err(NoComparison::Damaged(_))));
    for cut in (0..json.len()).step_by(97) {
        let sentence = read(&json.as_bytes()[..cut]).expect_err("it is cut off").to_string();
        assert!(!sentence.contains('\n') && sentence.len() > 10, "{sentence:?}");
    }
    let steers = json.replace("kp920", "kp\\u001b[31m");
    assert!(!comparison(&read(steers.as_bytes()).expect("a comparison"), None, WrittenAs::Text).contains('\u{1b}'));
}

/// The same, and TCP was steered too, but over a tun.
fn steered() -> Comparison {
    let mut all = whole();
    (all.plan.steers, all.plan.steers_alone) = (true, true);
    for path in all.paths.iter_mut().filter(|path| !path.measurements.is_empty()) {
        let steers = vec![crate::sample::SetOnLink {
            link: "eth0".to_owned(),
            setting: "rps_cpus".to_owned(),
            value: "2".to_owned(),
        }];
        path.measurements.iter_mut().for_each(|one| one.retransmits = Some(if one.pinned { 90_000 } else { 40_000 }));
        let unpinned: Vec<Measurement> = path.measurements.iter().filter(|one| !one.pinned).cloned().collect();
        if path.name == "tun" {
            let begun = Measurement::begun(1, Load::Tcp, Treatment::PinnedAndSteered);
            let why = "no steer is proposed: a device or a program hands its packets on".to_owned();
            path.measurements.push(Measurement { missing: Some(why), ..begun });
            continue;
        }
        for one in unpinned {
            let rate = |times: f64| one.rate.map(|rate| rate * times);
            let of = |pinned, times| Measurement {
                pinned,
                steered: true,
                rate: rate(times),
                retransmits: Some(7),
                steers: steers.clone(),
                ..one.clone()
            };
            path.measurements.extend([of(true, 1.6), of(false, 1.2)]);
        }
    }
    all
}

#[test]
fn steered_packets_have_a_table_with_gain_and_retransmits_that_fits() {
    let text = comparison(&steered(), None, WrittenAs::Text);
    insta::assert_snapshot!("comparison_steered", text);
    let tables = text.lines().filter(|line| line.starts_with("  "));
    assert!(tables.clone().all(|line| line.chars().count() <= 100), "{text}");
    assert!(text.contains("Pinning and steering raised the rate of veth and bridge"), "{text}");
    let json = comparison(&steered(), None, WrittenAs::Json);
    assert_eq!(read(json.as_bytes()), Ok(steered()), "and it is read back");
    let mut unsteered = whole();
    unsteered.plan.unsteered = Some("rps_cpus takes root".to_owned());
    assert!(comparison(&unsteered, None, WrittenAs::Text).contains("Nothing is steered: rps_cpus takes root"));
}
