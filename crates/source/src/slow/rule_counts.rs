//! How many rules of nftables packets may meet: one passage through the chains and rules of some namespaces, by sockets
//! that were opened in them. A hundred thousand rules are 20 MB. When to count is decided elsewhere.

use super::Slow;
use crate::SourceError;
use crate::netlink::client::NetlinkClient;
use crate::netlink::message::{Message, Request};
use crate::nft::{self, MetRules, PassedHooks};
use std::io;
use vnettop_sample::{FirewallRules, LinkKey};

/// So often they are counted when they change meanwhile.
const TRIES: u32 = 3;

/// One namespace whose rules are counted.
#[derive(Debug)]
pub(crate) struct RulesThere {
    /// The link that they are told of.
    pub link: LinkKey,
    /// What the packets pass there.
    pub hooks: PassedHooks,
    /// A socket there (`NETLINK_NETFILTER`); none where the kernel has no nftables, or why there is none.
    pub netlink: io::Result<Option<NetlinkClient>>,
    /// Rules of iptables' own tables are there too.
    pub has_older: bool,
}

/// Begins to count, in the order of the list.
pub(crate) fn count(places: Vec<RulesThere>) -> Option<Slow<Vec<FirewallRules>>> {
    Slow::start("rules", |_| places.into_iter().map(count_there).collect())
}

fn count_there(there: RulesThere) -> FirewallRules {
    let RulesThere { link, hooks, netlink, has_older } = there;
    let counted =
        netlink.and_then(|netlink| netlink.map_or(Ok((0, None)), |mut netlink| counted(&mut netlink, &hooks)));
    let unread = |error: io::Error| match error.raw_os_error() {
        Some(libc::EPERM) => "they cannot be read without CAP_NET_ADMIN in its namespace".to_owned(),
        _ => format!("they cannot be read ({error})"),
    };
    let older = has_older.then(|| "those of iptables-legacy are not counted".to_owned());
    match counted {
        Ok((rules, gap)) => FirewallRules { link, rules: Some(rules), gap: gap.map(str::to_owned).or(older) },
        // A kernel without nftables: the subsystem is not known.
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EOPNOTSUPP)) => {
            FirewallRules { link, rules: Some(0), gap: older }
        }
        Err(error) => FirewallRules { link, rules: None, gap: Some(unread(error)) },
    }
}

/// The rules, and why there may be more.
fn counted(netlink: &mut NetlinkClient, hooks: &PassedHooks) -> io::Result<(u32, Option<&'static str>)> {
    let (mut tries, mut changed, mut met) = (0, true, MetRules::default());
    while changed && tries < TRIES {
        (tries, met) = (tries + 1, MetRules::default());
        changed = dump(netlink, nft::chains(), |message| met.take_chain(message))?;
        changed |= dump(netlink, nft::rules(), |message| met.take_rule(message))?;
    }
    let (rules, has_map) = met.count(hooks);
    let gap = if changed {
        Some("they changed while they were counted")
    } else {
        has_map.then_some("verdict maps may lead to more")
    };
    Ok((rules, gap))
}

/// Whether something changed meanwhile.
fn dump(netlink: &mut NetlinkClient, mut of: Request, mut each: impl FnMut(&Message<'_>)) -> io::Result<bool> {
    let end = netlink.dump(&mut of, "list rules of nftables", |message, _| each(message));
    end.map(|end| end.interrupted).map_err(SourceError::into_io)
}
