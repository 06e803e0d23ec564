/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* The kernel's own word: every dropped packet, every migration of a watched thread, and on request the time of softirqs
 * and the cores of a hop. The programs only count; which counts matter is decided in user space (crates/source/src/bpf). They are built
 * by bpf/build, and the kernel takes them down when the last descriptor closes, however vnettop ends. */

#include "packets.h"

/* The kernel compares this string: MIT alone would be refused the helpers. */
char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* ---- migrations ------------------------------------------------------------------------------------------------- */

/* A ring of each core's own: a BPF ring buffer needs Linux 5.8, and every core would take its lock. */
#define MOST_MOVES 4096

struct move {
	__u64 at_ns; /* CLOCK_MONOTONIC */
	__u64 sequence; /* of this core, from 1 on: tells a move that was written over while it was read */
	__u32 tid;
	__u32 from;
	__u32 to;
	/* Whose thread it is, for one that ends before anybody has found it: its process, the process that made that, and its
	 * name. 0 and empty where the kernel has no BTF. */
	__u32 pid;
	__u32 parent;
	__u32 _pad;
	char name[16];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MOST_MOVES);
	__type(key, __u32);
	__type(value, struct move);
} moves SEC(".maps");

/* How many moves each core has written. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} moves_written SEC(".maps");

/* Thread numbers whose moves are told. Its room is taken at once (1 MB): where a classic tracepoint's program has one that
 * grows, Linux 5.7 to 6.0 warns with a stack trace in its log and is tainted from then on. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, __u32);
} watched SEC(".maps");

/* Numbers yet to be given, whose moves are told too: a thread moves before anybody has found it. */
struct unborn {
	__u32 first, last; /* both included */
	__u32 again_first, again_last; /* behind the wrap of the numbers; 1 and 0 where there is none */
	/* Where the fields of the classic tracepoint's record are, bytes from its start. */
	__u32 pid_at, from_at, to_at;
	/* Slots of `moves` in use, a power of two less one: the loader makes the rings as large as the machine bears. */
	__u32 mask;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct unborn);
} unborn SEC(".maps");

static __always_inline int is_asked_for(const struct unborn *range, __u32 tid)
{
	if (tid >= range->first && tid <= range->last)
		return 1;
	if (tid >= range->again_first && tid <= range->again_last)
		return 1;
	return bpf_map_lookup_elem(&watched, &tid) != 0;
}

static __always_inline void write_move(const struct unborn *range, struct task_struct *task, __u32 tid, __u32 from,
				       __u32 to)
{
	__u32 zero = 0, slot;
	__u64 *written = bpf_map_lookup_elem(&moves_written, &zero);
	struct move *move;

	if (!written)
		return;
	slot = (__u32)*written & range->mask & (MOST_MOVES - 1);
	move = bpf_map_lookup_elem(&moves, &slot);
	if (!move)
		return;
	/* The tracepoint runs with interrupts off, so nobody else writes this core's ring. */
	move->at_ns = bpf_ktime_get_ns();
	move->tid = tid;
	move->from = from;
	move->to = to;
	if (task) {
		move->pid = BPF_CORE_READ(task, tgid);
		move->parent = BPF_CORE_READ(task, real_parent, tgid);
		BPF_CORE_READ_INTO(&move->name, task, comm);
	}
	move->sequence = *written + 1;
	*written += 1;
}

/* sched_migrate_task(struct task_struct *p, int dest_cpu) */
SEC("tp_btf/sched_migrate_task")
int moved(__u64 *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx[0];
	__u32 zero = 0, to = (__u32)ctx[1], tid, from;
	struct unborn *range = bpf_map_lookup_elem(&unborn, &zero);

	if (!range)
		return 0;
	tid = task->pid;
	if (!is_asked_for(range, tid))
		return 0;
	if (bpf_core_field_exists(task->thread_info.cpu))
		from = BPF_CORE_READ(task, thread_info.cpu);
	else
		from = BPF_CORE_READ((struct task_struct___before_5_16 *)task, cpu);
	if (from != to)
		write_move(range, task, tid, from, to);
	return 0;
}

/* The same where the kernel has no BTF: its record's layout comes from the event's format file. Returns 1, because 0 would
 * silence every other user of the tracepoint. Uses nothing that Linux 4.18 does not have. */
SEC("tracepoint/sched/sched_migrate_task")
int moved_classic(void *ctx)
{
	__u32 zero = 0, tid = 0, from = 0, to = 0;
	struct unborn *range = bpf_map_lookup_elem(&unborn, &zero);

	if (!range)
		return 1;
	bpf_probe_read(&tid, sizeof(tid), ctx + (range->pid_at & 255));
	if (!is_asked_for(range, tid))
		return 1;
	bpf_probe_read(&from, sizeof(from), ctx + (range->from_at & 255));
	bpf_probe_read(&to, sizeof(to), ctx + (range->to_at & 255));
	if (from != to)
		write_move(range, 0, tid, from, to);
	return 1;
}

/* ---- drops ------------------------------------------------------------------------------------------------------ */

/* Where and why. */
struct drop {
	__u32 flow; /* the number that user space gave the flow; 0: of no watched flow */
	__u32 netns; /* inode; 0: not known */
	__u32 ifindex; /* 0: not known */
	__u32 reason; /* enum skb_drop_reason; 0 before Linux 5.17 */
	__u64 function; /* an address inside the function that dropped it */
	/* Netfilter dropped it, and connection tracking had given it no entry: only such a packet can be one for which its table
	 * had no room, which the kernel gives no reason of its own. */
	__u32 untracked;
	__u32 _pad;
};

struct early {
	struct tuple tuple;
	struct drop drop;
};

struct early_count {
	struct early of; /* whose they are */
	__u64 packets;
	__u64 since_ns; /* CLOCK_MONOTONIC of the first of them */
	__u64 in_others; /* how many of them are in `others` or `strangers` too */
};

/* Packets of watched flows. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2048);
	__type(key, struct drop);
	__type(value, __u64);
	__uint(map_flags, BPF_F_NO_PREALLOC);
} drops SEC(".maps");

/* Packets of no watched flow; the oldest kinds make room. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct drop);
	__type(value, __u64);
} others SEC(".maps");

/* The same in namespaces without a bit, where the whole machine is asked for: whoever makes namespaces by the thousand
 * takes no row of those that somebody is shown. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 512);
	__type(key, struct drop);
	__type(value, __u64);
} strangers SEC(".maps");

/* The same by flow: what a flow lost before anybody knew of it. Known by a number that is mixed from the whole, because
 * the table's own hash of 72 bytes is a third of what a drop costs. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, __u64);
	__type(value, struct early_count);
} early SEC(".maps");

/* A bit for each namespace whose drops go to `others`, by the last digits of its inode: who reads sorts out the rows of
 * those that share it. One more bit behind them: those of all others go to `strangers`. */
#define NAMESPACE_BITS 4096

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, NAMESPACE_BITS / 64 + 1);
	__type(key, __u32);
	__type(value, __u64);
} namespaces SEC(".maps");

/* Packets counted in `drops` (0), and in `others` and `strangers` (1): who finds them unchanged reads no table; and those that found no room in
 * a table (2). */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 3);
	__type(key, __u32);
	__type(value, __u64);
} counted SEC(".maps");

#define OF_FLOWS 0
#define OF_OTHERS 1
#define NO_ROOM 2

static __always_inline void count(__u32 which, __u64 packets)
{
	__u64 *sum = bpf_map_lookup_elem(&counted, &which);

	if (sum)
		__sync_fetch_and_add(sum, packets);
}

/* Packets on the wire that a buffer stands for: one that is still to be cut (TSO) or was put together (GRO) is several. */
static __always_inline __u64 packets_of(const struct sk_buff *skb, const unsigned char *head)
{
	const struct skb_shared_info *shared = (const void *)(head + skb->end);
	/* gso_size and, right behind it, gso_segs */
	__u16 both[2] = {}, size, segments;

	bpf_probe_read_kernel(both, sizeof(both), &shared->gso_size);
	size = both[0];
	segments = both[1];
	if (!size)
		return 1;
	/* A guest's packet does not say how many it becomes. */
	return segments ? segments : (skb->len + size - 1) / size;
}

/* Inodes of namespaces are given from 0xf0000000 on (PROC_DYNAMIC_FIRST), and that of the first one is just below it since
 * Linux 6.18 (NET_NS_INIT_INO, 0xeffffff9): what is less was no namespace. */
#define FIRST_INODE 0xeffffff0u

static __always_inline __u32 known(__u32 inode)
{
	return inode >= FIRST_INODE ? inode : 0;
}

/* What is no pointer may stand where one is looked for: the kernel bears a load from where nothing is, but not every one bears
 * a load from a process's half of the addresses. */
#define IS_KERNELS(pointer) ((long)(pointer) < 0)

/* Where it was dropped. The device of a datagram that waits for its reader is overwritten, that of one that leaves is not
 * set yet: then the socket, and the route's device, stand for it. */
static __always_inline void find_place(const struct sk_buff *skb, struct sock *receiver, struct drop *drop)
{
	struct net_device *dev = skb->dev;
	struct sock *sk = receiver ? receiver : skb->sk;

	if (IS_KERNELS(dev)) {
		/* Loads, where nearly every drop comes by: three calls of a helper would be a fifth of what it costs. */
		struct net *net = dev->nd_net.net;

		if (IS_KERNELS(net))
			drop->netns = known(net->ns.inum);
		if (drop->netns) {
			drop->ifindex = dev->ifindex;
			return;
		}
	}
	if (sk)
		drop->netns = known(BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum));
	if (skb->skb_iif) {
		drop->ifindex = skb->skb_iif;
	} else {
		struct dst_entry *dst = (struct dst_entry *)(skb->_skb_refdst & ~1ul);

		dev = dst ? BPF_CORE_READ(dst, dev) : 0;
		if (dev) {
			drop->ifindex = BPF_CORE_READ(dev, ifindex);
			if (!drop->netns)
				drop->netns = known(BPF_CORE_READ(dev, nd_net.net, ns.inum));
		}
	}
}

/* Where the code of kfree_skb() is, until user space has told it 0, as behind the last of its pieces. */
#define PIECES 4

struct freeing {
	struct {
		__u64 begins;
		__u64 ends; /* not included */
	} pieces[PIECES];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct freeing);
} freeing SEC(".maps");

/* Who freed the packet. Where a compiler has cut kfree_skb() in two (before Linux 5.19; Debian's 5.10 for arm64), it says that
 * it was itself: its caller is the next one on the stack. */
static __always_inline __u64 freed_by(__u64 *ctx)
{
	__u64 at = ctx[1], stack[12] = {};
	__u32 zero = 0;
	struct freeing *own = bpf_map_lookup_elem(&freeing, &zero);
	int is_own = 0, i;

	if (!own)
		return at;
#pragma unroll
	for (i = 0; i < PIECES; i++)
		is_own |= at >= own->pieces[i].begins && at < own->pieces[i].ends;
	if (!is_own || bpf_get_stack(ctx, stack, sizeof(stack), 0) < 0)
		return at;
#pragma unroll
	for (i = 0; i + 1 < 12; i++)
		if (stack[i] == at && stack[i + 1])
			return stack[i + 1];
	return at;
}

/* Before Linux 5.17 any drop may be Netfilter's. */
static __always_inline int is_untracked(const struct sk_buff *skb, __u32 reason)
{
	if (!bpf_core_field_exists(skb->_nfct) || skb->_nfct)
		return 0;
	if (!bpf_core_enum_value_exists(enum skb_drop_reason, SKB_DROP_REASON_NETFILTER_DROP))
		return !reason;
	return reason == bpf_core_enum_value(enum skb_drop_reason, SKB_DROP_REASON_NETFILTER_DROP);
}

static __always_inline void add(void *table, const void *key, __u64 packets, __u32 which)
{
	__u64 *sum = bpf_map_lookup_elem(table, key);

	if (!sum) {
		__u64 none = 0;

		bpf_map_update_elem(table, key, &none, BPF_NOEXIST);
		sum = bpf_map_lookup_elem(table, key);
	}
	if (sum) {
		__sync_fetch_and_add(sum, packets);
		count(which, packets);
	} else {
		count(NO_ROOM, packets);
	}
}

/* The words of both are multiplied out or compared one by one: half of what the table's hash would cost. */
static __always_inline __u64 mix(const struct early *key)
{
	const __u64 *words = (const void *)key;
	__u64 mixed = 0;
	int i;

#pragma unroll
	for (i = 0; i < 9; i++)
		mixed += words[i] * (0x9e3779b97f4a7c15ull * (2 * i + 1));
	return mixed;
}

static __always_inline int is_same(const struct early *a, const struct early *b)
{
	const __u64 *left = (const void *)a, *right = (const void *)b;
	__u64 other = 0;
	int i;

#pragma unroll
	for (i = 0; i < 9; i++)
		other |= left[i] ^ right[i];
	return !other;
}

/* kfree_skb(struct sk_buff *skb, void *location[, enum skb_drop_reason reason[, struct sock *rx_sk]]) */
SEC("tp_btf/kfree_skb")
int dropped(__u64 *ctx)
{
	struct sk_buff *skb = (struct sk_buff *)ctx[0];
	struct sock *receiver = 0;
	struct early key = {};
	struct early_count *seen;
	const unsigned char *head = skb->head, *behind = 0;
	__u64 packets;
	__u64 mixed;
	__u32 is_asked;
	__be16 protocol = skb->protocol;

	if (bpf_core_field_exists(struct trace_event_raw_kfree_skb, reason))
		key.drop.reason = (__u32)ctx[2];
	if (bpf_core_field_exists(struct trace_event_raw_kfree_skb, rx_sk))
		receiver = (struct sock *)ctx[3];
	key.drop.function = freed_by(ctx);
	key.drop.untracked = is_untracked(skb, key.drop.reason);
	find_place(skb, receiver, &key.drop);
	packets = packets_of(skb, head);
	if (protocol == ETH_IP || protocol == ETH_IPV6) {
		behind = read_ip(head + skb->network_header, &key.tuple);
		key.drop.flow = flow_of(&key.tuple);
		if (!key.drop.flow) {
			const unsigned char *inner = inside(behind, &key.tuple);

			if (inner) {
				read_ip(inner, &key.tuple);
				key.drop.flow = flow_of(&key.tuple);
			}
		}
	}
	if (key.drop.flow) {
		add(&drops, &key.drop, packets, OF_FLOWS);
		return 0;
	}
	is_asked = is_set(&namespaces, key.drop.netns % NAMESPACE_BITS);
	if (is_asked) {
		add(&others, &key.drop, packets, OF_OTHERS);
	} else if (is_set(&namespaces, NAMESPACE_BITS)) {
		add(&strangers, &key.drop, packets, OF_OTHERS);
		is_asked = 1;
	}
	if (key.tuple.proto != TCP && key.tuple.proto != UDP)
		return 0;
	mixed = mix(&key);
	seen = bpf_map_lookup_elem(&early, &mixed);
	if (!seen) {
		struct early_count none = { .of = key, .since_ns = bpf_ktime_get_ns() };

		bpf_map_update_elem(&early, &mixed, &none, BPF_NOEXIST);
		seen = bpf_map_lookup_elem(&early, &mixed);
	}
	if (seen && is_same(&seen->of, &key)) {
		__sync_fetch_and_add(&seen->packets, packets);
		if (is_asked)
			__sync_fetch_and_add(&seen->in_others, packets);
	}
	return 0;
}

/* ---- datagrams of each UDP socket ------------------------------------------------------------------------------- */

/* What a socket's program has given to the kernel and read, since the programs were attached: what a benchmark counts itself.
 * The counters of its namespace have everybody's datagrams, those of tunnels too. */
struct datagrams {
	__u64 sent_bytes; /* payload */
	__u64 sent; /* datagrams; what a send is cut into by the socket's UDP_SEGMENT is several, by a control message's one */
	__u64 received_bytes;
	__u64 received; /* reads */
	__u64 merged; /* of them those that may have been several datagrams (UDP_GRO) */
	__u64 since_ns; /* CLOCK_MONOTONIC of the first */
};

/* By the socket's cookie, of every socket of the machine: a test's first datagrams come before anybody has found it. The loader
 * makes room for as many as the machine's cores need, each of which keeps some to itself. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, struct datagrams);
} datagrams SEC(".maps");

#define UDP_FLAGS_GRO_ENABLED 3
#define MSG_PEEK 2
#define MSG_ERRQUEUE 0x2000

static __always_inline struct datagrams *datagrams_of(struct sock *sk)
{
	__u64 cookie = sk->__sk_common.skc_cookie.counter;
	struct datagrams *seen;

	if (!cookie)
		cookie = bpf_get_socket_cookie(sk);
	seen = bpf_map_lookup_elem(&datagrams, &cookie);
	if (!seen) {
		struct datagrams none = { .since_ns = bpf_ktime_get_ns() };

		bpf_map_update_elem(&datagrams, &cookie, &none, BPF_NOEXIST);
		seen = bpf_map_lookup_elem(&datagrams, &cookie);
	}
	return seen;
}

/* sock_send_length(struct sock *sk, int ret, int flags), Linux 6.3 */
SEC("tp_btf/sock_send_length")
int sent(__u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	const struct udp_sock *udp = (const void *)sk;
	__s32 bytes = (__s32)ctx[1];
	struct datagrams *seen;
	__u32 size;

	if (bytes < 0 || !sk || sk->sk_protocol != UDP)
		return 0;
	seen = datagrams_of(sk);
	if (!seen)
		return 0;
	__sync_fetch_and_add(&seen->sent_bytes, bytes);
	/* More of the same datagram follows. */
	if (BPF_CORE_READ(udp, pending))
		return 0;
	size = BPF_CORE_READ(udp, gso_size);
	__sync_fetch_and_add(&seen->sent, size && (__u32)bytes > size ? ((__u32)bytes + size - 1) / size : 1);
	return 0;
}

static __always_inline int merges(const struct sock *sk)
{
	const struct udp_sock *udp = (const void *)sk;

	if (bpf_core_field_exists(udp->udp_flags))
		return BPF_CORE_READ(udp, udp_flags) >> UDP_FLAGS_GRO_ENABLED & 1;
	return BPF_CORE_READ_BITFIELD_PROBED((const struct udp_sock___before_6_7 *)sk, gro_enabled);
}

/* sock_recv_length(struct sock *sk, int ret, int flags), Linux 6.3 */
SEC("tp_btf/sock_recv_length")
int received(__u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	__s32 bytes = (__s32)ctx[1];
	struct datagrams *seen;

	if (bytes < 0 || (__u32)ctx[2] & (MSG_PEEK | MSG_ERRQUEUE) || !sk || sk->sk_protocol != UDP)
		return 0;
	seen = datagrams_of(sk);
	if (!seen)
		return 0;
	__sync_fetch_and_add(&seen->received_bytes, bytes);
	__sync_fetch_and_add(&seen->received, 1);
	if (merges(sk))
		__sync_fetch_and_add(&seen->merged, 1);
	return 0;
}

/* ---- softirqs, on request --------------------------------------------------------------------------------------- */

struct softirq {
	__u64 ns;
	__u64 count;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 16);
	__type(key, __u32);
	__type(value, struct softirq);
} softirqs SEC(".maps");

/* Since when each core handles one; 0: it does not. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} softirq_since SEC(".maps");

/* softirq_entry(unsigned int vec_nr) */
SEC("tp_btf/softirq_entry")
int softirq_begins(__u64 *ctx)
{
	__u32 zero = 0;
	__u64 *since = bpf_map_lookup_elem(&softirq_since, &zero);

	if (since)
		*since = bpf_ktime_get_ns();
	return 0;
}

/* softirq_exit(unsigned int vec_nr) */
SEC("tp_btf/softirq_exit")
int softirq_ends(__u64 *ctx)
{
	__u32 zero = 0, kind = (__u32)ctx[0];
	__u64 *since = bpf_map_lookup_elem(&softirq_since, &zero);
	struct softirq *sum = bpf_map_lookup_elem(&softirqs, &kind);

	if (since && sum && *since) {
		sum->ns += bpf_ktime_get_ns() - *since;
		sum->count += 1;
		*since = 0;
	}
	return 0;
}

/* ---- cores of a hop, while they are looked at -------------------------------------------------------------------- */

#define CACHED 4

/* What each core has counted of a hop, and the lanes of the flows that it met there last, by the hash that the packets carry: a
 * header is read once a flow, not once a packet. */
struct hop_count {
	__u64 packets;
	__u32 hash[CACHED]; /* 0: nothing yet */
	__u32 lane[CACHED];
};

/* User space puts in the hops it wants. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 256);
	__type(key, struct hop);
	__type(value, struct hop_count);
	__uint(map_flags, BPF_F_NO_PREALLOC);
} hops SEC(".maps");

/* Packets of each lane by core. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MOST_LANES);
	__type(key, __u32);
	__type(value, __u64);
} lanes SEC(".maps");

struct switching {
	__u32 last; /* core of the last packet, plus 1; 0: none yet */
	__u32 _pad;
	__u64 switches; /* how often a packet came on another core than the one before it */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MOST_LANES);
	__type(key, __u32);
	__type(value, struct switching);
} switchings SEC(".maps");

/* The lane of the packet whose IP header is at `at`; 0: of no flow that is asked for. */
static __always_inline __u32 lane_of(const unsigned char *at, const struct hop *hop)
{
	struct flow_at_hop key = { .hop = *hop };
	const unsigned char *behind;
	struct tuple tuple = {};
	__u32 *lane;

	behind = read_ip(at, &tuple);
	key.flow = flow_of(&tuple);
	if (!key.flow) {
		const unsigned char *inner = inside(behind, &tuple);

		if (!inner)
			return 0;
		read_ip(inner, &tuple);
		key.flow = flow_of(&tuple);
		if (!key.flow)
			return 0;
	}
	lane = bpf_map_lookup_elem(&lane_numbers, &key);
	return lane ? *lane : 0;
}

static __always_inline void count_lane(__u32 lane, __u64 packets)
{
	struct switching *switching = bpf_map_lookup_elem(&switchings, &lane);
	__u64 *sum = bpf_map_lookup_elem(&lanes, &lane);
	__u32 core = bpf_get_smp_processor_id() + 1;

	if (!sum || !switching)
		return;
	*sum += packets;
	if (switching->last == core)
		return;
	if (switching->last)
		__sync_fetch_and_add(&switching->switches, 1);
	switching->last = core;
}

/* `at` is where the packet's IP header begins. */
static __always_inline void count_hop(const struct sk_buff *skb, const struct net_device *dev, const unsigned char *at,
				      __u32 sent)
{
	struct hop hop = { .sent = sent };
	__be16 protocol = skb->protocol;
	__u32 hash = skb->hash, slot, lane;
	struct hop_count *count;
	__u64 packets;

	/* Loads: these pointers are the kernel's own arguments. */
	hop.ifindex = dev->ifindex;
	hop.netns = dev->nd_net.net->ns.inum;
	count = bpf_map_lookup_elem(&hops, &hop);
	if (!count)
		return;
	packets = packets_of(skb, skb->head);
	count->packets += packets;
	if (protocol != ETH_IP && protocol != ETH_IPV6)
		return;
	slot = hash & (CACHED - 1);
	if (hash && count->hash[slot] == hash) {
		lane = count->lane[slot];
	} else {
		lane = lane_of(at, &hop);
		count->hash[slot] = hash;
		count->lane[slot] = lane;
	}
	if (lane)
		count_lane(lane, packets);
}

/* netif_receive_skb(struct sk_buff *skb): before the kernel notes where the header is, which is where the data begin */
SEC("tp_btf/netif_receive_skb")
int hop_receives(__u64 *ctx)
{
	struct sk_buff *skb = (struct sk_buff *)ctx[0];

	count_hop(skb, skb->dev, skb->data, 0);
	return 0;
}

/* net_dev_start_xmit(const struct sk_buff *skb, const struct net_device *dev) */
SEC("tp_btf/net_dev_start_xmit")
int hop_sends(__u64 *ctx)
{
	struct sk_buff *skb = (struct sk_buff *)ctx[0];

	count_hop(skb, (const struct net_device *)ctx[1], skb->head + skb->network_header, 1);
	return 0;
}
