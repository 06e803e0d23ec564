//! A reader of datagrams that does not get its core, or stands still: they wait in its socket.

use super::{FAR, PROGRAMS, Part, Told, alone, assert_same, so_far, stages};
use crate::ground::group::Group;
use crate::ground::{Netns, left_out, needs, needs_two_cores, veth_pair};

/// A reader on core 1 and a sender on core 0, which only the test lets wait.
struct Line {
    reader: Part,
    sender: Part,
    first: Group,
    _namespaces: (Netns, Netns),
}

impl Line {
    fn start(per_second: u32) -> Self {
        let line = Self::read_by("", per_second);
        line.first.take(line.reader.pid());
        line
    }

    /// The reader has these arguments beside its address, and no share of its own.
    fn read_by(more: &str, per_second: u32) -> Self {
        Self::to(format!("read {FAR} 7000 {more}").trim_end(), per_second)
    }

    fn to(reader: &str, per_second: u32) -> Self {
        let (near, far) = veth_pair();
        let reader = Part::on(&far, "1", reader);
        let sender = Part::on(&near, "0", &format!("send {FAR} 7000 {per_second}"));
        let first = Group::first();
        first.take(sender.pid());
        Self { reader, sender, first, _namespaces: (near, far) }
    }

    fn told(&self, objects: usize) -> Told {
        Told::of(&[self.sender.pid(), self.reader.pid()], objects)
    }

    /// The socket's figures are the reader's own, and no hop takes a millisecond.
    fn compare(self, told: &Told) {
        let truth = self.reader.measured();
        let socket = told.only("socket");
        assert_same("the mean in the socket", told.mean(socket).0, truth.within(&told.span_ns).mean(), 0.1);
        let whole = truth.within(&told.whole_ns());
        assert_same("the 99th percentile in the socket", so_far(socket, "p99_us"), whole.percentile(99), 0.15);
        for hop in stages(told.last(), "hop", false) {
            assert!(so_far(hop, "p99_us") < 1e3, "nothing waits on the way: {}", told.summary());
        }
        assert_eq!(stages(told.last(), "qdisc", false).len(), 0, "no qdisc has a queue: {}", told.summary());
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn datagrams_wait_for_a_reader_whose_core_a_real_time_thread_has() {
    needs(PROGRAMS);
    needs_two_cores();
    let _alone = alone();
    let line = Line::start(1_000);
    let hog = Part::outside("1", "hog 20 200 50");
    let told = line.told(24);
    let own = [format!("python3 {}", line.reader.pid()), format!("hog {} (real-time", hog.pid())];
    told.says(&["receiver's socket", &own[0], &own[1]]);
    let waits = told.last()["waited_for"].as_array().expect("a list").iter();
    let by_hog = waits.filter(|wait| wait["by_pid"] == hog.pid() && wait["by_priority"] == 50).count();
    assert!(by_hog > 0, "by its priority: {}", told.last()["waited_for"]);
    line.compare(&told);
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn datagrams_wait_for_a_reader_whose_core_another_program_has() {
    needs(PROGRAMS);
    needs_two_cores();
    let _alone = alone();
    let others = Group::ordinary();
    let line = Line::start(1_000);
    others.take(line.reader.pid());
    // Else it makes way for each datagram's reader.
    let hog = Part::outside("1", "hog 40 200");
    line.first.take(hog.pid());
    let told = line.told(24);
    told.says(&["receiver's socket", &format!("python3 {}", line.reader.pid()), &format!("hog {}", hog.pid())]);
    assert_eq!(told.named(&[&format!("hog {} (real-time", hog.pid())]).0, 0, "it is none: {:#?}", told.causes());
    drop(hog);
    line.compare(&told);
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn datagrams_wait_for_a_reader_that_stands_still() {
    needs(PROGRAMS);
    needs_two_cores();
    let _alone = alone();
    let line = Line::start(200);
    let _stopper = Part::outside("0", &format!("stop {} 100 300", line.reader.pid()));
    let told = line.told(24);
    told.says(&["receiver's socket", &format!("python3 {} stopped reading for up to", line.reader.pid())]);
    let socket = told.only("socket");
    assert_same("the 99th percentile in the socket, by how long it stands still", so_far(socket, "p99_us"), 1e5, 0.1);
    // One of some 60 reads is the first after that.
    assert_same("the 99th percentile between two reads", so_far(told.only("read_gap"), "p99_us"), 1e5, 0.15);
    line.compare(&told);
}

/// What is dropped waits for nobody: what came before that has waited all the longer.
#[test]
#[ignore = "on the real kernel: tests/run"]
fn what_waits_is_known_beside_what_finds_no_room() {
    needs(PROGRAMS);
    needs_two_cores();
    let _alone = alone();
    let line = Line::to(&format!("read_few {FAR} 7000"), 1_000);
    line.first.take(line.reader.pid());
    let _stopper = Part::outside("0", &format!("stop {} 100 300", line.reader.pid()));
    let told = line.told(24);
    let (arrivals, read) = (told.mean(told.only("arrival_gap")).1, told.mean(told.only("socket")).1);
    assert!(read < 0.85 * arrivals, "it loses many: {read} of {arrivals}");
    line.compare(&told);
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn datagrams_wait_for_a_reader_whose_quota_is_used_up() {
    needs(PROGRAMS);
    needs_two_cores();
    let _alone = alone();
    let fifth = Group::fifth();
    let line = Line::start(1_000);
    // On the other core, so that only the quota is what both have to share.
    let hog = Part::outside("0", "hog 100 100");
    fifth.take(line.reader.pid());
    fifth.take(hog.pid());
    let told = line.told(24);
    told.says(&["receiver's socket", &format!("python3 {}", line.reader.pid()), "quota"]);
    line.compare(&told);
    drop(hog);
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn datagrams_wait_for_a_reader_whose_real_time_is_throttled() {
    needs(PROGRAMS);
    needs_two_cores();
    let Some(fifth) = Group::real_time_fifth() else {
        return left_out("a throttled reader", "this kernel has no groups of real-time threads");
    };
    let _alone = alone();
    // It works for 30 ms every 250, of which its group lets it have 20 in a row.
    let line = Line::read_by("40 30 250", 1_000);
    fifth.take(line.reader.pid());
    let told = line.told(24);
    told.says(&["receiver's socket", &format!("python3 {}", line.reader.pid()), "it is real-time, and throttled"]);
    line.compare(&told);
}
