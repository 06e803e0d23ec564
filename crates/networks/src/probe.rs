//! One byte there and one back over TCP every few milliseconds, each round trip timed: how long an answer takes while the path is idle, or
//! beside a load. Who asks sleeps in between, so that it takes next to nothing from what it is measured beside.

use super::load::{PATIENCE, begin};
use super::role::{RoleError, RoleOptions, cannot};
use super::standin;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

/// Asks every few milliseconds and times the answers. It writes
/// `{"count":…,"mean_us":…,"p50_us":…,"p99_us":…,"max_us":…}` to standard error at the end.
pub const PROBE: &str = "probe";
/// What both of its ends are called: none of the names of loads.
pub const PROBE_NAME: &str = "vnettop-probe";
/// From one question to the next, in the mean: some 90 us of CPU time each, at both ends together, are 0.9 % of a core.
const EVERY: Duration = Duration::from_millis(10);
/// Most round trips that are kept; a longer measurement leaves the rest out.
const MOST: usize = 100_000;

/// Asks until its time is over.
pub(crate) fn probe(options: &RoleOptions) -> Result<(), RoleError> {
    begin(options)?;
    let address: SocketAddr = options.required("--to")?;
    let (warm_up, length) = (options.seconds("--warm-up")?, options.seconds("--seconds")?);
    let began = Instant::now();
    let mut stream = standin::connect(address, PATIENCE).map_err(cannot(format!("connect to {address}")))?;
    stream.set_nodelay(true).map_err(cannot("set TCP_NODELAY"))?;
    let (from, to) = (began + warm_up, began + warm_up + length);
    let (mut times, mut byte, mut next, mut seed) = (Vec::new(), [0], Instant::now(), 0x2545_F491_4F6C_DD1D_u64);
    while times.len() < MOST {
        thread::sleep(next.saturating_duration_since(Instant::now()));
        let asked = Instant::now();
        if asked >= to {
            break;
        }
        stream.write_all(&byte).map_err(cannot("ask"))?;
        stream.read_exact(&mut byte).map_err(cannot("read an answer"))?;
        if asked >= from {
            times.push(asked.elapsed());
        }
        // What is late is not made up for, and no rhythm of the machine is met again and again.
        next = (next + pause(&mut seed)).max(Instant::now());
    }
    times.sort_unstable();
    let summary = summary(&times).ok_or_else(|| RoleError::Said("no answer came in time".to_owned()))?;
    writeln!(io::stderr(), "{summary}").map_err(cannot("write to standard error"))
}

/// Half to one and a half times the mean, by xorshift.
fn pause(seed: &mut u64) -> Duration {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    EVERY / 2 + EVERY.mul_f64((*seed >> 11) as f64 / (1_u64 << 53) as f64)
}

/// Sorted times as one line; `None` of none. A quantile is the least time that so large a share is not above.
fn summary(times: &[Duration]) -> Option<String> {
    let us = |time: Duration| time.as_secs_f64() * 1e6;
    let quantile = |per_cent: usize| times.get((times.len() * per_cent).div_ceil(100).saturating_sub(1)).copied();
    let mean = us(times.iter().sum::<Duration>()) / times.len().max(1) as f64;
    let (p50, p99, max) = (us(quantile(50)?), us(quantile(99)?), us(*times.last()?));
    let count = times.len();
    Some(format!(
        "{{\"count\":{count},\"mean_us\":{mean:.3},\"p50_us\":{p50:.3},\"p99_us\":{p99:.3},\"max_us\":{max:.3}}}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_times_that_were_measured() {
        let times: Vec<Duration> = (1..=200).map(Duration::from_micros).collect();
        let line = "{\"count\":200,\"mean_us\":100.500,\"p50_us\":100.000,\"p99_us\":198.000,\"max_us\":200.000}";
        assert_eq!(summary(&times).as_deref(), Some(line));
        let one = "{\"count\":1,\"mean_us\":7.000,\"p50_us\":7.000,\"p99_us\":7.000,\"max_us\":7.000}";
        assert_eq!(summary(&[Duration::from_micros(7)]).as_deref(), Some(one));
        assert_eq!(summary(&[]), None);
    }

    #[test]
    fn pauses_are_spread_around_their_mean() {
        let mut seed = 0x2545_F491_4F6C_DD1D;
        let pauses: Vec<Duration> = (0..10_000).map(|_| pause(&mut seed)).collect();
        assert!(pauses.iter().all(|one| (EVERY / 2..=EVERY * 3 / 2).contains(one)));
        let mean = pauses.iter().sum::<Duration>() / 10_000;
        assert!(mean.abs_diff(EVERY) < EVERY / 50, "{mean:?}");
    }
}
