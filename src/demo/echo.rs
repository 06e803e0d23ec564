//! The tun device of the demo: a paced UDP flow into it, and an echo behind it that sends every packet back, so that
//! both directions move. It answers nothing but its own kind of packet: IPv4, UDP, not a fragment.

use super::rtnl::Rtnl;
use crate::networks::{RoleError, TUN_DEVICE, TunKind, attach_tun, cannot, open_device};
use rustix::fs::OFlags;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

/// The name of the device.
pub const NAME: &str = "tun0";
const NEAR: Ipv4Addr = Ipv4Addr::new(198, 18, 1, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(198, 18, 1, 2);
/// The discard port: nobody answers there but the echo.
const PORT: u16 = 9;
/// Fills a packet of the device's MTU of 1500 bytes: 20 bytes of IPv4 header, 8 of UDP.
const PAYLOAD: usize = 1472;
/// 17 packets of 1500 bytes every 10 ms are 20.4 Mbit/s.
const BURST: usize = 17;
const TICK: Duration = Duration::from_millis(10);

/// Makes the device, with its address, up.
pub fn open() -> Result<File, RoleError> {
    let device = open_device(TUN_DEVICE, OFlags::NONBLOCK)?;
    attach_tun(&device, NAME, TunKind::Tun).map_err(cannot(format!("create tun device {NAME}")))?;
    let mut rtnl = Rtnl::open()?;
    rtnl.add_address(NAME, NEAR, 24)?;
    rtnl.set_up(NAME)?;
    Ok(device)
}

/// Drives the flow for ever.
pub fn run(mut device: File) -> io::Result<()> {
    let socket = UdpSocket::bind((NEAR, 0))?;
    socket.connect((FAR, PORT))?;
    socket.set_nonblocking(true)?;
    let payload = [0; PAYLOAD];
    let mut packet = [0; 2048];
    let mut next = Instant::now();
    loop {
        for _ in 0..BURST {
            // A link that someone took down loses the packet; the flow goes on when it is up again.
            let _ = socket.send(&payload);
        }
        echo_pending(&mut device, &mut packet);
        // What came back has done its work by moving; one byte of it is read so that the socket drops nothing.
        while socket.recv(&mut packet[..1]).is_ok() {}
        // A late tick is not made up for: the flow is gentle first and exact second.
        next = (next + TICK).max(Instant::now());
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
}

/// Sends back what waits in the device's queue.
fn echo_pending(device: &mut File, packet: &mut [u8]) {
    while let Ok(length @ 1..) = device.read(packet) {
        let packet = &mut packet[..length];
        if turn_round(packet) {
            let _ = device.write(packet);
        }
    }
}

/// Swaps the addresses and ports of an IPv4 UDP packet; both checksums are sums of these words and stay right. Tells
/// whether it was such a packet.
fn turn_round(packet: &mut [u8]) -> bool {
    const UDP: u8 = 17;
    let header = packet.first().map_or(0, |first| usize::from(first & 0x0f) * 4);
    let whole = packet.len() >= header + 8 && header >= 20;
    if !whole || packet[0] >> 4 != 4 || packet[9] != UDP || packet[6] & 0x3f != 0 || packet[7] != 0 {
        return false;
    }
    for byte in 0..4 {
        packet.swap(12 + byte, 16 + byte);
    }
    for byte in 0..2 {
        packet.swap(header + byte, header + 2 + byte);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 198.18.1.1:4000 → 198.18.1.2:9, 28 bytes and no payload.
    fn packet() -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 28, 0, 0, 0x40, 0, 64, 17, 0, 0, 198, 18, 1, 1, 198, 18, 1, 2];
        packet.extend([0x0f, 0xa0, 0, 9, 0, 8, 0, 0]);
        packet
    }

    #[test]
    fn a_udp_packet_goes_back_where_it_came_from() {
        let mut turned = packet();
        assert!(turn_round(&mut turned), "a whole IPv4 UDP packet is echoed");
        assert_eq!(turned[12..20], [198, 18, 1, 2, 198, 18, 1, 1], "source and destination change places");
        assert_eq!(turned[20..24], [0, 9, 0x0f, 0xa0], "the ports change places");
        assert!(turn_round(&mut turned) && turned == packet(), "turned twice it is the packet it was");
    }

    #[test]
    fn anything_else_is_left_alone() {
        let mut fragment = packet();
        fragment[7] = 1;
        let mut tcp = packet();
        tcp[9] = 6;
        let mut version_6 = packet();
        version_6[0] = 0x65;
        let cut = packet()[..27].to_vec();
        for mut other in [fragment, tcp, version_6, cut, vec![0x40], Vec::new()] {
            let before = other.clone();
            assert!(!turn_round(&mut other), "{before:?} is not echoed");
            assert_eq!(other, before, "and not changed");
        }
    }
}
