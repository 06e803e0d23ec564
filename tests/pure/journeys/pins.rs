//! Journeys that pin: what is proposed, applied, refused, put back, and what the card says of it.

use super::*;
use crate::world::change::own;

fn pin(thread: ThreadId, label: &str, cores: &str) -> PinRequest {
    PinRequest { thread, label: label.to_owned(), cores: cores.parse().expect("a list of cores") }
}

#[test]
fn p_shows_and_p_again_applies() {
    let mut stage = Stage::after(3, scenes::kunpeng());
    let (server, client) = (thread(&stage, 0), thread(&stage, 1));
    assert_eq!(stage.press("p"), [], "the first press only shows");
    assert!(shows(&stage, "lacement ═"), "what is proposed, or why nothing is");
    stage.press("<esc>");
    stage.state.open_proposal(Ok(scenes::proposal(server, client, [4, 5])));
    assert!(shows(&stage, "(allowed 0-127), pin to 4"), "the old mask and the new core are shown");
    let wanted = [Effect::Pin(vec![pin(server, "iperf3 server", "4"), pin(client, "iperf3 client", "5")])];
    assert_eq!(stage.press("<tick>p"), wanted, "the second press asks for exactly what was shown");
    assert!(!shows(&stage, "Proposed placement"), "and the overlay is gone");
}

#[test]
fn a_proposal_is_applied_by_enter_and_left_by_esc() {
    let mut stage = Stage::after(3, scenes::kunpeng());
    let proposal = scenes::proposal(thread(&stage, 0), thread(&stage, 1), [4, 5]);
    stage.state.open_proposal(Ok(proposal.clone()));
    assert_eq!(stage.press("<esc>"), [], "Esc closes without an effect");
    assert_eq!(stage.press("<enter>"), [], "and what was left cannot be applied any more");
    stage.state.open_proposal(Ok(proposal));
    assert_eq!(stage.press("<enter>").len(), 1, "Enter applies as p does");
}

#[test]
fn a_proposal_for_threads_that_have_ended_is_withdrawn() {
    let mut stage = Stage::after(3, scenes::kunpeng());
    let proposal = scenes::proposal(thread(&stage, 0), thread(&stage, 1), [4, 5]);
    stage.state.open_proposal(Ok(proposal));
    stage.world.threads.remove(1);
    stage.press("<tick>");
    assert!(shows(&stage, "Proposed placement"), "one of them still runs");
    stage.world.threads.clear();
    stage.press("<tick>");
    assert!(shows(&stage, "the threads of this placement have ended"), "{}", stage.text(120, 40));
    assert_eq!(stage.press("<enter>"), [], "and nothing is asked of the kernel");
}

#[test]
fn threads_are_taken_off_a_proposal() {
    let mut stage = Stage::after(3, scenes::kunpeng());
    let (server, client) = (thread(&stage, 0), thread(&stage, 1));
    stage.state.open_proposal(Ok(scenes::proposal(server, client, [4, 5])));
    stage.press("<down> ");
    assert!(shows(&stage, "[ ] iperf3 server") && shows(&stage, "[x] iperf3 client"), "{}", stage.text(120, 40));
    let by_hand = format!("taskset -cp 4 {}", server.tid);
    assert!(shows(&stage, "unchanged") && !shows(&stage, &by_hand), "nor by hand: {}", stage.text(120, 40));
    stage.press("<down> ");
    assert_eq!(stage.press("p"), [], "of nobody nothing is asked");
    assert!(shows(&stage, "every line is off"), "and that is said: {}", stage.text(120, 40));
    let row = stage.text(120, 40).lines().position(|line| line.contains("[ ] iperf3 client")).expect("it is listed");
    let click = Mouse::Click { x: 60, y: u16::try_from(row).expect("a row") };
    let action = stage.view(120, 40).action_for(click).expect("its line is a place to click");
    assert_eq!(update(&mut stage.state, action), None, "a click puts it on again");
    assert_eq!(
        stage.press("p"),
        [Effect::Pin(vec![pin(client, "iperf3 client", "5")])],
        "who is marked, and nobody else"
    );
}

#[test]
fn cores_are_chosen_by_hand_for_the_selected_thread() {
    let mut stage = Stage::after(3, scenes::kunpeng());
    stage.press("a");
    assert!(shows(&stage, "no thread is selected"), "without a selection there is a sentence");
    stage.press("<tab><tab>jja8-<enter>");
    assert!(shows(&stage, "'8-' is not a list of cores"), "what cannot be read gets a sentence and stays open");
    assert_eq!(stage.press("11,200<enter>"), [], "a core that is not there is refused");
    assert!(shows(&stage, "core 200 does not exist"), "and named");
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
    assert!(shows(&stage, "thread 39081 has exited"), "and the sentence says so");
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
fn undo_asks_for_every_mask_back() {
    let mut stage = with(Settings::default());
    assert_eq!(stage.press("U"), [Effect::Restore], "one key");
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
    assert!(shows(&stage, "p again: apply anyway"), "it may be applied:\n{frame}");
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
    assert!(
        frame.contains(" LAST 12 s, █ = 4.00G "),
        "a strip's title promises no more seconds than were seen:\n{frame}"
    );
    let mut stage = Stage::after(12, scenes::kunpeng());
    assert!(
        shows(&stage, "· over 12 s") || shows(&stage, "· over 11 s"),
        "the time of the spread:\n{}",
        stage.text(120, 40)
    );
    pinned(&mut stage);
    stage.press("<tick>");
    assert!(
        shows(&stage, " 34.8 Gbit/s · spread not known yet ─┐") && !shows(&stage, "CV"),
        "settling:\n{}",
        stage.text(120, 40)
    );
    stage.play(8, |_, _| {});
    assert!(
        shows(&stage, "· over 6 s") || shows(&stage, "· over 5.5 s"),
        "since the pin settled:\n{}",
        stage.text(120, 40)
    );
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
    assert!(shows(&stage, "nothing pinned yet"), "before a pin there is nothing to compare");
    stage.press("<esc>");
    pinned(&mut stage);
    stage.press("<tick>c<tick><tick><tick><tick>");
    assert!(shows(&stage, "ready in 10 s"), "two seconds later there are ten to go:\n{}", stage.text(120, 40));
    stage.press("c");
    assert!(!shows(&stage, "ready in"), "c closes what c opened");
    let mut metrics = stage.derive();
    own(&mut metrics).card = Some(scenes::card(Verdict::Worse));
    stage.state.receive(metrics.clone());
    assert!(shows(&stage, "the pin made it worse: U undoes it (c: before and after)"), "what to do now");
    assert!(!shows(&stage, "before and after the pin ═"), "and nothing else is covered");
    stage.press("c");
    assert!(shows(&stage, "24.1") && shows(&stage, "worse"), "the figures and the verdict");
    assert_eq!(stage.press("s"), [Effect::WriteCard], "s saves the card that it lies on");
    assert_eq!(stage.press("U"), [Effect::Restore], "a card that says worse is answered with U");
    assert!(!shows(&stage, "99 % interval"), "and what comes of it is not covered");
    stage.press("<esc>");
    stage.state.receive(metrics);
    assert!(!shows(&stage, "first comparison"), "it is said once");
}

#[test]
fn pins_of_a_recording_are_told() {
    let mut stage = Stage::with(3, scenes::kunpeng(), Settings { mode: Mode::Replay, ..Settings::default() });
    pinned(&mut stage);
    stage.press("<tick>");
    assert!(shows(&stage, "in the recording: iperf3 server pinned to core 4"), "the story says what was done");
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
