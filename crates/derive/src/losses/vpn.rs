//! What the socket of a user-space VPN has no room for: the flow's own packets are within those datagrams, and the kernel
//! knows them by the VPN's addresses only. So it is the namespace's count of full UDP buffers, less what the flows' own sockets
//! there dropped.

use super::counted::SampleStep;
use super::{Loss, LossPlace, ProtocolSpan, total};
use crate::share::share;
use vnettop_sample::{FlowPath, FlowSample, LinkKey, Owned, OwnerBy, OwnerKind, Proto, row_of};

/// Adds these losses, named after the program that holds the tun or tap, with their share of what came to the sockets of that
/// namespace.
pub(super) fn lost(step: &SampleStep<'_>, paths: &[FlowPath], spans: &[ProtocolSpan<'_>], into: &mut Vec<Loss>) {
    for span in spans {
        let netns = span.now.netns;
        let Some(held) = holder(step, paths, netns) else { continue };
        let whole = span.rise_or_zero(|of| of.udp_rcvbuf_errors);
        let own = own_drops(step, netns);
        if own.is_none() {
            // The flows have no such socket, so losses that counters gave to them are the VPN's.
            let is_it = |loss: &Loss| loss.place == LossPlace::ReceiveBuffer && loss.function.is_none();
            into.retain(|loss| !is_it(loss) || loss.netns != Some(netns));
        }
        let packets = super::left(whole, own.unwrap_or(0.0));
        let came = span.rise_or_zero(|of| total([of.udp_in_datagrams, of.udp_rcvbuf_errors]));
        let loss = Loss::on_link(LossPlace::ReceiveBuffer, held.link, held.owner.name.clone(), packets);
        into.push(Loss { share: share(packets, came), ..loss });
    }
}

/// The tun or tap in the namespace that a path crosses, with its holder. When none is crossed: the only one there, if a flow ends
/// there and a path breaks off at a tun or tap.
fn holder<'a>(step: &SampleStep<'a>, paths: &[FlowPath], netns: u64) -> Option<&'a Owned> {
    let is_held = |owned: &&Owned| owned.owner.kind == OwnerKind::Process && owned.owner.by == OwnerBy::Tun;
    let here = || step.next.facts.owners.iter().filter(|owned| owned.link.netns == netns).filter(is_held);
    let crosses = |link: LinkKey| paths.iter().any(|path| path.hops.iter().any(|hop| hop.link == link));
    let into_one = |path: &FlowPath| {
        let last = path.hops.last().map(|hop| hop.link);
        path.gap.is_some() && step.next.facts.owners.iter().filter(is_held).any(|owned| Some(owned.link) == last)
    };
    let ends = || step.next.flows.iter().any(|flow| flow.netns == netns);
    let only = || here().next().filter(|_| here().count() == 1 && ends() && paths.iter().any(into_one));
    here().find(|owned| crosses(owned.link)).or_else(only)
}

/// What the flows' own UDP sockets there dropped, packets; none where they have none.
fn own_drops(SampleStep { previous, next, .. }: &SampleStep<'_>, netns: u64) -> Option<f64> {
    let mut sockets = next.flows.iter().filter(|flow| flow.netns == netns && flow.proto == Proto::Udp).peekable();
    sockets.peek()?;
    let dropped = |flow: &FlowSample| {
        let before = row_of(&previous.flows, &flow.key(), FlowSample::key).and_then(|before| before.udp);
        Some(f64::from(flow.udp?.drops.wrapping_sub(before.map_or(0, |before| before.drops))))
    };
    Some(sockets.filter_map(dropped).sum())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{FAR, NEAR, after, before, key, lost, metrics, protocols, said};
    use super::*;
    use crate::Metrics;
    use std::sync::Arc;
    use vnettop_sample::{Hop, Owner, Sample};

    /// TCP into a tun, behind which nobody sees the way; the far side's VPN has no room for 150 of 1,000 datagrams.
    fn through(programs: [&str; 2], change: impl Fn(&mut Sample)) -> Metrics {
        let vpn = |sample: &mut Sample| {
            let owner = |name: &str| Owner {
                kind: OwnerKind::Process,
                name: name.to_owned(),
                id: None,
                by: OwnerBy::Tun,
                guess: false,
                pod_namespace: None,
            };
            let ends = [key(NEAR, 2), key(FAR, 2)].into_iter().zip(programs);
            sample.facts_mut().owners = Arc::new(ends.map(|(link, name)| Owned { link, owner: owner(name) }).collect());
            sample.flows.iter_mut().for_each(|flow| (flow.proto, flow.udp) = (Proto::Tcp, None));
            let paths = Arc::make_mut(&mut sample.facts_mut().paths);
            paths[0].proto = Proto::Tcp;
            paths[0].hops.truncate(1);
            paths[0].gap = Some("to the program that holds it open".to_owned());
            change(sample);
        };
        let mut first = before();
        vpn(&mut first);
        let then = after(|sample| {
            let far = protocols(sample, FAR);
            (far.udp_in_datagrams, far.udp_rcvbuf_errors) = (850, 150);
            vpn(sample);
        });
        metrics(first, then)
    }

    #[test]
    fn what_a_vpn_has_no_room_for_is_told_of_it_with_its_own_option() {
        let reported = through(["openvpn 7", "openvpn 9"], |_| {});
        assert_eq!(lost(&reported), [("receive_buffer", Some("openvpn 9".to_owned()), 150.0)]);
        let text = said(&reported);
        assert!(text.contains("15 % of a tunnel's datagrams lost in the socket of openvpn 9 in netns c2"), "{text}");
        assert!(text.contains("--rcvbuf") && !text.contains("-w"), "openvpn's own option: {text}");
        let text = said(&through(["tincd 7", "tincd 9"], |_| {}));
        assert!(text.contains("UDPRcvBuf"), "tinc's: {text}");
        let text = said(&through(["edge 7", "edge 9"], |_| {}));
        assert!(text.contains("net.core.rmem_default"), "another's: {text}");
    }

    #[test]
    fn a_second_tun_beside_it_hides_nothing_where_the_path_shows_the_vpn_s() {
        // Before and behind the VPN's own in the list.
        for index in [1, 3] {
            let beside = |sample: &mut Sample, hops: &[LinkKey]| {
                let owners = Arc::make_mut(&mut sample.facts_mut().owners);
                let mut other = owners[1].clone();
                (other.link, other.owner.name) = (key(FAR, index), "tincd 12".to_owned());
                owners.push(other);
                owners.sort_by_key(|owned| owned.link);
                let path = &mut Arc::make_mut(&mut sample.facts_mut().paths)[0];
                let hop = path.hops[0].clone();
                path.hops = hops.iter().map(|&link| Hop { link, ..hop.clone() }).collect();
            };
            let whole = |sample: &mut Sample| {
                beside(sample, &[key(NEAR, 2), key(FAR, 2)]);
                Arc::make_mut(&mut sample.facts_mut().paths)[0].gap = None;
            };
            let reported = through(["openvpn 7", "openvpn 9"], whole);
            assert_eq!(lost(&reported), [("receive_buffer", Some("openvpn 9".to_owned()), 150.0)], "a whole path");
            let backwards = |sample: &mut Sample| beside(sample, &[key(FAR, 2)]);
            let reported = through(["openvpn 7", "openvpn 9"], backwards);
            assert_eq!(
                lost(&reported),
                [("receive_buffer", Some("openvpn 9".to_owned()), 150.0)],
                "a path found backwards from the receiver, as far as its VPN"
            );
            let neither = |sample: &mut Sample| beside(sample, &[key(NEAR, 2)]);
            let reported = through(["openvpn 7", "openvpn 9"], neither);
            assert_eq!(lost(&reported), [("receive_buffer", None, 150.0)], "which of the two it is nobody knows");
        }
    }

    #[test]
    fn a_receivers_own_socket_stays_the_receivers() {
        let reported = through(["openvpn 7", "openvpn 9"], |sample| sample.facts_mut().owners = Arc::default());
        assert_eq!(lost(&reported), [("receive_buffer", None, 150.0)], "nobody holds a tun");
        let elsewhere =
            |sample: &mut Sample| Arc::make_mut(&mut sample.facts_mut().paths)[0].hops[0].link = key(NEAR, 3);
        let reported = through(["openvpn 7", "openvpn 9"], elsewhere);
        assert_eq!(lost(&reported), [("receive_buffer", None, 150.0)], "the flow goes another way");
    }
}
