//! The text of a recording, compressed or not, and the way to a place in it. A compressed recording is a row of frames that
//! are unpacked one by one, so a place far into it is reached from the start of its frame.

use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use zstd::stream::read::Decoder;

/// What a frame begins with.
pub(super) const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// What unpacking may look back, and so keep in memory: 8 MiB, as much as `zstd -19` asks for. This program asks for 2 MiB at most.
const WINDOW_LOG: u32 = 23;
/// zstd's words for a frame that asks for more.
const TOO_WIDE: &str = "Frame requires too much memory for decoding";

/// Where the bytes of a recording come from; what cannot be sought in is only read forward.
pub(super) trait ByteSource: Read + Seek + Send {}

impl<T: Read + Seek + Send> ByteSource for T {}

/// A place in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TextPlace {
    /// The frame that it is in.
    frame: Frame,
    /// Bytes of text before it.
    bytes: u64,
}

/// Where a frame begins; text that is not compressed has a frame of no bytes everywhere.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Frame {
    /// Bytes of the file before it.
    file_bytes: u64,
    /// Bytes of text before it.
    text_bytes: u64,
}

/// The text of a recording, from its start to its end.
pub(super) struct Text {
    /// None for a moment while a frame is changed for the next one, and after a failure in that.
    input: Option<TextInput>,
    frame: Frame,
    /// Bytes of text read so far.
    bytes: u64,
}

enum TextInput {
    Plain(CountedFile),
    Frame(BufReader<Decoder<'static, CountedFile>>),
}

impl Text {
    /// # Errors
    /// The first bytes cannot be read.
    pub fn open(bytes: impl ByteSource + 'static) -> io::Result<Self> {
        let mut file = CountedFile { inner: BufReader::new(Box::new(bytes)), bytes: 0 };
        let is_compressed = file.fill_buf()?.starts_with(&ZSTD_MAGIC);
        let input = if is_compressed { unpacked(file)? } else { TextInput::Plain(file) };
        Ok(Self { input: Some(input), frame: Frame::default(), bytes: 0 })
    }

    /// The place of the next byte.
    pub fn place(&self) -> TextPlace {
        let frame = match &self.input {
            Some(TextInput::Plain(_)) => Frame { file_bytes: self.bytes, text_bytes: self.bytes },
            _ => self.frame,
        };
        TextPlace { frame, bytes: self.bytes }
    }

    /// Goes to a place that this recording, opened before, has given.
    ///
    /// # Errors
    /// It cannot be read so far, or it is no file.
    pub fn go_to(&mut self, place: TextPlace) -> io::Result<()> {
        if place.frame != self.place().frame || place.bytes < self.bytes {
            self.input = Some(match self.input.take() {
                Some(TextInput::Plain(file)) => TextInput::Plain(file.at(place.frame.file_bytes)?),
                Some(TextInput::Frame(frame)) => unpacked(frame.into_inner().finish().at(place.frame.file_bytes)?)?,
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
            });
            (self.frame, self.bytes) = (place.frame, place.frame.text_bytes);
        }
        let missing = place.bytes.saturating_sub(self.bytes);
        io::copy(&mut self.take(missing), &mut io::sink()).map(|_| ())
    }

    /// Goes on to the next frame where one is at its end; false where there is none.
    fn next_frame(&mut self) -> io::Result<bool> {
        let Some(TextInput::Frame(frame)) = self.input.take_if(|input| matches!(input, TextInput::Frame(_))) else {
            return Ok(false);
        };
        let mut file = frame.into_inner().finish();
        let is_there = !file.fill_buf()?.is_empty();
        self.frame = Frame { file_bytes: file.bytes, text_bytes: self.bytes };
        self.input = Some(unpacked(file)?);
        Ok(is_there)
    }
}

impl Read for Text {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(to)?;
        self.consume(read);
        Ok(read)
    }
}

impl BufRead for Text {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while let Some(TextInput::Frame(frame)) = &mut self.input
            && frame.fill_buf().map_err(without_memory)?.is_empty()
            && self.next_frame()?
        {}
        match &mut self.input {
            Some(TextInput::Plain(file)) => file.fill_buf(),
            Some(TextInput::Frame(frame)) if !frame.buffer().is_empty() => frame.fill_buf(),
            _ => Ok(&[]),
        }
    }

    fn consume(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        match &mut self.input {
            Some(TextInput::Plain(file)) => file.consume(bytes),
            Some(TextInput::Frame(frame)) => frame.consume(bytes),
            None => {}
        }
    }
}

/// The frame that begins here.
fn unpacked(file: CountedFile) -> io::Result<TextInput> {
    let mut frame = Decoder::with_buffer(file)?.single_frame();
    frame.window_log_max(WINDOW_LOG)?;
    Ok(TextInput::Frame(BufReader::new(frame)))
}

/// The reason that a frame is refused for what it asks for, in words that say what to do; any other as it is.
fn without_memory(error: io::Error) -> io::Error {
    if error.get_ref().is_some_and(|reason| reason.to_string() == TOO_WIDE) {
        let sentence =
            "unpacking it would take more than 8 MiB of memory; compress it anew, as in: zstd -dc OLD | zstd -o NEW";
        return io::Error::new(io::ErrorKind::OutOfMemory, sentence);
    }
    error
}

/// A file, and how much of it was read.
struct CountedFile {
    inner: BufReader<Box<dyn ByteSource>>,
    bytes: u64,
}

impl CountedFile {
    fn at(mut self, bytes: u64) -> io::Result<Self> {
        self.bytes = self.inner.seek(SeekFrom::Start(bytes))?;
        Ok(self)
    }
}

impl Read for CountedFile {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(to)?;
        self.bytes += read as u64;
        Ok(read)
    }
}

impl BufRead for CountedFile {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        self.inner.consume(bytes);
    }
}
