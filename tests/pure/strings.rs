//! Everything that people read, in one file that can be read in one sitting (`tests/strings.txt`), and the words and the length that it keeps to.
//! `INSTA_UPDATE=always cargo test --test pure strings::` writes the file anew.

mod gather;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use vnettop::derive::denial::{DENIALS, DENYING};

/// Word → the better one. Whole words, in whatever case.
const GLOSSARY: &[(&str, &str)] = &[
    ("move", "migrate, migration, carry"),
    ("moves", "migrates, migrations, carries"),
    ("moved", "migrated, carried"),
    ("way", "path"),
    ("ways", "paths"),
    ("mend", "fix"),
    ("mends", "fixes"),
    ("claim", "nominal speed"),
    ("claims", "nominal speeds"),
    ("claimed", "nominal"),
    ("told", "reported"),
    ("seen", "visible"),
    ("stretch", "phase"),
    ("stretches", "phases"),
    ("put back", "restore"),
    ("puts back", "restores"),
    ("put it back", "restore it"),
    ("leave", "close"),
    ("leaves", "closes"),
    ("begin", "start"),
    ("begins", "starts"),
    ("began", "started"),
    ("beginning", "start"),
    ("hang together", "grouped by connection"),
    ("lets go", "clears, releases"),
    ("came to", "the sum, a summary"),
    ("goes by", "uses, follows"),
    ("all the same", "still, anyway"),
    ("surely within", "the whole interval within"),
    ("what it is worth", "whether it is a real limit"),
];

/// What holds such a word all the same, and why.
const ALLOWED: &[(&str, &str)] = &[
    ("stretch_s", "a field of the JSON keeps its name"),
    ("moves are counted", "recordings of older versions say so; a report says migrations"),
    ("--stretch", "the option keeps its old name beside the new one"),
];

/// Cells that a sentence should have at most.
const MOST_CELLS: usize = 78;
/// So many are longer: most hold commands, or the names of what they are about. This number may fall and not rise.
const LONGER: usize = 49;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The file as the sources have it now: the command line's help first, then file by file.
fn written() -> String {
    let mut text = "Every string that people read, by file and in order; INSTA_UPDATE=always cargo test --test pure strings:: writes it anew.\n"
        .to_owned();
    let mut commands = vec![vnettop::cli::command()];
    while let Some(mut command) = commands.pop() {
        let name = command.get_name().to_owned();
        let _ = write!(text, "\n== help of {name}\n{}\n", command.render_long_help());
        let inner: Vec<_> = command.get_subcommands().filter(|inner| inner.get_name() != "help").cloned().collect();
        commands.extend(inner.into_iter().rev());
    }
    for (file, strings) in gather::strings() {
        let _ = writeln!(text, "\n== {file}");
        for string in strings {
            let _ = writeln!(text, "{string}");
        }
    }
    text
}

#[test]
fn the_file_of_all_strings_is_up_to_date() {
    let file = root().join("tests/strings.txt");
    let now = written();
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        fs::write(&file, &now).expect("the file can be written");
    }
    let known = read(&file);
    let changed = now.lines().zip(known.lines()).find(|(now, known)| now != known);
    assert!(
        now == known,
        "tests/strings.txt is not what the sources say, first at {changed:?}: INSTA_UPDATE=always cargo test --test pure strings::"
    );
}

/// What is wrong with one line: each word of the glossary that it holds, with the better one.
fn wrong(line: &str) -> Vec<String> {
    let mut plain = gather::without_braces(line).to_lowercase();
    for (phrase, _) in ALLOWED {
        plain = plain.replace(phrase, " ");
    }
    let words: Vec<&str> =
        plain.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect();
    let spaced = format!(" {} ", words.join(" "));
    let held = GLOSSARY.iter().filter(|(word, _)| spaced.contains(&format!(" {word} ")));
    held.map(|(word, better)| format!("\"{word}\" ({better}) in: {}", line.trim())).collect()
}

#[test]
fn no_string_has_a_word_that_the_glossary_replaces() {
    let found: Vec<String> = written().lines().flat_map(wrong).collect();
    assert!(found.is_empty(), "better words are known for {}:\n{}", found.len(), found.join("\n"));
    assert_eq!(wrong("3 moves, and {claims} are").len(), 1, "the test sees a word, and not what stands in braces");
}

/// A page as people read it: no code, no address of a link.
fn prose(page: &str) -> String {
    let mut prose = String::new();
    let mut is_code = false;
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            let words: String = line.split('`').step_by(2).collect::<Vec<_>>().join(" _ ");
            prose.push_str(&words.replace("](", " _"));
            prose.push('\n');
        }
    }
    prose
}

#[test]
fn neither_has_a_page_of_the_manual() {
    let mut pages: Vec<PathBuf> = fs::read_dir(root().join("docs"))
        .expect("there is a manual")
        .map(|page| page.expect("a page").path())
        .filter(|page| page.is_file())
        .collect();
    pages.push(root().join("README.md"));
    let news = read(&root().join("CHANGELOG.md"));
    // The newest section alone: what is released is history.
    let newest = news.split("\n## ").nth(1).expect("a section").to_owned();
    let pages = pages.iter().map(|page| (page.display().to_string(), read(page)));
    let mut found = Vec::new();
    for (name, text) in pages.chain([("CHANGELOG.md".to_owned(), newest)]) {
        found.extend(prose(&text).lines().flat_map(wrong).map(|line| format!("{name}: {line}")));
    }
    assert!(found.is_empty(), "better words are known for {}:\n{}", found.len(), found.join("\n"));
}

#[test]
fn no_more_sentences_are_long_than_were() {
    let strings = gather::strings();
    let sentences = strings.iter().flat_map(|(_, strings)| strings).flat_map(|text| {
        text.split("\\n").flat_map(|line| line.split(". ")).flat_map(|part| part.split("; ")).map(str::to_owned)
    });
    let longer: Vec<String> =
        sentences.filter(|text| gather::without_braces(text).chars().count() > MOST_CELLS).collect();
    assert!(
        longer.len() <= LONGER,
        "{} sentences are longer than {MOST_CELLS} cells, and only {LONGER} were; cut the new ones:\n{}",
        longer.len(),
        longer.join("\n")
    );
}

#[test]
fn every_sentence_that_denies_something_says_in_the_table_what_it_needs() {
    let text = read(&root().join("tests/strings.txt"));
    // The help says what options do.
    let parts = text
        .split("\n== ")
        .skip(1)
        .filter(|part| !part.starts_with("help of ") && !part.starts_with("derive/denial.rs"));
    let sources: Vec<&str> = parts.flat_map(|part| part.lines().skip(1)).collect();
    assert!(sources.len() > 1000, "the strings of the sources are there: {}", sources.len());
    let denies = |line: &&&str| {
        let padded = format!(" {} ", line.to_lowercase());
        // What is only compared with is said to nobody.
        DENYING.iter().any(|words| padded.contains(words) && padded.trim() != *words)
    };
    let has_row = |line: &str| DENIALS.iter().any(|denial| line.contains(denial.words));
    let new: Vec<&&str> = sources.iter().filter(denies).filter(|line| !has_row(line)).collect();
    assert!(new.is_empty(), "what must have been looked at before these are said? (derive/denial.rs) {new:#?}");
    for denial in DENIALS {
        assert!(sources.iter().any(|line| line.contains(denial.words)), "nobody says it any more: {}", denial.words);
    }
}
