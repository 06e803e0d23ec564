//! A disk without room: what could not be written is said, with the exit code of a failure, and leaves no empty file.

use crate::ground::{Netns, VNETTOP, needs};
use std::process::Output;

/// Runs shell lines in a mount namespace of their own, in a folder on a disk of so many KiB; `v` is vnettop.
fn on_a_disk_of(kib: u32, script: &str) -> Output {
    let near = Netns::new();
    let whole = format!(
        "folder=$(mktemp -d); trap 'cd /; umount \"$folder\"; rmdir \"$folder\"' EXIT
         mount -t tmpfs -o size={kib}k tmpfs \"$folder\"; cd \"$folder\"; v={VNETTOP}
         {script}"
    );
    near.command("unshare").args(["--mount", "sh", "-c", &whole]).output().expect("unshare runs")
}

/// Not a byte of room is left.
const FILL: &str = "cat /dev/zero > filled 2> /dev/null;";

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_run_whose_recording_finds_no_room_fails_with_the_sentence_and_leaves_no_empty_file() {
    needs(&["unshare", "mount"]);
    let out = on_a_disk_of(16, &format!("{FILL} $v run --record x.jsonl.zst -- true; echo code $?; ls"));
    assert_eq!(text(&out.stdout), "code 1\nfilled\n", "{}", text(&out.stderr));
    assert!(
        text(&out.stderr).contains("cannot write recording x.jsonl.zst: No space left on device"),
        "{}",
        text(&out.stderr)
    );
    // Room for the beginning only.
    let out = on_a_disk_of(16, "$v run -d 0.01 --record x.jsonl -- sleep 2; echo code $?; ls");
    assert_eq!(text(&out.stdout), "code 1\nx.jsonl\n", "what was written is kept: {}", text(&out.stderr));
    assert!(text(&out.stderr).contains("No space left on device"), "{}", text(&out.stderr));
    let out = on_a_disk_of(16, "$v run -d 0.01 --record x.jsonl -- sh -c 'sleep 2; exit 7'; echo code $?");
    assert_eq!(text(&out.stdout), "code 7\n", "the command's own failure comes first: {}", text(&out.stderr));
    let out = on_a_disk_of(16, "$v run --card card.txt -- sh -c 'cat /dev/zero > filled; sleep 0.3'; echo code $?; ls");
    assert_eq!(text(&out.stdout), "code 1\nfilled\n", "a card that finds no room leaves none: {}", text(&out.stderr));
    assert!(text(&out.stderr).contains("cannot write the card card.txt"), "{}", text(&out.stderr));
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn what_is_written_beside_the_screen_or_the_objects_leaves_no_empty_file_either() {
    needs(&["unshare", "mount"]);
    let out = on_a_disk_of(16, &format!("{FILL} $v --json -n 1 -d 0.05 --record x.jsonl; echo code $?; ls"));
    assert_eq!(text(&out.stdout), "code 1\nfilled\n", "{}", text(&out.stderr));
    assert!(text(&out.stderr).contains("No space left on device"), "{}", text(&out.stderr));
    let out = on_a_disk_of(16, "$v --json -d 0.01 -n 200 --record x.jsonl > /dev/null; echo code $?");
    assert_eq!(text(&out.stdout), "code 1\n", "{}", text(&out.stderr));
    for (key, says) in [("w", "cannot write report"), ("R", "cannot write recording")] {
        let script =
            format!("{FILL} export XDG_STATE_HOME=$PWD; $v -d 0.05 --keys {key} --print 120x40; find . -type f");
        let out = on_a_disk_of(16, &script);
        let shown = text(&out.stdout);
        assert!(shown.contains(says) && shown.contains("No space left"), "{key} says it: {shown}{}", text(&out.stderr));
        assert!(shown.ends_with("./filled\n"), "and leaves no file: {shown}");
    }
}
