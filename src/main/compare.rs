//! `vnettop compare`: the world around it, and where its result goes.

use super::origin::{docker, ovs_places};
use super::{Configured, environment};
use std::error::Error;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use vnettop::app::compare::{CompareOutput, ComparePlan, CompareWorld, LinesDesk, ScreenDesk, compare, select};
use vnettop::app::{self, AppError, Ended, Signals, look};
use vnettop::cli::{AskedComparison, Config};
use vnettop::networks::{self, KINDS, LOAD_NAME, NetworkKind, PrivateNetwork};
use vnettop::report;
use vnettop::sample::Comparison;
use vnettop::source::feed::Feed;
use vnettop::source::sampler::{Choice, ReadPolicy, ReadScope, SamplerSettings};
use vnettop::source::threads::Watch;
use vnettop::source::{Roots, SourceError, host};
use vnettop::state::{Mode, Settings, State};
use vnettop::term;
use vnettop::ui::Theme;

/// Measures, prints, and writes what was asked for.
pub fn run(config: &Config, configured: &Configured, asked: &AskedComparison) -> Result<ExitCode, Box<dyn Error>> {
    let paths = match select(&asked.only, &asked.skip) {
        Ok(paths) => paths,
        Err(sentence) => {
            term::say(format_args!("{sentence} (try vnettop compare --list)"));
            return Ok(ExitCode::from(2));
        }
    };
    // What cannot be read or written is told before an hour of measuring, not after it.
    let earlier = asked.against.as_deref().map(app::compare::read).transpose()?;
    let outputs = asked.output.iter().map(|path| CompareOutput::open(path)).collect::<Result<Vec<_>, _>>()?;
    let (pins, is_root) = (!(asked.unpinned || config.preferences.readonly), networks::is_capable_root());
    if asked.steers && !(pins && is_root) {
        term::say("--steers needs root and no --readonly: nothing is steered");
    }
    let plan = ComparePlan {
        paths,
        loads: asked.loads.clone(),
        rounds: asked.rounds,
        length: asked.length,
        warm_up: asked.warm_up,
        pins,
        // The kernel asks for rights in the machine's user namespace, not in one of vnettop's own.
        steers: pins && is_root,
        steers_alone: pins && is_root && asked.steers,
        is_root,
    };
    let machine = host::machine(&Roots::default());
    // Before any thread: entering namespaces is for single-threaded processes.
    networks::enter_private()?;
    let signals = Signals::take().map_err(AppError::Signals)?;
    let open = |spaces: &[u32]| feed(config, spaces);
    let is_on_screen = !asked.plain && io::stdout().is_terminal() && io::stderr().is_terminal();
    let (comparison, ended) = if is_on_screen {
        on_screen(config, configured, &plan, (machine, &open), &signals)?
    } else {
        let mut desk = LinesDesk::new(&signals);
        let comparison = compare(&plan, CompareWorld { machine, open: &open, desk: &mut desk });
        (comparison, desk.ended())
    };
    let text = report::comparison::comparison(&comparison, earlier.as_ref(), asked.face);
    let printed = io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush());
    // Each, also where one fails: an hour of measuring is in it.
    let written: Vec<_> = outputs.into_iter().map(|output| output.write(&comparison, earlier.as_ref())).collect();
    written.into_iter().collect::<Result<(), _>>()?;
    match printed {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        printed => printed.map_err(AppError::Output)?,
    }
    Ok(match ended {
        Ended::Signal(signal) => ExitCode::from(u8::try_from(128 + signal).unwrap_or(1)),
        Ended::Done if has_nothing(&comparison) => ExitCode::from(1),
        Ended::Done => ExitCode::SUCCESS,
    })
}

fn has_nothing(comparison: &Comparison) -> bool {
    comparison.paths.iter().all(|path| path.measurements.iter().all(|one| one.rate.is_none()))
}

fn on_screen(
    config: &Config,
    configured: &Configured,
    plan: &ComparePlan,
    (machine, open): (vnettop::sample::Machine, app::compare::OpensFeed<'_>),
    signals: &Signals,
) -> Result<(Comparison, Ended), Box<dyn Error>> {
    let utf8 = !look::ascii(&config.preferences, environment);
    let themes = configured.look.colors().map(|colors| Theme { colors, utf8 }).collect();
    signals.take_terminal().map_err(AppError::Terminal)?;
    let (guard, screen) = term::Guard::take(config.preferences.mouse, signals.asked()).map_err(AppError::Terminal)?;
    let mut terminal = app::Terminal::new(&guard, screen, signals, themes);
    let mut state = State::new(Settings {
        mode: Mode::Compare,
        readonly: false,
        units: config.preferences.units,
        interval: config.interval,
        watch: vec!["iperf3".to_owned(), LOAD_NAME.to_owned()],
        utf8,
        on_request: config.preferences.on_request,
    });
    state.choose(config.preferences.choices.clone(), config.preferences.keys.clone(), configured.look.list());
    let mut desk = ScreenDesk::new(&mut terminal, state);
    let comparison = compare(plan, CompareWorld { machine, open, desk: &mut desk });
    let ended = desk.ended();
    drop(terminal);
    drop(guard);
    Ok((comparison, ended))
}

fn feed(config: &Config, spaces: &[u32]) -> Result<Feed, SourceError> {
    let own = |name: &str| Watch::Own { name: name.to_owned(), of: vec![std::process::id()] };
    let scope = ReadScope {
        roots: Roots::default(),
        watch: vec![own("iperf3"), own(LOAD_NAME)],
        netns: Choice::Named(spaces.iter().map(u32::to_string).collect()),
        ovs: ovs_places(config),
        docker: docker(config),
        iperf3_json: None,
        read_policy: ReadPolicy::Everything,
        losses_at_rest: false,
        on_request: config.preferences.on_request,
    };
    let realtime = config.preferences.realtime;
    Feed::live(SamplerSettings { scope, interval: config.interval, realtime, count: None })
}

/// The paths, and whether this machine can set them up: each is set up and taken away again.
pub fn list() -> Result<ExitCode, Box<dyn Error>> {
    networks::enter_private()?;
    let mut out = io::stdout();
    for kind in KINDS {
        let failed = kind.missing().or_else(|| PrivateNetwork::build(*kind).err().map(|error| error.to_string()));
        let line = match failed {
            None => format!("{:<15} {}", kind.name, kind.what()),
            Some(why) => format!("{:<15} not here: {why}", kind.name),
        };
        match writeln!(out, "{line}") {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => break,
            written => written.map_err(AppError::Output)?,
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The script of a path.
pub fn show(name: &str) -> Result<ExitCode, Box<dyn Error>> {
    let Some(kind) = NetworkKind::named(name) else {
        let sentence = select(&[name.to_owned()], &[]).err().unwrap_or_default();
        term::say(sentence);
        return Ok(ExitCode::from(2));
    };
    match io::stdout().write_all(kind.script().as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        written => written.map_err(AppError::Output)?,
    }
    Ok(ExitCode::SUCCESS)
}
