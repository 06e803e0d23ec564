//! Reports of recordings, by the program itself: one page that needs nothing else, with the recording's own figures; names stay
//! out where that is asked for.

mod counts;
mod hostile;
mod latency;
mod moments;
mod stranger;

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn shipped() -> PathBuf {
    root().join("assets/kunpeng.vnettop.zst")
}

fn systems() -> Vec<PathBuf> {
    let folder = std::fs::read_dir(root().join("tests/fixtures/systems")).expect("it is there");
    let mut all: Vec<PathBuf> = folder.map(|entry| entry.expect("an entry").path()).collect();
    all.retain(|path| path.extension().is_some_and(|extension| extension == "zst"));
    all.sort();
    assert!(all.len() > 10, "the recordings are there");
    all
}

fn vnettop(arguments: &[&str], files: &[&Path]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vnettop"));
    command.args(arguments).args(files).env("XDG_CONFIG_HOME", "/nonexistent").output().expect("it runs")
}

/// The report on standard output.
fn report(format: &str, anonymise: bool, files: &[&Path]) -> String {
    let more: &[&str] = if anonymise { &["--anonymise"] } else { &[] };
    let output = vnettop(&[&["report", "--format", format], more].concat(), files);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn json(anonymise: bool, files: &[&Path]) -> Value {
    serde_json::from_str(&report("json", anonymise, files)).expect("one object")
}

/// Elements that have no end.
const VOID: [&str; 9] = ["meta", "circle", "rect", "line", "polyline", "polygon", "path", "br", "!DOCTYPE"];

/// The tags of a page in order, each closed where it must be; the first that is not is an error.
fn tags(page: &str) -> Vec<String> {
    let (mut open, mut all) = (Vec::new(), Vec::new());
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        let end = rest[at..].find('>').unwrap_or_else(|| panic!("an open tag: {:.60}", &rest[at..])) + at;
        let tag = &rest[at + 1..end];
        rest = &rest[end + 1..];
        let name = tag.trim_start_matches('/').split([' ', '\n', '/']).next().unwrap_or_default().to_owned();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name.clone()), "</{name}> closes what is open");
        } else if !tag.ends_with('/') && !VOID.contains(&&*name) {
            open.push(name.clone());
        }
        all.push(tag.to_owned());
    }
    assert_eq!(open, Vec::<String>::new(), "everything is closed");
    all
}

/// What holds for every page.
fn check_page(page: &str) {
    let tags = tags(page);
    for foreign in ["http://", "https://", "url(", "@import", "src=", "<script", "<img", "<link", "<iframe"] {
        assert!(!page.contains(foreign), "the page needs nothing else, but has {foreign}");
    }
    for link in page.split(" href=\"").skip(1) {
        let target = link.strip_prefix('#').and_then(|rest| rest.split_once('"')).expect("a link stays on the page").0;
        assert!(page.contains(&format!(" id=\"{target}\"")), "{target} is there to be jumped to");
    }
    let svgs = page.matches("<svg ").count();
    assert_eq!(page.matches("role=\"img\"").count(), svgs, "every plot is one image to a screen reader");
    for svg in page.split("<svg ").skip(1) {
        let (_, inner) = svg.split_once('>').expect("it is a tag");
        let (title, rest) =
            inner.strip_prefix("<title>").and_then(|rest| rest.split_once("</title>")).expect("a title");
        assert!(title.len() > 5, "a plot has a name: {title}");
        let description =
            rest.strip_prefix("<desc>").and_then(|rest| rest.split_once("</desc>")).expect("a description");
        assert!(description.0.len() > 20, "a plot has a text alternative: {}", description.0);
        assert!(!svg.contains("NaN"), "{title} has figures only");
    }
    let handlers: Vec<&String> =
        tags.iter().filter(|tag| tag.split(' ').any(|of| of.starts_with("on") && of.contains('='))).collect();
    assert!(handlers.is_empty(), "nothing runs: {handlers:?}");
    assert!(page.len() < 2 << 20, "{} bytes are under 2 MiB", page.len());
    assert!(!page.chars().any(|c| c.is_control() && c != '\n'), "no control character");
}

#[test]
fn every_recording_gives_a_page_that_needs_nothing_else() {
    for file in systems().iter().chain([&shipped()]) {
        let page = report("html", false, &[file]);
        check_page(&page);
        assert!(page.contains("Rate over time"), "{} has a rate", file.display());
        assert!(page.contains("prefers-color-scheme:dark") && page.contains("@page{size:A4"), "dark, and on paper");
    }
}

#[test]
fn a_recording_of_a_minute_and_twenty_links_is_small_and_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("hostile.vnettop.zst");
    hostile::record(&file, 61, 64);
    let page = report("html", false, &[&file]);
    check_page(&page);
    for escaped in ["&lt;script&gt;", "&lt;b&gt;web&lt;/b&gt;"] {
        assert!(page.contains(escaped), "names stand in it as they are: {escaped}");
    }
    let markdown = report("markdown", false, &[&file]);
    assert!(!markdown.contains("\n<script"), "nor do they begin HTML in Markdown");
    assert!(markdown.contains("\\<script"), "they are escaped there");
}

/// The last object of a replay.
fn last_object(file: &Path) -> Value {
    let output = vnettop(&["--json", "--replay"], &[file]);
    let lines = String::from_utf8(output.stdout).expect("text");
    serde_json::from_str(lines.lines().last().expect("an object")).expect("JSON")
}

#[test]
fn its_figures_are_those_of_the_other_faces() {
    for file in systems().iter().chain([&shipped()]) {
        let (report, last) = (json(false, &[file]), last_object(file));
        let summary = &report["recordings"][0]["summary"];
        let (ours, theirs) = (summary["tests"].as_array().expect("tests"), last["tests"].as_array().expect("tests"));
        assert_eq!(ours.len(), theirs.len(), "{}: as many tests", file.display());
        for (ours, theirs) in ours.iter().zip(theirs) {
            for figure in ["number", "mean_bits_per_s", "lost_packets", "card"] {
                assert_eq!(ours[figure], theirs[figure], "{}: {figure}", file.display());
            }
            let mean = ours["mean_bits_per_s"].as_f64().expect("a rate");
            let bins = ours["jitter"]["mean_bits_per_s"].as_f64().unwrap_or(mean);
            assert!((mean / bins - 1.0).abs() < 0.1, "{}: the bins have that mean: {mean} {bins}", file.display());
        }
        for thread in last["threads"].as_array().expect("threads") {
            let is_it = |one: &&Value| one["tid"] == thread["tid"];
            let ours = summary["threads"].as_array().expect("threads").iter().find(is_it).expect("it is there");
            assert_eq!(ours["role"], thread["role"]);
            assert!(ours["moves"].as_u64() <= thread["moves"].as_u64(), "no more migrations than there were");
        }
        assert_eq!(summary["host"]["kernel"], last["host"]["kernel"]);
    }
}

#[test]
fn a_pin_has_the_same_card_as_the_command_card_prints() {
    let card = vnettop(&["card", "--format", "json"], &[&shipped()]);
    let card: Value = serde_json::from_slice(&card.stdout).expect("one object");
    let test = &json(false, &[&shipped()])["recordings"][0]["summary"]["tests"][0];
    assert_eq!(test["card"], card["card"]);
    let sentence = card["card"]["text"].as_str().expect("a sentence");
    for format in ["html", "markdown"] {
        let written = report(format, false, &[&shipped()]);
        assert_eq!(written.matches(sentence).count(), 1, "{format} has the verdict once: {sentence}");
    }
}

#[test]
fn a_report_begins_with_its_verdict_and_mixes_no_pinned_with_unpinned_time() {
    // Its seconds repeat: an interval over them says nothing.
    let verdict = "Pinning made it steadier and faster: +8.85 Gbit/s";
    let page = report("html", false, &[&shipped()]);
    let headline = page.split_once("<h1>").and_then(|(_, rest)| rest.split_once("</h1>")).expect("a headline");
    assert_eq!(headline.0.replace('\u{a0}', " "), verdict);
    assert!(headline.1.trim_start_matches(|c| c != '>').len() > 100, "and the rest follows");
    let markdown = report("markdown", false, &[&shipped()]);
    assert!(markdown.starts_with(&format!("# {verdict}\n")), "{}", &markdown[..200]);
    assert!(
        markdown
            .contains("**30 s before the pin: 26.0 Gbit/s (CV 49.6 %). 30 s after the pin: 34.9 Gbit/s (CV 1.59 %).**"),
        "{markdown}"
    );
    let (test, links) = markdown.split_once("### Path").expect("a path");
    assert!(!test.contains("31.5 Gbit/s"), "the mean of both stands nowhere");
    assert!(links.contains("while the test ran, pinned or not"), "but of its links, where that is said");
    for reason in [
        "Why: threads migrate 3.1/s, 2.2/s across NUMA nodes (as at 38 s; for ",
        "Cost: ",
        "Do: keep the pin: iperf3 server on core 0, iperf3 client on core 1",
        "Limit: core 1",
    ] {
        assert!(markdown.contains(&format!("\n\n{reason}")), "{reason} is among the first lines: {markdown}");
    }
    let test = &json(false, &[&shipped()])["recordings"][0]["summary"]["tests"][0];
    let [unpinned, pinned] = ["unpinned", "pinned"].map(|side| test[side]["mean_bits_per_s"].as_f64().expect("a mean"));
    assert!(unpinned < 29e9 && pinned > 34e9, "{unpinned} {pinned}");
    let beside = report("markdown", false, &[&shipped(), &systems()[0]]);
    let overview = beside.split("\n# ").next().expect("the table of both");
    let row = |name: &str| overview.lines().find(|line| line.starts_with(&format!("| {name} |"))).map(str::to_owned);
    assert!(row("mean rate").is_none() && row("mean rate, unpinned").is_some(), "no mean of both: {overview}");
    assert!(row("mean rate, pinned").is_some_and(|row| row.ends_with("| not pinned |")), "{overview}");
    assert_eq!(json(false, &[&shipped()])["recordings"][0]["verdict"], verdict);
    for file in systems() {
        let verdict = json(false, &[&file])["recordings"][0]["verdict"].as_str().expect("a sentence").to_owned();
        assert!(
            verdict.contains("teady") && verdict.contains("bit/s (CV "),
            "how steady it was and the rate: {verdict}"
        );
        assert!(report("markdown", false, &[&file]).starts_with(&format!("# {}", verdict.replace('#', "\\#"))));
    }
}

#[test]
fn pinned_time_is_shaded_and_nominal_speeds_are_where_the_legend_says() {
    let page = report("html", false, &[&shipped()]);
    assert!(page.contains("threads are pinned by vnettop") && page.contains("Pinned from 38 s to 80 s."), "both said");
    let overlay = systems().into_iter().find(|file| file.ends_with("docker-overlay.vnettop.zst")).expect("it is there");
    let page = report("html", false, &[&overlay]);
    assert!(page.contains("nominal 10.0 Gbit/s (constant of the driver), the lowest on its path"), "the line is named");
    assert!(page.contains("a line: the nominal speed of the link"), "that of each link too");
}

#[test]
fn nothing_of_an_anonymised_report_is_a_name_or_an_address_of_the_recording() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = folder.path().join("acme-secret-file.vnettop.zst");
    hostile::record(&made, 12, 8);
    let mut looked_for = 0;
    for file in systems().iter().chain([&shipped(), &made]) {
        let names = hostile::names(file);
        for format in ["html", "markdown", "json"] {
            let text = report(format, true, &[file]).replace('\\', "");
            for name in &names {
                assert!(!has_word(&text, name), "{}: {name} is in the {format}", file.display());
            }
            looked_for += names.len();
        }
    }
    assert!(looked_for > 300, "{looked_for} names were looked for");
    let text = report("markdown", true, &[&made]);
    assert!(
        text.contains("Linux 6.12.0 ") && !text.contains("acmebank"),
        "who built the kernel is not said: {text:.900}"
    );
    let made = hostile::names(&made);
    for wanted in ["<script>alert(1)</script>", "198.51.100.77", "2001:db8::5ec", "acme-host", "--password=hunter2"] {
        assert!(made.contains(wanted), "the test looks for {wanted}");
    }
}

/// The name stands there by itself, not as a part of another word.
fn has_word(text: &str, name: &str) -> bool {
    let is_inner = |c: char| c.is_alphanumeric() || c == '_' || c == '-' || c == '.' || c == ':';
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back().is_some_and(is_inner);
        let after = text[at + name.len()..].chars().next().is_some_and(|c| is_inner(c) && c != '.' && c != ':');
        !before && !after
    })
}

#[test]
fn the_same_anonymised_recording_has_the_same_figures() {
    for file in [&shipped(), &systems()[0]] {
        let [plain, anonymous] = [false, true].map(|anonymise| json(anonymise, &[file]));
        let of = |report: &Value, figure: &str| report["recordings"][0]["summary"]["tests"][0][figure].clone();
        for figure in ["mean_bits_per_s", "jitter", "moves_per_s", "lost_packets", "bins", "card"] {
            assert_eq!(of(&plain, figure), of(&anonymous, figure), "{figure} of {}", file.display());
        }
        assert_eq!(anonymous["anonymised"], true);
    }
}

#[test]
fn several_recordings_stand_side_by_side_and_each_in_full() {
    let [one, other] = [&systems()[0], &systems()[1]];
    let page = report("html", false, &[one, other, &shipped()]);
    check_page(&page);
    assert!(page.contains("3 recordings side by side"), "its title");
    for file in [one, other, &shipped()] {
        let name = file.file_name().expect("a name").to_string_lossy().into_owned();
        assert!(page.matches(&*name).count() >= 3, "{name} has a column, a bar and a section");
    }
    let markdown = report("markdown", false, &[one, other]);
    assert!(markdown.contains("| busiest softirq |") && markdown.contains("| limit |"), "{markdown}");
}

/// A recording cut or damaged in the middle, one without a test, one without a sample.
#[test]
fn a_recording_that_is_not_whole_gives_a_report_of_what_there_is_and_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = folder.path().join("whole.jsonl");
    hostile::record(&whole, 12, 4);
    let text = std::fs::read_to_string(&whole).expect("lines");
    let lines: Vec<&str> = text.lines().collect();
    // Some of the samples.
    let half = lines.len() - 4;
    let write = |name: &str, text: String| {
        let file = folder.path().join(name);
        std::fs::write(&file, text).expect("a file");
        file
    };
    let damaged = [&lines[..half], &["{\"what\":1}"], &lines[half..]].concat().join("\n") + "\n";
    let cut = lines[..half].join("\n") + "\n" + &lines[half][..lines[half].len() / 2];
    for (file, words) in [
        (write("damaged.jsonl", damaged), "is damaged in line"),
        (write("cut.jsonl", cut), "is cut off"),
        (write("empty.jsonl", lines[0].to_owned() + "\n"), "fewer than two samples"),
    ] {
        let page = report("html", false, &[&file]);
        check_page(&page);
        assert!(page.contains(words), "{}: {words}", file.display());
        let is_empty = words.starts_with("fewer");
        assert_eq!(json(false, &[&file])["recordings"][0]["summary"].is_null(), is_empty, "{}", file.display());
    }
    let no_test = folder.path().join("idle.vnettop.zst");
    hostile::record_idle(&no_test);
    let page = report("html", false, &[&no_test]);
    check_page(&page);
    assert!(page.contains("No benchmark test ran"), "and what the machine did");
    assert!(page.contains("Busy share of each core over time"), "is there");
}

#[test]
fn without_a_recording_it_is_of_the_built_in_one_and_says_so() {
    let output = vnettop(&["report", "--format", "markdown"], &[]);
    let (page, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && page.contains("the built-in recording"), "{page}");
    assert_eq!(said, "vnettop: no recording is named: this is of the built-in one\n");
    let named = report("markdown", false, &[&shipped()]);
    // A file has a name, a length and a sum.
    let rest = |page: &str| {
        let lines = page.split_once("## ").map(|(_, rest)| rest.lines()).expect("a test");
        lines
            .filter(|line| !line.starts_with("- file: ") && !line.starts_with("- SHA-256: "))
            .collect::<Vec<_>>()
            .join("\n")
    };
    assert_eq!(rest(&page), rest(&named), "it is the same one");
}

#[test]
fn it_is_written_where_it_was_asked_for_and_never_over_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = |name: &str| folder.path().join(name);
    let write = |name: &str| {
        let file = out(name);
        let arguments = ["report", "-o", file.to_str().expect("a name")];
        vnettop(&arguments, &[&shipped()])
    };
    for (name, begins) in [("a.html", "<!DOCTYPE html>"), ("a.md", "# Pinning made it"), ("a.json", "{\"")] {
        let output = write(name);
        assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
        let text = std::fs::read_to_string(out(name)).expect("it is there");
        assert!(text.starts_with(begins) && text.ends_with('\n'), "{name} begins with {begins}");
    }
    std::fs::copy(shipped(), out("copy.json")).expect("a copy");
    for name in ["copy.json", "a.html"] {
        let before = std::fs::read(out(name)).expect("it is there");
        let output = write(name);
        let sentence = String::from_utf8_lossy(&output.stderr).into_owned();
        let is_refused = output.status.code() == Some(1);
        assert!(
            is_refused && sentence.ends_with("exists already: name another file, or remove it first\n"),
            "{sentence}"
        );
        assert_eq!(std::fs::read(out(name)).expect("it is there"), before, "nothing was touched");
    }
    let device = vnettop(&["report", "--format", "html", "-o", "/dev/null"], &[&shipped()]);
    assert!(device.status.success(), "a device is no file that could be lost: {device:?}");
    let none = vnettop(&["report", "-o", out("b.html").to_str().expect("a name")], &[Path::new("Cargo.toml")]);
    let sentence = String::from_utf8_lossy(&none.stderr).into_owned();
    assert!(sentence.contains("is not a vnettop recording") && sentence.lines().count() == 1, "{sentence}");
    assert!(!out("b.html").exists(), "and no empty file stays");
    let names: BTreeSet<_> =
        std::fs::read_dir(folder.path()).expect("it is there").map(|one| one.expect("one").file_name()).collect();
    assert_eq!(names.len(), 4, "nothing else was written: {names:?}");
}
