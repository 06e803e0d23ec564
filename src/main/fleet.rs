//! `vnettop fleet`: asks Prometheus, prints its answers.

use super::hosts::{Several, watch};
use super::{Configured, environment, keep_rights};
use std::error::Error;
use std::io::{self, BufRead, IsTerminal, Write};
use std::process::ExitCode;
use strum::IntoEnumIterator;
use vnettop::app::AppError;
use vnettop::app::look;
use vnettop::cli::{AskedFleet, AskedHosts, Config, Presentation};
use vnettop::derive::fleet::{FleetFigure, FleetHost, hosts};
use vnettop::prometheus::Prometheus;
use vnettop::{report, rights, term};

/// 1 where the server knows no host.
pub fn run(config: &Config, configured: &Configured, asked: &AskedFleet) -> Result<ExitCode, Box<dyn Error>> {
    keep_rights(rights::Work::Replaying);
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
        report::fleet::text(&hosts, &asked.window, !look::ascii(&config.preferences, environment))
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
    let is_seen = !asked.json && io::stdin().is_terminal() && io::stdout().is_terminal();
    if let Some(name) = if is_seen { chosen(&hosts)? } else { None } {
        let opened = AskedHosts::one(&name)?;
        let config = Config { interval: config.preferences.interval, ..config.clone() };
        return watch(&config, configured, &Presentation::Screen, &Several::Live(&opened));
    }
    Ok(ExitCode::from(u8::from(hosts.is_empty())))
}

/// Asks which host is to be opened over ssh; none where none is.
fn chosen(hosts: &[FleetHost]) -> io::Result<Option<String>> {
    let Some(first) = hosts.first() else { return Ok(None) };
    let (first, last) = (name_of(&first.instance), hosts.len());
    print!("Enter opens {first} over ssh, 1-{last} the host of that row, q closes: ");
    io::stdout().flush()?;
    let mut answer = String::new();
    if io::stdin().lock().read_line(&mut answer)? == 0 {
        return Ok(None);
    }
    let row = match answer.trim() {
        "" => Some(1),
        number => number.parse::<usize>().ok(),
    };
    Ok(row.and_then(|row| hosts.get(row.checked_sub(1)?)).map(|host| name_of(&host.instance)))
}

/// The host of an instance, which Prometheus names with a port.
fn name_of(instance: &str) -> String {
    let host =
        instance.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok()).map_or(instance, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']').to_owned()
}
