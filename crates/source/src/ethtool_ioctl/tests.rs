//! What the bytes of drivers' answers say, and that no bytes break the reading of them.

use super::*;
use proptest::prelude::*;

/// `struct ethtool_gstrings` with these names, and `struct ethtool_gfeatures` of two blocks.
fn answers(names: &[&str], blocks: [[u32; 4]; 2]) -> (Vec<u8>, Vec<u8>) {
    let number = |number: usize| u32::try_from(number).expect("small").to_ne_bytes();
    let mut strings = [number(0x1b), number(4), number(names.len())].concat();
    for name in names {
        let mut room = [0; NAME];
        room[..name.len()].copy_from_slice(name.as_bytes());
        strings.extend_from_slice(&room);
    }
    let words = blocks.into_iter().flatten().flat_map(u32::to_ne_bytes);
    (strings, [0x3a, 2].into_iter().flat_map(number).chain(words).collect())
}

#[test]
fn features_have_the_names_and_states_of_their_bits() {
    let mut names = vec!["tx-scatter-gather"; 34];
    (names[1], names[33]) = ("rx-gro", "tx-tcp-segmentation");
    let (strings, states) = answers(&names, [[0b10, 0b10, 0b11, 0], [0b10, 0, 0b10, 0]]);
    let reported = features(&strings, &states);
    let feature = |name: &str, changeable, wanted, on| Feature { name: name.into(), changeable, wanted, on };
    assert_eq!(reported.len(), 34, "as many as are named");
    assert_eq!(reported[0], feature("tx-scatter-gather", false, false, true), "the lowest bit of the first block");
    assert_eq!(reported[1], feature("rx-gro", true, true, true), "may be changed, is wanted, is on");
    assert_eq!(reported[33], feature("tx-tcp-segmentation", true, false, true), "the second bit of the second block");
    assert_eq!(features(&strings, &states[..24]).len(), 32, "of what is cut off nothing is told");
}

#[test]
fn a_speed_is_told_by_either_question() {
    let mut settings = vec![0; 48];
    settings[SPEED..SPEED + 4].copy_from_slice(&400_000_u32.to_ne_bytes());
    settings[WORDS] = 3;
    assert_eq!(speed(&settings), Some(400_000), "ETHTOOL_GLINKSETTINGS");
    settings[WORDS] = 3_u8.wrapping_neg();
    assert_eq!(speed(&settings), None, "the length of its lists alone is no answer");
    let mut old = vec![0; 44];
    old[SPEED_LOW..SPEED_LOW + 2].copy_from_slice(&0x1a80_u16.to_ne_bytes());
    old[SPEED_HIGH..SPEED_HIGH + 2].copy_from_slice(&6_u16.to_ne_bytes());
    assert_eq!(old_speed(&old), Some(400_000), "ETHTOOL_GSET has it in two parts");
}

#[test]
fn a_device_has_a_driver_and_a_place_on_its_bus() {
    let mut reported = vec![0; 196];
    reported[DRIVER..DRIVER + 10].copy_from_slice(b"virtio_net");
    reported[BUS..BUS + 12].copy_from_slice(b"0000:00:03.0");
    let wanted = LinkDriver { driver: b"virtio_net".to_vec(), bus: b"0000:00:03.0".to_vec() };
    assert_eq!(device(&reported), Some(wanted));
    assert_eq!(device(&reported[..BUS + 12]), None, "what is cut off is not told");
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes: Vec<u8>, more: Vec<u8>) {
        features(&bytes, &more);
        speed(&bytes);
        old_speed(&bytes);
        device(&bytes);
    }
}
