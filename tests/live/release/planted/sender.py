"""Sends at a steady 40 MB/s to the port given, but at half of that for 100 ms after each move it notices (`moves`), or
in stretches of 100 ms that have nothing to do with moves (`dice`), or at so many times less while it may use several cores
(`gain1.1`). It writes what it sent, and when, to the file given, and ends after so many seconds where they are given."""
import ctypes, os, random, socket, sys, time

port, plant, log_path = int(sys.argv[1]), sys.argv[2], sys.argv[3]
end = time.monotonic() + float(sys.argv[4]) if len(sys.argv) > 4 else float("inf")
gain = float(plant[4:]) if plant.startswith("gain") else 1
open("/proc/self/comm", "w").write("planted" if gain == 1 else "gaining")
core_now = ctypes.CDLL(None).sched_getcpu
out = socket.create_connection(("127.0.0.1", port))
piece = bytes(80_000)
log = open(log_path, "w")
core, slow_until, due = core_now(), 0.0, time.monotonic()
dice, next_throw = random.Random(7), time.monotonic()
while (now := time.monotonic()) < end:
    if plant == "moves" and (here := core_now()) != core:
        core, slow_until = here, now + 0.1
    if plant == "dice" and now >= next_throw:
        next_throw = now + 0.2
        if dice.random() < 0.5:
            slow_until = now + 0.1
    amount = 40_000 if now < slow_until else 80_000
    if gain != 1 and len(os.sched_getaffinity(0)) > 1:
        amount = round(amount / gain)
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
