//! The arguments of `vnettop export`.

use super::options::Options;
use super::values::links;
use crate::export::Place;
use clap::Args;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Prometheus scrapes /metrics: counters of all links with their owners, softirq
time, migrations, rates and losses of tests. It listens on this machine only,
unless --web.listen-address says otherwise. docs/export.md names each metric;
a dashboard, rules and a systemd unit come with it.

Examples:
  vnettop export
  curl -s 127.0.0.1:9782/metrics | grep migrations
  vnettop export --web.listen-address :9782 --web.config.file web.yml
  vnettop export --web.listen-address unix:/run/vnettop.sock --netns all";

#[allow(clippy::doc_markdown, reason = "they are printed as they are")]
/// What is to be exported, and to whom.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[command(after_help = EXAMPLES)]
pub struct AskedExport {
    /// Listen on ADDRESS:PORT, :PORT (all addresses) or unix:PATH
    #[arg(long = "web.listen-address", value_name = "ADDRESS", default_value = "127.0.0.1:9782")]
    pub place: Place,
    /// Passwords and TLS: the file that Prometheus' exporters share (basic_auth_users, tls_server_config)
    #[arg(long = "web.config.file", value_name = "FILE")]
    pub web_config: Option<PathBuf>,
    /// Links with series of their own; metric vnettop_left_out counts the others
    #[arg(long = "max-links", value_name = "N", default_value = "2000", value_parser = links, allow_negative_numbers = true)]
    pub most_links: usize,
}

impl AskedExport {
    /// What it has nothing to do with.
    pub(super) fn refused(options: &Options) -> [(bool, &'static str); 6] {
        [
            (options.json, "--json cannot be combined with export: it serves metrics; vnettop --json prints samples"),
            (options.print.is_some(), "--print cannot be combined with export: it serves metrics"),
            (options.record.is_some(), "--record cannot be combined with export: vnettop --json --record FILE records"),
            (options.count.is_some(), "--count cannot be combined with export: it serves metrics until it is stopped"),
            (options.bytes, "--bytes cannot be combined with export: its metrics are in bytes"),
            (options.exact_softirqs, "--exact-softirqs cannot be combined with export: it measures them always"),
        ]
    }
}
