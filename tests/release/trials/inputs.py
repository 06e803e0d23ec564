"""What vnettop is given: recordings, answers of servers, command lines, keys."""

import collections
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time

from .ground import HERE, Broken, Row, Rounds, VNETTOP, Watching, trial, vnettop


@trial("mutated recordings", 6)
def mutated(seconds, chance):
    rounds, worst, memory = Rounds(seconds), 0.0, 0.0
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "source.jsonl")
        sender = subprocess.Popen(["iperf3", "-s", "-1"], stdout=subprocess.DEVNULL)
        time.sleep(0.2)
        client = subprocess.Popen(["iperf3", "-c", "127.0.0.1", "-t", "3", "-P", "2"], stdout=subprocess.DEVNULL)
        vnettop("--json", "-d", "0.1", "-n", "25", "--record", source)
        client.wait(), sender.kill(), sender.wait()
        whole = open(source, "rb").read()
        lines = whole.splitlines(keepends=True)
        path = os.path.join(folder, "mutated.jsonl")
        for _ in rounds:
            with open(path, "wb") as file:
                file.write(mutate(whole, lines, chance))
            begin = time.monotonic()
            face = chance.choice([["--json"], ["--print", "120x40", "--keys", "F"], ["card"]])
            arguments = ["card", path] if face == ["card"] else [*face, "--replay", path]
            process = subprocess.Popen([VNETTOP, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            said, status, usage = process.stderr.read(), *os.wait4(process.pid, 0)[1:]
            process.returncode = os.waitstatus_to_exitcode(status)
            took, memory = time.monotonic() - begin, max(memory, usage.ru_maxrss / 1024)
            worst = max(worst, took)
            if b"panicked" in said or process.returncode not in (0, 1):
                shutil.copy(path, "/tmp/vnettop-trial-recording.jsonl")
                raise Broken(f"{arguments[:3]} ended with {process.returncode}: {said[-300:]!r}; kept as /tmp/vnettop-trial-recording.jsonl")
    return Row("mutated recordings", rounds.count, f"worst {worst:.1f} s, {memory:.0f} MiB", "5 s, 256 MiB", worst < 5 and memory < 256)


def mutate(whole, lines, chance):
    way = chance.randrange(6)
    if way == 0:
        return whole[:chance.randrange(len(whole))]
    if way == 1:
        lines = lines[:]
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(lines))
            chance.choice([lambda: lines.pop(at), lambda: lines.insert(at, chance.choice(lines)), lambda: lines.__setitem__(at, chance.choice(lines))])()
        return b"".join(lines)
    if way == 2:
        numbers = list(re.finditer(rb"\d+", whole))
        at = chance.choice(numbers)
        new = chance.choice([b"0", b"-1", b"18446744073709551615", b"18446744073709551616", b"9e99", b"4294967296", str(chance.getrandbits(64)).encode()])
        return whole[:at.start()] + new + whole[at.end():]
    if way == 3:
        keys = list(re.finditer(rb'"[a-z_]+":', whole))
        at = chance.choice(keys)
        return whole[:at.start()] + chance.choice(keys).group() + whole[at.end():]
    out = bytearray(whole)
    for _ in range(chance.randint(1, 20)):
        out[chance.randrange(len(out))] = chance.randrange(256)
    return bytes(out)


LIES = [b"", b"\0", b"x" * 100_000, b"{", b"[" * 200, b"{}" * 5000, b'{"a":' * 100, b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", b"HTTP/1.1 500 No\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]",
        b'HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\n[{"Id":"\\u001b[31m","Names":["/\\u0007"]}]', b'{"id":0,"result":{},"error":null}',
        b'{"method":"echo","params":[],"id":"echo"}' * 3000, b'{"id":1,"result":{"Bridge":{"x":{"new":{"name":"\\u001b[2J"}}}},"error":null}', b"\xff\xfe" * 1000]


@trial("lying OVSDB and Docker servers", 4)
def lying(seconds, chance):
    rounds, first, late = Rounds(seconds), 0.0, 0
    with tempfile.TemporaryDirectory() as folder:
        for nth in rounds:
            path = os.path.join(folder, f"s{nth}.sock")
            server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            server.bind(path), server.listen(8)
            lie, manner = LIES[nth % len(LIES)], chance.randrange(5)
            threading.Thread(target=serve, args=(server, lie, manner), daemon=True).start()
            option = chance.choice(["--ovs-socket", "--docker-socket"])
            with Watching("-d", "0.1", "--netns", "self", option, path) as watching:
                watching.next()
                first = max(first, time.monotonic() - watching.began)
                for _ in range(8):
                    taken = watching.next()
                late = max(late, taken["own"]["late_ticks"])
            server.close()
    return Row("lying OVSDB and Docker servers", rounds.count, f"first object {first:.2f} s, {late} late ticks at most", "1 s, 3", first < 1 and late <= 3)


def serve(server, lie, manner):
    """0: at once; 1: byte by byte; 2: again and again; 3: says nothing; 4: says it and hangs up."""
    try:
        while True:
            peer, _ = server.accept()
            threading.Thread(target=tell, args=(peer, lie, manner), daemon=True).start()
    except OSError:
        pass


def tell(peer, lie, manner):
    try:
        if manner == 1:
            for byte in lie[:500]:
                peer.send(bytes([byte]))
                time.sleep(0.002)
        elif manner == 2:
            while True:
                peer.sendall(lie or b" ")
        elif manner != 3:
            peer.sendall(lie)
        if manner != 4:
            time.sleep(3)
        peer.close()
    except OSError:
        pass


WORDS = [words.split(" ") for words in (
    "--json", "--print 80x24", "--print 1x1", "--print 65535x65535", "--print x", "-d 0.05", "-d 0", "-d nan", "-d -1", "-d 1e99", "-n 1", "-n 2", "-n 18446744073709551615",
    "--watch 1", "--watch x", "--watch ", "--netns self", "--netns all", "--netns no-such", "--netns \x1b[31m", "--keys q", "--keys <tick>F", "--keys <", "--replay /dev/null",
    "--replay /proc/self/mem", "--replay .", "--record /dev/full", "--record /dev/null", "--record .", "--speed max", "--speed 0", "--readonly", "--bytes", "--ascii", "--drops",
    "--exact-softirqs", "--hop-cores", "--latency", "--no-realtime", "--restore-on-exit", "--no-color", "--docker-socket /dev/zero", "--ovs-socket /dev/zero", "--iperf3-json /dev/zero",
    "--iperf3-json /proc/self/mem", "card", "undo", "run", "run -- true", "--format json", "--help", "--version", "é", "--", "\x1b[31m")]


@trial("strange command lines", 4)
def command_lines(seconds, chance):
    rounds, codes = Rounds(seconds), collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for _ in rounds:
            arguments = [word for words in chance.choices(WORDS, k=chance.randint(1, 4)) for word in words]
            if "-n" not in arguments and "run" not in arguments:
                arguments = ["-n", "1", *arguments]
            if "-d" not in arguments:
                arguments = ["-d", "0.05", *arguments]
            try:
                done = subprocess.run([VNETTOP, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=5, cwd=folder)
            except subprocess.TimeoutExpired:
                codes["asked to go on"] += 1
                continue
            if b"panicked" in done.stderr or done.returncode not in ((0, 1, 2, 126, 127) if "run" in arguments else (0, 1, 2)):
                raise Broken(f"{arguments!r} ended with {done.returncode}: {done.stderr[-300:]!r}")
            codes[done.returncode] += 1
    told = ", ".join(f"{count}: {code}" for code, count in sorted(codes.items(), key=str))
    return Row("strange command lines", rounds.count, told, "no panic; 0, 1 or 2", True)


KEYS = list("hjklpPUcFvdxnNa/sStiu.+-mq?0123456789,") + [" ", "<tab>", "<backtab>", "<enter>", "<esc>", "<up>", "<down>", "<left>", "<right>", "<pgup>", "<pgdn>", "<home>",
                                                        "<end>", "<bs>", "<c-u>", "<c-z>", "<tick>"]


@trial("strange key strings", 4)
def key_strings(seconds, chance):
    rounds = Rounds(seconds)
    recording = os.path.join(HERE, "../../../assets/kunpeng.vnettop.zst")
    for _ in rounds:
        keys = "".join(chance.choices(KEYS, k=chance.randint(1, 60)))
        size = f"{chance.randint(1, 250)}x{chance.randint(1, 80)}"
        face = ["--replay", recording] if chance.random() < 0.5 else ["-d", "0.02", "--readonly", "--netns", "self"]
        vnettop(*face, "--print", size, "--keys", keys, code=(0, 2))
    return Row("strange key strings", rounds.count, "every one ends with a frame", "no panic", True)
