//! A piece of a recording that is compressed into memory, one after the other with the same room: most of what is kept is thrown away, so
//! it is to take little time, and no memory that comes and goes.

use super::line_writer::LineWriter;
use std::io;
use std::sync::Arc;
use zstd::stream::raw::{CParameter, Encoder, Operation};
use zstd::stream::zio::Writer;

/// Where the lines of a piece go.
pub(super) type PieceSink = Writer<Vec<u8>, Encoder<'static>>;

/// zstd's first level: half the time of what a file is compressed with, and a tenth larger, as long as two lines are within its window.
pub(super) const LEVEL: i32 = 1;

/// What one piece leaves for the next one.
#[derive(Default)]
pub(super) struct PieceRoom(Option<(Vec<u8>, Encoder<'static>)>);

impl PieceRoom {
    /// Begins a piece, of samples of about so many bytes of text.
    pub fn begin(&mut self, sample: usize) -> io::Result<LineWriter<PieceSink>> {
        let (bytes, mut encoder) = match self.0.take() {
            Some(room) => room,
            None => (Vec::new(), Encoder::new(LEVEL)?),
        };
        encoder.reinit()?;
        let window = (sample.max(1).ilog2() + 2).clamp(18, 21);
        encoder.set_parameter(CParameter::WindowLog(window))?;
        encoder.set_parameter(CParameter::ChecksumFlag(true))?;
        Ok(LineWriter::piece(Writer::new(bytes, encoder)))
    }

    /// Ends it: its bytes.
    pub fn end(&mut self, piece: LineWriter<PieceSink>) -> io::Result<Arc<[u8]>> {
        let Some(mut sink) = piece.end()? else { return Ok(Arc::from([])) };
        sink.finish()?;
        let (mut bytes, encoder) = sink.into_inner();
        let whole = Arc::from(bytes.as_slice());
        bytes.clear();
        self.0 = Some((bytes, encoder));
        Ok(whole)
    }
}
