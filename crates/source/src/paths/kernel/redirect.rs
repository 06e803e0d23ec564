//! `RTM_GETTFILTER`: filters of traffic control that take what a link receives or sends elsewhere, as CNI's bandwidth plugin has
//! it pass an ifb first, and as cilium's programs hand it to another link. Every byte is treated as hostile: what does not fit is no
//! filter.

use crate::netlink::message::{DUMP, Message, Request, attribute, attributes, text, u32_at};
use crate::paths::lookups::{Redirect, TcHook};
use vnettop_sample::Ifindex;

/// `struct tcmsg`, bytes: the index at 4, the parent at 12, at 16 the priority and, in network order, the protocol.
const FIXED: usize = 20;
/// `TC_H_CLSACT | TC_H_MIN_INGRESS`, which the qdisc `ingress` has too, and `TC_H_MIN_EGRESS`.
const INGRESS: u32 = 0xffff_fff2;
const EGRESS: u32 = 0xffff_fff3;
const ETH_P_ALL: u16 = 0x0003;
const ETH_P_IP: u16 = 0x0800;
const ETH_P_IPV6: u16 = 0x86dd;
/// `TCA_KIND`, `TCA_OPTIONS`.
const KIND: u16 = 1;
const OPTIONS: u16 = 2;
/// `TCA_U32_SEL`: in `struct tc_u32_sel` the number of keys at 2, the keys from 16 on, 16 bytes each, with the mask first.
const U32_SEL: u16 = 5;
const SEL: usize = 16;
/// Where the actions are: `TCA_U32_ACT`, `TCA_MATCHALL_ACT`, `TCA_FLOWER_ACT`, `TCA_BPF_ACT`, `TCA_BASIC_ACT`, `TCA_FW_ACT`.
const ACTIONS: [(&[u8], u16); 6] =
    [(b"u32", 7), (b"matchall", 2), (b"flower", 3), (b"bpf", 1), (b"basic", 3), (b"fw", 4)];
/// Of an action: `TCA_ACT_KIND`, `TCA_ACT_OPTIONS`; of mirred: `TCA_MIRRED_PARMS`, a `struct tc_mirred` with what it does at
/// 20 and the link at 24; `TCA_EGRESS_REDIR`, `TCA_INGRESS_REDIR`.
const ACT_KIND: u16 = 1;
const ACT_OPTIONS: u16 = 2;
const PARMS: u16 = 2;
const REDIRS: [u32; 2] = [1, 3];
/// `TCA_BPF_FLAGS` with `TCA_BPF_FLAG_ACT_DIRECT`: what the program returns is what becomes of the packet.
const BPF_FLAGS: u16 = 8;
const ACT_DIRECT: u32 = 1;

/// Asks for the filters of one direction of a link.
pub(super) fn request(link: Ifindex, hook: TcHook) -> Request {
    let mut fixed = [0; FIXED];
    fixed[4..8].copy_from_slice(&link.0.to_ne_bytes());
    let parent = if hook == TcHook::Ingress { INGRESS } else { EGRESS };
    fixed[12..16].copy_from_slice(&parent.to_ne_bytes());
    Request::new(libc::RTM_GETTFILTER, DUMP, &fixed)
}

/// Where a filter takes packets of that family; none where it leaves them alone.
pub(super) fn parse(message: &Message<'_>, is_ipv6: bool) -> Option<Redirect> {
    let (fixed, all) = (message.body, message.body.get(FIXED..)?);
    let protocol = u16::from_be(u16::try_from(u32_at(fixed, 16)? & 0xffff).ok()?);
    let is_theirs = [ETH_P_ALL, if is_ipv6 { ETH_P_IPV6 } else { ETH_P_IP }].contains(&protocol);
    if message.kind != libc::RTM_NEWTFILTER || !is_theirs {
        return None;
    }
    let (kind, options) = (text(attribute(all, KIND)?), attribute(all, OPTIONS)?);
    let actions = || {
        let (_, at) = ACTIONS.iter().find(|(name, _)| *name == kind)?;
        attributes(attribute(options, *at)?).find_map(|(_, action)| redirected(action))
    };
    let acts =
        || attribute(options, BPF_FLAGS).and_then(|flags| u32_at(flags, 0)).is_some_and(|of| of & ACT_DIRECT != 0);
    let takes_all = match kind {
        b"matchall" => true,
        b"u32" => attribute(options, U32_SEL).is_some_and(is_everything),
        _ => false,
    };
    match actions() {
        Some(Redirect::Some(to)) if takes_all => Some(Redirect::All(to)),
        None if kind == b"bpf" && acts() => Some(Redirect::Program),
        action => action,
    }
}

/// The link that a mirred redirects to, or a program that may redirect to any.
fn redirected(action: &[u8]) -> Option<Redirect> {
    match attribute(action, ACT_KIND).map(text)? {
        b"mirred" => {
            let parms = attribute(attribute(action, ACT_OPTIONS)?, PARMS)?;
            REDIRS.contains(&u32_at(parms, 20)?).then_some(Redirect::Some(Ifindex(u32_at(parms, 24)?)))
        }
        b"bpf" => Some(Redirect::Program),
        _ => None,
    }
}

/// No key looks at anything.
fn is_everything(sel: &[u8]) -> bool {
    let count = sel.get(2).copied().map_or(0, usize::from);
    (0..count).all(|key| u32_at(sel, SEL + 16 * key) == Some(0))
}
