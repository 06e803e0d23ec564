//! A connection of this very process is found, followed and forgotten; a kernel that talks noise is survived.

use super::*;
use crate::netlink::client::NetlinkClient;
use crate::netlink::socket::Transport;
use proptest::prelude::*;
use std::cell::RefCell;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use vnettop_sample::{FlowProgress, ThreadId};

/// A thread of that process.
fn thread(pid: u32) -> ThreadSample {
    ThreadSample { id: ThreadId { pid, tid: pid, start: 1 }, name: "t".into(), ..ThreadSample::default() }
}

/// A connection over loopback between two sockets of this process.
fn connection(address: &str) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind(address).expect("loopback can be listened on");
    let near = TcpStream::connect(listener.local_addr().expect("it has a port")).expect("it connects");
    let (far, _) = listener.accept().expect("it is accepted");
    (near, far)
}

fn end<'a>(flows: &'a [FlowSample], socket: &TcpStream) -> Option<&'a FlowSample> {
    let (local, remote) = (socket.local_addr().expect("bound"), socket.peer_addr().expect("connected"));
    flows.iter().find(|flow| flow.local == local && flow.remote == remote)
}

#[test]
fn both_ends_of_a_connection_are_found_and_their_bytes_counted() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let (mut reader, threads) = (FlowReader::new(&Roots::default()), [thread(std::process::id())]);
        let (mut near, mut far) = connection(address);
        reader.read(&threads);
        near.write_all(&[7; 5000]).expect("it is sent");
        far.read_exact(&mut [0; 5000]).expect("it arrives");
        reader.pulse();
        let flows = reader.read(&threads);
        let (sender, receiver) = (end(&flows, &near), end(&flows, &far));
        let (Some(sender), Some(receiver)) = (sender, receiver) else { panic!("both ends are seen: {flows:?}") };
        assert_eq!(receiver.pulses.len(), 2, "the pulse and the tick's own");
        assert_eq!(receiver.pulses[1].received, 5000, "what arrived has been received");
        assert!(sender.pulses[1].acked >= 5000, "and acknowledged (the connection itself counts as one): {sender:?}");
        assert_eq!((sender.pid, Some(sender.netns)), (std::process::id(), netns::own()), "whose and where");
        assert!(flows.is_sorted_by_key(FlowSample::key) && reader.has_flows(), "sorted by key");
        drop((near, far));
        reader.read(&threads);
        let after = reader.read(&threads);
        assert!(end_is_gone(&after, &flows), "a closed connection is dropped: {after:?}");
    }
}

fn end_is_gone(after: &[FlowSample], before: &[FlowSample]) -> bool {
    let loopback = |flow: &&FlowSample| flow.remote.ip().is_loopback();
    // Other tests of this process have connections of their own.
    let ports: Vec<_> = before.iter().filter(loopback).filter(|flow| flow.pulses.len() == 2).collect();
    let still = after.iter().filter(|flow| ports.iter().any(|known| known.cookie == flow.cookie)).count();
    still < ports.len()
}

#[test]
fn nobody_watched_means_nothing_opened() {
    let mut reader = FlowReader::new(&Roots::default());
    assert!(reader.read(&[]).is_empty() && !reader.has_flows());
    assert!(reader.spaces.is_empty(), "no socket before there is a process");
    let gone = [thread(u32::MAX >> 2)];
    assert!(reader.read(&gone).is_empty() && reader.problems().is_empty(), "a process that has ended is no problem");
}

/// The UDP socket of that own end.
fn udp(flows: &[FlowSample], socket: &UdpSocket) -> FlowSample {
    let local = socket.local_addr().expect("bound");
    let local = SocketAddr::new(local.ip().to_canonical(), local.port());
    let is_it = |flow: &&FlowSample| flow.proto == Proto::Udp && flow.local == local;
    flows.iter().find(is_it).unwrap_or_else(|| panic!("{local} is seen: {flows:?}")).clone()
}

#[test]
fn a_udp_sockets_queue_and_drops_are_read() {
    for address in ["127.0.0.1:0", "[::1]:0", "[::ffff:127.0.0.1]:0"] {
        let (mut reader, threads) = (FlowReader::new(&Roots::default()), [thread(std::process::id())]);
        let server = UdpSocket::bind(address).expect("loopback can be listened on");
        let client = UdpSocket::bind(address).expect("loopback can be listened on");
        client.connect(server.local_addr().expect("bound")).expect("it is connected");
        let flows = reader.read(&threads);
        let (near, far) = (udp(&flows, &client), udp(&flows, &server));
        assert_eq!(near.remote.port(), far.local.port(), "the client's other end is the server");
        assert_eq!(far.remote.port(), 0, "a server that is not connected has no other end");
        let before = far.udp.expect("its buffers are told");
        assert!(near.pulses.is_empty() && before.rcvbuf > 0 && before.drops == 0, "nothing yet: {before:?}");
        // More than it can hold, and nobody reads.
        for _ in 0..before.rcvbuf / 1000 {
            client.send(&[7; 1400]).expect("it is sent");
        }
        let after = udp(&reader.read(&threads), &server).udp.expect("its buffers are told");
        assert!(after.rx_queue > 0 && after.drops > 0, "{address}: full, and what did not fit is dropped: {after:?}");
        // It goes over to another identity: found again, by its cookie.
        server.connect(client.local_addr().expect("bound")).expect("it is connected");
        let flows = reader.read(&threads);
        let connected = udp(&flows, &server);
        assert_eq!((connected.cookie, connected.remote.port()), (far.cookie, near.local.port()), "the same socket");
        drop(server);
        reader.read(&threads);
        let gone = reader.read(&threads).iter().all(|flow| flow.cookie != far.cookie);
        assert!(gone, "a closed socket is dropped");
    }
}

#[test]
fn a_process_that_has_ended_and_is_not_collected_belongs_to_nobody_else() {
    let mut child = std::process::Command::new("true").spawn().expect("true runs");
    let stat = || std::fs::read_to_string(format!("/proc/{}/stat", child.id())).expect("not collected yet");
    while !stat().contains(") Z ") {
        std::thread::yield_now();
    }
    let mut reader = FlowReader::new(&Roots::default());
    let flows = reader.read(&[thread(child.id())]);
    assert!(flows.is_empty() && reader.problems().is_empty(), "it is simply over: {:?}", reader.problems());
    child.wait().expect("it is collected");
}

/// A kernel that answers every request with the next of these datagrams.
struct Noise(RefCell<Vec<Vec<u8>>>);

impl Transport for Noise {
    fn send(&self, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let datagram = self.0.borrow_mut().pop().ok_or_else(|| io::Error::from(io::ErrorKind::WouldBlock))?;
        let length = datagram.len().min(buffer.len());
        buffer[..length].copy_from_slice(&datagram[..length]);
        Ok(datagram.len())
    }
}

proptest! {
    #[test]
    fn a_kernel_that_talks_noise_is_survived(datagrams: Vec<Vec<u8>>) {
        let mut space = NamespaceFlows::new(1, NetlinkClient::new(Noise(RefCell::new(datagrams))));
        let mut found = Vec::new();
        for proto in [Proto::Tcp, Proto::Udp] {
            let _ = space.list(proto, |reported| found.push(*reported));
            for reported in &found {
                space.follow(proto, 7, reported);
            }
        }
        space.read_udp();
        space.pulse();
        let mut flows = Vec::new();
        space.take(&mut flows, |_, _| true);
        prop_assert!(flows.iter().all(|flow| flow.pulses.iter().all(|pulse: &FlowProgress| pulse.at_ns > 0)));
    }
}
