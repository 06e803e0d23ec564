//! `vnettop fleet`: asks Prometheus, prints its answers.

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;
use strum::IntoEnumIterator;
use vnettop::app::AppError;
use vnettop::app::look;
use vnettop::cli::{AskedFleet, Config};
use vnettop::derive::fleet::{FleetFigure, hosts};
use vnettop::prometheus::Prometheus;
use vnettop::{report, term};

/// 1 where the server knows no host.
pub fn run(config: &Config, asked: &AskedFleet) -> Result<ExitCode, Box<dyn Error>> {
    let prometheus = Prometheus::at(&asked.url, asked.authorities.as_deref())?;
    let mut answers = Vec::new();
    for figure in FleetFigure::iter() {
        for mut element in prometheus.query(&figure.query(&asked.window))? {
            let instance = element.labels.remove("instance").unwrap_or_default();
            answers.push((figure, instance, element.value));
        }
    }
    let hosts = hosts(answers, asked.order);
    let text = if asked.json {
        report::fleet::json(&hosts, &asked.window)
    } else {
        report::fleet::text(&hosts, &asked.window, !look::ascii(&config.preferences, super::environment))
    };
    if hosts.is_empty() && !asked.json {
        term::say("this Prometheus has scraped no vnettop in the last day: see docs/export.md");
    } else {
        match io::stdout().write_all(text.as_bytes()) {
            // Whoever reads has seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            written => written.map_err(AppError::Output)?,
        }
    }
    Ok(ExitCode::from(u8::from(hosts.is_empty())))
}
