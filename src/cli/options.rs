//! The options of every command, and which of them stand for a setting.

use super::values::{count, files, kept, lines, netns, pair, place, profile, seconds, size, span, speed, watch};
use crate::action::{KeyStep, parse_keys};
use crate::config::{Override, Value, typed};
use crate::derive::{Trigger, TriggerKind, TriggerPlan};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// The keys of one option; a list by its own name would be an option that is given several times.
type KeySteps = Vec<KeyStep>;

#[derive(Debug, Args)]
pub(super) struct PaceArguments {
    /// Speed of a replay: a multiple of real time, or max
    #[arg(long, value_name = "TIMES|max", value_parser = speed)]
    pub(super) speed: Option<f64>,
    /// Start a replay this long after its first sample: 90, 1:30 or 1:02:03
    #[arg(long, value_name = "TIME", value_parser = place)]
    pub(super) at: Option<Duration>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "General options")]
#[allow(clippy::struct_excessive_bools, reason = "one for each switch")]
pub(super) struct Options {
    /// Time between samples, fractions allowed [default: 0.5 on the screen, 0.1 in a run, 1 otherwise]
    #[arg(short = 'd', long = "delay", value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true, global = true)]
    pub(super) delay: Option<Duration>,
    /// Show N intervals, then exit
    #[arg(short = 'n', long = "count", value_name = "N", value_parser = count, allow_negative_numbers = true, global = true)]
    pub(super) count: Option<u64>,
    /// Threads to watch: a command name or a pid; repeatable [default: iperf3 and iperf]
    #[arg(long, value_name = "NAME|PID", value_parser = watch, global = true)]
    pub(super) watch: Vec<String>,
    /// Network namespaces to show: all, self, or by name, inode or pid; repeatable [default: all as root of the machine, else self]
    #[arg(long, value_name = "NAME|all|self", value_parser = netns, global = true)]
    pub(super) netns: Vec<String>,
    /// Show iperf3's own figures, which it writes to FILE with --json-stream, beside vnettop's
    #[arg(long, value_name = "FILE", global = true)]
    pub(super) iperf3_json: Option<PathBuf>,
    /// Database socket or run directory of an Open vSwitch; repeatable [default: the usual one, and `OVS_RUNDIR`]
    #[arg(long, value_name = "PATH", global = true)]
    pub(super) ovs_socket: Vec<PathBuf>,
    /// Docker's socket [default: `DOCKER_HOST`, else /var/run/docker.sock, else that of rootless Docker]
    #[arg(long, value_name = "PATH", global = true)]
    pub(super) docker_socket: Option<PathBuf>,
    /// JSON lines on standard output, one object a sample
    #[arg(long, conflicts_with = "print", global = true)]
    pub(super) json: bool,
    /// A line every SECONDS: test, rate, verdict and limit, for screen readers and logs
    #[arg(long, value_name = "SECONDS", conflicts_with_all = ["json", "print"], value_parser = lines, allow_negative_numbers = true, global = true)]
    pub(super) lines: Option<Duration>,
    /// Record every sample to FILE, compressed when it ends in .zst
    #[arg(long, value_name = "FILE", global = true)]
    pub(super) record: Option<PathBuf>,
    /// Time that is always kept in memory, for B, save and --on: 5m or 90s; 0 keeps nothing [default: 3m]
    #[arg(long, value_name = "TIME", value_parser = kept, global = true)]
    pub(super) keep: Option<Duration>,
    /// Have no socket for vnettop save
    #[arg(long, global = true)]
    pub(super) no_socket: bool,
    /// When this happens, save what is kept in memory: dip, loss, latency, limit-change or migration-burst, as in dip:50%; repeatable
    #[arg(long, value_name = "EVENT[:THRESHOLD]", global = true)]
    pub(super) on: Vec<Trigger>,
    /// Time before the event that --on saves [default: 10]
    #[arg(long, value_name = "SECONDS", value_parser = span, requires = "on", global = true)]
    pub(super) on_before: Option<Duration>,
    /// Time after the event that is saved as well, whatever else happens [default: 5]
    #[arg(long, value_name = "SECONDS", value_parser = span, requires = "on", global = true)]
    pub(super) on_after: Option<Duration>,
    /// Files of --on to keep, at most 100 MB in all; the oldest are deleted [default: 10]
    #[arg(long, value_name = "N", value_parser = files, requires = "on", global = true)]
    pub(super) on_keep: Option<usize>,
    /// Show the recording FILE instead of this machine
    #[arg(long, value_name = "FILE", conflicts_with_all = ["record", "iperf3_json", "drops", "exact_softirqs", "hop_cores", "latency", "profile"])]
    pub(super) replay: Option<PathBuf>,
    #[command(flatten)]
    pub(super) pace: PaceArguments,
    /// Press these keys before printing, as in `tt<tab>` (`<tick>` waits for a sample)
    #[arg(long, value_name = "STRING", requires = "print", value_parser = parse_keys, global = true)]
    pub(super) keys: Option<KeySteps>,
    /// Print one frame of this size as text, then exit
    #[arg(long, value_name = "WxH", value_parser = size, global = true)]
    pub(super) print: Option<(u16, u16)>,
    /// Count every packet that the kernel drops, by reason, function, interface and namespace (root or BPF rights)
    #[arg(long, global = true)]
    pub(super) drops: bool,
    /// Measure softirq time from entry to exit instead of sampling it (root or BPF rights; costs 0.3 us a softirq)
    #[arg(long, global = true)]
    pub(super) exact_softirqs: bool,
    /// Count packets of each hop and flow by core (root or BPF rights)
    #[arg(long, global = true)]
    pub(super) hop_cores: bool,
    /// Measure continuously where packets and threads wait (root or BPF rights)
    #[arg(long, global = true)]
    pub(super) latency: bool,
    /// Sample what a core does, stage by stage of the path: limit is the core that LIMIT names (root or `CAP_PERFMON`)
    #[arg(long, value_name = "CORE|limit", value_parser = profile, global = true)]
    pub(super) profile: Option<String>,
    /// Change nothing on this machine: no pins, no undo
    #[arg(long, global = true)]
    pub(super) readonly: bool,
    /// Sample at normal priority even where real-time priority is allowed
    #[arg(long, global = true)]
    pub(super) no_realtime: bool,
    /// Restore every replaced mask on exit
    #[arg(long, global = true)]
    pub(super) restore_on_exit: bool,
    /// Rates in bytes instead of bits
    #[arg(long, global = true)]
    pub(super) bytes: bool,
    /// Only ASCII characters on the screen [default: where the locale has no UTF-8]
    #[arg(long, global = true)]
    pub(super) ascii: bool,
    /// Colours: auto, dark, light, terminal, mono (also by `NO_COLOR`), or those of a theme file
    #[arg(long, global = true, value_name = "THEME")]
    pub(super) theme: Option<String>,
    /// The same as --theme mono
    #[arg(long, global = true)]
    pub(super) no_color: bool,
    /// Do not use the mouse, so that the terminal can select text
    #[arg(long, global = true)]
    pub(super) no_mouse: bool,
    /// Read settings of FILE too, after the usual files; W saves there
    #[arg(long, value_name = "FILE", global = true)]
    pub(super) config: Option<PathBuf>,
    /// Read no settings from the usual files
    #[arg(long, global = true)]
    pub(super) no_config: bool,
    /// One setting as in config.toml, for this start: --set links.sort=rx; repeatable
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair, global = true)]
    pub(super) set: Vec<(String, String)>,
    /// Print the settings in force as plain TOML, then exit
    #[arg(long, conflicts_with_all = ["json", "print", "lines"], global = true)]
    pub(super) dump_config: bool,
}

impl Options {
    /// The options that an agent on another host is given, as its arguments.
    pub(super) fn for_agent(&self) -> Vec<String> {
        let each = |name: &'static str, values: &[String]| -> Vec<String> {
            values.iter().flat_map(|value| [name.to_owned(), value.clone()]).collect()
        };
        let flags = [
            (self.drops, "--drops"),
            (self.exact_softirqs, "--exact-softirqs"),
            (self.hop_cores, "--hop-cores"),
            (self.latency, "--latency"),
            (self.readonly, "--readonly"),
            (self.no_realtime, "--no-realtime"),
            (self.restore_on_exit, "--restore-on-exit"),
        ];
        let given = flags.into_iter().filter(|(given, _)| *given).map(|(_, name)| name.to_owned());
        let texts = each("--watch", &self.watch).into_iter().chain(each("--netns", &self.netns));
        texts.chain(each("--profile", self.profile.as_slice())).chain(given).collect()
    }

    /// What is waited for must be measured.
    fn waits_for_latency(&self) -> bool {
        self.on.iter().any(|trigger| trigger.kind == TriggerKind::Latency)
    }

    /// What is saved when.
    pub(super) fn plan(&self) -> TriggerPlan {
        let usual = TriggerPlan::default();
        TriggerPlan {
            triggers: self.on.clone(),
            before: self.on_before.unwrap_or(usual.before),
            after: self.on_after.unwrap_or(usual.after),
            most_files: self.on_keep.unwrap_or(usual.most_files),
            ..usual
        }
    }

    /// What of them is a setting.
    pub(super) fn overrides(&self) -> Vec<Override> {
        let path = |path: &PathBuf| path.to_string_lossy().into_owned();
        let texts = |texts: Vec<String>| (!texts.is_empty()).then(|| Value::from_iter(texts));
        let flag = |given: bool, value: bool| given.then(|| Value::from(value));
        let text = |text: Option<String>| text.map(Value::from);
        let set = self.set.iter().map(|(key, value)| (key.as_str(), "--set", Some(typed(value))));
        let given = [
            ("interval", "--delay", self.delay.map(|delay| delay.as_secs_f64().into())),
            ("watch", "--watch", texts(self.watch.clone())),
            ("netns", "--netns", texts(self.netns.clone())),
            ("ovs_sockets", "--ovs-socket", texts(self.ovs_socket.iter().map(path).collect())),
            ("docker_socket", "--docker-socket", text(self.docker_socket.as_ref().map(path))),
            ("drops", "--drops", flag(self.drops, true)),
            ("exact_softirqs", "--exact-softirqs", flag(self.exact_softirqs, true)),
            ("hop_cores", "--hop-cores", flag(self.hop_cores, true)),
            ("latency", "--latency", flag(self.latency || self.waits_for_latency(), true)),
            ("profile", "--profile", text(self.profile.clone())),
            ("readonly", "--readonly", flag(self.readonly, true)),
            ("realtime", "--no-realtime", flag(self.no_realtime, false)),
            ("restore_on_exit", "--restore-on-exit", flag(self.restore_on_exit, true)),
            ("recorder.minutes", "--keep", self.keep.map(|keep| (keep.as_secs_f64() / 60.0).into())),
            ("recorder.socket", "--no-socket", flag(self.no_socket, false)),
            ("units", "--bytes", text(self.bytes.then(|| "bytes".to_owned()))),
            ("ascii", "--ascii", flag(self.ascii, true)),
            ("theme", "--theme", text(self.theme.clone())),
            ("theme", "--no-color", text(self.no_color.then(|| "mono".to_owned()))),
            ("mouse", "--no-mouse", flag(self.no_mouse, false)),
        ];
        let all = set.chain(given);
        all.filter_map(|(key, option, value)| Some(Override { key: key.to_owned(), value: value?, option })).collect()
    }
}
