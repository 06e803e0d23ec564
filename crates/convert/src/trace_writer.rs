//! A trace as Perfetto reads it (`perfetto/protos/perfetto/trace`): packets one after the other, each with its time on
//! `CLOCK_MONOTONIC`. What stands beside what is said by tracks: slices, instants and counters each lie on one.

use super::protobuf::ProtobufMessage;
use std::io::{self, Write};

/// `BUILTIN_CLOCK_REALTIME` and `BUILTIN_CLOCK_MONOTONIC`.
const REALTIME: u64 = 1;
const MONOTONIC: u64 = 3;
/// `TrackEvent.Type`.
const SLICE_BEGIN: u64 = 1;
const SLICE_END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;
/// `TrackDescriptor.ChildTracksOrdering.EXPLICIT` and `SiblingMergeBehavior.NONE`.
const EXPLICIT: u64 = 3;
const NOT_MERGED: u64 = 2;
/// The sequence of what lies on no track; those of tracks come after it.
const CLOCKS: u64 = 1;
/// Where the numbers of our tracks begin ("vnet"): a trace may be put behind another one in the same file.
const FIRST_TRACK: u64 = 0x766e_6574 << 20;

/// The number of a track. Each has a sequence of packets of its own (`trusted_packet_sequence_id`), in which times rise.
pub type TrackId = u64;

/// What a track is.
#[derive(Debug, Clone, Copy)]
pub enum TrackKind<'a> {
    /// Of slices and instants, or a heading for others.
    Named(&'a str),
    /// A process, by number and name: the same track as in a trace of the kernel's.
    Process(u32, &'a str),
    /// One of its threads, by process, number and name.
    Thread(u32, u32, &'a str),
    /// A counter: name and unit.
    Counter(&'a str, &'a str),
}

/// A figure or text beside an event.
#[derive(Debug, Clone, PartialEq)]
pub enum Annotated {
    /// A whole number.
    Whole(u64),
    /// A number.
    Real(f64),
    /// A text.
    Text(String),
}

/// Figures and texts beside an event, by name.
pub type Annotations<'a> = &'a [(&'a str, Annotated)];

/// Writes a trace.
#[derive(Debug)]
pub struct TraceWriter<W> {
    out: W,
    packet: ProtobufMessage,
    tracks: u64,
}

impl<W: Write> TraceWriter<W> {
    pub fn new(out: W) -> Self {
        Self { out, packet: ProtobufMessage::default(), tracks: CLOCKS }
    }

    /// Says which clock the times are of, and what it showed at a time of day: monotonic ns, milliseconds since 1970.
    pub fn clocks(&mut self, at_ns: u64, wall_ms: u64) -> io::Result<()> {
        self.write(|packet| {
            packet.number(10, CLOCKS);
            packet.message(6, |snapshot| {
                for (clock, shows_ns) in [(MONOTONIC, at_ns), (REALTIME, wall_ms.saturating_mul(1_000_000))] {
                    snapshot.message(1, |one| {
                        one.number(1, clock).number(2, shows_ns);
                    });
                }
                snapshot.number(2, MONOTONIC);
            });
        })
    }

    /// A new track below another one.
    pub fn track(&mut self, below: Option<TrackId>, kind: TrackKind<'_>) -> io::Result<TrackId> {
        self.tracks += 1;
        let (track, rank) = (FIRST_TRACK + self.tracks, self.tracks);
        self.write(|packet| {
            packet.number(10, rank);
            packet.message(60, |descriptor| {
                descriptor.number(1, track);
                if let Some(below) = below {
                    descriptor.number(5, below);
                }
                match kind {
                    TrackKind::Named(name) => {
                        descriptor.text(2, name);
                    }
                    TrackKind::Process(pid, name) => {
                        descriptor.message(3, |process| {
                            process.number(1, pid.into()).text(6, name);
                        });
                    }
                    TrackKind::Thread(pid, tid, name) => {
                        descriptor.message(4, |thread| {
                            thread.number(1, pid.into()).number(2, tid.into()).text(5, name);
                        });
                    }
                    TrackKind::Counter(name, unit) => {
                        descriptor.text(2, name).message(8, |counter| {
                            counter.text(6, unit);
                        });
                    }
                }
                // In the order in which they were made.
                descriptor.number(11, EXPLICIT).number(12, rank).number(15, NOT_MERGED);
            });
        })?;
        Ok(track)
    }

    /// A slice begins.
    pub fn begin(&mut self, on: TrackId, at_ns: u64, name: &str, beside: Annotations<'_>) -> io::Result<()> {
        self.event(on, at_ns, SLICE_BEGIN, |event| {
            event.text(23, name);
            annotate(event, beside);
        })
    }

    /// The slice ends that began last there.
    pub fn end(&mut self, on: TrackId, at_ns: u64) -> io::Result<()> {
        self.event(on, at_ns, SLICE_END, |_| {})
    }

    /// Something happens.
    pub fn instant(&mut self, on: TrackId, at_ns: u64, name: &str, beside: Annotations<'_>) -> io::Result<()> {
        self.event(on, at_ns, INSTANT, |event| {
            event.text(23, name);
            annotate(event, beside);
        })
    }

    /// The value of a counter from then on.
    pub fn count(&mut self, on: TrackId, at_ns: u64, value: f64) -> io::Result<()> {
        self.event(on, at_ns, COUNTER, |event| {
            event.double(44, value);
        })
    }

    /// Hands over what was written to where it goes.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn event(
        &mut self,
        on: TrackId,
        at_ns: u64,
        kind: u64,
        write: impl FnOnce(&mut ProtobufMessage),
    ) -> io::Result<()> {
        self.write(|packet| {
            packet.number(8, at_ns).number(58, MONOTONIC).number(10, on - FIRST_TRACK);
            packet.message(11, |event| {
                event.number(9, kind).number(11, on);
                write(event);
            });
        })
    }

    /// A packet: field 1 of the whole trace.
    fn write(&mut self, write: impl FnOnce(&mut ProtobufMessage)) -> io::Result<()> {
        self.packet.clear();
        self.packet.message(1, write);
        self.out.write_all(self.packet.bytes())
    }
}

fn annotate(event: &mut ProtobufMessage, beside: Annotations<'_>) {
    for (name, value) in beside {
        event.message(4, |one| {
            one.text(10, name);
            match value {
                Annotated::Whole(value) => one.number(3, *value),
                Annotated::Real(value) => one.double(5, *value),
                Annotated::Text(text) => one.text(6, text),
            };
        });
    }
}
