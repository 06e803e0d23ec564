//! Text in a recording is outside input like the names of links: every text of a line is made harmless before it is read.

use serde_json::{Deserializer, to_writer};
use std::borrow::Cow;
use vnettop_sample::text;

/// Replaces what could steer a screen in every text of a line. From where a line is no JSON it is left as it is: whoever reads
/// it says what is wrong with it.
pub(super) fn line(line: &mut Vec<u8>) {
    // JSON escapes control characters; all others that steer, but for DEL, are beyond ASCII.
    if !line.iter().any(|&byte| byte == b'\\' || byte >= 0x7f) {
        return;
    }
    let (mut clean, mut rest) = (Vec::with_capacity(line.len()), &line[..]);
    while let Some(quote) = rest.iter().position(|&byte| byte == b'"') {
        let mut texts = Deserializer::from_slice(&rest[quote..]).into_iter::<Cow<str>>();
        let Some(Ok(word)) = texts.next() else { break };
        clean.extend_from_slice(&rest[..quote]);
        if to_writer(&mut clean, &text::clean(word.as_bytes())).is_err() {
            return;
        }
        rest = &rest[quote + texts.byte_offset()..];
    }
    clean.extend_from_slice(rest);
    *line = clean;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(text: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        line(&mut bytes);
        String::from_utf8(bytes).expect("text stays text")
    }

    #[test]
    fn every_text_is_harmless_and_nothing_else_changes() {
        let steers = "{\"a\":[\"\\u001b[31mred\\u0007\", 7, \"\\\"\\\\ok\"],\"\u{202e}\":{\"c\":\"\\u202ee网络\u{7f}\",\"n\":-1.50}}\n";
        let harmless = "{\"a\":[\"?[31mred?\", 7, \"\\\"\\\\ok\"],\"?\":{\"c\":\"?e网络?\",\"n\":-1.50}}\n";
        assert_eq!(cleaned(steers), harmless);
        for same in ["{\"a\":\"plain\"}", "{\"a\":\"\\", "{\"a\":\"\\x\"}", "网络", ""] {
            assert_eq!(cleaned(same), same, "what is fine, or no line, is as it was");
        }
    }
}
