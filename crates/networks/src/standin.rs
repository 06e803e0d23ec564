//! A sender and a receiver that stand in for iperf3 >= 3.16: an idle main thread, one worker thread a stream, all of one
//! name, TCP as fast as it goes. They measure nothing; rates come from the links like everyone else's.

use std::ffi::CString;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// iperf3's default TCP block, bytes.
const BLOCK: usize = 128 * 1024;
/// Between two attempts to reach a server that does not listen yet: a refusal is immediate, so there is no event to
/// wait for.
const RETRY: Duration = Duration::from_millis(20);
/// A receiver that takes nothing for so long is gone.
const STALLED: Duration = Duration::from_secs(10);

/// Binds the server's socket, and names this thread.
///
/// # Errors
/// The kernel refuses.
pub fn listen(address: SocketAddr, name: &str) -> io::Result<TcpListener> {
    rename(name)?;
    TcpListener::bind(address)
}

/// Accepts for ever; each connection gets a worker thread that reads until its end.
///
/// # Errors
/// The kernel gives no connection or thread.
pub fn serve(listener: &TcpListener, name: &str) -> io::Result<()> {
    loop {
        let (mut stream, _) = listener.accept()?;
        worker(name, move || {
            let mut block = vec![0; BLOCK];
            // A sender that dies resets the connection: for a benchmark that is the end, not a fault.
            while stream.read(&mut block).is_ok_and(|bytes| bytes > 0) {}
        })?;
    }
}

/// What one client run is.
#[derive(Debug, Clone)]
pub struct ClientRun {
    /// Where the server listens.
    pub server: SocketAddr,
    /// Connections, and so worker threads.
    pub streams: usize,
    /// The name of every thread, at most 15 bytes.
    pub name: String,
    /// How long to send; without it until the server goes away.
    pub duration: Option<Duration>,
    /// How long to try to reach the server.
    pub patience: Duration,
}

impl ClientRun {
    /// Sends over every stream at once; returns the bytes handed to the kernel by all of them.
    ///
    /// # Errors
    /// The server does not answer, or the kernel gives no thread.
    pub fn send(&self) -> io::Result<u64> {
        rename(&self.name)?;
        let streams = (0..self.streams).map(|_| self.connect()).collect::<io::Result<Vec<_>>>()?;
        let end = self.duration.map(|duration| Instant::now() + duration);
        let (report, finished) = mpsc::channel();
        for stream in streams {
            let report = report.clone();
            worker(&self.name, move || {
                // The receiver of this report waits for all workers, so it is there.
                let _ = report.send(fill(stream, end));
            })?;
        }
        drop(report);
        Ok(finished.iter().sum())
    }

    fn connect(&self) -> io::Result<TcpStream> {
        let stream = connect(self.server, self.patience)?;
        stream.set_write_timeout(Some(STALLED))?;
        Ok(stream)
    }
}

/// Connects to a server that may not listen yet.
///
/// # Errors
/// It does not within this time.
pub fn connect(server: SocketAddr, patience: Duration) -> io::Result<TcpStream> {
    let deadline = Instant::now() + patience;
    loop {
        match TcpStream::connect(server) {
            Ok(stream) => return Ok(stream),
            Err(error) if Instant::now() >= deadline => return Err(error),
            Err(_) => thread::sleep(RETRY),
        }
    }
}

/// Writes blocks until the end or until the receiver is gone; returns the bytes written.
fn fill(mut stream: TcpStream, end: Option<Instant>) -> u64 {
    let block = vec![0; BLOCK];
    let mut sent = 0;
    while end.is_none_or(|end| Instant::now() < end) {
        match stream.write(&block) {
            Ok(bytes) => sent += bytes as u64,
            Err(_) => break,
        }
    }
    sent
}

fn worker(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.to_owned()).spawn(work).map(drop)
}

/// Names the calling thread, as `comm` of /proc shows it.
///
/// # Errors
/// There is a zero byte in it.
pub fn rename(name: &str) -> io::Result<()> {
    let name = CString::new(name).map_err(io::Error::from)?;
    rustix::thread::set_name(&name).map_err(io::Error::from)
}
