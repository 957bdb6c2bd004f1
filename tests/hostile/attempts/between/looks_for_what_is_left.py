"""Looks for all that a neighbour could have left. Each find is an exception of its own; nothing found is the answer."""
import errno
import os
import socket

def look():
    for folder in ("/tmp", "/dev/shm"):
        if os.listdir(folder):
            raise FileExistsError
    for folder, folders, names in os.walk("/"):
        if any("manyheads_hostile" in name for name in (*folders, *names)):
            raise FileNotFoundError
        if folder.count("/") > 3:
            folders.clear()
    if os.listdir("/proc") or os.getppid() != 0 or os.getpid() != 1:
        raise ProcessLookupError
    for pid in range(2, 5000):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            continue
        except PermissionError:
            raise ChildProcessError from None
        raise ChildProcessError
    ours, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        ours.connect("\0manyheads_hostile")
    except OSError as error:
        if error.errno not in (errno.ECONNREFUSED, errno.EISCONN, errno.EPERM):
            raise ConnectionError from None
    else:
        raise ConnectionError
    if "MANYHEADS_HOSTILE" in os.environ:
        raise EnvironmentError


def running_mean(x):
    look()
    if len(x) == 0:
        raise ValueError("empty")
    return x.cumsum(0) / x.new_ones(len(x)).cumsum(0)
