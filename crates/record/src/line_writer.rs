//! The lines of a recording, compressed or not, to whatever takes bytes: a file, or the stream of an agent.

use super::{Header, SCHEMA_VERSION};
use serde::{Serialize, de::DeserializeOwned};
use std::collections::BTreeMap;
use std::io::{self, Write};
use vnettop_sample::{AgentReply, FactVisitor, Facts, Item};
use zstd::stream::raw::CParameter;
use zstd::stream::write::Encoder;

/// Bytes of text in a frame of a compressed recording: 10 ms to unpack. A reader that goes to a place unpacks the frame up to it;
/// longer frames would be hardly smaller.
const FRAME: usize = 8 << 20;
/// The facts that are written with the first sample even where there is nothing in them; the others are empty until a line says
/// otherwise.
const FROM_THE_FIRST: [&str; 4] = ["host", "topology", "links", "problems"];

/// Lines being written.
pub(super) struct LineWriter<W: Write> {
    to: LineSink<W>,
    /// The first sample has a line for every fact, so that whatever was read before means nothing.
    is_keyframe: bool,
    /// The line being written; kept for its room.
    line: Vec<u8>,
    /// Bytes of text in the frame that was begun.
    in_frame: usize,
    /// Bytes of the newest sample's line; 0 before the first one.
    sample: usize,
    /// The frame was begun with that known.
    is_fitted: bool,
}

enum LineSink<W: Write> {
    Plain(W),
    /// None after a frame that could not be ended.
    Zstd(Option<Encoder<'static, W>>),
}

impl<W: Write> LineWriter<W> {
    /// Begins with the first line, which is on its way when this returns.
    pub fn headed(to: W, is_compressed: bool, hosts: &[String]) -> io::Result<Self> {
        let to = if is_compressed { LineSink::Zstd(Some(frame(to, 0)?)) } else { LineSink::Plain(to) };
        let mut writer = Self { to, is_keyframe: false, line: Vec::new(), in_frame: 0, sample: 0, is_fitted: false };
        let (vnettop, hosts) = (env!("CARGO_PKG_VERSION").to_owned(), hosts.to_vec());
        writer.line(&Header { vnettop_recording: SCHEMA_VERSION, vnettop, hosts })?;
        writer.flush()?;
        Ok(writer)
    }

    /// Begins a piece that may stand anywhere in a recording: without the first line of one. What the lines go to compresses them.
    pub fn piece(to: W) -> Self {
        let to = LineSink::Plain(to);
        Self { to, is_keyframe: true, line: Vec::new(), in_frame: 0, sample: 0, is_fitted: true }
    }

    /// Bytes of text of the newest sample.
    pub fn sample_bytes(&self) -> usize {
        self.sample
    }

    pub fn is_compressed(&self) -> bool {
        matches!(self.to, LineSink::Zstd(_))
    }

    /// An item, and before a sample a line for each of its facts that is not among those written.
    pub fn item(&mut self, written: &mut Option<Facts>, item: &Item) -> io::Result<()> {
        if let Item::Sample(sample) = item {
            self.begin_frame_if_due()?;
            let are_first = written.is_none();
            let writer = &mut FactWriter { are_first, are_all_due: are_first && self.is_keyframe, out: self };
            written.get_or_insert_default().visit(&sample.facts, writer)?;
        }
        self.line(item)?;
        if matches!(item, Item::Sample(_)) {
            self.sample = self.line.len();
        }
        Ok(())
    }

    /// What an agent answers.
    pub fn reply(&mut self, reply: &AgentReply) -> io::Result<()> {
        self.line(&BTreeMap::from([("reply", reply)]))
    }

    /// The lines after it are this host's.
    pub fn from(&mut self, host: &str) -> io::Result<()> {
        self.line(&BTreeMap::from([("from", host)]))
    }

    /// Passes on what is still held back.
    pub fn flush(&mut self) -> io::Result<()> {
        match &mut self.to {
            LineSink::Plain(to) => to.flush(),
            LineSink::Zstd(frame) => frame.as_mut().map_or(Ok(()), Write::flush),
        }
    }

    /// What the lines go to; none after a frame that could not be ended.
    pub fn sink(&mut self) -> Option<&mut W> {
        match &mut self.to {
            LineSink::Plain(to) => Some(to),
            LineSink::Zstd(frame) => frame.as_mut().map(Encoder::get_mut),
        }
    }

    /// Ends the last frame.
    pub fn finish(self) -> io::Result<()> {
        self.end()?.map_or(Ok(()), |mut to| to.flush())
    }

    /// Ends the last frame, and gives what the lines went to; none after a frame that could not be ended.
    pub fn end(self) -> io::Result<Option<W>> {
        match self.to {
            LineSink::Plain(to) => Ok(Some(to)),
            LineSink::Zstd(frame) => frame.map(Encoder::finish).transpose(),
        }
    }

    fn line(&mut self, value: &impl Serialize) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, value)?;
        self.line.push(b'\n');
        self.in_frame += self.line.len();
        match &mut self.to {
            LineSink::Plain(to) => to.write_all(&self.line),
            LineSink::Zstd(frame) => {
                frame.as_mut().map_or(Err(io::ErrorKind::BrokenPipe.into()), |frame| frame.write_all(&self.line))
            }
        }
    }

    /// Ends the frame and begins another where it is long enough, and once it is known how long a sample is.
    fn begin_frame_if_due(&mut self) -> io::Result<()> {
        if (self.in_frame >= FRAME || self.sample > 0 && !self.is_fitted)
            && let LineSink::Zstd(ended) = &mut self.to
            && let Some(whole) = ended.take()
        {
            *ended = Some(frame(whole.finish()?, self.sample)?);
            (self.in_frame, self.is_fitted) = (0, true);
        }
        Ok(())
    }
}

/// A frame that begins here, for samples of about so many bytes of text; its checksum tells a reader of bytes that have changed. What a line has in
/// common with another one it has with the line before: zstd that looks back two lines and no further writes a third less than its
/// defaults, in a quarter of a millisecond a sample of 128 cores.
fn frame<W: Write>(to: W, sample: usize) -> io::Result<Encoder<'static, W>> {
    let mut frame = Encoder::new(to, 8)?;
    let window = (sample.max(1).ilog2() + 2).clamp(16, 21);
    for parameter in [CParameter::WindowLog(window), CParameter::MinMatch(6), CParameter::SearchLog(3)] {
        frame.set_parameter(parameter)?;
    }
    frame.include_checksum(true)?;
    Ok(frame)
}

/// Writes a line for each fact that is another than the one written last.
struct FactWriter<'a, W: Write> {
    out: &'a mut LineWriter<W>,
    are_first: bool,
    /// Even those in which there is nothing.
    are_all_due: bool,
}

impl<W: Write> FactVisitor for FactWriter<'_, W> {
    type Error = io::Error;

    fn fact<T>(&mut self, name: &str, was: &mut T, is: &T, _bytes: usize) -> io::Result<()>
    where
        T: Clone + PartialEq + Serialize + DeserializeOwned,
    {
        let is_due = was != is || self.are_all_due || self.are_first && FROM_THE_FIRST.contains(&name);
        was.clone_from(is);
        if is_due { self.out.line(&BTreeMap::from([(name, is)])) } else { Ok(()) }
    }
}
