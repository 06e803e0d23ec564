//! Waits that are planted, one at a time: each is found where it is and nowhere else, and as long as somebody else measures it.

mod answers;
mod carried;
mod links;
mod looking;
mod reader;
mod wraps;

use crate::ground::turn::alone;
use crate::ground::{Kept, Netns, VNETTOP, Watching, await_that, pid};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::ops::RangeInclusive;
use std::process::{ChildStdout, Command, Stdio};
use vnettop::source::now_ns;

const PROGRAM: &str = include_str!("latency/program.py");
const PROGRAMS: &[&str] = &["ip", "nsenter", "python3", "taskset", "unshare"];

/// The far end of the veth pair.
const FAR: &str = "198.18.0.2";

/// One of program.py's, which is ready.
struct Part {
    kept: Kept,
    out: BufReader<ChildStdout>,
}

impl Part {
    /// Starts it by a command that ends with a program to be run.
    fn start(mut command: Command, arguments: &str) -> Self {
        command.args(["python3", "-c", PROGRAM]).args(arguments.split(' ')).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut kept = Kept(command.spawn().expect("it starts"));
        let mut out = BufReader::new(kept.0.stdout.take().expect("piped"));
        let mut line = String::new();
        out.read_line(&mut line).expect("it prints");
        assert_eq!(line, "ready\n", "it is ready: {arguments}");
        Self { kept, out }
    }

    /// In a namespace, on a core.
    fn on(netns: &Netns, core: &str, arguments: &str) -> Self {
        let mut command = netns.command("taskset");
        command.args(["-c", core]);
        Self::start(command, arguments)
    }

    /// On a core, in no namespace of the test's.
    fn outside(core: &str, arguments: &str) -> Self {
        let mut command = Command::new("taskset");
        command.args(["-c", core]);
        Self::start(command, arguments)
    }

    fn pid(&self) -> u32 {
        pid(&self.kept)
    }

    /// Ends it, and takes what it measured.
    fn measured(self) -> Measured {
        let pid = self.pid().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status();
        assert!(sent.is_ok_and(|status| status.success()), "it has run until now");
        self.kept.go_on();
        Measured(serde_json::from_reader(self.out).expect("a list"))
    }
}

/// What a program measured: when, `CLOCK_MONOTONIC`, ns, and how long, ns.
struct Measured(Vec<(u64, u64)>);

impl Measured {
    /// In the time that vnettop's own figures are of: what came after, as a hog's end, it has not seen.
    fn within(&self, span_ns: &RangeInclusive<u64>) -> Waits {
        let mut us: Vec<f64> =
            self.0.iter().filter(|one| span_ns.contains(&one.0)).map(|one| one.1 as f64 / 1e3).collect();
        us.sort_by(f64::total_cmp);
        assert!(us.len() > 100, "it has measured: {}", us.len());
        Waits(us)
    }
}

/// What a program measured, µs, sorted.
struct Waits(Vec<f64>);

impl Waits {
    fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    fn percentile(&self, percent: usize) -> f64 {
        self.0[self.0.len() * percent / 100]
    }
}

/// What vnettop said of a test while it was looked at.
struct Told {
    /// From when its packets were looked at all the time until the last object, `CLOCK_MONOTONIC`, ns.
    span_ns: RangeInclusive<u64>,
    /// The latency of every object from then on.
    all: Vec<Value>,
}

/// The latency of a client's test.
fn latency_of(object: &Value, client: u32) -> Option<&Value> {
    let mut tests = object["tests"].as_array().expect("a list").iter();
    tests.find(|test| test["client"]["pid"] == client).map(|test| &test["latency"]).filter(|latency| !latency.is_null())
}

/// Vnettop that looks at latency.
fn watch(pids: &[u32]) -> Watching {
    let mut command = Command::new(VNETTOP);
    command.args(["-d", "0.5", "--latency"]);
    for pid in pids {
        command.args(["--watch", &pid.to_string()]);
    }
    Watching::start(command)
}

impl Told {
    /// Watches these; the test is that of the first one. From when the packets of a whole second were looked at, so many objects.
    fn of(pids: &[u32], objects: usize) -> Self {
        Self::beside(pids, objects, || {})
    }

    /// The same, with something else that is looked at after each object.
    fn beside(pids: &[u32], objects: usize, mut look: impl FnMut()) -> Self {
        let mut watching = watch(pids);
        let mut first = Value::Null;
        await_that("its packets are looked at all the time", 30, || {
            let object = watching.next();
            first = latency_of(&object, pids[0]).cloned().unwrap_or_default();
            let looks = first["packets_looked_at"].as_f64().is_some_and(|share| share > 0.99);
            looks && !stages(&first, "hop", false).is_empty()
        });
        let (from_ns, mut all) = (now_ns(), vec![first]);
        while all.len() < objects {
            look();
            let object = watching.next();
            all.push(
                latency_of(&object, pids[0]).unwrap_or_else(|| panic!("there is a test: {}", object["tests"])).clone(),
            );
        }
        let told = Self { span_ns: from_ns..=now_ns(), all };
        eprintln!("{}", told.summary());
        told
    }

    /// The time of the figures since the beginning: packets are looked at all the time, so it is all gaps between them.
    fn whole_ns(&self) -> RangeInclusive<u64> {
        let gaps = &self.only("arrival_gap")["so_far"];
        let looked_ns = us(gaps, "count") * us(gaps, "mean_us") * 1e3;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some seconds")]
        let looked_ns = looked_ns as u64;
        self.span_ns.end() - looked_ns..=*self.span_ns.end()
    }

    fn last(&self) -> &Value {
        self.all.last().expect("there is one")
    }

    /// The mean of a stage since the beginning, µs, and of how many.
    fn mean(&self, stage: &Value) -> (f64, f64) {
        let same = |one: &&Value| {
            ["stage", "of_answers", "from", "to", "tid", "core"].iter().all(|field| one[field] == stage[field])
        };
        let before = self.all[0]["stages"].as_array().and_then(|all| all.iter().find(same)).map(|one| &one["so_far"]);
        let sum = |figures: &Value| (figures["count"].as_f64(), figures["mean_us"].as_f64());
        let of = |figures: &Value| match sum(figures) {
            (Some(count), Some(mean)) => (count, count * mean),
            _ => (0.0, 0.0),
        };
        let ((count, us), (count_before, us_before)) = (of(&stage["so_far"]), before.map_or((0.0, 0.0), of));
        ((us - us_before) / (count - count_before), count - count_before)
    }

    /// The only stage of that name of the data.
    fn only(&self, name: &str) -> &Value {
        let found = stages(self.last(), name, false);
        assert_eq!(found.len(), 1, "there is one {name}: {}", self.last()["stages"]);
        found[0]
    }

    /// The hop that begins at a link that is called so.
    fn hop_from(&self, link: &str) -> &Value {
        let mut hops = stages(self.last(), "hop", false).into_iter();
        hops.find(|hop| hop["from"]["name"] == link).unwrap_or_else(|| panic!("a hop from {link}: {}", self.summary()))
    }

    /// How many of the objects name a cause that contains all of these; the first has only a part of its second.
    fn named(&self, words: &[&str]) -> (usize, usize) {
        let text = |latency: &Value| latency["cause"]["text"].as_str().unwrap_or_default().to_owned();
        let texts: Vec<String> = self.all.iter().map(text).collect();
        let named = texts.iter().filter(|text| words.iter().all(|word| text.contains(word))).count();
        eprintln!(
            "{words:?}: {named} of {}; otherwise {:#?}",
            texts.len(),
            texts.iter().find(|text| !words.iter().all(|word| text.contains(word)))
        );
        (named, texts.len())
    }

    /// Most of the objects say why, in these words.
    fn says(&self, words: &[&str]) {
        let (named, of) = self.named(words);
        assert!(named * 10 >= of * 8, "{named} of {of} objects say {words:?}: {:#?}", self.causes());
    }

    fn causes(&self) -> Vec<&Value> {
        self.all.iter().map(|latency| &latency["cause"]["text"]).collect()
    }

    /// Of every stage what a person reads of it.
    fn summary(&self) -> String {
        let line = |stage: &Value| {
            let so_far = &stage["so_far"];
            let answers = if stage["of_answers"] == true { " of answers" } else { "" };
            format!(
                "{}{answers} {} → {} n {} mean {:.1} p50 {:.1} p99 {:.1} us\n",
                stage["stage"].as_str().unwrap_or_default(),
                stage["from"]["name"],
                stage["to"]["name"],
                so_far["count"],
                us(so_far, "mean_us"),
                us(so_far, "p50_us"),
                us(so_far, "p99_us")
            )
        };
        self.last()["stages"].as_array().expect("a list").iter().map(line).collect()
    }
}

/// The stages of that name, in the order of the path.
fn stages<'a>(latency: &'a Value, name: &str, is_back: bool) -> Vec<&'a Value> {
    let all = latency["stages"].as_array().into_iter().flatten();
    all.filter(|stage| stage["stage"] == name && stage["of_answers"] == is_back).collect()
}

/// A figure; `NAN`, which is nothing's equal, where there is none.
fn us(figures: &Value, field: &str) -> f64 {
    figures[field].as_f64().unwrap_or(f64::NAN)
}

/// A figure since the beginning.
fn so_far(stage: &Value, field: &str) -> f64 {
    us(&stage["so_far"], field)
}

/// Both are the same but for such a part of the truth.
fn assert_same(what: &str, told: f64, truth: f64, within: f64) {
    let off = (told - truth) / truth;
    eprintln!("{what}: told {told:.1}, truth {truth:.1} us, {:+.1} %", off * 100.0);
    assert!(off.abs() <= within, "{what} is {truth:.1} us, vnettop says {told:.1}");
}
