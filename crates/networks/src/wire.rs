//! A wire between two tuns or taps, possibly in two namespaces: a process copies each packet that comes out of one into the other, as a
//! user-space VPN or a virtual machine would, without offloads.

use super::network::go_into;
use super::role::{RoleError, RoleOptions, cannot};
use super::standin;
use super::sys::{TunKind, attach_tun};
use rustix::fs::{Mode, OFlags};
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::thread;

/// The largest packet that the kernel gives: 64 KiB and an Ethernet header.
const LARGEST: usize = 65_536 + 18;
/// What makes tuns and taps.
pub const TUN_DEVICE: &str = "/dev/net/tun";

/// Copies for ever.
pub fn wire(options: &RoleOptions) -> Result<(), RoleError> {
    standin::rename("vnettop-wire").map_err(cannot("name the process"))?;
    let kind: TunKind = options.required("--mode")?;
    let (from, to): (String, String) = (options.required("--from")?, options.required("--to")?);
    let (near, far) = (open(&from, kind)?, open(&to, kind)?);
    options.tell_ready()?;
    let clone = |file: &File| file.try_clone().map_err(cannot("copy a descriptor"));
    let (back_from, back_to) = (clone(&far)?, clone(&near)?);
    thread::spawn(move || copy(back_from, back_to));
    copy(near, far);
    Ok(())
}

/// A device of `NAMESPACE:LINK`, or of a macvtap's device file.
fn open(end: &str, kind: TunKind) -> Result<File, RoleError> {
    let (path, link) = match end.split_once(':') {
        Some((space, link)) => {
            go_into(&OsString::from(format!("/run/netns/{space}")))?;
            (TUN_DEVICE, link)
        }
        None => (end, ""),
    };
    let device = open_device(path, OFlags::empty())?;
    attach_tun(&device, link, kind).map_err(cannot(format!("attach to {end}")))?;
    Ok(device)
}

/// A device file, for packets in both directions.
///
/// # Errors
/// The kernel refuses.
pub fn open_device(path: &str, flags: OFlags) -> Result<File, RoleError> {
    let device = rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC | flags, Mode::empty());
    device.map(File::from).map_err(cannot(format!("open {path}")))
}

/// A packet that the other side does not take is lost, as on a wire.
fn copy(mut from: File, mut to: File) {
    let mut packet = vec![0; LARGEST];
    while let Ok(length @ 1..) = from.read(&mut packet) {
        let _ = to.write(&packet[..length]);
    }
}
