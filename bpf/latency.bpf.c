/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* How long packets of watched flows take from one point of their path to the next, and how long watched threads wait for a
 * core; attached only while somebody looks. A packet is known again by what it carries (a TCP sequence number, the first bytes of
 * a datagram and its IP identification), not by its buffer: that is another one behind a guest, a tunnel, or where a qdisc cuts it.
 * An object of its own, which is read only when somebody asks for it. */

#include "packets.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* ---- histograms --------------------------------------------------------------------------------------------------- */

/* Four buckets to each power of two from 128 ns to 17 s; the first is what is shorter, the last what is longer. */
#define BUCKETS 112
#define SHORTEST_POWER 7

struct latencies {
	__u64 max_ns;
	struct {
		__u64 count;
		__u64 sum_ns;
	} buckets[BUCKETS];
};

/* What waited: `kind` and two numbers whose meaning it tells. */
struct waited {
	__u32 kind;
	__u32 one;
	__u32 other;
};

#define PACKET 0 /* from a lane to a lane */
#define SOFTIRQ_OF 1 /* number of the flow, core */
#define READ_GAP 3 /* tid */
#define SEND_GAP 4 /* tid */
#define ARRIVAL_GAP 5 /* number of the flow */
#define ALIKE 6 /* number of the flow: a packet like one that is still on its way */
#define WHOLE 7 /* number of the flow: from the first point of its path to its last link */
#define ANSWER 8 /* tid */

/* Has its room from the beginning: where the scheduler runs a program nothing may be allocated. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct waited);
	__type(value, struct latencies);
} latencies SEC(".maps");

/* Nothing yet: too large for a program's stack. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct latencies);
} no_latencies SEC(".maps");

static __always_inline __u32 bucket_of(__u64 ns)
{
	__u64 rest = ns >> SHORTEST_POWER;
	__u32 power = 0;

	if (!rest)
		return 0;
	if (rest >> 16) {
		power += 16;
		rest >>= 16;
	}
	if (rest >> 8) {
		power += 8;
		rest >>= 8;
	}
	if (rest >> 4) {
		power += 4;
		rest >>= 4;
	}
	if (rest >> 2) {
		power += 2;
		rest >>= 2;
	}
	power += rest >> 1 & 1;
	if (power > 26)
		return BUCKETS - 1;
	return 1 + power * 4 + (ns >> (power + SHORTEST_POWER - 2) & 3);
}

static __always_inline void add_to(struct latencies *sum, __u64 ns)
{
	__u32 bucket = bucket_of(ns);

	if (ns > sum->max_ns)
		sum->max_ns = ns;
	/* So that what is compared is what is used, as the kernel checks it. */
	barrier_var(bucket);
	if (bucket >= BUCKETS)
		return;
	__sync_fetch_and_add(&sum->buckets[bucket].count, 1);
	__sync_fetch_and_add(&sum->buckets[bucket].sum_ns, ns);
}

/* The same of what one core at a time adds to. */
static __always_inline void add_to_own(struct latencies *sum, __u64 ns)
{
	__u32 bucket = bucket_of(ns);

	if (ns > sum->max_ns)
		sum->max_ns = ns;
	barrier_var(bucket);
	if (bucket >= BUCKETS)
		return;
	sum->buckets[bucket].count += 1;
	sum->buckets[bucket].sum_ns += ns;
}

static __always_inline void note(__u32 kind, __u32 one, __u32 other, __u64 ns)
{
	struct waited key = { .kind = kind, .one = one, .other = other };
	struct latencies *sum = bpf_map_lookup_elem(&latencies, &key);
	__u32 zero = 0;

	if (!sum) {
		struct latencies *none = bpf_map_lookup_elem(&no_latencies, &zero);

		if (!none)
			return;
		bpf_map_update_elem(&latencies, &key, none, BPF_NOEXIST);
		sum = bpf_map_lookup_elem(&latencies, &key);
		if (!sum)
			return;
	}
	add_to(sum, ns);
}

/* Packets are looked at for a part of each second, and followed only from its first half on: who is on the way for up to
 * half of it is seen at both ends, so that the long ones are not left out. */
struct look {
	__u64 number; /* which one it is */
	__u64 follows_until_ns; /* CLOCK_MONOTONIC */
	__u64 threads_since_ns; /* a wait that began before was not followed */
	__u64 since_ns; /* packets; TCP's numbers come again, so who was on the way before is not known now */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct look);
} looks SEC(".maps");

/* How often programs ran for a look, each core by itself: how long the next look may be. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} ran SEC(".maps");

static __always_inline void count_run(void)
{
	__u32 zero = 0;
	__u64 *times = bpf_map_lookup_elem(&ran, &zero);

	if (times)
		*times += 1;
}

/* ---- threads -------------------------------------------------------------------------------------------------------- */

/* A watched thread; user space puts it in. */
struct waiting {
	__u64 since_ns; /* it can run and does not; 0: it runs or sleeps */
	__u64 read_ns; /* its last read of a socket, and in which look */
	__u64 read_in_look;
	__u64 sent_ns; /* its last send, likewise */
	__u64 sent_in_look;
	__u64 slot; /* of `wakeups` */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 512);
	__type(key, __u32);
	__type(value, struct waiting);
} waiting SEC(".maps");

/* Of each watched thread, at the place that user space gave it: the scheduler runs for everybody, and a table would be half of
 * what that costs. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 512);
	__type(key, __u32);
	__type(value, struct latencies);
} wakeups SEC(".maps");

/* Who ran while a watched thread waited for long. */
struct waited_for {
	__u32 tid;
	__u32 by; /* tid; 0: the core was idle */
};

struct taken {
	__u64 ns;
	__u64 count;
	char name[16];
	__u32 pid;
	__u32 real_time; /* its priority; 0: it is not */
	__u32 core;
	__u32 own_real_time; /* of who waited */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 512);
	__type(key, struct waited_for);
	__type(value, struct taken);
} waited_for SEC(".maps");

/* A wait that is worth a name. */
#define LONG_NS 500000

#define MAX_RT_PRIO 100

/* sched_waking(struct task_struct *p) */
SEC("tp_btf/sched_waking")
int thread_wakes(__u64 *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx[0];
	__u32 tid = task->pid;
	struct waiting *waits = bpf_map_lookup_elem(&waiting, &tid);

	if (waits && !waits->since_ns)
		waits->since_ns = bpf_ktime_get_ns();
	return 0;
}

static __always_inline int can_run(struct task_struct *task)
{
	if (bpf_core_field_exists(task->__state))
		return !task->__state;
	return !BPF_CORE_READ((struct task_struct___before_5_14 *)task, state);
}

static __always_inline __u32 real_time_of(struct task_struct *task)
{
	int priority = BPF_CORE_READ(task, prio);

	return priority < MAX_RT_PRIO - 1 ? MAX_RT_PRIO - 1 - priority : 0;
}

/* Who ran on a core last, each for long: a thread waits for who had most of its wait, who may not be the last one. */
#define LONG_RUN_NS 250000
#define RUNS_KEPT 8

struct run {
	__u64 from_ns;
	__u64 to_ns;
	char name[16];
	__u32 tid;
	__u32 pid;
	__u32 real_time;
	__u32 _pad;
};

struct runs {
	__u64 since_ns; /* the last switch */
	__u64 count;
	struct run last[RUNS_KEPT];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct runs);
} runs SEC(".maps");

static __always_inline void fill(struct run *run, struct task_struct *task, __u64 from_ns, __u64 to_ns)
{
	run->from_ns = from_ns;
	run->to_ns = to_ns;
	run->tid = task->pid;
	run->pid = task->tgid;
	run->real_time = real_time_of(task);
	BPF_CORE_READ_INTO(&run->name, task, comm);
}

static __always_inline void note_run(struct runs *here, struct task_struct *prev, __u64 now)
{
	if (here->since_ns && now - here->since_ns >= LONG_RUN_NS)
		fill(&here->last[here->count++ & (RUNS_KEPT - 1)], prev, here->since_ns, now);
	here->since_ns = now;
}

static __always_inline void blame(struct task_struct *next, const struct run *by, __u64 ns)
{
	struct waited_for key = { .tid = next->pid, .by = by->tid };
	struct taken *taken = bpf_map_lookup_elem(&waited_for, &key);

	if (!taken) {
		struct taken none = { .pid = by->pid };

		__builtin_memcpy(none.name, by->name, sizeof(none.name));
		bpf_map_update_elem(&waited_for, &key, &none, BPF_NOEXIST);
		taken = bpf_map_lookup_elem(&waited_for, &key);
		if (!taken)
			return;
	}
	taken->core = bpf_get_smp_processor_id();
	taken->real_time = by->real_time;
	taken->own_real_time = real_time_of(next);
	__sync_fetch_and_add(&taken->ns, ns);
	__sync_fetch_and_add(&taken->count, 1);
}

/* A thread has waited so long until now. */
static __always_inline void has_waited(const struct runs *here, struct task_struct *next, struct task_struct *prev, __u64 now,
				       __u64 ns)
{
	__u64 longest = 0;
	struct run by;

	fill(&by, prev, now, now);
	for (int at = 0; at < RUNS_KEPT; at++) {
		const struct run *run = &here->last[at];
		__u64 from_ns = run->from_ns > now - ns ? run->from_ns : now - ns;

		if (run->to_ns > from_ns && run->to_ns - from_ns > longest) {
			longest = run->to_ns - from_ns;
			by = *run;
		}
	}
	blame(next, &by, ns);
}

/* sched_switch(bool preempt, struct task_struct *prev, struct task_struct *next[, unsigned int prev_state]) */
SEC("tp_btf/sched_switch")
int threads_switch(__u64 *ctx)
{
	struct task_struct *prev = (struct task_struct *)ctx[1], *next = (struct task_struct *)ctx[2];
	__u32 from = prev->pid, to = next->pid, zero = 0;
	struct runs *here = bpf_map_lookup_elem(&runs, &zero);
	__u64 now = bpf_ktime_get_ns();
	struct waiting *waits;

	if (!here)
		return 0;
	note_run(here, prev, now);
	waits = from ? bpf_map_lookup_elem(&waiting, &from) : 0;
	if (waits)
		waits->since_ns = (ctx[0] & 1) || can_run(prev) ? now : 0;
	waits = to ? bpf_map_lookup_elem(&waiting, &to) : 0;
	if (waits && waits->since_ns) {
		__u64 since = waits->since_ns, ns = now - since;
		__u32 slot = waits->slot;
		struct latencies *sum = bpf_map_lookup_elem(&wakeups, &slot);
		const struct look *this = bpf_map_lookup_elem(&looks, &zero);

		waits->since_ns = 0;
		if (!sum || !this || since < this->threads_since_ns)
			return 0;
		add_to_own(sum, ns);
		if (ns >= LONG_NS)
			has_waited(here, next, prev, now, ns);
	}
	return 0;
}

/* The time since the last one, of the same look. */
static __always_inline void note_gap(__u32 kind, __u32 tid, __u64 *last_ns, __u64 *in_look)
{
	__u32 zero = 0;
	const struct look *this = bpf_map_lookup_elem(&looks, &zero);
	__u64 now = bpf_ktime_get_ns();

	count_run();
	if (!this)
		return;
	if (*in_look == this->number && now > *last_ns)
		note(kind, tid, 0, now - *last_ns);
	*last_ns = now;
	*in_look = this->number;
}

/* The watched thread that has read last on a core, until it sends: whoever answers does so on the same one, or is not seen. */
struct has_read {
	__u64 at_ns; /* 0: it has sent since */
	__u64 in_look;
	__u64 socket;
	__u32 tid;
	__u32 _pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct has_read);
} has_read SEC(".maps");

/* The running thread has read something from a socket. */
static __always_inline void note_read(__u64 socket)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid(), zero = 0;
	struct waiting *reader = bpf_map_lookup_elem(&waiting, &tid);
	struct has_read *here;

	if (!reader)
		return;
	note_gap(READ_GAP, tid, &reader->read_ns, &reader->read_in_look);
	here = bpf_map_lookup_elem(&has_read, &zero);
	if (here) {
		here->at_ns = reader->read_ns;
		here->in_look = reader->read_in_look;
		here->socket = socket;
		here->tid = tid;
	}
}

/* A packet with payload begins its way: the first one after its thread has read something from the same socket is its answer to
 * that. What the kernel sends of others, for an acknowledgement that comes meanwhile, is of another one. */
static __always_inline void note_answer(const struct sk_buff *skb)
{
	__u32 zero = 0;
	struct has_read *here = bpf_map_lookup_elem(&has_read, &zero);
	const struct look *this;

	if (!here || !here->at_ns || here->tid != (__u32)bpf_get_current_pid_tgid() || here->socket != (__u64)skb->sk)
		return;
	this = bpf_map_lookup_elem(&looks, &zero);
	if (this && here->in_look == this->number)
		note(ANSWER, here->tid, 0, bpf_ktime_get_ns() - here->at_ns);
	here->at_ns = 0;
}

/* sock_send_length(struct sock *sk, int ret, int flags), Linux 6.3 */
SEC("tp_btf/sock_send_length")
int thread_sends(__u64 *ctx)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct waiting *sender = bpf_map_lookup_elem(&waiting, &tid);

	if (sender && (__s32)ctx[1] > 0)
		note_gap(SEND_GAP, tid, &sender->sent_ns, &sender->sent_in_look);
	return 0;
}

/* ---- softirqs that receive ------------------------------------------------------------------------------------------ */

#define NET_RX 3
#define PF_KTHREAD 0x00200000

struct receiving {
	__u64 raised_ns; /* 0: not raised */
	__u64 raised_in_look;
	__u64 late_ns; /* of the one that runs, until a packet of a watched flow has come in it */
	__u64 since_ns; /* it runs */
};

/* No softirq that receives runs for longer (net.core.netdev_budget_usecs): what comes later comes by another way, as from a
 * program that writes to a tap. */
#define LONGEST_SOFTIRQ_NS 3000000

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct receiving);
} receiving SEC(".maps");

/* softirq_raise(unsigned int vec_nr) */
SEC("tp_btf/softirq_raise")
int receiving_is_raised(__u64 *ctx)
{
	__u32 zero = 0;
	struct receiving *here;
	const struct look *this;

	if ((__u32)ctx[0] != NET_RX)
		return 0;
	here = bpf_map_lookup_elem(&receiving, &zero);
	this = bpf_map_lookup_elem(&looks, &zero);
	if (!here || !this || (here->raised_ns && here->raised_in_look == this->number))
		return 0;
	here->raised_ns = bpf_ktime_get_ns();
	here->raised_in_look = this->number;
	return 0;
}

/* softirq_entry(unsigned int vec_nr) */
SEC("tp_btf/softirq_entry")
int receiving_begins(__u64 *ctx)
{
	__u32 zero = 0;
	struct receiving *here;
	const struct look *this;
	int is_known;

	if ((__u32)ctx[0] != NET_RX)
		return 0;
	here = bpf_map_lookup_elem(&receiving, &zero);
	this = bpf_map_lookup_elem(&looks, &zero);
	if (!here || !this)
		return 0;
	count_run();
	is_known = here->raised_ns && here->raised_in_look == this->number;
	here->since_ns = bpf_ktime_get_ns();
	here->late_ns = is_known ? here->since_ns - here->raised_ns : 0;
	here->raised_ns = 0;
	return 0;
}

/* A thread of the kernel that receives (threaded NAPI) is a watched one, and no softirq. */
static __always_inline int is_napi_thread(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u32 tid = (__u32)bpf_get_current_pid_tgid();

	return BPF_CORE_READ(task, flags) & PF_KTHREAD && bpf_map_lookup_elem(&waiting, &tid);
}

static __always_inline void note_softirq(__u32 flow)
{
	__u32 zero = 0;
	struct receiving *here = bpf_map_lookup_elem(&receiving, &zero);

	if (!here || !here->late_ns || bpf_ktime_get_ns() - here->since_ns > LONGEST_SOFTIRQ_NS || is_napi_thread())
		return;
	note(SOFTIRQ_OF, flow, bpf_get_smp_processor_id(), here->late_ns);
	here->late_ns = 0;
}

/* ---- packets -------------------------------------------------------------------------------------------------------- */

#define IS_RECEIVED 0
#define IS_SENT 1
#define IS_READ 2 /* by the program at the end; of no link */
#define IS_QUEUED 3 /* given to the link's qdisc */

/* Where packets are looked at; user space puts the points in. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 512);
	__type(key, struct hop);
	__type(value, __u32);
	__uint(map_flags, BPF_F_NO_PREALLOC);
} points SEC(".maps");

/* Packets on their way, each at the place that its mark gives: who needs the same place is forgotten, which is cheaper than a
 * table that finds another. */
#define MOST_ON_THE_WAY 32768

struct on_the_way {
	__u64 mark;
	__u64 at_ns;
	__u64 first_ns; /* at the first point; 0: it was not seen there */
	__u32 lane;
	__u32 _pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MOST_ON_THE_WAY);
	__type(key, __u32);
	__type(value, struct on_the_way);
} on_the_way SEC(".maps");

/* By the number of a flow: when its last packet came to the end of the path, and in which look. */
struct arrival {
	__u64 at_ns;
	__u64 in_look;
	__u64 count; /* of this look, without those that were dropped since */
	__u64 sequence; /* of TCP, behind the last byte that came, in 64 bits: those above the packets' 32 count the wraps */
	__u64 sequence_in_look;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct arrival);
} arrived SEC(".maps");

/* A value of `points` and of `lane_numbers` says what a lane is: its first one, or the last of those links. */
#define LANE_BITS 0xffff
#define IS_FIRST 0x10000
#define IS_LAST 0x20000

/* When the last ones came, of each flow; those whose numbers end alike share the room. */
#define MOST_KEPT 4096

struct came {
	__u64 at_ns;
	__u32 flow;
	__u32 number;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 16 * MOST_KEPT);
	__type(key, __u32);
	__type(value, struct came);
} arrivals SEC(".maps");

/* The datagram that came to its end last on a core, until it is freed: its socket drops it before another one comes there. A tap
 * hands on a copy, with the same head. */
struct came_last {
	__u64 head; /* 0: none */
	__u32 flow;
	__u32 _pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct came_last);
} came_last SEC(".maps");

static __always_inline __u32 place_of(__u32 flow, __u64 number)
{
	return (flow & 15) * MOST_KEPT + (number & (MOST_KEPT - 1));
}

static __always_inline __u64 mixed(__u32 flow, __u64 words)
{
	__u64 mark = flow * 0x9e3779b97f4a7c15ull ^ words;

	mark ^= mark >> 29;
	mark *= 0xbf58476d1ce4e5b9ull;
	mark ^= mark >> 32;
	return mark ? mark : 1;
}

static __always_inline __u64 mark_of_sequence(__u32 flow, __u32 sequence)
{
	return mixed(flow, sequence * 0xc2b2ae3d27d4eb4full);
}

/* When TCP's packets came to the end of the path, by the number behind their last byte: whose place another takes is forgotten.
 * The number has 64 bits and is of its look: at 10 Gbit/s the packets' own is used again after 3.4 s. */
#define MOST_ENDS 8192

struct end {
	__u64 mark;
	__u64 at_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MOST_ENDS);
	__type(key, __u32);
	__type(value, struct end);
} ends SEC(".maps");

/* Where a sequence number is among those that have come; it is nearer to the newest one than half of all numbers. */
static __always_inline __u64 mark_of_end(__u32 flow, const struct arrival *arrival, __u32 sequence)
{
	__u64 wide = arrival->sequence + (__s64)(__s32)(sequence - (__u32)arrival->sequence);

	return mixed(flow, (wide ^ arrival->sequence_in_look << 48) * 0xc2b2ae3d27d4eb4full);
}

static __always_inline void note_end(__u32 flow, __u32 sequence)
{
	struct arrival *arrival = bpf_map_lookup_elem(&arrived, &flow);
	__u32 zero = 0, slot;
	const struct look *this = bpf_map_lookup_elem(&looks, &zero);
	struct end *end;
	__u64 mark;
	__s32 more;

	if (!arrival || !this)
		return;
	if (arrival->sequence_in_look != this->number) {
		arrival->sequence_in_look = this->number;
		arrival->sequence = (1ull << 32) + sequence;
	}
	more = sequence - (__u32)arrival->sequence;
	if (more > 0)
		arrival->sequence += more;
	mark = mark_of_end(flow, arrival, sequence);
	slot = mark & (MOST_ENDS - 1);
	end = bpf_map_lookup_elem(&ends, &slot);
	if (!end)
		return;
	end->mark = mark;
	end->at_ns = bpf_ktime_get_ns();
}

static __always_inline void note_arrival(const struct sk_buff *skb, __u32 flow, __u32 proto, __u64 now, const struct look *this)
{
	struct arrival *before = bpf_map_lookup_elem(&arrived, &flow);
	struct came_last *last;
	__u32 place, zero = 0;
	struct came *kept;

	if (!before)
		return;
	if (before->in_look != this->number)
		before->count = 0;
	else if (now > before->at_ns)
		note(ARRIVAL_GAP, flow, 0, now - before->at_ns);
	place = place_of(flow, before->count);
	kept = proto == UDP ? bpf_map_lookup_elem(&arrivals, &place) : 0;
	if (kept) {
		kept->at_ns = now;
		kept->flow = flow;
		kept->number = before->count;
	}
	before->count += 1;
	before->at_ns = now;
	before->in_look = this->number;
	last = kept ? bpf_map_lookup_elem(&came_last, &zero) : 0;
	if (last) {
		last->head = (__u64)skb->head;
		last->flow = flow;
	}
}

/* kfree_skb(struct sk_buff *skb, ...): what is dropped at its end is in no socket's queue, so that the next one takes its place. */
SEC("tp_btf/kfree_skb")
int datagram_is_dropped(__u64 *ctx)
{
	const struct sk_buff *skb = (const struct sk_buff *)ctx[0];
	__u32 zero = 0, flow;
	struct came_last *last = bpf_map_lookup_elem(&came_last, &zero);
	struct arrival *arrival;

	if (!last || !last->head || last->head != (__u64)skb->head)
		return 0;
	last->head = 0;
	flow = last->flow;
	arrival = bpf_map_lookup_elem(&arrived, &flow);
	if (arrival && arrival->count)
		arrival->count -= 1;
	return 0;
}

static __always_inline void pass(const struct sk_buff *skb, __u32 lane_number, __u32 flow, __u32 proto, __u64 mark)
{
	__u32 slot = mark & (MOST_ON_THE_WAY - 1), lane = lane_number & LANE_BITS, zero = 0;
	struct on_the_way *packet = bpf_map_lookup_elem(&on_the_way, &slot);
	const struct look *this = bpf_map_lookup_elem(&looks, &zero);
	__u64 now = bpf_ktime_get_ns();
	int is_same;

	if (!packet || !this)
		return;
	if (lane_number & IS_LAST)
		note_arrival(skb, flow, proto, now, this);
	is_same = packet->mark == mark && packet->at_ns >= this->since_ns;
	if (is_same && packet->lane < lane && now > packet->at_ns) {
		note(PACKET, packet->lane, lane, now - packet->at_ns);
		if (lane_number & IS_LAST && packet->first_ns)
			note(WHOLE, flow, 0, now - packet->first_ns);
	} else if (now > this->follows_until_ns) {
		return;
	} else if (is_same && lane_number & IS_FIRST && now - packet->at_ns < 10000000) {
		note(ALIKE, flow, 0, now - packet->at_ns);
	}
	if (lane_number & IS_FIRST)
		packet->first_ns = now;
	else if (!is_same)
		packet->first_ns = 0;
	packet->mark = mark;
	packet->at_ns = now;
	packet->lane = lane;
}

/* The lanes of the flows that each core met last, by the hash that the packets carry: addresses are looked up once a flow, not
 * once a packet. */
#define CACHED 64

struct cached {
	struct hop point;
	__u32 hash; /* 0: nothing yet */
	__u32 lane; /* 0: of no flow that is asked for */
	__u32 flow;
	__u32 proto;
	__u32 deep; /* bytes from the outer IP header to the flow's own, inside a tunnel */
	__u32 asked; /* which request it is of */
	__u32 _pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, CACHED);
	__type(key, __u32);
	__type(value, struct cached);
} cache SEC(".maps");

/* Finds the lane of a packet whose IP header is at `at`. No copy in each program: it is most of what they are. */
static __attribute__((noinline)) int find_lane(const struct hop *point, const unsigned char *at, struct cached *found)
{
	struct flow_at_hop key = { .hop = *point };
	const unsigned char *behind, *inner;
	struct tuple tuple = {};
	__u32 *lane;

	found->lane = 0;
	found->deep = 0;
	behind = read_ip(at, &tuple);
	key.flow = behind ? flow_of(&tuple) : 0;
	if (!key.flow) {
		inner = inside(behind, &tuple);
		if (!inner)
			return 0;
		behind = read_ip(inner, &tuple);
		key.flow = behind ? flow_of(&tuple) : 0;
		if (!key.flow)
			return 0;
		found->deep = inner - at;
	}
	lane = bpf_map_lookup_elem(&lane_numbers, &key);
	if (!lane)
		return 0;
	found->lane = *lane;
	found->flow = key.flow;
	found->proto = tuple.proto;
	return 0;
}

/* What tells a packet of this flow from the others of it; 0: it carries nothing. `end` is the sequence number behind its last
 * byte, of TCP, with a bit above that says so. `at` is its IP header. */
static __attribute__((noinline)) __u64 mark_of(const unsigned char *at, const struct cached *of, __u64 *end)
{
	/* An IPv4 header without options, or the first half of IPv6's; and as much of what is behind it. */
	struct {
		__u8 version, _tos;
		__be16 length;
		__be16 number; /* of IPv6 the payload's length */
		__u8 _rest[2];
	} ip = {};
	union {
		struct {
			__be16 ports[2];
			__be32 sequence, _acknowledged;
			__u8 words, _flags[3];
		} tcp;
		struct {
			__be16 ports[2];
			__be16 length, _sum;
			__u32 payload[4];
		} udp;
	} head = {};
	__u32 headers, bytes;
	int is_six;

	if (READ(ip, at))
		return 0;
	is_six = ip.version >> 4 == 6;
	/* A later fragment has no ports, and is no packet of its own. */
	if (!is_six && (ip._rest[0] & 0x1f || ip._rest[1]))
		return 0;
	headers = is_six ? 40 : (ip.version & 15) * 4;
	/* A datagram without payload ends with its header. */
	if (bpf_probe_read_kernel(&head, of->proto == TCP ? 16 : 24, at + headers))
		return 0;
	if (of->proto == TCP) {
		__u32 sequence = bpf_ntohl(head.tcp.sequence);

		bytes = is_six ? bpf_ntohs(ip.number) : bpf_ntohs(ip.length);
		headers = (is_six ? 0 : headers) + (head.tcp.words >> 4) * 4;
		/* One that is longer than a length can say (BIG TCP) says 0. */
		if (bytes && bytes <= headers)
			return 0;
		*end = bytes ? 1ull << 32 | (__u32)(sequence + bytes - headers) : 0;
		return mark_of_sequence(of->flow, sequence);
	}
	bytes = bpf_ntohs(head.udp.length);
	if (bytes < 8 + 16) {
		head.udp.payload[2] = head.udp.payload[3] = 0;
		if (bytes < 8 + 8)
			head.udp.payload[0] = head.udp.payload[1] = 0;
	}
	return mixed(of->flow, ((__u64)head.udp.length << 16 | (is_six ? 0 : ip.number)) * 0xc2b2ae3d27d4eb4full ^
				       ((__u64)head.udp.payload[0] << 32 | head.udp.payload[1]) * 0x165667b19e3779f9ull ^
				       ((__u64)head.udp.payload[2] << 32 | head.udp.payload[3]) * 0x27d4eb2f165667c5ull);
}

static __always_inline int is_same_point(const struct hop *one, const struct hop *other)
{
	return one->netns == other->netns && one->ifindex == other->ifindex && one->sent == other->sent;
}

static __always_inline void look_at(const struct sk_buff *skb, const struct net_device *dev, const unsigned char *at,
				    __u32 what)
{
	struct hop point = { .sent = what };
	__be16 protocol = skb->protocol;
	__u32 hash = skb->hash, slot = (hash ^ what) & (CACHED - 1), *asked;
	struct cached *of, *in_cache;
	struct cached fresh = {};
	__u64 mark, end = 0;

	point.ifindex = dev->ifindex;
	point.netns = dev->nd_net.net->ns.inum;
	asked = bpf_map_lookup_elem(&points, &point);
	if (!asked || (protocol != ETH_IP && protocol != ETH_IPV6))
		return;
	count_run();
	in_cache = bpf_map_lookup_elem(&cache, &slot);
	if (!in_cache)
		return;
	if (!hash || in_cache->hash != hash || in_cache->asked != *asked || !is_same_point(&in_cache->point, &point)) {
		find_lane(&point, at, &fresh);
		fresh.point = point;
		fresh.hash = hash;
		fresh.asked = *asked;
		/* Inside a tunnel many flows may have one hash, and a fragment says nothing of the flow. */
		if (hash && fresh.lane && !fresh.deep)
			*in_cache = fresh;
		of = &fresh;
	} else {
		fresh = *in_cache;
		of = &fresh;
	}
	if (!of->lane)
		return;
	if (what == IS_RECEIVED)
		note_softirq(of->flow);
	mark = mark_of(at + of->deep, of, &end);
	if (!mark)
		return;
	if (end && of->lane & IS_LAST)
		note_end(of->flow, (__u32)end);
	if (of->lane & IS_FIRST)
		note_answer(skb);
	pass(skb, of->lane, of->flow, of->proto, mark);
}

/* netif_receive_skb(struct sk_buff *skb) */
SEC("tp_btf/netif_receive_skb")
int packet_is_received(__u64 *ctx)
{
	struct sk_buff *skb = (struct sk_buff *)ctx[0];

	look_at(skb, skb->dev, skb->data, IS_RECEIVED);
	return 0;
}

/* net_dev_start_xmit(const struct sk_buff *skb, const struct net_device *dev) */
SEC("tp_btf/net_dev_start_xmit")
int packet_is_sent(__u64 *ctx)
{
	struct sk_buff *skb = (struct sk_buff *)ctx[0];

	look_at(skb, (const struct net_device *)ctx[1], skb->head + skb->network_header, IS_SENT);
	return 0;
}

/* net_dev_queue(struct sk_buff *skb) */
SEC("tp_btf/net_dev_queue")
int packet_is_queued(__u64 *ctx)
{
	struct sk_buff *skb = (struct sk_buff *)ctx[0];

	look_at(skb, skb->dev, skb->head + skb->network_header, IS_QUEUED);
	return 0;
}

/* ---- what waits for its reader --------------------------------------------------------------------------------------- */

#define AF_INET 2
#define AF_INET6 10
#define MSG_PEEK 2
#define MSG_ERRQUEUE 0x2000

static __always_inline int addresses_of(const struct sock *sk, struct tuple *tuple)
{
	unsigned short family = BPF_CORE_READ(sk, __sk_common.skc_family);

	if (family == AF_INET) {
		__be32 from = BPF_CORE_READ(sk, __sk_common.skc_daddr);
		__be32 to = BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr);

		tuple->from[10] = tuple->from[11] = tuple->to[10] = tuple->to[11] = 0xff;
		__builtin_memcpy(tuple->from + 12, &from, 4);
		__builtin_memcpy(tuple->to + 12, &to, 4);
	} else if (family == AF_INET6) {
		BPF_CORE_READ_INTO(&tuple->from, sk, __sk_common.skc_v6_daddr);
		BPF_CORE_READ_INTO(&tuple->to, sk, __sk_common.skc_v6_rcv_saddr);
	} else {
		return 0;
	}
	tuple->from_port = BPF_CORE_READ(sk, __sk_common.skc_dport);
	return 1;
}

/* The flow that a socket without a peer reads, by its port and namespace: `proto` says that the tuple is no packet's. */
#define UNCONNECTED 0x100

static __always_inline __u32 flow_of_unconnected(const struct sock *sk, __be16 port)
{
	struct tuple reader = { .to_port = port, .proto = UDP | UNCONNECTED };
	__u32 netns = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum), *flow;

	__builtin_memcpy(reader.from, &netns, 4);
	flow = bpf_map_lookup_elem(&flows, &reader);
	return flow ? *flow : 0;
}

/* When a datagram came that has been read now; 0: not known. The queue of a socket gives out what came first, so with so many
 * still in it the one that was read came so many before the last one. */
static __always_inline __u64 datagram_came(const struct sock *sk, __u32 flow)
{
	const struct udp_sock *udp = (const void *)sk;
	struct arrival *arrival = bpf_map_lookup_elem(&arrived, &flow);
	__u32 zero = 0, place;
	struct look *this = bpf_map_lookup_elem(&looks, &zero);
	__u64 still, number;
	struct came *came;

	if (!arrival || !this || arrival->in_look != this->number)
		return 0;
	still = BPF_CORE_READ(sk, sk_receive_queue.qlen) + BPF_CORE_READ(udp, reader_queue.qlen);
	/* More than have come in this look: it came before. */
	if (still >= arrival->count || still >= MOST_KEPT)
		return 0;
	number = arrival->count - 1 - still;
	place = place_of(flow, number);
	came = bpf_map_lookup_elem(&arrivals, &place);
	return came && came->flow == flow && came->number == (__u32)number ? came->at_ns : 0;
}

/* When the packet came whose last byte was read last; 0: the read ended within a packet, or it is not known. */
static __always_inline __u64 bytes_came(const struct sock *sk, __u32 flow)
{
	struct arrival *arrival = bpf_map_lookup_elem(&arrived, &flow);
	__u32 zero = 0, slot;
	const struct look *this = bpf_map_lookup_elem(&looks, &zero);
	struct end *end;
	__u64 mark;

	/* Of what came before this look it is not known which wrap it is of. */
	if (!arrival || !this || arrival->sequence_in_look != this->number)
		return 0;
	mark = mark_of_end(flow, arrival, BPF_CORE_READ((const struct tcp_sock *)sk, copied_seq));
	slot = mark & (MOST_ENDS - 1);
	end = bpf_map_lookup_elem(&ends, &slot);
	if (!end || end->mark != mark)
		return 0;
	end->mark = 0;
	return end->at_ns;
}

/* sock_recv_length(struct sock *sk, int ret, int flags), Linux 6.3. One program for both that is known from it: a tracepoint is
 * switched on and off with interrupts to every core, for each program anew. */
SEC("tp_btf/sock_recv_length")
int data_are_read(__u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct flow_at_hop key = { .hop.sent = IS_READ };
	__u64 came, now = bpf_ktime_get_ns();
	struct tuple tuple = {};
	__u32 *lane;

	if ((__s32)ctx[1] > 0)
		note_read(ctx[0]);
	if ((__s32)ctx[1] < 0 || (__u32)ctx[2] & (MSG_PEEK | MSG_ERRQUEUE) || !sk)
		return 0;
	tuple.proto = sk->sk_protocol;
	if (tuple.proto != UDP && tuple.proto != TCP)
		return 0;
	tuple.to_port = bpf_htons(BPF_CORE_READ(sk, __sk_common.skc_num));
	if (!is_set(&ports, tuple.to_port) || !addresses_of(sk, &tuple))
		return 0;
	key.flow = flow_of(&tuple);
	if (!key.flow && tuple.proto == UDP)
		key.flow = flow_of_unconnected(sk, tuple.to_port);
	lane = bpf_map_lookup_elem(&lane_numbers, &key);
	if (!lane)
		return 0;
	came = tuple.proto == UDP ? datagram_came(sk, key.flow) : bytes_came(sk, key.flow);
	if (came && now > came)
		note(PACKET, (*lane & LANE_BITS) - 1, *lane & LANE_BITS, now - came);
	return 0;
}
