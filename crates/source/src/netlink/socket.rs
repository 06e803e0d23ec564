//! Where bytes come from: a netlink socket of the namespace that was current when it was opened, behind a trait so that
//! tests can play the kernel. Nothing here blocks, and nothing that another process sent gets through.

pub use netlink_sys::protocols;
use netlink_sys::{Socket, SocketAddr};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// A way to send requests to the kernel and to receive its datagrams.
pub trait Transport {
    /// Sends one request. A dump's first datagram is filled before this returns.
    ///
    /// # Errors
    /// What the kernel says of the call.
    fn send(&self, request: &[u8]) -> io::Result<()>;
    /// Receives one datagram and returns its true length, larger than `buffer` if it was cut. `WouldBlock` when there
    /// is none, `ENOBUFS` when the kernel had to drop some.
    ///
    /// # Errors
    /// What the kernel says of the call.
    fn receive(&self, buffer: &mut [u8]) -> io::Result<usize>;
}

/// The real thing.
#[derive(Debug)]
pub struct KernelSocket(Socket);

impl KernelSocket {
    /// Opens a socket of that netlink protocol in the calling thread's network namespace.
    ///
    /// # Errors
    /// What the kernel says of the call.
    pub fn open(protocol: isize) -> io::Result<Self> {
        let mut socket = Socket::new(protocol)?;
        socket.bind_auto()?;
        socket.set_non_blocking(true)?;
        Ok(Self(socket))
    }

    /// The kernel looks at what a request asks for, not only at its type; from Linux 4.20, no loss on older ones.
    pub fn check_strictly(&self) {
        let _absent_before_4_20 = self.0.set_netlink_get_strict_chk(true);
    }

    /// Receives a multicast group from now on.
    ///
    /// # Errors
    /// What the kernel says of the call.
    pub fn join(&mut self, group: u32) -> io::Result<()> {
        self.0.add_membership(group)
    }

    /// Room for notifications that come while nobody reads; beyond `rmem_max` where `CAP_NET_ADMIN` allows it.
    pub fn enlarge(&self, bytes: usize) {
        if rustix::net::sockopt::set_socket_recv_buffer_size_force(&self.0, bytes).is_err() {
            let _smaller_means_an_overrun_sooner = rustix::net::sockopt::set_socket_recv_buffer_size(&self.0, bytes);
        }
    }
}

impl AsFd for KernelSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Transport for KernelSocket {
    fn send(&self, request: &[u8]) -> io::Result<()> {
        let kernel = SocketAddr::new(0, 0);
        loop {
            match self.0.send_to(request, &kernel, 0) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                sent => return sent.map(drop),
            }
        }
    }

    fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.recv_from(&mut &mut *buffer, libc::MSG_TRUNC) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // With CAP_NET_ADMIN another process may write to this socket; it is not the kernel's word.
                Ok((_, sender)) if sender.port_number() != 0 => {}
                received => return received.map(|(length, _)| length),
            }
        }
    }
}
