"""Shuts the connection down, in each direction, and goes on living."""
import time

SOCKET.sendall(reply())
read()
SOCKET.shutdown(socket.SHUT_RDWR)
time.sleep(3600)
