//! Captures what a kernel with wireguard says of one: its peers, and its socket among others.

use super::capture::{DUMP, FOLDER, ask, keep};
use crate::ground::namespace::{ip, live, run};
use netlink_sys::Socket;
use netlink_sys::protocols::{NETLINK_GENERIC, NETLINK_SOCK_DIAG};
use std::path::Path;

/// Private keys that nobody uses, and the public ones of peers.
const KEYS: [&str; 3] = [
    "ERERERERERERERERERERERERERERERERERERERERERE=",
    "IiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiI=",
    "MzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzM=",
];
/// What a process listens on, with the largest buffer that one can ask for.
const OTHER_PORT: u16 = 51821;

#[test]
#[ignore = "it rewrites the fixtures"]
fn capture_wireguard() {
    live(|| {
        let folder = Path::new(FOLDER).join("wireguard");
        std::fs::create_dir_all(&folder).expect("a folder");
        let key = folder.join("key");
        std::fs::write(&key, KEYS[0]).expect("a key");
        ip("link add wg0 type wireguard");
        let peers = format!(
            "set wg0 listen-port 51820 fwmark 0xca6c private-key {} peer {} endpoint 198.18.1.2:4500 allowed-ips \
             198.19.0.2/32,198.19.2.0/24,fd00:2::/64 peer {} endpoint [fd00::3]:51820 allowed-ips 0.0.0.0/0,::/0",
            key.display(),
            KEYS[1],
            KEYS[2]
        );
        run("wg", &peers);
        std::fs::remove_file(&key).expect("it was there");
        ip("link set wg0 up");
        let other = std::net::UdpSocket::bind(("0.0.0.0", OTHER_PORT)).expect("a socket");
        rustix::net::sockopt::set_socket_send_buffer_size_force(&other, i32::MAX as usize).expect("as root");
        let generic = Socket::new(NETLINK_GENERIC).expect("a socket");
        let family = ask(&generic, 16, 1, b"\x03\x01\0\0\x0e\0\x02\0wireguard\0\0\0").concat();
        let id = u16::from_ne_bytes([family[16 + 4 + 20], family[16 + 4 + 21]]);
        let index = ip_index();
        let device = ask(&generic, id, DUMP, &[b"\0\x01\0\0\x08\0\x01\0".as_slice(), &index.to_ne_bytes()].concat());
        keep("wireguard/device", &device.concat());
        let diag = Socket::new(NETLINK_SOCK_DIAG).expect("a socket");
        let mut body = [0; 56];
        body[..3].copy_from_slice(&[2, 17, 1 << 6]);
        body[4..8].copy_from_slice(&u32::MAX.to_ne_bytes());
        keep("wireguard/sockets", &ask(&diag, 20, DUMP, &body).concat());
        let told: String = ["public-key", "listen-port", "fwmark", "endpoints", "allowed-ips"]
            .map(|what| run("wg", &format!("show wg0 {what}")))
            .concat();
        std::fs::write(folder.join("device.txt"), told).expect("the fixture is written");
    });
}

/// The index of `wg0`.
fn ip_index() -> u32 {
    let links = crate::ground::namespace::ip_links();
    let link = links.iter().find(|link| link["ifname"] == "wg0").expect("it was made");
    u32::try_from(link["ifindex"].as_u64().expect("a number")).expect("an index")
}
