//! Netlink framing: messages in a datagram, attributes in a message, requests to send. Every byte is treated as
//! hostile: what does not fit ends the walk, nothing panics. It knows no message's meaning.

pub use netlink_packet_core::{NLA_F_NESTED, NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP as DUMP, NLM_F_EXCL};
use netlink_packet_core::{NLM_F_REQUEST, NlasIterator};

/// `struct nlmsghdr`, bytes.
const HEADER: usize = 16;

/// One netlink message.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    /// `nlmsg_type`.
    pub kind: u16,
    /// `nlmsg_flags`.
    pub flags: u16,
    /// `nlmsg_seq`: that of the request it answers; 0 in a notification.
    pub sequence: u32,
    /// What follows the header.
    pub body: &'a [u8],
}

/// The messages of one datagram; a length that does not fit ends them.
pub fn messages(mut rest: &[u8]) -> impl Iterator<Item = Message<'_>> {
    std::iter::from_fn(move || {
        let length = usize::try_from(u32_at(rest, 0)?).ok()?;
        let message = Message {
            kind: u16_at(rest, 4)?,
            flags: u16_at(rest, 6)?,
            sequence: u32_at(rest, 8)?,
            body: rest.get(HEADER..length)?,
        };
        rest = rest.get(aligned(length)..).unwrap_or_default();
        Some(message)
    })
}

/// The attributes in `bytes` as (type without flag bits, value); the first malformed one ends them.
pub fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    NlasIterator::new(bytes).map_while(|attribute| {
        let attribute = attribute.ok()?;
        let (kind, length) = (attribute.kind(), usize::from(attribute.length()));
        Some((kind, attribute.into_inner().get(4..length)?))
    })
}

/// The value of the first attribute of that type.
#[must_use]
pub fn attribute(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(bytes).find(|&(kind, _)| kind == wanted).map(|(_, value)| value)
}

/// Native-endian, as netlink is.
#[inline]
#[must_use]
pub fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Native-endian, as netlink is.
#[inline]
#[must_use]
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Native-endian, as netlink is.
#[inline]
#[must_use]
pub fn i32_at(bytes: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Native-endian, as netlink is.
#[inline]
#[must_use]
pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// A string attribute without its closing NUL and what follows it.
#[must_use]
pub fn text(value: &[u8]) -> &[u8] {
    value.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// Lengths are rounded up to 4 between messages and attributes.
#[inline]
#[must_use]
pub const fn aligned(length: usize) -> usize {
    length.saturating_add(3) & !3
}

/// Attributes one behind the other, as one that holds others has them.
#[must_use]
pub fn nested(members: &[(u16, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (kind, value) in members {
        push(&mut bytes, *kind, value);
    }
    bytes
}

/// One attribute, padded.
fn push(bytes: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let length = u16::try_from(value.len() + 4).expect("requests carry a few bytes an attribute");
    bytes.extend_from_slice(&length.to_ne_bytes());
    bytes.extend_from_slice(&kind.to_ne_bytes());
    bytes.extend_from_slice(value);
    bytes.resize(aligned(bytes.len()), 0);
}

/// A message to the kernel, put together once and sent with a new sequence number each time.
#[derive(Debug, Clone)]
pub struct Request(Vec<u8>);

impl Request {
    /// `flags` in addition to `NLM_F_REQUEST`; `fixed` is the family's own header, already of aligned length.
    #[must_use]
    pub fn new(kind: u16, flags: u16, fixed: &[u8]) -> Self {
        let mut bytes = vec![0; HEADER];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&(NLM_F_REQUEST | flags).to_ne_bytes());
        bytes.extend_from_slice(fixed);
        Self(bytes).closed()
    }

    /// This request with one more attribute.
    #[must_use]
    pub fn with(mut self, kind: u16, value: &[u8]) -> Self {
        push(&mut self.0, kind, value);
        self.closed()
    }

    /// This request with one more attribute that holds `members`.
    #[must_use]
    pub fn with_nested(self, kind: u16, members: &[(u16, &[u8])]) -> Self {
        self.with(kind | NLA_F_NESTED, &nested(members))
    }

    /// The bytes to send under that sequence number.
    pub fn numbered(&mut self, sequence: u32) -> &[u8] {
        self.0[8..12].copy_from_slice(&sequence.to_ne_bytes());
        &self.0
    }

    fn closed(mut self) -> Self {
        self.0.resize(aligned(self.0.len()), 0);
        let length = u32::try_from(self.0.len()).expect("requests are short");
        self.0[0..4].copy_from_slice(&length.to_ne_bytes());
        self
    }
}
