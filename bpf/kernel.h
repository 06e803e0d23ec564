/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* What the programs read of the kernel's types. Only names and types count: the loader relocates every access to where
 * the running kernel's BTF has the field (CO-RE), so nothing here needs the kernel's order or size. */
#ifndef VNETTOP_KERNEL_H
#define VNETTOP_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

/* enum bpf_map_type */
#define BPF_MAP_TYPE_HASH 1
#define BPF_MAP_TYPE_ARRAY 2
#define BPF_MAP_TYPE_PERCPU_HASH 5
#define BPF_MAP_TYPE_PERCPU_ARRAY 6
#define BPF_MAP_TYPE_LRU_HASH 9
/* flags of bpf_map_update_elem() and of maps */
#define BPF_NOEXIST 1
#define BPF_F_NO_PREALLOC 1

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	unsigned int inum;
};

struct net {
	struct ns_common ns;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct net_device {
	int ifindex;
	possible_net_t nd_net;
};

struct dst_entry {
	struct net_device *dev;
};

typedef struct {
	__s64 counter;
} atomic64_t;

struct in6_addr {
	__u8 bytes[16]; /* of the kernel's union only where it begins counts */
};

struct sk_buff_head {
	__u32 qlen;
};

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num; /* in the machine's order */
	unsigned short skc_family;
	struct in6_addr skc_v6_daddr; /* IPv4 is mapped in it where the socket is of IPv6 */
	struct in6_addr skc_v6_rcv_saddr;
	possible_net_t skc_net;
	atomic64_t skc_cookie; /* 0 until somebody asks for it */
};

struct sock {
	struct sock_common __sk_common;
	struct sk_buff_head sk_receive_queue;
	__u16 sk_protocol; /* Linux 5.6 */
};

struct tcp_sock {
	__u32 copied_seq; /* behind the last byte that was read */
};

struct udp_sock {
	unsigned long udp_flags; /* Linux 6.7 */
	int pending; /* a datagram that is not whole yet */
	__u16 gso_size; /* UDP_SEGMENT, as it was set for the socket */
	struct sk_buff_head reader_queue; /* what its reader has taken over */
};

/* Before Linux 6.7 the flags are fields of one bit. */
struct udp_sock___before_6_7 {
	__u8 gro_enabled : 1;
};

struct skb_shared_info {
	unsigned short gso_size;
	unsigned short gso_segs;
};

struct sk_buff {
	struct net_device *dev;
	struct sock *sk;
	unsigned long _skb_refdst;
	unsigned long _nfct; /* CONFIG_NF_CONNTRACK */
	unsigned int len;
	int skb_iif;
	__u32 hash;
	__be16 protocol;
	__u16 transport_header;
	__u16 network_header;
	/* sk_buff_data_t: an offset from head on every 64-bit kernel */
	unsigned int end;
	unsigned char *head;
	unsigned char *data;
};

struct thread_info {
	__u32 cpu;
};

struct task_struct {
	struct thread_info thread_info;
	int pid;
	int tgid;
	int prio; /* below 100 - 1: real-time */
	unsigned int flags;
	unsigned int __state; /* Linux 5.14 */
	struct task_struct *real_parent;
	char comm[16];
};

struct task_struct___before_5_14 {
	long state;
};

/* Before Linux 5.16 the core stands in the task itself. */
struct task_struct___before_5_16 {
	unsigned int cpu;
};

/* A field is the kernel's only if it is of the same sort of type: an enumeration, here. */
enum skb_drop_reason { SKB_NOT_DROPPED_YET, SKB_DROP_REASON_NETFILTER_DROP };

/* Linux 5.17 has the reason, Linux 6.11 the receiving socket too. */
struct trace_event_raw_kfree_skb {
	enum skb_drop_reason reason;
	void *rx_sk;
};

#pragma clang attribute pop

#endif
