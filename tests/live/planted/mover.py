"""Moves a thread five times a second between core 0 and core 1 and leaves its mask wide. A `polite` one stops when it
finds a mask that somebody else has narrowed; a `rude` one goes on."""
import os, sys, time

tid, manners = int(sys.argv[1]), sys.argv[2]
everywhere, core = os.sched_getaffinity(tid), 0
while True:
    if manners == "polite" and os.sched_getaffinity(tid) != everywhere:
        break
    core = 1 - core
    os.sched_setaffinity(tid, {core})
    time.sleep(0.005)
    os.sched_setaffinity(tid, everywhere)
    time.sleep(0.195)
