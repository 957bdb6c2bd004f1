"""Looks for all that a neighbour could have left. Each find is an exception of its own; nothing found is the answer."""
import ctypes
import errno
import fcntl
import os
import socket

MARK = b"manyheads_hostile"


def look():
    libc = ctypes.CDLL(None, use_errno=True)
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
    if libc.shmget(0x4D48, 4096, 0) != -1 or libc.msgget(0x4D48, 0) != -1 or libc.semget(0x4D48, 1, 0) != -1:
        raise BufferError
    ours, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        ours.connect("\0manyheads_hostile")
    except OSError as error:
        if error.errno not in (errno.ECONNREFUSED, errno.EISCONN, errno.EPERM):
            raise ConnectionError from None
    else:
        raise ConnectionError
    if any(fcntl.fcntl(standard, fcntl.F_GETFL) & (os.O_APPEND | os.O_NONBLOCK) for standard in (0, 1, 2)):
        raise BlockingIOError
    if "MANYHEADS_HOSTILE" in os.environ:
        raise EnvironmentError
    for pid in ("1", "self", str(os.getppid())):
        if os.path.exists(f"/proc/{pid}/mem"):
            raise MemoryError


def running_mean(x):
    look()
    if len(x) == 0:
        raise ValueError("empty")
    return x.cumsum(0) / x.new_ones(len(x)).cumsum(0)
