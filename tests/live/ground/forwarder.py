"""Holds two taps and copies every frame from one to the other, both ways, as a virtual machine that forwards does: the main
thread waits, one more does all the work. No counter of the kernel knows what it drops."""
import argparse, collections, fcntl, os, select, signal, struct, threading, time

arguments = argparse.ArgumentParser()
arguments.add_argument("taps", nargs=2)
arguments.add_argument("--drop", type=int, default=0, help="drops every so manieth long frame from the first tap")
arguments.add_argument("--burn-us", type=int, default=0, help="CPU time that each frame costs, microseconds")
arguments.add_argument("--delay-us", type=int, default=0, help="holds each frame for so long, microseconds")
told = arguments.parse_args()

# What sets a test up is shorter.
LONG = 300
TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 2, 0x1000


def tap(name):
    file = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(file, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
    return file


def burn():
    end = time.thread_time_ns() + told.burn_us * 1000
    while time.thread_time_ns() < end:
        pass


def carry(files):
    held, seen = collections.deque(), 0
    while True:
        # Not poll, which waits in milliseconds.
        wait = max(0, held[0][0] - time.monotonic()) if held else None
        for file in select.select(files, [], [], wait)[0]:
            for _ in range(64):
                try:
                    frame = os.read(file, 65600)
                except BlockingIOError:
                    break
                if told.burn_us:
                    burn()
                if file == files[0] and len(frame) > LONG:
                    seen += 1
                    if told.drop and seen % told.drop == 0:
                        continue
                to = files[file == files[0]]
                if told.delay_us:
                    held.append((time.monotonic() + told.delay_us / 1e6, to, frame))
                else:
                    os.write(to, frame)
        while held and held[0][0] <= time.monotonic():
            _, to, frame = held.popleft()
            os.write(to, frame)


threading.Thread(target=carry, args=([tap(name) for name in told.taps],), daemon=True).start()
print("ready", flush=True)
signal.pause()
