//! The README says what the program does: its keys are the KEYS table, its commands exist, its frame is a frame.

use std::fs;
use std::path::Path;

fn readme() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).expect("there is a README")
}

#[test]
fn its_keys_are_the_keys_table() {
    assert!(
        readme().contains(vnettop::action::markdown().trim()),
        "the table under Keys is:\n{}",
        vnettop::action::markdown()
    );
}

#[test]
fn its_options_exist() {
    let help = |words: &[&str]| match vnettop::cli::parse(words.iter().map(Into::into), true) {
        Err(vnettop::cli::CliError::Text(help)) => help,
        other => panic!("--help gives a text, not {other:?}"),
    };
    let help = help(&["--help"]) + &help(&["run", "--help"]);
    let readme = readme();
    let named = readme.split(|c: char| !(c.is_alphanumeric() || c == '-')).filter(|word| {
        word.starts_with("--")
            && word.len() > 3
            && !["--release", "--path", "--json-stream", "--logfile"].contains(word)
    });
    for option in named {
        assert!(help.contains(option), "{option} of the README is an option of the program");
    }
}

#[test]
fn its_frame_is_of_one_width() {
    let readme = readme();
    let frame = readme.split("```text\n").nth(1).and_then(|rest| rest.split("```").next()).expect("there is a frame");
    let borders: Vec<usize> =
        frame.lines().filter(|line| line.starts_with(['┌', '│', '├', '└'])).map(|line| line.chars().count()).collect();
    assert!(
        borders.len() > 20 && borders.iter().all(|&width| width == 100),
        "every row of the frame is 100 wide: {borders:?}"
    );
}
