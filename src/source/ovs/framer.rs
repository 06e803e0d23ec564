//! A stream of bytes → the JSON texts in it: the database writes one object after the other, without anything between
//! them. It knows brackets and strings only, and refuses what is no object, nests too deep or does not end.

/// The largest message: a database of some ten thousand interfaces sends 8 MiB.
pub(super) const MOST_BYTES: usize = 16 << 20;
/// The database's own messages nest nine deep.
const DEEPEST: u32 = 64;
/// What stays allocated between messages.
const KEPT_BYTES: usize = 64 << 10;

/// Takes a stream apart; keeps what has come of a message so far.
#[derive(Debug, Default)]
pub(super) struct Framer {
    buffer: Vec<u8>,
    depth: u32,
    in_string: bool,
    escaped: bool,
}

impl Framer {
    /// Takes in what was received and hands over each message that it completes.
    ///
    /// # Errors
    /// What the stream does that no database does, or what `each` found so, as the end of a sentence.
    pub fn take_in(
        &mut self,
        mut bytes: &[u8],
        mut each: impl FnMut(&[u8]) -> Result<(), String>,
    ) -> Result<(), String> {
        while let Some(end) = self.find_end(bytes)? {
            let (message, rest) = bytes.split_at(end);
            self.buffer.extend_from_slice(message);
            let done = each(&self.buffer);
            self.buffer.clear();
            self.buffer.shrink_to(KEPT_BYTES);
            done?;
            bytes = rest;
        }
        if self.buffer.len() + bytes.len() > MOST_BYTES {
            return Err(format!("it sends a message of more than {} MiB", MOST_BYTES >> 20));
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// How many of these bytes belong to the message begun, if it ends in them.
    fn find_end(&mut self, bytes: &[u8]) -> Result<Option<usize>, String> {
        for (at, &byte) in bytes.iter().enumerate() {
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'[' if self.depth == 0 => return Err("it does not send objects".to_owned()),
                b'{' | b'[' if self.depth == DEEPEST => return Err(format!("it nests more than {DEEPEST} deep")),
                b'{' | b'[' => self.depth += 1,
                b' ' | b'\t' | b'\r' | b'\n' if self.depth == 0 => {}
                _ if self.depth == 0 => return Err("it does not send JSON".to_owned()),
                b'}' | b']' => self.depth -= 1,
                b'"' => self.in_string = true,
                _ => {}
            }
            if self.depth == 0 && byte == b'}' {
                return Ok(Some(at + 1));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn messages(framer: &mut Framer, bytes: &[u8]) -> Result<Vec<String>, String> {
        let mut found = Vec::new();
        framer.take_in(bytes, |message| {
            found.push(String::from_utf8_lossy(message).trim().to_owned());
            Ok(())
        })?;
        Ok(found)
    }

    #[test]
    fn objects_are_told_apart_wherever_the_stream_is_cut() {
        let stream = br#"{"a":"}\"{","b":[{}]}{"c":{}} {"d":"\\"}"#;
        let expected = [r#"{"a":"}\"{","b":[{}]}"#, r#"{"c":{}}"#, r#"{"d":"\\"}"#];
        for cut in 0..stream.len() {
            let mut framer = Framer::default();
            let mut found = messages(&mut framer, &stream[..cut]).expect("good JSON");
            found.extend(messages(&mut framer, &stream[cut..]).expect("good JSON"));
            assert_eq!(found, expected, "cut after {cut} bytes the same messages come out");
        }
    }

    #[test]
    fn what_is_no_database_is_refused_in_words() {
        let refused = |bytes: &[u8]| messages(&mut Framer::default(), bytes).expect_err("it is refused");
        assert_eq!(refused(b"HTTP/1.1 400 Bad Request"), "it does not send JSON");
        assert_eq!(refused(b"[1]"), "it does not send objects");
        assert_eq!(refused(&[b'{'; 100]), "it nests more than 64 deep");
        assert_eq!(
            refused(&[b"{\"".as_slice(), &vec![b'x'; MOST_BYTES]].concat()),
            "it sends a message of more than 16 MiB"
        );
    }

    proptest! {
        #[test]
        fn nothing_that_is_received_breaks_it(pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..20)) {
            let mut framer = Framer::default();
            for piece in pieces {
                if framer.take_in(&piece, |_| Ok(())).is_err() {
                    break;
                }
            }
        }

        #[test]
        fn brackets_in_any_order_do_not_break_it(text in r#"[{}\[\]",\\ ]{0,200}"#) {
            let _ = messages(&mut Framer::default(), text.as_bytes());
        }
    }
}
