//! What the drivers of links say to `SIOCETHTOOL`, where the kernel does not tell it by netlink yet: their speed (before Linux
//! 5.6), their features (before 5.7), which device they drive (before 5.14). Every byte is treated as hostile: what does not fit
//! is not told, nothing panics.

mod ioctl;
mod switches;

use super::netlink::message::{text, u16_at, u32_at};
use ioctl::{HEAD, IoctlRequest, IoctlSocket};
use std::io;
pub(crate) use switches::LinkSwitches;
use vnettop_sample::Ifindex;

/// `struct ethtool_link_settings`: `speed`, `link_mode_masks_nwords`.
const SPEED: usize = 4;
const WORDS: usize = 15;
/// `struct ethtool_cmd`: `speed`, `speed_hi`.
const SPEED_LOW: usize = 12;
const SPEED_HIGH: usize = 28;
/// `struct ethtool_drvinfo`: `driver`, `bus_info`, of 32 bytes each.
const DRIVER: usize = 4;
const BUS: usize = 100;
/// `struct ethtool_gstrings`: the set that is asked for, `ETH_SS_FEATURES`; how many; the names, of `ETH_GSTRING_LEN` bytes.
const SET: usize = 4;
const FEATURES: u32 = 4;
const COUNT: usize = 8;
const NAMES: usize = 12;
const NAME: usize = 32;
/// `struct ethtool_gfeatures`: how many blocks there is room for, the blocks; in one (`struct ethtool_get_features_block`) 32
/// features, one bit each, that may be changed, that are wanted, that are on.
const SIZE: usize = 4;
const BLOCKS: usize = 8;
const BLOCK: usize = 16;
const WANTED: usize = 4;
const ON: usize = 8;
/// More than any kernel has: two.
const MOST_BLOCKS: u32 = 64;

/// Asks the drivers of one namespace's links.
#[derive(Debug)]
pub(super) struct Drivers(IoctlSocket);

/// One feature of a link, by the name that `ethtool -k` gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Feature {
    pub name: Vec<u8>,
    pub changeable: bool,
    pub wanted: bool,
    pub on: bool,
}

/// What drives a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LinkDriver {
    /// As `virtio_net`.
    pub driver: Vec<u8>,
    /// Where it is on its bus; empty where there is no device.
    pub bus: Vec<u8>,
}

impl Drivers {
    /// Opens a socket in the calling thread's namespace.
    pub fn open() -> io::Result<Self> {
        IoctlSocket::open().map(Self)
    }

    /// A link's speed, Mb/s, as its driver says it; `EOPNOTSUPP` where it says nothing.
    pub fn speed(&self, link: Ifindex) -> io::Result<u32> {
        let reported = match self.settings(link) {
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                old_speed(&self.0.ask(link, IoctlRequest::OldSettings, [0; HEAD])?)
            }
            reported => speed(&reported?),
        };
        reported.ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// The kernel first says how long its lists of modes are, as a negative number, and answers who knows it.
    fn settings(&self, link: Ifindex) -> io::Result<Vec<u8>> {
        let mut head = [0; HEAD];
        head[WORDS] = self.0.ask(link, IoctlRequest::Settings, head)?[WORDS].wrapping_neg();
        self.0.ask(link, IoctlRequest::Settings, head)
    }

    /// A link's features.
    pub fn features(&self, link: Ifindex) -> io::Result<Vec<Feature>> {
        let mut head = [0; HEAD];
        head[SET..COUNT].copy_from_slice(&FEATURES.to_ne_bytes());
        let names = self.0.ask(link, IoctlRequest::Names, head)?;
        let mut head = [0; HEAD];
        head[SIZE..BLOCKS].copy_from_slice(&MOST_BLOCKS.to_ne_bytes());
        Ok(features(&names, &self.0.ask(link, IoctlRequest::Features, head)?))
    }

    /// What drives a link; none where nobody says.
    pub fn device(&self, link: Ifindex) -> Option<LinkDriver> {
        device(&self.0.ask(link, IoctlRequest::Driver, [0; HEAD]).ok()?)
    }
}

fn speed(settings: &[u8]) -> Option<u32> {
    // A negative number again: there is nothing else in it.
    let words = *settings.get(WORDS)?;
    u32_at(settings, SPEED).filter(|_| words != 0 && words < 128)
}

fn old_speed(settings: &[u8]) -> Option<u32> {
    Some(u32::from(u16_at(settings, SPEED_HIGH)?) << 16 | u32::from(u16_at(settings, SPEED_LOW)?))
}

fn device(reported: &[u8]) -> Option<LinkDriver> {
    let word = |at: usize| Some(text(reported.get(at..at + NAME)?).to_vec());
    Some(LinkDriver { driver: word(DRIVER)?, bus: word(BUS)? })
}

fn features(names: &[u8], states: &[u8]) -> Vec<Feature> {
    let count = u32_at(names, COUNT).and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
    let names = names.get(NAMES..).unwrap_or_default().chunks_exact(NAME).take(count).map(text);
    let blocks = u32_at(states, SIZE).and_then(|size| usize::try_from(size).ok()).unwrap_or(0);
    let feature = |(bit, name): (usize, &[u8])| {
        let block = Some(bit / 32).filter(|&block| block < blocks)? * BLOCK + BLOCKS;
        let has = |at: usize| Some(u32_at(states, block + at)? >> (bit % 32) & 1 == 1);
        Some(Feature { name: name.to_vec(), changeable: has(0)?, wanted: has(WANTED)?, on: has(ON)? })
    };
    names.enumerate().map_while(feature).collect()
}

/// What a fuzzer gives every parser here.
#[cfg(fuzzing)]
pub(crate) fn fuzz(bytes: &[u8]) {
    let (names, states) = bytes.split_at(bytes.len() / 2);
    let _ = (features(names, states), speed(bytes), old_speed(bytes), device(bytes));
}

#[cfg(test)]
mod tests;
