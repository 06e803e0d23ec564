"""What `vnettop run --pin compare` and `--pin search` say where the truth is known: the pin changes nothing, or 15 %.

    sudo tests/release/trial 40 --only verdicts     # about 60 runs, 30 searches, 30 planted; on an idle machine
"""

import json
import os
import subprocess
import sys
import tempfile

from .ground import Broken, Row, Rounds, trial, vnettop

WITHIN = 0.03
PLACED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../live/release/planted/placed.py")
# Sends to a child of its own, which does the same work for each piece, and this much more while its mask has several cores. What each takes is its own
# CPU time, so that others slow it down as they do any program.
SERVED = """
import os, socket, sys, time
more, end = float(sys.argv[1]), time.monotonic() + float(sys.argv[2])
server = socket.create_server(("127.0.0.1", 0))
child = os.fork()
if child == 0:
    open("/proc/self/comm", "w").write("taker")
    connection, _ = server.accept()
    taken, work = bytearray(1 << 16), 0.0004
    while connection.recv_into(taken, 1 << 16, socket.MSG_WAITALL):
        until = time.thread_time() + work * (1 if len(os.sched_getaffinity(0)) == 1 else 1 + more)
        while time.thread_time() < until:
            pass
    os._exit(0)
open("/proc/self/comm", "w").write("placed")
out = socket.create_connection(server.getsockname())
server.close()
piece = bytes(1 << 16)
while time.monotonic() < end:
    out.sendall(piece)
out.close()
os.waitpid(child, 0)
"""
# Works and rests by turns of uneven length, on whatever core it is put.
BUSY = """
import random, time
while True:
    until = time.monotonic() + random.expovariate(2)
    while time.monotonic() < until: pass
    time.sleep(random.expovariate(2))
"""


class Others:
    """Other programs that come and go, as many as there are cores, in every second round."""

    def __init__(self, nth):
        self.count = len(os.sched_getaffinity(0)) if nth % 2 == 0 else 0

    def __enter__(self):
        self.all = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(self.count)]

    def __exit__(self, *_):
        for one in self.all:
            one.kill()
            one.wait()


def card(nth, *arguments):
    """The card of a run beside others, or not."""
    with tempfile.TemporaryDirectory() as state, Others(nth):
        os.chmod(state, 0o700)
        path = os.path.join(state, "card.json")
        vnettop("run", "--format", "json", "--card", path, *arguments, seconds=120, env={"XDG_STATE_HOME": state})
        with open(path) as file:
            return json.load(file)


def is_within(interval):
    return interval is not None and interval["from"] >= -WITHIN and interval["to"] <= WITHIN


@trial("verdicts of pin compare where nothing differs", 20)
def compared(seconds, chance):
    rounds, said = Rounds(seconds), {}
    for nth in rounds:
        both = card(nth, "--pin", "compare", "--phase", "1", "--", sys.executable, PLACED, "", "20")["comparison"] or {}
        verdict = both.get("verdict") or "none"
        said[verdict] = said.get(verdict, 0) + 1
        mean, cv = both.get("mean_difference_bits_per_s"), both.get("cv_difference")
        if verdict == "no difference":
            usual = both["unpinned"]["jitter"]["mean_bits_per_s"]
            share = mean and {end: mean[end] / usual for end in ("from", "to")}
            if not is_within(share) or cv is not None and not is_within(cv):
                raise Broken(f"round {nth}: no difference, {mean} of {usual}, CV {cv}")
    wrong = sum(count for verdict, count in said.items() if verdict not in ("no difference", "inconclusive", "none"))
    figure = ", ".join(f"{count} {verdict}" for verdict, count in sorted(said.items()))
    return Row("verdicts of pin compare where nothing differs", rounds.count, figure, "none better or worse", wrong == 0)


@trial("verdicts of pin search where nothing differs", 8)
def searched(seconds, chance):
    rounds, said = Rounds(seconds), {}
    for nth in rounds:
        search = card(nth, "--pin", "search", "--phase", "0.5", "--", sys.executable, PLACED, "", "16")["search"] or {}
        text = (search.get("text") or "none").split(":")[0]
        said[text] = said.get(text, 0) + 1
        others = [one["against_best"] for one in search.get("ranking", []) if one["standing"] != "best"]
        if "do not differ" in text and not all(is_within(one) for one in others):
            raise Broken(f"round {nth}: {text} beside {others}")
        below = [one for one in others if one and one["from"] < -1]
        if below:
            raise Broken(f"round {nth}: a rate that falls by more than all of it: {below}")
    figure = ", ".join(f"{count} {text}" for text, count in sorted(said.items()))
    return Row("verdicts of pin search where nothing differs", rounds.count, figure, "no best", "best" not in said)


@trial("verdicts of pin compare where 15 % differ", 10)
def planted(seconds, chance):
    rounds, found = Rounds(seconds), 0
    for nth in rounds:
        # Alone: beside others on every core the pin itself costs something, and the truth is not known.
        both = card(1, "--pin", "compare", "--phase", "1", "--", sys.executable, "-c", SERVED, "0.15", "20")["comparison"] or {}
        found += both.get("verdict") in ("faster", "steadier and faster")
    least = rounds.count * 9 // 10
    return Row("verdicts of pin compare where 15 % differ", rounds.count, f"{found} found", f"{least} of {rounds.count}", found >= least)
