"""Sends to a child of its own at a steady 40 MB/s times what its plan says of where both run: `same` core, `near` (within four
cores), `far`, or `wide` (one of them may use several cores). The plan is such as `same=0.5,near=1.2`; what it does not name is 1.
The child works for what it takes, so that both are busy threads. Ends after so many seconds."""
import os, socket, sys, time

plan = {word: float(rate) for word, rate in (part.split("=") for part in sys.argv[1].split(",") if part)}
end = time.monotonic() + float(sys.argv[2])
server = socket.create_server(("127.0.0.1", 0))
child = os.fork()


def work(since, seconds):
    while time.monotonic() < since + seconds:
        pass


if child == 0:
    open("/proc/self/comm", "w").write("taker")
    connection, _ = server.accept()
    taken = bytearray(1 << 20)
    while connection.recv_into(taken):
        work(time.monotonic(), 0.0003)
    os._exit(0)

open("/proc/self/comm", "w").write("placed")
out = socket.create_connection(server.getsockname())
server.close()
piece = bytes(200_000)


def where():
    own, other = os.sched_getaffinity(0), os.sched_getaffinity(child)
    if len(own) > 1 or len(other) > 1:
        return "wide"
    one, two = own.pop(), other.pop()
    return "same" if one == two else "near" if one // 4 == two // 4 else "far"


due = time.monotonic()
while (now := time.monotonic()) < end:
    out.sendall(piece[: round(80_000 * plan.get(where(), 1))])
    work(now, 0.0004)
    due += 0.002
    ahead = due - time.monotonic()
    if ahead > 0:
        time.sleep(ahead)
    elif ahead < -0.05:
        due -= ahead
out.close()
os.waitpid(child, 0)
