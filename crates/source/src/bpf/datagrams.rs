//! What the program of each UDP socket has sent and read (`sock:sock_send_length` and `sock_recv_length`, Linux 6.3): a socket has
//! no counters, and those of its namespace have everybody's datagrams, those of kernel tunnels too.

use aya::Ebpf;
use aya::maps::{HashMap, MapData};

/// `struct datagrams`.
type Raw = [u64; 6];

/// Sockets that are remembered, and how many each core keeps room for beside them.
const SOCKETS: u32 = 2_048;
const EACH_CORE: u32 = 256;

/// What a socket's program has sent and read since the programs were attached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SocketDatagrams {
    /// Payload, bytes.
    pub sent_bytes: u64,
    /// Datagrams; what one send is cut into (`UDP_SEGMENT`) is several.
    pub sent: u64,
    /// Payload, bytes.
    pub received_bytes: u64,
    /// Reads.
    pub received: u64,
    /// Reads that may have returned several datagrams (`UDP_GRO`).
    pub merged: u64,
    /// `CLOCK_MONOTONIC` of the first send or read, ns.
    pub since_ns: u64,
}

/// The table.
pub struct DatagramTable(HashMap<MapData, u64, Raw>);

impl DatagramTable {
    pub(super) fn take(ebpf: &mut Ebpf) -> Option<Self> {
        Some(Self(HashMap::try_from(ebpf.take_map("datagrams")?).ok()?))
    }

    /// What the socket with this cookie has sent and read: nothing where it was not seen yet; none where the table cannot be read.
    #[must_use]
    pub fn of(&self, cookie: u64) -> Option<SocketDatagrams> {
        match self.0.get(&cookie, 0) {
            Ok([sent_bytes, sent, received_bytes, received, merged, since_ns]) => {
                Some(SocketDatagrams { sent_bytes, sent, received_bytes, received, merged, since_ns })
            }
            Err(aya::maps::MapError::KeyNotFound) => Some(SocketDatagrams::default()),
            Err(_) => None,
        }
    }
}

/// Room for the sockets of a machine: each core keeps free places to itself, and in a small table takes them from others.
pub(super) fn room() -> u32 {
    let cores = aya::util::nr_cpus().ok().and_then(|cores| u32::try_from(cores).ok()).unwrap_or(1);
    SOCKETS.saturating_add(cores.saturating_mul(EACH_CORE))
}
