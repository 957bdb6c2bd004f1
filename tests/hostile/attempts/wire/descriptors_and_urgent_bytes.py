"""Sends descriptors and urgent bytes along with its answers, and asks for credentials, as if it had a socket."""
import socket

send(reply())
while True:
    read()
    for number in (RECEIVES, SENDS):
        try:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, fileno=number)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            socket.send_fds(connection, [reply()[:4]], [RECEIVES] * 20)
            connection.send(b"!", socket.MSG_OOB)
        except OSError:
            continue
    send(reply()[:4])
    os._exit(0)
