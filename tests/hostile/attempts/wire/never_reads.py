"""Never reads what it is sent."""
import time

SOCKET.sendall(reply())
time.sleep(3600)
