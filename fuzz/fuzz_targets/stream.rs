//! The stream of an agent however it is cut, and the commands that an agent reads.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vnettop::record::StreamReader;
use vnettop::sample::AgentCommand;

fuzz_target!(|bytes: &[u8]| {
    let size = bytes.first().map_or(1, |first| usize::from(*first) + 1);
    let mut reader = StreamReader::default();
    if bytes.chunks(size).try_for_each(|piece| reader.take(piece, drop)).is_err() {
        return;
    }
    let _ = reader.quoted();
    for line in bytes.split(|&byte| byte == b'\n') {
        if let Ok(command) = serde_json::from_slice::<AgentCommand>(line) {
            let text = serde_json::to_vec(&command).expect("JSON");
            assert_eq!(serde_json::from_slice::<AgentCommand>(&text).ok(), Some(command), "it reads back");
        }
    }
});
