//! Parses, builds the world, runs, prints the error chain, sets the exit code. Everything else is in the library.

#[path = "main/black_box.rs"]
mod black_box;
#[path = "main/compare.rs"]
mod compare;
#[cfg(feature = "export")]
#[path = "main/export.rs"]
mod export;
#[cfg(feature = "fleet")]
#[path = "main/fleet.rs"]
mod fleet;
#[path = "main/hosts.rs"]
mod hosts;
#[path = "main/origin.rs"]
mod origin;
#[path = "main/recordings.rs"]
mod recordings;
#[path = "main/run.rs"]
mod run;

use origin::{Opened, docker, environment, missing_namespace, open, ovs_places, watched};
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use vnettop::app::look::{self, Look};
use vnettop::app::{self, App, AppError, Ended, Hosts, Player, SHIPPED_STARTS_AT, Signals, Stream};
use vnettop::cli::{self, CliError, Config, Face, Origin, Presentation};
use vnettop::config::{ConfigFiles, Configuration, SaveSource};
use vnettop::demo::{self, Demo};
use vnettop::derive::SpokenLines;
use vnettop::effect::{self, JournalError, Outcome, PinController};
use vnettop::networks;
use vnettop::record::Recorder;
use vnettop::rights;
use vnettop::sample::FoundPlacement;
use vnettop::source::doctor::DoctorScope;
use vnettop::source::feed::Feed;
use vnettop::source::{LEAST_TO_REPLAY, LEAST_TO_WATCH, Roots, enough_descriptors};
use vnettop::state::{Mode, Settings, State};
use vnettop::term;
use vnettop::ui::Theme;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    // The demo's own children; they are started by vnettop, not by a person.
    if arguments.first().is_some_and(|first| first == "demo-child") {
        return demo::run_child(&arguments[1..]);
    }
    // Processes in the networks that vnettop makes; they are started by vnettop, not by a person.
    if arguments.first().is_some_and(|first| first == networks::SUBCOMMAND) {
        return networks::run_child(&arguments[1..]);
    }
    match cli::parse(arguments, io::stdout().is_terminal()).and_then(configured) {
        Ok((config, configured)) => run(&config, &configured).unwrap_or_else(|error| {
            term::say(error);
            ExitCode::from(1)
        }),
        Err(CliError::Settings(sentence) | CliError::Usage(sentence)) => {
            term::say(sentence);
            ExitCode::from(2)
        }
        Err(CliError::Text(text)) => ExitCode::from(u8::from(io::stdout().write_all(text.as_bytes()).is_err())),
    }
}

/// Reads the settings that last, and applies those of the command line.
fn configured(mut config: Config) -> Result<(Config, Configured), CliError> {
    let given = config.config_file.as_deref();
    let places = match (config.reads_settings(), config.no_config) {
        (false, _) => ConfigFiles::default(),
        (true, true) => ConfigFiles::only(given),
        (true, false) => ConfigFiles::usual(environment, given),
    };
    let mut configuration = Configuration::load(&places).map_err(|error| CliError::Settings(error.to_string()))?;
    let saved = places.saved_to().map(|path| SaveSource { path, before: configuration.preferences.clone() });
    configuration.override_by(&config.overrides).map_err(|error| CliError::Settings(error.to_string()))?;
    config.settle(configuration.preferences.clone(), !configuration.is_default("watch"))?;
    let is_seen =
        matches!(config.face, Face::Watch(Presentation::Screen) | Face::Doctor(_) | Face::Compare(_) | Face::Fleet(_))
            || config.preferences.theme != "auto";
    let look = if is_seen {
        look::of(&config.preferences, &places.folders, environment).map_err(CliError::Settings)?
    } else {
        Look::plain()
    };
    if let Some(sentence) = missing_namespace(&config) {
        return Err(CliError::Settings(sentence));
    }
    Ok((config, Configured { configuration, saved, look }))
}

/// The settings, where changed ones are saved, and what the screen looks like.
struct Configured {
    configuration: Configuration,
    saved: Option<SaveSource>,
    look: Look,
}

fn run(config: &Config, configured: &Configured) -> Result<ExitCode, Box<dyn std::error::Error>> {
    match (&config.face, &config.origin) {
        // Doctor says itself how many there are.
        (Face::Settings { .. } | Face::Fleet(_), _) => {}
        _ if !config.reads_settings() => {}
        (_, Origin::Replay { .. }) => enough_descriptors(LEAST_TO_REPLAY)?,
        _ => enough_descriptors(LEAST_TO_WATCH)?,
    }
    app::survive_full_files().map_err(AppError::Signals)?;
    match &config.face {
        Face::Watch(presentation) => watch(config, configured, presentation),
        Face::Settings { plain } => {
            let configuration = &configured.configuration;
            let text = if *plain { configuration.plain() } else { configuration.explained() };
            io::stdout().write_all(text.as_bytes()).map_err(AppError::Output)?;
            Ok(ExitCode::SUCCESS)
        }
        Face::Compare(asked) => compare::run(config, configured, asked),
        #[cfg(feature = "export")]
        Face::Export(asked) => export::run(config, asked),
        #[cfg(not(feature = "export"))]
        Face::Export(_) => Ok(left_out("export")),
        #[cfg(feature = "fleet")]
        Face::Fleet(asked) => fleet::run(config, configured, asked),
        #[cfg(not(feature = "fleet"))]
        Face::Fleet(_) => Ok(left_out("fleet")),
        Face::Agent => hosts::agent(config),
        Face::ListWays => compare::list(),
        Face::ShowScript(way) => compare::show(way),
        Face::Undo => undo(config),
        Face::Doctor(json) => doctor(config, configured, *json),
        Face::Run(run) => run::command(config, run),
        Face::Save(asked) => black_box::save(asked),
        Face::Cut(asked) => recordings::cut(asked),
        Face::Convert(asked) => recordings::convert(asked),
        Face::Card(asked) => recordings::card(asked),
        Face::Report(asked) => recordings::report(asked),
    }
}

/// A command that this vnettop was built without.
#[cfg(not(all(feature = "export", feature = "fleet")))]
fn left_out(command: &str) -> ExitCode {
    term::say(format_args!("this vnettop was built without {command}: build it with cargo build --features {command}"));
    ExitCode::from(2)
}

/// Gives up the rights that this work does not need; where seccomp forbids that all are kept, and it says so. What starts programs of
/// others (`run`, `demo`, `compare`) does not call this: they are to have theirs.
fn keep_rights(work: rights::Work) {
    if let Err(error) = rights::keep_needed(work) {
        term::say(format_args!("privileges were not dropped, the kernel refused: {error}"));
    }
}

/// This machine, the demo or a recording, on the screen, as one frame or as JSON lines.
fn watch(
    config: &Config,
    configured: &Configured,
    presentation: &Presentation,
) -> Result<ExitCode, Box<dyn std::error::Error>> {
    if *presentation == Presentation::Screen && environment("TERM").is_some_and(|term| term == "dumb") {
        // It cannot place text.
        return Err("this terminal (TERM=dumb) cannot show a screen: use --json, or --print 80x24 for one frame".into());
    }
    // Before its first byte is read.
    if matches!(config.origin, Origin::Replay { .. }) {
        keep_rights(rights::Work::Replaying);
    }
    if let Some(several) = hosts::of(config)? {
        return hosts::watch(config, configured, presentation, &several);
    }
    // Before any thread: entering namespaces is for single-threaded processes.
    let demo = if config.origin == Origin::Demo { Some(demo::start(1)?) } else { None };
    if demo.is_none() {
        keep_rights(if config.origin == Origin::Live { rights::Work::Watching } else { rights::Work::Replaying });
    }
    let recorder = config.record.as_deref().map(Recorder::create).transpose()?;
    let Opened { mut stream, feed, player } = open(config, demo.as_ref(), recorder)?;
    stream.black_box = black_box::of(config, true);
    // Only after the files are open: a fifo may keep us waiting for ever. JSON lines alone have nothing to put in order.
    let plain = *presentation == Presentation::Json && config.record.is_none() && config.plan.triggers.is_empty();
    let signals = if plain { Signals::none() } else { Signals::take() }.map_err(AppError::Signals)?;
    let ended = match presentation {
        Presentation::Json => {
            if feed.is_live() {
                signals.take_stop().map_err(AppError::Signals)?;
            }
            app::json(stream, &feed, &signals, config.count, &mut stdout()?)?
        }
        Presentation::Lines(every) => {
            let lines = SpokenLines::new(*every, &watched(config, demo.as_ref()));
            app::lines(stream, &feed, &signals, config.count, (lines, &mut stdout()?))?
        }
        Presentation::Print { width, height, keys } => {
            // A pipe takes UTF-8 whatever the locale says.
            let theme = Theme::plain(!config.preferences.ascii);
            let app = world(config, configured, demo.as_ref(), (stream, feed, player))?;
            app::print(app, &signals, keys, (*width, *height), theme, &mut stdout()?)?
        }
        Presentation::Screen => {
            let app = world(config, configured, demo.as_ref(), (stream, feed, player))?;
            live_screen(config, configured, app, &signals)?
        }
    };
    Ok(exit_code(ended))
}

fn exit_code(ended: Ended) -> ExitCode {
    match ended {
        Ended::Done => ExitCode::SUCCESS,
        Ended::Signal(signal) => ExitCode::from(u8::try_from(128 + signal).unwrap_or(1)),
    }
}

fn stdout() -> Result<term::StdoutWriter, AppError> {
    term::StdoutWriter::take().map_err(AppError::Output)
}

fn live_screen(
    config: &Config,
    configured: &Configured,
    app: impl Into<Hosts>,
    signals: &Signals,
) -> Result<Ended, AppError> {
    let mut hosts = app.into();
    signals.take_terminal().map_err(AppError::Terminal)?;
    let (guard, mut screen) =
        term::Guard::take(config.preferences.mouse, signals.asked()).map_err(AppError::Terminal)?;
    let mut utf8 = !look::ascii(&config.preferences, environment);
    let mut typed = String::new();
    if utf8 && configured.look.answers {
        let width = guard.character_width(&mut screen).map_err(AppError::Terminal)?;
        typed = width.typed;
        if width.is_wide {
            utf8 = false;
            hosts.keep_to_ascii();
        }
    }
    let themes = configured.look.colors().map(|colors| Theme { colors, utf8 }).collect();
    let mut terminal = app::Terminal::new(&guard, screen, signals, themes);
    terminal.was_typed(&typed);
    if configured.look.asks {
        terminal.ask_background().map_err(AppError::Terminal)?;
    }
    let result = app::screen(hosts, &mut terminal);
    drop(terminal);
    drop(guard);
    result.map(|(ended, outcome, _ending)| {
        if ended != Ended::Done {
            term::hurry();
        }
        report(&outcome);
        ended
    })
}

/// What works here and what is missing; 1 where vnettop cannot work.
fn doctor(config: &Config, configured: &Configured, json: bool) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let (text, works) = app::doctor::examine(
        &DoctorScope {
            roots: Roots::default(),
            docker: docker(config),
            ovs: ovs_places(config),
            docker_host: environment("DOCKER_HOST"),
            path: environment("PATH"),
            journals: effect::journal_dir(environment),
            term: environment("TERM"),
            utf8: !look::ascii(&config.preferences, environment),
            color: configured.look.has_color(),
        },
        json,
    );
    match io::stdout().write_all(text.as_bytes()) {
        // Whoever reads has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        written => written.map_err(AppError::Output)?,
    }
    Ok(ExitCode::from(u8::from(!works)))
}

fn world(
    config: &Config,
    configured: &Configured,
    demo: Option<&Demo>,
    (stream, feed, player): (Stream, Feed, Option<Player>),
) -> Result<App, AppError> {
    let mode = match config.origin {
        Origin::Live | Origin::Hosts(_) => Mode::Live,
        Origin::Demo => Mode::Demo,
        Origin::Replay { .. } => Mode::Replay,
    };
    let mut state = first_state(config, configured, mode, watched(config, demo));
    if mode == Mode::Live {
        know_this_machine(&mut state);
    }
    if let Some(demo) = demo {
        state.notice(false, demo.notice.clone());
    }
    let app = App::new(state, stream, own_controller(config), feed, app_options(config, configured));
    let (Some(player), Origin::Replay { file, speed, at }) = (player, &config.origin) else { return Ok(app) };
    let mut app = app.with_player(player, *speed);
    let is_shipped_screen = file.is_none() && config.face == Face::Watch(Presentation::Screen);
    if is_shipped_screen {
        app.state.opens_card = true;
    }
    if let Some(at) = at.or(is_shipped_screen.then_some(SHIPPED_STARTS_AT)) {
        app.start_at(at)?;
    }
    Ok(app)
}

/// What a screen starts with, whatever it shows.
fn first_state(config: &Config, configured: &Configured, mode: Mode, watch: Vec<String>) -> State {
    let mut state = State::new(Settings {
        mode,
        readonly: config.preferences.readonly,
        units: config.preferences.units,
        interval: config.interval,
        watch,
        utf8: !look::ascii(&config.preferences, environment),
        on_request: config.preferences.on_request,
    });
    let (choices, keys) = (config.preferences.choices.clone(), config.preferences.keys.clone());
    state.choose(choices, keys, configured.look.list());
    if let Some(weak) = &configured.look.notice {
        state.notice(true, weak.clone());
    }
    state.is_recorded = config.record.is_some();
    state
}

/// What vnettops of before have left on this machine: pins, and placements that searches have found.
fn know_this_machine(state: &mut State) {
    let Some(dir) = effect::journal_dir(environment) else { return };
    if let Some(sentence) = left_behind(&dir) {
        state.notice(false, sentence);
    }
    let (found, unread) = found_placements(&dir);
    state.found = found;
    if let Some(sentence) = unread {
        state.notice(true, sentence);
    }
}

/// What searches have found on this machine, or nothing and the sentence why.
fn found_placements(dir: &Path) -> (Vec<FoundPlacement>, Option<String>) {
    match effect::found_placements(dir) {
        Ok(found) => (found, None),
        Err(error) => (Vec::new(), Some(format!("results of earlier searches are not used: {error}"))),
    }
}

/// What is to be said of pins and steers that stopped vnettops have left on this machine.
fn left_behind(dir: &Path) -> Option<String> {
    effect::left_behind(&mut effect::Kernel, dir).sentence()
}

fn own_controller(config: &Config) -> PinController {
    PinController::new(Box::new(effect::Kernel), effect::journal_dir(environment), config.preferences.readonly)
}

fn app_options(config: &Config, configured: &Configured) -> app::AppOptions {
    app::AppOptions {
        restore_on_exit: config.preferences.restore_on_exit,
        kept_in: effect::journal_dir(environment),
        count: config.count,
        saved: configured.saved.clone(),
        theme: config.preferences.theme.clone(),
    }
}

fn undo(config: &Config) -> Result<ExitCode, Box<dyn std::error::Error>> {
    if config.preferences.readonly {
        return Err("undo changes affinities, which --readonly forbids: remove --readonly".into());
    }
    keep_rights(rights::Work::Watching);
    let dir = effect::journal_dir(environment).ok_or(JournalError::NoDirectory)?;
    let outcome = effect::undo(&mut effect::Kernel, &dir);
    report(&outcome);
    Ok(ExitCode::from(u8::from(outcome.lines.iter().any(|line| line.warning))))
}

fn report(outcome: &Outcome) {
    for line in &outcome.lines {
        if line.warning {
            term::say(&line.text);
        } else {
            term::print_line(&line.text);
        }
    }
}
