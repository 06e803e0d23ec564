//! Without a terminal: the JSON lines of several hosts, and the frame of one machine or of several as text.

use super::{Hosts, WatchedHost};
use crate::action::KeyStep;
use crate::app::headless::hand_over;
use crate::app::signals::wait;
use crate::app::{AppError, Ended, Signals};
use crate::derive::end_to_end::end_to_end;
use crate::report::json as json_lines;
use crate::sample::HostState;
use crate::term;
use crate::ui::{self, Theme};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Sentences on standard error: a host that says more fills somebody's disk.
const MOST_SAID: usize = 1000;

/// One JSON object a sample of each host, with the tests that two of them see, until each has had so many, the ends, a signal or
/// a closed pipe.
///
/// # Errors
/// A source, the recording or the output failed, or no host can be reached.
pub fn json_of_hosts(mut hosts: Hosts, signals: &Signals, out: &mut (impl Write + AsFd)) -> Result<Ended, AppError> {
    let ended = write_objects(&mut hosts, signals, out);
    let missing = hosts.missing().filter(|_| matches!(ended, Ok(Ended::Done)));
    // However it ended, the recording is closed.
    let (closed, _ending) = hosts.close();
    let ended = ended?;
    closed?.lines.iter().for_each(|line| term::say(&line.text));
    missing.map_or(Ok(ended), Err)
}

fn write_objects(hosts: &mut Hosts, signals: &Signals, out: &mut (impl Write + AsFd)) -> Result<Ended, AppError> {
    let (mut buffer, mut said) = (Vec::new(), 0);
    loop {
        if let Some(signal) = signals.ending() {
            return Ok(Ended::Signal(signal));
        }
        let mut has_more = false;
        for at in hosts.in_turn() {
            let took_one = hosts.each[at].takes_one()?;
            said += if said < MOST_SAID { hosts.each[at].app.tell_warnings() } else { 0 };
            if !took_one {
                continue;
            }
            has_more = true;
            let metrics = hosts.metrics();
            if metrics[at].metrics.machine.elapsed_s.is_none() {
                continue;
            }
            buffer.clear();
            let joined = end_to_end(&metrics);
            json_lines::write_of_host(&mut buffer, &metrics, at, &joined).map_err(AppError::Output)?;
            if let Some(ended) = hand_over(out, &buffer, signals, None)? {
                return Ok(ended);
            }
        }
        // Whoever asked for so many objects does not wait for a host that is not there.
        let is_over = |host: &WatchedHost| host.is_at_end() || host.app.options.count.is_some() && host.is_lost();
        if hosts.each.iter().all(is_over) {
            return Ok(Ended::Done);
        }
        if !has_more {
            hosts.wait(signals);
        }
    }
}

/// A recording that is not read ahead by then is printed without its end.
const READ_AHEAD: Duration = Duration::from_mins(1);

/// Waits until every host has shown the intervals asked for (at least one) or cannot be reached, presses the keys, prints the frame.
/// Damage of a recording is told on standard error.
///
/// # Errors
/// A source or the output failed, or no host can be reached.
pub fn print(
    shown: impl Into<Hosts>,
    signals: &Signals,
    steps: &[KeyStep],
    (width, height): (u16, u16),
    theme: Theme,
    out: &mut (impl Write + AsFd),
) -> Result<Ended, AppError> {
    let mut hosts = shown.into();
    let ended = press_all(&mut hosts, signals, steps);
    hosts.each.iter().filter(|host| host.is_lost()).for_each(|host| {
        host.app.say_warnings();
    });
    let mut frame = Buffer::empty(Rect::new(0, 0, width, height));
    ui::paint(&hosts.view(width, height), theme, &mut frame);
    let playbacks = hosts.each.iter().filter_map(|host| host.app.state.playback.as_ref());
    let damage: Vec<_> = playbacks.filter_map(|playback| playback.damage.clone()).collect();
    let (missing, is_alone) = (hosts.missing(), hosts.all.is_none());
    // However it ended: masks are put back if that was asked for, and the recording is closed.
    let (closed, _ending) = hosts.close();
    if let Some(signal) = ended? {
        return Ok(Ended::Signal(signal));
    }
    closed?.lines.iter().filter(|_| !is_alone).for_each(|line| term::say(&line.text));
    // The frame may be one from before it.
    damage.iter().for_each(term::say);
    let ended = hand_over(out, ui::text(&frame).as_bytes(), signals, None)?.unwrap_or(Ended::Done);
    missing.map_or(Ok(ended), Err)
}

/// Waits for the intervals, presses the keys; the signal that came instead, if one did.
fn press_all(hosts: &mut Hosts, signals: &Signals, steps: &[KeyStep]) -> Result<Option<i32>, AppError> {
    let mut intervals = 0;
    for host in &mut hosts.each {
        host.app.hear_player(READ_AHEAD)?;
        // One that starts in the middle shows a sample already.
        let least = u64::from(host.app.state.metrics().is_none());
        intervals = host.app.options.count.take().unwrap_or(least).max(least);
    }
    if let Some(signal) = await_intervals(hosts, signals, intervals)? {
        return Ok(Some(signal));
    }
    // Of several hosts the others are there to be seen.
    if hosts.all.is_none() && !hosts.each[0].app.has_interval() {
        return Err(AppError::NoSample);
    }
    for step in steps {
        match step {
            KeyStep::Press(key) => hosts.press(*key)?,
            KeyStep::Tick => {
                if let Some(signal) = await_intervals(hosts, signals, 1)? {
                    return Ok(Some(signal));
                }
            }
        }
    }
    Ok(None)
}

/// Waits for so many intervals more of each host that can be reached; a signal that came instead is given back.
fn await_intervals(hosts: &mut Hosts, signals: &Signals, intervals: u64) -> Result<Option<i32>, AppError> {
    let mut left = vec![intervals; hosts.each.len()];
    loop {
        if let Some(signal) = signals.ending() {
            return Ok(Some(signal));
        }
        let mut has_more = false;
        for (host, left) in hosts.each.iter_mut().zip(&mut left) {
            if *left > 0 && host.takes_one()? {
                has_more = true;
                *left -= u64::from(host.app.has_interval());
            }
        }
        let mut each = hosts.each.iter().zip(&left);
        if each.all(|(host, left)| *left == 0 || host.app.ended || host.is_lost()) {
            return Ok(None);
        }
        if !has_more {
            hosts.wait(signals);
        }
    }
}

impl WatchedHost {
    /// Takes items up to one sample; whether there was one.
    fn takes_one(&mut self) -> Result<bool, AppError> {
        if self.is_at_end() { Ok(false) } else { self.app.take_one() }
    }

    /// Nothing more is taken from it.
    fn is_at_end(&self) -> bool {
        self.app.ended || self.app.counted_out()
    }

    /// It cannot be reached now, or says nothing.
    fn is_lost(&self) -> bool {
        matches!(self.app.state.connection, Some(HostState::Lost { .. } | HostState::Silent))
    }
}

impl Hosts {
    /// The hosts that gave no sample, as the error that this is.
    fn missing(&self) -> Option<AppError> {
        let missing: Vec<&str> =
            self.each.iter().filter(|host| host.app.state.metrics().is_none()).map(|host| &*host.name).collect();
        let is_replay = self.each.iter().any(|host| host.app.is_replay());
        (!missing.is_empty()).then(|| if is_replay { AppError::NoSample } else { AppError::NoHost(missing.join(", ")) })
    }

    /// The hosts whose turn it is: of a recording the one that is furthest behind by the wall clock, so that what both ends of a test
    /// say is of one time each time it is replayed.
    fn in_turn(&self) -> Vec<usize> {
        let open = (0..self.each.len()).filter(|&at| !self.each[at].is_at_end());
        let wall_ms = |at: &usize| self.each[*at].app.state.metrics().map(|metrics| metrics.machine.wall_ms);
        if self.each.iter().any(|host| host.app.is_replay()) {
            open.min_by_key(wall_ms).into_iter().collect()
        } else {
            open.collect()
        }
    }

    fn wait(&self, signals: &Signals) {
        let fds: Vec<BorrowedFd<'_>> = self
            .in_turn()
            .into_iter()
            .map(|at| &self.each[at])
            .map(|host| host.app.feed.ready())
            .chain([signals.fd()])
            .collect();
        wait(&fds, None);
    }
}
