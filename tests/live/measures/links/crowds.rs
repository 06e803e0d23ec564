//! Very many links, and links that come and go faster than they can be told.

use super::*;

#[test]
#[ignore = "on the real kernel: tests/run"]
fn a_storm_of_links_never_leaves_a_row_of_a_deleted_one() {
    live(|| {
        let mut reader = LinkReader::open().unwrap();
        reader.read().unwrap();
        let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
        let socket = reader.notifications().as_raw_fd();
        let before = descriptors();
        let deleted_up_to = AtomicI32::new(-1);
        let over = AtomicBool::new(false);
        let mut readings = 0;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 0..6 {
                    ip_batch((0..500).map(|n| format!("link add g{round}n{n} group 7 type ifb")));
                    ip_batch((0..500).map(|n| format!("link set g{round}n{n} name g{round}m{n}")));
                    ip("link del group 7");
                    deleted_up_to.store(round, Ordering::SeqCst);
                }
                over.store(true, Ordering::SeqCst);
            });
            while !over.load(Ordering::SeqCst) {
                let gone = deleted_up_to.load(Ordering::SeqCst);
                let reading = reader.read().unwrap();
                readings += 1;
                let round =
                    |link: &LinkFacts| link.name.strip_prefix('g')?.split(['n', 'm']).next()?.parse::<i32>().ok();
                let stale = reading.links.iter().find(|link| round(link).is_some_and(|round| round <= gone));
                assert!(stale.is_none(), "{stale:?} was deleted before the reading began");
                let links: Vec<_> = reading.links.iter().map(|link| link.ifindex).collect();
                let stray = reading.counters.iter().find(|row| links.binary_search(&row.ifindex).is_err());
                assert!(stray.is_none(), "{stray:?} counts for a link that is not there");
                assert!(reading.counters.is_sorted_by(|a, b| a.ifindex < b.ifindex), "one row a link, sorted");
            }
        });
        assert_equals_ip(&reader.read().unwrap());
        assert_eq!(reader.notifications().as_raw_fd(), socket, "the notification descriptor stays");
        assert_eq!(descriptors(), before, "no descriptor is gained or lost over {readings} readings");
    });
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn lost_notifications_are_made_good_by_a_new_dump() {
    live(|| {
        // Where modules of tunnels are loaded, a new namespace has more than lo.
        let there = ip_links().len();
        ip_batch((0..1200).map(|n| format!("link add old{n} group 7 type ifb")));
        let mut reader = LinkReader::open().unwrap();
        let before = reader.read().unwrap();
        assert_eq!(before.counters.len(), there + 1200, "the storm's links are there, over many datagrams");
        // Nobody reads while the queue overflows, and what is deleted last is lost.
        ip_batch((0..1200).map(|n| format!("link set old{n} mtu 1400")));
        ip("link del group 7");
        ip("link add new0 type ifb");
        let after = reader.read().unwrap();
        assert!(reader.overruns() > 0, "the queue did overflow");
        assert_equals_ip(&after);
        assert_eq!(after.links.len(), there + 1, "no deleted link is left, the new one is known");
        ip("link del new0");
        assert_equals_ip(&reader.read().unwrap());
        let overruns = reader.overruns();
        reader.drain().unwrap();
        assert_eq!(reader.overruns(), overruns, "and it is over");
    });
}

/// Sends this many UDP packets to itself, over `lo`.
fn send(packets: usize) {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    for _ in 0..packets {
        socket.send_to(&[0; 1000], socket.local_addr().unwrap()).unwrap();
    }
}

#[test]
#[ignore = "on the real kernel: tests/run"]
fn among_very_many_links_no_packet_is_lost_from_those_that_move_and_no_link_is_forgotten() {
    live(|| {
        ip_batch((0..400).map(|n| format!("link add still{n} type ifb")));
        let mut reader = LinkReader::open().unwrap().idle_ones_less_often();
        let received = |reading: &LinkReading| {
            let index = named(reading, "lo").ifindex;
            let row = reading.counters.iter().find(|row| row.ifindex == index).unwrap();
            (row.rx_packets, row.at_ns)
        };
        let mut tick = || {
            std::thread::sleep(std::time::Duration::from_millis(50));
            reader.read().unwrap()
        };
        let first = tick();
        let (before, _) = received(&first);
        let (mut sent, mut skipped) = (0, 0);
        for _ in 0..70 {
            send(3);
            sent += 3;
            let reading = tick();
            let (packets, at_ns) = received(&reading);
            assert_eq!(packets - before, sent, "what was sent before a tick is in that tick");
            assert_eq!(reading.counters.len(), reading.links.len(), "every link has a row");
            let oldest = reading.counters.iter().map(|row| row.at_ns).min().unwrap();
            assert!(at_ns - oldest < 650_000_000, "a link that stands still was read at most a round ago");
            skipped += usize::from(oldest < at_ns);
        }
        assert!(skipped >= 15, "most ticks of the second half leave the still ones alone: {skipped}");
        ip("link del still7");
        let reading = tick();
        assert!(!has(&reading, "still7"), "a deleted link is gone on the next tick");
        assert_eq!(reading.counters.len(), reading.links.len(), "and so is its row");
        ip("link add still7 type ifb");
        let reading = tick();
        assert!(
            has_row(&reading, named(&reading, "still7")),
            "a new one is read on the tick that sees it, or the next"
        );
    });
}
