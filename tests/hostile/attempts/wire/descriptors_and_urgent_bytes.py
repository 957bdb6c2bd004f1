"""Sends descriptors and urgent bytes along with its answers, and asks for credentials."""
SOCKET.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
SOCKET.sendall(reply())
while True:
    read()
    socket.send_fds(SOCKET, [reply()[:4]], [64] * 20)
    try:
        SOCKET.send(b"!", socket.MSG_OOB)
    except OSError:
        os._exit(0)
