"""What was found by attacking it: each row is one fault that was there once."""

import os
import signal
import stat
import subprocess
import sys
import tempfile
import time

from .ground import Broken, Row, Rounds, Terminal, VNETTOP, Watching, trial, vnettop


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


class Apart:
    """A network namespace that is there until it is ended."""

    def __init__(self):
        self.process = subprocess.Popen(["unshare", "--net", "sh", "-c", "ip link set lo up; echo; exec sleep 600"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.process.stdout.readline()
        self.inode = os.stat(f"/proc/{self.process.pid}/ns/net").st_ino

    def drop(self, count):
        """So many datagrams to a port that nobody listens to."""
        send = f"import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\nfor _ in range({count}):\n try: s.sendto(b'', ('127.0.0.1', 9))\n except OSError: pass"
        subprocess.run(["nsenter", f"--target={self.process.pid}", "--net", sys.executable, "-c", send], check=True)

    def end(self):
        self.process.kill(), self.process.wait(), self.process.stdout.close()


def dropped(taken, inode):
    return sum(row["packets"] for row in taken["drops"] or [] if row["netns"] == inode and row["reason"] == "NO_SOCKET")


def counting(watching):
    """Waits until drops are counted."""
    for _ in range(200):
        if watching.next()["drops"] is not None:
            return
    raise Broken("drops are not counted here")


@trial("an inode of a namespace that is given again", 2)
def inherited(seconds, chance):
    rounds, again = Rounds(seconds), 0
    with Watching("-d", "0.2", "--drops", "--netns", "all") as watching:
        counting(watching)
        for _ in rounds:
            first, count = Apart(), chance.randint(100, 3000)
            watching.after(time.monotonic())
            first.drop(count)
            seen = dropped(watching.after(time.monotonic()), first.inode)
            if seen != count:
                raise Broken(f"{seen} of {count} drops were seen")
            first.end()
            watching.after(time.monotonic())
            second = [Apart() for _ in range(3)]
            same = [one for one in second if one.inode == first.inode]
            taken = watching.after(time.monotonic())
            for one in second:
                if dropped(taken, one.inode):
                    raise Broken(f"a new namespace has {dropped(taken, one.inode)} drops of a dead one")
            if same:
                again += 1
                same[0].drop(7)
                if (seen := dropped(watching.after(time.monotonic()), same[0].inode)) != 7:
                    raise Broken(f"{seen} of its own 7 drops were seen")
            for one in second:
                one.end()
    return Row("an inode of a namespace that is given again", again, "no drop of the dead one, each of its own", "0; all", again > 0)


SHORT = """
import ctypes, fcntl, os, socket, struct
libc = ctypes.CDLL(None)
# The kernel takes them down by the hundred, and until then each has an inode of its own.
for nth in range({count}):
    if os.fork() == 0:
        if libc.unshare(0x10000000 | 0x40000000) == 0:
            sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            fcntl.ioctl(sender, 0x8914, struct.pack("16sH14x", b"lo", 0x1 | 0x8))
            try:
                for _ in range(2): sender.sendto(b"", ("127.0.0.1", 9))
            except OSError: pass
        os._exit(0)
    if nth % 250 == 249:
        for _ in range(250): os.wait()
"""


@trial("2,500 short namespaces of another user beside drops", 2)
def crowded_out(seconds, chance):
    rounds, told = Rounds(seconds), 0
    with Watching("-d", "0.5", "--drops", "--netns", "all") as watching:
        counting(watching)
        for _ in rounds:
            own = Apart()
            watching.after(time.monotonic())
            own.drop(9728)
            watching.after(time.monotonic())
            subprocess.run([sys.executable, "-c", SHORT.format(count=2500)], stdin=subprocess.DEVNULL, check=True)
            taken = watching.after(time.monotonic())
            if (seen := dropped(taken, own.inode)) != 9728:
                raise Broken(f"{seen} of 9,728 drops are left, problems {taken['problems']}")
            told += any("in no row of drops" in problem["text"] for problem in taken["problems"])
            own.end()
    return Row("2,500 short namespaces of another user beside drops", rounds.count, f"its row stands; what is in no row is told in {told}", "all; all", told == rounds.count)


@trial("a memory cgroup of 32 MB", 1)
def small_cgroup(seconds, chance):
    """Version 1 or 2, wherever the memory controller is mounted."""
    rounds, own = Rounds(seconds), f"vnettop-trial-{os.getpid()}"
    v1, v2 = "/sys/fs/cgroup/memory", "/sys/fs/cgroup"
    mount, limit = (v1, "memory.limit_in_bytes") if os.path.exists(f"{v1}/memory.limit_in_bytes") else (v2, "memory.max")
    group = os.path.join(mount, own)
    try:
        os.mkdir(group)
        with open(os.path.join(group, limit), "w") as file:
            file.write(str(32 << 20))
    except OSError as error:
        return Row("a memory cgroup of 32 MB", 0, f"there is none to be had here: {error}", "", True)
    try:
        for _ in rounds:
            script = f'echo $$ > {group}/cgroup.procs; exec "$0" --json -n 6 -d 0.3 --netns self --watch {os.getpid()}'
            done = subprocess.run(["sh", "-c", script, VNETTOP], stdin=subprocess.DEVNULL, capture_output=True, timeout=30)
            if done.returncode or b"MB of memory left" not in done.stdout:
                raise Broken(f"it ended with {done.returncode}: {done.stderr[-300:]!r}")
    finally:
        os.rmdir(group)
    return Row("a memory cgroup of 32 MB", rounds.count, "goes on without BPF, and says so", "all", True)
