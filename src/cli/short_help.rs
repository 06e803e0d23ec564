//! What `-h` prints: ten lines at most, for somebody who has a terminal in front of him; `--help` says all.

/// Command, or none for vnettop itself → the lines.
const SHORT: &[(Option<&str>, &str)] = &[
    (
        None,
        "\
vnettop: shows why a virtual network is slow or unsteady while iperf3 runs
  vnettop                         live screen: ? lists the keys, q quits
  vnettop demo                    test traffic in networks made for it
  vnettop replay [FILE]           a recording; without FILE the built-in one
  vnettop run -- iperf3 -c HOST   one command: how steady, and why not
  vnettop compare                 this machine's virtual networks, measured
  vnettop doctor                  what works here, what is missing
  vnettop undo                    restore pins that a killed vnettop left
  vnettop --lines 5, --json       a sentence every 5 s; JSON for programs
All commands and options: vnettop --help; of one command: vnettop run --help",
    ),
    (
        Some("demo"),
        "\
vnettop demo: the live screen on a small network made for it
It makes two namespaces, a bridge and a tun, and sends traffic through them.
All of it is removed at the end.
  --print 80x24       one frame as text, then exit
  --json, --lines 5   JSON for programs; a sentence every 5 s
  --record FILE       keep what is shown, for vnettop replay
All options: vnettop demo --help",
    ),
    (
        Some("replay"),
        "\
vnettop replay [FILE]: show a recording; without FILE the built-in one
  --at 1:30           start there
  --speed 10          ten times as fast, or max
  --print 80x24       one frame as text, then exit
  --json, --lines 5   JSON for programs; a sentence every 5 s
Keys: Space pauses, [ and ] jump 5 s back and forward, ? lists all.
All options: vnettop replay --help",
    ),
    (
        Some("doctor"),
        "\
vnettop doctor: what works here, what is missing, how to fix it
  --json              one object for programs
Exit code 1: vnettop cannot work here.
All options: vnettop doctor --help",
    ),
    (
        Some("undo"),
        "\
vnettop undo: restore CPU affinities and settings that a vnettop left behind
Whatever another program has changed since stays as it is.
All options: vnettop undo --help",
    ),
    (
        Some("config"),
        "\
vnettop config: the settings in force, and where each comes from
  --dump-config       plain TOML, to start a config.toml with
  --set NAME=VALUE    one setting for this start
All options: vnettop config --help",
    ),
    (
        Some("run"),
        "\
vnettop run [OPTIONS] -- COMMAND: run a benchmark, then print a card
  --pin compare       does pinning help? pinned and unpinned in turn
  --pin search        which cores are best? placements tried and ranked
  --tune              pins, cores for packets, GRO, TSO, qdisc: ranked
  --repeat N          the command N times
  --max-cv 5%         exit code 3 if the rate varies more
  --max-drops 0       exit code 3 if packets are dropped
  --record FILE       keep all of it, for vnettop replay
All options: vnettop run --help",
    ),
    (
        Some("card"),
        "\
vnettop card [RECORDING]: the card of a recorded run, or of recorded pins
  --format markdown   for a report; json for programs
  --card FILE         write it to FILE
Without RECORDING it takes the built-in one.
All options: vnettop card --help",
    ),
    (
        Some("cut"),
        "\
vnettop cut [RECORDING] -o FILE: write a part of a recording
  --from 1:30         first moment; default: the start
  --to 2:00           last moment; default: the end
Without RECORDING it takes the built-in one.
All options: vnettop cut --help",
    ),
    (
        Some("convert"),
        "\
vnettop convert [RECORDING] -o FILE: write it for other programs
  -o run.pftrace      a trace, which https://ui.perfetto.dev opens
  --table bins        a CSV instead: bins, links, threads or tests
  --from 1:30         first moment; default: the start
  --to 2:00           last moment; default: the end
Without RECORDING it takes the built-in one.
All options: vnettop convert --help",
    ),
    (
        Some("save"),
        "\
vnettop save [PID]: the last minutes that a running vnettop has kept
  -o FILE             into this file
Without PID it asks the only one that runs.
All options: vnettop save --help",
    ),
    (
        Some("report"),
        "\
vnettop report [RECORDING...] -o FILE: write a report of recordings
  -o report.html      a new page with plots; .md and .json work too
  --anonymise         without names and addresses
Without RECORDING it takes the built-in one.
All options: vnettop report --help",
    ),
    (
        Some("compare"),
        "\
vnettop compare: measure each virtual network this machine can make
  --list              the networks, and which this machine can make
  --only veth,bridge  only these
  --load tcp          only this load: tcp, tcp4, rr or udp
  --repeat N          rounds; default 3
  -o FILE             write .json, .md or .html too
  --against FILE      beside an earlier result (JSON)
All of it takes about 30 minutes. All options: vnettop compare --help",
    ),
    (
        Some("export"),
        "\
vnettop export: serve metrics to Prometheus on 127.0.0.1:9782
  --web.listen-address :9782   on every address instead
  --web.config.file FILE       passwords and TLS
  --max-links N                links with series of their own
All options: vnettop export --help",
    ),
    (
        Some("fleet"),
        "\
vnettop fleet: the hosts that a Prometheus server knows, worst first
  --prometheus URL    the server; default: PROMETHEUS_URL
  --sort rate         or worst, variation, migrations, losses, softirq
  --window 1h         time that the figures are of; default 2m
  --json              for programs
All options: vnettop fleet --help",
    ),
    (
        Some("agent"),
        "\
vnettop agent: what --host starts on another machine, over ssh
It writes samples to standard output and reads commands from standard input.
All options: vnettop agent --help",
    ),
];

/// The short help of a command; none is vnettop itself.
pub(super) fn of(command: Option<&str>) -> String {
    let row = SHORT.iter().find(|(name, _)| *name == command);
    row.map(|(_, text)| format!("{text}\n")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_has_ten_lines_at_most_and_names_options_that_it_takes() {
        let whole = crate::cli::command();
        let each = whole.get_subcommands().map(|inner| (Some(inner.get_name()), inner));
        for (name, command) in each.chain([(None, &whole)]) {
            let text = of(name);
            assert!((3..=10).contains(&text.lines().count()), "{name:?} has {} lines", text.lines().count());
            for line in text.lines() {
                assert!(line.chars().count() <= 79, "{name:?}: too wide for a terminal: {line}");
            }
            let words = text.split(|c: char| c.is_whitespace() || c == ',' || c == ';');
            for option in words.filter_map(|word| word.strip_prefix("--")).filter(|word| !word.is_empty()) {
                let takes = |argument: &clap::Arg| argument.get_long() == Some(option) && !argument.is_hide_set();
                let is_there = command.get_arguments().any(takes) || whole.get_arguments().any(takes);
                assert!(is_there || option == "help", "{name:?} has no option --{option}");
            }
        }
    }
}
