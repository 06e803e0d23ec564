/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* Whose a packet is: of a watched flow, also inside a tunnel, and which lane of the flow the hop is that it is at. */
#ifndef VNETTOP_PACKETS_H
#define VNETTOP_PACKETS_H

#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>

/* A flow's packets in one direction. Addresses are IPv6 or IPv4-mapped; ports and addresses in network order. */
struct tuple {
	__u8 from[16] __attribute__((aligned(8)));
	__u8 to[16];
	__be16 from_port;
	__be16 to_port;
	__u32 proto;
};

/* The watched flows, by what their packets carry. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, struct tuple);
	__type(value, __u32);
	__uint(map_flags, BPF_F_NO_PREALLOC);
} flows SEC(".maps");

/* A bit for each port that packets of watched flows go to, in network order: of a stranger's packet that is all that is
 * looked up. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 65536 / 64);
	__type(key, __u32);
	__type(value, __u64);
} ports SEC(".maps");

#define ETH_IP bpf_htons(0x0800)
#define ETH_IPV6 bpf_htons(0x86dd)
#define ETH_TEB bpf_htons(0x6558)
#define TCP 6
#define UDP 17
#define GRE 47
#define IPIP 4
#define IP6IP 41

#define READ(to, at) bpf_probe_read_kernel(&(to), sizeof(to), (const void *)(at))

/* Fills in the tuple of the packet whose IP header is at `at`; gives where its payload begins (behind IP), or 0 where it is
 * no IP or a later fragment. Of a fragment that has no ports, ports stay 0. */
static __always_inline const unsigned char *read_ip(const unsigned char *at, struct tuple *tuple)
{
	__u8 head[40];
	const unsigned char *behind;

	tuple->proto = 0;
	tuple->from_port = tuple->to_port = 0;
	if (bpf_probe_read_kernel(head, 20, at))
		return 0;
	if (head[0] >> 4 == 4) {
		__u16 fragment;

		__builtin_memset(tuple->from, 0, 32);
		tuple->from[10] = tuple->from[11] = tuple->to[10] = tuple->to[11] = 0xff;
		__builtin_memcpy(tuple->from + 12, head + 12, 4);
		__builtin_memcpy(tuple->to + 12, head + 16, 4);
		tuple->proto = head[9];
		fragment = (__u16)(head[6] & 0x1f) << 8 | head[7];
		if (fragment)
			return 0;
		behind = at + (head[0] & 15) * 4;
	} else if (head[0] >> 4 == 6) {
		if (bpf_probe_read_kernel(head + 20, 20, at + 20))
			return 0;
		__builtin_memcpy(tuple->from, head + 8, 16);
		__builtin_memcpy(tuple->to, head + 24, 16);
		tuple->proto = head[6];
		behind = at + 40;
		if (tuple->proto == 44) { /* a fragment's header */
			__u8 fragment[8];

			if (READ(fragment, behind))
				return 0;
			tuple->proto = fragment[0];
			if (fragment[2] || fragment[3] & 0xf8)
				return 0;
			behind += 8;
		}
	} else {
		return 0;
	}
	if (tuple->proto == TCP || tuple->proto == UDP) {
		__be16 ports[2];

		if (READ(ports, behind))
			return 0;
		tuple->from_port = ports[0];
		tuple->to_port = ports[1];
	}
	return behind;
}

/* Where the IP header of the packet inside a tunnel's is; 0 where there is none. */
static __always_inline const unsigned char *inside(const unsigned char *behind, const struct tuple *outer)
{
	__be16 kind = 0;

	if (!behind)
		return 0;
	if (outer->proto == IPIP || outer->proto == IP6IP)
		return behind;
	if (outer->proto == UDP) {
		/* Any port may be a tunnel's: its header tells. Both end with a byte that is 0, a frame follows. */
		const unsigned char *frame = behind + 8 + 8;
		__u8 head[8] = {};
		int is_vxlan, is_geneve;

		READ(head, behind + 8);
		/* a number is given (RFC 7348), perhaps with a group's policy */
		is_vxlan = (head[0] & 0x7f) == 0x08;
		/* version 0, Ethernet inside (RFC 8926) */
		is_geneve = head[0] < 0x40 && head[2] == 0x65 && head[3] == 0x58;
		if (head[7] || !(is_vxlan || is_geneve))
			return 0;
		if (is_geneve) /* options of 4 bytes each */
			frame += (head[0] & 63) * 4;
		READ(kind, frame + 12);
		return kind == ETH_IP || kind == ETH_IPV6 ? frame + 14 : 0;
	}
	if (outer->proto == GRE) {
		/* checksum, key and sequence number are 4 bytes each, where they are */
		__be16 head[2] = {};
		const unsigned char *at;

		READ(head, behind);
		at = behind + 4 + ((head[0] & bpf_htons(0x8000)) ? 4 : 0) + ((head[0] & bpf_htons(0x2000)) ? 4 : 0) +
		     ((head[0] & bpf_htons(0x1000)) ? 4 : 0);
		if (head[1] == ETH_IP || head[1] == ETH_IPV6)
			return at;
		if (head[1] != ETH_TEB)
			return 0;
		READ(kind, at + 12);
		return kind == ETH_IP || kind == ETH_IPV6 ? at + 14 : 0;
	}
	return 0;
}

static __always_inline int is_set(void *table, __u32 bit)
{
	__u32 word = bit / 64;
	__u64 *bits = bpf_map_lookup_elem(table, &word);

	return bits && *bits >> bit % 64 & 1;
}

/* The number of the watched flow that a tuple is of, or 0. A socket that is not connected is watched by its port alone. */
static __always_inline __u32 flow_of(const struct tuple *tuple)
{
	struct tuple any = {};
	__u32 *flow;

	if (!is_set(&ports, tuple->to_port))
		return 0;
	flow = bpf_map_lookup_elem(&flows, tuple);
	if (flow)
		return *flow;
	if (tuple->proto != UDP || !tuple->to_port)
		return 0;
	any.to_port = tuple->to_port;
	any.proto = UDP;
	flow = bpf_map_lookup_elem(&flows, &any);
	return flow ? *flow : 0;
}

struct hop {
	__u32 netns;
	__u32 ifindex;
	__u32 sent; /* 1: packets that leave through it; 0: those that come in */
};

/* A flow at a hop, by the number that user space gave the flow, has a lane, numbered from 1 on. */
struct flow_at_hop {
	struct hop hop;
	__u32 flow;
};

#define MOST_LANES 1024

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MOST_LANES);
	__type(key, struct flow_at_hop);
	__type(value, __u32);
	__uint(map_flags, BPF_F_NO_PREALLOC);
} lane_numbers SEC(".maps");

#endif
