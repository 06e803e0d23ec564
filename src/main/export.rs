//! `vnettop export`: the world around it.

use super::black_box;
use super::keep_rights;
use super::origin::live_feed;
use std::error::Error;
use std::process::ExitCode;
use vnettop::app::{self, AppError, Ended, Signals};
use vnettop::cli::{AskedExport, Config};
use vnettop::export::Exporter;
use vnettop::{rights, term};

/// Answers scrapes until a signal comes.
pub fn run(config: &Config, asked: &AskedExport) -> Result<ExitCode, Box<dyn Error>> {
    keep_rights(rights::Work::Exporting);
    let signals = Signals::take().map_err(AppError::Signals)?;
    signals.take_stop().map_err(AppError::Signals)?;
    let exporter = Exporter::start(&asked.place, (asked.web_config.as_ref(), |news| term::say(news)), config.interval)?;
    term::say(&exporter.welcome);
    let mut config = config.clone();
    // What lasts for months is measured, not sampled; and it has no benchmark whose pace it must keep.
    config.preferences.on_request.softirqs = true;
    config.preferences.realtime = false;
    let feed = live_feed(&config, None)?;
    // There is no other end than being asked to.
    let (Ended::Done | Ended::Signal(_)) =
        app::export(&feed, &signals, &exporter, asked.most_links, black_box::of(&config, true))?;
    Ok(ExitCode::SUCCESS)
}
