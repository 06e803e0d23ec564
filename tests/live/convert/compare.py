"""Reads a trace with Perfetto's own classes and compares it with the recording it was made from.

compare.py TRACE RECORDING REPLAYED REPORT
RECORDING is plain text, REPLAYED the output of `vnettop replay --json`, REPORT that of `vnettop report --format json`.
Prints how much was compared, one "NAME COUNT" a line; the first difference ends it.
"""

import bisect
import collections
import json
import sys

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto

EVENT = perfetto.TrackEvent
MONOTONIC = 3


class Track:
    def __init__(self, descriptor):
        self.descriptor = descriptor
        self.slices = []
        self.instants = []
        self.values = []

    def value_at(self, at_ns):
        """The value of a counter, None before the first."""
        after = bisect.bisect_right(self.values, (at_ns, float("inf")))
        return self.values[after - 1][1] if after else None


def read(path):
    """The tracks by number, after what holds of every trace was checked."""
    trace = perfetto.Trace()
    with open(path, "rb") as file:
        trace.ParseFromString(file.read())
    clocks = [one.clock_snapshot for one in trace.packet if one.HasField("clock_snapshot")]
    assert len(clocks) == 1 and clocks[0].primary_trace_clock == MONOTONIC, "one snapshot names the clock"
    tracks, last, open_slice = {}, {}, {}
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            descriptor = packet.track_descriptor
            assert descriptor.uuid not in tracks, "a track is described once"
            assert not descriptor.parent_uuid or descriptor.parent_uuid in tracks, "after the one it is below"
            tracks[descriptor.uuid] = Track(descriptor)
        if not packet.HasField("track_event"):
            continue
        event, at_ns, sequence = packet.track_event, packet.timestamp, packet.trusted_packet_sequence_id
        assert packet.timestamp_clock_id == MONOTONIC, "every time is CLOCK_MONOTONIC"
        assert last.get(sequence, 0) <= at_ns, f"times rise: {last[sequence]}, then {at_ns}"
        last[sequence] = at_ns
        track = tracks[event.track_uuid]
        if event.type == EVENT.TYPE_SLICE_BEGIN:
            assert event.track_uuid not in open_slice, "slices of a track do not overlap"
            open_slice[event.track_uuid] = (at_ns, event.name)
        elif event.type == EVENT.TYPE_SLICE_END:
            begun_ns, name = open_slice.pop(event.track_uuid)
            track.slices.append((begun_ns, at_ns, name))
        elif event.type == EVENT.TYPE_INSTANT:
            beside = {one.name: getattr(one, one.WhichOneof("value")) for one in event.debug_annotations}
            track.instants.append((at_ns, event.name, beside))
        else:
            assert event.type == EVENT.TYPE_COUNTER and track.descriptor.HasField("counter"), "values lie on counters"
            track.values.append((at_ns, event.double_counter_value))
    assert not open_slice, "every slice ends"
    return tracks


def lines(path):
    with open(path) as file:
        return [json.loads(line) for line in file]


def close(one, other):
    return one == other or abs(one - other) <= 1e-9 * max(abs(one), abs(other))


def main(trace, recording, replayed, report):
    tracks = read(trace)
    counted = collections.Counter()

    def children(of):
        return [one for one in tracks.values() if one.descriptor.parent_uuid == of]

    def top(name):
        return next((one for one in tracks.values() if one.descriptor.name == name and not one.descriptor.parent_uuid), None)

    # Migrations: what the kernel's lines of the recording say, by thread.
    samples = [line["sample"] for line in lines(recording) if "sample" in line]
    objects = lines(replayed)
    assert len(objects) == len(samples) - 1, f"{len(objects)} objects of {len(samples)} samples"
    kernel, certain, watched = collections.defaultdict(list), set(), set()
    for sample in samples:
        watched |= {(one["id"]["pid"], one["id"]["tid"]) for one in sample["threads"]}
    tids = {tid for _, tid in watched}
    for sample, line in zip(samples[1:], objects):
        traced = {one["tid"] for one in line["threads"] if one["moves_evidence"] == "traced"}
        for one in (sample.get("trace") or {}).get("moves", []):
            if one["tid"] in tids:
                kernel[one["tid"]].append((one["t"], one["from"], one["to"]))
                # Where some migrations were not asked for, the others are instants alone.
                certain |= {(one["tid"], one["t"])} if one["tid"] in traced else set()
    threads = [one for one in tracks.values() if one.descriptor.HasField("thread")]
    assert {(one.descriptor.thread.pid, one.descriptor.thread.tid) for one in threads} == watched, "every thread has its track"
    traced = collections.defaultdict(list)
    on_core = collections.defaultdict(list)
    for track in threads:
        tid = track.descriptor.thread.tid
        for begun_ns, ended_ns, name in track.slices:
            on_core[name].append((begun_ns, ended_ns, tid))
            counted["slices"] += 1
        for one in children(track.descriptor.uuid):
            for at_ns, _, beside in one.instants:
                assert beside["tid"] == tid
                traced[tid].append((at_ns, beside["from"], beside["to"]))
        begins = {(begun_ns, name) for begun_ns, _, name in track.slices}
        slices = set(track.slices)
        for (at_ns, _, to), (next_ns, left, _) in zip(kernel[tid], kernel[tid][1:]):
            if {(tid, at_ns), (tid, next_ns)} <= certain:
                assert (at_ns, f"core {to}") in begins, f"{tid} comes to core {to} at {at_ns}"
                # Of a migration that the kernel did not tell of only the other end is known: a gap.
                is_whole = (at_ns, next_ns, f"core {to}") in slices
                assert is_whole == (to == left), f"{tid} is on core {to} from {at_ns} to {next_ns}"
                counted["migrations"] += 1
        moments = {at_ns for at_ns, _, _ in kernel[tid]}
        for one, other in zip(track.slices, track.slices[1:]):
            assert one[1] <= other[0], "slices follow each other"
            assert one[1] < other[0] or one[1] in moments, f"{tid} changes its core at {one[1]} without a migration"
    assert {tid: sorted(moves) for tid, moves in traced.items()} == {tid: sorted(moves) for tid, moves in kernel.items() if moves}

    # Cores: the same slices, told by core.
    cores = top("Cores")
    by_core = collections.defaultdict(list)
    for track in children(cores.descriptor.uuid):
        # Of a core whose counter is not known for a while there is a track that says so.
        for begun_ns, ended_ns, name in (one for one in track.slices if one[2] != "not known"):
            by_core[track.descriptor.name.split(":")[0]].append((begun_ns, ended_ns, int(name.split()[-1])))
    assert {name: sorted(all) for name, all in by_core.items()} == {name: sorted(all) for name, all in on_core.items()}

    # From one sample to the next: links, cores, and what was done and found.
    counters = collections.defaultdict(dict)
    for kind, wanted in (("Links", {"received": "rx_bits_per_s", "sent": "tx_bits_per_s", "packets received": "rx_packets_per_s",
                                    "packets sent": "tx_packets_per_s", "dropped when received": "rx_dropped_per_s",
                                    "dropped before sending": "tx_dropped_per_s"}),):
        heading = top(kind)
        for link in children(heading.descriptor.uuid) if heading else []:
            for counter in children(link.descriptor.uuid):
                if counter.descriptor.name in wanted:
                    counters[link.descriptor.name.split(" in ")[0]].setdefault(wanted[counter.descriptor.name], []).append(counter)
    of_cores = {one.descriptor.name: one for one in children(cores.descriptor.uuid)}
    at_ns = [sample["at_ns"] for sample in samples]
    names = collections.Counter(link["name"] for link in objects[-1]["links"])
    findings, before = [], {}
    for from_ns, to_ns, line in zip(at_ns, at_ns[1:], objects):
        for link in line["links"]:
            if names[link["name"]] != 1:
                continue
            for field in ("rx_bits_per_s", "tx_bits_per_s", "rx_packets_per_s", "tx_packets_per_s", "rx_dropped_per_s", "tx_dropped_per_s"):
                value = link[field]
                found = [one.value_at(from_ns) for one in counters[link["name"]].get(field, [])]
                if value is not None:
                    assert any(close(one or 0.0, value) for one in found or [0.0]), f"{link['name']} {field} at {from_ns}: {value}, not {found}"
                    counted["link values"] += 1
        for core in line["cores"]:
            exact = [share for share in core["softirqs_exact"].values() if share is not None]
            for name, value in (("softirqs", sum(exact) if exact else core["softirq"]),):
                track = of_cores.get(f"core {core['core']}: {name}")
                if value is not None:
                    shown = (track.value_at(from_ns) if track else 0.0) or 0.0
                    assert abs(shown - value * 100) < 1e-6, f"core {core['core']} {name} at {from_ns}: {value}, not {shown}"
                    counted["core values"] += 1
        for test in line["tests"]:
            own = {one["id"] for one in test["findings"]} if not test["ended_t_ns"] else set()
            findings += [(to_ns, one["id"], one["text"]) for one in test["findings"] if one["id"] in own - before.get(test["number"], set())]
            before[test["number"]] = own

    # Tests: bins as the report has them, findings as JSON has them.
    tests = {}
    heading = top("Tests")
    for one in children(heading.descriptor.uuid) if heading else []:
        tests[one.descriptor.name.split(":")[0].removeprefix("test ")] = one
    shown = sorted((at, beside["finding"], text) for test in tests.values() for one in children(test.descriptor.uuid)
                   if one.descriptor.name == "findings" for at, text, beside in one.instants)
    assert shown == sorted(findings), f"findings: {shown[:3]} …, not {sorted(findings)[:3]} …"
    counted["findings"] = len(shown)
    for test in json.load(open(report))["recordings"][0]["summary"]["tests"]:
        track = tests[str(test["number"])]
        rate = next((one for one in children(track.descriptor.uuid) if one.descriptor.name == "rate"), None)
        if rate is None:
            assert all(value is None for _, _, value, _ in test["bins"]), "what is known is shown"
            continue
        unknown = [one for one in children(track.descriptor.uuid) if one.descriptor.name == "rate: not known"]
        gaps = [gap for one in unknown for gap in one.slices]
        has_begun = False
        moments = set()
        for from_s, to_s, value, _ in test["bins"]:
            from_ns, to_ns = (at_ns[0] + round(seconds * 1e9) for seconds in (from_s, to_s))
            moments |= {from_ns, to_ns}
            if value is not None:
                assert rate.value_at(from_ns) == value, f"bin at {from_ns}: {value}, not {rate.value_at(from_ns)}"
                has_begun = True
            elif has_begun:
                assert any(begun_ns <= from_ns < ended_ns for begun_ns, ended_ns, _ in gaps), f"unknown at {from_ns}: {gaps}"
            counted["bins"] += 1
        assert {at for at, _ in rate.values} <= moments, "no value but at bins"

    # What was done.
    done = top("pins, settings, marks, phases")
    told = [(beside["kind"], at) for at, _, beside in done.instants] if done else []
    events = [line["event"] for line in lines(recording) if "event" in line]
    wanted = [(one["kind"], one.get("at_ns") or None) for one in events if one["kind"] != "reported"]
    undone = [event for line in objects for event in line["events"] if event["kind"] == "pin_undone"]
    assert collections.Counter(kind for kind, _ in told) == collections.Counter([kind for kind, _ in wanted] + ["pin_undone"] * len(undone))
    for one in wanted:
        assert one[1] is None or one in told, f"{one} is not among {told}"
    counted["events"] = len(told)
    counted["tracks"] = len(tracks)
    for name, count in sorted(counted.items()):
        print(name, count)


main(*sys.argv[1:])
