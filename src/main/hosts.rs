//! Several hosts, live over ssh or from a recording of them; and the agent that is started on each.

use super::origin::{live_feed, watched};
use super::{
    Configured, app_options, black_box, environment, exit_code, first_state, keep_rights, know_this_machine,
    left_behind, live_screen, own_controller, stdout,
};
use std::error::Error;
use std::io;
use std::process::ExitCode;
use vnettop::app::run::FarEnd;
use vnettop::app::{
    self, Agent, App, AppError, Controls, Hosts, RecorderShare, RemoteAgent, Signals, Stream, WatchedHost,
};
use vnettop::cli::{AskedHosts, Config, Origin, Presentation};
use vnettop::effect::journal_dir;
use vnettop::record::{Recorder, Recording, StoredIn};
use vnettop::rights::Work;
use vnettop::sample::OutcomeLine;
use vnettop::source::feed::{Feed, Pace};
use vnettop::source::remote::RemoteHost;
use vnettop::state::Mode;
use vnettop::ui::Theme;

/// What is to be watched where that is more than this machine.
pub enum Several<'a> {
    /// Over ssh.
    Live(&'a AskedHosts),
    /// In a recording: where it is stored, its hosts, times its own speed.
    Recorded(StoredIn, Vec<String>, Option<f64>),
}

/// Several hosts, where they are asked for, or the recording is one of several.
pub fn of(config: &Config) -> Result<Option<Several<'_>>, Box<dyn Error>> {
    match &config.origin {
        Origin::Hosts(asked) => Ok(Some(Several::Live(asked))),
        Origin::Replay { file: Some(file), speed, at } => {
            let stored = StoredIn::File(file.clone());
            if !stored.is_lasting() {
                return Ok(None);
            }
            let hosts = Recording::open_stored(&stored)?.hosts().to_vec();
            if hosts.is_empty() {
                return Ok(None);
            }
            if at.is_some() {
                return Err("--at cannot be used with a recording of several hosts: each has its own clock".into());
            }
            Ok(Some(Several::Recorded(stored, hosts, *speed)))
        }
        _ => Ok(None),
    }
}

/// Shows several hosts: on the screen, as one frame or as JSON lines.
pub fn watch(
    config: &Config,
    configured: &Configured,
    presentation: &Presentation,
    several: &Several<'_>,
) -> Result<ExitCode, Box<dyn Error>> {
    let is_live = matches!(several, Several::Live(_));
    keep_rights(if is_live { Work::Watching } else { Work::Replaying });
    let names = names(several);
    let recorder = config.record.as_deref().map(|path| Recorder::create_of(path, &names)).transpose()?;
    let mut shares: Vec<Option<RecorderShare>> = vec![None; names.len()];
    if let Some(recorder) = recorder {
        shares = RecorderShare::of(recorder, names.len()).into_iter().map(Some).collect();
    }
    let mut hosts = Vec::new();
    for (at, (name, share)) in names.into_iter().zip(shares).enumerate() {
        let (feed, controls) = source(config, several, at)?;
        let is_here = matches!(controls, Controls::Here(_));
        let mode = if is_live { Mode::Live } else { Mode::Replay };
        let mut state = first_state(config, configured, mode, watched(config, None));
        if is_live && is_here {
            know_this_machine(&mut state);
        }
        let mut stream = Stream::sharing(share);
        stream.black_box = black_box::of(config, false);
        let app = App::new(state, stream, controls, feed, app_options(config, configured));
        hosts.push(WatchedHost { name, app });
    }
    let hosts = Hosts::new(hosts);
    let signals = Signals::take().map_err(AppError::Signals)?;
    let ended = match presentation {
        Presentation::Json => app::json_of_hosts(hosts, &signals, &mut stdout()?)?,
        Presentation::Lines(_) => return Err("--lines tells of one host: this recording has several".into()),
        Presentation::Print { width, height, keys } => {
            let theme = Theme::plain(!config.preferences.ascii);
            app::print(hosts, &signals, keys, (*width, *height), theme, &mut stdout()?)?
        }
        Presentation::Screen => live_screen(config, configured, hosts, &signals)?,
    };
    Ok(exit_code(ended))
}

/// As they are called on the screen.
fn names(several: &Several<'_>) -> Vec<String> {
    match several {
        Several::Live(asked) => {
            asked.names.iter().map(|name| name.clone().unwrap_or_else(|| "local".to_owned())).collect()
        }
        Several::Recorded(_, hosts, _) => hosts.clone(),
    }
}

/// Where the items of a host come from, and what changes it.
fn source(config: &Config, several: &Several<'_>, at: usize) -> Result<(Feed, Controls), Box<dyn Error>> {
    match several {
        Several::Live(asked) => {
            let Some(name) = asked.names.get(at).cloned().flatten() else {
                return Ok((live_feed(config, None)?, own_controller(config).into()));
            };
            let (ssh, command) = (asked.ssh.clone(), asked.command(config.interval));
            let controls = RemoteAgent::on(&name).into();
            Ok((Feed::remote(RemoteHost { name, ssh, command, interval: config.interval })?, controls))
        }
        Several::Recorded(stored, _, speed) => {
            let recording = Recording::open_stored(stored)?.of_host(at);
            Ok((Feed::replay(recording, speed.map_or(Pace::Fast, Pace::Times))?, own_controller(config).into()))
        }
    }
}

/// The hosts at the other end of a run; their agents restore what they have pinned when they are left alone.
pub fn far_ends(config: &Config) -> Result<Vec<FarEnd>, Box<dyn Error>> {
    let Origin::Hosts(asked) = &config.origin else { return Ok(Vec::new()) };
    let mut asked = asked.clone();
    asked.options.push("--restore-on-exit".to_owned());
    let far = |name: &String| {
        let (ssh, command) = (asked.ssh.clone(), asked.command(config.interval));
        let host = RemoteHost { name: name.clone(), ssh, command, interval: config.interval };
        Ok(FarEnd { name: name.clone(), feed: Feed::remote(host)? })
    };
    asked.names.iter().flatten().map(far).collect()
}

/// Serves the vnettop that has started this one over ssh.
pub fn agent(config: &Config) -> Result<ExitCode, Box<dyn Error>> {
    keep_rights(Work::Watching);
    let mut config = config.clone();
    if config.preferences.netns.is_empty() {
        // Containers of a host that is a namespace itself belong to it: a test between two of them has its path there.
        config.preferences.netns.push("all".to_owned());
    }
    let config = &config;
    let feed = live_feed(config, None)?;
    let signals = Signals::take().map_err(AppError::Signals)?;
    signals.take_stop().map_err(AppError::Signals)?;
    let greeting = journal_dir(environment).and_then(|dir| left_behind(&dir));
    let agent = Agent {
        feed: &feed,
        controller: own_controller(config),
        journals: journal_dir(environment).filter(|_| !config.preferences.readonly),
        signals: &signals,
        restore_on_exit: config.preferences.restore_on_exit,
        black_box: black_box::of(config, true),
        greeting: greeting.into_iter().map(|text| OutcomeLine { warning: false, text }).collect(),
    };
    Ok(exit_code(agent.serve(&mut io::stdin().lock(), &mut stdout()?)?))
}
