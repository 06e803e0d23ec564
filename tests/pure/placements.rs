//! Proposed placements as a user sees them: cores before and after; new workers pinned in sticky mode; a pin that
//! something else undid. Nothing here touches the machine: effects are values.

use crate::world::stage::Stage;
use crate::world::{QUIET, Work, World, scenes};
use vnettop::effect::{Effect, Outcome, OutcomeLine};
use vnettop::sample::{CoreId, CoreSet, Duty, Event, ThreadId};
use vnettop::state::{Mode, Settings};

fn freeze(name: &str, stage: &Stage, width: u16, height: u16) {
    insta::assert_snapshot!(format!("{name}@{width}x{height}"), stage.text(width, height));
}

/// `iperf3 -P 8` on 128 cores, with both control threads.
fn eight_streams() -> World {
    let mut world = World::kunpeng();
    scenes::containers(&mut world);
    for stream in 0..8 {
        for (pid, tid, core) in [(501, 511 + 2 * stream, 3 * stream), (602, 612 + 2 * stream, 33 + 5 * stream)] {
            world.iperf3(tid, &[core], 12.0);
            world.threads.last_mut().expect("just added").sample.id.pid = pid;
            *world.work(core) = Work { system: 0.6, softirq: 0.3, ..QUIET };
        }
    }
    for pid in [501, 602] {
        world.iperf3(pid, &[9], 0.0);
        let main = world.threads.last_mut().expect("just added");
        (main.sample.duty, main.cpu) = (Duty::Control, 0.0);
    }
    world.threads.sort_by_key(|runner| (runner.sample.id.pid, runner.sample.id.tid));
    world
}

#[test]
fn the_cores_before_and_after_are_shown() {
    let mut stage = Stage::after(3, scenes::bridge());
    stage.press("p");
    freeze("two_cores", &stage, 80, 24);
    let mut stage = Stage::after(3, scenes::kunpeng());
    stage.press("p");
    freeze("one_stream", &stage, 80, 24);
    freeze("one_stream", &stage, 160, 50);
    let mut stage = Stage::after(3, eight_streams());
    stage.press("p");
    freeze("eight_streams", &stage, 80, 24);
    stage.press("<end>");
    assert!(stage.text(80, 24).contains("taskset -cp"), "the last lines are reached by scrolling");
}

#[test]
fn where_others_have_every_core_nothing_is_proposed_but_to_who_insists() {
    let mut world = World::small();
    scenes::containers(&mut world);
    for (tid, core) in [(39_081, 0), (39_082, 1)] {
        world.iperf3(tid, &[core], 0.0);
        world.threads.last_mut().expect("just added").cpu = 0.4;
        *world.work(core) = Work { user: 0.6, system: 0.3, softirq: 0.1, ..QUIET };
    }
    let mut stage = Stage::after(8, world);
    stage.press("p");
    freeze("no_free_core", &stage, 80, 24);
    assert_eq!(stage.press("<esc>"), [], "nothing was asked for");
    stage.press("p");
    assert!(stage.text(80, 24).contains("taskset -cp"), "who asks again gets it: {}", stage.text(80, 24));
    assert_eq!(stage.press("p").len(), 1, "and a third press applies it");
    stage.press("p");
    assert!(stage.text(80, 24).contains("no free core"), "the next time it is said again");
}

/// Four workers of one server and one client on 16 cores of one node.
fn two_streams() -> World {
    let mut world = World::new(16, 1, Some(4));
    for (pid, tid, core) in [(501, 511, 1), (501, 513, 2), (602, 612, 3), (602, 614, 5)] {
        worker(&mut world, pid, tid, core);
    }
    world
}

fn worker(world: &mut World, pid: u32, tid: u32, core: CoreId) -> ThreadId {
    world.iperf3(tid, &[core], 12.0);
    let runner = world.threads.last_mut().expect("just added");
    runner.sample.id.pid = pid;
    let id = runner.sample.id;
    world.threads.sort_by_key(|runner| (runner.sample.id.pid, runner.sample.id.tid));
    id
}

/// What the kernel and `effect` would do with these effects: masks set and told.
fn perform(stage: &mut Stage, effects: &[Effect]) -> Vec<(u32, CoreId)> {
    let mut pinned = Vec::new();
    for effect in effects {
        let Effect::Pin(requests) = effect else { continue };
        let mut events = Vec::new();
        for request in requests {
            let runner = stage.world.threads.iter_mut().find(|runner| runner.sample.id == request.thread);
            let runner = runner.expect("the thread is there");
            let old = runner.sample.allowed.replace(request.cores.clone()).expect("masks are known");
            let core = request.cores.first().expect("a core");
            runner.trail = vec![core];
            pinned.push((request.thread.tid, core));
            let (asked, got) = (request.cores.clone(), request.cores.clone());
            events.push(Event::Pinned { thread: request.thread, old, asked, got, at_ns: 0 });
        }
        let line = OutcomeLine { warning: false, text: format!("{} of {} pinned", requests.len(), requests.len()) };
        tell(stage, &Outcome { lines: vec![line], events, ..Outcome::default() });
    }
    pinned
}

/// What the program does with an outcome: derives from its events, and shows it.
fn tell(stage: &mut Stage, outcome: &Outcome) {
    outcome.events.iter().for_each(|event| stage.event(event.clone()));
    stage.state.outcome(outcome);
}

/// One sample, and what sticky mode asks for after it.
fn tick(stage: &mut Stage) -> Vec<(u32, CoreId)> {
    stage.tick();
    let effects: Vec<Effect> = vnettop::update::tick(&mut stage.state).into_iter().collect();
    perform(stage, &effects)
}

fn pinned_stage(keys: &str) -> (Stage, Vec<CoreId>) {
    let mut stage = Stage::after(3, two_streams());
    stage.press(keys);
    let effects = stage.press("pp");
    let given = perform(&mut stage, &effects).iter().map(|(_, core)| *core).collect();
    assert_eq!(tick(&mut stage), [], "what was pinned by hand is not pinned again");
    (stage, given)
}

#[test]
fn new_workers_of_a_pinned_process_get_a_core_of_their_own_in_sticky_mode() {
    let (mut stage, given) = pinned_stage("P");
    assert_eq!(given.len(), 4, "the four workers have their cores");
    assert!(stage.text(120, 40).lines().next().expect("a header").contains("auto-pin"), "the header says so");
    worker(&mut stage.world, 501, 515, 7);
    worker(&mut stage.world, 777, 717, 8);
    assert_eq!(tick(&mut stage), [], "a thread just born has no load yet");
    let pinned = tick(&mut stage);
    let [(515, core)] = pinned[..] else { panic!("the new worker of the pinned process, and no stranger: {pinned:?}") };
    assert!(!given.contains(&core), "core {core} is not one of those given already: {given:?}");
    assert!((0..6).all(|_| tick(&mut stage).is_empty()), "and then there is rest");
}

#[test]
fn a_worker_born_in_the_tick_of_the_pin_is_new() {
    let mut stage = Stage::after(3, two_streams());
    let effects = stage.press("Ppp");
    worker(&mut stage.world, 501, 515, 7);
    perform(&mut stage, &effects);
    let pinned: Vec<(u32, CoreId)> = (0..3).flat_map(|_| tick(&mut stage)).collect();
    assert!(matches!(pinned[..], [(515, _)]), "it was not there when the pin was decided: {pinned:?}");
}

#[test]
fn without_sticky_mode_new_workers_are_left_alone() {
    let (mut stage, _) = pinned_stage("");
    worker(&mut stage.world, 501, 515, 7);
    assert!((0..6).all(|_| tick(&mut stage).is_empty()), "it is off unless asked for");
    stage.press("P");
    assert_eq!(tick(&mut stage).len(), 1, "turned on later, it takes the workers born since the pin");
    stage.press("P");
    worker(&mut stage.world, 501, 517, 8);
    assert!((0..6).all(|_| tick(&mut stage).is_empty()), "and turned off again it takes none");
}

#[test]
fn sticky_mode_never_shares_and_forgets_what_was_put_back() {
    let (mut stage, _) = pinned_stage("P");
    let threads: Vec<ThreadId> = stage.world.threads.iter().map(|runner| runner.sample.id).collect();
    let events =
        threads.into_iter().map(|thread| Event::Restored { thread, got: (0..16).collect(), at_ns: 0 }).collect();
    tell(&mut stage, &Outcome { events, ..Outcome::default() });
    stage.world.threads.iter_mut().for_each(|runner| runner.sample.allowed = Some((0..16).collect()));
    tick(&mut stage);
    worker(&mut stage.world, 501, 515, 7);
    assert!((0..6).all(|_| tick(&mut stage).is_empty()), "after U nothing is pinned until somebody pins again");

    let (mut stage, _) = pinned_stage("P");
    for tid in 0..13 {
        worker(&mut stage.world, 501, 521 + 2 * tid, 7);
    }
    assert_eq!((0..4).flat_map(|_| tick(&mut stage)).count(), 0, "17 threads do not fit 16 cores");
    assert!(stage.text(120, 40).contains("no core is left"), "and it says so");
    stage.world.threads.retain(|runner| runner.sample.id.tid < 521 || runner.sample.id.tid > 541);
    let late = (0..4).flat_map(|_| tick(&mut stage)).count();
    assert_eq!(late, 2, "when most of them have ended the others get theirs");
}

#[test]
fn sticky_mode_is_refused_where_nothing_may_be_changed() {
    for (settings, word) in [
        (Settings { readonly: true, ..Settings::default() }, "--readonly"),
        (Settings { mode: Mode::Replay, ..Settings::default() }, "replay"),
    ] {
        let mut stage = Stage::with(3, two_streams(), settings);
        assert_eq!(stage.press("P"), [], "no effect");
        assert!(!stage.state.sticky.on, "it stays off");
        assert!(stage.text(120, 40).contains(word), "and the sentence says why");
    }
}

fn mask(stage: &mut Stage, tid: u32, cores: CoreSet) {
    let runner = stage.world.threads.iter_mut().find(|runner| runner.sample.id.tid == tid).expect("it is there");
    runner.sample.allowed = Some(cores);
}

fn json(stage: &mut Stage) -> serde_json::Value {
    let metrics = stage.derive();
    let mut line = Vec::new();
    vnettop::report::json::write(&mut line, &metrics).expect("memory takes it");
    stage.state.receive(metrics);
    serde_json::from_slice(&line).expect("it is JSON")
}

#[test]
fn a_pin_that_something_else_undid_is_told_once_and_not_fought() {
    let (mut stage, _) = pinned_stage("P");
    mask(&mut stage, 513, (0..16).collect());
    let told = json(&mut stage);
    let events = told["events"].as_array().expect("a list");
    let undone: Vec<_> = events.iter().filter(|event| event["kind"] == "pin_undone").collect();
    let [event] = undone[..] else { panic!("one event: {events:?}") };
    assert_eq!((&event["tid"], &event["now"]), (&513.into(), &"0-15".into()), "which thread, and what it has now");
    let screen = stage.text(160, 50);
    assert!(screen.contains("another process changed its pin"), "the screen says it too:\n{screen}");
    assert!(!screen.contains("something else than this vnettop undid"), "and once is enough there, too:\n{screen}");
    assert_eq!(vnettop::update::tick(&mut stage.state), None, "and even sticky mode does not fight");
    let again = json(&mut stage);
    assert!(again["events"].as_array().expect("a list").is_empty(), "once is enough: {}", again["events"]);
}

#[test]
fn a_sample_older_than_the_pin_is_no_undoing() {
    let mut stage = Stage::after(3, two_streams());
    let thread = stage.world.threads[0].sample.id;
    let (old, got): (CoreSet, CoreSet) = ((0..16).collect(), CoreSet::single(4));
    stage.event(Event::Pinned { thread, old, asked: got.clone(), got: got.clone(), at_ns: 0 });
    let told = json(&mut stage);
    assert!(!told["events"].to_string().contains("pin_undone"), "it was read before the pin took effect: {told}");
    mask(&mut stage, thread.tid, got);
    assert!(!json(&mut stage)["events"].to_string().contains("pin_undone"), "now it is in force");
}
