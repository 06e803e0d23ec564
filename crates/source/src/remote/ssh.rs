//! How ssh is called, and what its end means: one sentence, with what to do about it.

use super::RemoteHost;
use std::io::{self, ErrorKind};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use vnettop_sample::text;
use vnettop_sample::{AgentReply, OutcomeLine};

/// The screen owns the terminal, so ssh asks nothing; a host that is gone is noticed within half a minute. Everything else is the
/// user's own configuration of ssh.
const OPTIONS: [&str; 9] = [
    "-T",
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=10",
    "-o",
    "ServerAliveInterval=5",
    "-o",
    "ServerAliveCountMax=5",
];
/// What a shell exits with where there is no such program, and where it cannot be started.
const NO_PROGRAM: [i32; 2] = [127, 126];
/// What ssh exits with for reasons of its own.
const OWN: i32 = 255;
/// What clap exits with where an argument is not known.
const USAGE: i32 = 2;

/// ssh, ready to be started; its streams are pipes.
pub(super) fn command(host: &RemoteHost) -> Command {
    let mut words = host.ssh.iter();
    let mut command = Command::new(words.next().map_or("ssh", String::as_str));
    command.args(words).args(OPTIONS).arg("--").arg(&host.name).arg(&host.command);
    // Keys of the terminal that stop or end programs are this one's matter.
    command.process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Why ssh could not be started.
pub(super) fn not_started(host: &RemoteHost, error: &io::Error) -> String {
    let program = host.ssh.first().map_or("ssh", String::as_str);
    match error.kind() {
        ErrorKind::NotFound => format!("{program} is not installed here: install openssh-client"),
        _ => format!("{program} cannot be started: {error}"),
    }
}

/// What is said to a wish while there is no connection.
pub(super) fn not_connected(host: &RemoteHost) -> AgentReply {
    let text = format!("nothing was changed on {}: it is not connected", host.name);
    AgentReply { lines: vec![OutcomeLine { warning: true, text }], ..AgentReply::default() }
}

/// Why the connection has ended: by how ssh exited, what it said last, and whether anything had come.
pub(super) fn ended(host: &RemoteHost, status: Option<ExitStatus>, said: &[u8], was_live: bool) -> String {
    let (name, last) = (&host.name, last_line(said));
    let with = |sentence: String| if last.is_empty() { sentence } else { format!("{sentence} ({last})") };
    let Some(status) = status else { return with(format!("the connection to {name} is closed")) };
    match (status.code(), status.signal()) {
        (None, Some(signal)) => format!("ssh to {name} was killed by signal {signal}"),
        (Some(code), _) if NO_PROGRAM.contains(&code) => with(format!(
            "{name} has no vnettop: scp {} {name}: and start with --remote-command ./vnettop",
            this_program()
        )),
        (Some(OWN), _) if last.contains("Permission denied") => {
            with(format!("{name} refuses the login, and no password is asked for: ssh-add a key"))
        }
        (Some(OWN), _) if last.contains("Host key verification failed") => {
            with(format!("the host key of {name} is not accepted: run ssh {name} once"))
        }
        (Some(OWN), _) if was_live && last.is_empty() => {
            format!("the connection to {name} is lost, or its agent was killed")
        }
        (Some(OWN), _) if was_live => with(format!("the connection to {name} is lost")),
        (Some(OWN), _) => with(format!("{name} cannot be reached")),
        (Some(USAGE), _) if !was_live && last.contains("'agent'") => {
            with(format!("the vnettop on {name} knows no agent: copy this one there"))
        }
        (Some(USAGE), _) if !was_live => with(format!("the agent on {name} does not start")),
        (Some(0), _) => with(format!("the agent on {name} has exited")),
        (code, _) => with(format!("the agent on {name} has exited with code {}", code.unwrap_or(0))),
    }
}

/// What is to be copied.
fn this_program() -> String {
    let path = std::env::current_exe().ok();
    path.map_or_else(|| "vnettop".to_owned(), |path| text::clean(path.to_string_lossy().as_bytes()))
}

/// The last line of what was said, harmless and short.
fn last_line(said: &[u8]) -> String {
    let line = said.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).rfind(|line| !line.is_empty());
    text::clean(line.unwrap_or_default()).chars().take(120).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn host() -> RemoteHost {
        RemoteHost {
            name: "kp2".to_owned(),
            ssh: vec!["ssh".to_owned(), "-F".to_owned(), "file".to_owned()],
            command: "vnettop agent".to_owned(),
            interval: Duration::from_millis(500),
        }
    }

    #[test]
    fn a_name_is_never_an_option_of_ssh() {
        let command = command(&RemoteHost { name: "-oProxyCommand=id".to_owned(), ..host() });
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        assert_eq!(words[..2], ["-F", "file"]);
        assert_eq!(words[words.len() - 3..], ["--", "-oProxyCommand=id", "vnettop agent"]);
    }

    #[test]
    fn each_end_has_its_sentence() {
        let exit = |code: i32| Some(ExitStatus::from_raw(code << 8));
        let said = |status, said: &str, live| ended(&host(), status, said.as_bytes(), live);
        assert!(said(exit(127), "bash: vnettop: command not found", false).starts_with("kp2 has no vnettop: scp "));
        assert!(said(exit(255), "root@kp2: Permission denied (publickey).\r\n", false).contains("ssh-add"));
        assert!(said(exit(255), "Host key verification failed.", false).contains("run ssh kp2 once"));
        assert_eq!(
            said(exit(255), "ssh: connect to host kp2 port 22: Connection refused", false),
            "kp2 cannot be reached (ssh: connect to host kp2 port 22: Connection refused)"
        );
        assert_eq!(said(exit(255), "", true), "the connection to kp2 is lost, or its agent was killed");
        assert_eq!(said(Some(ExitStatus::from_raw(9)), "", true), "ssh to kp2 was killed by signal 9");
        assert!(said(exit(2), "error: unrecognized subcommand 'agent'", false).contains("copy this one there"));
        assert_eq!(
            said(exit(1), "vnettop: \x1b[31mno\n\n", true),
            "the agent on kp2 has exited with code 1 (vnettop: ?[31mno)"
        );
    }
}
