"""What every trial stands on."""

import collections
import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import tempfile
import termios
import time

VNETTOP = os.environ["VNETTOP"]
HERE = os.path.dirname(os.path.abspath(__file__))
TRIALS = []
Row = collections.namedtuple("Row", "what rounds figure bound held")


def trial(name, share):
    def note(function):
        TRIALS.append((name, share, function))
        return function
    return note


class Broken(Exception):
    """What does not hold, in a sentence."""


def ip(*words, batch=None):
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    done = subprocess.run([b"ip", *words], input=batch, capture_output=True)
    return done.returncode == 0


def batch(lines):
    return ip("-force", "-batch", "-", batch="\n".join(lines).encode() + b"\n")


def links(names):
    """Makes links that go all at once (`unmake`): one after the other takes minutes for thousands."""
    batch([f"link add {name} numtxqueues 1 numrxqueues 1 group 77 type {KIND}" for name in names])


def unmake():
    ip("link", "del", "group", "77")


def vnettop(*arguments, seconds=30, code=(0,), env=None, prefix=(), keep_out=True):
    """Runs one to its end; fails where it panics, hangs, is killed or ends with another code."""
    command = [*prefix, VNETTOP, *arguments]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE if keep_out else subprocess.DEVNULL, stderr=subprocess.PIPE,
                              timeout=seconds, env={**os.environ, **(env or {})})
    except subprocess.TimeoutExpired:
        raise Broken(f"no end within {seconds} s: {command!r}")
    if prefix and b"error while loading shared libraries" in done.stderr:
        return done
    if b"panicked" in done.stderr or done.returncode < 0 or code and done.returncode not in code:
        raise Broken(f"{command!r} ended with {done.returncode}: {done.stderr[-400:]!r}")
    return done


# A kind of link that this kernel has and that needs nothing else.
KIND = next((kind for kind in ("dummy", "ifb") if ip("link", "add", "kind0", "type", kind) and ip("link", "del", "kind0")), "bridge")


class Watching:
    """A vnettop whose objects are read."""

    def __init__(self, *arguments, **more):
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen([VNETTOP, "--json", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.errors, **more)
        self.began = time.monotonic()

    def __enter__(self):
        return self

    def next(self, seconds=10):
        if not select.select([self.process.stdout], [], [], seconds)[0] and not self.process.stdout.peek(1):
            raise Broken(f"no object within {seconds} s")
        line = self.process.stdout.readline()
        if not line:
            self.errors.seek(0)
            raise Broken(f"it ended with {self.process.wait()}: {self.errors.read()[-400:]!r}")
        return json.loads(line)

    def after(self, instant):
        """The first object whose sample was read after an instant of the clock of monotonic time and one interval."""
        while True:
            taken = self.next()
            if time.monotonic() - (taken["own"].get("behind_s") or 0) - taken["elapsed_s"] > instant:
                return taken

    def rss(self):
        return rss(self.process.pid)

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def rss(pid):
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) / 1024


class Terminal:
    """A vnettop on a terminal of its own, which is read by a thread."""

    def __init__(self, *arguments, rows=60, columns=200):
        self.began = time.monotonic()
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="xterm-256color", LC_ALL="C.UTF-8")
            os.execvp(VNETTOP, [VNETTOP, *arguments])
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def __enter__(self):
        return self

    def until(self, text, seconds=10):
        seen, end = b"", time.monotonic() + seconds
        while text not in seen:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.master], [], [], left)[0]:
                raise Broken(f"no {text!r} on the screen within {seconds} s")
            seen = seen[-100:] + os.read(self.master, 1 << 16)
        return time.monotonic()

    def drain(self, seconds):
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and select.select([self.master], [], [], left)[0]:
            os.read(self.master, 1 << 16)

    def press(self, keys):
        os.write(self.master, keys)
        return time.monotonic()

    def __exit__(self, *_):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.master)


class Rounds:
    """Goes on until the time is over, and at least once."""

    def __init__(self, seconds):
        self.end, self.count = time.monotonic() + seconds, 0

    def __iter__(self):
        while self.count == 0 or time.monotonic() < self.end:
            self.count += 1
            yield self.count


def ended(process, seconds=5):
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise Broken(f"it goes on {seconds} s after its signal")


def full_pipe():
    reader, writer = os.pipe()
    again = os.open(f"/proc/self/fd/{writer}", os.O_WRONLY | os.O_NONBLOCK)
    try:
        while os.write(again, b"\n" * 4096):
            pass
    except BlockingIOError:
        os.close(again)
    return reader, writer
