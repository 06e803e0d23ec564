//! The dump of a kernel's datapaths as Linux 6.1 sent it; `ovs-dpctl show` said of it what is expected here.

use super::*;
use crate::netlink::message::messages;
use proptest::prelude::*;

const DUMP: &[u8] = include_bytes!("../../../../../tests/fixtures/netlink/ovs-datapaths.bin");

fn datapaths(bytes: &[u8]) -> Vec<OvsDatapath> {
    messages(bytes).filter_map(|message| datapath(&message, 7, "/run/openvswitch/db.sock", 9)).collect()
}

#[test]
fn every_datapath_of_the_dump_is_read_with_its_counters() {
    let reported = datapaths(DUMP);
    let counted: Vec<_> =
        reported.iter().map(|one| (one.name.as_str(), one.born, one.hit, one.missed, one.lost, one.flows)).collect();
    assert_eq!(counted, [("ovs-system", 3, 13_246, 17_035, 1_556, 2), ("other0", 5, 0, 0, 0, 0)]);
    assert!(reported.iter().all(|one| (one.netns, one.at_ns, one.kind.as_ref()) == (7, 9, "system")));
}

proptest! {
    #[test]
    fn a_dump_that_is_cut_or_changed_breaks_nothing(end in 0..DUMP.len(), at in 0..DUMP.len(), byte: u8) {
        let mut bytes = DUMP.to_vec();
        bytes[at] = byte;
        datapaths(&bytes);
        prop_assert!(datapaths(&DUMP[..end]).len() <= 2);
    }
}
