//! Loads of vnettop's own, for what iperf3 does not do: one byte there and back (request and response), and bytes through sockets and
//! pipes that are no network. Those that measure write `{"seconds":…,"count":…}`
//! to standard error at the end.

use super::role::{RoleError, RoleOptions, cannot, say};
use super::standin;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

/// What their threads are called.
pub const LOAD_NAME: &str = "vnettop-load";
/// Answers each byte with one, over TCP (`--listen`) or from standard input to standard output.
pub const ECHO: &str = "echo";
/// Asks, and counts the answers.
pub const ASK: &str = "ask";
/// Reads standard input, and counts.
pub const SINK: &str = "sink";
/// Writes to standard output.
pub const FILL: &str = "fill";
/// iperf3's default TCP block, bytes.
const BLOCK: usize = 128 * 1024;
/// How long a client tries to reach a server.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// What a load measured after its warm-up.
#[derive(Debug, Clone, Copy)]
struct LoadReport {
    /// How long it measured, seconds.
    seconds: f64,
    /// Answers, or bytes.
    count: u64,
}

/// The window of a measurement: it begins after a warm-up, and is closed by the first count after its end.
struct MeasuredTime {
    from: Instant,
    length: Duration,
    count: u64,
    began: Option<Instant>,
}

impl MeasuredTime {
    fn of(options: &RoleOptions) -> Result<Self, RoleError> {
        let (warm_up, length) = (options.seconds("--warm-up")?, options.seconds("--seconds")?);
        Ok(Self { from: Instant::now() + warm_up, length, count: 0, began: None })
    }

    /// Takes a count in; what was measured, once the window is over. The first count opens it and is of the time before.
    fn add(&mut self, count: u64) -> Option<LoadReport> {
        let now = Instant::now();
        let Some(began) = self.began else {
            self.began = (now >= self.from).then_some(now);
            return None;
        };
        self.count += count;
        let lasted = now - began;
        (lasted >= self.length).then_some(LoadReport { seconds: lasted.as_secs_f64(), count: self.count })
    }
}

fn report(report: LoadReport) -> Result<(), RoleError> {
    writeln!(io::stderr(), "{{\"seconds\":{:.6},\"count\":{}}}", report.seconds, report.count)
        .map_err(cannot("write to standard error"))
}

pub(crate) fn begin(options: &RoleOptions) -> Result<(), RoleError> {
    options.die_with_given_parent()?;
    let name = options.given("--name").map_or(LOAD_NAME.into(), OsStr::to_string_lossy);
    standin::rename(&name).map_err(cannot("name the process"))
}

/// Answers until whoever asks is gone.
pub fn echo(options: &RoleOptions) -> Result<(), RoleError> {
    begin(options)?;
    if options.given("--listen").is_none() {
        answer(io::stdin().lock(), io::stdout().lock());
        return Ok(());
    }
    let listener = listen(options.required("--listen")?)?;
    loop {
        let (stream, _) = listener.accept().map_err(cannot("accept connections"))?;
        stream.set_nodelay(true).map_err(cannot("set TCP_NODELAY"))?;
        thread::spawn(move || answer(&stream, &stream));
    }
}

fn answer(mut from: impl Read, mut to: impl Write) {
    let mut byte = [0];
    while from.read_exact(&mut byte).is_ok() && to.write_all(&byte).and_then(|()| to.flush()).is_ok() {}
}

/// Asks over TCP (`--to`), or from standard input to standard output.
pub fn ask(options: &RoleOptions) -> Result<(), RoleError> {
    begin(options)?;
    if options.given("--to").is_none() {
        return count_answers(MeasuredTime::of(options)?, io::stdin().lock(), io::stdout().lock());
    }
    let address: SocketAddr = options.required("--to")?;
    let stream = standin::connect(address, PATIENCE).map_err(cannot(format!("connect to {address}")))?;
    stream.set_nodelay(true).map_err(cannot("set TCP_NODELAY"))?;
    count_answers(MeasuredTime::of(options)?, &stream, &stream)
}

fn count_answers(mut window: MeasuredTime, mut from: impl Read, mut to: impl Write) -> Result<(), RoleError> {
    let mut byte = [0];
    loop {
        to.write_all(&byte).and_then(|()| to.flush()).map_err(cannot("ask"))?;
        from.read_exact(&mut byte).map_err(cannot("read an answer"))?;
        if let Some(whole) = window.add(1) {
            return report(whole);
        }
    }
}

/// Reads standard input, or the first connection to `--listen`, until the window is over.
pub fn sink(options: &RoleOptions) -> Result<(), RoleError> {
    begin(options)?;
    if options.given("--listen").is_none() {
        return count_bytes(MeasuredTime::of(options)?, io::stdin().lock());
    }
    let listener = listen(options.required("--listen")?)?;
    let (stream, _) = listener.accept().map_err(cannot("accept connections"))?;
    count_bytes(MeasuredTime::of(options)?, &stream)
}

fn listen(address: SocketAddr) -> Result<TcpListener, RoleError> {
    let listener = TcpListener::bind(address).map_err(cannot(format!("listen on {address}")))?;
    say("listening")?;
    Ok(listener)
}

fn count_bytes(mut window: MeasuredTime, mut input: impl Read) -> Result<(), RoleError> {
    let mut block = vec![0; BLOCK];
    loop {
        match input.read(&mut block).map_err(cannot("read"))? {
            0 => return Err(RoleError::Said("nobody writes what it reads".to_owned())),
            bytes => {
                if let Some(whole) = window.add(bytes as u64) {
                    return report(whole);
                }
            }
        }
    }
}

/// Writes to standard output, or over TCP (`--to`), until nobody reads.
pub fn fill(options: &RoleOptions) -> Result<(), RoleError> {
    begin(options)?;
    let output = if options.given("--to").is_some() {
        let address: SocketAddr = options.required("--to")?;
        standin::connect(address, PATIENCE).map(Into::into).map_err(cannot(format!("connect to {address}")))?
    } else {
        // Past the buffer of the standard library, which would cut the blocks up.
        io::stdout().as_fd().try_clone_to_owned().map_err(cannot("copy standard output"))?
    };
    let (block, mut output) = (vec![0; BLOCK], File::from(output));
    while output.write_all(&block).is_ok() {}
    Ok(())
}
