# Loads a small BPF program and pins it: what it is, where to, and the number that it needs.
import ctypes, struct, sys

libc = ctypes.CDLL(None, use_errno=True)
BPF = {"x86_64": 321, "aarch64": 280}[__import__("os").uname().machine]
one = lambda op, regs=0, number=0, offset=0: struct.pack("<BBhi", op, regs, offset, number)
kind, pin, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
if kind == "redirect_peer":  # bpf_redirect_peer(number, 0)
    of, code = 3, one(0xB7, 1, number) + one(0xB7, 2, 0) + one(0x85, 0, 155) + one(0x95)
if kind == "xdp_drop":  # one of so many, by bpf_get_prandom_u32() & number
    of, code = 6, one(0x85, 0, 7) + one(0x57, 0, number) + one(0x55, 0, 0, 2)
    code += one(0xB7, 0, 1) + one(0x95) + one(0xB7, 0, 2) + one(0x95)
if kind == "xdp_pass":
    of, code = 6, one(0xB7, 0, 2) + one(0x95)
text, licence = ctypes.create_string_buffer(code, len(code)), ctypes.create_string_buffer(b"GPL")
load = struct.pack("<IIQQ", of, len(code) // 8, ctypes.addressof(text), ctypes.addressof(licence))
load = ctypes.create_string_buffer(load.ljust(128, b"\0"), 128)
program = libc.syscall(BPF, 5, load, 128)
name = ctypes.create_string_buffer(pin.encode())
keep = ctypes.create_string_buffer(struct.pack("<QI", ctypes.addressof(name), program).ljust(128, b"\0"), 128)
sys.exit(program < 0 or libc.syscall(BPF, 6, keep, 128))
