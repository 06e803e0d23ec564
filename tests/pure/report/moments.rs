//! A figure of one moment says so and has that of the whole test beside it; one thing has one figure, and one that is not known a reason.

use super::{check_page, report, root, shipped, systems};
use std::path::PathBuf;

fn fixture(name: &str) -> PathBuf {
    root().join(format!("tests/fixtures/{name}.vnettop.zst"))
}

#[test]
fn a_link_carries_in_a_sentence_what_its_row_says() {
    let mut looked_at = 0;
    for file in systems().iter().chain([&shipped()]) {
        let page = report("markdown", false, &[file]);
        for line in page.lines().filter(|line| line.starts_with("- ") && line.contains("× its nominal ")) {
            let (link, rest) = line[2..].split_once(" carries ").expect("what it carries");
            let rate = rest.split_once(',').expect("its end").0;
            let is_row =
                |row: &&str| row.starts_with("| ") && row.contains(&format!("{link} | ")) && row.contains(rate);
            let is_moment = line.contains("(as at ") || line.contains("(at the end");
            assert!(is_moment || page.lines().any(|row| is_row(&row)), "{}: {line}", file.display());
            looked_at += usize::from(!is_moment);
        }
    }
    assert!(looked_at > 2, "{looked_at} were looked at");
}

#[test]
fn what_a_moment_has_stands_beside_the_mean_of_the_test() {
    let page = report("markdown", false, &[&fixture("latency/tbf")]);
    let waits =
        page.lines().find(|line| line.starts_with("- ") && line.contains("(at the end; ") && line.contains(" p99 "));
    assert!(waits.is_some_and(|line| line.contains("; mean of the test: p99 12.7 ms, median 8.79 ms there")), "{page}");
    let mut looked_at = 0;
    for file in systems() {
        let page = report("markdown", false, &[&file]);
        // Who waits for a core in a sentence has a row with another figure.
        for line in page.lines().filter(|line| line.contains("; mean of the test") && line.contains(" waits ")) {
            let (_, means) = line.split_once("mean of the test").expect("it is there");
            for mean in means.split(" waits ").skip(1) {
                let percent = mean.split([',', ';']).next().expect("a figure");
                assert!(page.contains(&format!("| {percent} |")), "{}: {percent} of {line}", file.display());
                looked_at += 1;
            }
        }
    }
    assert!(looked_at > 5, "{looked_at} were looked at");
}

#[test]
fn retransmits_are_drawn_over_time_and_datagrams_have_none() {
    let page = report("html", false, &[&fixture("tests/three-at-once")]);
    let of = |test: &str| {
        let at = page.find(&format!("<h2 id=\"s0-{test}\">")).expect("a heading");
        let part = page[at..].split_once("</figure>").expect("its plot").0;
        (part.contains("retransmits\n</text>"), part.contains("TCP segments sent again/s"))
    };
    assert_eq!(of("test-1"), (true, true), "TCP has a row and a legend");
    assert_eq!(of("test-2"), (false, false), "UDP sends nothing again");
}

#[test]
fn what_is_rebuilt_is_called_so_and_claims_no_measurement() {
    let page = report("markdown", false, &[&shipped()]);
    let (first, _) = page.split_once("\n## ").expect("a test");
    assert!(
        first.contains("\n> rebuilt from the per-second rates") && first.contains("Nothing here was measured"),
        "{first}"
    );
    for claim in ["Measured ", "Recorded ", "(99 % interval: ", "## How it was measured"] {
        assert!(!page.contains(claim), "{claim} is in it: {page}");
    }
    assert!(page.contains("Its seconds repeat, so its 99 % intervals say nothing"), "beside the card: {page}");
}

#[test]
fn a_page_writes_microseconds_as_they_are_written() {
    for format in ["markdown", "html"] {
        let page = report(format, false, &[&fixture("latency/tbf")]);
        let is_ascii = |(at, _): (usize, &str)| {
            let after = page[at + 3..].chars().next();
            page[..at].ends_with(|c: char| c.is_ascii_digit()) && !after.is_some_and(char::is_alphanumeric)
        };
        assert!(page.contains(" µs") && !page.match_indices(" us").any(is_ascii), "{format}");
    }
}

#[test]
fn a_test_has_one_length() {
    for file in systems() {
        let page = report("markdown", false, &[&file]);
        let (first, rest) = page.split_once("\n## Test ").expect("a test");
        let length = rest.split_once("\n| length | ").expect("its length").1.split(" |").next().expect("a figure");
        for wrong in ["of the whole ", " in which the test ran", " that have a rate"] {
            let tables = rest.split_once("\n## How it was measured").expect("its end").0;
            let at =
                tables.find(wrong).filter(|at| tables[at + wrong.len()..].starts_with(|c: char| c.is_ascii_digit()));
            assert!(at.is_none(), "{}: {length} is called otherwise: {wrong}", file.display());
        }
        assert!(first.contains(". Recorded "), "{first}");
    }
}

#[test]
fn a_router_without_a_test_has_a_verdict_and_a_plot() {
    let file = fixture("tests/router-tbf");
    let page = report("markdown", false, &[&file]);
    let first = page.split_once("\n## ").expect("its figures").0;
    let headline = "# ra → rb: 51.7 % of packets dropped (199,281), 100 of 207 Mbit/s go out; no test ran\n";
    assert!(first.starts_with(headline), "{first}");
    for reason in [
        "What: tbf on rb drops ",
        "Why: 207 Mbit/s come in, more than the 100 Mbit/s ",
        "Cost: ",
        "Do: send less, or raise its rate",
    ] {
        assert!(first.contains(&format!("\n\n{reason}")), "{reason}: {first}");
    }
    assert!(page.contains("| packets dropped | 51.7 % (199,281) |"), "{page}");
    assert!(page.contains("| tbf on rb | 199,281 | 10,772 | 100 Mbit/s | yes |"), "what dropped them: {page}");
    let html = report("html", false, &[&file]);
    check_page(&html);
    for line in [
        "what goes out by the other link",
        "100 Mbit/s that tbf on rb was set to while it dropped",
        "tbf on rb: 100 Mbit/s",
    ] {
        assert!(html.contains(line), "{line} is in the plot or its legend");
    }
}

#[test]
fn a_phone_has_letters_of_twelve_pixels_and_nothing_beside_the_page() {
    let page = report("html", false, &[&shipped()]);
    // 360 pixels of a phone are 340 of the 380 units of a drawing.
    assert!(page.contains("svg.narrow text{font-size:13.5px}"), "13.5 of 380 units are 12 of 340 pixels");
    let phone = page.split_once("@media(max-width:600px)").expect("a style of its own").1;
    assert!(
        phone.contains("th,td{white-space:normal;") && phone.contains(".scroll{overflow-x:visible}"),
        "{phone:.900}"
    );
}
