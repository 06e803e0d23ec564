"""Killed during pins, refused by the kernel, without room, full cores; and what passes through run."""

import collections
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from .ground import Broken, Row, Rounds, VNETTOP, Watching, ended, full_pipe, ip, links, rss, trial, unmake, vnettop


BUSY = """
import threading
def busy():
    while True: pass
threading.Thread(target=busy, daemon=True).start()
busy()"""


@trial("kill -9 during a pin, then undo", 5)
def killed(seconds, chance):
    cores = os.sched_getaffinity(0)
    if len(cores) < 2:
        return Row("kill -9 during a pin, then undo", 0, "one core: nothing can be pinned", "", True)
    rounds, pinned = Rounds(seconds), 0
    with tempfile.TemporaryDirectory() as state:
        os.chmod(state, 0o700)
        env = {"XDG_STATE_HOME": state}
        busy = subprocess.Popen([sys.executable, "-c", BUSY])
        try:
            # A thread that begins later takes over the mask of the one that makes it, pinned or not.
            while len(os.listdir(f"/proc/{busy.pid}/task")) < 2:
                time.sleep(0.01)
            masks = lambda: [os.sched_getaffinity(int(tid)) for tid in os.listdir(f"/proc/{busy.pid}/task")]
            for nth in rounds:
                core = chance.choice(sorted(cores))
                keys = "<tab><tab>" + "".join(f"a{core}<enter>j" for _ in range(2)) + "<tick>" * 50
                process = subprocess.Popen([VNETTOP, "-d", "0.05", "--watch", str(busy.pid), "--print", "120x40", "--keys", keys],
                                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **env})
                end = time.monotonic() + chance.choice([0.5, 1.0]) * chance.random()
                while time.monotonic() < end and all(mask == cores for mask in masks()):
                    pass
                time.sleep(chance.choice([0, 0, 0.0005, 0.002]))
                process.kill()
                process.wait()
                pinned += any(mask != cores for mask in masks())
                vnettop("undo", env=env)
                if any(mask != cores for mask in masks()):
                    raise Broken(f"round {nth}: {masks()} after undo")
        finally:
            busy.kill()
            busy.wait()
    return Row("kill -9 during a pin, then undo", rounds.count, f"{pinned} were pinned when it was killed, all restored", "all", True)


CALLS = {"openat": "EMFILE ENOENT EACCES EIO", "read": "EIO EINTR EAGAIN", "pread64": "EIO ESRCH", "recvfrom": "ENOBUFS ENOMEM EINTR", "recvmsg": "ENOBUFS EINTR",
         "recvmmsg": "ENOBUFS EINTR", "sendto": "ENOBUFS EPERM", "sendmsg": "ENOBUFS", "socket": "EMFILE EPERM EAFNOSUPPORT", "poll": "EINTR ENOMEM", "ppoll": "EINTR",
         "timerfd_create": "EMFILE", "timerfd_settime": "EINVAL", "eventfd2": "EMFILE", "epoll_create1": "EMFILE", "epoll_ctl": "ENOSPC", "getdents64": "EIO ENOENT",
         "readlinkat": "EACCES", "setns": "EPERM", "bpf": "EPERM ENOMEM", "pidfd_open": "EMFILE ENOSYS", "clone3": "EAGAIN ENOSYS", "write": "EAGAIN ENOSPC EIO",
         "bind": "EADDRINUSE", "setsockopt": "EPERM", "sched_setscheduler": "EPERM", "sched_getaffinity": "EPERM", "mmap": "ENOMEM", "statx": "EACCES"}


@trial("failing system calls", 6)
def failing(seconds, chance):
    rounds, codes = Rounds(seconds), collections.Counter()
    if not shutil.which("strace"):
        raise Broken("strace is not installed (Debian package strace)")
    for _ in rounds:
        call = chance.choice(sorted(CALLS))
        error = chance.choice(CALLS[call].split())
        when = chance.choice([str(chance.randint(1, 60)), f"{chance.randint(5, 60)}+", f"{chance.randint(1, 9)}+{chance.randint(2, 9)}"])
        # Without memory a program may be ended by its allocator; without EINTR's end a wait is for ever.
        if call == "mmap" or error in ("EINTR", "EAGAIN"):
            when = when.rstrip("+").split("+")[0]
        prefix = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:error={error}:when={when}"]
        face = chance.choice([["--json", "-n", "4"], ["--print", "80x24", "--keys", "<tick>"]])
        try:
            # A thread that cannot be had at all, or memory, may end it by a signal: never by a panic, never by hanging.
            done = vnettop(*face, "-d", "0.05", "--netns", "all", prefix=prefix, code=None if call in ("mmap", "clone3", "write") else (0, 1, 2))
        except Broken as broken:
            if call in ("mmap", "clone3", "write") and "no end" not in str(broken) and "panicked" not in str(broken):
                continue
            raise Broken(f"{call} {error} when={when}: {broken}")
        if done.returncode == 1 and b"vnettop: " not in done.stderr and call != "write":
            raise Broken(f"{call} {error} when={when}: 1 without a sentence: {done.stderr[:200]!r}")
        codes[done.returncode] += 1
    told = ", ".join(f"{count} exited with {code}" for code, count in sorted(codes.items()))
    return Row("failing system calls", rounds.count, told, "no panic, none hangs", True)


@trial("a reader that stands still, 5,000 links at 10 Hz", 4)
def stalled(seconds, chance):
    links(f"q{at}" for at in range(5000))
    rounds, worst = Rounds(max(0, seconds - 60)), 0.0
    try:
        for _ in rounds:
            reader, writer = full_pipe()
            process = subprocess.Popen([VNETTOP, "--json", "-d", "0.1", "--netns", "self"], stdin=subprocess.DEVNULL, stdout=writer, stderr=subprocess.DEVNULL)
            time.sleep(min(60, max(seconds, 15)))
            worst = max(worst, rss(process.pid))
            process.send_signal(signal.SIGTERM)
            ended(process)
            os.close(reader), os.close(writer)
    finally:
        unmake()
    return Row("a reader that stands still, 5,000 links at 10 Hz", rounds.count, f"{worst:.0f} MiB, one SIGTERM ends it", "96 MiB", worst < 96)


@trial("limits of descriptors and memory", 3)
def limits(seconds, chance):
    rounds, codes = Rounds(seconds), collections.Counter()
    for at in range(30):
        ip("netns", "add", f"l{at}")
    try:
        for _ in rounds:
            limit = chance.choice([f"-n {chance.choice([8, 16, 24, 32, 48, 64, 96, 128, 256])}", f"-v {chance.randint(60, 400) * 1024}"])
            face = chance.choice(["--json -n 4", "--print 80x24", "run -- true"])
            script = f'ulimit {limit}; exec "$0" {face} -d 0.05'
            command = ["sh", "-c", script, VNETTOP]
            try:
                done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=20)
            except subprocess.TimeoutExpired:
                raise Broken(f"{script}: no end within 20 s")
            out_of_memory = limit.startswith("-v") and (b"allocation" in done.stderr or b"cannot" in done.stderr or done.returncode in (-6, 127, 134))
            if b"panicked" in done.stderr and not out_of_memory or done.returncode not in (0, 1, 126) and not out_of_memory:
                raise Broken(f"{script} ended with {done.returncode}: {done.stderr[-300:]!r}")
            codes[done.returncode] += 1
    finally:
        for at in range(30):
            ip("netns", "del", f"l{at}")
    told = ", ".join(f"{count} exited with {code}" for code, count in sorted(codes.items()))
    return Row("limits of descriptors and memory", rounds.count, told, "no panic, none hangs", True)


@trial("process numbers used again", 3)
def reused(seconds, chance):
    rounds, again = Rounds(seconds), 0
    spin = ["sh", "-c", "while :; do :; done"]
    with Watching("--watch", "sh", "-d", "0.1", "--netns", "self") as watching:
        watching.next()
        for nth in rounds:
            number = 20000 + nth % 1000
            for _ in range(2):
                with open("/proc/sys/kernel/ns_last_pid", "w") as last:
                    last.write(str(number - 1))
                process = subprocess.Popen(spin)
                again += process.pid == number
                begin = time.monotonic()
                seen = [watching.after(begin) for _ in range(3)]
                process.kill(), process.wait()
                for thread in (thread for taken in seen for thread in taken["threads"] if thread["tid"] == process.pid):
                    cpu, moves = thread["cpu"], thread["moves"]
                    if cpu is not None and not 0 <= cpu < 1.2 or moves is not None and not 0 <= moves < 1000:
                        raise Broken(f"{process.pid} has what another one had: cpu {cpu}, {moves} moves")
    return Row("process numbers used again", again, "no figure of the one before", "none", again > 0)


@trial("exit codes and signals through run", 3)
def passed_on(seconds, chance):
    rounds, passed = Rounds(seconds), 0
    for _ in rounds:
        code = chance.randrange(126)
        vnettop("run", "-d", "0.05", "--", "sh", "-c", f"exit {code}", code=(code,))
        number = chance.choice([1, 2, 3, 6, 9, 10, 11, 12, 13, 14, 15])
        vnettop("run", "-d", "0.05", "--", "sh", "-c", f"kill -{number} $$", code=(128 + number,))
        process = subprocess.Popen([VNETTOP, "run", "-d", "0.05", "--", "sh", "-c", "trap 'exit 42' TERM; echo ready; while :; do sleep 0.01; done"],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        if ended(process) != 42:
            raise Broken(f"SIGTERM was not the command's: {process.returncode}")
        passed += 3
    return Row("exit codes and signals through run", passed, "each as the command's own", "all", True)


@trial("ten vnettops at once", 3)
def ten(seconds, chance):
    rounds, late = Rounds(seconds), 0
    for _ in rounds:
        started = [subprocess.Popen([VNETTOP, "--json", "-d", "0.2", "-n", "10"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(10)]
        for process in started:
            out, said = process.communicate(timeout=60)
            objects = [json.loads(line) for line in out.splitlines()]
            if process.returncode or len(objects) != 10:
                raise Broken(f"one ended with {process.returncode} after {len(objects)} objects: {said[-300:]!r}")
            late = max(late, objects[-1]["own"]["late_ticks"])
    return Row("ten vnettops at once", rounds.count * 10, f"{late} late ticks of 10 at most", "5", late <= 5)


@trial("every core full, 10 Hz", 3)
def saturated(seconds, chance):
    rounds, late, ticks = Rounds(max(0, seconds - 12)), 0, 0
    for _ in rounds:
        spins = [subprocess.Popen(["taskset", "-c", str(core), "sh", "-c", "while :; do :; done"]) for core in os.sched_getaffinity(0) for _ in range(2)]
        try:
            last = json.loads(vnettop("--json", "-d", "0.1", "-n", "120", "--netns", "self").stdout.splitlines()[-1])
        finally:
            for spin in spins:
                spin.kill(), spin.wait()
        late, ticks = late + last["own"]["late_ticks"], ticks + 120
    return Row("every core full, 10 Hz", ticks, f"{late} late", "1 %", late <= ticks / 100)
