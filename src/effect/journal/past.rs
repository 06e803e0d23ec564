//! Journals of vnettops that may be gone, read back. A line torn by a crash is nothing, a damaged line is told and left
//! out, and no line can make vnettop do more than put a mask back on the very thread it names, or a
//! setting on the very link.

use super::steer_lines::{PastSteers, SteerEnd};
use super::{Entry, PinOwner};
use crate::effect::NumberSpaces;
use crate::effect::put_back::ActivePin;
use crate::sample::ThreadId;
use crate::trust;
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Longer than any line that a vnettop writes, with masks of thousands of cores: what has such a line is not read further.
const MOST_LINE: u64 = 1 << 20;

/// One journal, replayed.
#[derive(Debug, Default)]
pub(in crate::effect) struct Past {
    pub(in crate::effect) path: PathBuf,
    pub(in crate::effect) owner: PinOwner,
    /// The boot it was written in; none where its first line is damaged.
    pub(in crate::effect) boot: Option<String>,
    /// Where its numbers hold; nothing of it is known where its first line is damaged.
    pub(in crate::effect) spaces: NumberSpaces,
    /// It pins and unpins in turn.
    pub(in crate::effect) compares: bool,
    /// Every thread that it pinned at any time, and what it was called.
    pub(in crate::effect) named: BTreeMap<ThreadId, String>,
    /// What was in force at its end, oldest first, each with the time it was pinned first (`CLOCK_MONOTONIC`, ns).
    pub(in crate::effect) held: Vec<(u64, ActivePin)>,
    /// Settings of links that it changed.
    pub(in crate::effect) steers: PastSteers,
    /// Numbers of lines that are not journal lines, from 1.
    pub(in crate::effect) damaged: Vec<usize>,
}

impl Past {
    /// The threads that are its own while it runs, and what they are called.
    pub(in crate::effect) fn claims(&self) -> Vec<(ThreadId, &str)> {
        if self.compares {
            return self.named.iter().map(|(thread, label)| (*thread, label.as_str())).collect();
        }
        self.held.iter().map(|(_, held)| (held.thread, held.label.as_str())).collect()
    }

    /// Takes one line into account; false when it makes no sense.
    fn apply(&mut self, entry: Entry) -> bool {
        let of = |thread| self.held.iter().position(|(_, held)| held.thread == thread);
        match entry {
            Entry::Begun { .. } => return false,
            Entry::Pin { old, .. } if old.is_empty() => return false,
            Entry::Pin { thread, label, old, asked, at_ns, .. } => {
                if let Some(at) = of(thread) {
                    // `old` is the same mask as before, unless someone else had set another one in between.
                    let held = &mut self.held[at].1;
                    (held.asked, held.old) = (Some(asked), old);
                    return true;
                }
                let label: String = label.chars().filter(|c| !c.is_control()).take(64).collect();
                self.named.insert(thread, label.clone());
                self.held.push((at_ns, ActivePin { thread, label, old, given: None, asked: Some(asked) }));
            }
            Entry::Pinned { thread, got } => {
                let Some(at) = of(thread) else { return false };
                let held = &mut self.held[at].1;
                (held.given, held.asked) = (Some(got), None);
            }
            Entry::Failed { thread } => {
                let Some(at) = of(thread) else { return false };
                match &mut self.held[at].1 {
                    held if held.given.is_some() => held.asked = None,
                    _ => drop(self.held.remove(at)),
                }
            }
            Entry::Restored { thread } => {
                let Some(at) = of(thread) else { return false };
                self.held.remove(at);
            }
            Entry::Steer(intent) => return self.steers.intend(intent),
            Entry::Steered { file, got } => return self.steers.end(file, SteerEnd::Given(&got)),
            Entry::SteerFailed { file } => return self.steers.end(file, SteerEnd::Failed),
            Entry::Unsteered { file } => return self.steers.end(file, SteerEnd::Over),
        }
        true
    }
}

const PREFIX: &str = "pins-";
const SUFFIX: &str = ".jsonl";

/// `pins-PID-START.jsonl`, and with a number behind it where that is taken.
pub(super) fn file_name(owner: PinOwner, tries: u32) -> String {
    let PinOwner { pid, start } = owner;
    if tries == 0 { format!("{PREFIX}{pid}-{start}{SUFFIX}") } else { format!("{PREFIX}{pid}-{start}-{tries}{SUFFIX}") }
}

fn owner_in(name: &str) -> Option<PinOwner> {
    let mut numbers = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.split('-');
    Some(PinOwner { pid: numbers.next()?.parse().ok()?, start: numbers.next()?.parse().ok()? })
}

/// The journals in a directory, in the order of their names; none where there is no directory.
pub(in crate::effect) fn list(dir: &Path) -> io::Result<Vec<(PathBuf, PinOwner)>> {
    let entries = match std::fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut journals = Vec::new();
    for entry in entries {
        let entry = entry?;
        if let Some(owner) = entry.file_name().to_str().and_then(owner_in) {
            journals.push((entry.path(), owner));
        }
    }
    journals.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(journals)
}

/// Reads one journal. `named` is whose it is by its name; its first line knows better, if it is whole.
pub(in crate::effect) fn read(path: PathBuf, named: PinOwner) -> io::Result<Past> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(&path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    if let Some(doubt) = trust::doubt(&found) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("it {doubt}")));
    }
    replay(path, named, BufReader::new(file))
}

fn replay(path: PathBuf, named: PinOwner, mut lines: impl BufRead) -> io::Result<Past> {
    let mut past = Past { path, owner: named, ..Past::default() };
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        if lines.by_ref().take(MOST_LINE).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if line.len() as u64 == MOST_LINE {
            past.damaged.push(number);
            break;
        }
        let (line, whole) = line.strip_suffix(b"\n").map_or((&line[..], false), |line| (line, true));
        let sound = match serde_json::from_slice::<Entry>(line) {
            Ok(Entry::Begun { owner, boot, spaces, compares }) if number == 1 => {
                (past.owner, past.boot, past.spaces, past.compares) = (owner, Some(boot), spaces, compares);
                true
            }
            Ok(entry) => past.apply(entry),
            Err(_) => line.is_empty() || !whole,
        };
        if !sound {
            past.damaged.push(number);
        }
    }
    past.held.retain(|(_, held)| held.changes());
    Ok(past)
}

/// What a fuzzer gives the reader of journals.
#[cfg(fuzzing)]
pub(in crate::effect) fn fuzz(bytes: &[u8]) {
    let past = replay(PathBuf::new(), PinOwner { pid: 1, start: 2 }, bytes).expect("bytes can be read");
    assert!(past.held.iter().all(|(_, held)| held.changes()), "only what is in force is held");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NAMED: PinOwner = PinOwner { pid: 1, start: 2 };

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = replay(PathBuf::new(), NAMED, &bytes[..]);
        }
    }

    #[test]
    fn a_journal_is_known_by_its_name() {
        assert_eq!(owner_in("pins-12-345.jsonl"), Some(PinOwner { pid: 12, start: 345 }), "pid and start stand in it");
        assert_eq!(owner_in(&file_name(NAMED, 3)), Some(NAMED), "also with a number behind them");
        for name in ["pins-12.jsonl", "pins-a-b.jsonl", "pins-1-2.jsonl.damaged", "notes.txt"] {
            assert_eq!(owner_in(name), None, "{name} is no journal");
        }
    }

    #[test]
    fn what_is_in_force_is_what_was_pinned_and_not_put_back() {
        let text = br#"{"op":"begun","pid":9,"start":8,"boot":"b"}
{"op":"pin","pid":5,"tid":5,"start":1,"label":"a\u001b[2Jb","old":"0-7","asked":"1","wall_ms":0,"at_ns":10}
{"op":"pinned","pid":5,"tid":5,"start":1,"got":"1"}
{"op":"pin","pid":5,"tid":6,"start":1,"label":"x","old":"0-7","asked":"2","wall_ms":0,"at_ns":11}
{"op":"restored","pid":5,"tid":6,"start":1}
{"op":"pin","pid":5,"tid":5,"start":1,"label":"a","old":"0-7","asked":"3","wall_ms":0,"at_ns":12}
{"op":"pinned","pid":5,"ti"#;
        let past = replay(PathBuf::new(), NAMED, &text[..]).expect("it is read");
        assert_eq!((past.owner.pid, past.boot.as_deref()), (9, Some("b")), "the first line says whose it is");
        assert_eq!(past.damaged, Vec::<usize>::new(), "a torn last line is no damage");
        let [(10, held)] = past.held.as_slice() else { panic!("one thread is still pinned: {:?}", past.held) };
        assert_eq!(held.label, "a[2Jb", "no control character survives");
        assert!(held.gave(&"1".parse().expect("cores")), "the first mask may still be in force");
        assert!(held.gave(&"3".parse().expect("cores")), "the second may be already");
        assert!(!held.gave(&held.old), "the old one was never given");
    }

    #[test]
    fn a_long_comparison_is_read_to_its_end() {
        let mut text = b"{\"op\":\"begun\",\"pid\":9,\"start\":8,\"boot\":\"b\"}\n".to_vec();
        let pin = |tid: u32| {
            format!(
                "{{\"op\":\"pin\",\"pid\":5,\"tid\":{tid},\"start\":1,\"label\":\"x\",\"old\":\"0-7\",\"asked\":\"1\",\"wall_ms\":0,\"at_ns\":10}}\n"
            )
        };
        let restored = "{\"op\":\"restored\",\"pid\":5,\"tid\":6,\"start\":1}\n";
        while text.len() < 3 << 20 {
            text.extend([pin(6).as_bytes(), restored.as_bytes()].concat());
        }
        text.extend(pin(7).as_bytes());
        let past = replay(PathBuf::new(), NAMED, &text[..]).expect("it is read");
        assert_eq!(past.held.iter().map(|(_, held)| held.thread.tid).collect::<Vec<_>>(), [7], "the pin after 3 MiB");
        assert!(past.damaged.is_empty(), "and nothing is damaged");
        text.extend(vec![b'0'; 2 << 20]);
        text.extend(b"\n");
        let past = replay(PathBuf::new(), NAMED, &text[..]).expect("it is read");
        assert_eq!(
            (past.held.len(), past.damaged.len()),
            (1, 1),
            "a line without end is damage, and no reason to forget"
        );
    }
}
