//! The screen of a machine that only passes packets on: what is wrong with them leads on every screen, however low.

use std::path::Path;
use std::process::Command;

/// A router whose tbf drops half of what comes in, on a screen of this size.
fn router(size: &str) -> Vec<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tests/router-tbf.vnettop.zst");
    let mut command = Command::new(env!("CARGO_BIN_EXE_vnettop"));
    command.env("LC_ALL", "C.UTF-8").args(["--no-config", "replay", "--at", "0:08", "--print", size]).arg(file);
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

fn has(frame: &[String], text: &str) -> bool {
    frame.iter().any(|line| line.contains(text))
}

#[test]
fn what_is_wrong_leads_on_every_screen() {
    for size in ["60x15", "60x20", "76x21", "80x24", "120x29", "120x40", "200x60"] {
        let frame = router(size);
        for wanted in ["DROPPING 52 %", "WHAT   tbf on rb drops 10.8k packets/s", "├▸Links", "ra  ", "rb  "] {
            assert!(has(&frame, wanted), "{size}: {wanted}\n{}", frame.join("\n"));
        }
        let first = frame.iter().position(|line| line.contains("DROPPING")).expect("just seen");
        assert!(first <= 2, "{size}: above everything else\n{}", frame.join("\n"));
    }
}

#[test]
fn a_usual_terminal_has_cause_cost_remedy_and_the_graph() {
    let frame = router("80x24");
    for wanted in [
        "WHY    207 Mbit/s come in, more than the 100 Mbit/s",
        "COST   107 Mbit/s",
        "DO     send less, or raise its rate",
    ] {
        assert!(has(&frame, wanted), "{wanted}\n{}", frame.join("\n"));
    }
    let command = "│ tc qdisc change dev rb root tbf rate 230mbit burst 151000 limit 236000 ";
    assert!(has(&frame, command), "a command is one line to copy:\n{}", frame.join("\n"));
    let rows = frame.iter().filter(|line| matches!(line.chars().nth(7), Some('┤' | '│'))).count();
    assert!(rows >= 3, "{rows} rows of graph:\n{}", frame.join("\n"));
    assert!(has(&frame, " Cores   2 · core 0: "), "the closed panes have a line each:\n{}", frame.join("\n"));
    assert!(!has(&frame, "Threads"), "but for threads of which there are none:\n{}", frame.join("\n"));
    let counted = "watched for drops: 3 links, 3 qdiscs and 2 backlogs";
    assert!(has(&frame, counted), "what was looked at:\n{}", frame.join("\n"));
}

#[test]
fn what_is_dropped_is_seen_in_the_graph() {
    let frame = router("120x40");
    let rows: Vec<&str> = frame
        .iter()
        .map(|line| line.trim_end_matches([' ', '│']))
        .filter(|line| line.starts_with("│      │"))
        .collect();
    let of = |end: &str| rows.iter().filter(|row| row.ends_with(end)).count();
    let (dropped, passed) = (of("!!!!!!!!"), of("████████"));
    assert!(dropped >= 2 && passed >= 2, "{dropped} rows of what is dropped above {passed}:\n{}", frame.join("\n"));
    assert!(dropped.abs_diff(passed) <= 3, "half of it is dropped:\n{}", frame.join("\n"));
    assert!(has(&frame, " ! lost ─"), "and said what it is:\n{}", frame.join("\n"));
}
