//! What a release says of itself in many places is one: its version, its oldest Rust, the places that nobody has yet, the packages'
//! metadata, and the scripts that the workflow calls.

use crate::rooms::root;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn read(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// The first value of a name in Cargo.toml.
fn field(name: &str) -> String {
    let manifest = read("Cargo.toml");
    let start = format!("{name} = \"");
    let value = manifest.lines().find_map(|line| line.strip_prefix(&start)?.strip_suffix('"'));
    value.unwrap_or_else(|| panic!("Cargo.toml has {name}")).to_owned()
}

fn list(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("readable").path();
        if path.is_dir() { list(&path, into) } else { into.push(path) }
    }
}

/// Where a placeholder may stand, with the text.
fn places() -> Vec<(String, String)> {
    let mut files = vec![root().join("Cargo.toml"), root().join("SECURITY.md"), root().join("README.md")];
    for folder in ["docs", "packaging", ".github"] {
        list(&root().join(folder), &mut files);
    }
    let below = |path: &Path| path.strip_prefix(root()).expect("below it").to_string_lossy().into_owned();
    let read = files.iter().filter_map(|path| Some((below(path), fs::read_to_string(path).ok()?)));
    // The script that replaces them says what they are.
    read.filter(|(name, _)| !name.starts_with("packaging/release/")).collect()
}

#[test]
fn every_placeholder_is_one_of_cargo_toml() {
    let maintainer = field("maintainer");
    let address = maintainer.split(['<', '>']).nth(1).expect("an address").to_owned();
    let known = [field("repository"), field("image"), field("security"), address];
    let mut found = 0;
    for (file, text) in places() {
        for word in text.split(|c: char| c.is_whitespace() || "\"'`<>()[],;*{}".contains(c)) {
            let Some(at) = word.find("example.org") else { continue };
            found += 1;
            let word = word.split("::").last().unwrap_or(word).trim_start_matches("/VNETTOP_IMAGE:-");
            let starts = known.iter().any(|place| {
                word.starts_with(place.as_str())
                    || word.contains(&format!("-{place}"))
                    || word.contains(&format!("={place}"))
            });
            assert!(starts, "{file}: {word} ({at}) is a placeholder that Cargo.toml does not name: {known:?}");
        }
    }
    // A release has none left: every place has its address.
    let is_released = !field("repository").contains("example.org");
    assert!(if is_released { found == 0 } else { found > 10 }, "they are seen: {found}");
}

#[test]
fn every_recipe_has_the_version_of_cargo_toml() {
    let version = field("version");
    let lines = [
        ("packaging/recipes/aur/PKGBUILD", format!("pkgver={version}\n")),
        ("packaging/recipes/aur/.SRCINFO", format!("pkgver = {version}\n")),
        ("packaging/recipes/alpine/APKBUILD", format!("pkgver={version}\n")),
        ("packaging/recipes/alpine/APKBUILD", format!("  vnettop-{version}.tar.gz\n")),
        ("packaging/recipes/homebrew/vnettop.rb", format!("/v{version}/vnettop-{version}.tar.gz\"")),
        ("packaging/recipes/nix/package.nix", format!("version = \"{version}\";")),
        ("packaging/recipes/rpm/vnettop.spec", format!("Version:        {version}\n")),
        ("packaging/recipes/rpm/vnettop.spec", format!(" - {version}-1\n")),
        ("packaging/kubernetes/kubectl-vnettop", format!("\nversion={version}\n")),
        ("packaging/kubernetes/krew.yaml", format!("version: v{version}\n")),
        ("packaging/kubernetes/krew.yaml", format!("/v{version}/kubectl-vnettop-{version}.tar.gz\n")),
        ("packaging/kubernetes/chart/Chart.yaml", format!("\nversion: {version}\nappVersion: {version}\n")),
        ("packaging/kubernetes/vnettop-export.yaml", format!("image: {}:{version}\n", field("image"))),
    ];
    for (file, line) in lines {
        assert!(read(file).contains(&line), "{file} has {line:?}");
    }
}

#[test]
fn every_place_that_names_the_oldest_rust_names_the_same() {
    let oldest = field("rust-version");
    let lines = [
        ("README.md", format!("Rust {oldest} or newer")),
        ("CONTRIBUTING.md", format!("Rust {oldest} or newer")),
        ("docs/install.md", format!("Rust {oldest} or newer")),
        ("packaging/recipes/aur/PKGBUILD", format!("cargo>={oldest}")),
        ("packaging/recipes/alpine/APKBUILD", format!("cargo>={oldest}")),
        ("packaging/recipes/rpm/vnettop.spec", format!("rust >= {oldest}\n")),
        (".github/workflows/release.yml", format!("RUSTUP_TOOLCHAIN: \"{oldest}\"")),
    ];
    for (file, line) in lines {
        assert!(read(file).contains(&line), "{file} has {line:?}");
    }
}

#[test]
fn every_crate_says_what_a_registry_shows() {
    let mut manifests = vec!["Cargo.toml".to_owned()];
    for entry in fs::read_dir(root().join("crates")).expect("there are crates") {
        manifests.push(format!("crates/{}/Cargo.toml", entry.expect("readable").file_name().to_string_lossy()));
    }
    for file in manifests {
        let text = read(&file);
        for line in ["repository.workspace = true", "homepage.workspace = true", "license.workspace = true"] {
            assert!(text.contains(&format!("\n{line}\n")), "{file} has {line}");
        }
        for name in ["description = \"", "keywords = [", "categories = ["] {
            assert!(text.contains(&format!("\n{name}")), "{file} has {name}");
        }
        let keywords = text.lines().find_map(|line| line.strip_prefix("keywords = [")).expect("there are");
        let keywords: Vec<&str> = keywords.split('"').skip(1).step_by(2).collect();
        assert!(keywords.len() <= 5 && keywords.iter().all(|word| word.len() <= 20), "{file}: {keywords:?}");
    }
}

#[test]
fn the_workflow_of_a_release_calls_scripts_that_are_there_and_actions_by_commit() {
    let workflow = read(".github/workflows/release.yml");
    let mut runs = 0;
    for line in workflow.lines().map(|line| line.trim_start_matches([' ', '-'])) {
        if let Some(action) = line.strip_prefix("uses: ") {
            let commit = action.split(['@', ' ']).nth(1).unwrap_or_default();
            let is_commit = commit.len() == 40 && commit.chars().all(|c| c.is_ascii_hexdigit());
            assert!(is_commit && action.contains(" # v"), "{action}: a commit, and its version behind it");
        }
        if let Some(run) = line.strip_prefix("run: ") {
            runs += 1;
            let script = root().join(run.split(' ').next().expect("a word"));
            assert!(script.is_file(), "{run}: a script of the repository, so that packaging/dry-run runs the same");
        }
    }
    assert!(runs > 8, "its steps are seen: {runs}");
    assert!(workflow.contains("\npermissions: {}\n"), "a job has the rights that it names alone");
}

#[test]
fn the_release_page_has_the_changes_of_its_version_and_no_others() {
    let notes = Command::new(root().join("packaging/release/notes")).arg("0.2.0").output().expect("bash");
    let text = String::from_utf8(notes.stdout).expect("text");
    assert!(notes.status.success() && text.starts_with("The first vnettop"), "{text:.200}");
    assert!(!text.contains("## 0.") && text.contains("sha256sum --check"), "{text:.200}");
    let none = Command::new(root().join("packaging/release/notes")).arg("9.9.9").output().expect("bash");
    assert_eq!(none.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&none.stderr).contains("CHANGELOG.md has no section of 9.9.9"));
}
