"""A file system that never answers, as anybody may mount one: FUSE in a user namespace, an overlay above it, and a program
whose file lies there. Arguments: an empty directory, how many reads fail before the first that is never answered, and
what to start, with OVER and FUSE for the two mounts. Prints the number of the process, then a line when a read waits."""
import ctypes, os, signal, struct, sys, threading

base, fails, what = sys.argv[1], int(sys.argv[2]), sys.argv[3]
# Whatever hangs on it goes on then, and a test that failed comes to its end.
signal.alarm(30)
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p


def mount(kind, where, data):
    if libc.mount(b"none", where.encode(), kind.encode(), 0, data.encode()):
        sys.exit(f"mount {kind}: {os.strerror(ctypes.get_errno())}")


def attributes(node):
    mode = 0o100644 if node == 2 else 0o40755
    return struct.pack("<6Q10I", node, 1 << 20, 8, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def serve():
    reads = 0
    while True:
        try:
            asked = os.read(device, 1 << 18)
        except OSError:
            return
        _, op, unique, node = struct.unpack("<IIQQ", asked[:24])

        def say(data=b"", error=0):
            try:
                os.write(device, struct.pack("<IiQ", 16 + len(data), -error, unique) + data)
            except OSError:
                pass

        if op == 26:  # init
            say(struct.pack("<IIIIHHIIHHI7I", 7, 31, 0, 0, 8, 8, 4096, 1, 0, 0, 0, *[0] * 7))
        elif op == 1:  # lookup
            if asked[40:].rstrip(b"\0") == b"file":
                say(struct.pack("<QQQQII", 2, 0, 3600, 3600, 0, 0) + attributes(2))
            else:
                say(error=2)
        elif op == 3:  # getattr
            say(struct.pack("<QII", 3600, 0, 0) + attributes(node))
        elif op in (14, 27):  # open, opendir
            say(struct.pack("<QII", 0, 0, 0))
        elif op == 15:  # read
            reads += 1
            if reads <= fails:
                say(error=5)
            else:
                print("waits", flush=True)
        elif op == 17:  # statfs
            say(bytes(80))
        elif op in (18, 25, 28, 29):  # release, flush, readdir, releasedir
            say()
        elif op not in (2, 36, 42):  # what is not answered: forget, interrupt
            say(error=38)


over, fuse = f"{base}/over", f"{base}/fuse"
for directory in (over, fuse, f"{base}/empty"):
    os.mkdir(directory)
device = os.open("/dev/fuse", os.O_RDWR)
mount("fuse", fuse, f"fd={device},rootmode=40000,user_id=0,group_id=0")
threading.Thread(target=serve, daemon=True).start()
child = os.fork()
if child == 0:
    libc.prctl(1, signal.SIGKILL)  # it ends with its parent
    signal.alarm(0)
    os.close(device)
    what = what.replace("OVER", over).replace("FUSE", fuse)
    os.execlp("sh", "sh", "-c", what)
if "OVER" in what:
    mount("overlay", over, f"lowerdir={fuse}:{base}/empty,userxattr")
print(child, flush=True)
os.waitpid(child, 0)
