//! What there is to say: what the last thing done has left, sources that could not be read, findings, and the next step.
//! The pane shows what is most pressing; the list that lies over the panes shows all of it, with the numbers.

use super::Tone;
use super::canvas::{Area, Canvas, cells};
use super::lines::{self, Line};
use super::numbers::words;
use super::text::{plural, wrap};
use crate::action::KeyContext;
use crate::derive::{Finding, Limit, Metrics, PassingTraffic};
use crate::sample::{Problem, Word};
use crate::state::{Mode, Overlay, State};

/// A sentence never takes more lines than this.
const MOST_LINES: usize = 3;
/// The pane never shows more findings than this; the others are in the list.
const MOST_FINDINGS: usize = 3;
/// What stands before the sentence that says what holds the test back.
const LIMIT: &str = "LIMIT  ";

/// Rows that the limit takes.
pub(super) fn limit_rows(state: &State) -> u16 {
    u16::from(limit(state).is_some())
}

/// Writes what holds the test back into a row, with the key that answers it at its end.
pub(super) fn limit_line(canvas: &mut Canvas, state: &State, limit: &Limit, (x, y): (u16, u16)) {
    let width = canvas.area.width;
    let mark = marked(state, limit.key).map_or_else(String::new, |mark| format!(" {mark}"));
    let room = width.saturating_sub(u16::try_from(mark.len()).unwrap_or(0));
    let title = x + canvas.left(x, y, room, Tone::Title, LIMIT);
    let used =
        title + canvas.left(title, y, room.saturating_sub(title), Tone::Normal, whole_parts(&limit.text, room - title));
    if !mark.is_empty() {
        canvas.left(used, y, width.saturating_sub(used), Tone::Normal, mark);
    }
}

/// As many parts of a sentence as fit; all of it, to be cut, where not even the first does.
fn whole_parts(text: &str, width: u16) -> &str {
    let ends = text.match_indices([';', ',', ':']).map(|(end, _)| end).chain([text.len()]);
    ends.map(|end| &text[..end]).rfind(|part| cells(part) <= usize::from(width)).unwrap_or(text)
}

/// `[p]`
fn marked(state: &State, key: Option<char>) -> Option<String> {
    let key = state.keys().now(&key?.to_string(), KeyContext::Main)?;
    Some(format!("[{key}]"))
}

/// What holds the test back, as one sentence.
fn limit_text(state: &State, limit: &Limit) -> String {
    let mark = marked(state, limit.key).map_or_else(String::new, |mark| format!(" {mark}"));
    format!("{LIMIT}{}{mark}", limit.text)
}

/// The sentences, most pressing first, with how many there was no room for; above them what holds the test back, where no
/// other pane tells it.
pub(super) fn prepare(state: &State, area: Area, tells_limit: bool) -> Canvas {
    let mut canvas = Canvas::new(area);
    let (mut sentences, left_out) = sentences(state);
    let mut y = 0;
    if let Some(limit) = limit(state).filter(|_| tells_limit) {
        if area.height > 1 {
            limit_line(&mut canvas, state, limit, (0, 0));
            y = 1;
        } else {
            let at = sentences.iter().take_while(|(tone, _)| matches!(tone, Tone::Warning | Tone::Good)).count();
            sentences.insert(at, (Tone::Normal, limit_text(state, limit)));
        }
    }
    for (at, (tone, text)) in sentences.iter().enumerate() {
        let rows = area.height - y;
        if rows == 0 {
            break;
        }
        let later = sentences.len() - at - 1;
        let most = MOST_LINES.min(usize::from(rows).saturating_sub(later).max(1));
        // On the last line that is written stands how many sentences are not, and the key that lists them.
        let hidden = match (rows, later) {
            (1, _) => later + left_out,
            (_, 0) => left_out,
            _ => 0,
        };
        let more =
            if hidden > 0 { format!(" (+{hidden} more: {})", state.keys().key("findings")) } else { String::new() };
        y += sentence(&mut canvas, y, (*tone, text), most, &more);
    }
    canvas
}

fn limit(state: &State) -> Option<&Limit> {
    state.metrics()?.conclusions.limit.as_ref()
}

/// One sentence in at most so many lines; returns the lines used.
fn sentence(canvas: &mut Canvas, y: u16, (tone, text): (Tone, &str), most: usize, more: &str) -> u16 {
    let width = canvas.area.width;
    let room = width.saturating_sub(u16::try_from(more.len()).unwrap_or(0));
    let lines = wrap(text, width);
    let shown = lines.len().min(most);
    let mut row = y;
    for (at, line) in lines.iter().take(shown).enumerate() {
        let last = at + 1 == shown;
        let rest = if last && lines.len() > shown { format!("{line} {}", lines[shown]) } else { line.clone() };
        let used = canvas.left(0, row, if last { room } else { width }, tone, rest);
        if last && !more.is_empty() {
            canvas.left(used, row, width, Tone::Muted, more);
        }
        row += 1;
    }
    row - y
}

/// What the pane says, and how many findings it leaves to the list.
fn sentences(state: &State) -> (Vec<(Tone, String)>, usize) {
    // The first line of the screen tells of rights, so that they hide no finding.
    let mut all = reports(state, |problem| !problem.is_of_rights());
    let Some(metrics) = state.metrics() else { return (all, 0) };
    let said = |finding: &&Finding| state.notices.list().iter().any(|notice| notice.finding == Some(finding.id));
    let findings: Vec<&Finding> = metrics.conclusions.findings.iter().filter(|finding| !said(finding)).collect();
    all.extend(findings.iter().take(MOST_FINDINGS).map(|finding| (Tone::Normal, text(state, finding))));
    all.extend(unseen_links(metrics).map(|text| (Tone::Warning, text.to_owned())));
    all.extend(next_step(state, metrics).map(|text| (Tone::Muted, text)));
    all.extend(at_the_end(metrics).take(MOST_FINDINGS).map(|text| (Tone::Normal, text)));
    if all.is_empty() && state.awaits_test() {
        let text = "waiting for a test: iperf3 -c HOST -t 60 · vnettop demo · vnettop replay";
        all.push((Tone::Muted, text.to_owned()));
    } else if all.is_empty() {
        let text =
            metrics.traffic.as_ref().map_or_else(|| "nothing to report".to_owned(), |traffic| beside(metrics, traffic));
        all.push((Tone::Muted, text));
    }
    (all, findings.len().saturating_sub(MOST_FINDINGS))
}

/// What there is to know beside what is said of passing traffic.
fn beside(metrics: &Metrics, traffic: &PassingTraffic) -> String {
    let counted = traffic.counted_by(&metrics.machine).filter(|_| !traffic.drops.is_empty());
    let ends = || "a test is measured at its ends: run vnettop there, or here with --host".to_owned();
    counted.map_or_else(ends, |places| format!("watched for drops: {places}"))
}

/// What was found of the test on the screen before it stopped.
fn at_the_end(metrics: &Metrics) -> impl Iterator<Item = String> {
    let findings = metrics.ended_test().into_iter().flat_map(|test| test.last_findings.iter());
    findings.map(|finding| format!("before it stopped: {}", finding.text))
}

/// What the last thing done has left, and of what could not be read that which is `shown`.
fn reports(state: &State, shown: impl Fn(&Problem) -> bool) -> Vec<(Tone, String)> {
    let notices = state.notices.list().iter();
    let mut all: Vec<(Tone, String)> =
        notices.map(|notice| (if notice.warning { Tone::Warning } else { Tone::Good }, notice.text.clone())).collect();
    let problems = state
        .metrics()
        .into_iter()
        .flat_map(|metrics| metrics.machine.facts.problems.iter())
        .filter(|problem| shown(problem));
    all.extend(problems.map(|problem| (Tone::Warning, problem_text(problem))));
    all
}

fn text(state: &State, finding: &Finding) -> String {
    let key = marked(state, finding.key).map_or_else(String::new, |mark| format!("{mark} "));
    format!("{key}{}", finding.text.replace('±', super::plus_minus(state)))
}

/// Everything, whole, each finding with the numbers behind it.
pub(super) fn list(state: &State, width: u16) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for (tone, text) in reports(state, |_| true) {
        lines.extend(lines::sentences(tone, &text, width));
    }
    if let Some((metrics, traffic)) = super::traffic::shown(state) {
        lines.extend(lines::sentences(Tone::Normal, &traffic.sentence(&metrics.machine), width));
    }
    let limit = limit(state).map(|limit| (limit_text(state, limit), &limit.numbers));
    let findings = state.metrics().into_iter().flat_map(|metrics| &metrics.conclusions.findings);
    let findings = findings.map(|finding| (text(state, finding), &finding.numbers));
    for (text, numbers) in limit.into_iter().chain(findings) {
        if !lines.is_empty() {
            lines.push(Line::new());
        }
        lines.extend(lines::sentences(Tone::Normal, &text, width));
        let numbers: Vec<String> = numbers.iter().map(|(name, value)| words(name, *value)).collect();
        if numbers.is_empty() {
            continue;
        }
        let indented = wrap(&numbers.join(" · "), width.saturating_sub(4)).into_iter();
        lines.extend(indented.map(|line| vec![(Tone::Muted, format!("    {line}"))]));
    }
    for text in state.metrics().into_iter().flat_map(at_the_end) {
        lines.extend(lines::sentences(Tone::Normal, &text, width));
    }
    if lines.is_empty() {
        lines.push(vec![(Tone::Muted, "nothing to report".to_owned())]);
    }
    lines
}

/// How many sentences the list of findings has, without what the last thing done has left and without the limit.
pub(super) fn listed(state: &State) -> usize {
    let Some(metrics) = state.metrics() else { return 0 };
    let problems = metrics.machine.facts.problems.iter().filter(|problem| !problem.is_of_rights()).count();
    metrics.conclusions.findings.len() + problems + at_the_end(metrics).count()
}

/// What there is to say of a test of which nothing is found.
pub(super) fn aside(state: &State) -> Option<String> {
    let metrics = state.metrics()?;
    let seen_not = || unseen_links(metrics).map(str::to_owned);
    at_the_end(metrics).next().or_else(seen_not).or_else(|| next_step(state, metrics))
}

/// What could not be read, the first of it, or what a recording says of itself.
pub(super) fn problem(state: &State) -> Option<(Tone, String)> {
    let problems = &state.metrics()?.machine.facts.problems;
    let first = problems.iter().find(|problem| !problem.is_of_rights())?;
    let is_note = state.settings().mode == Mode::Replay;
    let tone = if is_note { Tone::Muted } else { Tone::Warning };
    Some((tone, problem_text(first)))
}

/// `cores: …`; the source only where its sentence does not begin with it.
fn problem_text(problem: &Problem) -> String {
    let source = problem.source.to_string();
    if problem.text.starts_with(&source) { problem.text.clone() } else { format!("{source}: {}", problem.text) }
}

/// The same where there is no room for a sentence: of what it is.
pub(super) fn problem_source(state: &State) -> Option<String> {
    let problems = &state.metrics()?.machine.facts.problems;
    let first = problems.iter().find(|problem| !problem.is_of_rights())?;
    // What a recording is stands at its start.
    let is_note = first.source.to_string() == "recording";
    (!is_note).then(|| format!("a problem: {}", state.keys().key("findings")))
}

/// The notices, in their tones.
pub(super) fn notices(state: &State) -> impl Iterator<Item = (Tone, &str)> {
    let tone = |warning| if warning { Tone::Warning } else { Tone::Good };
    state.notices.list().iter().map(move |notice| (tone(notice.warning), notice.text.as_str()))
}

/// The links of the test are not listed, because their network namespace was not chosen to be shown; where rights are what is missing, the
/// first line of the screen says so.
fn unseen_links(metrics: &Metrics) -> Option<&'static str> {
    let is_shown = |netns: u64| {
        netns == metrics.machine.netns || metrics.machine.facts.spaces.iter().any(|space| space.netns == netns)
    };
    let is_limited = metrics.machine.facts.problems.iter().any(Problem::is_of_rights);
    let is_elsewhere =
        metrics.subject.paths.iter().any(|path| path.hops.is_empty() && path.netns != 0 && !is_shown(path.netns));
    (is_elsewhere && !is_limited)
        .then_some("the test's links are in a network namespace that is not shown: vnettop --netns all")
}

/// What can be done now.
fn next_step(state: &State, metrics: &Metrics) -> Option<String> {
    let (pins, steers) = (state.pins(), state.steers());
    if state.is_placed() {
        let key = state.keys().key("card");
        let card = metrics.subject.card.as_ref().filter(|_| !matches!(state.overlay, Overlay::Card { .. }));
        let card = card.map_or_else(String::new, |card| format!(" · {key}: {}", card.verdict.word()));
        let whose = match state.settings().mode {
            Mode::Replay => "in the recording",
            Mode::Compare => "by this comparison",
            Mode::Live | Mode::Demo => "by vnettop · U undoes it",
        };
        let pinned = (pins > 0).then(|| format!("{} pinned", plural(pins, "thread")));
        let steered = (steers > 0).then(|| format!("{} steered", plural(steers, "link")));
        let what = [pinned, steered].into_iter().flatten().collect::<Vec<_>>().join(", ");
        return Some(format!("{what} {whose}{card}"));
    }
    let busy = metrics.subject.threads.iter().filter(|thread| thread.cpu.is_some_and(|cpu| cpu >= 0.05)).count();
    let offered = metrics.conclusions.findings.iter().any(|finding| finding.key == Some('p'));
    (busy > 0 && !offered && metrics.conclusions.placement_may_help)
        .then(|| format!("p proposes cores for the {}", plural(busy, "busy thread")))
}
