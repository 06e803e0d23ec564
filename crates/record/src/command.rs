//! A command to an agent, one JSON object a line: as it is written to its input, and as it is read there.

use vnettop_sample::AgentCommand;

/// The line, with its end; empty where it cannot be written.
#[must_use]
pub fn command_line(command: &AgentCommand) -> Vec<u8> {
    let mut line = serde_json::to_vec(command).unwrap_or_default();
    line.push(b'\n');
    line
}

/// The command of a line.
///
/// # Errors
/// It is none that this vnettop knows: why, one sentence.
pub fn command_of(line: &[u8]) -> Result<AgentCommand, String> {
    serde_json::from_slice(line).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use vnettop_sample::{CoreSet, OnRequest, PinRequest, ThreadId};

    #[test]
    fn what_is_written_is_read() {
        let thread = ThreadId { pid: 1, tid: 2, start: 3 };
        let request = PinRequest { thread, label: "iperf3 client".to_owned(), cores: CoreSet::single(4) };
        let commands = [
            AgentCommand::Interval(500_000_000),
            AgentCommand::Watch { pid: 7, with_descendants: true },
            AgentCommand::Want(OnRequest { drops: true, ..OnRequest::default() }),
            AgentCommand::Pin(vec![request]),
            AgentCommand::Restore,
        ];
        for command in commands {
            assert_eq!(command_of(&command_line(&command)), Ok(command));
        }
        assert!(command_of(b"{\"fly\":1}").is_err(), "a command of a newer vnettop");
    }
}
