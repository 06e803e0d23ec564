"""Waits in a page fault on the file that is its argument while another thread waits for the memory that the fault holds:
whoever reads this process' command line waits behind both."""
import ctypes, os, sys, threading, time

libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
file = os.open(sys.argv[1], os.O_RDONLY)
page = ctypes.c_void_p(libc.mmap(None, ctypes.c_size_t(4096), 1, 2, file, ctypes.c_long(0)))
copy = ctypes.create_string_buffer(8)
threading.Thread(target=lambda: libc.memcpy(copy, page, ctypes.c_size_t(8)), daemon=True).start()
time.sleep(0.5)
threading.Thread(target=lambda: libc.mmap(None, ctypes.c_size_t(4096), 3, 34, -1, ctypes.c_long(0)), daemon=True).start()
while True:
    time.sleep(3600)
