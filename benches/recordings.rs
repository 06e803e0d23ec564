//! What a recording costs and how fast it is gone through: an hour of 10 samples a second of 20 links and 128 cores.
//!
//! `cargo bench --bench recordings` prints KiB a minute, µs of CPU time to write a sample, and how long seeks take;
//! `-- 600` makes it 600 s.
#![allow(
    clippy::too_many_lines,
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    missing_docs,
    dead_code,
    reason = "a benchmark"
)]

#[path = "../tests/pure/fixture/load.rs"]
mod load;

use load::Load;
use std::time::{Duration, Instant};
use vnettop::app::Player;
use vnettop::app::convert::{AskedFile, convert};
use vnettop::convert::{ConvertedTo, TableKind};
use vnettop::record::{Recorder, StoredIn};
use vnettop::sample::Item;
use vnettop::state::{Mode, Settings, State};

const A_SECOND: u64 = 10;

fn main() {
    let seconds: u64 = std::env::args().find_map(|word| word.parse().ok()).unwrap_or(3600);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("hour.zst");
    let mut recorder = Recorder::create(&path).unwrap();
    let (mut writing, mut worst) = (Duration::ZERO, Duration::ZERO);
    let mut ends = (0, 0);
    for item in Load::new(20, 128, 1_000_000_000 / A_SECOND).take((seconds * A_SECOND) as usize) {
        if let Item::Sample(sample) = &item {
            ends = (if ends.0 == 0 { sample.at_ns } else { ends.0 }, sample.at_ns);
        }
        let before = cpu();
        recorder.write(&item).unwrap();
        let took = cpu().saturating_sub(before);
        (writing, worst) = (writing + took, worst.max(took));
    }
    recorder.finish().unwrap();
    let size = path.metadata().unwrap().len();
    println!("size     {} KiB a minute", size * 60 / seconds / 1024);
    println!(
        "writing  {} µs a sample, {:?} at most; {:.3} % of a core",
        writing.as_micros() as u64 / (seconds * A_SECOND),
        worst,
        writing.as_secs_f64() / seconds as f64 * 100.0
    );
    for format in [ConvertedTo::Perfetto, ConvertedTo::Table(TableKind::Bins), ConvertedTo::Table(TableKind::Links)] {
        let (output, begin, memory) = (directory.path().join("converted"), Instant::now(), resident());
        let recording = StoredIn::from(&path);
        let asked = AskedFile {
            recording: &recording,
            host: None,
            from: Duration::ZERO,
            to: None,
            format,
            output: Some(&output),
        };
        convert(&asked).unwrap();
        let (took, size) = (begin.elapsed(), output.metadata().unwrap().len() >> 20);
        println!(
            "convert  {took:?} for {seconds} s to {format:?}: {size} MiB, {} MiB of memory",
            resident().saturating_sub(memory) >> 20
        );
        std::fs::remove_file(&output).unwrap();
    }
    let memory = resident();
    let begin = Instant::now();
    let mut player = Player::open(StoredIn::File(path)).unwrap().unwrap();
    let mut state = State::new(Settings { mode: Mode::Replay, ..Settings::default() });
    let mut playback = player.playback(Some(1.0));
    player.receive(&mut playback, u64::MAX, Duration::from_hours(1));
    println!(
        "index    {:?} for {seconds} s, {} MiB, {} highlights",
        begin.elapsed(),
        (resident() - memory) >> 20,
        playback.highlights.len()
    );
    state.playback = Some(playback);
    let mut times = Vec::new();
    for nth in 0..120_u64 {
        let to_ns = ends.0 + (ends.1 - ends.0) / 1000 * (nth * 7919 % 1001);
        let begin = Instant::now();
        let start = player.start_at(to_ns, Some(&mut state)).unwrap();
        times.push((begin.elapsed(), (to_ns - ends.0) / 1_000_000_000));
        assert!(start.metrics.is_some());
    }
    times.sort();
    println!("seeks    median {:?}, worst {:?}", times[times.len() / 2], &times[times.len() - 5..]);
}

fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec as u32)
}

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}
