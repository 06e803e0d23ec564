//! `--host`, and the arguments of `vnettop agent`, which it starts there.

use super::options::Options;
use super::{CliCommand, CliError};
use crate::sample::{PinMode, SteerMode};
use clap::Args;
use std::time::Duration;

/// Hosts at once.
const MOST_HOSTS: usize = 16;
/// This machine, among hosts.
const LOCAL: &str = "local";

/// Hosts to watch, and how they are reached.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AskedHosts {
    /// As ssh knows each; none is this machine.
    pub names: Vec<Option<String>>,
    /// The words of the ssh command.
    pub ssh: Vec<String>,
    /// What is run there, without its options.
    pub remote_command: String,
    /// The options that it is given there.
    pub options: Vec<String>,
}

impl AskedHosts {
    /// One host, by the ssh and the vnettop that are usual.
    ///
    /// # Errors
    /// It is no name that ssh may be given.
    pub fn one(name: &str) -> Result<Self, String> {
        let names = vec![Some(host(name)?)];
        Ok(Self { names, ssh: vec!["ssh".to_owned()], remote_command: "vnettop".to_owned(), options: Vec::new() })
    }

    /// What the shell of each host is given, with samples at this interval.
    #[must_use]
    pub fn command(&self, interval: Duration) -> String {
        let options: Vec<String> = self.options.iter().map(|word| quoted(word)).collect();
        let words = [self.remote_command.clone(), "agent".to_owned(), "--delay".to_owned()];
        let interval = format!("{}", interval.as_secs_f64());
        words.into_iter().chain([interval]).chain(options).collect::<Vec<_>>().join(" ")
    }
}

/// As a shell takes it for one word.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[derive(Debug, Args)]
pub(super) struct HostOptions {
    /// Watch this host over ssh, which needs vnettop there; repeatable, at most 16; local is this machine
    #[arg(long = "host", value_name = "[USER@]NAME", value_parser = host)]
    hosts: Vec<String>,
    /// What is run on each host of --host [default: vnettop]
    #[arg(long, value_name = "COMMAND", requires = "hosts", default_value = "vnettop", hide_default_value = true)]
    remote_command: String,
    /// The ssh that --host starts, with options: "ssh -p 2222" [default: ssh]
    #[arg(long, value_name = "COMMAND", requires = "hosts", default_value = "ssh", hide_default_value = true)]
    ssh_command: String,
}

/// A host as ssh may be given it.
fn host(name: &str) -> Result<String, String> {
    // A configuration of ssh may put the name into a command of a shell (%h in ProxyCommand), and it may come from a label of
    // Prometheus: nothing that a shell reads otherwise is passed on.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ".-_:@%[]".contains(c);
    if name.is_empty() || name.len() > 255 || name.starts_with('-') || !name.chars().all(is_plain) {
        return Err("a host is [USER@]NAME of letters, digits and . - _ : @ % [ ], or local".to_owned());
    }
    Ok(name.to_owned())
}

impl HostOptions {
    pub(super) fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    /// The hosts; none where none is named.
    ///
    /// # Errors
    /// What cannot be asked of hosts.
    pub(super) fn checked(
        &self,
        options: &Options,
        command: Option<&CliCommand>,
    ) -> Result<Option<AskedHosts>, CliError> {
        if self.hosts.is_empty() {
            return Ok(None);
        }
        let is_run = matches!(command, Some(CliCommand::Run(_)));
        let compares = matches!(command, Some(CliCommand::Run(run)) if run.pin == PinMode::Compare && run.steer == SteerMode::Never);
        let refused = [
            (command.is_some() && !is_run, "--host cannot be combined with this command"),
            (is_run && !compares, "--host in a run needs --pin compare: it pins the other end in the same phases"),
            (options.replay.is_some(), "--host cannot be combined with a replay: a recording names its hosts"),
            (options.iperf3_json.is_some(), "--iperf3-json cannot be combined with --host: the file is on one machine"),
            (options.lines.is_some(), "--lines cannot be combined with --host: run vnettop --lines on each host"),
            (self.hosts.len() > MOST_HOSTS, "--host can be given 16 times at most"),
        ];
        if let Some((_, why)) = refused.iter().find(|(is_it, _)| *is_it) {
            return Err(CliError::usage(why));
        }
        if let Some(twice) = self.hosts.iter().enumerate().find(|(at, name)| self.hosts[..*at].contains(name)) {
            return Err(CliError::Usage(format!("--host {} is given twice", twice.1)));
        }
        let words = |command: &str| command.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let ssh = words(&self.ssh_command);
        if ssh.is_empty() || self.remote_command.trim().is_empty() {
            return Err(CliError::usage("--ssh-command and --remote-command need a command"));
        }
        Ok(Some(AskedHosts {
            names: self.hosts.iter().map(|name| Some(name.clone()).filter(|name| name != LOCAL)).collect(),
            ssh,
            remote_command: self.remote_command.clone(),
            options: options.for_agent(),
        }))
    }
}

/// What an agent has nothing to do with.
pub(super) fn refused(options: &Options) -> [(bool, &'static str); 4] {
    [
        (options.json, "--json cannot be combined with agent: it writes a stream for another vnettop"),
        (options.print.is_some(), "--print cannot be combined with agent: it writes a stream for another vnettop"),
        (options.record.is_some(), "--record cannot be combined with agent: its output is what --record writes"),
        (options.count.is_some(), "--count cannot be combined with agent: its input decides when it ends"),
    ]
}

pub(super) const AGENT: &str = "\
Another vnettop starts it over ssh (vnettop --host NAME). It writes samples to
standard output, as --record does, and reads commands from standard input, one
JSON object a line; it exits when its input ends. Pins have this machine's own
journal: vnettop undo restores them.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_is_given_is_one_word_each() {
        let asked = AskedHosts {
            remote_command: "sudo -n vnettop".to_owned(),
            options: ["--watch", "it's $HOME", "--netns", ""].map(str::to_owned).to_vec(),
            ..AskedHosts::default()
        };
        assert_eq!(
            asked.command(Duration::from_millis(500)),
            "sudo -n vnettop agent --delay 0.5 --watch 'it'\\''s $HOME' --netns ''"
        );
    }

    #[test]
    fn a_host_is_no_option() {
        for name in ["-oProxyCommand=id", "", "a b", "a\u{1b}[m"] {
            assert!(host(name).is_err(), "{name:?}");
        }
        // A label of Prometheus, or a name on the command line.
        for name in
            ["kp1$(id)", "kp1;id", "`id`", "kp1|id", "kp1&", "kp1'x", "kp1\"x", "a/b", "kp\u{e9}", "k*", "k~", "$HOME"]
        {
            assert!(AskedHosts::one(name).is_err(), "{name:?} may be a shell's");
        }
        for name in ["kp-1.example_x", "root@fe80::1%eth0", "[::1]:22"] {
            assert_eq!(host(name).as_deref(), Ok(name));
        }
        assert_eq!(host("root@10.0.0.2").as_deref(), Ok("root@10.0.0.2"));
    }
}
