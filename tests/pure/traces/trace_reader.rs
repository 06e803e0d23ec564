//! Traces of Perfetto, read: only the fields that are written, and every rule that holds of a whole trace.

use std::collections::BTreeMap;

/// A slice of a track.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadSlice {
    pub from_ns: u64,
    pub to_ns: u64,
    pub name: String,
}

/// A track with all that lies on it.
#[derive(Debug, Default)]
pub struct ReadTrack {
    pub number: u64,
    pub below: Option<u64>,
    pub name: String,
    /// Process and number, of a thread's.
    pub thread: Option<(u32, u32)>,
    pub slices: Vec<ReadSlice>,
    pub instants: Vec<(u64, String)>,
    pub values: Vec<(u64, f64)>,
    open: Option<(u64, String)>,
    last_ns: u64,
}

impl ReadTrack {
    /// The value of a counter at a moment.
    pub fn value_at(&self, at_ns: u64) -> Option<f64> {
        let after = self.values.partition_point(|(from_ns, _)| *from_ns <= at_ns);
        self.values[..after].last().map(|(_, value)| *value)
    }

    /// The times of everything on it.
    pub fn times(&self) -> impl Iterator<Item = u64> {
        let slices = self.slices.iter().flat_map(|slice| [slice.from_ns, slice.to_ns]);
        slices.chain(self.instants.iter().map(|one| one.0)).chain(self.values.iter().map(|one| one.0))
    }
}

/// A field's number with what it holds.
enum Read<'a> {
    Number(u64),
    Double(f64),
    Bytes(&'a [u8]),
}

impl Read<'_> {
    fn number(&self) -> u64 {
        if let Self::Number(number) = self { *number } else { panic!("it is a number") }
    }

    fn bytes(&self) -> &[u8] {
        if let Self::Bytes(bytes) = self { bytes } else { panic!("it has a length") }
    }

    fn text(&self) -> String {
        String::from_utf8(self.bytes().to_vec()).expect("UTF-8")
    }
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first().expect("it goes on");
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return value;
        }
    }
    panic!("no number is longer than ten bytes")
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Read<'_>)> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let read = match key & 7 {
            0 => Read::Number(varint(&mut bytes)),
            1 => {
                let (double, rest) = bytes.split_first_chunk().expect("eight bytes");
                bytes = rest;
                Read::Double(f64::from_le_bytes(*double))
            }
            2 => {
                let length = usize::try_from(varint(&mut bytes)).expect("short");
                let (inner, rest) = bytes.split_at(length);
                bytes = rest;
                Read::Bytes(inner)
            }
            other => panic!("no field is written as {other}"),
        };
        all.push((key >> 3, read));
    }
    all
}

fn of<'a, 'b>(all: &'b [(u64, Read<'a>)], field: u64) -> Option<&'b Read<'a>> {
    all.iter().find(|(number, _)| *number == field).map(|(_, read)| read)
}

/// The tracks of a trace, by number.
pub fn read(file: &[u8]) -> BTreeMap<u64, ReadTrack> {
    let (mut tracks, mut clocks) = (BTreeMap::new(), 0);
    for (field, packet) in fields(file) {
        assert_eq!(field, 1, "a trace is made of packets");
        let packet = fields(packet.bytes());
        clocks += usize::from(of(&packet, 6).is_some());
        if let Some(descriptor) = of(&packet, 60) {
            let track = described(&fields(descriptor.bytes()));
            assert!(track.below.is_none_or(|below| tracks.contains_key(&below)), "after the one it is below");
            assert!(tracks.insert(track.number, track).is_none(), "a track is described once");
        }
        if let Some(event) = of(&packet, 11) {
            assert_eq!(of(&packet, 58).map(Read::number), Some(3), "CLOCK_MONOTONIC");
            let at_ns = of(&packet, 8).expect("a time").number();
            let event = fields(event.bytes());
            let track = tracks.get_mut(&of(&event, 11).expect("a track").number()).expect("it is described before");
            take(track, at_ns, &event);
        }
    }
    assert_eq!(clocks, 1, "one packet names the clock");
    assert!(tracks.values().all(|track| track.open.is_none()), "every slice ends");
    tracks
}

fn described(descriptor: &[(u64, Read<'_>)]) -> ReadTrack {
    let mut track = ReadTrack {
        number: of(descriptor, 1).expect("a number").number(),
        below: of(descriptor, 5).map(Read::number),
        name: of(descriptor, 2).map_or_else(String::new, Read::text),
        ..ReadTrack::default()
    };
    if let Some(process) = of(descriptor, 3) {
        track.name = of(&fields(process.bytes()), 6).expect("a name").text();
    }
    if let Some(thread) = of(descriptor, 4) {
        let thread = fields(thread.bytes());
        let number = |field| u32::try_from(of(&thread, field).expect("a number").number()).expect("32 bits");
        track.thread = Some((number(1), number(2)));
        track.name = of(&thread, 5).expect("a name").text();
    }
    track
}

fn take(track: &mut ReadTrack, at_ns: u64, event: &[(u64, Read<'_>)]) {
    assert!(track.last_ns <= at_ns, "times rise on {}: {}, then {at_ns}", track.name, track.last_ns);
    track.last_ns = at_ns;
    let name = || of(event, 23).expect("a name").text();
    match of(event, 9).expect("a type").number() {
        1 => assert!(track.open.replace((at_ns, name())).is_none(), "slices of {} overlap", track.name),
        2 => {
            let (from_ns, name) = track.open.take().expect("what ends has begun");
            track.slices.push(ReadSlice { from_ns, to_ns: at_ns, name });
        }
        3 => track.instants.push((at_ns, name())),
        4 => {
            let Some(Read::Double(value)) = of(event, 44) else { panic!("a counter has a value") };
            track.values.push((at_ns, *value));
        }
        other => panic!("no event is of type {other}"),
    }
}
