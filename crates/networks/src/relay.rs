//! A published port through a process, as Docker's userland proxy makes one: takes TCP connections and hands their bytes on.

use super::role::{RoleError, RoleOptions, cannot};
use super::standin;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;

/// Takes connections for ever, each with a thread for either direction.
pub fn relay(options: &RoleOptions) -> Result<(), RoleError> {
    standin::rename("vnettop-relay").map_err(cannot("name the process"))?;
    let (listen, to): (SocketAddr, SocketAddr) = (options.required("--listen")?, options.required("--to")?);
    let listener = TcpListener::bind(listen).map_err(cannot(format!("listen on {listen}")))?;
    options.tell_ready()?;
    loop {
        let (near, _) = listener.accept().map_err(cannot("accept connections"))?;
        // A server that is not there refuses the client too, by the end of its connection.
        let Ok(far) = TcpStream::connect(to) else { continue };
        for stream in [&near, &far] {
            stream.set_nodelay(true).map_err(cannot("set TCP_NODELAY"))?;
        }
        let both = near.try_clone().and_then(|near| Ok((near, far.try_clone()?))).map_err(cannot("copy a socket"))?;
        thread::spawn(move || pass(&near, &far));
        thread::spawn(move || pass(&both.1, &both.0));
    }
}

/// Hands on what comes until it ends; the kernel splices it where it can.
fn pass(mut from: &TcpStream, mut to: &TcpStream) {
    let _ended = io::copy(&mut from, &mut to);
    let _gone = to.shutdown(Shutdown::Write);
}
