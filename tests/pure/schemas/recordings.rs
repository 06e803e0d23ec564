//! The lines of recordings, which are those that an agent sends too, and the commands that it reads.

use super::emit::Definitions;
use super::filled::filled;
use super::outputs::{recordings, two_hosts};
use super::shape::{Registry, Shape};
use super::told::Page;
use super::{DRAFT, kept, wrong};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::fs;
use vnettop::record::{Recorder, Recording};
use vnettop::sample::{
    AgentCommand, AgentReply, CoreProfile, CoreSet, Event, FactVisitor, Facts, Ifindex, LinkKey, PlacedThread,
    PlacementClass, Policy, Report, RunAsked, Sample, SearchStep, SpaceEntry, SteerRequest, SteerSetting, SteerTarget,
    SteeredFile, StretchSide, TestKind, ThreadId, TriedPlacement, TriedSteer, TriggerKind,
};

/// Looks at values with everything.
fn see<T: Serialize + DeserializeOwned>(registry: &Registry) -> Shape {
    let mut shape = Shape::default();
    for value in filled::<T>() {
        shape.merge(registry.see(&value));
    }
    shape
}

/// Each fact with its shape, by the name of its line.
struct FactShapes<'a> {
    registry: &'a Registry,
    lines: Vec<(String, Shape)>,
}

impl FactVisitor for FactShapes<'_> {
    type Error = Infallible;

    fn fact<T>(&mut self, name: &str, _was: &mut T, _is: &T, _bytes: usize) -> Result<(), Infallible>
    where
        T: Clone + PartialEq + Serialize + DeserializeOwned,
    {
        self.lines.push((name.to_owned(), see::<T>(self.registry)));
        Ok(())
    }
}

/// Every kind of event, with all that it can have: its kind is within, so its `Deserialize` does not say its fields.
fn events() -> Vec<Event> {
    let (at_ns, cores) = (1, CoreSet::single(0));
    let thread = ThreadId { pid: 1, tid: 1, start: 1 };
    let link = LinkKey { netns: 1, ifindex: Ifindex(1) };
    let file = SteeredFile { link, setting: SteerSetting::RpsCpus, queue: 0 };
    let (old, asked, got) = (String::new(), String::new(), String::new());
    let mut all = vec![
        Event::Pinned { thread, old: cores.clone(), asked: cores.clone(), got: cores.clone(), at_ns },
        Event::Restored { thread, got: cores, at_ns },
        Event::Steered { file, old, asked, got: got.clone(), at_ns },
        Event::Unsteered { file, got, at_ns },
        Event::Mark { at_ns },
        Event::RunStarted { at_ns, pid: 1 },
        Event::NotPinned { at_ns, why: String::new() },
        Event::RunEnded { at_ns, code: 0 },
    ];
    all.extend([None, Some(StretchSide::Pinned)].map(|side| Event::Stretch { at_ns, side }));
    all.extend(steps().map(|step| Event::Search { at_ns, step }));
    all.extend(filled::<Report>().into_iter().map(|report| Event::Reported { at_ns, pid: 1, side: None, report }));
    all.extend(filled::<RunAsked>().into_iter().map(Event::RunAsked));
    all.extend(filled::<CoreProfile>().into_iter().map(|profile| Event::Profiled(Box::new(profile))));
    all.extend(filled::<Option<TriggerKind>>().into_iter().map(|trigger| Event::Saved { at_ns, trigger }));
    all
}

fn steps() -> impl Iterator<Item = SearchStep> {
    let (class, thread) = (PlacementClass::SameCore, ThreadId { pid: 1, tid: 1, start: 1 });
    let steer = |(request, space): (SteerRequest, SpaceEntry)| {
        let (whose, target) = (String::new(), SteerTarget::Nobody);
        TriedSteer { request, whose, target, space }
    };
    let steers: Vec<TriedSteer> = filled::<SteerRequest>().into_iter().zip(filled::<SpaceEntry>()).map(steer).collect();
    let threads = vec![PlacedThread { thread, label: String::new(), core: 0 }];
    let placements = vec![
        TriedPlacement { class, is_rule: false, threads: Vec::new(), steers: Vec::new() },
        TriedPlacement { class, is_rule: true, threads, steers },
    ];
    let started = SearchStep::Started { seed: 1, placements, left_out: Vec::new(), test: TestKind::default() };
    let (placement, why) = (0, String::new());
    [
        started,
        SearchStep::Phase { placement, round: 0 },
        SearchStep::Dropped { placement, rounds: 1 },
        SearchStep::Failed { placement, why },
        SearchStep::Ended,
    ]
    .into_iter()
}

/// An object with this one field.
fn line(name: &str, mut value: Value, told: Option<String>) -> Value {
    if let (Some(told), Some(of)) = (told, value.as_object_mut()) {
        of.insert("description".to_owned(), told.into());
    }
    json!({ "type": "object", "properties": { name: value }, "required": [name], "additionalProperties": false })
}

/// With what every schema begins with.
fn headed(name: &str, title: &str, mut whole: Value, definitions: Definitions) -> Value {
    let more = json!({
        "$schema": DRAFT, "$id": format!("urn:vnettop:schema:{name}:1"), "title": title, "$defs": definitions.into_values(),
    });
    whole.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
    whole
}

/// A line of a recording, or of what an agent sends.
pub fn of_recording() -> Value {
    let registry = Registry::default();
    let mut facts = FactShapes { registry: &registry, lines: Vec::new() };
    let Ok(()) = Facts::default().visit(&Facts::default(), &mut facts);
    let mut lines = facts.lines;
    lines.push(("sample".to_owned(), see::<Sample>(&registry)));
    let mut event = Shape::default();
    for one in events() {
        event.merge(registry.see(&one));
    }
    lines.push(("event".to_owned(), event));
    lines.push(("reply".to_owned(), see::<AgentReply>(&registry)));
    lines.push(("from".to_owned(), see::<String>(&registry)));
    // One of which nothing is known is left out whole, so none above lacks a field.
    registry.see(&Policy { governor: Some(String::new()), ..Policy::default() });
    let page = Page::of_recordings();
    let mut definitions = Definitions::new(registry.0.into_inner(), &page);
    let text = json!({ "type": "string" });
    let mut any = vec![json!({
        "type": "object",
        "properties": { "vnettop_recording": { "const": 1 }, "vnettop": text, "hosts": { "type": "array", "items": text } },
        "required": ["vnettop_recording", "vnettop"], "additionalProperties": false,
    })];
    any.extend(lines.iter().map(|(name, shape)| line(name, definitions.schema(shape, name), page.told("Facts", name))));
    headed("recording", "A line of a recording, or of what vnettop agent sends", json!({ "anyOf": any }), definitions)
}

/// A line that an agent reads.
pub fn of_agent() -> Value {
    let registry = Registry::default();
    let command = see::<AgentCommand>(&registry);
    let page = Page::of_recordings();
    let mut definitions = Definitions::new(registry.0.into_inner(), &page);
    let whole = definitions.schema(&command, "");
    headed("agent", "A command that vnettop agent reads; what it sends are lines of a recording", whole, definitions)
}

#[test]
fn every_recording_as_this_program_writes_it_is_as_its_schema_says() {
    let (schema, directory, mut lines) = (kept("recording"), tempfile::tempdir().expect("a directory"), 0);
    for (nth, path) in recordings().iter().chain([&two_hosts()]).enumerate() {
        let plain = directory.path().join(format!("{nth}.jsonl"));
        let (mut recording, mut recorder) =
            (Recording::open(path).expect("a recording"), Recorder::create(&plain).expect("a new file"));
        while let Some(item) = recording.next_item().expect("good lines") {
            recorder.write(&item).expect("writable");
        }
        recorder.finish().expect("writable");
        for line in fs::read_to_string(&plain).expect("readable").lines() {
            let value = serde_json::from_str(line).expect("JSON");
            assert_eq!(wrong(&schema, &value), None, "{}", path.display());
            lines += 1;
        }
    }
    assert!(lines > 1000, "{lines} lines");
}

#[test]
fn every_kind_of_event_is_in_the_schema() {
    let refused = serde_json::from_str::<Event>(r#"{"kind":"?"}"#).expect_err("no such kind").to_string();
    let known: BTreeSet<&str> = refused.split('`').skip(3).step_by(2).collect();
    let has: Vec<Value> = events().iter().map(|event| serde_json::to_value(event).expect("JSON")).collect();
    let has: BTreeSet<&str> = has.iter().filter_map(|event| event["kind"].as_str()).collect();
    assert_eq!(has, known, "plant the new one in events()");
}

#[test]
fn what_an_agent_is_told_and_answers_is_as_the_schemas_say() {
    let (commands, stream) = (kept("agent"), kept("recording"));
    for command in filled::<AgentCommand>() {
        assert_eq!(wrong(&commands, &serde_json::to_value(&command).expect("JSON")), None, "{command:?}");
    }
    for reply in filled::<AgentReply>() {
        assert_eq!(wrong(&stream, &json!({ "reply": reply })), None, "{reply:?}");
    }
    assert_eq!(wrong(&stream, &json!({ "from": "a" })), None);
    for (line, is_right) in [
        (json!({ "interval": 1_000_000_000 }), true),
        (json!({ "intervals": 1_000_000_000 }), false),
        (json!({ "watch": { "pid": 1, "with_descendants": true } }), true),
        (json!({ "watch": { "pid": 1 } }), false),
        (json!({ "interval": 1, "watch": { "pid": 1, "with_descendants": true } }), false),
        (json!("restore"), true),
    ] {
        assert_eq!(wrong(&commands, &line).is_none(), is_right, "{line}");
    }
}
