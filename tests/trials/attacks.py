"""What was found by attacking it: each row is one fault that was there once."""

import os
import signal
import stat
import subprocess
import sys
import tempfile
import time

from .ground import Broken, Row, Rounds, Terminal, VNETTOP, trial, vnettop


@trial("undo in another time namespace", 1)
def other_clocks(seconds, chance):
    """Pinned where start times are told by another clock, and killed there: an undo outside can tell no thread."""
    rounds, cores = Rounds(seconds), os.sched_getaffinity(0)
    if len(cores) < 2:
        return Row("undo in another time namespace", 0, "one core: nothing can be pinned", "", True)
    for _ in rounds:
        with tempfile.TemporaryDirectory() as state:
            os.chmod(state, 0o700)
            busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            # The namespace outlives the vnettop that is killed in it.
            apart = subprocess.Popen(["unshare", "--time", "--boottime", str(chance.randint(10, 100_000)), "sleep", "60"])
            try:
                env = {**os.environ, "XDG_STATE_HOME": state}
                wait(lambda: "sleep" in open(f"/proc/{apart.pid}/comm").read() or children(apart.pid), "no time namespace")
                inside = ["nsenter", "--time", f"--target={(children(apart.pid) or [apart.pid])[0]}", "--"]
                keys = f"<tick><tab><tab>ja{min(cores)}<enter>" + "<tick>" * 1000
                process = subprocess.Popen([*inside, VNETTOP, "-d", "0.05", "--netns", "self", "--watch", str(busy.pid), "--print", "120x40", "--keys", keys],
                                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
                wait(lambda: os.sched_getaffinity(busy.pid) != cores, "nothing was pinned")
                for pid in [*children(process.pid), process.pid]:
                    os.kill(pid, 9)
                process.wait()
                outside = vnettop("undo", env=env, code=(1,))
                if b"another namespace" not in outside.stderr or not os.listdir(os.path.join(state, "vnettop")):
                    raise Broken(f"an undo outside said {outside.stdout + outside.stderr!r}")
                subprocess.run([*inside, VNETTOP, "undo"], env=env, stdout=subprocess.DEVNULL, check=True)
                if os.sched_getaffinity(busy.pid) != cores:
                    raise Broken("an undo inside left the pin")
            finally:
                for one in [*children(apart.pid), apart.pid, busy.pid]:
                    os.kill(one, 9)
                apart.wait(), busy.wait()
    return Row("undo in another time namespace", rounds.count, "left alone outside, undone inside", "all", True)


LIAR = """#!{python}
# What ssh and an agent may do instead of what they should, by the number of the host.
import signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
number = next(int(word[1:]) for word in reversed(sys.argv) if word[:1] == "h" and word[1:].isdigit())
out, head = sys.stdout, '{{"vnettop_recording":1,"vnettop":"0.2.0"}}'
pin = '{{"event":{{"pinned":{{"thread":{{"pid":5,"tid":%d,"start":1}},"old":"0-7","asked":"1","got":"1","at_ns":%d}}}}}}'
try:
    if number % 4 == 1:
        while True: out.write("x" * 65536)
    if number % 4 == 2:
        while True: sys.stderr.write("y" * 1000 + "\\n")
    if number % 4 == 3:
        print(head)
        for nth in range(1 << 40): print(pin % (nth, nth))
except BrokenPipeError:
    pass
time.sleep(600)
"""


@trial("quitting with 16 hosts that hang or lie", 2)
def quitting(seconds, chance):
    rounds, slowest, back = Rounds(seconds), 0.0, 0.0
    with tempfile.TemporaryDirectory() as folder:
        liar = os.path.join(folder, "liar")
        with open(liar, "w") as file:
            file.write(LIAR.format(python=sys.executable))
        os.chmod(liar, stat.S_IRWXU)
        for nth in rounds:
            kind = chance.choice([1, 4])
            hosts = [word for at in range(16) for word in ("--host", f"h{at * (5 - kind)}")]
            with Terminal("--ssh-command", liar, *hosts) as terminal:
                terminal.drain(chance.uniform(1, 4))
                begin = time.monotonic()
                if nth % 2:
                    terminal.press(b"q")
                else:
                    os.kill(terminal.pid, signal.SIGTERM)
                back = max(back, terminal.until(b"\x1b[?1049l", 10) - begin)
                # Whoever has ended is there until it is waited for.
                wait(lambda: open(f"/proc/{terminal.pid}/stat").read().rsplit(")", 1)[1].split()[0] == "Z", "no end within 10 s")
                slowest = max(slowest, time.monotonic() - begin)
    figure = f"the terminal is back after {back:.2f} s, the end after {slowest:.2f} s at most"
    return Row("quitting with 16 hosts that hang or lie", rounds.count, figure, "1 s, 3 s", back < 1 and slowest < 3)


def children(pid):
    try:
        return [int(child) for child in open(f"/proc/{pid}/task/{pid}/children").read().split()]
    except OSError:
        return []


def wait(until, otherwise, seconds=10):
    end = time.monotonic() + seconds
    while not until():
        if time.monotonic() > end:
            raise Broken(otherwise)
        time.sleep(0.02)
