//! Generic netlink's families are numbered anew at each start of the kernel and when their module is loaded. They are learnt from
//! a list of all: asking for one by name makes the kernel look for a module where there is none, and the asking thread
//! waits for that.

use super::client::NetlinkClient;
use super::message::{DUMP, Message, Request, attribute, attributes, text, u16_at, u32_at};
use super::socket::{Transport, protocols};
use crate::{SourceError, now_ns};
use std::io;
use std::sync::{Mutex, PoisonError};

/// `GENL_ID_CTRL`, `CTRL_CMD_GETFAMILY`.
const CONTROL: u16 = 16;
const GET_FAMILY: u8 = 3;
/// `CTRL_ATTR_FAMILY_ID`, `CTRL_ATTR_FAMILY_NAME`.
const ID: u16 = 1;
const NAME: u16 = 2;
/// `CTRL_ATTR_OPS`, in each of its members `CTRL_ATTR_OP_ID`.
const COMMANDS: u16 = 6;
const COMMAND: u16 = 1;
/// `CTRL_ATTR_MCAST_GROUPS`, in each of its members `CTRL_ATTR_MCAST_GRP_NAME` and `CTRL_ATTR_MCAST_GRP_ID`.
const GROUPS: u16 = 7;
const GROUP_NAME: u16 = 1;
const GROUP_ID: u16 = 2;
/// `struct genlmsghdr`, bytes.
pub(crate) const FIXED: usize = 4;

/// The list stands for so long, ns: hundreds of namespaces are opened in a row, and a module may be loaded at any time.
const STANDS_NS: u64 = 1_000_000_000;

/// When the list was heard, and what was in it: the families are the machine's, so all threads share it.
static LEARNT: Mutex<(u64, Vec<GenericFamily>)> = Mutex::new((0, Vec::new()));

/// A family as this kernel numbers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GenericFamily {
    pub id: u16,
    name: Vec<u8>,
    commands: Vec<u32>,
    groups: Vec<(Vec<u8>, u32)>,
}

impl GenericFamily {
    /// The number of its multicast group of that name.
    pub fn group(&self, name: &str) -> Option<u32> {
        self.groups.iter().find(|(known, _)| known == name.as_bytes()).map(|(_, id)| *id)
    }
}

/// Opens a socket in the calling thread's namespace and finds the family of that name; `NotFound` where the kernel has none now
/// that knows the command.
pub(crate) fn open(name: &str, command: u8) -> io::Result<(NetlinkClient, GenericFamily)> {
    let mut netlink = NetlinkClient::open(protocols::NETLINK_GENERIC)?;
    let mut learnt = LEARNT.lock().unwrap_or_else(PoisonError::into_inner);
    if learnt.1.is_empty() || now_ns().saturating_sub(learnt.0) >= STANDS_NS {
        let families = list(&mut netlink)?;
        *learnt = (now_ns(), families);
    }
    let is_it =
        |family: &&GenericFamily| family.name == name.as_bytes() && family.commands.contains(&u32::from(command));
    let family = learnt.1.iter().find(is_it).cloned();
    let none = || io::Error::new(io::ErrorKind::NotFound, format!("this kernel has no generic netlink family {name}"));
    Ok((netlink, family.ok_or_else(none)?))
}

fn list<W: Transport>(netlink: &mut NetlinkClient<W>) -> io::Result<Vec<GenericFamily>> {
    let mut request = Request::new(CONTROL, DUMP, &[GET_FAMILY, 1, 0, 0]);
    let mut families = Vec::new();
    let each = |message: &Message<'_>, _: u64| families.extend(parse(message));
    netlink.dump(&mut request, "list generic netlink families", each).map_err(SourceError::into_io)?;
    Ok(families)
}

/// `CTRL_CMD_NEWFAMILY`.
pub(crate) fn parse(message: &Message<'_>) -> Option<GenericFamily> {
    let body = message.body.get(FIXED..)?;
    let members = |kind| attributes(attribute(body, kind).unwrap_or_default()).map(|(_, member)| member);
    let group = |group| Some((text(attribute(group, GROUP_NAME)?).to_vec(), u32_at(attribute(group, GROUP_ID)?, 0)?));
    Some(GenericFamily {
        id: u16_at(attribute(body, ID)?, 0)?,
        name: text(attribute(body, NAME)?).to_vec(),
        commands: members(COMMANDS).filter_map(|one| u32_at(attribute(one, COMMAND)?, 0)).collect(),
        groups: members(GROUPS).filter_map(group).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_found_in_the_list_and_one_that_is_not_there_is_not_asked_for() {
        let (mut netlink, control) = open("nlctrl", GET_FAMILY).expect("every kernel has the one that lists them");
        assert_eq!(control.id, CONTROL, "its number is the same on every kernel");
        assert!(control.group("notify").is_some(), "with its group: {control:?}");
        let missing = |name, command| open(name, command).err().map(|error| error.kind());
        assert_eq!(missing("vnettop-none", 1), Some(io::ErrorKind::NotFound), "no such family");
        assert_eq!(missing("nlctrl", 200), Some(io::ErrorKind::NotFound), "a family that does not know the command");
        // What the list says of a family is what the kernel says when it is asked for it by its name.
        for family in list(&mut netlink).expect("they are listed") {
            let name = [&family.name[..], b"\0"].concat();
            let mut request = Request::new(CONTROL, 0, &[GET_FAMILY, 1, 0, 0]).with(NAME, &name);
            let asked = netlink.get(&mut request, parse);
            assert_eq!(asked.expect("it is there"), Some(family), "by its name");
        }
    }
}
