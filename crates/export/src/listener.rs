//! What is listened on: an address or a unix socket.

use super::Place;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// Bound, and not yet listened to by a runtime.
pub(super) enum Listener {
    Tcp(std::net::TcpListener, Place),
    Unix(std::os::unix::net::UnixListener, Place),
}

/// A listener within a runtime, which polls it.
pub(super) enum Accepting {
    Tcp(tokio::net::TcpListener),
    Unix(tokio::net::UnixListener),
}

impl Listener {
    pub fn bind(place: &Place) -> io::Result<Self> {
        match place {
            Place::Address(address) => {
                let listener = match std::net::TcpListener::bind(address) {
                    // Every address of a machine without IPv6.
                    Err(error) if address.ip() == Ipv6Addr::UNSPECIFIED && error.kind() != io::ErrorKind::AddrInUse => {
                        std::net::TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.port()))
                    }
                    bound => bound,
                }?;
                listener.set_nonblocking(true)?;
                let address = listener.local_addr()?;
                Ok(Self::Tcp(listener, Place::Address(address)))
            }
            Place::Socket(path) => {
                if is_left_behind(path) {
                    std::fs::remove_file(path)?;
                }
                let listener = std::os::unix::net::UnixListener::bind(path)?;
                listener.set_nonblocking(true)?;
                Ok(Self::Unix(listener, place.clone()))
            }
        }
    }

    pub fn place(&self) -> &Place {
        let (Self::Tcp(_, place) | Self::Unix(_, place)) = self;
        place
    }

    pub fn accepting(self) -> io::Result<Accepting> {
        match self {
            Self::Tcp(listener, _) => tokio::net::TcpListener::from_std(listener).map(Accepting::Tcp),
            Self::Unix(listener, _) => tokio::net::UnixListener::from_std(listener).map(Accepting::Unix),
        }
    }
}

impl Accepting {
    /// The next connection, and from where it comes; none where that says nothing.
    pub async fn accept(&self) -> io::Result<(ClientStream, Option<IpAddr>)> {
        match self {
            Self::Tcp(listener) => {
                listener.accept().await.map(|(stream, from)| (ClientSocket::Tcp(stream).into(), Some(from.ip())))
            }
            Self::Unix(listener) => {
                listener.accept().await.map(|(stream, _)| (ClientSocket::Unix(stream).into(), None))
            }
        }
    }
}

/// Whether a socket is one that nobody listens to any more. What cannot be asked is somebody's.
fn is_left_behind(path: &Path) -> bool {
    if !std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket()) {
        return false;
    }
    let asked = || {
        let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
        let socket = socket_with(family, kind, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
        connect(&socket, &SocketAddrUnix::new(path)?)
    };
    asked() == Err(Errno::CONNREFUSED)
}

/// How long a client may take none of what is written to it.
const STALLED: Duration = Duration::from_secs(30);

/// A connection of either. Who does not read what is written is given up.
pub(super) struct ClientStream {
    socket: ClientSocket,
    /// Since nothing could be written.
    stalled: Option<Pin<Box<Sleep>>>,
    /// Nothing can be written now; shared with the code that decides which connection gives way.
    is_stalled: Arc<AtomicBool>,
}

enum ClientSocket {
    Tcp(tokio::net::TcpStream),
    Unix(tokio::net::UnixStream),
}

impl From<ClientSocket> for ClientStream {
    fn from(socket: ClientSocket) -> Self {
        Self { socket, stalled: None, is_stalled: Arc::default() }
    }
}

impl ClientStream {
    /// Whether its client takes nothing of what is written now.
    pub fn is_stalled(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_stalled)
    }

    /// The result of a write, but an error once the client has taken nothing for [`STALLED`].
    fn in_time<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        self.is_stalled.store(written.is_pending(), Ordering::Relaxed);
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(STALLED)));
        stalled.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

/// Does the same with a socket of either kind.
macro_rules! with_socket {
    ($stream:expr, $socket:ident => $does:expr) => {
        match &mut $stream.socket {
            ClientSocket::Tcp(stream) => {
                let $socket = Pin::new(stream);
                $does
            }
            ClientSocket::Unix(stream) => {
                let $socket = Pin::new(stream);
                $does
            }
        }
    };
}

impl AsyncRead for ClientStream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        with_socket!(self, socket => socket.poll_read(context, into))
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = with_socket!(self, socket => socket.poll_write(context, bytes));
        self.in_time(context, written)
    }

    /// A long answer is written from where it lies: the connection keeps no copy of it.
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = with_socket!(self, socket => socket.poll_write_vectored(context, parts));
        self.in_time(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        with_socket!(self, socket => socket.poll_flush(context))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        with_socket!(self, socket => socket.poll_shutdown(context))
    }
}
