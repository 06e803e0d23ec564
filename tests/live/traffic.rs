//! A benchmark through a system: what vnettop said that each link on the way moved, against the link's own counters, and
//! the way that vnettop draws against the one that was built.

use super::Watching;
use super::machine::Machine;
use super::truth::{TrueLink, Truth, agrees, present};
use serde_json::Value;
use std::process::Command;

/// The links of a way in the order of the packets: namespace and name.
pub type Way = Vec<(String, String)>;

/// A way from `SPACE/NAME` words.
pub fn way(links: &[(&str, &str)]) -> Way {
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
    /// What the benchmark printed.
    pub printed: String,
}

/// Runs a client under observation.
pub fn observed(machine: &Machine, watching: &mut Watching, mut client: Command) -> Seen {
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
    Seen { before, after, objects, printed }
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

    /// Each link on the way moved what its own counters say, within one percent, and something did go through it.
    pub fn holds_rates(&self, way: &Way) {
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
        if links.iter().all(|link| link["owner"].is_null()) {
            eprintln!("NOT RUN: this vnettop names no owners yet");
            return;
        }
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

    /// Whether this vnettop draws ways at all.
    pub fn draws_ways(&self) -> bool {
        self.flows().any(|flow| flow["path"].as_array().is_some_and(|path| !path.is_empty()))
    }

    /// The connections that vnettop told.
    pub fn flows(&self) -> impl Iterator<Item = &Value> {
        self.objects.iter().filter_map(|object| object["flows"].as_array()).flatten()
    }

    /// Some connection's way is this one, link by link; whether a bridge between two ports is drawn is not asked.
    pub fn holds_way(&self, way: &Way) {
        self.holds_way_up_to(way.len(), way);
    }

    /// The same where a program carries the packets on after the first links: what comes after them need not be drawn, but
    /// then the way says that it has a gap.
    pub fn holds_way_up_to(&self, first: usize, way: &Way) {
        if !self.draws_ways() {
            eprintln!("NOT RUN: this vnettop draws no ways yet");
            return;
        }
        let ours: Vec<_> = way.iter().map(|(space, name)| self.before.link(space, name)).collect();
        let is = |hop: &Value, link: &&TrueLink| hop["netns"] == link.netns && hop["ifindex"] == link.ifindex;
        // Of a bridge of the kernel's or of Open vSwitch that only forwards nothing is counted.
        let bridge = |hop: &&Value| hop["way"] == "passed" && !ours.iter().any(|link| is(hop, link));
        let same = |flow: &Value| {
            let path: Vec<_> = flow["path"].as_array().into_iter().flatten().filter(|hop| !bridge(hop)).collect();
            let open = path.len() == first && !flow["path_gap"].is_null();
            (path.len() == ours.len() || open) && path.iter().zip(&ours).all(|(hop, link)| is(hop, link))
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
