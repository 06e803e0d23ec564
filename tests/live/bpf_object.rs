//! The BPF objects in the repository are their sources': built anew each has the same programs, instruction by instruction, and the
//! same maps. What a compiler writes beside them (debug information, the order of strings) differs from release to release.

use crate::ground::{left_out, needs};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Sections with instructions, by name, and the names of the maps with what BTF says of each.
fn essence(object: &Path) -> (BTreeMap<String, Vec<String>>, String) {
    let run = |program: &str, arguments: &[&str]| {
        let out = Command::new(program).args(arguments).arg(object).output();
        let out = out.unwrap_or_else(|error| panic!("{program} runs: {error}"));
        assert!(out.status.success(), "{program}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).expect("text")
    };
    let mut sections: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut section = String::new();
    for line in run("llvm-objdump", &["-d", "-r", "--no-show-raw-insn"]).lines() {
        if let Some(name) = line.strip_prefix("Disassembly of section ") {
            name.trim_end_matches(':').clone_into(&mut section);
        } else if !section.is_empty() && !line.trim().is_empty() {
            sections.entry(section.clone()).or_default().push(line.trim().to_owned());
        }
    }
    let symbols = run("llvm-readelf", &["--symbols", "--wide"]);
    let objects = symbols.lines().filter(|line| line.contains(" OBJECT "));
    let mut maps: Vec<&str> = objects.map(|line| line.split_once(": ").map_or(line, |(_, rest)| rest)).collect();
    maps.sort_unstable();
    (sections, maps.join("\n"))
}

/// Whether the clang here is the release that compiled the object; another one may choose other instructions.
fn is_same_clang(object: &Path) -> bool {
    let out = Command::new("llvm-readelf").args(["-p", ".comment"]).arg(object).output().expect("llvm-readelf runs");
    let of =
        |text: &str| text.split("clang version ").nth(1).and_then(|rest| rest.split('.').next()).map(str::to_owned);
    let here = Command::new("clang").arg("--version").output().expect("clang runs");
    let there = of(&String::from_utf8_lossy(&out.stdout));
    there.is_none() || there == of(&String::from_utf8_lossy(&here.stdout))
}

/// The objects, and how many programs each has at least.
const OBJECTS: [(&str, usize); 2] = [("vnettop.bpf.o", 7), ("latency.bpf.o", 10)];

#[test]
#[ignore = "on the real kernel: tests/run"]
fn the_objects_are_what_their_sources_compile_to() {
    needs(&["clang", "llvm-strip", "llvm-objdump", "llvm-readelf"]);
    assert!(Path::new("/usr/include/bpf/bpf_helpers.h").is_file(), "it needs libbpf-dev: tests/run installs it");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let status = Command::new(root.join("build")).arg(directory.path()).status().expect("bpf/build runs");
    assert!(status.success(), "the sources compile without a warning");
    for (name, at_least) in OBJECTS {
        let (committed, built) = (root.join(name), directory.path().join(name));
        let ((programs, maps), (built_programs, built_maps)) = (essence(&committed), essence(&built));
        assert_eq!(maps, built_maps, "{name} has the same maps and programs: run bpf/build and commit it");
        let same = programs.len() >= at_least && programs.keys().eq(built_programs.keys());
        assert!(same, "every program of {name}: {:?}", programs.keys());
        if is_same_clang(&committed) {
            assert_eq!(programs, built_programs, "{name} has the same instructions: run bpf/build and commit it");
        } else {
            left_out(&format!("instructions of {name} are not compared"), "another release of clang compiled it");
        }
    }
}
