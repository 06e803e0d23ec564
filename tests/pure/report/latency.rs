//! Where packets and threads waited, of a recording that has it: in the report, as every other face has it.

use super::{check_page, has_word, hostile, json, last_object, report, root};

#[test]
fn a_report_says_where_packets_waited() {
    let file = root().join("tests/fixtures/latency/tbf.vnettop.zst");
    let markdown = report("markdown", false, &[&file]);
    assert!(markdown.contains("| where time passes |") && markdown.contains("| tbf of x1 (xa) |"), "{markdown}");
    let cause = "**Longest wait: tbf of x1 (xa), 8.79 ms (median; p99 12.7 ms).**";
    assert!(markdown.contains(cause), "the cause, of the whole test as in the table:\n{markdown}");
    let page = report("html", false, &[&file]);
    check_page(&page);
    for plot in ["How long packets took, stage by stage", "How long packets took over the whole path"] {
        assert!(page.contains(&format!("<title>{plot}</title>")), "{plot} is drawn");
    }
    let (ours, last) = (json(false, &[&file]), last_object(&file));
    let (ours, theirs) = (&ours["recordings"][0]["summary"]["tests"][0]["latency"], &last["tests"][0]["latency"]);
    let figure = |of: &serde_json::Value, name: &str| of[name].as_f64().expect("a number");
    let stages = ours.as_array().expect("stages");
    assert_eq!(stages.len(), 1 + theirs["stages"].as_array().expect("stages").len(), "the whole path and its stages");
    assert_eq!(stages[0]["stage"], "whole");
    for name in ["count", "p50_us", "p99_us", "max_us"] {
        let (ours, theirs) = (figure(&stages[0]["figures"], name), figure(&theirs["whole"]["so_far"], name));
        assert!((ours / theirs - 1.0).abs() < 1e-9, "{name}: {ours} {theirs}");
    }
}

#[test]
fn an_anonymised_one_says_it_without_names() {
    let file = root().join("tests/fixtures/latency/tbf.vnettop.zst");
    let text = report("markdown", true, &[&file]).replace('\\', "");
    assert!(text.contains("tbf of "), "the stages are there:\n{text}");
    for name in hostile::names(&file) {
        assert!(!has_word(&text, &name), "{name} is in it:\n{text}");
    }
}
