//! What is listened on: an address or a unix socket.

use super::Place;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bound, and not yet listened to by a runtime.
pub(super) enum Listener {
    Tcp(std::net::TcpListener, Place),
    Unix(std::os::unix::net::UnixListener, Place),
}

/// The same within a runtime.
pub(super) enum Accepting {
    Tcp(tokio::net::TcpListener),
    Unix(tokio::net::UnixListener),
}

impl Listener {
    pub fn bind(place: &Place) -> io::Result<Self> {
        match place {
            Place::Address(address) => {
                let listener = std::net::TcpListener::bind(address)?;
                listener.set_nonblocking(true)?;
                let address = listener.local_addr()?;
                Ok(Self::Tcp(listener, Place::Address(address)))
            }
            Place::Socket(path) => {
                // One that another has left behind. Nobody answers there: who still runs keeps it.
                let is_socket = std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
                if is_socket && std::os::unix::net::UnixStream::connect(path).is_err() {
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
    pub async fn accept(&self) -> io::Result<ClientStream> {
        match self {
            Self::Tcp(listener) => listener.accept().await.map(|(stream, _)| ClientStream::Tcp(stream)),
            Self::Unix(listener) => listener.accept().await.map(|(stream, _)| ClientStream::Unix(stream)),
        }
    }
}

/// A connection of either.
pub(super) enum ClientStream {
    Tcp(tokio::net::TcpStream),
    Unix(tokio::net::UnixStream),
}

impl AsyncRead for ClientStream {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(context, into),
            Self::Unix(stream) => Pin::new(stream).poll_read(context, into),
        }
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(context),
            Self::Unix(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
