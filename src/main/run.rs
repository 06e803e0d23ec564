//! `vnettop run`: a command under observation, its card, and its exit code.

use super::black_box;
use super::hosts::far_ends;
use super::origin::{environment, live_feed};
use super::recordings::{card_format, write_card};
use super::{found_placements, own_controller};
use std::error::Error;
use std::io;
use std::process::ExitCode;
use vnettop::app::run::Destination;
use vnettop::app::{self, BlackBox};
use vnettop::cli::{Config, ObservedCommand};
use vnettop::effect;
use vnettop::record::Recorder;
use vnettop::term;

/// The command went well, but not within the limits.
const LIMIT_BROKEN: u8 = 3;

/// A command under observation: its output is its own, the card comes after it, and its exit code counts.
pub fn command(config: &Config, run: &ObservedCommand) -> Result<ExitCode, Box<dyn Error>> {
    run.too_short().iter().for_each(term::say);
    // Before the command is started, which may take hours: whether its card and its recording can be written.
    let recording = config.record.as_deref();
    let destination = run.card.as_deref().map(|path| Destination::open("card", path, recording)).transpose()?;
    let recorder = config.record.as_deref().map(Recorder::create).transpose()?;
    let controller = own_controller(config);
    let journals = effect::journal_dir(environment);
    let (found, unread) = journals.as_deref().map(found_placements).unwrap_or_default();
    unread.iter().for_each(term::say);
    let feed = live_feed(config, None)?;
    let plan = app::run::Plan {
        command: run.command.clone(),
        watch: config.preferences.watch.clone(),
        named: config.named,
        interval: config.interval,
        found,
        asked: run.asked.clone(),
    };
    let black_box = black_box::of(config, true);
    let mut observed = app::run::run(&plan, feed, far_ends(config)?, controller, (recorder, black_box))?;
    observed.notes.iter().for_each(term::say);
    let Some(card) = &observed.card else { return Ok(ExitCode::from(observed.code)) };
    app::run::remember(card, journals.as_deref()).iter().for_each(term::say);
    let text = app::run::text(card, card_format(run.format));
    let written = write_card("card", &text, destination, &mut io::stderr());
    if let Err(error) = &written {
        term::say(error);
    }
    app::run::not_compared(card).iter().for_each(term::say);
    let limits = app::run::limits(card);
    for (_, sentence) in &limits {
        term::say(sentence);
    }
    // What was recorded from the first moment on is evidence enough.
    if config.record.is_none() && limits.iter().any(|(broken, _)| *broken) {
        let saved = observed.black_box.as_mut().and_then(BlackBox::save_evidence);
        if let Some(news) = saved {
            term::say(&news.text);
        }
    }
    Ok(ExitCode::from(match observed.code {
        0 if limits.iter().any(|(broken, _)| *broken) => LIMIT_BROKEN,
        0 if written.is_err() || observed.unrecorded => 1,
        code => code,
    }))
}
