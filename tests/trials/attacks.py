"""What was found by attacking it: each row is one fault that was there once."""

import os
import subprocess
import sys
import tempfile
import time

from .ground import Broken, Row, Rounds, VNETTOP, trial, vnettop


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
