//! This machine without a terminal: JSON lines, or a sentence every few seconds. One frame as text is that of `hosts`.

use super::signals::{wait, wait_to_write};
use super::{AppError, Ended, Signals, Stream};
use crate::derive::{Metrics, SpokenLines};
use crate::report::{json as json_lines, time_of_day};
use crate::sample::Problem;
use crate::source::feed::{Feed, Next};
use crate::term;
use std::collections::HashSet;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// One JSON object an interval, flushed, until the count, the end, a signal or a closed pipe.
///
/// # Errors
/// The source, the recording or the output failed.
pub fn json(
    stream: Stream,
    feed: &Feed,
    signals: &Signals,
    count: Option<u64>,
    out: &mut (impl Write + AsFd),
) -> Result<Ended, AppError> {
    written(stream, feed, signals, count, out, json_lines::write)
}

/// A sentence a test every few seconds, each on a line with the time before it; as [`json`], and `count` is of such times.
///
/// # Errors
/// The source, the recording or the output failed.
pub fn lines(
    stream: Stream,
    feed: &Feed,
    signals: &Signals,
    count: Option<u64>,
    (mut lines, out): (SpokenLines, &mut (impl Write + AsFd)),
) -> Result<Ended, AppError> {
    written(stream, feed, signals, count, out, |buffer, metrics| {
        for sentence in lines.due(metrics) {
            writeln!(buffer, "{} {sentence}", time_of_day(metrics.machine.wall_ms))?;
        }
        Ok(())
    })
}

/// What `write` makes of each interval, so often as `count` says that it made something.
fn written(
    mut stream: Stream,
    feed: &Feed,
    signals: &Signals,
    count: Option<u64>,
    out: &mut (impl Write + AsFd),
    write: impl FnMut(&mut Vec<u8>, &Metrics) -> io::Result<()>,
) -> Result<Ended, AppError> {
    let ended = write_each(&mut stream, feed, signals, count, out, write);
    stream.end_saves().iter().for_each(|news| term::say(&news.text));
    // However it ended, the recording is closed.
    let finished = stream.finish();
    let ended = ended?;
    finished?;
    Ok(ended)
}

/// The loop of [`written`]; a recording that fails is told and given up.
fn write_each(
    stream: &mut Stream,
    feed: &Feed,
    signals: &Signals,
    mut left: Option<u64>,
    out: &mut (impl Write + AsFd),
    mut write: impl FnMut(&mut Vec<u8>, &Metrics) -> io::Result<()>,
) -> Result<Ended, AppError> {
    let mut buffer = Vec::new();
    let mut reported = ReportedProblems::default();
    let mut nothing_yet = true;
    loop {
        let ending = signals.ending();
        stop_if_asked(signals, feed);
        if let Some(signal) = ending {
            return Ok(Ended::Signal(signal));
        }
        let item = match feed.next()? {
            Next::Item(item) => item,
            // Whoever asked for so many objects has left by then.
            Next::End if feed.is_live() => return Err(AppError::SourceEnded),
            Next::End if nothing_yet => return Err(AppError::NoSample),
            Next::End => return Ok(Ended::Done),
            Next::Waiting => {
                wait(&[feed.ready(), signals.fd()], None);
                continue;
            }
        };
        if let Some(why) = stream.record(&item) {
            term::say(format_args!("{why}; sampling continues without recording"));
        }
        let Some(metrics) = stream.derivation.advance(item) else { continue };
        reported.report(&metrics.machine.facts.problems);
        if let Some(news) = stream.watch(&metrics) {
            term::say(&news.text);
        }
        stream.profile_limit(&metrics, feed);
        if metrics.machine.elapsed_s.is_none() {
            continue;
        }
        nothing_yet = false;
        buffer.clear();
        write(&mut buffer, &metrics).map_err(AppError::Output)?;
        if buffer.is_empty() {
            continue;
        }
        if let Some(ended) = hand_over(out, &buffer, signals, Some(feed))? {
            return Ok(ended);
        }
        left = left.map(|left| left - 1);
        if left == Some(0) {
            return Ok(Ended::Done);
        }
    }
}

/// What is begun is finished for whoever reads on within this time of a signal that asks for an end: half an object is none.
const FINISHES: Duration = Duration::from_secs(1);

/// Writes all of it, and waits for whoever reads it as long as no signal asks for an end; how the run ended, if it did.
pub(super) fn hand_over(
    out: &mut (impl Write + AsFd),
    mut bytes: &[u8],
    signals: &Signals,
    feed: Option<&Feed>,
) -> Result<Option<Ended>, AppError> {
    let (whole, mut until) = (bytes.len(), None);
    while !bytes.is_empty() {
        match out.write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(Some(Ended::Done)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let left = until.map(|until: Instant| until.saturating_duration_since(Instant::now()));
                wait_to_write(signals.fd(), out.as_fd(), left);
                if let Some(signal) = signals.ending() {
                    let until = *until.get_or_insert_with(|| Instant::now() + FINISHES);
                    if bytes.len() == whole || Instant::now() >= until {
                        return Ok(Some(Ended::Signal(signal)));
                    }
                }
                if let Some(feed) = feed {
                    stop_if_asked(signals, feed);
                }
            }
            Err(error) => return Err(AppError::Output(error)),
        }
    }
    out.flush().map(|()| None).map_err(AppError::Output)
}

/// Stops for a while where that was asked for. Whoever stops this program lets nothing be kept alive by it meanwhile.
pub(super) fn stop_if_asked(signals: &Signals, feed: &Feed) {
    if signals.stop_asked() {
        feed.let_go();
        term::suspend();
        feed.go_on();
    }
}

/// What is missing, said once on standard error: whoever reads the objects with a program may not look at `problems`. A sentence with a number that
/// changes is another one each time, so there is an end to it.
#[derive(Default)]
struct ReportedProblems(HashSet<String>);

/// More sentences than these are in `problems` only.
const MOST_REPORTED: usize = 256;

impl ReportedProblems {
    fn report(&mut self, problems: &[Problem]) {
        for problem in problems {
            if self.0.len() < MOST_REPORTED && self.0.insert(problem.text.clone()) {
                term::say(format_args!("{}: {}", problem.source, problem.text));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::OnRequest;
    use crate::source::Roots;
    use crate::source::owners::SocketPlaces;
    use crate::source::sampler::{Choice, ReadPolicy, ReadScope, SamplerSettings};
    use std::io::{BufRead, BufReader, Seek};

    /// A sampler that ends after so many samples, whatever its reader wants.
    fn ends_after(samples: u64) -> Feed {
        let scope = ReadScope {
            roots: Roots::default(),
            watch: Vec::new(),
            netns: Choice::Own,
            ovs: Vec::new(),
            docker: SocketPlaces::find(|_| None, None),
            iperf3_json: None,
            read_policy: ReadPolicy::Everything,
            losses_at_rest: false,
            on_request: OnRequest::default(),
        };
        let (interval, count) = (Duration::from_millis(10), Some(samples));
        Feed::live(SamplerSettings { scope, interval, realtime: false, count }).expect("a thread")
    }

    #[test]
    fn a_sampler_that_ends_before_its_time_is_an_error_and_one_that_has_done_its_part_is_none() {
        let signals = Signals::none().expect("a pipe");
        let mut out = tempfile::tempfile().expect("a file");
        let ended = json(Stream::default(), &ends_after(4), &signals, Some(3), &mut out).expect("as asked");
        assert_eq!(ended, Ended::Done, "three intervals are four samples");
        for (samples, count) in [(4, None), (3, Some(3)), (1, None)] {
            let mut out = tempfile::tempfile().expect("a file");
            let error = json(Stream::default(), &ends_after(samples), &signals, count, &mut out).expect_err("it ended");
            assert!(matches!(error, AppError::SourceEnded), "{samples} samples, {count:?} asked for: {error}");
            out.rewind().expect("a file");
            let written = BufReader::new(out).lines().count() as u64;
            assert_eq!(written, samples - 1, "what came before the end is written");
        }
    }
}
