//! What a reading says when the kernel errs, hurries, forgets or is interrupted.

use super::super::{LinkReading, counters};
use super::kernel::{
    FAMILY, GETLINK, GETSTATS, Line, TestKernel, done, error, flagged, gone, ifinfo, link, linkmodes, message, row,
};
use crate::SourceError;
use crate::netlink::client::NetlinkClient;
use std::sync::Arc;
use vnettop_sample::{Ifindex, LinkFacts, ProblemSource};

const INTERRUPTED: u16 = 16;

/// Two links, both counted in every answered dump that a test puts down with it.
fn two_links() -> TestKernel {
    TestKernel::with(&[link(1, "one", &[]), link(2, "two", &[])])
}

fn named<'a>(reading: &'a LinkReading, name: &str) -> Option<&'a Arc<LinkFacts>> {
    reading.links.iter().find(|link| link.name == name)
}

fn rows(reading: &LinkReading) -> Vec<(u32, u64)> {
    reading.counters.iter().map(|row| (row.ifindex.0, row.rx_bytes)).collect()
}

#[test]
fn a_quiet_tick_asks_for_counters_and_nothing_else() {
    let kernel = two_links();
    let mut reader = kernel.open().unwrap();
    kernel.dumps.asked();
    kernel.ethtool.asked();
    kernel.dumps.answer(GETSTATS, &[[row(1, 10), row(2, 20), done(0)].concat()]);
    let first = reader.read().unwrap();
    let second = reader.read().unwrap();
    assert_eq!(rows(&first), [(1, 10), (2, 20)], "counters are the kernel's");
    assert_eq!(kernel.dumps.asked(), [GETSTATS, GETSTATS], "only counters are asked for");
    assert_eq!(kernel.ethtool.asked(), [0_u16; 0], "and no claims");
    assert!(Arc::ptr_eq(&first.links, &second.links), "the list of links is the same object");
}

#[test]
fn a_notification_that_changes_nothing_keeps_the_same_list() {
    let kernel = two_links();
    let mut reader = kernel.open().unwrap();
    let first = reader.read().unwrap();
    kernel.ethtool.asked();
    kernel.news.push(Ok(link(2, "two", &[])));
    let second = reader.read().unwrap();
    assert!(Arc::ptr_eq(&first.links, &second.links), "nothing changed");
    assert_eq!(kernel.ethtool.asked(), [FAMILY], "but claims are asked for again, once");
}

#[test]
fn a_dump_that_ends_with_an_error_is_an_error_and_the_next_tick_is_whole() {
    let kernel = two_links();
    let mut reader = kernel.open().unwrap();
    kernel.dumps.answer(GETSTATS, &[row(1, 10), done(libc::EMSGSIZE)]);
    let SourceError::Netlink { operation, error: why } = reader.read().unwrap_err() else { panic!("a netlink error") };
    assert_eq!((operation, why.raw_os_error()), ("dump link counters", Some(libc::EMSGSIZE)), "it says what and why");
    kernel.dumps.answer(GETSTATS, &[error(libc::EPERM)]);
    let refused = reader.read().unwrap_err().to_string();
    assert!(refused.starts_with("netlink: cannot dump link counters: Operation not permitted"), "{refused}");
    kernel.dumps.answer(GETSTATS, &[row(1, 11), row(2, 22), done(0)]);
    assert_eq!(rows(&reader.read().unwrap()), [(1, 11), (2, 22)], "the next tick starts afresh");
}

#[test]
fn an_answer_that_breaks_off_is_an_error_and_what_is_left_of_it_is_not_taken_for_the_next() {
    let kernel = two_links();
    let mut reader = kernel.open().unwrap();
    kernel.dumps.answer(GETSTATS, &[row(1, 10)]);
    let broken = reader.read().unwrap_err().to_string();
    assert!(broken.contains("incomplete"), "{broken}");
    kernel.dumps.push(Ok(row(1, 5)));
    kernel.dumps.push(Ok(done(0)));
    kernel.dumps.answer(GETSTATS, &[row(1, 11), row(2, 22), done(0)]);
    assert_eq!(rows(&reader.read().unwrap()), [(1, 11), (2, 22)], "leftovers are thrown away first");
}

#[test]
fn messages_of_another_sequence_number_are_not_answers() {
    let kernel = two_links();
    let mut reader = kernel.open().unwrap();
    let mut foreign = row(2, 99);
    foreign[8..12].copy_from_slice(&u32::MAX.to_ne_bytes());
    let mut foreign_end = done(libc::EIO);
    foreign_end[8..12].copy_from_slice(&u32::MAX.to_ne_bytes());
    kernel.dumps.answer(GETSTATS, &[[foreign, row(1, 10)].concat(), foreign_end, [row(2, 20), done(0)].concat()]);
    assert_eq!(rows(&reader.read().unwrap()), [(1, 10), (2, 20)], "only our answer counts");
}

#[test]
fn an_interrupted_counter_dump_is_repeated_only_when_a_row_is_missing() {
    let kernel = two_links();
    let mut reader = kernel.open().unwrap();
    kernel.dumps.asked();
    kernel.dumps.answer(GETSTATS, &[row(1, 10), flagged(row(2, 20), INTERRUPTED), row(2, 21), done(0)]);
    assert_eq!(rows(&reader.read().unwrap()), [(1, 10), (2, 20)], "a row that came twice counts once");
    assert_eq!(kernel.dumps.asked().len(), 1, "nothing was missing");
    kernel.dumps.answer(GETSTATS, &[flagged(row(1, 11), INTERRUPTED), done(0)]);
    kernel.dumps.answer(GETSTATS, &[row(2, 22), row(1, 12), done(0)]);
    assert_eq!(rows(&reader.read().unwrap()), [(1, 11), (2, 22)], "the skipped row is asked for");
    kernel.dumps.asked();
    for _ in 0..9 {
        kernel.dumps.answer(GETSTATS, &[flagged(row(1, 13), INTERRUPTED), done(0)]);
    }
    assert_eq!(rows(&reader.read().unwrap()), [(1, 13)], "what the kernel keeps skipping stays unknown");
    assert_eq!(kernel.dumps.asked().len(), 2, "and is not asked for without end");
}

#[test]
fn interrupted_link_dumps_are_repeated_and_put_together() {
    let kernel = TestKernel::default();
    kernel.dumps.answer(GETLINK, &[flagged(link(1, "one", &[]), INTERRUPTED), done(0)]);
    kernel.dumps.answer(GETLINK, &[link(2, "two", &[]), flagged(done(0), INTERRUPTED)]);
    kernel.dumps.answer(GETLINK, &[link(2, "two", &[]), link(3, "three", &[]), done(0)]);
    let reading = kernel.open().unwrap().read().unwrap();
    let names: Vec<&str> = reading.links.iter().map(|link| link.name.as_str()).collect();
    assert_eq!(names, ["one", "two", "three"], "no link is lost to an interruption");
}

#[test]
fn a_datagram_larger_than_the_buffer_makes_it_grow() {
    let all: Vec<_> = (1..=2000).map(|ifindex| link(ifindex, "fourteen bytes", &[])).collect();
    assert!(all.concat().len() > 64 * 1024, "it is larger");
    let kernel = TestKernel::with(&all);
    kernel.dumps.answer(GETLINK, &[all.concat(), done(0)]);
    let mut reader = kernel.open().unwrap();
    assert_eq!(reader.read().unwrap().links.len(), 2000, "the links that were cut off are asked for again");
}

#[test]
fn rows_follow_their_links() {
    let kernel = two_links();
    let mut reader = kernel.open().unwrap();
    kernel.dumps.answer(GETSTATS, &[row(1, 10), row(2, 20), done(0)]);
    kernel.news.push(Ok([gone(1), link(7, "seven", &[])].concat()));
    let reading = reader.read().unwrap();
    assert_eq!(rows(&reading), [(2, 20)], "a link deleted after the dump has no row left");
    assert!(named(&reading, "one").is_none() && named(&reading, "seven").is_some(), "one created after it has facts");
    kernel.dumps.answer(GETSTATS, &[row(7, 70), row(300, 1), row(2, 21), done(0)]);
    assert_eq!(
        rows(&reader.read().unwrap()),
        [(2, 21), (7, 70)],
        "rows are sorted, and a link nobody told of has none"
    );
}

#[test]
fn an_index_used_again_is_another_link_and_does_not_inherit_counters() {
    let kernel = two_links();
    let mut reader = kernel.open().unwrap();
    let before = reader.read().unwrap();
    kernel.dumps.answer(GETSTATS, &[row(1, 10), row(2, 20), done(0)]);
    kernel.news.push(Ok(gone(2)));
    kernel.news.push(Ok(link(2, "two", &[])));
    let reading = reader.read().unwrap();
    let born = |reading| named(reading, "two").unwrap().born;
    assert!(born(&reading) > born(&before), "deleted and created anew it is another link");
    assert_eq!(rows(&reading), [(1, 10)], "and nobody knows whose counters the row holds");
    kernel.dumps.answer(GETSTATS, &[row(1, 11), row(2, 1), done(0)]);
    assert_eq!(rows(&reader.read().unwrap()), [(1, 11), (2, 1)], "from the next tick they are its own");
    kernel.news.push(Ok(link(2, "renamed", &[])));
    let renamed = reader.read().unwrap();
    assert_eq!(named(&renamed, "renamed").unwrap().born, born(&reading), "a new name makes no new link");
}

#[test]
fn a_port_that_leaves_its_bridge_stays_a_link() {
    let master = 2_u32.to_ne_bytes();
    let kernel = TestKernel::with(&[link(1, "port", &[(libc::IFLA_MASTER, &master)]), link(2, "bridge", &[])]);
    let mut reader = kernel.open().unwrap();
    assert!(named(&reader.read().unwrap(), "port").unwrap().master.is_some(), "it is a port");
    kernel.news.push(Ok(message(16, &ifinfo(7, 1, 1, 1), &[(libc::IFLA_MASTER, &master)])));
    kernel.news.push(Ok(message(17, &ifinfo(7, 1, 1, 1), &[(libc::IFLA_MASTER, &master)])));
    kernel.news.push(Ok(link(1, "port", &[])));
    let reading = reader.read().unwrap();
    assert_eq!(named(&reading, "port").map(|link| (link.master, link.born)), Some((None, 0)), "the same link, no port");
}

#[test]
fn lost_notifications_mean_a_new_dump_and_no_ghosts() {
    let kernel = two_links();
    let mut reader = kernel.open().unwrap();
    let before = reader.read().unwrap();
    // What is queued behind the error is older than the gap: "ghost" was created before and deleted within it.
    kernel.news.push(Err(libc::ENOBUFS));
    kernel.news.push(Ok(link(9, "ghost", &[])));
    kernel.dumps.answer(GETLINK, &[link(2, "two", &[]), link(3, "three", &[]), done(0)]);
    let reading = reader.read().unwrap();
    let names: Vec<&str> = reading.links.iter().map(|link| link.name.as_str()).collect();
    assert_eq!((names.as_slice(), reader.overruns()), (["two", "three"].as_slice(), 1), "the dump is the truth");
    assert_eq!(
        named(&reading, "two").unwrap().born,
        named(&before, "two").unwrap().born,
        "what stayed is the same link"
    );
    assert!(named(&reading, "three").unwrap().born > 0, "what came is a new one");
    kernel.dumps.asked();
    reader.read().unwrap();
    assert_eq!(kernel.dumps.asked(), [GETSTATS], "once");
}

#[test]
fn a_kernel_that_loses_notifications_without_end_does_not_hold_up_the_tick() {
    let kernel = two_links();
    let mut reader = kernel.open().unwrap();
    kernel.dumps.asked();
    for _ in 0..50 {
        kernel.news.push(Err(libc::ENOBUFS));
        kernel.news.push(Err(libc::EAGAIN));
        kernel.news.push(Err(libc::ENOBUFS));
    }
    reader.read().unwrap();
    assert!(kernel.dumps.asked().len() < 8, "it gives up catching up after a few dumps");
    kernel.dumps.answer(GETLINK, &[link(1, "one", &[]), done(0)]);
    (0..40).for_each(|_| drop(reader.read().unwrap()));
    kernel.dumps.asked();
    reader.read().unwrap();
    assert_eq!(kernel.dumps.asked(), [GETSTATS], "and is quiet again once it has");
}

#[test]
fn a_row_is_stamped_when_the_kernel_filled_its_datagram() {
    let kernel = two_links();
    let mut reader = kernel.open().unwrap();
    kernel.dumps.answer(GETSTATS, &[row(1, 10), row(2, 20), done(0)]);
    let reading = reader.read().unwrap();
    let filled = kernel.dumps.filled_at();
    for (n, row) in reading.counters.iter().enumerate() {
        assert!((filled[n]..=filled[n + 1]).contains(&row.at_ns), "row {n} is stamped in the call that filled it");
    }
    assert_eq!(reading.at_ns, reading.counters[0].at_ns, "the reading's own time is the first one's");
}

#[test]
fn the_other_end_of_a_veth_that_moves_is_asked_for() {
    let veth = [&8_u16.to_ne_bytes()[..], &1_u16.to_ne_bytes(), b"veth"].concat();
    let end = |ifindex, peer: u32, away: bool| {
        let (peer, netnsid) = (peer.to_ne_bytes(), 0_i32.to_ne_bytes());
        let mut more: Vec<(u16, &[u8])> = vec![(libc::IFLA_LINKINFO, &veth), (libc::IFLA_LINK, &peer)];
        more.extend(away.then_some((libc::IFLA_LINK_NETNSID, &netnsid[..])));
        link(ifindex, &format!("end{ifindex}"), &more)
    };
    let kernel = TestKernel::with(&[end(4, 5, false), end(5, 4, false)]);
    let mut reader = kernel.open().unwrap();
    kernel.news.push(Ok(gone(5)));
    kernel.dumps.answer(GETLINK, &[end(4, 2, true)]);
    let apart = reader.read().unwrap();
    let peer = |reading| named(reading, "end4").unwrap().peer.map(|peer| (peer.netnsid, peer.ifindex.0));
    assert_eq!(peer(&apart), Some((Some(0), 2)), "the kernel announces the end that moved, not the one that stayed");
    kernel.news.push(Ok(end(5, 4, false)));
    kernel.dumps.answer(GETLINK, &[end(4, 5, false)]);
    assert_eq!(peer(&reader.read().unwrap()), Some((None, 5)), "nor when it comes back");
    kernel.dumps.asked();
    reader.read().unwrap();
    assert_eq!(kernel.dumps.asked(), [GETSTATS], "and nothing is asked twice");
}

#[test]
fn claims_are_read_again_when_something_changed() {
    let kernel = two_links();
    kernel.ethtool.answer(FAMILY, &[[linkmodes(4, 1, 10_000), linkmodes(4, 2, u32::MAX), done(0)].concat()]);
    let mut reader = kernel.open().unwrap();
    let speeds = |reading: &LinkReading| reading.links.iter().map(|link| link.speed_mbps).collect::<Vec<_>>();
    let first = reader.read().unwrap();
    assert_eq!(speeds(&first), [Some(10_000), None], "an unknown speed is none");
    kernel.monitor.push(Ok(linkmodes(5, 1, 25_000)));
    kernel.ethtool.answer(FAMILY, &[linkmodes(4, 1, 25_000), linkmodes(4, 2, 25_000), done(0)]);
    let set = reader.read().unwrap();
    assert_eq!(speeds(&set), [Some(25_000), Some(25_000)], "what follows from a set speed is read too");
    let was_set: Vec<bool> = set.links.iter().map(|link| link.speed_was_set).collect();
    assert_eq!(was_set, [true, false], "only the announced one was set by someone");
    kernel.monitor.push(Ok(linkmodes(5, 2, 25_000)));
    kernel.ethtool.answer(FAMILY, &[linkmodes(4, 1, 25_000), linkmodes(4, 2, 25_000), done(0)]);
    let same = reader.read().unwrap();
    assert!(Arc::ptr_eq(&set.links, &same.links), "another mode at the same speed is no set speed");
    kernel.news.push(Ok(link(1, "renamed", &[])));
    kernel.ethtool.answer(FAMILY, &[linkmodes(4, 2, 25_000), done(0)]);
    let renamed = reader.read().unwrap();
    assert_eq!(speeds(&renamed), [None, Some(25_000)], "a driver that says nothing any more claims nothing");
    assert!(named(&renamed, "renamed").unwrap().speed_was_set, "that it was once set is not forgotten");
}

#[test]
fn a_driver_that_fails_does_not_cost_the_others_their_claims() {
    let kernel = TestKernel::with(&[link(1, "one", &[]), link(2, "asleep", &[]), link(3, "three", &[])]);
    kernel.ethtool.answer(FAMILY, &[linkmodes(4, 1, 100), done(libc::ENODEV)]);
    kernel.ethtool.answer(FAMILY, &[error(libc::ENODEV)]);
    kernel.ethtool.answer(FAMILY, &[linkmodes(4, 3, 300)]);
    let mut reader = kernel.open().unwrap();
    let reading = reader.read().unwrap();
    let speeds: Vec<_> = reading.links.iter().map(|link| link.speed_mbps).collect();
    assert_eq!(speeds, [Some(100), None, Some(300)], "those behind it are asked one by one");
    assert_eq!(reader.problems(), [], "which is no problem to tell");
}

#[test]
fn claims_that_cannot_be_read_are_unknown_and_told_until_they_can() {
    let kernel = TestKernel::with(&[link(1, "one", &[])]);
    kernel.ethtool.answer(FAMILY, &[error(libc::EPERM)]);
    kernel.ethtool.answer(FAMILY, &[error(libc::EPERM)]);
    let mut reader = kernel.open().unwrap();
    let [problem] = reader.problems() else { panic!("one problem") };
    assert_eq!(problem.source, ProblemSource::Speed, "it concerns speeds");
    assert!(problem.text.contains("cannot dump link speeds: Operation not permitted"), "{}", problem.text);
    kernel.news.push(Ok(link(1, "one", &[])));
    kernel.ethtool.answer(FAMILY, &[linkmodes(4, 1, 100), done(0)]);
    reader.read().unwrap();
    assert_eq!(reader.problems(), [], "it is over when an answer comes");
}

#[test]
fn single_answers_leave_out_what_failed_and_an_answer_that_breaks_off_is_an_error() {
    let line = Line::default();
    let mut netlink = NetlinkClient::new(line.clone());
    let mut ask = |count: u32| {
        let mut requests: Vec<_> = (1..=count).map(|ifindex| counters::request(Some(Ifindex(ifindex)))).collect();
        let mut received = Vec::new();
        let asked = netlink.get_each(&mut requests, |message, at_ns| {
            received.extend(counters::row(message, 0, at_ns).map(|row| (row.ifindex.0, row.rx_bytes)));
        });
        (received, asked.is_ok())
    };
    line.answer(GETSTATS, &[row(1, 10), error(libc::ENODEV), row(3, 30)]);
    assert_eq!(ask(3), (vec![(1, 10), (3, 30)], true), "the second has gone, which is no error");
    line.answer(GETSTATS, &[row(1, 11)]);
    assert_eq!(ask(2), (vec![(1, 11)], false), "the second answer never came");
    line.push(Ok(row(2, 21)));
    line.answer(GETSTATS, &[row(1, 12), row(2, 22)]);
    assert_eq!(ask(2), (vec![(1, 12), (2, 22)], true), "a late answer is not the next question's");
}
