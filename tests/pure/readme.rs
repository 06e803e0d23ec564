//! The README and the manual in docs/ say what the program does: the keys are the KEYS table, the options exist, and every page is
//! there and can be found.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use vnettop::action::{Key, KeyMap, MOUSE, help_groups};

/// What the pages say of other programs: cargo, iperf3, docker, sha256sum.
const OTHERS: &[&str] = &[
    "--profile",
    "--no-default-features",
    "--features",
    "--release",
    // Of cargo's tests, git, rpmbuild and packaging/notices.
    "--frozen",
    "--workspace",
    "--lib",
    "--test",
    "--skip",
    "--ignored",
    "--exit-code",
    "--without",
    "--static",
    // Of systemctl, curl and docker.
    "--now",
    "--cacert",
    "--unix-socket",
    "--path",
    "--json-stream",
    "--logfile",
    "--rm",
    "--pid",
    "--net",
    "--read-only",
    "--cap-drop",
    "--cap-add",
    "--security-opt",
    "--ulimit",
    "--build-arg",
    "--check",
    "--ignore-missing",
    // Of kubectl and its plugin.
    "--from-file",
    "--in",
    "--ssh",
    "--clean",
    "--image",
    "--image-pull-secret",
    "--for",
    "--everybody",
    "--old-kernel",
    "--selinux",
    // Of helm, and curl for a name that no server knows.
    "--create-namespace",
    "--resolve",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn readme() -> String {
    text(&root().join("README.md"))
}

fn pages() -> Vec<PathBuf> {
    let entries =
        |folder: PathBuf| fs::read_dir(folder).expect("there is a manual").map(|page| page.expect("an entry").path());
    let (folders, mut pages): (Vec<PathBuf>, Vec<PathBuf>) =
        entries(root().join("docs")).partition(|path| path.is_dir());
    pages.extend(folders.into_iter().flat_map(entries));
    pages.extend(fs::read_dir(root()).expect("the top").map(|page| page.expect("an entry").path()).filter(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("README.") && name != "README.md")
    }));
    pages
}

#[test]
fn the_readme_is_read_in_one_sitting() {
    let lines = readme().lines().count();
    assert!(lines <= 120, "{lines} lines; what is more belongs into docs/");
}

#[test]
fn the_keys_are_the_keys_table() {
    let names = |keys: Vec<Key>| keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(" ");
    let page = text(&root().join("docs/screen.md"));
    let mouse: Vec<String> = MOUSE.iter().map(|(what, does)| format!("| {what} | {does} |")).collect();
    let table = format!("| mouse | what it does |\n|---|---|\n{}", mouse.join("\n"));
    assert!(page.contains(&table), "the table is:\n{table}");
    let keys = help_groups(&KeyMap::default()).into_iter().map(|(title, lines)| {
        let rows: Vec<String> = lines.into_iter().map(|(keys, help)| format!("| {} | {help} |", names(keys))).collect();
        format!("### {title}\n\n| key | what it does |\n|---|---|\n{}\n", rows.join("\n"))
    });
    let keys = keys.collect::<Vec<_>>().join("\n");
    assert!(page.contains(&keys), "the keys are:\n{keys}");
}

#[test]
fn the_options_exist() {
    let help = |words: &[&str]| match vnettop::cli::parse(words.iter().map(Into::into), true) {
        Err(vnettop::cli::CliError::Text(help)) => help,
        other => panic!("--help gives a text, not {other:?}"),
    };
    let commands = ["run", "card", "cut", "convert", "save", "report", "compare", "export", "fleet"]
        .map(|command| help(&[command, "--help"]));
    let help = help(&["--help"]) + &commands.concat();
    for page in pages().iter().chain([&root().join("README.md")]) {
        let text = text(page);
        let named = text
            .split(|c: char| !(c.is_alphanumeric() || c == '-'))
            .filter(|word| word.starts_with("--") && word.len() > 3 && !OTHERS.contains(word));
        for option in named {
            assert!(help.contains(option), "{option} of {} is an option of the program", page.display());
        }
    }
}

/// The headings of a page as a link names them.
fn headings(page: &Path) -> BTreeSet<String> {
    let text = text(page);
    let titles = text.lines().filter_map(|line| Some(line.strip_prefix('#')?.trim_start_matches('#').trim()));
    let kept = |letter: &char| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_');
    titles.map(|title| title.to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-")).collect()
}

#[test]
fn every_link_leads_to_a_page_and_every_page_is_linked() {
    let all = pages();
    let mut reached = BTreeSet::new();
    for page in all.iter().chain([&root().join("README.md")]) {
        let text = text(page);
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let path = if file.is_empty() { page.clone() } else { page.parent().expect("a folder").join(file) };
            let path = path.canonicalize().unwrap_or_else(|error| panic!("{}: {target}: {error}", page.display()));
            assert!(
                heading.is_empty() || headings(&path).contains(heading),
                "{}: {target}: no such heading",
                page.display()
            );
            reached.insert(path);
        }
    }
    for page in all {
        assert!(reached.contains(&page.canonicalize().expect("it is there")), "{} can be found", page.display());
    }
}
