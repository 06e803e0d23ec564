"""Holds tun and tap devices as a VPN or a hypervisor does, and copies between them.

tun NAME OWN REMOTE       a tun, carried in UDP between two addresses
tap NAME SPACE            a tap, and the guest's own network card (a tap named eth0) in the namespace of that path
macvtap DEVICE SPACE MAC  the same with a macvtap's character device and its address
"""
import ctypes, fcntl, os, select, socket, struct, sys

IFF_TUN, IFF_TAP, IFF_NO_PI, TUNSETIFF = 1, 2, 0x1000, 0x400454CA
PORT = 7000


def held(name, flags):
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", name.encode(), flags | IFF_NO_PI))
    return device


def guest(space, mac=None):
    own, there = os.open("/proc/self/ns/net", os.O_RDONLY), os.open(space, os.O_RDONLY)
    enter = ctypes.CDLL(None, use_errno=True).setns
    assert enter(there, 0) == 0, "the guest's namespace is entered"
    card = held("eth0", IFF_TAP)
    if mac:
        os.system(f"ip link set eth0 address {mac}")
    assert enter(own, 0) == 0, "and left"
    os.close(own)
    os.close(there)
    return card


def ends(how, *more):
    if how == "tun":
        name, own, remote = more
        carrier = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        carrier.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        carrier.bind((own, PORT))
        carrier.connect((remote, PORT))
        carrier.setblocking(False)
        return held(name, IFF_TUN), carrier.detach()
    if how == "tap":
        name, space = more
        return held(name, IFF_TAP), guest(space)
    path, space, mac = more
    device = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", b"", IFF_TAP | IFF_NO_PI))
    return device, guest(space, mac)


def copy(source, sink):
    for _ in range(64):
        try:
            packet = os.read(source, 65536)
        except (BlockingIOError, ConnectionRefusedError):
            return
        except OSError:  # a device that is not up yet
            return
        try:
            os.write(sink, packet)
        except OSError:  # full, or not up yet: lost, as on a wire
            pass


def main():
    one, other = ends(*sys.argv[1:])
    print("holds", flush=True)
    while True:
        ready, _, _ = select.select([one, other], [], [])
        if one in ready:
            copy(one, other)
        if other in ready:
            copy(other, one)


main()
