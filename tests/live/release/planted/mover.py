"""Moves a thread about five times a second between core 0 and core 1 and leaves its mask wide. A `polite` one stops when it
finds a mask that somebody else has narrowed; a `rude` one goes on. Its steps are of no even length: in step with the bins of
100 ms a move that lies on an edge would slow each bin alike."""
import os, random, sys, time

tid, manners, steps = int(sys.argv[1]), sys.argv[2], random.Random(7)
everywhere, core = os.sched_getaffinity(tid), 0
while True:
    if manners == "polite" and os.sched_getaffinity(tid) != everywhere:
        break
    core = 1 - core
    os.sched_setaffinity(tid, {core})
    time.sleep(0.005)
    os.sched_setaffinity(tid, everywhere)
    time.sleep(steps.uniform(0.16, 0.24))
