"""What servers, agents, clients and file names may do to it."""

import http.server
import json
import os
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time

from .attacks import LIAR, wait
from .ground import Broken, HERE, Row, Rounds, Terminal, VNETTOP, links, trial, unmake, vnettop

PORT = 9782
HUNDRED = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 100


def scrape():
    begin = time.monotonic()
    with socket.create_connection(("127.0.0.1", PORT), 10) as one:
        one.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answer = b"".join(iter(lambda: one.recv(1 << 16), b""))
    if not answer.startswith(b"HTTP/1.1 200") or b"vnettop_links " not in answer:
        raise Broken(f"a scrape was answered {answer[:200]!r}")
    return time.monotonic() - begin


def listens():
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", PORT)) == 0


@trial("scrapes beside 280 clients that read nothing", 2)
def unread(seconds, chance):
    links(f"many{nth}" for nth in range(100))
    rounds, slowest, scrapes = Rounds(seconds), 0.0, 0
    for _ in rounds:
        exporter = subprocess.Popen([VNETTOP, "export", "--netns", "self", "--web.listen-address", f"127.0.0.1:{PORT}"],
                                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        held = []
        try:
            wait(listens, "nobody listens")
            scrape()
            for _ in range(280):
                held.append(socket.create_connection(("127.0.0.1", PORT), 10))
                held[-1].setblocking(False)
                try:
                    held[-1].send(HUNDRED)
                except OSError:  # Whoever has given way to others already is refused.
                    pass
            # While all of them wait for answers, and after that.
            for _ in range(23):
                slowest, scrapes = max(slowest, scrape()), scrapes + 1
        finally:
            for one in held:
                one.close()
            exporter.kill(), exporter.wait()
    unmake()
    figure = f"{scrapes} of {scrapes} answered, the slowest after {slowest:.2f} s"
    return Row("scrapes beside 280 clients that read nothing", rounds.count, figure, "all, 3 s", slowest < 3)


@trial("an agent that tells pins of ever new threads", 2)
def pinning(seconds, chance):
    most = 0.0
    with tempfile.TemporaryDirectory() as folder:
        liar = os.path.join(folder, "liar")
        with open(liar, "w") as file:
            file.write(LIAR.format(python=sys.executable))
        os.chmod(liar, stat.S_IRWXU)
        # The third liar of the four.
        with Terminal("--ssh-command", liar, "--host", "h3") as terminal:
            end = time.monotonic() + max(seconds, 20)
            while time.monotonic() < end:
                terminal.drain(0.5)
                with open(f"/proc/{terminal.pid}/status") as status:
                    resident = next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024
                most = max(most, resident)
    return Row("an agent that tells pins of ever new threads", 1, f"{most:.0f} MiB at most", "20 MiB", most < 20)


class Prometheus:
    """One that knows a single host, of this name."""

    def __init__(self, name):
        answer = json.dumps({"status": "success", "data": {"resultType": "vector", "result": [{"metric": {"instance": name}, "value": [0, "1"]}]}}).encode()

        class Answers(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            do_POST = do_GET

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def end(self):
        self.server.shutdown(), self.server.server_close()


NAMES = ["$(touch {})", "x;touch {}", "`touch {}`", "-oProxyCommand=touch {}", "x\ntouch {}", "x|touch {}", "a b", "x&&touch {}", "'x", "\x1b[31mx", "x>{}"]


@trial("names of hosts that Prometheus tells", 1)
def labels(seconds, chance):
    rounds, asked = Rounds(seconds), 0
    with tempfile.TemporaryDirectory() as folder:
        called, before = os.path.join(folder, "called"), os.environ["PATH"]
        ssh = os.path.join(folder, "ssh")
        with open(ssh, "w") as file:
            file.write(f'#!/bin/sh\nprintf "%s\\n" "$@" > {called}\n')
        os.chmod(ssh, stat.S_IRWXU)
        os.environ["PATH"] = f"{folder}:{before}"
        try:
            for nth in rounds:
                for name in ["kp1:9782", *chance.sample(NAMES, 4)]:
                    prometheus = Prometheus(name.format(called))
                    with Terminal("fleet", "--prometheus", prometheus.url) as terminal:
                        terminal.until(b"over ssh", 10)
                        terminal.press(b"\n")
                        if name == "kp1:9782":
                            wait(lambda: os.path.exists(called) and "kp1" in open(called).read(), "a good name is not called")
                            os.unlink(called)
                        else:
                            terminal.until(b"vnettop: ", 10)
                            if os.path.exists(called):
                                raise Broken(f"{name!r} went on to ssh, or was run: {open(called).read()!r}")
                    prometheus.end()
                    asked += 1
        finally:
            os.environ["PATH"] = before
    return Row("names of hosts that Prometheus tells", asked, "the good ones are called, no other one", "all", True)


@trial("a recording whose name steers a terminal", 1)
def file_names(seconds, chance):
    rounds = Rounds(seconds)
    with open(os.path.join(HERE, "../../../assets/kunpeng.vnettop.zst"), "rb") as file:
        recording = file.read()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a\x1b]0;owned\x07\x1b[31m<script>x`y.vnettop.zst")
        with open(path, "wb") as file:
            file.write(recording)
        for _ in rounds:
            for kind in ["html", "markdown", "json"]:
                text = vnettop("report", path, "-o", "-", "--format", kind, seconds=60).stdout
                if b"\x1b" in text or b"\x07" in text or kind == "html" and b"<script>x" in text:
                    raise Broken(f"the name is in the {kind} as it is")
            for words in [["card", path], ["--replay", path, "--print", "120x40"]]:
                done = vnettop(*words, code=(0, 1, 2), seconds=60)
                if b"\x1b" in done.stdout + done.stderr:
                    raise Broken(f"{words[0]} prints the name as it is")
    return Row("a recording whose name steers a terminal", rounds.count, "only text, in reports, cards and frames", "all", True)
