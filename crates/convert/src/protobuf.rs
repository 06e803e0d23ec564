//! The wire format of protocol buffers, written: numbers of variable length, and fields that say how long they are. A trace has
//! ten kinds of messages and nothing here reads one, so that no generator and no derive macro is needed; Perfetto's own classes
//! read what comes out in `tests/live/convert.rs`.

/// Fields by how they are written: the low three bits of what stands before each.
const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const LENGTH_DELIMITED: u32 = 2;

/// A message of protocol buffers being written, field by field.
#[derive(Debug, Default)]
pub struct ProtobufMessage(Vec<u8>);

impl ProtobufMessage {
    /// What was written so far.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Begins a new one in the same memory.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Adds a number, of any of the types uint, int (where it is not negative), bool and enum.
    pub fn number(&mut self, field: u32, value: u64) -> &mut Self {
        self.key(field, VARINT);
        self.varint(value);
        self
    }

    /// Adds a double.
    pub fn double(&mut self, field: u32, value: f64) -> &mut Self {
        self.key(field, FIXED64);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// Adds a string.
    pub fn text(&mut self, field: u32, text: &str) -> &mut Self {
        self.key(field, LENGTH_DELIMITED);
        self.varint(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
        self
    }

    /// Adds a message within this one, which `write` fills.
    pub fn message(&mut self, field: u32, write: impl FnOnce(&mut Self)) -> &mut Self {
        self.key(field, LENGTH_DELIMITED);
        let at = self.0.len();
        // Nearly all are shorter than 128 bytes, whose length takes one.
        self.0.push(0);
        write(self);
        let mut length = self.0.len() - at - 1;
        let mut more = 0;
        loop {
            #[allow(clippy::cast_possible_truncation, reason = "seven bits")]
            let low = (length & 0x7f) as u8;
            length >>= 7;
            let byte = if length > 0 { low | 0x80 } else { low };
            if more == 0 {
                self.0[at] = byte;
            } else {
                self.0.insert(at + more, byte);
            }
            more += 1;
            if length == 0 {
                return self;
            }
        }
    }

    fn key(&mut self, field: u32, how: u32) {
        self.varint(u64::from(field << 3 | how));
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            #[allow(clippy::cast_possible_truncation, reason = "seven bits")]
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        #[allow(clippy::cast_possible_truncation, reason = "the last seven bits")]
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_lengths_take_as_many_bytes_as_they_need() {
        let mut message = ProtobufMessage::default();
        message.number(1, 150).text(2, "testing");
        assert_eq!(message.bytes(), b"\x08\x96\x01\x12\x07testing", "the examples of the format's own page");
        message.clear();
        message.message(3, |inner| {
            inner.number(1, 150);
        });
        assert_eq!(message.bytes(), b"\x1a\x03\x08\x96\x01");
        for length in [0, 127, 128, 16_383, 16_384] {
            message.clear();
            message.message(1, |inner| {
                inner.text(1, &"x".repeat(length));
            });
            let mut whole = ProtobufMessage::default();
            let mut inner = ProtobufMessage::default();
            inner.text(1, &"x".repeat(length));
            whole.text(1, std::str::from_utf8(inner.bytes()).unwrap_or_default());
            if length < 128 {
                assert_eq!(message.bytes(), whole.bytes(), "{length}");
            }
            assert_eq!(message.bytes().len(), whole_length(inner.bytes().len()), "{length}");
        }
        message.clear();
        message.number(1, u64::MAX).double(2, 1.0);
        assert_eq!(message.bytes()[..11], [8, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]);
        assert_eq!(message.bytes()[11..], [0x11, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
    }

    /// Of a field with so many bytes in it: its key, its length and itself.
    fn whole_length(inner: usize) -> usize {
        let digits = if inner == 0 { 1 } else { (usize::BITS - inner.leading_zeros()).div_ceil(7) as usize };
        1 + digits + inner
    }
}
