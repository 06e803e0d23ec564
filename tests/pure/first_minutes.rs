//! docs/first-ten-minutes.md and docs/screen.md show frames of the built-in recording, docs/scripts.md its sentences, each behind the
//! command that prints it, and the pages in Chinese say the same as the English ones: the same headings, commands, words in code,
//! tables and figures.
//!
//! `INSTA_UPDATE=always cargo test --test pure first_minutes::` writes the frames anew.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A page in English, and the same in Chinese.
const PAIRS: &[(&str, &str)] = &[
    ("README.md", "README.zh-CN.md"),
    ("docs/first-ten-minutes.md", "docs/zh-CN/first-ten-minutes.md"),
    ("docs/glossary.md", "docs/zh-CN/glossary.md"),
];
/// What stands before a frame.
const MARK: &str = "<!-- vnettop ";
const FENCE: &str = "```";

fn path(page: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(page)
}

fn text(page: &str) -> String {
    fs::read_to_string(path(page)).unwrap_or_else(|error| panic!("{page}: {error}"))
}

fn frame(words: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vnettop"));
    let out = command.args(words.split(' ')).arg("--no-config").stdin(Stdio::null()).output().expect("vnettop runs");
    assert!(out.status.success(), "{words}: {}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).expect("a frame is UTF-8");
    text.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// The page with the frames of today.
fn drawn(page: &str) -> String {
    let (mut drawn, mut lines) = (String::new(), page.lines());
    while let Some(line) = lines.next() {
        drawn.push_str(line);
        drawn.push('\n');
        let Some(words) = line.strip_prefix(MARK).and_then(|rest| rest.strip_suffix(" -->")) else { continue };
        assert_eq!(lines.next(), Some("```text"), "a frame is behind {line}");
        lines.by_ref().find(|line| *line == FENCE).expect("the frame has an end");
        let _ = write!(drawn, "```text\n{}{FENCE}\n", frame(words));
    }
    drawn
}

#[test]
fn the_pictures_of_the_first_ten_minutes_are_frames_of_today() {
    let pages = [
        ("docs/first-ten-minutes.md", 5),
        ("docs/zh-CN/first-ten-minutes.md", 5),
        ("docs/screen.md", 1),
        ("docs/scripts.md", 1),
    ];
    for (page, least) in pages {
        let (kept, made) = (text(page), drawn(&text(page)));
        assert!(made.matches(MARK).count() >= least, "{page} has its pictures");
        if std::env::var("INSTA_UPDATE").is_ok_and(|how| how == "always") {
            fs::write(path(page), &made).expect("the manual can be written to");
        } else {
            assert!(
                kept == made,
                "frames of {page} are of another day: INSTA_UPDATE=always cargo test --test pure first_minutes::"
            );
        }
    }
}

/// Code blocks and prose, apart; a comment in a block of shell commands is prose.
fn parts(page: &str) -> (Vec<String>, Vec<String>) {
    let (mut code, mut prose, mut kind) = (Vec::new(), Vec::new(), None);
    for line in page.lines() {
        match (line.strip_prefix(FENCE), kind) {
            (Some(_), Some(_)) => kind = None,
            (Some(word), None) => kind = Some(word == "sh"),
            (None, Some(true)) => code.push(line.split(" #").next().unwrap_or_default().trim_end().to_owned()),
            (None, Some(false)) => code.push(line.to_owned()),
            (None, None) => prose.push(line.to_owned()),
        }
    }
    (code, prose)
}

/// What stands in backticks, sorted: an order of words is a language's own.
fn words_in_code(prose: &[String]) -> Vec<String> {
    let mut words: Vec<String> =
        prose.iter().flat_map(|line| line.split('`').skip(1).step_by(2)).map(str::to_owned).collect();
    words.sort();
    words
}

/// The numbers of the prose outside of code and addresses, sorted.
fn figures(prose: &[String]) -> Vec<String> {
    let plain = prose.iter().filter(|line| !line.contains("](")).flat_map(|line| line.split('`').step_by(2));
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == ':';
    let mut figures: Vec<String> = plain
        .flat_map(|part| part.split(|c| !is_word(c)))
        .map(|word| word.trim_matches(['.', ':']).to_owned())
        .filter(|word| word.starts_with(|c: char| c.is_ascii_digit()))
        .collect();
    figures.sort();
    figures
}

#[test]
fn the_chinese_pages_have_the_structure_commands_and_figures_of_the_english_ones() {
    for (english, chinese) in PAIRS {
        let (one, other) = (text(english), text(chinese));
        let headings = |prose: &[String]| -> Vec<usize> {
            prose.iter().map(|line| line.chars().take_while(|c| *c == '#').count()).filter(|level| *level > 0).collect()
        };
        let rows = |prose: &[String]| -> Vec<usize> {
            prose.iter().filter(|line| line.starts_with('|')).map(|line| line.matches(" | ").count()).collect()
        };
        let ((code, prose), (own_code, own_prose)) = (parts(&one), parts(&other));
        assert_eq!(headings(&prose), headings(&own_prose), "headings of {chinese}");
        assert_eq!(code, own_code, "code blocks of {chinese}");
        assert_eq!(rows(&prose), rows(&own_prose), "tables of {chinese}");
        assert_eq!(words_in_code(&prose), words_in_code(&own_prose), "words in code of {chinese}");
        assert_eq!(figures(&prose), figures(&own_prose), "figures of {chinese}");
        let chinese_share = own_prose.concat().chars().filter(|c| ('\u{4e00}'..='\u{9fff}').contains(c)).count();
        assert!(chinese_share > 300, "{chinese} is in Chinese");
    }
}
