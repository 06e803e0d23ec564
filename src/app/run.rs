//! A benchmark under observation: starts the command with vnettop's own input, output and terminal, watches it, pins
//! and unpins in turn where that was asked for, and gives its exit code back. While the command runs it prints nothing but,
//! on a terminal, one line before a comparison.

mod destination;
mod far_ends;
mod output;
mod passed_signals;
mod session;

use super::AppError;
use super::black_box::BlackBox;
use super::stream::Stream;
use crate::clock::wall_ms;
use crate::derive::run::{BestTreatment, Run, RunCard};
use crate::derive::{Derivation, Metrics, Test};
use crate::effect::{self, PinController};
use crate::record::{Recorder, Recording, StoredIn};
use crate::report::timestamp;
use crate::sample::{FoundPlacement, Measure, RunAsked};
use crate::source::feed::{Feed, Next, Pace};
use crate::text::clean;
use passed_signals::PassedSignals;
use session::RunSession;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub use destination::{CardError, Destination};
pub use far_ends::FarEnd;
pub use output::Rest;

pub use crate::report::Format;
use crate::report::card::card as pin_card;
pub use crate::report::run::{card as text, limits, not_compared};

/// What is to be run, and how it is watched.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The command and its arguments; not empty.
    pub command: Vec<OsString>,
    /// Names and pids watched beside the command.
    pub watch: Vec<String>,
    /// The user named them: whoever bears such a name or number counts, and nobody else but the command.
    pub named: bool,
    /// Time from tick to tick.
    pub interval: Duration,
    /// What searches have found, the newest last.
    pub found: Vec<FoundPlacement>,
    /// How it is observed; what is above is added to it.
    pub asked: RunAsked,
}

/// What came of a run.
pub struct Observed {
    /// The exit code of the command, as a shell would give it: 127 and 126 where it could not be started.
    pub code: u8,
    /// The card; none where the command could not be started.
    pub card: Option<RunCard>,
    /// What else is to be said: one sentence each.
    pub notes: Vec<String>,
    /// The recording that was asked for is not whole; a note says why.
    pub unrecorded: bool,
    /// What was kept of it; none where nothing was to be kept.
    pub black_box: Option<BlackBox>,
    /// To be dropped last, when everything is said: it waits for whoever still writes to the command's output.
    pub rest: Rest,
}

/// Runs the command as often as asked, or until it fails. The feed watches everything but the command itself; `far` are the hosts at
/// the other end, whose threads are pinned in the same phases.
///
/// # Errors
/// Signals cannot be taken over; nothing was started then.
pub fn run(
    plan: &Plan,
    feed: Feed,
    far: Vec<FarEnd>,
    controller: PinController,
    (recorder, black_box): (Option<Recorder>, Option<BlackBox>),
) -> Result<Observed, AppError> {
    let signals = PassedSignals::take().map_err(AppError::Signals)?;
    let mut stream = Stream::new(recorder);
    stream.black_box = black_box;
    let mut session = RunSession::new(plan, stream, (feed, far), controller, signals);
    session.report(crate::sample::Event::RunAsked(asked(plan)));
    if let Some(sentence) = session.look() {
        return Ok(session.refused(1, sentence));
    }
    let mut code = 0;
    for nth in 0..plan.asked.repeat.max(1) {
        match session.run_once(nth) {
            Ok(ended) => code = ended,
            Err(error) => {
                let (code, sentence) = refusal(&plan.command[0], &error);
                return Ok(session.refused(code, sentence));
            }
        }
        if code != 0 || session.was_asked_to_end() || session.taken {
            break;
        }
    }
    Ok(session.close(code))
}

/// The card of a recording, written: that of its run, or of the pins in it, one for each test that was pinned.
///
/// # Errors
/// It cannot be read, or there is neither in it.
pub fn card(stored: &StoredIn, format: Format) -> Result<String, AppError> {
    let hosts = Recording::open_stored(stored)?.hosts().to_vec();
    let mut cards = String::new();
    for at in 0..hosts.len().max(1) {
        let Some(card) = card_of(Recording::open_stored(stored)?.of_host(at), format)? else { continue };
        // For a program each card is an object by itself.
        let name =
            hosts.get(at).filter(|_| format != Format::Json).map_or_else(String::new, |name| format!("{name}:\n"));
        cards += &(name + &card);
    }
    if cards.is_empty() { Err(AppError::NoCard) } else { Ok(cards) }
}

fn card_of(recording: Recording, format: Format) -> Result<Option<String>, AppError> {
    let feed = Feed::replay(recording, Pace::Fast)?;
    // Of a recording without a run the tests tell.
    let (mut run, mut tests, mut last) = (Run::default(), Derivation::default(), None);
    loop {
        match feed.next()? {
            Next::Item(item) => {
                last = tests.advance(item.clone()).or(last);
                run.item(item);
            }
            Next::Waiting => drop(super::signals::wait(&[feed.ready()], None)),
            Next::End => break,
        }
    }
    let of_pins = || last.as_ref().and_then(|metrics| of_pins(metrics, format));
    Ok(run.card().map(|card| text(&card, format)).or_else(of_pins))
}

/// Remembers what a search found for its kind of test, so that `p` proposes it in a later vnettop; the sentence why it could
/// not be remembered. Does nothing where the card is of no search, or of one that was too short to say anything.
#[must_use]
pub fn remember(card: &RunCard, dir: Option<&Path>) -> Option<String> {
    let search = card.search.as_ref().filter(|search| search.is_enough())?;
    let found = search.found().map(|BestTreatment { class, steered, tuned }| FoundPlacement {
        test: search.test.clone(),
        class,
        steered,
        tuned,
        gain_ppm: search.gain_ppm(),
        day: timestamp(card.asked.wall_ms).split('T').next().unwrap_or_default().to_owned(),
    });
    let remembered = effect::remember_placement(dir?, &search.test, found.as_ref());
    remembered.err().map(|error| format!("the best placement could not be remembered: {error}"))
}

/// The cards of the tests that were pinned, as they were last; where none was, that of everything watched.
fn of_pins(metrics: &Metrics, format: Format) -> Option<String> {
    let of_test = |test: &Arc<Test>| pin_card(&test.metrics, &test.metrics.threads, Some(test.number), format);
    let cards: Vec<String> = metrics.tests.iter().filter_map(of_test).collect();
    if cards.is_empty() { pin_card(&metrics.subject, &metrics.threads, None, format) } else { Some(cards.concat()) }
}

fn asked(plan: &Plan) -> RunAsked {
    RunAsked {
        wall_ms: wall_ms(),
        command: plan.command.iter().map(|word| clean(word.as_encoded_bytes())).collect(),
        watch: plan.watch.iter().map(|name| clean(name.as_bytes())).collect(),
        measure: Some(if plan.named { Measure::Named } else { Measure::Command }),
        ..plan.asked.clone()
    }
}

/// Why a command was not started: the exit code of a shell, and a sentence.
fn refusal(program: &OsString, error: &io::Error) -> (u8, String) {
    let name = program.display();
    match error.kind() {
        // The kernel says the same of a file that is there and whose interpreter is not.
        io::ErrorKind::NotFound if is_there(program) => {
            (126, format!("{name} cannot be run: its interpreter is missing (see its first line, or file(1))"))
        }
        io::ErrorKind::NotFound => (127, format!("{name}: command not found: check the name and PATH")),
        _ => (126, format!("{name} cannot be run: {error}")),
    }
}

/// Whether a file answers to the name of a command.
fn is_there(program: &OsString) -> bool {
    if program.as_encoded_bytes().contains(&b'/') {
        return Path::new(program).is_file();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}
