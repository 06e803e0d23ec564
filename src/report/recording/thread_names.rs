//! What threads are called in a report: the processes and threads of a recording have ended, and their numbers may be others' now. Of
//! several that are called alike each has an ordinal.

use super::words::of_names;
use crate::derive::summary::ThreadSummary;
use crate::derive::{RecordingSummary, TestSummary};
use std::collections::BTreeMap;

/// A test in its recording, and what its threads are called.
pub(super) type ReportedTest<'a> = (&'a RecordingSummary, &'a TestSummary, &'a ThreadNames);

/// Names of threads by number.
pub(super) struct ThreadNames(BTreeMap<u32, ThreadName>);

/// What one is called.
struct ThreadName {
    /// `iperf3`
    program: String,
    /// `iperf3 client`
    label: String,
    /// Which one of those; none where there is one.
    nth: Option<usize>,
}

impl ThreadName {
    fn words(&self) -> String {
        self.nth.map_or_else(|| self.label.clone(), |nth| format!("{} {nth}", self.label))
    }
}

impl ThreadNames {
    pub(super) fn of(summary: &RecordingSummary) -> Self {
        let label = |thread: &ThreadSummary| format!("{} {}", thread.name, thread.role);
        let mut alike: BTreeMap<(Option<u32>, String), Vec<u32>> = BTreeMap::new();
        for thread in &summary.threads {
            alike.entry((thread.test, label(thread))).or_default().push(thread.id.tid);
        }
        for tids in alike.values_mut() {
            tids.sort_unstable();
        }
        let name = |thread: &ThreadSummary| {
            let tids = &alike[&(thread.test, label(thread))];
            let at = tids.iter().position(|tid| *tid == thread.id.tid).unwrap_or(0);
            let nth = (tids.len() > 1).then_some(at + 1);
            (thread.id.tid, ThreadName { program: thread.name.to_string(), label: label(thread), nth })
        };
        Self(summary.threads.iter().map(name).collect())
    }

    /// `iperf3 client`, `iperf3 client 2`.
    pub(super) fn of_thread(&self, thread: &ThreadSummary) -> String {
        self.0.get(&thread.id.tid).map_or_else(|| format!("{} {}", thread.name, thread.role), ThreadName::words)
    }

    /// The same without the program: `client`, `client 2`.
    pub(super) fn role(&self, thread: &ThreadSummary) -> String {
        let nth = self.0.get(&thread.id.tid).and_then(|name| name.nth);
        nth.map_or_else(|| thread.role.to_owned(), |nth| format!("{} {nth}", thread.role))
    }

    /// A sentence by names alone.
    pub(super) fn sentence(&self, text: &str) -> String {
        let mut words = text.to_owned();
        for (tid, name) in &self.0 {
            let ordinal = name.nth.map_or_else(String::new, |nth| format!(" {nth}"));
            words = words.replace(&format!(" (tid {tid})"), &ordinal);
            words = replaced(&words, &format!("{} {tid}", name.label), &name.words());
            words = replaced(&words, &format!("{} {tid}", name.program), &name.words());
        }
        of_names(&self.lists(&self.pair(&words)))
    }

    /// `2 busy threads (246, 583)`: a list of numbers in parentheses.
    fn lists(&self, text: &str) -> String {
        let (mut out, mut rest) = (String::new(), text);
        while let Some((before, inside, after)) = rest
            .split_once("busy threads (")
            .and_then(|(before, after)| after.split_once(')').map(|(inside, after)| (before, inside, after)))
        {
            let names: Option<Vec<String>> = inside.split(", ").map(|tid| self.name(tid)).collect();
            let names = names.map_or_else(String::new, |names| format!(" ({})", names.join(", ")));
            out.extend([before, "busy threads", &names]);
            rest = after;
        }
        out + rest
    }

    /// `busy threads 246 and 583 share one physical core`.
    fn pair(&self, text: &str) -> String {
        let parts = || {
            let (before, rest) = text.split_once("busy threads ")?;
            let (pair, after) = rest.split_once(" share one physical core")?;
            let (one, other) = pair.split_once(" and ")?;
            let (one, other) = (self.name(one)?, self.name(other)?);
            Some(format!("{before}busy threads {one} and {other} share one physical core{after}"))
        };
        parts().unwrap_or_else(|| text.to_owned())
    }

    fn name(&self, tid: &str) -> Option<String> {
        self.0.get(&tid.parse().ok()?).map(ThreadName::words)
    }
}

/// Every such word that is no part of a longer number.
fn replaced(text: &str, word: &str, by: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(word) {
        let end = at + word.len();
        let is_whole = !rest[end..].starts_with(|c: char| c.is_ascii_digit());
        out.push_str(&rest[..at]);
        out.push_str(if is_whole { by } else { word });
        rest = &rest[end..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_threads_are_their_names() {
        let name = |label: &str, nth| ThreadName { program: "iperf3".to_owned(), label: label.to_owned(), nth };
        let names = ThreadNames(BTreeMap::from([
            (7, name("iperf3 server", None)),
            (71, name("iperf3 client", Some(1))),
            (72, name("iperf3 client", Some(2))),
        ]));
        let is = |text: &str, words: &str| assert_eq!(names.sentence(text), words);
        is("2 busy threads (7, 72) compete", "2 busy threads (iperf3 server, iperf3 client 2) compete");
        is("2 busy threads (7, 99) compete", "2 busy threads compete");
        is("a core by iperf3 client (tid 72)", "a core by iperf3 client 2");
        is("30 % iperf3 server (tid 7)", "30 % iperf3 server");
        is("wake-up of reader iperf3 7, iperf3 70", "wake-up of reader iperf3 server, iperf3 70");
        is("iperf3 server 7 and iperf3 client 72 share core 0", "iperf3 server and iperf3 client 2 share core 0");
        let siblings = "busy threads iperf3 server and iperf3 client 1 share one physical core: cores 0 and 1";
        is("busy threads 7 and 71 share one physical core: cores 0 and 1", siblings);
    }
}
