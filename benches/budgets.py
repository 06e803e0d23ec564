#!/usr/bin/env python3
"""What a whole vnettop costs beside its peers: CPU time a refresh, memory, first frame, in one run.

    cargo build --profile dist && sudo python3 benches/budgets.py [links ...]

Each program runs on a 200x60 terminal of its own, in a network namespace with so many links that the script makes and
removes, with 20 watched threads and a little traffic over lo. CPU time is user + system of all its threads, from
/proc/PID/task/*/schedstat, over 20 s after a warm-up; memory is VmRSS at the end.
"""
import fcntl, os, pty, select, shutil, signal, statistics, struct, subprocess, sys, termios, time

VNETTOP = os.environ.get("VNETTOP", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../target/dist/vnettop"))
SENDER = """
import socket, time
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    out.sendto(b'x' * 1000, ('127.0.0.1', 9)); time.sleep(0.01)"""
SECONDS = float(os.environ.get("SECONDS", 20))


def in_terminal(command):
    """Starts a command on a 200x60 terminal; its pid and the terminal's other end."""
    pid, master = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", LC_ALL="C.UTF-8", XDG_STATE_HOME="/nonexistent")
        os.execvp(command[0], command)
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 60, 200, 0, 0))
    return pid, master


def read_for(master, seconds, until=None):
    """Takes what is drawn, as a terminal does; gives the bytes and the time at which `until` was seen.

    It answers where the cursor is, as every terminal does: vnettop waits 0.2 s for that once, before its first frame.
    """
    end, drawn, seen = time.monotonic() + seconds, bytearray(), None
    while (left := end - time.monotonic()) > 0:
        if not select.select([master], [], [], left)[0]:
            break
        try:
            part = os.read(master, 1 << 16)
            drawn += part
            if b"\x1b[6n" in part:
                os.write(master, b"\x1b[1;2R")
        except OSError:
            break
        if until and until in drawn:
            return len(drawn), time.monotonic()
    return len(drawn), seen


def cpu_ns(pid):
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat") as file:
            total += int(file.read().split()[0])
    return total


def resident_mib(pid):
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) / 1024


def cost(name, command, refreshes_per_s):
    if not shutil.which(command[0]):
        print(f"  {name:<22} left out: {command[0]} is not installed")
        return
    pid, master = in_terminal(command)
    try:
        read_for(master, 3)
        begin, at = cpu_ns(pid), time.monotonic()
        drawn, _ = read_for(master, SECONDS)
        spent, took, resident = cpu_ns(pid) - begin, time.monotonic() - at, resident_mib(pid)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(master)
    refreshes = refreshes_per_s * took
    print(f"  {name:<22} {spent / 1e6 / refreshes:7.3f} ms a refresh  {spent / took / 1e7:6.2f} % of a core"
          f"  {resident:6.1f} MiB  {drawn / refreshes:7.0f} bytes drawn")


def first_frame(command):
    times = []
    for _ in range(9):
        begin = time.monotonic()
        pid, master = in_terminal(command)
        _, seen = read_for(master, 5, b"ifb")
        times.append(((seen or float("inf")) - begin) * 1000)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(master)
        time.sleep(0.5)  # what the kernel still puts away of the last one is not this one's cost
    print(f"  first rows             median {statistics.median(times):5.1f} ms, {min(times):.1f} to {max(times):.1f}")


def measure(links):
    """Runs inside a namespace of its own (see main)."""
    batch = "link set lo up\n" + "".join(f"link add l{i} type ifb\nlink set l{i} up\n" for i in range(links - 1))
    subprocess.run(["ip", "-batch", "-"], input=batch, text=True, check=True)
    quiet = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    kept = [subprocess.Popen(["sleep", "3600"]) for _ in range(20)]
    kept.append(subprocess.Popen([sys.executable, "-c", SENDER], **quiet))
    try:
        print(f"{links} links, 20 threads, {os.cpu_count()} cores, 200x60:")
        cost("vnettop 10 Hz", [VNETTOP, "-d", "0.1", "--watch", "sleep"], 10)
        cost("vnettop 1 Hz", [VNETTOP, "-d", "1", "--watch", "sleep"], 1)
        cost("bmon 1 Hz", ["bmon", "-r", "1", "-R", "1"], 1)
        cost("sar -n DEV 1", ["sar", "-n", "DEV", "1", "3600"], 1)
        cost("vnettop 10 Hz", [VNETTOP, "-d", "0.1", "--watch", "sleep"], 10)
        first_frame([VNETTOP, "--watch", "sleep"])
    finally:
        for child in kept:
            child.kill()


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--inside":
        measure(int(sys.argv[2]))
    else:
        for count in sys.argv[1:] or ["20", "2000", "8000"]:
            subprocess.run(["unshare", "--net", sys.executable, os.path.abspath(__file__), "--inside", count], check=True)
