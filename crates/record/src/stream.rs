//! The lines of a recording as a stream between two programs: what an agent writes, in pieces that leave at once, and what the
//! other end makes of the bytes. There they are outside input: any bytes give items or a sentence, never a panic, and no more
//! memory than the longest line.

use super::SCHEMA_VERSION;
use super::frames::ZSTD_MAGIC;
use super::line::RecordLine;
use super::line_reader::{self, HeaderError, LONGEST_LINE, LineError, LineReader};
use super::line_writer::LineWriter;
use std::io::{self, Write};
use vnettop_sample::text;
use vnettop_sample::{AgentReply, Facts, Item};
use zstd::stream::write::Decoder;

/// The recordings of this program look back 2 MB at most: a stream that wants more memory for that is another's.
const WINDOW_LOG: u32 = 22;
/// An answer says one sentence a thread.
const MOST_LINES: usize = 1024;
const LONGEST_SENTENCE: usize = 1024;
/// What a piece of a stream may become, bytes: a sample in which nothing has changed is a hundredth or less of its text.
const MOST_OF_PIECE: usize = 8 << 20;
/// Bytes that are unpacked at once.
pub const STREAM_PIECE: usize = 1024;
/// Bytes quoted of input that is no stream.
const QUOTED: usize = 60;

/// The writing end.
pub struct StreamWriter {
    out: LineWriter<Vec<u8>>,
    facts: Option<Facts>,
}

impl StreamWriter {
    /// Begins a stream; its first line waits to be taken.
    ///
    /// # Errors
    /// There is no memory.
    pub fn new() -> io::Result<Self> {
        Ok(Self { out: LineWriter::headed(Vec::new(), true, &[])?, facts: None })
    }

    /// Appends an item.
    ///
    /// # Errors
    /// There is no memory.
    pub fn item(&mut self, item: &Item) -> io::Result<()> {
        self.out.item(&mut self.facts, item)
    }

    /// Appends an answer.
    ///
    /// # Errors
    /// There is no memory.
    pub fn reply(&mut self, reply: &AgentReply) -> io::Result<()> {
        self.out.reply(reply)
    }

    /// Takes the bytes of everything appended since the last call, whole: their reader has all of it.
    ///
    /// # Errors
    /// There is no memory.
    pub fn take(&mut self) -> io::Result<Vec<u8>> {
        self.out.flush()?;
        Ok(self.out.sink().map(std::mem::take).unwrap_or_default())
    }
}

/// What comes of a stream.
#[derive(Debug)]
pub enum StreamItem {
    /// Its first line was read: the version of vnettop that writes it.
    Begun(String),
    /// An item.
    Item(Item),
    /// What an agent answers.
    Reply(AgentReply),
}

/// Why a stream cannot be read on.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// It is something else from the start.
    #[error("it wrote something else first (a startup file of its shell?): \"{0}\"")]
    Foreign(String),
    /// It is of another version.
    #[error("its vnettop writes schema version {0}, this one reads {SCHEMA_VERSION}")]
    Version(u32),
    /// It cannot be unpacked, or a line of it cannot be used.
    #[error("its stream is damaged: {0}")]
    Damaged(String),
}

/// The reading end: bytes in as they come, lines out.
pub struct StreamReader {
    text: Unpacker,
    reader: LineReader,
    begun: bool,
}

enum Unpacker {
    /// Too few bytes came to know.
    Unknown(Vec<u8>),
    Plain(UnpackedText),
    Zstd(Box<Decoder<'static, UnpackedText>>),
}

/// What was unpacked and not read, as much as a line may have.
#[derive(Default)]
struct UnpackedText {
    bytes: Vec<u8>,
    /// Bytes already searched without an end of line.
    searched: usize,
    /// What the piece that is unpacked now has become.
    of_piece: usize,
}

impl Write for UnpackedText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.of_piece += bytes.len();
        if self.bytes.len() + bytes.len() > LONGEST_LINE || self.of_piece > MOST_OF_PIECE {
            return Err(io::Error::other("it is too long"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Default for StreamReader {
    fn default() -> Self {
        Self { text: Unpacker::Unknown(Vec::new()), reader: LineReader::default(), begun: false }
    }
}

impl StreamReader {
    /// Takes the next bytes; hands over what is whole now. What came before an error is handed over.
    ///
    /// # Errors
    /// What makes everything after it worth nothing.
    pub fn take(&mut self, bytes: &[u8], mut each: impl FnMut(StreamItem)) -> Result<(), StreamError> {
        // A few bytes may become a great many: what they are is read before the next ones are unpacked.
        for piece in bytes.chunks(STREAM_PIECE) {
            self.unpack(piece)?;
            self.lines(&mut each)?;
        }
        Ok(())
    }

    /// What came before the stream had a first line, as text: it is something else where that never comes.
    #[must_use]
    pub fn quoted(&self) -> Option<String> {
        let came = match &self.text {
            Unpacker::Unknown(came) | Unpacker::Plain(UnpackedText { bytes: came, .. }) if !self.begun => came,
            _ => return None,
        };
        Some(quoted(came)).filter(|quoted| !quoted.is_empty())
    }

    fn unpack(&mut self, bytes: &[u8]) -> Result<(), StreamError> {
        let damaged = |error: io::Error| StreamError::Damaged(error.to_string());
        match &mut self.text {
            Unpacker::Unknown(came) => {
                came.extend_from_slice(bytes);
                if came.len() < ZSTD_MAGIC.len() {
                    return Ok(());
                }
                let came = std::mem::take(came);
                self.text = if came.starts_with(&ZSTD_MAGIC) {
                    let mut decoder = Decoder::new(UnpackedText::default()).map_err(damaged)?;
                    decoder.window_log_max(WINDOW_LOG).map_err(damaged)?;
                    Unpacker::Zstd(Box::new(decoder))
                } else {
                    Unpacker::Plain(UnpackedText::default())
                };
                self.unpack(&came)
            }
            Unpacker::Plain(text) => text.write_all(bytes).map_err(damaged),
            Unpacker::Zstd(decoder) => decoder.write_all(bytes).and_then(|()| decoder.flush()).map_err(damaged),
        }
    }

    /// Reads every line that is whole.
    fn lines(&mut self, each: &mut impl FnMut(StreamItem)) -> Result<(), StreamError> {
        let text = match &mut self.text {
            Unpacker::Unknown(_) => return Ok(()),
            Unpacker::Plain(text) => text,
            Unpacker::Zstd(decoder) => decoder.get_mut(),
        };
        let UnpackedText { bytes: text, searched, of_piece } = text;
        *of_piece = 0;
        let new = text.get(*searched..).unwrap_or_default();
        let end = new.iter().rposition(|&byte| byte == b'\n').map(|end| *searched + end);
        *searched = text.len();
        let Some(end) = end else {
            // A first line is short: one that does not end is another program's.
            return if self.begun || text.len() < 4096 { Ok(()) } else { Err(StreamError::Foreign(quoted(text))) };
        };
        let whole: Vec<u8> = text.drain(..=end).collect();
        *searched = text.len();
        for line in whole.split_inclusive(|&byte| byte == b'\n') {
            if !self.begun {
                let (_, version) = line_reader::header(line).map_err(|error| match error {
                    HeaderError::Foreign => StreamError::Foreign(quoted(line)),
                    HeaderError::Version(version) => StreamError::Version(version),
                })?;
                self.begun = true;
                each(StreamItem::Begun(version));
                continue;
            }
            match self.reader.read(&mut line.to_vec()) {
                Ok(RecordLine::Item(item)) => each(StreamItem::Item(item)),
                Ok(RecordLine::Reply(reply)) => each(StreamItem::Reply(bounded(reply))),
                Ok(RecordLine::Fact | RecordLine::From(_)) => {}
                Err(LineError::Unreadable(why) | LineError::Impossible(why)) => return Err(StreamError::Damaged(why)),
            }
        }
        Ok(())
    }
}

/// As much of an answer as a screen has room for.
fn bounded(mut reply: AgentReply) -> AgentReply {
    reply.lines.truncate(MOST_LINES);
    for line in reply.lines.iter_mut().filter(|line| line.text.len() > LONGEST_SENTENCE) {
        line.text = line.text.chars().take(LONGEST_SENTENCE / 4).collect();
    }
    reply
}

/// The beginning of what is no stream, as one harmless line.
fn quoted(bytes: &[u8]) -> String {
    let line = bytes.split(|byte| matches!(byte, b'\n' | b'\r')).find(|line| !line.is_empty()).unwrap_or_default();
    let text: String = text::clean(&line[..line.len().min(4 * QUOTED)]).chars().take(QUOTED).collect();
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use vnettop_sample::{Event, OutcomeLine, Sample};

    fn sample(at_ns: u64) -> Item {
        let mut sample = Sample { at_ns, ..Sample::default() };
        sample.facts_mut().host =
            std::sync::Arc::new(vnettop_sample::Host { name: "kp2".to_owned(), ..Default::default() });
        Item::Sample(Box::new(sample))
    }

    fn read(bytes: &[u8], piece: usize) -> (Vec<StreamItem>, Result<(), StreamError>) {
        let (mut reader, mut items) = (StreamReader::default(), Vec::new());
        let ended = bytes.chunks(piece).try_for_each(|piece| reader.take(piece, |item| items.push(item)));
        (items, ended)
    }

    #[test]
    fn what_is_taken_is_whole_at_the_other_end_however_it_is_cut() {
        let mut writer = StreamWriter::new().expect("memory");
        let mut reader = StreamReader::default();
        let mut came = Vec::new();
        for tick in 0..5 {
            writer.item(&sample(tick)).expect("memory");
            writer.item(&Item::Event(Event::Mark { at_ns: tick })).expect("memory");
            let lines = vec![OutcomeLine { warning: false, text: "pinned".to_owned() }];
            writer.reply(&AgentReply { lines, pins: 1, ..AgentReply::default() }).expect("memory");
            let bytes = writer.take().expect("memory");
            for byte in &bytes {
                reader.take(std::slice::from_ref(byte), |item| came.push(item)).expect("it is a stream");
            }
            // Frames end and begin meanwhile: nothing of this tick waits for the next one.
            assert_eq!(came.len(), 1 + 3 * (usize::try_from(tick).expect("small") + 1), "all of tick {tick} is there");
        }
        assert!(matches!(&came[0], StreamItem::Begun(version) if version == env!("CARGO_PKG_VERSION")));
        let StreamItem::Item(Item::Sample(first)) = &came[1] else { panic!("a sample: {:?}", came[1]) };
        assert_eq!(first.facts.host.name, "kp2", "a sample has its facts");
    }

    #[test]
    fn what_is_no_stream_is_quoted_and_another_version_named() {
        let (items, ended) = read(b"Welcome to \x1b[31mkp2\r\nmore", 7);
        assert!(items.is_empty());
        assert_eq!(
            ended.expect_err("no stream").to_string(),
            "it wrote something else first (a startup file of its shell?): \"Welcome to ?[31mkp2\""
        );
        let (_, ended) = read(b"{\"vnettop_recording\":0,\"vnettop\":\"0.0.1\"}\n", 5);
        assert_eq!(ended.expect_err("too old").to_string(), "its vnettop writes schema version 0, this one reads 1");
        let (_, ended) = read(&[b'x'; 5000], 100);
        assert!(matches!(ended, Err(StreamError::Foreign(_))), "a first line that does not end");
        let mut reader = StreamReader::default();
        reader.take(b"bash: vnettop: command not found", |_| ()).expect("it may go on");
        assert_eq!(reader.quoted().as_deref(), Some("bash: vnettop: command not found"));
    }

    #[test]
    fn damage_gives_a_sentence_and_takes_no_memory() {
        let mut writer = StreamWriter::new().expect("memory");
        for tick in 0..3 {
            writer.item(&sample(tick)).expect("memory");
        }
        let bytes = writer.take().expect("memory");
        for at in 4..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0x55;
            let _items_or_a_sentence = read(&bytes, 64);
        }
        let bomb = zstd::encode_all(&*vec![b' '; LONGEST_LINE + 4096], 3).expect("memory");
        let (_, ended) = read(&bomb, 4096);
        assert!(matches!(ended, Err(StreamError::Foreign(_) | StreamError::Damaged(_))), "a line without an end");
    }
}
