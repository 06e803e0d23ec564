//! A live run and its recording, sample by sample: every frame of the one is the frame of the other.
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::ground::namespace::{in_namespace, ip, live};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::path::Path;
use std::time::Duration;
use vnettop::derive::Derivation;
use vnettop::effect::{Kernel, Pinner};
use vnettop::record::{Recorder, Recording};
use vnettop::sample::{CoreSet, Item, OnRequest};
use vnettop::source::feed::{Feed, Next};
use vnettop::source::owners::SocketPlaces;
use vnettop::source::sampler::{Choice, ReadPolicy, ReadScope, SamplerSettings};
use vnettop::source::{Roots, threads::Watch};
use vnettop::state::{self, State};
use vnettop::ui::{self, Colors, Theme};
use vnettop::view::prepare;

const SIZES: [(u16, u16); 3] = [(200, 60), (80, 24), (60, 15)];

/// Every item's frames, one a size.
struct Frames {
    derivation: Derivation,
    state: State,
}

impl Frames {
    fn new() -> Self {
        Self { derivation: Derivation::default(), state: State::new(state::Settings::default()) }
    }

    fn after(&mut self, item: Item) -> Vec<Buffer> {
        if let Some(metrics) = self.derivation.advance(item) {
            self.state.receive(metrics);
        }
        let theme = Theme { colors: Colors::Terminal, utf8: true };
        let frame = |(width, height)| {
            let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
            ui::paint(&prepare(&self.state, self.derivation.history(), width, height), theme, &mut buffer);
            buffer
        };
        SIZES.map(frame).to_vec()
    }
}

/// The cores of the harness, given back to it at the end: a sampler in this process sits down with its main thread too, which starts the
/// threads of all tests that come after.
struct HarnessCores(CoreSet);

impl HarnessCores {
    fn keep() -> Self {
        Self(Kernel.mask_of(std::process::id()).unwrap())
    }
}

impl Drop for HarnessCores {
    fn drop(&mut self) {
        Kernel.set_mask(std::process::id(), &self.0).unwrap();
    }
}

/// So many ticks of 100 ms while links come, change their names and go.
fn watch_and_record(file: &Path, ticks: u64) -> Vec<Vec<Buffer>> {
    let scope = ReadScope {
        roots: Roots::default(),
        watch: vec![Watch::from(std::process::id().to_string().as_str())],
        netns: Choice::Own,
        ovs: Vec::new(),
        docker: SocketPlaces::find(|_| None, None),
        iperf3_json: None,
        read_policy: ReadPolicy::Everything,
        losses_at_rest: false,
        on_request: OnRequest::default(),
    };
    let interval = Duration::from_millis(100);
    // Dropped after the feed.
    let _cores = HarnessCores::keep();
    let feed = Feed::live(SamplerSettings { scope, interval, realtime: true, count: Some(ticks) }).unwrap();
    let mut recorder = Recorder::create(file).unwrap();
    let (mut frames, mut seen) = (Frames::new(), Vec::new());
    loop {
        match feed.next().unwrap() {
            Next::Item(item) => {
                recorder.write(&item).unwrap();
                seen.push(frames.after(item));
                let n = seen.len() / 3;
                match seen.len() % 3 {
                    0 => ip(&format!("link add come{n} type ifb")),
                    1 if n > 0 => ip(&format!("link set come{n} name gone{n}")),
                    2 if n > 1 => ip(&format!("link del gone{}", n - 1)),
                    _ => {}
                }
            }
            Next::Waiting => {
                let mut wait = [rustix::event::PollFd::from_borrowed_fd(feed.ready(), rustix::event::PollFlags::IN)];
                rustix::event::poll(&mut wait, None).unwrap();
            }
            Next::End => break,
        }
    }
    recorder.finish().unwrap();
    seen
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn every_frame_of_a_replay_is_the_frame_of_the_live_run() {
    live(|| {
        let seconds = std::env::var("VNETTOP_REPLAY_SECONDS").map_or(4, |text| text.parse().unwrap());
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("run.zst");
        let lived = in_namespace(|| watch_and_record(&file, seconds * 10));
        let mut recording = Recording::open(&file).unwrap();
        let mut frames = Frames::new();
        let mut replayed = Vec::new();
        while let Some(item) = recording.next_item().unwrap() {
            replayed.push(frames.after(item));
        }
        assert_eq!(lived.len() as u64, seconds * 10, "every tick was seen");
        assert_eq!(lived.len(), replayed.len(), "and recorded");
        for (n, (live, replay)) in lived.iter().zip(&replayed).enumerate() {
            assert!(live == replay, "frame {n} of the replay is the live one: {:?}", replay[0]);
        }
        let text = ui::text(&lived[lived.len() - 1][0]);
        assert!(text.contains("live-") && text.contains("gone"), "there was something to see:\n{text}");
    });
}
