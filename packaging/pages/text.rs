//! Man pages and completions out of the one definition of the command line, and the example of config.toml out of that of the settings. What an option does stands there and nowhere else;
//! only what is no option (rights, exit codes, files) is written here.

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

/// What is said beside the options.
struct Section {
    heading: &'static str,
    paragraphs: &'static [&'static str],
}

impl Section {
    /// With an empty line behind each paragraph.
    fn lines(&self) -> impl Iterator<Item = &'static str> {
        self.paragraphs.iter().flat_map(|paragraph| [*paragraph, ""])
    }
}

const DESCRIPTION: Section = Section {
    heading: "DESCRIPTION",
    paragraphs: &[
        "vnettop watches a benchmark over virtual networks (veth, bridge, tun, Docker, Open vSwitch, overlays): its rate in bins of 100 ms, the \
         path of each flow and where packets are lost on it, the nominal speed of each interface beside what it carries, the softirq load of \
         each core, and on which cores the threads of iperf3 (or of the programs named by --watch) run. It says in one line what limits the test.",
        "The key p proposes cores for the busy threads, and pins them there when pressed again; U restores their affinities. The card (key c) \
         compares the rate before and after the pin. Where packets change cores p also proposes settings of links that keep them on one \
         (rps_cpus, threaded, the root qdisc); they are undone like pins. Nothing else on the machine is changed. Pins stay when vnettop \
         quits, unless it was started with --restore-on-exit: vnettop undo restores them.",
        "Without a terminal the same comes from --print (one frame), --json (a line each sample), vnettop run (a command measured, with a card) \
         and vnettop replay (a recording).",
    ],
};

const RIGHTS: Section = Section {
    heading: "RIGHTS",
    paragraphs: &[
        "Without rights vnettop shows the links of its own namespace, the cores, and the threads of every user, and says what is \
         missing. Root sees everything.",
        "Capabilities of the program's file give whoever may run it the same without being root; set them again after each upgrade, \
         because a new file has none:",
        " setcap cap_sys_admin,cap_sys_ptrace,cap_dac_read_search,cap_syslog,cap_sys_nice=ep /usr/bin/vnettop",
        "CAP_SYS_ADMIN and CAP_SYS_PTRACE: other network namespaces; the first also moves and lost packets as the kernel reports them. \
         CAP_DAC_READ_SEARCH: connections of other users' programs. CAP_SYSLOG: the functions that lost packets, by name. \
         CAP_SYS_NICE: pins of other users' threads, and a steady pace. CAP_SYS_ADMIN is close to root: let only those run such a file \
         who may have that (chgrp, chmod 750).",
        "Where one namespace is enough, Linux 5.8 and newer need far less:",
        " setcap cap_bpf,cap_perfmon,cap_syslog,cap_sys_nice=ep /usr/bin/vnettop",
    ],
};

const EXIT: Section = Section {
    heading: "EXIT STATUS",
    paragraphs: &[
        "0 done; 1 failed; 2 wrong arguments; 3 a limit of vnettop run is broken; 128 + N ended by signal N. vnettop run ends with the \
         exit status of its command otherwise, 127 or 126 where that could not be started.",
    ],
};

const ENVIRONMENT: Section = Section {
    heading: "ENVIRONMENT",
    paragraphs: &[
        "NO_COLOR: no colour, unless empty. LC_ALL, LC_CTYPE, LANG: boxes and bars are drawn in UTF-8 where the first that is set says \
         so. TERM, COLORTERM, COLORFGBG: which colours there are. XDG_STATE_HOME, XDG_CONFIG_HOME: see FILES. DOCKER_HOST: Docker's socket. OVS_RUNDIR: run directory of Open vSwitch.",
    ],
};

const FILES: Section = Section {
    heading: "FILES",
    paragraphs: &[
        "$XDG_STATE_HOME/vnettop, else ~/.local/state/vnettop: the journal of pins, from which vnettop undo restores, and what the keys \
         R and w write.",
        "/etc/vnettop/config.toml, then $XDG_CONFIG_HOME/vnettop/config.toml (else ~/.config/vnettop/config.toml), then the file of --config: \
         settings, the later ones over the earlier ones, options over all. A file that belongs to somebody else than the user or root, or that \
         others may write to, is refused. vnettop config prints the settings in force and where each comes from; the key W saves what the \
         screen is like. vnettop undo, card and doctor read none of them.",
        "themes/NAME.toml beside config.toml: colours of one's own (--theme NAME, the key C).",
        "/usr/share/doc/vnettop/examples/config.toml: every setting with its default.",
    ],
};

const SEE_ALSO: Section = Section {
    heading: "SEE ALSO",
    paragraphs: &["taskset(1), iperf3(1), ethtool(8), ip(8), setcap(8), capabilities(7)"],
};

/// Every file by its name: `vnettop.1`, a page for each command, a completion for each shell, and `config.toml`. `date` is that of the pages.
pub fn pages(date: &str) -> Vec<(String, Vec<u8>)> {
    let mut whole = vnettop::cli::command().disable_help_subcommand(true);
    whole.build();
    let mut files = vec![("vnettop.1".to_owned(), main_page(&whole, date))];
    let named = |command: &Command| format!("vnettop-{}.1", command.get_name());
    files.extend(whole.get_subcommands().map(|command| (named(command), page_of(command, date))));
    let shells = [(Shell::Bash, "vnettop.bash"), (Shell::Zsh, "_vnettop"), (Shell::Fish, "vnettop.fish")];
    files.extend(shells.map(|(shell, name)| {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut vnettop::cli::command(), "vnettop", &mut script);
        (name.to_owned(), script)
    }));
    files.push(("config.toml".to_owned(), vnettop::config::example().into_bytes()));
    files
}

fn main_page(whole: &Command, date: &str) -> Vec<u8> {
    let mut page = opening(whole, date);
    let man = Man::new(whole.clone());
    prose(&mut page, DESCRIPTION.heading, DESCRIPTION.lines());
    written(&mut page, |page| man.render_options_section(page));
    section_of_commands(&mut page, whole);
    keys(&mut page);
    for section in [RIGHTS, EXIT, ENVIRONMENT, FILES] {
        prose(&mut page, section.heading, section.lines());
    }
    after(&mut page, whole);
    prose(&mut page, SEE_ALSO.heading, SEE_ALSO.lines());
    page
}

/// A command's own options; those of every command have their page.
fn page_of(command: &Command, date: &str) -> Vec<u8> {
    let own = command.clone().mut_args(|option| {
        let elsewhere = option.is_global_set() || option.get_id() == "help";
        option.hide(elsewhere)
    });
    let mut page = opening(command, date);
    if own.get_arguments().any(|option| !option.is_hide_set()) {
        let man = Man::new(own);
        written(&mut page, |page| man.render_options_section(page));
    }
    after(&mut page, command);
    prose(&mut page, SEE_ALSO.heading, ["vnettop(1), which holds the options of every command"]);
    page
}

/// Title, name and synopsis. The synopsis is the usage of `--help`: all thirty options there would be a wall.
fn opening(command: &Command, date: &str) -> Vec<u8> {
    let mut page = Vec::new();
    let title = command.get_display_name().unwrap_or_else(|| command.get_name()).to_uppercase();
    let source = concat!("vnettop ", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command.clone()).title(title).date(date).source(source).manual("User Commands");
    written(&mut page, |page| man.render_title(page));
    written(&mut page, |page| man.render_name_section(page));
    let usage = command.clone().render_usage().to_string();
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]);
    roff.text([bold(usage.trim_start_matches("Usage: "))]);
    written(&mut page, |page| roff.to_writer(page));
    page
}

fn section_of_commands(page: &mut Vec<u8>, whole: &Command) {
    let mut roff = Roff::new();
    roff.control("SH", ["COMMANDS"]);
    for command in whole.get_subcommands() {
        roff.control("TP", []);
        roff.text([bold(command.get_name())]);
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        roff.text([roman(format!("{about}. See vnettop-{}(1).", command.get_name()))]);
    }
    written(page, |page| roff.to_writer(page));
}

fn keys(page: &mut Vec<u8>) {
    let mut roff = Roff::new();
    roff.control("SH", ["KEYS"]);
    for (title, lines) in vnettop::action::help_groups(&vnettop::action::KeyMap::default()) {
        roff.control("SS", [title]);
        for (keys, help) in lines {
            roff.control("TP", []);
            let keys: Vec<String> = keys.iter().map(ToString::to_string).collect();
            roff.text([bold(keys.join(" "))]);
            roff.text([roman(help)]);
        }
    }
    written(page, |page| roff.to_writer(page));
}

/// What stands behind the options in `--help`.
fn after(page: &mut Vec<u8>, command: &Command) {
    let Some(text) = command.get_after_help().map(ToString::to_string) else { return };
    prose(page, "NOTES AND EXAMPLES", text.lines());
}

/// Lines that begin with a space stay as they are, the others are filled; an empty one ends a paragraph.
fn prose<'a>(page: &mut Vec<u8>, heading: &str, lines: impl IntoIterator<Item = &'a str>) {
    let mut roff = Roff::new();
    roff.control("SH", [heading]);
    let mut verbatim = false;
    for line in lines {
        let wants = line.starts_with(' ');
        if wants != verbatim {
            roff.control(if wants { "EX" } else { "EE" }, []);
            verbatim = wants;
        }
        match line {
            "" => roff.control("PP", []),
            line => roff.text([roman(line)]),
        };
    }
    if verbatim {
        roff.control("EE", []);
    }
    written(page, |page| roff.to_writer(page));
}

fn written(page: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) {
    write(page).expect("memory takes everything");
}
