//! A benchmark through a system: what vnettop said that each link on the way moved, against the link's own counters, and
//! the way that vnettop draws against the one that was built.

use super::Watching;
use super::machine::{Machine, end};
use super::truth::{TrueLink, Truth, agrees, present};
use crate::frames::replayed::Replayed;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use vnettop::derive::Metrics;
use vnettop::record::{Recorder, Recording};
use vnettop::sample::{Item, OwnerKind, Word};

/// The links of a way in the order of the packets: namespace and name.
pub type WalkedPath = Vec<(String, String)>;

/// A way from `SPACE/NAME` words.
pub fn way(links: &[(&str, &str)]) -> WalkedPath {
    links.iter().map(|(space, name)| ((*space).to_owned(), (*name).to_owned())).collect()
}

/// What was seen while a benchmark ran.
pub struct Seen {
    /// Before it, when vnettop agreed with `ip`.
    pub before: Truth,
    /// After it.
    pub after: Truth,
    /// Every object of vnettop from before to after.
    pub objects: Vec<Value>,
    /// Where vnettop recorded it.
    pub recording: PathBuf,
}

/// A screen on which nothing has to be left out.
const SCREEN: (u16, u16) = (200, 60);
/// The key that shows the panes of the machine in place of the bands of a test.
const PANES: &str = "b";
/// Of a longer name of a namespace or an owner so many characters are shown at least.
const LEAST_SHOWN: usize = 8;

/// A folder for the recordings of every system; see tests/fixtures/systems/README.md.
fn kept() -> Option<PathBuf> {
    std::env::var_os("VNETTOP_KEEP_RECORDINGS").map(PathBuf::from)
}

/// How long a benchmark lasts, in seconds: longer where its recording is kept.
pub fn seconds() -> &'static str {
    if kept().is_some() { "6" } else { "2" }
}

/// Runs a client under observation of a vnettop that records it; the recording is kept under this name where that is
/// asked for. `more` are vnettop's arguments.
pub fn observed(machine: &Machine, name: &str, more: &[&str], client: Command) -> Seen {
    let recording = machine.folder().join(format!("{name}.vnettop.zst"));
    // One recording is not added to another.
    let _ = std::fs::remove_file(&recording);
    let interval = if kept().is_some() { "0.5" } else { "0.25" };
    let mut command = machine.vnettop(&["-d", interval, "--record"]);
    command.arg(&recording).args(more);
    let mut watching = Watching::start(command);
    let seen = watched(machine, &mut watching, client, recording);
    end(watching);
    if let Some(folder) = kept() {
        keep(&seen.recording, &folder);
    }
    seen
}

/// Keeps a recording, of the kernel's release only its numbers: what a builder adds to them says nothing of the system.
fn keep(recording: &Path, folder: &Path) {
    let to = folder.join(recording.file_name().expect("it has a name"));
    let _ = std::fs::remove_file(&to);
    let mut from = Recording::open(recording).unwrap_or_else(|error| panic!("{error}"));
    let mut to = Recorder::create(&to).unwrap_or_else(|error| panic!("{error}"));
    while let Some(mut item) = from.next_item().unwrap_or_else(|error| panic!("{error}")) {
        if let Item::Sample(sample) = &mut item {
            let kernel = &mut Arc::make_mut(&mut sample.facts_mut().host).kernel;
            kernel.truncate(kernel.find('-').unwrap_or(kernel.len()));
        }
        to.write(&item).unwrap_or_else(|error| panic!("{error}"));
    }
    to.finish().unwrap_or_else(|error| panic!("{error}"));
}

fn watched(machine: &Machine, watching: &mut Watching, mut client: Command, recording: PathBuf) -> Seen {
    let before = agrees(machine, watching);
    present(watching);
    let mut objects = Vec::new();
    let out = std::thread::scope(|scope| {
        let client = scope.spawn(move || client.output().expect("the client runs"));
        while !client.is_finished() {
            objects.push(watching.next());
        }
        client.join().expect("the client ends")
    });
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let printed = text(&out.stdout);
    assert!(out.status.success(), "the client ends well: {printed}\n{}", text(&out.stderr));
    assert!(!printed.contains("\"error\":"), "the client says no error: {printed}");
    let after = Truth::of(machine);
    // The interval in which the client ended, and the quiet ones after it in which resting links are read too.
    objects.extend((0..8).map(|_| watching.next()));
    objects.push(present(watching));
    Seen { before, after, objects, recording }
}

impl Seen {
    /// Bytes of a link, by vnettop's rates over vnettop's own times.
    fn by_rates(&self, link: &TrueLink, field: &str) -> f64 {
        let row = |object: &Value| {
            let rows = object["links"].as_array()?;
            rows.iter().find(|row| row["netns"] == link.netns && row["ifindex"] == link.ifindex).cloned()
        };
        let rate = |object: &Value| row(object)?[field].as_f64();
        self.objects
            .iter()
            .map(|object| rate(object).unwrap_or(0.0) * object["elapsed_s"].as_f64().unwrap_or(0.0))
            .sum::<f64>()
            / 8.0
    }

    /// The highest rate at which a link received, bits/s.
    pub fn fastest(&self, space: &str, name: &str) -> f64 {
        let link = self.before.link(space, name);
        let rows = self.objects.iter().filter_map(|object| object["links"].as_array()).flatten();
        let own = rows.filter(|row| row["netns"] == link.netns && row["ifindex"] == link.ifindex);
        own.filter_map(|row| row["rx_bits_per_s"].as_f64()).fold(0.0, f64::max)
    }

    /// Each link on the way moved what its own counters say, within one percent, and something did go through it.
    pub fn holds_rates(&self, way: &WalkedPath) {
        for (space, name) in way {
            let (before, after) = (self.before.link(space, name), self.after.link(space, name));
            let crossed = |of: fn(&TrueLink) -> u64| of(after) - of(before);
            let counted = [("rx", crossed(|link| link.bytes.0)), ("tx", crossed(|link| link.bytes.1))];
            assert!(counted.iter().any(|(_, bytes)| *bytes > 1 << 20), "traffic went through {name} in {space}");
            for (direction, bytes) in counted.into_iter().filter(|(_, bytes)| *bytes > 200_000) {
                let rates = self.by_rates(before, &format!("{direction}_bits_per_s"));
                let off = (rates / bytes as f64 - 1.0) * 100.0;
                eprintln!(
                    "{space} {name} {direction}: {bytes} bytes by ip, {rates:.0} by vnettop's rates, {off:+.3} %"
                );
                assert!(off.abs() < 1.0, "{direction} of {name} in {space}: {bytes} bytes by ip, {rates:.0} by rates");
            }
        }
    }

    /// A link belongs to an owner of this type, whose field is or contains that word.
    pub fn holds_owner(&self, (space, name): (&str, &str), kind: &str, field: &str, word: &str) {
        let last = self.objects.last().expect("objects");
        let links = last["links"].as_array().expect("links");
        let link = self.before.link(space, name);
        let row = links.iter().find(|row| row["netns"] == link.netns && row["ifindex"] == link.ifindex);
        let owner = &row.expect("it is listed")["owner"];
        assert_eq!(owner["type"], *kind, "{name} in {space} belongs to a {kind}: {owner}");
        let said = owner[field].as_str().unwrap_or_default();
        assert!(
            said == word || (kind == "process" && said.contains(word)),
            "the {field} of {name}'s owner is {word}: {owner}"
        );
    }

    /// A namespace is called so, in JSON and, where it has a link on the screen, there beside that.
    pub fn holds_space(&self, space: &str, name: &str, link: Option<&str>) {
        let last = self.objects.last().expect("objects");
        let mut told = last["namespaces"].as_array().expect("a list").iter();
        let told = told.find(|told| told["netns"] == self.after.spaces[space]).expect("it is listed");
        assert_eq!(told["known_as"], *name, "{space} is the namespace of {name}: {told}");
        let Some(link) = link else { return };
        let mut shown = Replayed::at_the_benchmark(&self.recording);
        shown.press(PANES);
        let frame = shown.text(SCREEN.0, SCREEN.1);
        let row = |line: &str| line.contains(name) && line.split_whitespace().any(|word| word == link);
        assert!(frame.lines().any(row), "a row has {link} in {name}:\n{frame}");
    }

    /// The connections that vnettop told.
    pub fn flows(&self) -> impl Iterator<Item = &Value> {
        self.objects.iter().filter_map(|object| object["flows"].as_array()).flatten()
    }

    /// The screen in the last moments of the benchmark has each link of the way in its namespace, with its kind and its
    /// owner, and the way, as far as it is known, in its order.
    pub fn holds_screen(&self, known: usize, way: &WalkedPath) {
        let mut shown = Replayed::at_the_benchmark(&self.recording);
        shown.press(PANES);
        let frame = shown.text(SCREEN.0, SCREEN.1);
        for (space, name) in way {
            let words = words(shown.metrics(), self.after.spaces[space], name);
            let row = |line: &&str| words.iter().all(|word| line.contains(word));
            assert!(frame.lines().any(|line| row(&line)), "a row has {words:?}:\n{frame}");
        }
        shown.press("v");
        let frame = shown.text(SCREEN.0, SCREEN.1);
        let mut left = way[..known].iter().map(|(_, name)| name).peekable();
        for line in frame.lines() {
            left.next_if(|name| line.split_whitespace().any(|word| word == **name));
        }
        assert_eq!(left.next(), None, "the way has every link in its order:\n{frame}");
    }

    /// A finding of this kind is told during the benchmark, and `F` has its sentence.
    pub fn holds_finding(&self, id: &str) {
        let mut shown = Replayed::at_the_benchmark(&self.recording);
        let told = shown.metrics().conclusions.findings.iter().find(|finding| finding.id.word() == id);
        let told = told.unwrap_or_else(|| panic!("a finding '{id}' among {:?}", shown.metrics().conclusions.findings));
        let sentence: String = told.text.chars().take(60).collect();
        shown.press("F");
        let frame = shown.text(SCREEN.0, SCREEN.1);
        assert!(frame.contains(&sentence), "F has '{sentence}':\n{frame}");
    }

    /// Some connection's way is exactly this one, each hop as `NAMESPACE LINK sent|received|passed`, without a gap.
    pub fn holds_hops(&self, hops: &[(&str, &str, &str)]) {
        let same = |hop: &Value, (space, name, way): &(&str, &str, &str)| {
            hop["netns"] == self.after.spaces[*space] && hop["name"] == *name && hop["way"] == *way
        };
        let is = |flow: &Value| {
            let path = flow["path"].as_array().map_or(&[][..], Vec::as_slice);
            path.len() == hops.len()
                && path.iter().zip(hops).all(|(hop, ours)| same(hop, ours))
                && flow["path_gap"].is_null()
        };
        let drawn: std::collections::BTreeSet<_> = self.flows().map(|flow| drawn(&flow["path"])).collect();
        assert!(self.flows().any(is), "the flow goes {hops:?}; vnettop draws {drawn:?}");
    }

    /// Some connection's way is this one, link by link; whether a bridge between two ports is drawn is not asked.
    pub fn holds_way(&self, way: &WalkedPath) {
        self.holds_way_up_to(way.len(), way);
    }

    /// The same where a program carries the packets on after the first links: what comes after them need not be drawn, but
    /// then the way says that it has a gap.
    pub fn holds_way_up_to(&self, first: usize, way: &WalkedPath) {
        let ours: Vec<_> = way.iter().map(|(space, name)| self.before.link(space, name)).collect();
        let is = |hop: &Value, link: &&TrueLink| hop["netns"] == link.netns && hop["ifindex"] == link.ifindex;
        // Of a bridge of the kernel's or of Open vSwitch that only forwards nothing is counted.
        let bridge = |hop: &&Value| hop["way"] == "passed" && !ours.iter().any(|link| is(hop, link));
        let same = |flow: &Value| {
            let path: Vec<_> = flow["path"].as_array().into_iter().flatten().filter(|hop| !bridge(hop)).collect();
            let whole = path.len() == ours.len() && flow["path_gap"].is_null();
            let open = path.len() == first && !flow["path_gap"].is_null();
            (whole || open) && path.iter().zip(&ours).all(|(hop, link)| is(hop, link))
        };
        let drawn: std::collections::BTreeSet<_> = self.flows().map(|flow| drawn(&flow["path"])).collect();
        assert!(self.flows().any(same), "the flow goes {way:?}; vnettop draws {drawn:?}");
    }
}

/// A way as vnettop draws it, by names.
fn drawn(path: &Value) -> String {
    let hops = path.as_array().into_iter().flatten();
    hops.map(|hop| format!("{}:{}", hop["netns"], hop["name"])).collect::<Vec<_>>().join(" ")
}

/// What the row of a link says: its name, its kind, where it is, and whose it is, as far as there is room.
fn words(metrics: &Metrics, netns: u64, name: &str) -> Vec<String> {
    let link = metrics.machine.links.iter().find(|link| link.facts.netns == netns && link.facts.name == name);
    let link = link.unwrap_or_else(|| panic!("{name} is a link of {netns}"));
    let space = (netns != metrics.machine.netns).then(|| metrics.machine.space_label(netns));
    // What belongs to a bridge of Open vSwitch stands below it.
    let owner = metrics.machine.owner(link.facts.key()).filter(|owner| owner.kind != OwnerKind::Ovs);
    let most = |word: String| word.chars().take(LEAST_SHOWN).collect::<String>();
    let words = [space, owner.map(|owner| owner.name.clone())].into_iter().flatten().map(most);
    [name.to_owned(), link.facts.kind.word().to_owned()].into_iter().chain(words).collect()
}
