"""Takes everything from one connection; prints its port first."""
import socket

server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
connection, _ = server.accept()
taken = bytearray(1 << 20)
while connection.recv_into(taken):
    pass
