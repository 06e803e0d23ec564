"""What the tests of latency run. Told to end (SIGTERM), those that measure print a list of [CLOCK_MONOTONIC, how long], ns.

read ADDRESS PORT [PRIORITY BUSY_MS PERIOD_MS]   how long each datagram waited, from SO_TIMESTAMPNS to the return of recvmsg;
                               with a priority as SCHED_FIFO, and it works so long after a datagram every period
read_few ADDRESS PORT          the same with room for few
arrive ADDRESS PORT            how long each was on the way, from its sender to SO_TIMESTAMPNS
send ADDRESS PORT RATE         numbered datagrams of 64 bytes with the time, so many a second
answer ADDRESS PORT            sends back over TCP whatever it is sent
ask ADDRESS PORT PAUSE_MS      how long each 64 bytes take there and back; it rests between two
hog BUSY_MS PERIOD_MS [PRIORITY]   keeps its core; with a priority as SCHED_FIFO
stop PID STOPPED_MS PERIOD_MS  lets a process stand still; it is in time itself, as SCHED_FIFO"""
import json, os, signal, socket, struct, sys, time

SO_TIMESTAMPNS = 35
what, *told = sys.argv[1:]
measured = []


def end(*_):
    json.dump(measured, sys.stdout)
    sys.stdout.flush()
    os._exit(0)


def ready():
    print("ready", flush=True)


def at(address, port, kind):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return socket.socket(family, kind), (address, int(port))


def every(period_s):
    """The beginnings of the periods, as far as they are kept."""
    begins = time.monotonic()
    while True:
        yield begins
        begins = max(begins + period_s, time.monotonic() - period_s)
        time.sleep(max(0, begins - time.monotonic()))


def datagrams(address, port, room=None):
    """When each arrived (CLOCK_REALTIME, ns), and what it says."""
    wire, here = at(address, port, socket.SOCK_DGRAM)
    if room:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
    wire.bind(here)
    wire.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    ready()
    while True:
        text, said, _, _ = wire.recvmsg(2048, 256)
        for _, kind, stamp in said:
            if kind == SO_TIMESTAMPNS:
                seconds, ns = struct.unpack("qq", stamp[:16])
                yield seconds * 10**9 + ns, text


def read(address, port, priority=None, busy_ms=0, period_ms=0):
    if priority:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(int(priority)))
    works_next = 0
    for arrived, _ in datagrams(address, port):
        now, now_monotonic = time.time_ns(), time.monotonic()
        measured.append([time.monotonic_ns(), now - arrived])
        if priority and now_monotonic >= works_next:
            works_next = now_monotonic + float(period_ms) / 1e3
            while time.monotonic() < now_monotonic + float(busy_ms) / 1e3:
                pass


def read_few(address, port):
    for arrived, _ in datagrams(address, port, 8192):
        measured.append([time.monotonic_ns(), time.time_ns() - arrived])


def arrive(address, port):
    for arrived, text in datagrams(address, port):
        measured.append([time.monotonic_ns(), arrived - struct.unpack("qq", text[:16])[1]])


def send(address, port, rate):
    wire, there = at(address, port, socket.SOCK_DGRAM)
    wire.connect(there)
    ready()
    for number, _ in enumerate(every(1 / float(rate))):
        try:
            wire.send(struct.pack("qq", number, time.time_ns()) + bytes(48))
        except ConnectionRefusedError:  # the reader has ended
            break


def answer(address, port):
    wire, here = at(address, port, socket.SOCK_STREAM)
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    wire.bind(here)
    wire.listen()
    ready()
    asked, _ = wire.accept()
    asked.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while said := asked.recv(4096):
        asked.send(said)


def ask(address, port, pause_ms):
    wire, there = at(address, port, socket.SOCK_STREAM)
    wire.connect(there)
    wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    ready()
    for _ in every(float(pause_ms) / 1e3):
        begins = time.monotonic_ns()
        wire.send(bytes(64))
        wire.recv(4096)
        now = time.monotonic_ns()
        measured.append([now, now - begins])


def hog(busy_ms, period_ms, priority=None):
    with open("/proc/self/comm", "w") as comm:
        comm.write("hog")
    if priority:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(int(priority)))
    ready()
    for begins in every(float(period_ms) / 1e3):
        while time.monotonic() < begins + float(busy_ms) / 1e3:
            pass


def stop(pid, stopped_ms, period_ms):
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(60))
    ready()
    for _ in every(float(period_ms) / 1e3):
        os.kill(int(pid), signal.SIGSTOP)
        time.sleep(float(stopped_ms) / 1e3)
        os.kill(int(pid), signal.SIGCONT)


signal.signal(signal.SIGTERM, end)
{"read": read, "read_few": read_few, "arrive": arrive, "send": send, "answer": answer, "ask": ask, "hog": hog, "stop": stop}[what](*told)
