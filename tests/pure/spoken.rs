//! `--lines`: a sentence a test every few seconds, for a screen reader or a log.

use std::process::{Command, Output, Stdio};

fn vnettop(words: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vnettop"));
    command.args(words.split(' ')).stdin(Stdio::null()).output().expect("vnettop runs")
}

fn lines(words: &str) -> Vec<String> {
    let output = vnettop(words);
    assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect()
}

#[test]
fn a_replay_says_test_rate_verdict_and_limit_and_what_a_pin_brought() {
    let lines = lines("replay --lines 5 --no-config");
    assert!((12..=18).contains(&lines.len()), "80 s have a line every 5 s: {lines:#?}");
    for line in &lines {
        let time = line.get(..12).unwrap_or_default();
        assert!(time.ends_with(" UTC") && time.as_bytes().get(2) == Some(&b':'), "the time comes first: {line}");
        assert!(line.contains(" test 1, ") && !line.contains(char::is_control), "then the test: {line}");
    }
    let has = |words: &str| lines.iter().any(|line| line.contains(words));
    assert!(has("Gbit/s. Unsteady over ") && has(" while threads migrate"), "the verdict with its cause: {lines:#?}");
    assert!(has(" Limit: "), "and what holds it back: {lines:#?}");
    assert!(has("Pinned, steadier and faster"), "and what the pin brought: {lines:#?}");
}

#[test]
fn the_count_is_of_sentences_and_other_faces_are_refused() {
    assert_eq!(lines("replay --lines 5 -n 2 --no-config").len(), 2);
    for words in ["--lines 5 --json", "--lines 5 --print 80x24", "--lines 0", "--lines 5 --host a", "--lines 5 doctor"]
    {
        assert_eq!(vnettop(words).status.code(), Some(2), "'{words}' is refused");
    }
}

/// What a line says after ` TCP: `, Gbit/s.
fn rate(line: &str) -> f64 {
    let rate = line.split(" TCP: ").nth(1).and_then(|rest| rest.split(" Gbit/s").next());
    rate.and_then(|rate| rate.parse().ok()).unwrap_or_else(|| panic!("a rate in Gbit/s: {line}"))
}

#[test]
fn the_rate_is_the_mean_since_the_line_before_whatever_their_distance() {
    let fives: Vec<f64> = lines("replay --lines 5 --no-config").iter().map(|line| rate(line)).collect();
    for (at, line) in lines("replay --lines 10 --no-config").iter().take(6).enumerate() {
        let both = fives[2 * at].midpoint(fives[2 * at + 1]);
        assert!((rate(line) - both).abs() < 0.5, "{line} is the mean of the two halves, {both} ({fives:?})");
    }
}
