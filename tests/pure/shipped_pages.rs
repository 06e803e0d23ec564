//! The pages that packages install beside the program: every recipe brings the same ones, and their links lead to what is installed.

use crate::rooms::root;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;
use toml_edit::{DocumentMut, Value};

/// Where packages have the manual.
const DOC: &str = "usr/share/doc/vnettop/";
/// What a page may link to though no package brings it, where the line says that it is in the source.
const SOURCE_ONLY: &[&str] = &["ARCHITECTURE.md", "CONTRIBUTING.md"];

/// The files of the source that a pattern with one `*` in its last part names.
fn named(pattern: &str) -> Vec<PathBuf> {
    let (folder, name) = pattern.rsplit_once('/').unwrap_or(("", pattern));
    let Some((start, end)) = name.split_once('*') else { return vec![pattern.into()] };
    let entries = fs::read_dir(root().join(folder)).unwrap_or_else(|error| panic!("{folder}: {error}"));
    let names = entries.map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned());
    let fits = |name: &String| name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end);
    names.filter(fits).map(|name| Path::new(folder).join(name)).collect()
}

/// What a list of Cargo.toml puts into the folder of the manual, of the source alone: names below that folder.
fn listed(package: &str) -> BTreeSet<PathBuf> {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("there is one");
    let manifest: DocumentMut = manifest.parse().expect("TOML");
    let assets = manifest["package"]["metadata"][package]["assets"].as_array().expect("a list");
    let mut files = BTreeSet::new();
    for asset in assets {
        let part = |at: usize, name: &str| match asset {
            Value::Array(parts) => parts.get(at).and_then(Value::as_str).map(str::to_owned),
            Value::InlineTable(parts) => parts.get(name).and_then(Value::as_str).map(str::to_owned),
            _ => None,
        };
        let (from, to) = (part(0, "source").expect("a source"), part(1, "dest").expect("a place"));
        let Some(to) = to.trim_start_matches('/').strip_prefix(DOC) else { continue };
        if from.starts_with("target/") {
            continue;
        }
        let is_folder = to.is_empty() || to.ends_with('/');
        let found = named(&from);
        assert!(!found.is_empty(), "{package}: {from} names nothing");
        let place = |file: &PathBuf| Path::new(to).join(file.file_name().expect("a name"));
        files.extend(found.iter().map(|file| if is_folder { place(file) } else { to.into() }));
    }
    files
}

fn below(folder: &Path, top: &Path, into: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            below(&path, top, into);
        } else {
            into.insert(path.strip_prefix(top).expect("below it").to_owned());
        }
    }
}

/// What `packaging/manual` installs, which Arch, Alpine, Nix, Homebrew and the spec call.
fn installed() -> (tempfile::TempDir, BTreeSet<PathBuf>) {
    let folder = tempfile::tempdir().expect("a folder");
    let done = Command::new("sh").arg(root().join("packaging/manual")).arg(folder.path()).status().expect("sh");
    assert!(done.success(), "packaging/manual");
    let mut files = BTreeSet::new();
    below(folder.path(), folder.path(), &mut files);
    (folder, files)
}

#[test]
fn every_package_brings_the_same_pages() {
    let (_folder, manual) = installed();
    assert_eq!(listed("deb"), manual, "the .deb and packaging/manual");
    assert_eq!(listed("generate-rpm"), manual, "the .rpm and packaging/manual");
    for recipe in ["aur/PKGBUILD", "alpine/APKBUILD", "nix/package.nix", "rpm/vnettop.spec", "homebrew/vnettop.rb"] {
        let text = fs::read_to_string(root().join("packaging/recipes").join(recipe)).expect("a recipe");
        assert!(text.contains("packaging/manual"), "{recipe} installs the manual");
    }
}

#[test]
fn the_rpm_removes_every_folder_of_its_pages() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("there is one");
    let script = manifest.lines().find(|line| line.starts_with("post_uninstall_script")).expect("a script");
    for file in listed("generate-rpm") {
        for folder in file.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()) {
            assert!(script.contains(&format!("{DOC}{} ", folder.display())), "rmdir of {}", folder.display());
        }
    }
}

/// A path without its `..`.
fn straight(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut straight, part| {
        match part {
            Component::ParentDir => drop(straight.pop()),
            Component::CurDir => {}
            other => straight.push(other),
        }
        straight
    })
}

#[test]
fn the_links_of_installed_pages_lead_to_installed_files() {
    let (folder, files) = installed();
    let mut seen = 0;
    for page in files.iter().filter(|file| file.extension().is_some_and(|end| end == "md")) {
        let text = fs::read_to_string(folder.path().join(page)).expect("a page");
        for line in text.lines() {
            let links = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
            let pictures = line.split("src=\"").skip(1).filter_map(|rest| rest.split('"').next());
            let sets = line.split("srcset=\"").skip(1).filter_map(|rest| rest.split('"').next());
            for target in links.chain(pictures).chain(sets) {
                let file = target.split('#').next().unwrap_or_default();
                if file.is_empty() || file.contains("://") {
                    continue;
                }
                seen += 1;
                let path = straight(&page.parent().expect("a folder").join(file));
                let is_there = files.contains(&path) || files.iter().any(|file| file.starts_with(&path));
                let is_said = SOURCE_ONLY.iter().any(|only| path == Path::new(only))
                    && (line.contains("source") || line.contains("源码"));
                assert!(is_there || is_said, "{}: {target} is in no package", page.display());
            }
        }
    }
    assert!(seen > 100, "they are seen: {seen}");
}
