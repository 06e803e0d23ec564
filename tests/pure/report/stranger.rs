//! What somebody reads who was given a report and nothing else: the worst test first, figures of whole tests, one unit in a row, where it
//! is from.

use super::{json, report, root, shipped, systems};
use std::path::PathBuf;
use std::process::Command;

fn three_at_once() -> PathBuf {
    root().join("tests/fixtures/tests/three-at-once.vnettop.zst")
}

/// The cells of the rows of a Markdown table whose first cell starts so.
fn row(page: &str, begins: &str) -> Vec<String> {
    let row = page.lines().find(|line| line.starts_with(&format!("| {begins}")));
    let row = row.unwrap_or_else(|| panic!("{begins}: {page:.3000}"));
    row.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect()
}

#[test]
fn of_several_tests_the_one_that_loses_leads_and_all_stand_in_one_table() {
    let page = report("markdown", false, &[&three_at_once()]);
    let headline = page.lines().next().expect("a headline");
    assert_eq!(
        headline,
        "# Test 2 of 3: 8.26 % of packets lost (64,118), steady: asked for 300, sent 300, arrived 275 Mbit/s (CV 0.66 %)"
    );
    let at = |test: &str| page.find(&format!("\n## {test}:")).expect("it is there");
    assert!(at("Test 2") < at("Test 1") && at("Test 1") < at("Test 3"), "then in their order");
    let table = page.split("\n## ").next().expect("before the first test");
    for (test, rate, lost) in
        [("Test 2", "275 Mbit/s", "8.26 % (64,118)"), ("Test 1", "1,000 Mbit/s", "0"), ("Test 3", "500 Mbit/s", "0")]
    {
        assert_eq!(row(table, test)[1..3], [rate, lost], "{table}");
    }
    let verdict = &json(false, &[&three_at_once()])["recordings"][0]["verdict"];
    assert_eq!(format!("# {}", verdict.as_str().expect("a sentence")), headline);
}

#[test]
fn a_share_of_lost_packets_is_of_the_whole_test_wherever_it_stands() {
    let page = report("markdown", false, &[&three_at_once()]);
    let shares: Vec<&str> = page.split(" % of packets lost").collect();
    assert!(shares.len() > 3, "it is said in several places: {page}");
    for before in &shares[..shares.len() - 1] {
        assert!(before.ends_with("8.26"), "none is of a moment: {:?}", before.split_whitespace().next_back());
    }
    assert_eq!(row(&page[page.find("\n## Test 2").expect("it")..], "packets lost")[1], "8.26 % (64,118)");
    let guest = report("markdown", false, &[&root().join("tests/fixtures/systems/guest-on-bridge.vnettop.zst")]);
    assert!(!guest.contains("packets/s do not arrive"), "nor is what it costs: {guest:.900}");
}

#[test]
fn a_receiver_that_stood_still_is_the_cause_and_no_small_buffer() {
    let page = report("markdown", false, &[&root().join("tests/fixtures/tests/stopped-reader.vnettop.zst")]);
    let first = page.split("\n## ").next().expect("the verdict");
    assert!(first.starts_with("# 28.0 % of packets lost (84,650), unsteady: "), "{first}");
    assert!(
        first.contains("\n\nWhy: its reader neither runs nor waits for a core\n"),
        "as it was when most was lost: {first}"
    );
    assert!(!page.contains("net.core.rmem_max"), "nor is it advised anywhere: {page}");
}

#[test]
fn segments_sent_again_stand_at_the_test_whose_sockets_sent_them() {
    let page = report("markdown", false, &[&three_at_once()]);
    let of = |test: &str| {
        let part = page.split("\n## ").find(|part| part.starts_with(&format!("{test}:"))).expect("it");
        (row(part, "retransmits")[1..].to_vec(), part.contains("TCP retransmits"))
    };
    let (own, finding) = of("Test 1");
    assert_eq!(
        (&*own[0], &*own[1]),
        ("142", "TCP segments that its own connections sent again: 5.80/s, 65.5 of a million sent")
    );
    let (none, of_others) = of("Test 3");
    assert_eq!((&*none[0], of_others), ("0", false), "and no finding blames it for them");
    assert!(none[1].ends_with("; 142 by all in its namespaces"), "{none:?}");
    assert!(!finding, "what packets that overtake each other cause is said by that finding");
}

#[test]
fn figures_of_a_rate_have_one_unit_and_the_median_lies_between_its_ends() {
    let number = |text: &str| text.replace(',', "").parse::<f64>().unwrap_or_else(|_| panic!("{text} is a number"));
    let mut looked_at = 0;
    for file in systems().iter().chain([&three_at_once()]) {
        let page = report("markdown", false, &[file]);
        for part in page.split("\n## Test ").skip(1).filter(|part| part.contains("\n| median |")) {
            let (mean, median, ends) = (row(part, "mean rate |"), row(part, "median"), row(part, "p5 to p95"));
            let ((median, of_median), (ends, of_ends)) =
                (median[1].split_once(' ').expect("a unit"), ends[1].rsplit_once(' ').expect("a unit"));
            assert_eq!(of_median, of_ends, "{}", file.display());
            assert!(mean[1].ends_with(of_ends), "{}: {mean:?}", file.display());
            let (low, high) = ends.split_once(" to ").expect("two ends");
            assert!(number(low) <= number(median) && number(median) <= number(high), "{low} {median} {high}");
            looked_at += 1;
        }
    }
    assert!(looked_at > 10, "{looked_at} tests were looked at");
}

#[test]
fn a_report_never_says_that_no_cause_was_found_beside_a_cause() {
    for file in systems().iter().chain([&three_at_once(), &shipped()]) {
        let page = report("markdown", false, &[file]);
        let first = page.split("\n## ").next().expect("the verdict");
        let has_cause = first.contains("\n\nWhy: ") && !first.contains("Why: No cause found");
        assert!(!has_cause || !page.contains("No cause found"), "{}: {first}", file.display());
        let names_cause = page.lines().next().is_some_and(|headline| headline.contains("teady, "));
        assert!(!names_cause || !first.contains("migrate between cores"), "{}: one cause: {first}", file.display());
        assert!(!page.contains("not measured"), "{}: what nobody measured costs nothing", file.display());
    }
}

#[test]
fn paper_says_where_the_figures_are_from() {
    let page = report("html", false, &[&three_at_once()]);
    let at = page.find("<h2 id=\"s0-how-it-was-measured\">").expect("a heading");
    let before = &page[..at];
    assert_eq!(before.matches("<details").count(), before.matches("</details>").count(), "it is not folded");
    let facts = page[at..].split_once("</dl>").expect("a list").0;
    for words in [
        "<dd>vm, 2 cores</dd>",
        "<dd>Linux 6.18.44 x86_64</dd>",
        "<dd>2026-11-28 14:42:17 UTC, 25 s long</dd>",
        "<dd>vnettop 0.2.0: 51 samples, one every 0.5 s (0 late, 0 left out)</dd>",
        "<dd>traced by BPF, every one</dd>",
        "<dd>three-at-once.vnettop.zst, 44,833 bytes</dd>",
    ] {
        assert!(facts.contains(words), "{words}: {facts}");
    }
    let sum = facts.split_once("<dt>SHA-256</dt><dd>").and_then(|(_, rest)| rest.split_once('<')).expect("a sum").0;
    let out = Command::new("sha256sum").arg(three_at_once()).output().expect("sha256sum runs");
    assert_eq!(String::from_utf8_lossy(&out.stdout).split(' ').next(), Some(sum), "as sha256sum has it");
    let anonymous = report("markdown", true, &[&three_at_once()]);
    assert!(!anonymous.contains(sum) && anonymous.contains("- kernel: Linux 6.18"), "without what names the file");
}

#[test]
fn a_phone_shows_every_figure_of_a_wide_table_with_the_name_of_its_column() {
    let page = report("html", false, &[&root().join("tests/fixtures/latency/tbf.vnettop.zst")]);
    for column in ["p99", "longest", "lost", "mean rate", "migrations"] {
        assert!(page.contains(&format!(" data-of=\"{column}\">")), "{column} stands before its figure");
    }
    let phone = page.split_once("@media(max-width:600px)").expect("a style of its own").1;
    assert!(phone.contains(".rows thead{display:none}") && phone.contains("content:attr(data-of)"), "in rows of two");
    let paper = page.split_once("@media print").expect("a style of its own").1;
    assert!(paper.contains("figure,.card,tr,") && paper.contains("break-inside:avoid"), "no page cuts a plot or a row");
}

#[test]
fn what_is_no_recording_is_refused_however_long_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let long = folder.path().join("long");
    std::fs::File::create(&long).and_then(|file| file.set_len(1 << 40)).expect("it has holes only");
    let out = super::vnettop(&["report", "--format", "markdown"], &[&long]);
    assert!(!out.status.success() && out.stdout.is_empty(), "it is no recording");
}
