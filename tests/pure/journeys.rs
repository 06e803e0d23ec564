//! Journeys: keys in, frames and effects out. Nothing here touches the machine: effects are values.

mod findings;
mod looking;
mod measured;
mod panes;
mod pins;

use crate::world::change::{concluded, machine, own, threads};
use crate::world::scenes;
use crate::world::stage::Stage;
use crate::world::{Traffic, World, stream};
use std::sync::Arc;
use std::time::Duration;
use vnettop::action::{Action, Mouse};
use vnettop::derive::experiment::Verdict;
use vnettop::derive::{Evidence, FlowMetrics, Metrics, Test, TestKey, TestMean};
use vnettop::effect::{Effect, PinRequest};
use vnettop::sample::{CoreSet, Event, Ifindex, Kind, ThreadId, TraceSource};
use vnettop::state::{Mode, Settings};
use vnettop::update::update;

fn newest(stage: &Stage) -> &Metrics {
    stage.state.newest().expect("samples have come")
}

/// The line of the frame that holds the text.
fn line(stage: &Stage, text: &str) -> String {
    let frame = stage.text(120, 40);
    let found = frame.lines().find(|line| line.contains(text));
    found.unwrap_or_else(|| panic!("'{text}' is on screen:\n{frame}")).to_owned()
}

fn shows(stage: &Stage, text: &str) -> bool {
    stage.text(120, 40).contains(text)
}

/// The name in the marked row of the links.
fn selected(stage: &Stage) -> Option<String> {
    let frame = stage.text(120, 40);
    let row = frame.lines().skip(2).find(|line| line.contains('▸') && !line.contains("──"))?;
    row.split('▸').nth(1)?.trim_start_matches(['├', '└', '│', ' ']).split(' ').next().map(str::to_owned)
}

fn four_links() -> World {
    let mut world = World::small();
    for (name, gigabits) in [("a", 1.0), ("b", 4.0), ("c", 2.0), ("d", 3.0)] {
        world.link(name, Kind::Veth, Some(10_000), stream(gigabits * 1e9, 1e6));
    }
    world
}

fn thread(stage: &Stage, at: usize) -> ThreadId {
    stage.world.threads[at].sample.id
}

fn with(settings: Settings) -> Stage {
    Stage::with(3, scenes::bridge(), settings)
}

#[test]
fn the_selection_stays_on_its_link_through_sorting_and_new_links() {
    let mut stage = Stage::after(2, four_links());
    stage.press("jj");
    assert_eq!(selected(&stage).as_deref(), Some("b"), "the second press moves to the second link");
    stage.press("s");
    assert_eq!(selected(&stage).as_deref(), Some("b"), "sorted by rx it is the first row, and still selected");
    let frame = stage.text(120, 40);
    let mut rows = frame.lines().skip_while(|line| !line.contains("RX ↓"));
    assert!(rows.nth(1).expect("a row").contains("▸b"), "the busiest link is the first row");
    stage.press("S");
    assert_eq!(selected(&stage).as_deref(), Some("b"), "and when the order is turned round");
    stage.world.link("aa", Kind::Veth, Some(10_000), Traffic::default());
    stage.press("S<tick>j");
    assert_eq!(selected(&stage).as_deref(), Some("d"), "moving goes on from where the link is now");
}

#[test]
fn a_selected_link_that_is_deleted_selects_nothing_else() {
    let mut stage = Stage::after(2, four_links());
    stage.press("jj");
    stage.world.remove(Ifindex(2));
    stage.press("<tick>");
    assert_eq!(selected(&stage), None, "no other link has slipped under the selection");
    stage.press("j");
    assert_eq!(selected(&stage).as_deref(), Some("c"), "the next press goes on where it was");
}

#[test]
fn a_reused_ifindex_is_another_link() {
    let mut stage = Stage::after(2, four_links());
    stage.press("jj");
    let facts = stage.world.facts(Ifindex(2));
    facts.born = 99;
    stage.press("<tick>");
    assert_eq!(selected(&stage), None, "the same index born anew is not what was selected");
    assert!(line(&stage, "│ b ").contains('–'), "and it has no rate yet");
}

#[test]
fn a_reused_tid_is_another_thread() {
    let mut stage = Stage::after(2, scenes::bridge());
    stage.press("<tab><tab>j");
    assert!(line(&stage, "39081 server").contains('▸'), "the first thread is selected");
    stage.world.threads[0].sample.id.start += 1;
    stage.press("<tick>");
    assert!(!line(&stage, "39081 server").contains('▸'), "the same tid born anew is not selected");
    assert_eq!(stage.press("a0<enter>"), [], "and nothing can be pinned through the old selection");
}

#[test]
fn a_replay_pins_nothing_and_steps_when_frozen() {
    let mut stage = with(Settings { mode: Mode::Replay, ..Settings::default() });
    stage.state.open_proposal(Ok(scenes::proposal(thread(&stage, 0), thread(&stage, 1), [0, 1])));
    assert_eq!(stage.press("pU"), [], "threads of a recording are not touched");
    assert_eq!(stage.press("}"), [Effect::Step], "another sample");
    assert!(stage.state.frozen(), "and it stands still");
    *stage.world.traffic(Ifindex(3)) = stream(5e9, 1e6);
    stage.press("<tick>");
    assert!(line(&stage, "docker0").contains("5.00G"), "and shows the sample it stepped to");
}

#[test]
fn a_frozen_screen_holds_every_cell_and_goes_on_with_the_newest() {
    let mut stage = scenes::swinging(Settings::default());
    stage.press(" ");
    let before = stage.frame(200, 60);
    *stage.world.traffic(Ifindex(3)) = stream(5e9, 1e6);
    stage.press("<tick><tick><tick><tick><tick>");
    assert_eq!(stage.frame(200, 60), before, "rates, strips and trails stand still");
    stage.press("u");
    assert!(shows(&stage, "bytes/s"), "keys still work");
    stage.press("u");
    assert!(shows(&stage, "packets/s"), "the third unit is packets");
    stage.press("u ");
    assert!(line(&stage, "docker0").contains("5.00G"), "the newest sample is shown at once");
}

#[test]
fn the_same_samples_make_the_same_view() {
    let mut stage = Stage::after(3, scenes::kunpeng());
    let before = stage.view(120, 40);
    assert_eq!(stage.view(120, 40), before, "nothing has to be drawn when nothing has changed");
    stage.press("j");
    assert_ne!(stage.view(120, 40), before, "a moved selection has to be drawn");
}

#[test]
fn a_filter_works_while_it_is_typed_and_is_kept_or_cleared() {
    let mut stage = Stage::after(3, scenes::bridge());
    stage.press("/VETHA");
    assert!(shows(&stage, "vetha6c37c1") && !shows(&stage, "└ vethe61f5c0"), "case does not matter");
    assert!(shows(&stage, "docker0"), "the master stays as the way to its port");
    stage.press("<enter>q");
    assert!(stage.state.quitting(), "after Enter, q quits again");
    let mut stage = Stage::after(3, scenes::bridge());
    stage.press("/tun<esc>");
    assert!(shows(&stage, "6 links"), "Esc clears the filter");
    stage.press("/tun<enter><esc>");
    assert!(shows(&stage, "6 links"), "also when it was kept before");
    stage.press("<tab><tab>/client<enter>");
    assert!(shows(&stage, "39082") && !shows(&stage, "39081"), "threads are filtered by role too");
}

#[test]
fn idle_links_are_hidden_only_when_they_have_been_idle() {
    let mut world = World::small();
    world.link("busy", Kind::Veth, None, stream(1e9, 1e6));
    let fading = world.link("fading", Kind::Veth, None, stream(1e9, 1e6));
    world.link("never", Kind::Veth, None, Traffic::default());
    let mut stage = Stage::after(2, world);
    stage.press("i");
    assert!(shows(&stage, "fading") && !shows(&stage, "never"), "what never moved is hidden");
    *stage.world.traffic(fading) = Traffic::default();
    stage.play(4, |_, _| {});
    assert!(shows(&stage, "fading"), "a pause of four seconds hides nothing");
    stage.play(2, |_, _| {});
    assert!(!shows(&stage, "fading"), "six seconds do");
    assert!(shows(&stage, "1 of 3 "), "and the title says how many are left");
    assert!(
        shows(&stage, "2 idle links hidden (i to show)"),
        "and the last line how many are not, and which key shows them"
    );
}

#[test]
fn the_tree_can_be_flattened() {
    let mut stage = Stage::after(3, scenes::bridge());
    assert!(shows(&stage, "└ vethe61f5c0"), "ports lie under their bridge");
    stage.press("t");
    assert!(!shows(&stage, "└ vethe61f5c0") && shows(&stage, "vethe61f5c0"), "or beside it");
}

#[test]
fn masters_that_lead_in_a_ring_are_drawn_all_the_same() {
    let mut stage = Stage::new(four_links(), Settings::default());
    stage.world.facts(Ifindex(1)).master = Some(Ifindex(2));
    stage.world.facts(Ifindex(2)).master = Some(Ifindex(1));
    stage.world.facts(Ifindex(3)).master = Some(Ifindex(3));
    stage.press("<tick><tick>");
    assert!(shows(&stage, "4 links"), "all of them, however they point at each other");
    assert_eq!(stage.text(120, 40).matches("veth  ").count(), 4, "each has its row");
}

#[test]
fn intervals_go_through_their_steps() {
    let mut stage = with(Settings::default());
    let interval = |ms| Effect::SetInterval(Duration::from_millis(ms));
    assert_eq!(stage.press("++"), [interval(200), interval(100)], "plus samples more often");
    assert_eq!(stage.press("+++"), [interval(50), interval(20), interval(10)], "down to 10 ms");
    assert_eq!(stage.press("+"), [], "and no further");
    assert!(shows(&stage, "the interval is between 10 ms and 60 s"), "and says so");
    assert_eq!(stage.press("----------").last(), Some(&interval(60_000)), "minus less often, up to a minute");
    assert_eq!(
        stage.press("mwR"),
        [Effect::Mark, Effect::WriteReport, Effect::ToggleRecording],
        "the rest is passed on"
    );
}

#[test]
fn a_click_selects_what_was_seen_there() {
    let mut stage = Stage::after(2, four_links());
    let seen = stage.view(120, 40);
    let y = seen.links.area.y;
    stage.press("s");
    let action = seen.action_for(Mouse::Click { x: 5, y: y + 1 }).expect("a row is there");
    update(&mut stage.state, action);
    assert_eq!(selected(&stage).as_deref(), Some("a"), "the link that stood in that row, not the one that does now");
    let view = stage.view(120, 40);
    let wheel = view.action_for(Mouse::ScrollDown { x: 5, y: y + 3 }).expect("a pane is there");
    update(&mut stage.state, wheel);
    assert_eq!(selected(&stage).as_deref(), Some("a"), "the wheel ends at the last row");
    let cores = view.cores.area;
    let click = view.action_for(Mouse::Click { x: cores.x + cores.width - 2, y: cores.y + cores.height - 1 });
    assert_eq!(click, Some(Action::Focus(vnettop::action::Pane::Cores)), "a click beside rows gives the focus");
}

#[test]
fn panes_take_turns() {
    let mut stage = Stage::after(2, scenes::kunpeng());
    for (keys, pane) in
        [("", "▸Links"), ("<tab>", "▸Cores"), ("<tab>", "▸Threads"), ("<tab>", "▸Links"), ("<backtab>", "▸Threads")]
    {
        stage.press(keys);
        assert!(shows(&stage, pane), "'{keys}' leads to {pane}");
    }
}

#[test]
fn cores_are_walked_by_one_and_by_node() {
    let mut stage = Stage::after(2, scenes::kunpeng());
    stage.press("<tab>");
    assert!(shows(&stage, "core 5: 83 % busy"), "without a selection the busiest core is looked at");
    stage.press("lll");
    assert!(shows(&stage, "core 2: "), "right goes to the next core");
    stage.press("jj");
    assert!(shows(&stage, "core 66: "), "down goes to the same place two nodes on");
    stage.press("jjk");
    assert!(shows(&stage, "core 66: "), "and stays in the last node until it is left");
}

#[test]
fn the_way_out_is_always_open() {
    for keys in ["", "?", "/abc", "<tab><tab>ja0-", "p"] {
        let mut stage = Stage::after(2, scenes::bridge());
        stage.press(keys);
        stage.press("<c-c>");
        assert!(stage.state.quitting(), "Ctrl-C quits after '{keys}'");
    }
    let mut stage = Stage::after(2, scenes::bridge());
    stage.press("???q");
    assert!(stage.state.quitting(), "? closes the help again and q quits");
}

#[test]
fn the_whole_help_can_be_read_on_the_smallest_screen() {
    let mut stage = Stage::after(2, scenes::bridge());
    stage.press("?<end>");
    assert!(stage.text(60, 15).contains("- + ▶ are keys"), "the last line is reached");
    stage.press("<home>");
    assert!(stage.text(60, 15).contains("propose cores"), "and the first again");
    stage.press("<tab><end>");
    assert!(stage.text(60, 15).contains("did it help?"), "and the last one of the other page");
    stage.press("<left>");
    assert!(stage.text(60, 15).contains("propose cores"), "from which there is a way back");
}

#[test]
fn keys_before_the_first_sample_do_no_harm() {
    let mut stage = Stage::new(scenes::bridge(), Settings::default());
    let effects = stage.press("jkhl<pgdn><end>sStiu /x<enter>p<esc>a<tab>j<tab>j?<pgdn><esc>  ");
    assert_eq!(effects, [], "there is nothing to act on yet");
    assert!(shows(&stage, "waiting for the first sample"), "and the screen says so");
}

#[test]
fn notices_go_when_they_have_been_read() {
    let mut stage = Stage::new(scenes::bridge(), Settings::default());
    stage.state.notice(true, "the journal cannot be written");
    stage.press("<tick><tick>");
    assert!(shows(&stage, "the journal cannot be written"), "a notice from before the first sample is seen");
    stage.play(22, |_, _| {});
    assert!(!shows(&stage, "the journal"), "twenty seconds of samples later it is gone");
}

#[test]
fn what_update_sees_is_the_newest_even_when_the_screen_is_frozen() {
    let mut stage = Stage::after(2, scenes::bridge());
    stage.press("<tab><tab>j ");
    stage.world.threads.remove(0);
    stage.press("<tick>");
    let newest: Vec<u32> = newest(&stage).threads.iter().map(|thread| thread.sample.id.tid).collect();
    assert_eq!(newest, [39_082], "the newest sample is kept behind the frozen screen");
    assert_eq!(stage.press("a"), [], "a thread that has ended cannot be chosen from the frozen screen");
    assert!(shows(&stage, "no thread is selected"), "and a sentence says so");
}

#[test]
fn the_title_says_which_source_traces_the_moves() {
    let mut stage = Stage::after(3, scenes::kunpeng());
    for (source, wanted) in
        [(TraceSource::Perf, "migrations traced by perf"), (TraceSource::Ftrace, "migrations traced by ftrace")]
    {
        let mut metrics = stage.derive();
        machine(&mut metrics, |machine| machine.trace = Some((source, 0)));
        threads(&mut metrics, |all| all.iter_mut().for_each(|thread| thread.evidence = Evidence::Traced));
        stage.state.receive(metrics);
        assert!(stage.text(200, 60).contains(wanted), "{wanted}:\n{}", stage.text(200, 60));
    }
}
