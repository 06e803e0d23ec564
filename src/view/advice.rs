//! What to do about a test: the key that helps most, the remedy of its first finding, and after a pin whether to keep it.

use super::lines::Line;
use super::paragraphs::Paragraphs;
use super::{Tone, finding, flow};
use crate::derive::experiment::Verdict;
use crate::derive::placement::ProposedPin;
use crate::derive::{CoreMetrics, FindingId, Limit, LimitKind, Metrics};
use crate::sample::CoreSet;
use crate::state::{Mode, State};

/// Time that a full core has left, as a share.
const FULL: f64 = 0.05;

/// How many findings there are beside the one that is told. Of one piece: `more` alone in a line says nothing.
pub(super) fn more(state: &State) -> Option<String> {
    let (key, more) = (state.keys().key("findings"), finding::listed(state).saturating_sub(1));
    let text = || format!("(+{more} more: {key})");
    (more > 0).then(|| format!(" {}", text().replace(' ', "\u{a0}")))
}

/// What to do, or that nothing needs doing.
pub(super) fn add(all: &mut Paragraphs, (state, metrics): (&State, &Metrics), fix: &str, says_cause: bool) {
    let todo = to_do(state, metrics, fix);
    let is_done = todo.is_empty() && says_cause;
    all.add_line("DO", todo);
    all.add("DO", Tone::Normal, needs_nothing(state, metrics).filter(|_| is_done).unwrap_or_default());
}

/// `[p] pin to cores 4-5`, what else can be done, and how many findings there are beside this one.
fn to_do(state: &State, metrics: &Metrics, fix: &str) -> Line {
    let mut line = if state.is_placed() { Line::new() } else { press(state, metrics) };
    // A steer moves packets that overtake each other at any rate.
    let proposed = &metrics.conclusions.proposed;
    let keeps = !proposed.is_empty() && proposed.iter().all(|pin| pin.stays) && !steers(metrics);
    if !line.is_empty() && is_steady_now(metrics) && keeps {
        line.insert(0, (Tone::Normal, "keep it so: ".to_owned()));
    }
    let more = more(state).unwrap_or_default();
    let text = match fix.split_once(" (").filter(|_| steers_first(metrics)) {
        _ if line.is_empty() || fix.is_empty() => format!("{fix}{more}"),
        // The key does what the command does.
        Some((_, command)) => format!(", or by hand ({command}{more}"),
        None => format!(", or {fix}{more}"),
    };
    match line.last_mut() {
        Some((_, last)) => last.push_str(&text),
        None if fix.is_empty() => {}
        None => line.push((Tone::Normal, text)),
    }
    line
}

/// Something is wrong with the test, or was in the time of its mean.
pub(super) fn is_trouble(metrics: &Metrics) -> bool {
    matches!(flow::state_word(metrics).0, Tone::Warning | Tone::Bad) || flow::was_unsteady(&metrics.subject).is_some()
}

/// The rate is steady, whatever it was before.
fn is_steady_now(metrics: &Metrics) -> bool {
    let (_, word) = flow::state_word(metrics);
    word.contains("STEADY") && (word.ends_with("WAS UNSTEADY") || !word.ends_with("UNSTEADY"))
}

/// Why nothing needs doing, where that is so: it is worth a line to whoever looks for what to press.
fn needs_nothing(state: &State, metrics: &Metrics) -> Option<&'static str> {
    let is_good = flow::state_word(metrics).0 == Tone::Good && !state.is_placed();
    let limit = metrics.conclusions.limit.as_ref().filter(|_| is_good)?;
    Some(if limit.meets_what_was_asked() {
        let is_full =
            |core| metrics.machine.core(core).and_then(CoreMetrics::shares).is_some_and(|one| one.idle <= FULL);
        if metrics.subject.threads.iter().any(|thread| is_full(thread.sample.core)) {
            "nothing: the test gets what it asks for, though its cores are full"
        } else {
            "nothing: the test gets what it asks for"
        }
    } else if limit.kind == LimitKind::Nothing {
        "nothing: the rate is steady"
    } else {
        "nothing: the rate is steady, and LIMIT says what holds it back"
    })
}

/// Whether what was placed shall stay, as the comparison says.
pub(super) const fn kept(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::SteadierAndFaster | Verdict::Steadier | Verdict::Faster => "helped, keep it; ",
        Verdict::Worse => "made it worse, undo it; ",
        Verdict::NoDifference | Verdict::Inconclusive => "",
    }
}

/// What can be pressed now, what helps most first.
pub(super) fn press(state: &State, metrics: &Metrics) -> Line {
    let key = |name: &str| state.keys().key(name);
    let mut line = Line::new();
    let mut add = |key: String, text: String| {
        line.push((Tone::Key, format!("[{key}]")));
        line.push((Tone::Normal, format!(" {text}  ")));
    };
    let is_open = state.settings().mode != Mode::Replay;
    if state.is_placed() {
        if is_open {
            add(key("undo"), "undo".to_owned());
        }
        add(key("card"), "before and after".to_owned());
        return line;
    }
    let conclusions = &metrics.conclusions;
    if metrics.ended_test().is_some() || conclusions.limit.as_ref().is_some_and(Limit::is_beyond_cores) {
        return line;
    }
    let offers = |key: Option<char>| key == Some('p');
    // What others take of a core no steer gives back: beside that only the remedy of the first finding counts.
    let lacks_cpu = conclusions.limit.as_ref().is_some_and(Limit::lacks_cpu);
    let most = if lacks_cpu { 1 } else { usize::MAX };
    if conclusions.findings.iter().take(most).any(|finding| offers(finding.key))
        || conclusions.limit.as_ref().is_some_and(|limit| offers(limit.key))
    {
        line.push((Tone::Key, format!("[{}]", key("propose"))));
        line.push((Tone::Normal, format!(" {}", proposal(metrics))));
    }
    line
}

/// What is to be done is what the key does.
fn steers_first(metrics: &Metrics) -> bool {
    let conclusions = &metrics.conclusions;
    let is_refused = conclusions.no_free_core && !conclusions.proposed.is_empty();
    !is_refused && conclusions.findings.first().is_some_and(|finding| finding.id == FindingId::Reordered)
}

fn steers(metrics: &Metrics) -> bool {
    metrics.conclusions.findings.iter().any(|finding| finding.id == FindingId::Reordered)
}

/// What the key opens that proposes.
fn proposal(metrics: &Metrics) -> String {
    let conclusions = &metrics.conclusions;
    let pins = pins(&conclusions.proposed);
    match (pins.is_empty(), steers(metrics)) {
        (true, true) => "steer its packets to one core".to_owned(),
        (true, false) => "what can be done".to_owned(),
        (false, _) if conclusions.no_free_core => "no free core: why".to_owned(),
        (false, true) => format!("{pins}, steer its packets to one core"),
        (false, false) => pins,
    }
}

/// `pin server to core 4, client to core 5`; of more threads, or of two that do the same, `pin to cores 4-7`.
fn pins(proposed: &[ProposedPin]) -> String {
    match proposed {
        [] => String::new(),
        [one] => format!("pin {} to core {}", one.role, one.core),
        [one, other] if one.role != other.role => {
            format!("pin {} to core {}, {} to core {}", one.role, one.core, other.role, other.core)
        }
        all => {
            let cores: CoreSet = all.iter().map(|pin| pin.core).collect();
            let many = if cores.len() == 1 { "core" } else { "cores" };
            format!("pin to {many} {}", cores.to_string().replace(',', ", "))
        }
    }
}
