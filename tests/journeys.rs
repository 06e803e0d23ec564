//! Journeys: keys in, frames and effects out. Nothing here touches the machine: effects are values.

mod world;

use std::time::Duration;
use vnettop::action::{Action, Mouse};
use vnettop::derive::proof::Verdict;
use vnettop::derive::{Evidence, Metrics};
use vnettop::effect::{Effect, PinRequest};
use vnettop::sample::{CoreSet, Event, Ifindex, Kind, ThreadId, TraceSource};
use vnettop::state::{Mode, Settings};
use vnettop::update::update;
use world::scenes;
use world::stage::Stage;
use world::{Traffic, World, stream};

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

fn pin(thread: ThreadId, label: &str, cores: &str) -> PinRequest {
    PinRequest { thread, label: label.to_owned(), cores: cores.parse().expect("a list of cores") }
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
    assert!(stage.text(120, 40).lines().nth(3).expect("a row").contains("▸b"), "the busiest link is the first row");
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
    assert!(line(&stage, "39081").contains('▸'), "the first thread is selected");
    stage.world.threads[0].sample.id.start += 1;
    stage.press("<tick>");
    assert!(!line(&stage, "39081").contains('▸'), "the same tid born anew is not selected");
    assert_eq!(stage.press("a0<enter>"), [], "and nothing can be pinned through the old selection");
}

#[test]
fn p_shows_and_p_again_applies() {
    let mut stage = Stage::after(3, scenes::kunpeng());
    let (server, client) = (thread(&stage, 0), thread(&stage, 1));
    assert_eq!(stage.press("p"), [], "the first press only shows");
    assert!(shows(&stage, "lacement ═"), "what is proposed, or why nothing is");
    stage.press("<esc>");
    stage.state.open_proposal(Ok(scenes::proposal(server, client, [4, 5])));
    assert!(shows(&stage, "0-127 → 4"), "the old mask and the new core are shown");
    let wanted = [Effect::Pin(vec![pin(server, "iperf3 server", "4"), pin(client, "iperf3 client", "5")])];
    assert_eq!(stage.press("<tick>p"), wanted, "the second press asks for exactly what was shown");
    assert!(!shows(&stage, "Proposed placement"), "and the overlay is gone");
}

#[test]
fn a_proposal_is_applied_by_enter_and_left_by_esc() {
    let mut stage = Stage::after(3, scenes::kunpeng());
    let proposal = scenes::proposal(thread(&stage, 0), thread(&stage, 1), [4, 5]);
    stage.state.open_proposal(Ok(proposal.clone()));
    assert_eq!(stage.press("<esc>"), [], "Esc leaves without an effect");
    assert_eq!(stage.press("<enter>"), [], "and what was left cannot be applied any more");
    stage.state.open_proposal(Ok(proposal));
    assert_eq!(stage.press("<enter>").len(), 1, "Enter applies as p does");
}

#[test]
fn cores_are_chosen_by_hand_for_the_selected_thread() {
    let mut stage = Stage::after(3, scenes::kunpeng());
    stage.press("a");
    assert!(shows(&stage, "no thread is selected"), "without a selection there is a sentence");
    stage.press("<tab><tab>jja8-<enter>");
    assert!(shows(&stage, "'8-' is not a list of cores"), "what cannot be read gets a sentence and stays open");
    assert_eq!(stage.press("11,200<enter>"), [], "a core that is not there is refused");
    assert!(shows(&stage, "core 200 does not exist here"), "and named");
    stage.press("<c-u>126,127<enter>");
    assert!(shows(&stage, "core 127 is offline"), "an offline core is named");
    assert_eq!(stage.press("<c-u><enter>"), [], "no core at all is refused");
    let client = thread(&stage, 1);
    let wanted = [Effect::Pin(vec![pin(client, "iperf3 client", "8-11")])];
    assert_eq!(stage.press("8-11,1<bs><bs><enter>"), wanted, "the list is asked for as it stands");
}

#[test]
fn cores_for_a_thread_that_ended_meanwhile_are_refused() {
    let mut stage = Stage::after(3, scenes::bridge());
    stage.press("<tab><tab>ja0");
    stage.world.threads.clear();
    assert_eq!(stage.press("<tick><enter>"), [], "no effect for a thread that is gone");
    assert!(shows(&stage, "thread 39081 has ended"), "and the sentence says so");
}

#[test]
fn readonly_shows_everything_and_changes_nothing() {
    let mut stage = with(Settings { readonly: true, ..Settings::default() });
    stage.state.open_proposal(Ok(scenes::proposal(thread(&stage, 0), thread(&stage, 1), [0, 1])));
    assert!(shows(&stage, "--readonly: nothing is changed here"), "the overlay says it cannot be applied");
    assert_eq!(stage.press("p"), [], "the second press has no effect");
    for keys in ["U", "<tab><tab>ja"] {
        assert_eq!(stage.press(keys), [], "'{keys}' has no effect");
        assert!(shows(&stage, "--readonly: no thread is pinned"), "'{keys}' gets its sentence");
    }
}

#[test]
fn a_replay_pins_nothing_and_steps_when_frozen() {
    let mut stage = with(Settings { mode: Mode::Replay, ..Settings::default() });
    stage.state.open_proposal(Ok(scenes::proposal(thread(&stage, 0), thread(&stage, 1), [0, 1])));
    assert_eq!(stage.press("pU"), [], "threads of a recording are not touched");
    assert_eq!(stage.press("."), [], "a running replay is not stepped");
    assert_eq!(stage.press(" ."), [Effect::Step], "a frozen one is");
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
    assert!(shows(&stage, "vetha6c37c1") && !shows(&stage, "vethe61f5c0"), "case does not matter");
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
        shows(&stage, "+ 2 links idle: i shows them"),
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
    assert_eq!(stage.press("+"), [], "down to 100 ms");
    assert!(shows(&stage, "intervals go from 100 ms to 10 s"), "and says so");
    assert_eq!(stage.press("------").last(), Some(&interval(10_000)), "minus less often, up to 10 s");
    assert_eq!(
        stage.press("mwR"),
        [Effect::Mark, Effect::WriteReport, Effect::ToggleRecording],
        "the rest is passed on"
    );
}

#[test]
fn undo_asks_for_every_mask_back() {
    let mut stage = with(Settings::default());
    assert_eq!(stage.press("U"), [Effect::Restore], "one key");
}

#[test]
fn undo_is_obeyed_over_every_box_that_takes_no_text() {
    let mut stage = Stage::after(3, scenes::kunpeng());
    let (server, client) = (thread(&stage, 0), thread(&stage, 1));
    for opens in ["?", "v", "F", "c"] {
        stage.press(opens);
        assert!(shows(&stage, "╔═"), "{opens} opens its box:\n{}", stage.text(120, 40));
        assert_eq!(stage.press("U"), [Effect::Restore], "U undoes from the box of {opens}");
        assert!(!shows(&stage, "╔═"), "and the box gives way to what came of it:\n{}", stage.text(120, 40));
    }
    for result in [Ok(scenes::proposal(server, client, [4, 5])), Err("nothing to gain".to_owned())] {
        stage.state.open_proposal(result);
        assert!(shows(&stage, "╔═"), "there is a proposal, or why there is none");
        assert_eq!(stage.press("U"), [Effect::Restore], "U undoes from there too, and pins nothing");
        assert!(!shows(&stage, "╔═"), "and the box gives way to what came of it");
    }
}

#[test]
fn a_click_selects_what_was_seen_there() {
    let mut stage = Stage::after(2, four_links());
    let seen = stage.view(120, 40);
    stage.press("s");
    let action = seen.action_for(Mouse::Click { x: 5, y: 3 }).expect("a row is there");
    update(&mut stage.state, action);
    assert_eq!(selected(&stage).as_deref(), Some("a"), "the link that stood in that row, not the one that does now");
    let view = stage.view(120, 40);
    let wheel = view.action_for(Mouse::ScrollDown { x: 5, y: 5 }).expect("a pane is there");
    update(&mut stage.state, wheel);
    assert_eq!(selected(&stage).as_deref(), Some("a"), "the wheel ends at the last row");
    let click = view.action_for(Mouse::Click { x: 100, y: 30 });
    assert_eq!(click, Some(Action::Focus(vnettop::action::Pane::Threads)), "a click beside rows gives the focus");
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
    assert!(shows(&stage, "core 5: 61 % softirq"), "without a selection the core with most softirq is looked at");
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
    stage.press("??q");
    assert!(stage.state.quitting(), "? closes the help again and q quits");
}

#[test]
fn the_whole_help_can_be_read_on_the_smallest_screen() {
    let mut stage = Stage::after(2, scenes::bridge());
    stage.press("?<end>");
    assert!(stage.text(60, 15).contains("quit, from anywhere"), "the last line is reached");
    stage.press("<home>");
    assert!(stage.text(60, 15).contains("move the selection"), "and the first again");
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
fn a_doubtful_proposal_says_so_first_and_may_be_applied_all_the_same() {
    let mut stage = Stage::after(3, scenes::kunpeng());
    let mut proposal = scenes::proposal(thread(&stage, 0), thread(&stage, 1), [4, 5]);
    proposal.doubt = Some("pinning will probably not help: other work is everywhere".to_owned());
    stage.state.open_proposal(Ok(proposal));
    let frame = stage.text(120, 40);
    let first = frame.lines().skip_while(|line| !line.contains("Proposed placement")).nth(1).unwrap_or_default();
    assert!(first.contains("pinning will probably not help"), "before anything else:\n{frame}");
    assert!(shows(&stage, "p again or Enter applies all the same"), "it may be applied:\n{frame}");
    assert!(matches!(stage.press("p")[..], [Effect::Pin(_)]), "and is");
}

#[test]
fn a_replay_offers_no_key_that_would_change_this_machine() {
    let mut stage = with(Settings { mode: Mode::Replay, ..Settings::default() });
    pinned(&mut stage);
    stage.world.threads[0].sample.allowed = Some(CoreSet::single(4));
    stage.press("<tick><tick>");
    assert!(shows(&stage, "1 thread pinned in the recording"), "whose pins they are:\n{}", stage.text(120, 40));
    assert!(!shows(&stage, "U undo") && !shows(&stage, "U puts"), "U would put nothing back:\n{}", stage.text(120, 40));
    let proposal = scenes::proposal(thread(&stage, 0), thread(&stage, 1), [4, 5]);
    stage.state.open_proposal(Ok(proposal));
    assert!(!shows(&stage, "p apply"), "nor would p apply:\n{}", stage.text(120, 40));
}

#[test]
fn after_a_pin_the_border_shows_the_rate_and_then_the_spread_since_the_pin_alone() {
    let stage = Stage::after(12, four_links());
    let frame = stage.text(160, 40);
    assert!(frame.contains(" LAST 12 s"), "a strip's title promises no more seconds than were seen:\n{frame}");
    let mut stage = Stage::after(12, scenes::kunpeng());
    assert!(shows(&stage, "· 12 s") || shows(&stage, "· 11 s"), "the time of the spread:\n{}", stage.text(120, 40));
    pinned(&mut stage);
    stage.press("<tick>");
    assert!(shows(&stage, "flow 34.8 Gbit/s") && !shows(&stage, "±"), "settling:\n{}", stage.text(120, 40));
    stage.play(8, |_, _| {});
    assert!(shows(&stage, "· 6 s") || shows(&stage, "· 5.5 s"), "since the pin settled:\n{}", stage.text(120, 40));
}

#[test]
fn the_title_says_which_source_traces_the_moves() {
    let mut stage = Stage::after(3, scenes::kunpeng());
    for (source, wanted) in
        [(TraceSource::Perf, "moves traced by perf"), (TraceSource::Ftrace, "moves traced by ftrace")]
    {
        let mut metrics = stage.derive();
        metrics.trace = Some((source, 0));
        metrics.threads.iter_mut().for_each(|thread| thread.evidence = Evidence::Traced);
        stage.state.receive(metrics);
        assert!(stage.text(200, 60).contains(wanted), "{wanted}:\n{}", stage.text(200, 60));
    }
}

fn newest(stage: &Stage) -> &Metrics {
    stage.state.newest().expect("samples have come")
}

fn pinned(stage: &mut Stage) {
    let (thread, old) = (thread(stage, 0), "0-127".parse::<CoreSet>().expect("a list of cores"));
    let core = CoreSet::single(4);
    stage.event(Event::Pinned { thread, old, asked: core.clone(), got: core, at_ns: 0 });
}

#[test]
fn the_card_counts_down_tells_when_it_is_ready_and_never_opens_by_itself() {
    let mut stage = Stage::after(3, scenes::kunpeng());
    stage.press("c");
    assert!(shows(&stage, "no thread was pinned yet"), "before a pin there is nothing to compare");
    stage.press("<esc>");
    pinned(&mut stage);
    stage.press("<tick>c<tick><tick><tick><tick>");
    assert!(shows(&stage, "ready in 10 s"), "two seconds later there are ten to go:\n{}", stage.text(120, 40));
    stage.press("c");
    assert!(!shows(&stage, "ready in"), "c closes what c opened");
    let mut metrics = stage.derive();
    metrics.card = Some(scenes::card(Verdict::Worse));
    stage.state.receive(metrics.clone());
    assert!(shows(&stage, "the card is ready: press c"), "one sentence says it is there");
    assert!(!shows(&stage, "before and after the pin ═"), "and nothing else is covered");
    stage.press("c");
    assert!(shows(&stage, "24.1") && shows(&stage, "worse"), "the figures and the verdict");
    assert_eq!(stage.press("U"), [Effect::Restore], "a card that says worse is answered with U");
    assert!(!shows(&stage, "(95 % interval)"), "and what comes of it is not covered");
    stage.press("<esc>");
    stage.state.receive(metrics);
    assert!(!shows(&stage, "the card is ready"), "it is said once");
}

#[test]
fn pins_of_a_recording_are_told() {
    let mut stage = Stage::with(3, scenes::kunpeng(), Settings { mode: Mode::Replay, ..Settings::default() });
    pinned(&mut stage);
    stage.press("<tick>");
    assert!(shows(&stage, "in the recording: 39081 pinned to 4"), "the story says what was done");
}

#[test]
fn every_finding_can_be_read_and_answered() {
    let mut stage = Stage::after(3, scenes::kunpeng());
    let mut metrics = stage.derive();
    metrics.findings = scenes::findings();
    stage.state.receive(metrics);
    assert!(
        shows(&stage, "(+2 more: F)") && !shows(&stage, "is stolen"),
        "three on the pane, and where the others are"
    );
    stage.press("F");
    assert!(shows(&stage, "is stolen 2 %") && shows(&stage, "difference -0.004"), "the list has all, with numbers");
    stage.press("F");
    assert!(!shows(&stage, "is stolen"), "F closes what F opened");
    stage.press("F<end>");
    assert!(stage.text(60, 15).contains("times its claim 3.48"), "the last number is reached on the smallest screen");
    stage.press("p");
    assert!(shows(&stage, "lacement ═"), "a finding that names p is answered with p");
}

#[test]
fn a_strip_shows_where_a_thread_was_and_marks_where_it_moved() {
    let mut world = World::kunpeng();
    world.iperf3(39_081, &[5, 5, 5, 5, 6, 6, 6, 100, 100, 100], 1.0);
    let mut stage = Stage::after(20, world);
    let row = line(&stage, "39081");
    assert!(row.contains("aaDddAaaaAaaDddA"), "letter by node, a capital where it moved, also within a node: {row}");
    assert!(line(&stage, "ROLE").contains("NODE, LAST"), "the head says how long");
    stage.world.threads[0].trail = vec![5];
    stage.press("+<tick><tick>");
    assert!(line(&stage, "39081").contains("aa"), "it goes on");
    let mut small = World::small();
    small.iperf3(7, &[0, 0, 1], 1.0);
    let stage = Stage::after(20, small);
    assert!(line(&stage, "server").contains("100100100"), "on few cores each has its own character");
}

#[test]
fn masks_are_asked_for_beyond_64_cores() {
    let mut stage = Stage::after(3, scenes::kunpeng());
    let server = thread(&stage, 0);
    let effects = stage.press("<tab><tab>ja64-66,100<enter>");
    let cores: CoreSet = [64, 65, 66, 100].into_iter().collect();
    let label = "iperf3 server".to_owned();
    assert_eq!(effects, [Effect::Pin(vec![PinRequest { thread: server, label, cores }])], "no 64-bit mask anywhere");
}
