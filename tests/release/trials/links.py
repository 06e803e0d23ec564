"""Links and namespaces: storms, crowds, names, and those that nobody may keep."""

import json
import os
import re
import signal
import subprocess
import time

from .ground import Broken, Row, Rounds, Terminal, VNETTOP, KIND, Watching, ended, full_pipe, ip, links, rss, trial, unmake, vnettop


@trial("storms of 500 links", 6)
def storms(seconds, chance):
    rounds, stale = Rounds(seconds), 0
    with Watching("-d", "0.1", "--netns", "self") as watching:
        watching.next()
        begun = None
        for nth in rounds:
            links(f"s{nth % 7}x{at}" for at in range(500))
            unmake()
            names = [link["name"] for link in watching.after(time.monotonic())["links"]]
            stale += sum("x" in name for name in names)
            begun = begun or watching.rss()
        grown = watching.rss() - begun
    return Row("storms of 500 links", rounds.count, f"{stale} stale after a tick, grew by {grown:.1f} MiB", "0, 4 MiB", stale == 0 and grown < 4)


@trial("10,001 links", 4)
def many_links(seconds, chance):
    links(f"m{at}" for at in range(10_000))
    rounds, first, keys, memory = Rounds(seconds), [], [], []
    try:
        for _ in rounds:
            with Terminal("--netns", "self") as terminal:
                first.append(terminal.until(b"Links") - terminal.began)
                terminal.drain(1.2)
                for _ in range(5):
                    pressed = terminal.press(b"?")
                    keys.append(terminal.until(b"Ctrl-C") - pressed)
                    terminal.press(b"q")
                    terminal.drain(0.3)
                memory.append(rss(terminal.pid))
    finally:
        unmake()
    key = sorted(keys)[len(keys) // 2]
    figure = f"first frame {max(first):.2f} s, key {key * 1000:.1f} ms (median), {max(memory):.0f} MiB"
    return Row("10,001 links", rounds.count, figure, "0.25 s, 20 ms, 64 MiB", max(first) < 0.25 and key < 0.02 and max(memory) < 64)


@trial("namespaces made and deleted", 5)
def namespaces(seconds, chance):
    rounds, made, slowest = Rounds(seconds), 0, 0.0
    with Watching("-d", "0.1", "--netns", "all") as watching:
        for nth in rounds:
            for at in range(25):
                ip("netns", "add", f"n{at}")
                ip("link", "add", f"v{at}", "type", "veth", "peer", "name", "p", "netns", f"n{at}")
            watching.after(time.monotonic())
            for at in range(25):
                ip("netns", "del", f"n{at}")
            begin = time.monotonic()
            while any(os.path.exists(f"/sys/class/net/v{at}") or ip("link", "show", f"v{at}") for at in range(25)):
                if time.monotonic() - begin > 5:
                    raise Broken("a deleted namespace is there 5 s later")
            slowest, made = max(slowest, time.monotonic() - begin), made + 25
    return Row("namespaces made and deleted", made, f"gone after {slowest:.2f} s at most", "1 s", slowest < 1)


@trial("namespaces deleted while it is stopped, or nobody reads", 3)
def stopped(seconds, chance):
    rounds, made, slowest = Rounds(seconds), 0, 0.0
    for nth in rounds:
        for at in range(50):
            ip("netns", "add", f"n{at}")
            ip("link", "add", f"v{at}", "type", "veth", "peer", "name", "p", "netns", f"n{at}")
        reader, writer = full_pipe()
        process = subprocess.Popen([VNETTOP, "--json", "-d", "0.05", "--netns", "all"], stdin=subprocess.DEVNULL, stdout=writer, stderr=subprocess.DEVNULL,
                                   process_group=0)  # the kernel stops nobody of a group that has no shell above it
        holds = lambda: sum(os.readlink(f"/proc/{process.pid}/fd/{fd}").startswith("net:[") for fd in os.listdir(f"/proc/{process.pid}/fd"))
        end = time.monotonic() + 10
        while not held(holds) and time.monotonic() < end:
            time.sleep(0.01)
        if nth % 2:
            process.send_signal(signal.SIGTSTP)
            os.waitpid(process.pid, os.WUNTRACED)
        for at in range(50):
            ip("netns", "del", f"n{at}")
        begin = time.monotonic()
        while any(ip("link", "show", f"v{at}") for at in range(50)):
            if time.monotonic() - begin > 5:
                process.kill()
                raise Broken("a deleted namespace is there 5 s later")
        slowest, made = max(slowest, time.monotonic() - begin), made + 50
        process.send_signal(signal.SIGCONT)
        process.send_signal(signal.SIGTERM)
        ended(process)
        os.close(reader), os.close(writer)
    return Row("namespaces deleted while it is stopped, or nobody reads", made, f"gone after {slowest:.2f} s at most, one SIGTERM ends it", "1 s", slowest < 1)


def held(holds):
    try:
        return holds() >= 50
    except OSError:
        return False


@trial("hostile names", 4)
def hostile(seconds, chance):
    rounds, names = Rounds(seconds), 0
    allowed = [byte for byte in range(1, 256) if byte not in b"/: \t\n\v\f\r"]
    for _ in rounds:
        made = []
        for at in range(20):
            name = bytes(chance.choices(allowed, k=chance.randint(1, 15)))
            if name not in (b".", b"..") and not name.startswith(b"-") and ip("link", "add", name, "type", KIND):
                made.append(name)
                ip("link", "set", "dev", name, "alias", bytes(chance.choices(range(1, 256), k=chance.randint(1, 200))))
        out = vnettop("--json", "-d", "0.05", "-n", "2", "--netns", "self").stdout
        shown = vnettop("-d", "0.05", "--print", "120x40", "--netns", "self", "--keys", "i").stdout.decode()
        for name in made:
            ip("link", "del", "dev", name)
        told = json.loads(out.splitlines()[-1])["links"]
        if len(told) < len(made) or any(re.search(r"[\x00-\x1f\x7f-\x9f]", link["name"] + (link["alias"] or "")) for link in told):
            raise Broken(f"a name that steers, or a link left out: {made!r}")
        if re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", shown):
            raise Broken(f"a name steers the terminal: {made!r}")
        names += len(made)
    return Row("hostile names", names, "none steers a terminal, none is left out", "", True)
