//! Without a terminal: JSON lines, and one frame as text.

use super::signals::wait;
use super::{App, AppError, Ended, Signals, Stream};
use crate::action::{Step, parse_keys};
use crate::record::RecordError;
use crate::report::json as json_lines;
use crate::sample::Problem;
use crate::source::feed::{Feed, Next};
use crate::term;
use crate::ui::Theme;
use std::collections::HashSet;
use std::io::{self, ErrorKind, Write};

/// One JSON object an interval, flushed, until the count, the end, a signal or a closed pipe.
///
/// # Errors
/// The source, the recording or the output failed.
pub fn json(
    mut stream: Stream,
    feed: &Feed,
    signals: &Signals,
    count: Option<u64>,
    out: &mut impl Write,
) -> Result<Ended, AppError> {
    let mut broken = None;
    let ended = write_objects(&mut stream, &mut broken, feed, signals, count, out);
    // However it ended, the recording is closed.
    let finished = stream.finish();
    let ended = ended?;
    finished?;
    broken.map_or(Ok(ended), |error: RecordError| Err(error.into()))
}

/// The loop of [`json`]; a recording that fails is told, remembered and given up.
fn write_objects(
    stream: &mut Stream,
    broken: &mut Option<RecordError>,
    feed: &Feed,
    signals: &Signals,
    mut left: Option<u64>,
    out: &mut impl Write,
) -> Result<Ended, AppError> {
    let mut buffer = Vec::new();
    let mut told = Told::default();
    let mut nothing_yet = true;
    loop {
        if let Some(signal) = signals.ending() {
            return Ok(Ended::Signal(signal));
        }
        let item = match feed.next()? {
            Next::Item(item) => item,
            Next::End if nothing_yet => return Err(AppError::NoSample),
            Next::End => return Ok(Ended::Done),
            Next::Waiting => {
                wait(&[feed.ready(), signals.fd()]);
                continue;
            }
        };
        if let Err(error) = stream.record(&item) {
            term::say(format_args!("{error}; the run goes on without it"));
            *broken = Some(error);
        }
        let Some(metrics) = stream.derive(item) else { continue };
        told.tell(&metrics.problems);
        if metrics.elapsed_s.is_none() {
            continue;
        }
        nothing_yet = false;
        buffer.clear();
        json_lines::write(&mut buffer, &metrics).map_err(AppError::Output)?;
        match out.write_all(&buffer).and_then(|()| out.flush()) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(Ended::Done),
            Err(error) => return Err(AppError::Output(error)),
        }
        left = left.map(|left| left - 1);
        if left == Some(0) {
            return Ok(Ended::Done);
        }
    }
}

/// What is missing, said once on standard error: whoever reads the objects with a program may not look at `problems`.
#[derive(Default)]
struct Told(HashSet<String>);

impl Told {
    fn tell(&mut self, problems: &[Problem]) {
        for problem in problems {
            if self.0.insert(problem.text.clone()) {
                term::say(format_args!("{}: {}", problem.source, problem.text));
            }
        }
    }
}

/// Waits for the intervals asked for (at least one), presses the keys, prints the frame.
///
/// # Errors
/// The source or the output failed, or the keys name a key that does not exist.
pub fn print(mut app: App, signals: &Signals, keys: &str, size: (u16, u16), theme: Theme) -> Result<Ended, AppError> {
    let steps = parse_keys(keys).map_err(AppError::Keys)?;
    let ended = press_all(&mut app, signals, steps);
    let text = app.frame(size.0, size.1, theme);
    // However it ended: masks are put back if that was asked for, and the recording is closed.
    let closed = app.close();
    if let Some(signal) = ended? {
        return Ok(Ended::Signal(signal));
    }
    closed?;
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(AppError::Output(error)),
        _ => Ok(Ended::Done),
    }
}

/// Waits for the intervals, presses the keys; the signal that came instead, if one did.
fn press_all(app: &mut App, signals: &Signals, steps: Vec<Step>) -> Result<Option<i32>, AppError> {
    let intervals = app.left.take().unwrap_or(1).max(1);
    for _ in 0..=intervals {
        if let Some(signal) = next_sample(app, signals)? {
            return Ok(Some(signal));
        }
    }
    app.state.metrics().and_then(|metrics| metrics.elapsed_s).ok_or(AppError::NoSample)?;
    for step in steps {
        match step {
            Step::Press(key) => app.press(key)?,
            Step::Tick => {
                if let Some(signal) = next_sample(app, signals)? {
                    return Ok(Some(signal));
                }
            }
        }
    }
    Ok(None)
}

/// Waits for one sample; a signal that came instead is given back. At the end of a recording there is none to wait for.
fn next_sample(app: &mut App, signals: &Signals) -> Result<Option<i32>, AppError> {
    while !app.ended {
        if let Some(signal) = signals.ending() {
            return Ok(Some(signal));
        }
        match app.feed.next()? {
            Next::Item(item) => {
                if app.take(item)? {
                    return Ok(None);
                }
            }
            Next::End => app.ended = true,
            Next::Waiting => wait(&[app.feed.ready(), signals.fd()]),
        }
    }
    Ok(None)
}
