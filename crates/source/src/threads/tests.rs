//! The reader's own bookkeeping, on the threads of this process.

use super::*;

fn own() -> Watch {
    Watch::Pid(std::process::id())
}

#[test]
fn scarce_descriptors_change_nothing_that_is_read() {
    let mut scarce = ThreadReader::open(&Roots::default(), vec![own()]).expect("/proc is there");
    scarce.most_kept = 0;
    let mut ample = ThreadReader::open(&Roots::default(), vec![own()]).expect("/proc is there");
    let tid = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
    let sample_of = |reader: &mut ThreadReader| {
        let samples = reader.read();
        samples.into_iter().find(|sample| sample.id.tid == tid).expect("this thread runs")
    };
    let (opened, kept) = (sample_of(&mut scarce), sample_of(&mut ample));
    assert!(scarce.tasks.values().all(|task| task.descriptors() == 0), "no descriptor was kept");
    assert!(ample.tasks[&(opened.id.pid, tid)].descriptors() == 3, "three were kept where there are enough");
    assert_eq!((opened.id, opened.duty, &opened.allowed), (kept.id, kept.duty, &kept.allowed), "the same thread");
    assert!(opened.cpu_ns <= kept.cpu_ns && opened.migrations <= kept.migrations, "read a moment earlier");
}

#[test]
fn a_thread_watched_for_its_own_name_is_left_when_it_takes_another() {
    let (done, wait) = std::sync::mpsc::channel::<()>();
    let (named, name) = std::sync::mpsc::channel();
    let thread = std::thread::Builder::new().name("vnt-first".to_owned()).spawn(move || {
        named.send(rustix::thread::gettid()).expect("someone listens");
        wait.recv().expect("told to go on");
        rustix::thread::set_name(c"vnt-second").expect("a thread may name itself");
        named.send(rustix::thread::gettid()).expect("someone listens");
        wait.recv().expect("told to end");
    });
    let tid = name.recv().expect("the thread runs").as_raw_nonzero().get().unsigned_abs();
    let mut reader = ThreadReader::open(&Roots::default(), vec!["vnt-first".into()]).expect("/proc is there");
    let tids = |samples: Vec<ThreadSample>| samples.iter().map(|sample| sample.id.tid).collect::<Vec<_>>();
    assert_eq!(tids(reader.read()), [tid], "one thread of this process bears the name");
    done.send(()).expect("the thread waits");
    name.recv().expect("it has renamed itself");
    assert_eq!(tids(reader.read()), Vec::<u32>::new(), "nobody bears it any more");
    done.send(()).expect("the thread waits");
    thread.expect("it started").join().expect("it ends");
}
