//! The last minutes of a recording, in memory: a row of pieces that are compressed already, each of which begins with everything that
//! holds there, so that the oldest one can be dropped and the others are a recording.

use super::line_writer::LineWriter;
use super::piece::{LEVEL, PieceRoom, PieceSink};
use super::standing::StandingEvents;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::Arc;
use vnettop_sample::{Event, Facts, Item, TriggerKind};

/// A piece is ended after this time, ns: what is kept is at most so much longer than asked for.
const PIECE_NS: u64 = 5_000_000_000;
/// Pieces that there are at least when the bytes decide.
const LEAST_PIECES: usize = 12;
/// What compressing takes of memory beside the pieces: its window, its tables, the piece that grows.
const ENCODER_BYTES: usize = 3 << 19;

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingBounds {
    /// The time up to the newest sample, ns.
    pub keep_ns: u64,
    /// Bytes of memory, with what compressing takes; where they do not hold that time, less is kept.
    pub most_bytes: usize,
    /// Rows of links a second: where there are more, nothing is kept. A row takes half a microsecond of CPU time.
    pub most_rows_per_s: u64,
}

/// What is kept.
pub struct RecordingRing {
    bounds: RingBounds,
    /// Oldest first.
    pieces: VecDeque<RingPiece>,
    open: Option<OpenPiece>,
    room: PieceRoom,
    /// What has happened up to now and still holds.
    standing: StandingEvents,
    /// The newest sample, monotonic ns.
    newest_ns: u64,
    /// Bytes of text that a sample has.
    sample: usize,
    /// The last samples had too many rows.
    is_too_much: bool,
    /// The bytes have decided what was dropped last.
    is_shortened: bool,
}

#[derive(Clone)]
struct RingPiece {
    from_ns: u64,
    to_ns: u64,
    /// What held before it.
    standing: StandingEvents,
    bytes: Arc<[u8]>,
}

/// The piece that grows.
struct OpenPiece {
    from_ns: u64,
    standing: StandingEvents,
    out: LineWriter<PieceSink>,
    /// The facts written in it; none before its first sample.
    facts: Option<Facts>,
}

impl OpenPiece {
    fn len(&mut self) -> usize {
        self.out.sink().map_or(0, |sink| sink.writer().len())
    }
}

impl RecordingRing {
    /// Keeps nothing yet.
    #[must_use]
    pub fn new(bounds: RingBounds) -> Self {
        Self {
            bounds,
            pieces: VecDeque::new(),
            open: None,
            room: PieceRoom::default(),
            standing: StandingEvents::default(),
            newest_ns: 0,
            sample: 0,
            is_too_much: false,
            is_shortened: false,
        }
    }

    /// Nothing is kept, because the samples have too many rows of links a second.
    #[must_use]
    pub fn is_too_much(&self) -> bool {
        self.is_too_much
    }

    /// How much is kept at most.
    #[must_use]
    pub fn bounds(&self) -> RingBounds {
        self.bounds
    }

    /// Takes an item in, and drops what is too old.
    ///
    /// # Errors
    /// There is no memory.
    pub fn add(&mut self, item: &Item) -> io::Result<()> {
        if let Item::Sample(sample) = item {
            let at_ns = sample.at_ns;
            // A scrape may ask for one between two ticks.
            let since_ns = at_ns.saturating_sub(self.newest_ns).max(sample.own.interval_ns).max(1);
            let rows_per_s = (sample.counters.len() as u64).saturating_mul(1_000_000_000) / since_ns;
            self.is_too_much = self.newest_ns > 0 && rows_per_s > self.bounds.most_rows_per_s;
            if self.is_too_much {
                self.pieces.clear();
                self.open = None;
                self.newest_ns = at_ns;
                return Ok(());
            }
            let most = self.bounds.most_bytes.saturating_sub(ENCODER_BYTES) / LEAST_PIECES;
            let is_due = |open: &mut OpenPiece| at_ns.saturating_sub(open.from_ns) >= PIECE_NS || open.len() >= most;
            if self.open.as_mut().is_some_and(is_due) {
                self.end_piece()?;
            }
            self.newest_ns = at_ns;
        }
        if let Item::Event(event) = item
            && self.is_too_much
        {
            self.standing.pass(event.clone());
            return Ok(());
        }
        let open = match &mut self.open {
            Some(open) => open,
            none => {
                let (from_ns, standing) = (self.newest_ns, self.standing.clone());
                none.insert(OpenPiece { from_ns, standing, out: self.room.begin(self.sample)?, facts: None })
            }
        };
        open.out.item(&mut open.facts, item)?;
        self.sample = open.out.sample_bytes();
        if let Item::Event(event) = item {
            self.standing.pass(event.clone());
        }
        self.drop_oldest();
        Ok(())
    }

    /// Bytes that the pieces hold.
    #[must_use]
    pub fn bytes(&mut self) -> usize {
        let open = self.open.as_mut().map_or(0, OpenPiece::len);
        self.pieces.iter().map(|piece| piece.bytes.len()).sum::<usize>() + open
    }

    /// What is kept since this moment, monotonic ns, and at most a piece before it; none before the first sample. Ends the piece that
    /// grows, so that what is given back is whole whatever comes later.
    ///
    /// # Errors
    /// There is no memory.
    pub fn kept(&mut self, since_ns: u64) -> io::Result<Option<KeptRecording>> {
        self.end_piece()?;
        // Between two pieces there is a tick: the one before it reaches back far enough.
        let before = self.pieces.partition_point(|piece| piece.from_ns <= since_ns).saturating_sub(1);
        let pieces: Vec<RingPiece> = self.pieces.range(before..).cloned().collect();
        let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else { return Ok(None) };
        let (from_ns, to_ns) = (first.from_ns, last.to_ns);
        let is_shortened = self.is_shortened && self.pieces.front().is_some_and(|oldest| oldest.from_ns == from_ns);
        Ok(Some(KeptRecording { from_ns, to_ns, is_shortened, pieces, because: None }))
    }

    fn end_piece(&mut self) -> io::Result<()> {
        let Some(piece) = self.open.take() else { return Ok(()) };
        let (from_ns, to_ns, standing) = (piece.from_ns, self.newest_ns, piece.standing);
        let bytes = self.room.end(piece.out)?;
        self.pieces.push_back(RingPiece { from_ns, to_ns, standing, bytes });
        Ok(())
    }

    fn drop_oldest(&mut self) {
        let most = self.bounds.most_bytes.saturating_sub(ENCODER_BYTES);
        let mut bytes = self.bytes();
        while let Some(oldest) = self.pieces.front() {
            let is_old = self.newest_ns.saturating_sub(oldest.to_ns) > self.bounds.keep_ns;
            if !is_old && bytes <= most {
                return;
            }
            self.is_shortened = !is_old;
            bytes -= oldest.bytes.len();
            self.pieces.pop_front();
        }
    }
}

/// A part of a recording that was kept in memory: whole, whatever is kept later.
#[derive(Clone)]
pub struct KeptRecording {
    from_ns: u64,
    to_ns: u64,
    is_shortened: bool,
    pieces: Vec<RingPiece>,
    /// Why it is saved; none where somebody asks for it.
    because: Option<Event>,
}

impl KeptRecording {
    /// The same, which says why it is saved.
    #[must_use]
    pub fn because(mut self, trigger: Option<TriggerKind>, at_ns: u64) -> Self {
        self.because = Some(Event::Saved { at_ns, trigger });
        self
    }

    /// Time from its first sample to its last one, ns.
    #[must_use]
    pub fn length_ns(&self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }

    /// Its first sample, monotonic ns.
    #[must_use]
    pub fn from_ns(&self) -> u64 {
        self.from_ns
    }

    /// It is shorter than the time that is to be kept, because that does not fit into the bytes.
    #[must_use]
    pub fn is_shortened(&self) -> bool {
        self.is_shortened
    }

    /// Bytes of its pieces: about as many as its file has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pieces.iter().map(|piece| piece.bytes.len()).sum()
    }

    /// It has no byte.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes it as a recording of one machine.
    ///
    /// # Errors
    /// What takes the bytes.
    pub fn write_to(&self, to: &mut impl Write) -> io::Result<()> {
        to.write_all(&head(&[])?)?;
        self.write_pieces(to)
    }

    /// Writes those of several hosts, each with its name, as one recording of them.
    ///
    /// # Errors
    /// What takes the bytes.
    pub fn write_hosts(hosts: &[(String, Self)], to: &mut impl Write) -> io::Result<()> {
        let names: Vec<String> = hosts.iter().map(|(name, _)| name.clone()).collect();
        to.write_all(&head(&names)?)?;
        for (name, kept) in hosts {
            let mut from = LineWriter::piece(Vec::new());
            from.from(name)?;
            to.write_all(&frame_of(from)?)?;
            kept.write_pieces(to)?;
        }
        Ok(())
    }

    fn write_pieces(&self, to: &mut impl Write) -> io::Result<()> {
        let mut standing = LineWriter::piece(Vec::new());
        let before = self.pieces.first().map(|piece| piece.standing.clone()).unwrap_or_default();
        let because = self.because.clone().map(Item::Event);
        before.events().chain(because).try_for_each(|event| standing.item(&mut None, &event))?;
        to.write_all(&frame_of(standing)?)?;
        self.pieces.iter().try_for_each(|piece| to.write_all(&piece.bytes))
    }
}

/// The first line of a recording of these hosts, as a frame.
fn head(hosts: &[String]) -> io::Result<Vec<u8>> {
    frame_of(LineWriter::headed(Vec::new(), false, hosts)?)
}

/// A few lines as a frame: zstd is told how long they are, and takes no more memory than they do.
fn frame_of(lines: LineWriter<Vec<u8>>) -> io::Result<Vec<u8>> {
    zstd::bulk::compress(&lines.end()?.unwrap_or_default(), LEVEL)
}

#[cfg(test)]
mod tests;
