"""Sends at a steady 40 MB/s to the port given, but at half of that for 100 ms after each move it notices (`moves`), or
in stretches of 100 ms that have nothing to do with moves (`dice`). It writes what it sent, and when, to the file given."""
import ctypes, random, socket, sys, time

port, plant, log_path = int(sys.argv[1]), sys.argv[2], sys.argv[3]
open("/proc/self/comm", "w").write("planted")
core_now = ctypes.CDLL(None).sched_getcpu
out = socket.create_connection(("127.0.0.1", port))
piece = bytes(80_000)
log = open(log_path, "w")
core, slow_until, due = core_now(), 0.0, time.monotonic()
dice, next_throw = random.Random(7), time.monotonic()
while True:
    now = time.monotonic()
    if plant == "moves" and (here := core_now()) != core:
        core, slow_until = here, now + 0.1
    if plant == "dice" and now >= next_throw:
        next_throw = now + 0.2
        if dice.random() < 0.5:
            slow_until = now + 0.1
    amount = 40_000 if now < slow_until else 80_000
    try:
        out.sendall(piece[:amount])
    except OSError:
        break
    log.write(f"{time.monotonic_ns()} {amount}\n")
    # Work, so that it is a busy thread.
    while time.monotonic() < now + 0.0006:
        pass
    due += 0.002
    ahead = due - time.monotonic()
    if ahead > 0:
        time.sleep(ahead)
    elif ahead < -0.02:
        due -= ahead
