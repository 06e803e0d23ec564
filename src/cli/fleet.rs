//! The arguments of `vnettop fleet`.

use super::options::Options;
use super::values::words;
use super::{CliError, Face};
use crate::derive::fleet::FleetOrder;
use clap::Args;
use std::path::PathBuf;

/// Which hosts are listed, and in which order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedFleet {
    /// The server that knows them.
    pub url: String,
    /// Certificates that may sign the server's.
    pub authorities: Option<PathBuf>,
    /// What rates and maxima are over, in Prometheus' words.
    pub window: String,
    /// Which comes first.
    pub order: FleetOrder,
    /// For programs.
    pub json: bool,
}

const EXAMPLES: &str = "\
Lists every host whose vnettop export this Prometheus has scraped in the last
day. Order: down, then tests that lose packets, then rates that vary most (CV),
then most migrations.
RATE is the tests' rate, SOFTIRQ the share of the busiest core, FAR/S
migrations to another last-level cache, node or socket.

Examples:
  vnettop fleet --prometheus http://prometheus:9090
  vnettop fleet --prometheus http://prometheus:9090 --sort rate --window 1h
  PROMETHEUS_URL=https://USER:PASSWORD@prometheus vnettop fleet --json";

/// What may come first.
const ORDERS: [&str; 6] = ["worst", "variation", "migrations", "losses", "rate", "softirq"];

#[allow(clippy::doc_markdown, reason = "they are printed as they are")]
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct FleetArguments {
    /// The Prometheus server; default: environment variable PROMETHEUS_URL
    #[arg(long, value_name = "URL", env = "PROMETHEUS_URL", hide_env = true)]
    prometheus: Option<String>,
    /// Window of rates and maxima, as Prometheus writes it: 30s, 5m, 1h
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = window)]
    window: String,
    /// First the worst, or the highest: worst, variation, migrations, losses, rate, softirq
    #[arg(long, value_name = "BY", default_value = "worst", hide_possible_values = true, value_parser = words::<FleetOrder, 6>(ORDERS))]
    sort: FleetOrder,
    /// Certificates of CAs to trust for the server, instead of the system's
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
}

impl FleetArguments {
    pub(super) fn checked(&self, json: bool) -> Result<Face, CliError> {
        let Some(url) = self.prometheus.clone() else {
            return Err(CliError::usage("which server? --prometheus http://HOST:9090 (or variable PROMETHEUS_URL)"));
        };
        Ok(Face::Fleet(AskedFleet {
            url,
            authorities: self.ca_file.clone(),
            window: self.window.clone(),
            order: self.sort,
            json,
        }))
    }

    /// What it has nothing to do with.
    pub(super) fn refused(options: &Options) -> [(bool, &'static str); 4] {
        [
            (options.print.is_some(), "--print cannot be combined with fleet: it prints a table"),
            (options.record.is_some(), "--record cannot be combined with fleet: Prometheus keeps the figures"),
            (options.count.is_some(), "--count cannot be combined with fleet: it prints one table"),
            (!options.watch.is_empty(), "--watch cannot be combined with fleet: each host watches its own threads"),
        ]
    }
}

/// It becomes part of a query: digits and a unit, nothing else.
fn window(text: &str) -> Result<String, String> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let is_one = number.parse::<u32>().is_ok_and(|number| number > 0) && ["s", "m", "h", "d"].contains(&unit);
    if is_one {
        Ok(text.to_owned())
    } else {
        Err("give a time as Prometheus does, for example 30s, 5m or 1h".to_owned())
    }
}
