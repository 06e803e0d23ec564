//! What `sock_diag` says, put together by hand.

use super::*;
use crate::netlink::message::messages;
use proptest::prelude::*;

/// `struct inet_diag_msg` with 300 bytes in the receive queue and 400 in the other.
fn head(family: u8, state: u8, id: [u8; ID], inode: u32) -> Vec<u8> {
    let mut fixed = vec![family, state, 0, 0];
    fixed.extend_from_slice(&id);
    for number in [0, 300, 400, 0, inode] {
        fixed.extend_from_slice(&number.to_ne_bytes());
    }
    fixed
}

/// An answer as the kernel lays it out.
fn answer(family: u8, state: u8, id: [u8; ID], inode: u32, info: &[u8]) -> Vec<u8> {
    let request = Request::new(BY_FAMILY, 0, &head(family, state, id, inode));
    let mut whole = if info.is_empty() { request } else { request.with(INFO, info) };
    whole.numbered(7).to_vec()
}

fn id(ports: (u16, u16), local: &[u8], remote: &[u8], cookie: u64) -> [u8; ID] {
    let mut id = [0; ID];
    id[..2].copy_from_slice(&ports.0.to_be_bytes());
    id[2..4].copy_from_slice(&ports.1.to_be_bytes());
    id[4..4 + local.len()].copy_from_slice(local);
    id[20..20 + remote.len()].copy_from_slice(remote);
    id[40..].copy_from_slice(&cookie.to_ne_bytes());
    id
}

fn parsed(bytes: &[u8]) -> Vec<SocketInfo> {
    messages(bytes).filter_map(|message| parse(&message)).collect()
}

#[test]
fn a_socket_is_told_with_its_ends_its_bytes_and_its_cookie() {
    let mut info = [0; 232];
    info[ACKED..ACKED + 8].copy_from_slice(&5_000_000_000_u64.to_ne_bytes());
    info[RECEIVED..RECEIVED + 8].copy_from_slice(&37_u64.to_ne_bytes());
    let ends = id((5201, 43210), &[198, 18, 0, 1], &[198, 18, 0, 2], 0x0001_0000_0042);
    let reported = parsed(&answer(IPV4, ESTABLISHED, ends, 99, &info));
    let [reported] = reported[..] else { panic!("one socket: {reported:?}") };
    assert_eq!(reported.id.local(), "198.18.0.1:5201".parse().expect("an address"), "the own end");
    assert_eq!(reported.id.remote(), "198.18.0.2:43210".parse().expect("an address"), "the other end");
    #[cfg(target_endian = "little")]
    assert_eq!(reported.id.cookie(), 0x0001_0000_0042, "the cookie is whole");
    assert_eq!((reported.inode, reported.bytes), (99, Some((5_000_000_000, 37))), "inode and bytes");
    assert!(reported.is_established() && reported.lives());
}

#[test]
fn a_socket_of_ipv6_says_whether_it_takes_ipv4() {
    let socket = |only: &[u8]| {
        let request = Request::new(BY_FAMILY, 0, &head(IPV6, 7, id((51820, 0), &[], &[], 1), 5));
        parsed(request.with(ONLY_IPV6, only).numbered(7))[0].only_ipv6
    };
    assert_eq!([socket(&[1]), socket(&[0])], [true, false], "as wireguard-go's, and as one of two families");
}

#[test]
fn how_a_connection_stands_is_read_from_as_much_as_the_kernel_tells() {
    let mut info = [0; 232];
    info[APP_LIMITED] = if cfg!(target_endian = "big") { 0x80 } else { 1 };
    for (at, value) in [
        (MSS, 1448_u32),
        (UNACKED, 9),
        (RTT, 41),
        (CWND, 10),
        (TOTAL_RETRANS, 7),
        (MIN_RTT, 12),
        (DATA_IN, 3),
        (DATA_OUT, 4),
    ] {
        info[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }
    let wide = [(PACING, 5_000_000_u64), (PACING_ALLOWED, 6_000_000), (DELIVERY, 4_000_000)];
    for (at, value) in wide.into_iter().chain([(BUSY, 900), (RWND, 700), (SNDBUF, 100)]) {
        info[at..at + 8].copy_from_slice(&value.to_ne_bytes());
    }
    let ends = id((1, 2), &[], &[], 1);
    let mut request = Request::new(BY_FAMILY, 0, &head(IPV4, ESTABLISHED, ends, 5)).with(INFO, &info);
    request = request.with(CONG, b"cubic\0");
    let reported = parsed(request.numbered(7));
    let tcp = reported[0].tcp.expect("it is told");
    assert_eq!((tcp.mss, tcp.rtt_us, tcp.cwnd, tcp.retransmits), (1448, 41, 10, 7), "as in linux/tcp.h");
    assert_eq!((tcp.pacing, tcp.delivery), (Some(5_000_000), Some(4_000_000)), "the rates too");
    assert_eq!(tcp.min_rtt_us, Some(12), "and the least round trip");
    assert_eq!((tcp.rx_queue, tcp.tx_queue), (300, 400), "the queues are of the answer itself");
    assert_eq!((tcp.unacked, tcp.app_limited), (Some(9), Some(true)), "what is under way, and that there was no more");
    let busy = Busy { all_us: 900, rwnd_us: 700, sndbuf_us: 100 };
    assert_eq!((tcp.busy, tcp.pacing_allowed), (Some(busy), Some(6_000_000)), "what it waited for");
    assert_eq!((tcp.data_out, tcp.data_in), (Some(4), Some(3)), "and how many segments with data it sent and received");
    assert_eq!(tcp.congestion.expect("named").word(), "cubic", "without its closing NUL");
    let old = parsed(&answer(IPV4, ESTABLISHED, ends, 5, &info[..PACING]));
    let old = old[0].tcp.expect("it is told");
    assert_eq!((old.retransmits, old.pacing, old.delivery), (7, None, None), "a kernel before 3.15 tells no rates");
    assert_eq!((old.busy, old.app_limited), (None, None), "nor what it waits for");
    info[PACING..PACING + 8].fill(0xff);
    info[MIN_RTT..MIN_RTT + 4].fill(0xff);
    let free = parsed(&answer(IPV4, ESTABLISHED, ends, 5, &info))[0].tcp.expect("it is told");
    assert_eq!((free.pacing, free.min_rtt_us), (None, None), "all ones is no rate, and no round trip");
}

#[test]
fn a_udp_sockets_buffers_are_told() {
    let mut memory = Vec::new();
    (0..9_u32).for_each(|at| memory.extend_from_slice(&(1000 + at).to_ne_bytes()));
    let ends = id((5201, 0), &[], &[], 1);
    let answer = |memory: &[u8]| {
        let mut request = Request::new(BY_FAMILY, 0, &head(IPV6, OVER[1], ends, 5)).with(SKMEMINFO, memory);
        parsed(request.numbered(7))[0].udp
    };
    let expected = UdpState { rx_queue: 300, tx_queue: 400, rcvbuf: 1001, drops: 1008, counts: None };
    assert_eq!(answer(&memory), Some(expected), "buffer and drops");
    assert_eq!(answer(&memory[..32]), None, "a kernel before 4.7 tells no drops");
}

#[test]
fn ipv4_within_ipv6_is_ipv4_and_a_socket_without_a_holder_is_over() {
    let mut mapped = [0; 16];
    (mapped[10], mapped[11]) = (255, 255);
    mapped[12..].copy_from_slice(&[198, 18, 0, 1]);
    let reported = parsed(&answer(IPV6, ESTABLISHED, id((1, 2), &mapped, &mapped, 1), 0, &[]));
    assert_eq!(reported[0].id.local(), "198.18.0.1:1".parse().expect("an address"), "both ends show the same address");
    assert!(!reported[0].lives(), "inode 0 is a socket that its process has closed");
    assert_eq!(reported[0].bytes, None, "what was not asked for is not known");
    let waiting = parsed(&answer(IPV4, OVER[0], id((1, 2), &[], &[], 1), 5, &[]));
    assert!(!waiting[0].lives(), "TIME_WAIT is over");
}

#[test]
fn a_shorter_tcp_info_has_no_bytes_and_another_family_is_no_socket() {
    let short = parsed(&answer(IPV4, ESTABLISHED, id((1, 2), &[], &[], 1), 5, &[1; RECEIVED + 7]));
    assert_eq!(short[0].bytes, None, "a kernel before 4.1 counts none");
    assert!(parsed(&answer(1, ESTABLISHED, [0; ID], 5, &[])).is_empty(), "a unix socket is none of ours");
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes: Vec<u8>) {
        parsed(&bytes);
    }

    #[test]
    fn a_damaged_answer_is_survived(at in 0_usize..320, byte: u8, cut in 0_usize..320) {
        let mut bytes = answer(IPV6, ESTABLISHED, [7; ID], 5, &[9; 232]);
        let length = bytes.len();
        bytes[at % length] = byte;
        parsed(&bytes[..cut % length]);
        for reported in parsed(&bytes) {
            let _ = (reported.id.local(), reported.id.remote(), reported.id.cookie(), reported.lives());
        }
    }
}
