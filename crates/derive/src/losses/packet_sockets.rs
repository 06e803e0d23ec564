//! Frames that the packet socket of a user-space switch had no room for. Such a switch takes a link's frames through it, so
//! these frames are lost although the kernel dropped none. A capture (tcpdump) has such sockets too, and what it misses nobody
//! else misses: the path shows whose frames go on.

use super::counted::SampleStep;
use super::{Loss, LossPlace};
use vnettop_sample::{FlowPath, HopWay, LinkKey, OvsDatapathKind, PacketSocket, row_of};

/// The program of Open vSwitch that forwards.
const OVS: &str = "ovs-vswitchd";

/// Adds these losses, named after the program that holds the socket when that is known.
pub(super) fn lost(step: &SampleStep<'_>, paths: &[FlowPath], into: &mut Vec<Loss>) {
    for socket in &step.next.packet_sockets {
        let Some(before) = row_of(&step.previous.packet_sockets, &socket.key(), PacketSocket::key) else { continue };
        let packets = socket.drops.wrapping_sub(before.drops);
        if packets == 0 || !is_switch(step, paths, socket) {
            continue;
        }
        let holder = socket.holder.as_ref().map(|holder| format!("{} {}", holder.name, holder.pid));
        let loss = Loss::in_space(LossPlace::PacketSocket, socket.link.netns, f64::from(packets));
        into.push(Loss { link: Some(socket.link), name: holder, ..loss });
    }
}

/// Whether the socket's holder forwards what the link receives: an Open vSwitch in user space that has the link as a port, or
/// any program at a link where the path ends and whose frames nothing else takes.
fn is_switch(step: &SampleStep<'_>, paths: &[FlowPath], socket: &PacketSocket) -> bool {
    let has_no_master = |link: LinkKey| step.link(link).is_some_and(|link| link.facts.master.is_none());
    paths.iter().any(|path| {
        let at = path.hops.iter().position(|hop| hop.link == socket.link && hop.way == HopWay::Received);
        at.is_some_and(|at| match path.hops.get(at + 1) {
            Some(_) => is_ovs(step, socket),
            None => path.gap.is_some() && has_no_master(socket.link),
        })
    })
}

fn is_ovs(step: &SampleStep<'_>, socket: &PacketSocket) -> bool {
    let bridges = step.next.facts.ovs.iter().flat_map(|switch| &switch.bridges);
    let mut ports =
        bridges.filter(|bridge| bridge.datapath == OvsDatapathKind::Netdev).flat_map(|bridge| &bridge.ports);
    socket.holder.as_ref().is_none_or(|holder| holder.name == OVS) && ports.any(|port| port.link == Some(socket.link))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{FAR, NEAR, after, before, key, lost, metrics, said};
    use super::*;
    use crate::Metrics;
    use std::sync::Arc;
    use vnettop_sample::{Sample, SocketProcess};

    /// A way that ends at the link of a packet socket which had no room for 40 of 1,000 frames.
    fn at_a_socket(holder: Option<&str>, change: impl Fn(&mut Sample)) -> Metrics {
        let socket = |sample: &mut Sample, drops| {
            let holder = holder.map(|name| SocketProcess { pid: 7, name: name.into() });
            sample.packet_sockets = vec![PacketSocket { link: key(FAR, 2), inode: 9, drops, holder }];
            let path = &mut Arc::make_mut(&mut sample.facts_mut().paths)[0];
            let at = path.hops.iter().position(|hop| hop.link == key(FAR, 2)).expect("a hop");
            path.hops.truncate(at + 1);
            path.gap = Some("nobody knows".to_owned());
            change(sample);
        };
        let mut first = before();
        socket(&mut first, u32::MAX - 9);
        metrics(first, after(|sample| socket(sample, 30)))
    }

    #[test]
    fn what_a_switch_in_user_space_has_no_room_for_is_lost_there() {
        let reported = at_a_socket(Some("ovs-vswitchd"), |_| {});
        assert_eq!(lost(&reported), [("packet_socket", Some("ovs-vswitchd 7".to_owned()), 40.0)], "over the wrap");
        let text = said(&reported);
        assert!(text.contains("in the packet socket of ovs-vswitchd 7 in netns c2"), "{text}");
        assert_eq!(lost(&at_a_socket(None, |_| {}))[0].1, None, "whose it is not known yet");
    }

    #[test]
    fn what_a_capture_misses_is_no_loss() {
        let goes_on = |sample: &mut Sample| Arc::make_mut(&mut sample.facts_mut().paths)[0].gap = None;
        assert_eq!(lost(&at_a_socket(Some("tcpdump"), goes_on)), [], "the frames are for the link's own namespace");
        let elsewhere = |sample: &mut Sample| sample.packet_sockets[0].link = key(NEAR, 9);
        assert_eq!(lost(&at_a_socket(Some("tcpdump"), elsewhere)), [], "no flow goes there");
    }
}
