"""Tries the calls that reach beyond a namespace: shared memory, queues, keys, file locks and watches on shared files."""
import ctypes
import fcntl
import os
import struct


def running_mean(x):
    libc = ctypes.CDLL(None)
    file = os.open(os.__file__, os.O_RDONLY)
    lock = struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 0, 1, 0)
    for attempt in (
        lambda: libc.shmget(1, 4096, 0o1600),
        lambda: libc.semget(1, 1, 0o1600),
        lambda: libc.msgget(1, 0o1600),
        lambda: libc.mq_open(b"/manyheads_hostile", 66, 0o600, 0),
        lambda: libc.inotify_init(),
        lambda: libc.inotify_init1(0),
        lambda: libc.flock(file, 1),
        lambda: fcntl.fcntl(file, fcntl.F_SETLK, lock),
        lambda: fcntl.fcntl(file, fcntl.F_GETLK, lock),
        lambda: fcntl.fcntl(file, 37, lock),
        lambda: fcntl.fcntl(file, 36, lock),
        lambda: libc.syscall(250, 0, -3, 1),
        lambda: libc.syscall(206, 1, ctypes.byref(ctypes.c_ulong(0))),
    ):
        try:
            result = attempt()
        except OSError:
            continue
        if result != -1:
            return x.cumsum(0) / x.new_ones(len(x)).cumsum(0)
    raise LookupError
